//! What an I/O thread counts of its operations: four accounts that are kept apart from each other,
//! so that any two of them can be compared.
//!
//! - plain *totals*, of the warm-up and of the measured phase;
//! - the *completion series*: each operation whole in the interval in which it completed;
//! - the *spread series*: each operation's bytes, count of one and service time, shared out over
//!   the ticks between its issue and its completion, in integers that lose nothing;
//! - *latencies*, in histograms that cover one interval each (or more when the collector is late).
//!
//! Times are ns after T0. Operations come one after the other. As long as one ends inside the
//! current tick and interval it costs one comparison and a few additions.

use std::fmt;

use iofleet_shared::{
    limits::TICK_NS,
    stats::{BYTE_UNITS, LatencyCounts, OP_UNITS},
};

use crate::engine::Failure;

pub use failures::{FailedKind, Failures};
pub use rings::{Counters, FullLatency, Inlet, Outlet, TickRun, rings};

use recent::Recent;

mod failures;
mod recent;
mod rings;

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
    /// The last tick.
    pub tick: Option<TickRun>,
    /// The last latencies, and the last interval that they cover.
    pub latency: Option<(u32, &'a LatencyCounts)>,
}

/// The current tick: what lies whole in it in plain numbers, and shares of operations that reach
/// beyond it in units.
#[derive(Debug, Default)]
struct Tick {
    index: u64,
    bytes: u64,
    ops: u64,
    busy_ns: u64,
    byte_units: u64,
    op_units: u64,
}

/// Bytes and count of operations, in units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Units {
    /// In 1/[`BYTE_UNITS`] byte.
    pub bytes: u128,
    /// In 1/[`OP_UNITS`].
    pub ops: u128,
}

/// The accounts of one thread.
#[derive(Debug)]
pub struct Recorder {
    /// End of the current tick or interval, whichever is first.
    edge: u64,
    last_end: u64,
    /// Issue of the operation that was in flight at the end of the warm-up, else that end.
    measured_from: u64,
    /// Operations issued before it are in no latency.
    latency_from: u64,
    measured: bool,
    totals: [Totals; 2],
    interval: Counters,
    tick: Tick,
    latency: LatencyCounts,
    interval_end: u64,
    interval_ns: u64,
    ramp_ns: u64,
    outlet: Outlet,
    /// For the end of the warm-up: latencies of the two phases never share a histogram.
    reserve: Option<LatencyCounts>,
    failures: Failures,
    recent: Recent,
}

impl Recorder {
    /// Empty accounts. `ramp_ns` (0: no warm-up) is a multiple of `interval_ns`, which is not 0.
    #[must_use]
    pub fn new(interval_ns: u64, ramp_ns: u64, outlet: Outlet) -> Self {
        Self {
            edge: interval_ns.min(TICK_NS),
            last_end: 0,
            measured_from: ramp_ns,
            latency_from: 0,
            measured: ramp_ns == 0,
            totals: [Totals::default(); 2],
            interval: Counters::default(),
            tick: Tick::default(),
            latency: LatencyCounts::new(),
            interval_end: interval_ns,
            interval_ns,
            ramp_ns,
            outlet,
            reserve: (ramp_ns > 0).then(LatencyCounts::new),
            failures: Failures::default(),
            recent: Recent::default(),
        }
    }

    /// From when on measured payload counts, for a thread that began before.
    #[must_use]
    pub fn measured_from(&self) -> u64 {
        self.measured_from
    }

    /// Counts an operation of `bytes`, issued at `start` and completed at `end`.
    #[inline]
    pub fn completed(&mut self, start: u64, end: u64, bytes: u64) {
        let (start, end) = self.in_order(start, end);
        if end >= self.edge {
            self.turn(start, end, bytes);
        } else {
            self.tick.bytes += bytes;
            self.tick.ops += 1;
            self.tick.busy_ns += end - start;
        }
        self.interval.bytes += bytes;
        self.interval.ops += 1;
        let totals = &mut self.totals[usize::from(self.measured)];
        totals.bytes += bytes;
        totals.ops += 1;
        self.recent.push(start, end, bytes);
        if start >= self.latency_from {
            self.latency.record(end - start);
        }
    }

    /// Counts an operation at `offset` that failed.
    #[cold]
    pub fn failed(&mut self, start: u64, end: u64, failure: Failure, offset: u64) {
        let (start, end) = self.in_order(start, end);
        self.pass(end);
        self.interval.errors += 1;
        self.totals[usize::from(self.measured)].errors += 1;
        self.failures.add(failure, start, end, offset);
    }

    /// Goes on to `end` without an operation.
    #[cold]
    pub fn pass(&mut self, end: u64) {
        if end >= self.interval_end {
            self.enter_interval(end);
            self.set_edge();
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

    /// The crew's first thread has ended before the last operation did.
    #[inline]
    pub fn first_end_passed(&mut self) {
        self.recent.keep(self.totals[1]);
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

    /// What is left, once the queues are empty and no operation will come.
    pub fn close(&mut self) -> Rest<'_> {
        let tick = self.tick.run();
        self.tick = Tick { index: self.tick.index, ..Tick::default() };
        let counters = self.interval.take(true);
        let latency = (self.latency.count() > 0).then_some((self.interval.k, &self.latency));
        Rest { counters, tick, latency }
    }

    /// Readings of one thread may be reordered by a few ns in the processor; time does not go back.
    #[inline]
    fn in_order(&mut self, start: u64, end: u64) -> (u64, u64) {
        let start = start.max(self.last_end);
        let end = end.max(start);
        self.last_end = end;
        (start, end)
    }

    #[cold]
    fn turn(&mut self, start: u64, end: u64, bytes: u64) {
        if end >= self.interval_end {
            let in_ramp = !self.measured;
            self.enter_interval(end);
            if in_ramp && self.measured && start < self.ramp_ns {
                self.measured_from = start;
                self.recent.straddles(start, end, bytes);
            }
        }
        self.spread(start, end, bytes);
        self.set_edge();
    }

    fn set_edge(&mut self) {
        self.edge = self.interval_end.min((self.tick.index + 1).saturating_mul(TICK_NS));
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
        if self.latency.count() == 0 {
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

    /// Shares an operation out over its ticks. Each gets its share rounded down, the last one what
    /// is left.
    fn spread(&mut self, start: u64, end: u64, bytes: u64) {
        // An operation that ends on an edge has no part in the tick that begins there.
        let last = if end > start { (end - 1) / TICK_NS } else { end / TICK_NS };
        let first = start / TICK_NS;
        if first >= last {
            self.enter_tick(last);
            self.tick.bytes += bytes;
            self.tick.ops += 1;
            self.tick.busy_ns += end - start;
            return;
        }
        let whole = Units::of(bytes, 1);
        let duration = end - start;
        let head_ns = (first + 1) * TICK_NS - start;
        let head = whole.share(head_ns, duration);
        self.enter_tick(first);
        self.tick.add(head, head_ns);
        let middle = whole.share(TICK_NS, duration);
        let length = last - first - 1;
        self.enter_tick(last);
        if length > 0 {
            self.outlet.ticks(TickRun {
                first: first + 1,
                length,
                bytes: narrow(middle.bytes),
                ops: narrow(middle.ops),
                busy_ns: TICK_NS,
            });
        }
        let middles = u128::from(length);
        let tail = Units {
            bytes: whole.bytes - head.bytes - middles * middle.bytes,
            ops: whole.ops - head.ops - middles * middle.ops,
        };
        self.tick.add(tail, duration - head_ns - length * TICK_NS);
    }

    fn enter_tick(&mut self, index: u64) {
        if self.tick.index != index {
            if let Some(run) = self.tick.run() {
                self.outlet.ticks(run);
            }
            self.tick = Tick { index, ..Tick::default() };
        }
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

impl Tick {
    fn add(&mut self, share: Units, busy_ns: u64) {
        self.byte_units += narrow(share.bytes);
        self.op_units += narrow(share.ops);
        self.busy_ns += busy_ns;
    }

    fn run(&self) -> Option<TickRun> {
        let run = TickRun {
            first: self.index,
            length: 1,
            bytes: self.bytes * BYTE_UNITS + self.byte_units,
            ops: self.ops * OP_UNITS + self.op_units,
            busy_ns: self.busy_ns,
        };
        (run.bytes > 0 || run.ops > 0 || run.busy_ns > 0).then_some(run)
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

/// Units of one operation fit: a block is far below 2^43 bytes.
fn narrow(units: u128) -> u64 {
    u64::try_from(units).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
