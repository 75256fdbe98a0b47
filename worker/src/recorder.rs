//! What an I/O thread counts of its operations: four accounts that are kept apart from each other,
//! so that any two of them can be compared.
//!
//! - plain *totals*, of the warm-up and of the measured phase;
//! - the *completion series*: each operation whole in the interval in which it completed;
//! - the *spread series*: each operation's bytes, count of one and service time, shared out over
//!   the ticks between its issue and its completion, in integers that lose nothing;
//! - *latencies*, in histograms that cover one interval each (or more when the collector is late).
//!
//! Times are ns after T0. Operations come in the order in which they complete, and may overlap. As
//! long as one lies inside the current tick and interval it costs two comparisons and a few
//! additions. A recorder is of one kind of operation of one thread.

use std::fmt;

use iofleet_shared::stats::{BYTE_UNITS, OP_UNITS};

use crate::engine::{Failure, Request};

pub use failures::{FailedKind, Failures};
pub use rings::{Counters, FullLatency, Histograms, Inlet, Outlet, TickRun, rings, rings_of_depth};

use recent::Recent;
use ticks::Ticks;

mod failures;
mod recent;
mod rings;
mod ticks;

/// Plain sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Payload.
    pub bytes: u64,
    /// Operations.
    pub ops: u64,
    /// Failed operations.
    pub errors: u64,
}

impl Totals {
    /// Adds others.
    pub fn add(&mut self, other: Self) {
        let Self { bytes, ops, errors } = other;
        self.bytes += bytes;
        self.ops += ops;
        self.errors += errors;
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bytes, ops, errors } = self;
        write!(f, "{bytes} bytes, {ops} operations, {errors} errors")
    }
}

/// What was begun and not handed over when a thread ended.
#[derive(Debug)]
pub struct Rest<'a> {
    /// The last interval.
    pub counters: Option<Counters>,
    /// The last latencies, and the last interval that they cover.
    pub latency: Option<(u32, &'a Histograms)>,
}

/// Bytes and count of operations, in units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Units {
    /// In 1/[`BYTE_UNITS`] byte.
    pub bytes: u128,
    /// In 1/[`OP_UNITS`].
    pub ops: u128,
}

/// The accounts of one kind of operation of one thread.
#[derive(Debug)]
pub struct Recorder {
    /// Operations that end from here on go the long way: end of the current tick or interval,
    /// whichever is first.
    edge: u64,
    /// So do those that began before: begin of the current tick, but not before the warm-up's end.
    floor: u64,
    last_end: u64,
    /// Earliest issue of the operations that were in flight at the end of the warm-up, else that
    /// end.
    measured_from: u64,
    /// Operations issued before it are in no latency.
    latency_from: u64,
    measured: bool,
    totals: [Totals; 2],
    interval: Counters,
    ticks: Ticks,
    latency: Histograms,
    interval_end: u64,
    interval_ns: u64,
    ramp_ns: u64,
    outlet: Outlet,
    /// For the end of the warm-up: latencies of the two phases never share a histogram.
    reserve: Option<Histograms>,
    failures: Failures,
    recent: Recent,
}

impl Recorder {
    /// Empty accounts. `ramp_ns` (0: no warm-up) is a multiple of `interval_ns`, which is not 0;
    /// at most `depth` operations are in flight at a time.
    #[must_use]
    pub fn new(interval_ns: u64, ramp_ns: u64, depth: u32, outlet: Outlet) -> Self {
        let latency = outlet.histograms();
        let mut recorder = Self {
            edge: 0,
            floor: 0,
            last_end: 0,
            measured_from: ramp_ns,
            latency_from: 0,
            measured: ramp_ns == 0,
            totals: [Totals::default(); 2],
            interval: Counters::default(),
            ticks: Ticks::new(),
            reserve: (ramp_ns > 0).then(|| outlet.histograms()),
            latency,
            interval_end: interval_ns,
            interval_ns,
            ramp_ns,
            outlet,
            failures: Failures::default(),
            recent: Recent::new(depth),
        };
        recorder.set_edges();
        recorder
    }

    /// From when on measured payload counts, for a thread that began before.
    #[must_use]
    pub fn measured_from(&self) -> u64 {
        self.measured_from
    }

    /// Counts an operation of `bytes`, issued at `start` and completed at `end`.
    #[inline(always)]
    pub fn completed(&mut self, start: u64, end: u64, bytes: u64) {
        let (start, end) = self.count(start, end, bytes);
        if start >= self.latency_from {
            self.latency.service.record(end - start);
        }
    }

    /// The same under an offered load, for an operation that arrived at `intended`.
    #[inline(never)]
    pub fn answered(&mut self, intended: u64, start: u64, end: u64, bytes: u64) {
        let (start, end) = self.count(start, end, bytes);
        if intended >= self.latency_from {
            self.latency.service.record(end - start);
            if let Some(response) = &mut self.latency.response {
                response.record(end.saturating_sub(intended));
            }
        }
    }

    #[inline(always)]
    fn count(&mut self, start: u64, end: u64, bytes: u64) -> (u64, u64) {
        let (start, end) = self.in_order(start, end);
        if end >= self.edge || start < self.floor {
            self.turn(start, end, bytes);
        } else {
            self.ticks.add_whole(bytes, end - start);
        }
        self.interval.bytes += bytes;
        self.interval.ops += 1;
        let totals = &mut self.totals[usize::from(self.measured)];
        totals.bytes += bytes;
        totals.ops += 1;
        self.recent.push(start, end, bytes);
        (start, end)
    }

    /// Counts an operation that failed.
    #[cold]
    pub fn failed(&mut self, start: u64, end: u64, failure: Failure, request: &Request) {
        let (start, end) = self.in_order(start, end);
        self.pass(end);
        self.interval.errors += 1;
        self.totals[usize::from(self.measured)].errors += 1;
        self.failures.add(failure, start, end, request);
    }

    /// Goes on to `end` without an operation.
    #[cold]
    pub fn pass(&mut self, end: u64) {
        if end >= self.interval_end {
            self.enter_interval(end);
            self.set_edges();
        }
    }

    /// Totals of the warm-up.
    #[must_use]
    pub fn ramp(&self) -> Totals {
        self.totals[0]
    }

    /// Totals of the phases after the warm-up.
    #[must_use]
    pub fn measured(&self) -> Totals {
        self.totals[1]
    }

    /// When the last operation completed or failed.
    #[must_use]
    pub fn last_end(&self) -> u64 {
        self.last_end
    }

    /// The crew's first thread has ended, at `first_end`, before the last operation did.
    #[inline]
    pub fn first_end_passed(&mut self, first_end: u64) {
        self.recent.keep(self.totals[1], first_end);
    }

    /// Payload of the measured phase up to `first_end`, ns after T0, the instant at which the
    /// crew's first thread ended. An operation on either edge counts by its share in time.
    #[must_use]
    pub fn up_to(&self, first_end: u64) -> Units {
        self.recent.up_to(first_end, self.ramp_ns, self.measured())
    }

    /// Failed operations by kind.
    #[must_use]
    pub fn failures(&self) -> &Failures {
        &self.failures
    }

    /// Entries that the collector did not fetch in time, which are missing in its sums.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.outlet.lost()
    }

    /// The interval of the last completion.
    #[must_use]
    pub fn interval(&self) -> u32 {
        self.interval.k
    }

    /// What is left, once the queues are empty and no operation will come. The ticks go to `take`.
    pub fn close(&mut self, take: impl FnMut(TickRun)) -> Rest<'_> {
        self.ticks.close(take);
        let counters = self.interval.take(true);
        let has_any = self.latency.service.count() > 0;
        Rest { counters, latency: has_any.then_some((self.interval.k, &self.latency)) }
    }

    /// Operations come in the order of their completions. Readings may be reordered by a few ns in
    /// the processor; time does not go back.
    #[inline]
    fn in_order(&mut self, start: u64, end: u64) -> (u64, u64) {
        let end = end.max(self.last_end);
        self.last_end = end;
        (start.min(end), end)
    }

    #[cold]
    fn turn(&mut self, start: u64, end: u64, bytes: u64) {
        if end >= self.interval_end {
            self.enter_interval(end);
        }
        if self.measured && start < self.ramp_ns {
            self.measured_from = self.measured_from.min(start);
            self.recent.straddles(start, end, bytes, self.ramp_ns);
        }
        self.ticks.spread(start, end, bytes, &mut self.outlet);
        self.set_edges();
    }

    fn set_edges(&mut self) {
        self.edge = self.interval_end.min(self.ticks.end_ns());
        let floor = self.ticks.begin_ns();
        self.floor = if self.measured { floor.max(self.ramp_ns) } else { floor };
    }

    fn enter_interval(&mut self, end: u64) {
        let leaves_ramp = !self.measured && end >= self.ramp_ns;
        let latency_handed = self.hand_latency(leaves_ramp);
        if let Some(entry) = self.interval.take(latency_handed) {
            self.outlet.counters(entry);
        }
        let k = end / self.interval_ns;
        self.interval.k = u32::try_from(k).unwrap_or(u32::MAX);
        self.interval_end = (k + 1).saturating_mul(self.interval_ns);
        if leaves_ramp {
            (self.measured, self.latency_from) = (true, self.ramp_ns);
        }
        self.outlet.pass(self.interval.k);
    }

    /// Hands the latencies over if there is another histogram to go on with.
    fn hand_latency(&mut self, leaves_ramp: bool) -> bool {
        if self.latency.service.count() == 0 {
            return true;
        }
        let reserve = || {
            if leaves_ramp { self.reserve.take() } else { None }
        };
        let Some(empty) = self.outlet.empty().or_else(reserve) else {
            return false;
        };
        let counts = std::mem::replace(&mut self.latency, empty);
        self.outlet.latency(FullLatency { k: self.interval.k, counts });
        true
    }
}

impl Counters {
    /// The entry to hand over, if there is anything in it; the same interval then goes on empty.
    fn take(&mut self, latency_handed: bool) -> Option<Self> {
        let entry = Self { latency_handed, ..*self };
        *self = Self { k: self.k, ..Self::default() };
        (entry.ops > 0 || entry.errors > 0).then_some(entry)
    }
}

impl Units {
    fn of(bytes: u64, ops: u64) -> Self {
        Self {
            bytes: u128::from(bytes) * u128::from(BYTE_UNITS),
            ops: u128::from(ops) * u128::from(OP_UNITS),
        }
    }

    /// Adds others.
    pub fn add(&mut self, other: Self) {
        let Self { bytes, ops } = other;
        self.bytes += bytes;
        self.ops += ops;
    }

    fn minus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(other.bytes),
            ops: self.ops.saturating_sub(other.ops),
        }
    }

    fn share(self, part_ns: u64, whole_ns: u64) -> Self {
        let (part, whole) = (u128::from(part_ns), u128::from(whole_ns));
        Self { bytes: self.bytes * part / whole, ops: self.ops * part / whole }
    }
}

#[cfg(test)]
mod tests;
