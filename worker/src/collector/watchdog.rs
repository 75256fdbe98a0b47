//! When a thread inside a call counts as stuck (pure).
//!
//! The age of a call by the clock is not enough: after a suspend, a paused virtual machine or a
//! stopped process every call looks old. So a call ages only by the time for which the collector
//! itself was awake and saw it in flight.

/// Most that a call ages between two looks.
const STEP_NS_MAX: u64 = 1_000_000_000;

/// How long one thread's call has been watched.
#[derive(Debug, Clone, Copy, Default)]
pub struct Watchdog {
    call: Option<u64>,
    watched_ns: u64,
}

impl Watchdog {
    /// A look: the call in flight (the stamp of its begin), `since_last_ns` after the last look.
    pub fn look(&mut self, call: Option<u64>, since_last_ns: u64) {
        if call.is_some() && call == self.call {
            self.watched_ns += since_last_ns.min(STEP_NS_MAX);
        } else {
            *self = Self { call, watched_ns: 0 };
        }
    }

    /// Whether the call has been in flight for `after_ns`.
    #[must_use]
    pub fn is_stuck(&self, after_ns: u64) -> bool {
        self.call.is_some() && self.watched_ns >= after_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_ages_while_it_is_watched() {
        let mut dog = Watchdog::default();
        dog.look(None, 500);
        dog.look(Some(7), 500);
        assert!(!dog.is_stuck(1));
        dog.look(Some(7), 600);
        dog.look(Some(7), 400);
        assert!(dog.is_stuck(1_000) && !dog.is_stuck(1_001));
        dog.look(Some(8), 5_000);
        assert!(!dog.is_stuck(1));
        dog.look(None, 5_000);
        assert!(!dog.is_stuck(0), "a thread that is in no call is not stuck");
    }

    #[test]
    fn an_hour_of_sleep_is_one_look() {
        let mut dog = Watchdog::default();
        dog.look(Some(1), 0);
        dog.look(Some(1), 3_600 * STEP_NS_MAX);
        assert!(!dog.is_stuck(STEP_NS_MAX + 1));
    }
}
