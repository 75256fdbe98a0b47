//! The arrivals of an open load: operations come at their times, whatever happened to those before.
//!
//! All threads of a worker draw from one sequence: a schedule per thread would let one thread's
//! arrivals pile up behind a slow operation while its neighbours are free, and would inflate the
//! response time. What the threads share is one counter of arrivals taken. The time of an arrival
//! follows from its number alone, so a thread that took a number works out the time by itself.
//!
//! Numbers are taken without gaps, each by one thread. Hence what was offered by a time is what the
//! schedule says, and what was not issued of it is that less what was issued: tickets that threads
//! hold at the end, or lost, need no account of their own ([`ArrivalQueue::count_between`]).

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use iofleet_shared::work::Arrivals;

use even::Even;
use poisson::{Bin, Poisson};

pub use pace::Pace;
pub use wait::Wait;

mod even;
mod pace;
mod poisson;
mod wait;

/// An arrival that a thread took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// From 0, over the whole worker.
    pub number: u64,
    /// When it comes, in ns after T0: the operation's intended start.
    pub at_ns: u64,
}

/// The arrivals at a worker, shared by its threads.
#[derive(Debug)]
pub struct ArrivalQueue {
    schedule: Schedule,
    taken: Taken,
}

/// In cache lines of its own (two, since neighbours are fetched in pairs): every take writes it,
/// and the schedule beside it is only read.
#[derive(Debug)]
#[repr(align(128))]
struct Taken(AtomicU64);

#[derive(Debug)]
enum Schedule {
    Even(Even),
    Poisson(Poisson),
}

impl Schedule {
    /// ns from T0 to an arrival; ascends with the number.
    #[inline]
    fn at_ns(&self, bin: &mut Bin, number: u64) -> u64 {
        match self {
            Self::Even(even) => even.at_ns(number),
            Self::Poisson(poisson) => poisson.at_ns(bin, number),
        }
    }

    /// How many arrivals lie before a time.
    fn before(&self, bin: &mut Bin, ns: u64) -> u64 {
        match self {
            Self::Even(even) => even.before(ns),
            Self::Poisson(poisson) => poisson.before(bin, ns),
        }
    }
}

impl ArrivalQueue {
    /// The sequence that `arrivals` describes, with nothing taken; the phase is that of even gaps
    /// alone. A rate of 0 has no arrivals: all lie at `u64::MAX`. It must be below 10^10 a second.
    #[must_use]
    pub fn new(arrivals: &Arrivals) -> Self {
        let schedule = if arrivals.exponential {
            Schedule::Poisson(Poisson::new(arrivals.per_1000_s, arrivals.seed))
        } else {
            Schedule::Even(Even::new(arrivals.per_1000_s, arrivals.phase_ns))
        };
        Self { schedule, taken: Taken(AtomicU64::new(0)) }
    }

    /// How many arrivals were taken, those included that lie ahead and are waited for.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken.0.load(Ordering::Relaxed)
    }

    /// How many arrivals lie in `[from_ns, to_ns)`: what is offered in that time. Exact; with
    /// exponential gaps it takes a second per 10^10 arrivals between T0 and `to_ns`, so it is not
    /// for the I/O path and `to_ns` must be the end of something.
    #[must_use]
    pub fn count_between(&self, from_ns: u64, to_ns: u64) -> u64 {
        let mut bin = Bin::default();
        let from = self.schedule.before(&mut bin, from_ns);
        self.schedule.before(&mut bin, to_ns).saturating_sub(from)
    }
}

/// A thread's access to the queue.
#[derive(Debug)]
pub struct Taker {
    queue: Arc<ArrivalQueue>,
    bin: Bin,
}

impl Taker {
    /// Access for one thread.
    #[must_use]
    pub fn new(queue: Arc<ArrivalQueue>) -> Self {
        Self { queue, bin: Bin::default() }
    }

    /// Takes the next arrival. Wait-free.
    #[inline]
    pub fn take(&mut self) -> Arrival {
        // Nothing is published by taking: the number is all that passes between threads.
        let number = self.queue.taken.0.fetch_add(1, Ordering::Relaxed);
        let at_ns = self.queue.schedule.at_ns(&mut self.bin, number);
        Arrival { number, at_ns }
    }
}

/// Counts arrivals up to times that advance, at the cost of a take or two.
#[derive(Debug)]
pub struct Meter {
    queue: Arc<ArrivalQueue>,
    bin: Bin,
}

impl Meter {
    /// A meter for one thread.
    #[must_use]
    pub fn new(queue: Arc<ArrivalQueue>) -> Self {
        Self { queue, bin: Bin::default() }
    }

    /// How many arrivals lie before `ns` after T0. A time before that of the last call is counted
    /// from T0 on, which is exact as well but slow.
    pub fn offered_before(&mut self, ns: u64) -> u64 {
        self.queue.schedule.before(&mut self.bin, ns)
    }

    /// How many arrivals had come by `now_ns` after T0 and were not taken yet.
    pub fn backlog(&mut self, now_ns: u64) -> u64 {
        let taken = self.queue.taken();
        self.offered_before(now_ns.saturating_add(1)).saturating_sub(taken)
    }
}

#[cfg(test)]
mod tests;
