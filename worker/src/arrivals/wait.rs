//! Waiting for a time on the stamp clock: for an arrival, or for the end of a pause.

use std::{hint::spin_loop, num::NonZeroU64};

use iofleet_shared::clock::monotonic_ns;
use rustix::thread::set_current_timer_slack;

use crate::stamp::{Clock, StampClock, sleep_until};

/// How long before the time a thread that may spin begins to: above what waking up takes.
const SPIN_NS: u64 = 55_000;
/// Longest sleep before a look at whether the thread is to stop.
const SLICE_NS: u64 = 100_000_000;

/// How a thread waits.
#[derive(Debug, Clone, Copy)]
pub struct Wait {
    clock: StampClock,
    spin_ns: u64,
}

impl Wait {
    /// For the calling thread. Its timers get the finest slack: the kernel's 50 us would be as long
    /// as an operation. `may_spin`: it has a core for itself.
    #[must_use]
    pub fn new(clock: StampClock, may_spin: bool) -> Self {
        // Where it is refused, wakeups are late and the response times say so.
        let _ = set_current_timer_slack(Some(NonZeroU64::MIN));
        Self { clock, spin_ns: if may_spin { SPIN_NS } else { 0 } }
    }

    /// Returns at the stamp `target`, with a reading that is not before it; at once where it has
    /// passed. None where the thread is to stop, which is looked at before each sleep of 100 ms at
    /// most.
    #[inline]
    pub fn until(
        &self,
        target: u64,
        reader: impl Clock,
        is_stopped: impl Fn() -> bool,
    ) -> Option<u64> {
        self.until_with(target, reader, is_stopped, sleep)
    }

    #[inline]
    fn until_with(
        &self,
        target: u64,
        reader: impl Clock,
        is_stopped: impl Fn() -> bool,
        sleep: impl Fn(u64),
    ) -> Option<u64> {
        loop {
            let now = reader.now();
            if now >= target {
                return Some(now);
            }
            let ahead = self.clock.delta_ns(target - now);
            if ahead <= self.spin_ns {
                spin_loop();
            } else if is_stopped() {
                return None;
            } else {
                sleep((ahead - self.spin_ns).min(SLICE_NS));
            }
        }
    }
}

/// Sleeps so many ns. The instant is reckoned from now each time: over a long point the stamp clock
/// may drift away from the kernel's.
#[cold]
fn sleep(ns: u64) {
    sleep_until(monotonic_ns().saturating_add(ns));
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    /// Advances by 1 us with each reading.
    #[derive(Clone, Copy)]
    struct Steps<'a>(&'a Cell<u64>);

    impl Clock for Steps<'_> {
        fn now(&self) -> u64 {
            self.0.set(self.0.get() + 1_000);
            self.0.get()
        }
    }

    /// What a wait gives and how long it sleeps each time, told to stop after some sleeps.
    fn until(target: u64, may_spin: bool, sleeps: usize) -> (Option<u64>, Vec<u64>) {
        let (time, slept) = (Cell::new(0), RefCell::new(Vec::new()));
        let wait = Wait::new(StampClock::gettime(), may_spin);
        let is_stopped = || slept.borrow().len() == sleeps;
        let given = wait.until_with(target, Steps(&time), is_stopped, |ns| {
            slept.borrow_mut().push(ns);
            time.set(time.get() + ns);
        });
        (given, slept.into_inner())
    }

    #[test]
    fn a_time_that_has_passed_is_not_waited_for() {
        assert_eq!(until(1_000, true, 9), (Some(1_000), vec![]));
        assert_eq!(until(0, false, 9), (Some(1_000), vec![]));
    }

    #[test]
    fn only_who_may_spin_spins_to_the_end() {
        assert_eq!(until(56_000, true, 9), (Some(56_000), vec![]));
        assert_eq!(until(80_500, true, 9), (Some(80_500), vec![24_500]));
        assert_eq!(until(80_500, false, 9), (Some(81_500), vec![79_500]));
    }

    #[test]
    fn long_waits_are_slept_in_slices_and_a_stop_ends_them() {
        let slices = vec![100_000_000, 100_000_000, 49_943_000];
        assert_eq!(until(250_001_000, true, 9), (Some(250_001_000), slices));
        assert_eq!(until(u64::MAX, true, 2), (None, vec![100_000_000; 2]));
    }
}
