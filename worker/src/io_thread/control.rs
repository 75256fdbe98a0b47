//! What the threads of a crew share: when to start, whether to, and when to stop.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering},
    },
    thread::Thread,
};

/// T0 is not known yet.
const UNKNOWN: u64 = u64::MAX;
/// No thread has ended.
const NOT_ENDED: u64 = u64::MAX;

/// Nobody has said whether there is a start.
const UNDECIDED: u8 = 0;
/// There is one.
const COMMITTED: u8 = 1;
/// T0 came first.
const TOO_LATE: u8 = 2;

/// Read by every thread before each operation, and so apart from what threads write.
#[derive(Debug)]
#[repr(align(128))]
struct Orders {
    stop: AtomicBool,
    /// When the first thread ended, ns after T0. Also read after each operation; written only by a
    /// thread that ends earlier than any before it.
    first_end: AtomicU64,
}

/// The shared state of a crew.
#[derive(Debug)]
pub struct Control {
    orders: Orders,
    t0_ns: AtomicU64,
    start: AtomicU8,
    dismissed: AtomicBool,
    /// Threads that have issued an operation, or never will.
    begun: AtomicU32,
    /// Threads that have not ended.
    running: AtomicU32,
    threads: u32,
    cores: u32,
    collector: OnceLock<Thread>,
}

impl Control {
    /// For a crew of `threads` that has `cores` to run on.
    #[must_use]
    pub fn new(threads: u32, cores: u32) -> Self {
        Self {
            orders: Orders { stop: AtomicBool::new(false), first_end: AtomicU64::new(NOT_ENDED) },
            t0_ns: AtomicU64::new(UNKNOWN),
            start: AtomicU8::new(UNDECIDED),
            dismissed: AtomicBool::new(false),
            begun: AtomicU32::new(0),
            running: AtomicU32::new(threads),
            threads,
            cores,
            collector: OnceLock::new(),
        }
    }

    /// T0 on the worker's monotonic clock, once it is known.
    #[must_use]
    pub fn t0(&self) -> Option<u64> {
        Some(self.t0_ns.load(Ordering::Acquire)).filter(|t0| *t0 != UNKNOWN)
    }

    /// Makes T0 known. The first T0 holds.
    pub fn set_t0(&self, t0_worker_ns: u64) {
        let _ = self.t0_ns.compare_exchange(
            UNKNOWN,
            t0_worker_ns.min(UNKNOWN - 1),
            Ordering::AcqRel,
            Ordering::Acquire,
        );
    }

    /// The start is agreed on by all workers. Says whether that came in time.
    pub fn commit(&self) -> bool {
        self.decide(COMMITTED) == COMMITTED
    }

    /// Whether the start is agreed on, asked at T0: the answer is the same for all threads, also
    /// when the commit comes in the same moment.
    #[must_use]
    pub fn is_committed(&self) -> bool {
        self.decide(TOO_LATE) == COMMITTED
    }

    /// The first decision holds.
    fn decide(&self, decision: u8) -> u8 {
        match self.start.compare_exchange(UNDECIDED, decision, Ordering::AcqRel, Ordering::Acquire)
        {
            Ok(_) => decision,
            Err(earlier) => earlier,
        }
    }

    /// Tells the threads to issue nothing further.
    pub fn stop(&self) {
        self.orders.stop.store(true, Ordering::Release);
    }

    /// Whether nothing further is to be issued.
    #[inline]
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.orders.stop.load(Ordering::Relaxed)
    }

    /// Stops the threads of a crew that nobody wants to hear of any more.
    pub fn dismiss(&self) {
        self.dismissed.store(true, Ordering::Release);
        self.stop();
    }

    /// Whether nobody wants to hear of the crew.
    #[must_use]
    pub fn is_dismissed(&self) -> bool {
        self.dismissed.load(Ordering::Acquire)
    }

    /// Whether each thread has a core to spin on.
    #[must_use]
    pub fn may_spin(&self) -> bool {
        self.threads <= self.cores
    }

    /// One more thread has issued its first operation, or never will. Says whether it should wait
    /// for the others.
    pub fn has_begun(&self) -> bool {
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.threads > self.cores
    }

    /// Whether all threads have issued an operation, or never will.
    #[must_use]
    pub fn all_have_begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed) >= self.threads
    }

    /// When the first thread of the crew ended, ns after T0; beyond all times while none has.
    #[inline]
    #[must_use]
    pub fn first_end(&self) -> u64 {
        self.orders.first_end.load(Ordering::Relaxed)
    }

    /// A thread that completed something ended at this time, ns after T0.
    ///
    /// It may come after others have ended later; what they saw of it until now is good for a few
    /// operations (see `recorder::recent`).
    pub fn ended_at(&self, ns: u64) {
        // Who is not first leaves the line to those who read it.
        if ns < self.first_end() {
            self.orders.first_end.fetch_min(ns, Ordering::Relaxed);
        }
    }

    /// The time that [`Control::first_end`] came to, once all threads have ended.
    #[must_use]
    pub fn first_ended(&self) -> Option<u64> {
        Some(self.first_end()).filter(|ns| *ns != NOT_ENDED)
    }

    /// The thread to be woken when the last of the crew has ended.
    pub fn set_collector(&self, collector: Thread) {
        let _ = self.collector.set(collector);
    }

    /// One more thread has ended.
    pub fn has_ended(&self) {
        if self.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.wake_collector();
        }
    }

    /// Wakes the collector.
    pub fn wake_collector(&self) {
        if let Some(collector) = self.collector.get() {
            collector.unpark();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crew_decides_as_one() {
        let control = Control::new(2, 2);
        assert!(!control.is_committed());
        assert!(!control.commit(), "the first thread has already left");
        assert!(!control.is_committed());
        let control = Control::new(2, 2);
        assert!(control.commit() && control.is_committed());
    }

    #[test]
    fn the_earliest_end_holds() {
        let control = Control::new(3, 3);
        assert_eq!((control.first_ended(), control.first_end()), (None, u64::MAX));
        [7, 5, 9].into_iter().for_each(|ns| control.ended_at(ns));
        assert_eq!((control.first_ended(), control.first_end()), (Some(5), 5));
    }

    #[test]
    fn the_first_t0_holds() {
        let control = Control::new(1, 1);
        assert_eq!(control.t0(), None);
        control.set_t0(5);
        control.set_t0(9);
        assert_eq!(control.t0(), Some(5));
    }
}
