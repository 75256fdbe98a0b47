//! The merge of what threads hand over into a node's two series (pure).
//!
//! Every entry is added twice: to the sums of its thread, which are compared with the thread's own
//! totals at the end, and to the node's series. Intervals leave in order, once every thread has
//! passed them.

use std::collections::VecDeque;

use iofleet_shared::{
    stats::{BYTE_UNITS, Latency, NodeInterval, OP_UNITS, Tick},
    work::OpKind,
};

use crate::recorder::{Counters, Histograms, TickRun, Totals};

/// Intervals whose latencies are kept dense. A thread inside a long operation holds back all
/// intervals since; those further back take little memory.
const DENSE_MAX: usize = 8;

/// The series of one kind of operation on a node, in the making.
#[derive(Debug)]
pub struct Series {
    op: OpKind,
    threads: Vec<ThreadSums>,
    pending: VecDeque<Pending>,
    /// The first interval that has not left.
    next_k: u32,
    /// Threads whose latencies of the last interval that left are still to come.
    open: u32,
    /// Latencies of intervals that left without them, and how many intervals those are.
    carried: (Latencies, u32),
    left: Totals,
    /// Each tick less the one before.
    steps: Vec<Tick>,
    pool: Vec<Histograms>,
    late: u64,
}

#[derive(Debug, Default, Clone)]
struct ThreadSums {
    counters: Totals,
    tick_bytes: u128,
    tick_ops: u128,
    /// Latencies of an interval that was handed over are still to come.
    open: bool,
}

#[derive(Debug, Default)]
struct Pending {
    totals: Totals,
    dense: Option<Histograms>,
    sparse: Latencies,
    opened: u32,
    closed: u32,
}

/// Of service and, under an offered load, of response.
#[derive(Debug, Default)]
struct Latencies {
    service: Latency,
    response: Latency,
}

impl Latencies {
    fn merge(&mut self, other: &Self) {
        self.service.merge(&other.service);
        self.response.merge(&other.response);
    }

    fn add(&mut self, counts: &Histograms) {
        self.service.merge(&counts.service.to_latency());
        if let Some(response) = &counts.response {
            self.response.merge(&response.to_latency());
        }
    }
}

impl Series {
    /// Empty series of one kind of operation on a node with this many threads.
    #[must_use]
    pub fn new(op: OpKind, threads: usize) -> Self {
        Self {
            op,
            threads: vec![ThreadSums::default(); threads],
            pending: VecDeque::new(),
            next_k: 0,
            open: 0,
            carried: (Latencies::default(), 0),
            left: Totals::default(),
            steps: Vec::new(),
            pool: Vec::new(),
            late: 0,
        }
    }

    /// The kind of operation.
    #[must_use]
    pub fn op(&self) -> OpKind {
        self.op
    }

    /// Adds an interval of a thread.
    pub fn counters(&mut self, thread: usize, entry: Counters) {
        let Counters { k, bytes, ops, errors, latency_handed } = entry;
        let added = Totals { bytes, ops, errors };
        let sums = &mut self.threads[thread];
        sums.counters.add(added);
        let opens = !latency_handed && !sums.open;
        let closes = latency_handed && sums.open;
        sums.open = !latency_handed;
        let pending = self.pending(k);
        pending.totals.add(added);
        pending.opened += u32::from(opens);
        pending.closed += u32::from(closes);
    }

    /// Adds latencies that end with interval `k`.
    pub fn latency(&mut self, k: u32, counts: &Histograms) {
        self.pending(k);
        let at = self.index_of(k);
        let is_old = at + DENSE_MAX < self.pending.len();
        let pool = &mut self.pool;
        let pending = &mut self.pending[at];
        if is_old {
            pending.sparse.add(counts);
        } else {
            pending
                .dense
                .get_or_insert_with(|| pool.pop().unwrap_or_else(|| counts.like()))
                .merge(counts);
        }
    }

    /// Adds ticks of a thread.
    pub fn ticks(&mut self, thread: usize, run: TickRun) {
        let TickRun { first, length, bytes, ops, busy_ns } = run;
        let sums = &mut self.threads[thread];
        sums.tick_bytes += u128::from(bytes) * u128::from(length);
        sums.tick_ops += u128::from(ops) * u128::from(length);
        let first = usize::try_from(first).unwrap_or(usize::MAX);
        let end = first.saturating_add(usize::try_from(length).unwrap_or(usize::MAX));
        if self.steps.len() <= end {
            self.steps.resize(end + 1, Tick::default());
        }
        self.steps[first].step(bytes, ops, busy_ns);
        self.steps[end].step(bytes.wrapping_neg(), ops.wrapping_neg(), busy_ns.wrapping_neg());
    }

    /// Makes sure that interval `k` leaves, with or without operations in it.
    pub fn reach(&mut self, k: u32) {
        if k >= self.next_k {
            self.pending(k);
        }
    }

    /// The next interval, if it is before `passed`, the first one that some thread is still in.
    pub fn next_before(&mut self, passed: u32) -> Option<NodeInterval> {
        (self.next_k < passed).then(|| self.leave(false))
    }

    /// The next of the intervals that are left when nothing further will be added.
    pub fn next_at_end(&mut self) -> Option<NodeInterval> {
        let is_last = self.pending.len() == 1;
        (!self.pending.is_empty()).then(|| self.leave(is_last))
    }

    /// Intervals that have left.
    #[must_use]
    pub fn intervals(&self) -> u32 {
        self.next_k
    }

    /// The spread series from tick 0 to the last one with anything in it.
    #[must_use]
    pub fn into_ticks(mut self) -> Vec<Tick> {
        let mut sum = Tick::default();
        for step in &mut self.steps {
            sum.step(step.bytes, step.ops, step.busy_ns);
            *step = sum;
        }
        let used = self.steps.iter().rposition(|tick| *tick != Tick::default());
        self.steps.truncate(used.map_or(0, |last| last + 1));
        self.steps
    }

    /// Compares what a thread handed over with its own totals; says what differs.
    #[must_use]
    pub fn differs_from(&self, thread: usize, totals: Totals) -> Option<String> {
        let ThreadSums { counters, tick_bytes, tick_ops, open: _ } = &self.threads[thread];
        if *counters != totals {
            return Some(format!("its intervals sum to {counters}, its own totals are {totals}"));
        }
        let spread = u128::from(totals.bytes) * u128::from(BYTE_UNITS);
        if *tick_bytes != spread {
            return Some(format!(
                "its ticks sum to {tick_bytes} units of bytes, its own totals are {spread}"
            ));
        }
        let spread = u128::from(totals.ops) * u128::from(OP_UNITS);
        (*tick_ops != spread).then(|| {
            format!("its ticks sum to {tick_ops} units of operations, its own totals are {spread}")
        })
    }

    /// Compares the intervals that left with the totals of all threads; says what differs.
    #[must_use]
    pub fn node_differs_from(&self, totals: Totals) -> Option<String> {
        if self.late > 0 {
            return Some(format!("{} entries came after their interval had left", self.late));
        }
        (self.left != totals).then(|| {
            format!("the node's intervals sum to {}, its threads' totals are {totals}", self.left)
        })
    }

    fn index_of(&self, k: u32) -> usize {
        k.saturating_sub(self.next_k) as usize
    }

    fn pending(&mut self, k: u32) -> &mut Pending {
        if k < self.next_k {
            // Against the order of the queues; it is kept, and makes the point fail.
            self.late += 1;
        }
        let at = self.index_of(k);
        while self.pending.len() <= at {
            self.pending.push_back(Pending::default());
            if let Some(old) = self.pending.len().checked_sub(DENSE_MAX + 1) {
                let pending = &mut self.pending[old];
                if let Some(mut dense) = pending.dense.take() {
                    pending.sparse.add(&dense);
                    dense.clear();
                    self.pool.push(dense);
                }
            }
        }
        &mut self.pending[at]
    }

    fn leave(&mut self, is_last: bool) -> NodeInterval {
        let Pending { totals, dense, sparse, opened, closed } =
            self.pending.pop_front().unwrap_or_default();
        let k = self.next_k;
        self.next_k += 1;
        self.left.add(totals);
        self.open = (self.open + opened).saturating_sub(closed);
        let (carried, intervals) = &mut self.carried;
        carried.merge(&sparse);
        if let Some(mut dense) = dense {
            carried.add(&dense);
            dense.clear();
            self.pool.push(dense);
        }
        *intervals += 1;
        let Totals { bytes, ops, errors } = totals;
        let (latencies, latency_intervals) = if self.open == 0 || is_last {
            std::mem::take(&mut self.carried)
        } else {
            (Latencies::default(), 0)
        };
        let Latencies { service: latency, response } = latencies;
        let op = Some(self.op);
        NodeInterval { k, op, bytes, ops, errors, latency, response, latency_intervals }
    }
}

/// Sums of a spread series in whole bytes and operations; none where it does not come out even.
#[must_use]
pub fn sums_of(ticks: &[Tick]) -> Option<(u64, u64)> {
    let sum = |part: fn(&Tick) -> u64, units: u64| {
        let sum: u128 = ticks.iter().map(|tick| u128::from(part(tick))).sum();
        let units = u128::from(units);
        sum.is_multiple_of(units).then(|| u64::try_from(sum / units).ok()).flatten()
    };
    Some((sum(|tick| tick.bytes, BYTE_UNITS)?, sum(|tick| tick.ops, OP_UNITS)?))
}

/// Adds a step of a difference array; the sum of steps is never negative, single ones are.
trait Step {
    fn step(&mut self, bytes: u64, ops: u64, busy_ns: u64);
}

impl Step for Tick {
    fn step(&mut self, bytes: u64, ops: u64, busy_ns: u64) {
        self.bytes = self.bytes.wrapping_add(bytes);
        self.ops = self.ops.wrapping_add(ops);
        self.busy_ns = self.busy_ns.wrapping_add(busy_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(k: u32, ops: u64, latency_handed: bool) -> Counters {
        Counters { k, bytes: ops * 10, ops, errors: 0, latency_handed }
    }

    fn counts(values: &[u64]) -> Histograms {
        let mut counts = Histograms::new(false);
        values.iter().for_each(|value| counts.service.record(*value));
        counts
    }

    #[test]
    fn intervals_leave_in_order_and_gaps_are_filled() {
        let mut series = Series::new(OpKind::Read, 2);
        series.counters(0, entry(2, 5, true));
        series.latency(2, &counts(&[7]));
        series.counters(1, entry(0, 1, true));
        assert_eq!(series.next_before(0), None);
        let left: Vec<_> = std::iter::from_fn(|| series.next_before(2)).collect();
        assert_eq!(left.iter().map(|i| (i.k, i.ops)).collect::<Vec<_>>(), [(0, 1), (1, 0)]);
        series.reach(3);
        let left: Vec<_> = std::iter::from_fn(|| series.next_at_end()).collect();
        assert_eq!(left.iter().map(|i| (i.k, i.bytes)).collect::<Vec<_>>(), [(2, 50), (3, 0)]);
        assert_eq!((left[0].latency.max_ns, left[0].latency_intervals), (7, 1));
        assert_eq!(series.intervals(), 4);
        assert_eq!(series.node_differs_from(Totals { bytes: 60, ops: 6, errors: 0 }), None);
        assert!(series.node_differs_from(Totals { bytes: 61, ops: 6, errors: 0 }).is_some());
        assert_eq!(
            series.differs_from(0, Totals { bytes: 50, ops: 4, errors: 0 }).unwrap(),
            "its intervals sum to 50 bytes, 5 operations, 0 errors, its own totals are 50 bytes, 4 operations, 0 errors"
        );
    }

    #[test]
    fn latencies_that_come_late_carry_those_of_the_intervals_before() {
        let mut series = Series::new(OpKind::Read, 2);
        // Thread 0 had no empty histogram when it left interval 0 and 1.
        series.counters(0, entry(0, 1, false));
        series.counters(0, entry(1, 1, false));
        series.counters(0, entry(2, 1, true));
        series.latency(2, &counts(&[1, 2, 3]));
        series.counters(0, entry(3, 1, true));
        series.latency(3, &counts(&[4]));
        for k in 0..4 {
            series.counters(1, entry(k, 1, true));
            series.latency(k, &counts(&[10 + u64::from(k)]));
        }
        let left: Vec<_> = std::iter::from_fn(|| series.next_before(4)).collect();
        let shape: Vec<_> = left.iter().map(|i| (i.latency.count, i.latency_intervals)).collect();
        assert_eq!(shape, [(0, 0), (0, 0), (6, 3), (2, 1)]);
        assert_eq!((left[2].latency.min_ns, left[2].latency.max_ns), (1, 12));
    }

    #[test]
    fn held_back_intervals_keep_their_latencies() {
        let mut series = Series::new(OpKind::Read, 1);
        for k in 0..30 {
            series.counters(0, entry(k, 1, true));
            series.latency(k, &counts(&[u64::from(k) + 1]));
        }
        // Late additions to an old interval and to a recent one.
        series.latency(3, &counts(&[1_000]));
        series.latency(28, &counts(&[2_000]));
        let left: Vec<_> = std::iter::from_fn(|| series.next_at_end()).collect();
        assert_eq!(left.len(), 30);
        for interval in &left {
            let added = u64::from([3, 28].contains(&interval.k));
            assert_eq!(interval.latency.count, 1 + added);
            assert_eq!(interval.latency.min_ns, u64::from(interval.k) + 1);
        }
    }

    #[test]
    fn ticks_are_the_sums_of_runs() {
        let mut series = Series::new(OpKind::Read, 2);
        series.ticks(0, TickRun { first: 1, length: 3, bytes: 5, ops: 7, busy_ns: 9 });
        series.ticks(1, TickRun { first: 2, length: 1, bytes: 100, ops: 200, busy_ns: 300 });
        let tick = |bytes, ops, busy_ns| Tick { bytes, ops, busy_ns };
        assert_eq!(
            series.into_ticks(),
            [tick(0, 0, 0), tick(5, 7, 9), tick(105, 207, 309), tick(5, 7, 9)]
        );
        assert!(Series::new(OpKind::Read, 1).into_ticks().is_empty());
        let half = Tick { bytes: BYTE_UNITS / 2, ops: OP_UNITS / 2, busy_ns: 0 };
        assert_eq!((sums_of(&[half, half]), sums_of(&[half])), (Some((1, 1)), None));
    }

    #[test]
    fn an_entry_of_an_interval_that_left_fails_the_point() {
        let mut series = Series::new(OpKind::Read, 1);
        assert!(series.next_before(1).is_some());
        series.counters(0, entry(0, 1, true));
        while series.next_at_end().is_some() {}
        assert!(series.node_differs_from(Totals { bytes: 10, ops: 1, errors: 0 }).is_some());
    }
}
