//! The queues between an I/O thread and the collector: bounded, one producer and one consumer,
//! and never waited for.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use iofleet_shared::stats::LatencyCounts;
use rtrb::{Consumer, Producer, RingBuffer};

/// Intervals that a thread may be ahead of the collector.
const COUNTERS_MAX: usize = 256;
/// Tick runs that a thread may be ahead of the collector.
const TICK_RUNS_MAX: usize = 512;
/// Histograms of a thread beside the one in use.
const SPARES: usize = 2;
/// Full histograms that can be on their way: all of a thread's, the reserve included.
const FULL_MAX: usize = SPARES + 2;

/// What completed in one interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// The interval.
    pub k: u32,
    /// Payload of its operations.
    pub bytes: u64,
    /// Operations.
    pub ops: u64,
    /// Failed operations.
    pub errors: u64,
    /// Whether the latencies up to here were handed over; if not, those of a later interval hold
    /// them as well.
    pub latency_handed: bool,
}

/// The same share of operations in each of some ticks in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TickRun {
    /// The first tick.
    pub first: u64,
    /// How many ticks.
    pub length: u64,
    /// Payload in each, in units of 1/`BYTE_UNITS`.
    pub bytes: u64,
    /// Operations in each, in units of 1/`OP_UNITS`.
    pub ops: u64,
    /// Service time in each, in ns.
    pub busy_ns: u64,
}

/// Latencies up to and with interval `k`, since the ones handed over before.
#[derive(Debug)]
pub struct FullLatency {
    /// The last interval that they cover.
    pub k: u32,
    /// The latencies.
    pub counts: Histograms,
}

/// Latencies of some operations.
#[derive(Debug)]
pub struct Histograms {
    /// Issue to completion.
    pub service: LatencyCounts,
    /// Under an offered load: arrival to completion.
    pub response: Option<LatencyCounts>,
}

impl Histograms {
    /// Empty ones; `with_response` under an offered load.
    #[must_use]
    pub fn new(with_response: bool) -> Self {
        Self { service: LatencyCounts::new(), response: with_response.then(LatencyCounts::new) }
    }

    /// Empty ones of the same shape.
    #[must_use]
    pub fn like(&self) -> Self {
        Self::new(self.response.is_some())
    }

    /// Adds others.
    pub fn merge(&mut self, other: &Self) {
        self.service.merge(&other.service);
        if let (Some(own), Some(other)) = (&mut self.response, &other.response) {
            own.merge(other);
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.service.clear();
        if let Some(response) = &mut self.response {
            response.clear();
        }
    }
}

/// The thread's ends.
#[derive(Debug)]
pub struct Outlet {
    counters: Producer<Counters>,
    ticks: Producer<TickRun>,
    full: Producer<FullLatency>,
    empty: Consumer<Histograms>,
    with_response: bool,
    passed: Arc<Passed>,
    /// Entries that found a queue full and are lost.
    lost: u64,
}

/// The collector's ends.
#[derive(Debug)]
pub struct Inlet {
    counters: Consumer<Counters>,
    ticks: Consumer<TickRun>,
    full: Consumer<FullLatency>,
    empty: Producer<Histograms>,
    passed: Arc<Passed>,
}

/// The interval that a thread is in: all before are handed over.
#[derive(Debug)]
#[repr(align(128))]
struct Passed(AtomicU32);

/// Queues for one kind of operation of one thread that has one in flight; see [`rings_of_depth`].
#[must_use]
pub fn rings(with_response: bool) -> (Outlet, Inlet) {
    rings_of_depth(1, with_response)
}

/// Queues for one kind of operation of one thread with at most `depth` of them in flight, with empty
/// histograms in them; `with_response` under an offered load.
#[must_use]
pub fn rings_of_depth(depth: u32, with_response: bool) -> (Outlet, Inlet) {
    let (counters_in, counters) = RingBuffer::new(COUNTERS_MAX);
    // All that are in flight may stand still for long and complete at once: each then leaves up to
    // two runs of old ticks.
    let at_once = usize::try_from(depth).unwrap_or(usize::MAX).saturating_mul(2);
    let (ticks_in, ticks) = RingBuffer::new(TICK_RUNS_MAX.saturating_add(at_once));
    let (full_in, full) = RingBuffer::new(FULL_MAX);
    let (mut empty_in, empty) = RingBuffer::new(FULL_MAX);
    for _ in 0..SPARES {
        // The queue is new and larger.
        let _ = empty_in.push(Histograms::new(with_response));
    }
    let passed = Arc::new(Passed(AtomicU32::new(0)));
    (
        Outlet {
            counters: counters_in,
            ticks: ticks_in,
            full: full_in,
            empty,
            with_response,
            passed: Arc::clone(&passed),
            lost: 0,
        },
        Inlet { counters, ticks, full, empty: empty_in, passed },
    )
}

impl Outlet {
    /// Hands over an interval.
    pub fn counters(&mut self, entry: Counters) {
        self.lost += u64::from(self.counters.push(entry).is_err());
    }

    /// Hands over ticks.
    pub fn ticks(&mut self, run: TickRun) {
        self.lost += u64::from(self.ticks.push(run).is_err());
    }

    /// Hands over latencies.
    pub fn latency(&mut self, full: FullLatency) {
        self.lost += u64::from(self.full.push(full).is_err());
    }

    /// An empty histogram, if the collector has given one back.
    pub fn empty(&mut self) -> Option<Histograms> {
        self.empty.pop().ok()
    }

    /// New empty histograms.
    #[must_use]
    pub fn histograms(&self) -> Histograms {
        Histograms::new(self.with_response)
    }

    /// Says that all intervals before `k` are handed over.
    pub fn pass(&self, k: u32) {
        self.passed.0.store(k, Ordering::Release);
    }

    /// Entries that found a queue full.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

impl Inlet {
    /// The interval that the thread is in. What it handed over before it said so is in the queues.
    #[must_use]
    pub fn passed(&self) -> u32 {
        self.passed.0.load(Ordering::Acquire)
    }

    /// The next interval.
    pub fn counters(&mut self) -> Option<Counters> {
        self.counters.pop().ok()
    }

    /// The next ticks.
    pub fn ticks(&mut self) -> Option<TickRun> {
        self.ticks.pop().ok()
    }

    /// The next latencies. They must go back by [`Inlet::give_back`].
    pub fn latency(&mut self) -> Option<FullLatency> {
        self.full.pop().ok()
    }

    /// Gives a histogram back, emptied.
    pub fn give_back(&mut self, mut counts: Histograms) {
        counts.clear();
        // The queue holds all histograms that there are.
        let _ = self.empty.push(counts);
    }
}
