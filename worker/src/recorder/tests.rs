//! The three accounts against answers worked out by hand, and against each other.

use iofleet_shared::{limits::TICK_NS, stats::Tick, work::OpKind};
use proptest::prelude::*;

use super::*;
use crate::{collector::Series, engine::Call, fixture::MS};

mod overlapping;

const B: u64 = BYTE_UNITS;
const O: u64 = OP_UNITS;

/// A recorder and all that came out of it.
struct Bench {
    recorder: Recorder,
    inlet: Inlet,
    counters: Vec<Counters>,
    runs: Vec<TickRun>,
    latencies: Vec<(u32, u64)>,
}

impl Bench {
    fn new(interval_ns: u64, ramp_ns: u64) -> Self {
        Self::of_depth(interval_ns, ramp_ns, 1)
    }

    fn of_depth(interval_ns: u64, ramp_ns: u64, depth: u32) -> Self {
        let (outlet, inlet) = rings(false);
        let recorder = Recorder::new(interval_ns, ramp_ns, depth, outlet);
        Self { recorder, inlet, counters: vec![], runs: vec![], latencies: vec![] }
    }

    fn op(&mut self, start: u64, end: u64, bytes: u64) {
        self.recorder.completed(start, end, bytes);
        self.drain();
    }

    fn drain(&mut self) {
        self.counters.extend(std::iter::from_fn(|| self.inlet.counters()));
        self.runs.extend(std::iter::from_fn(|| self.inlet.ticks()));
        while let Some(full) = self.inlet.latency() {
            self.latencies.push((full.k, full.counts.service.count()));
            self.inlet.give_back(full.counts);
        }
    }

    fn close(&mut self) {
        let Rest { counters, latency } = self.recorder.close(|run| self.runs.push(run));
        self.counters.extend(counters);
        self.latencies.extend(latency.map(|(k, counts)| (k, counts.service.count())));
    }

    /// The ticks with anything in them, by number.
    fn ticks(&self) -> Vec<(u64, Tick)> {
        let mut series = Series::new(OpKind::Read, 1);
        self.runs.iter().for_each(|run| series.ticks(0, *run));
        let ticks = (0..).zip(series.into_ticks());
        ticks.filter(|(_, tick)| *tick != Tick::default()).collect()
    }
}

fn tick(number: u64, bytes: u64, ops: u64, busy_ns: u64) -> (u64, Tick) {
    (number, Tick { bytes, ops, busy_ns })
}

/// The first failure's place.
fn request() -> Request {
    Request { file: 2, offset: 4_096, ..Request::NOTHING }
}

fn entry(k: u32, bytes: u64, ops: u64, errors: u64) -> Counters {
    Counters { k, bytes, ops, errors, latency_handed: true }
}

#[test]
fn an_operation_across_both_edges_of_a_tick_is_shared_by_time() {
    let mut bench = Bench::new(1_000 * MS, 0);
    bench.op(MS, 2 * MS, 1_000);
    // From 8 to 28 ms: 2 ms in tick 0, 10 in tick 1, 8 in tick 2.
    bench.op(8 * MS, 28 * MS, 1_000);
    bench.op(28 * MS, 29 * MS, 1_000);
    bench.close();
    assert_eq!(
        bench.ticks(),
        [
            tick(0, 1_000 * B + 100 * B, O + O / 10, 3 * MS),
            tick(1, 500 * B, O / 2, 10 * MS),
            // 2^32 is no multiple of ten: the last share takes what rounding left.
            tick(2, 400 * B + 1_000 * B, O - O / 10 - O / 2 + O, 9 * MS),
        ]
    );
    assert_eq!(bench.counters, [entry(0, 3_000, 3, 0)]);
}

#[test]
fn an_operation_that_ends_on_an_edge_stays_before_it() {
    let mut bench = Bench::new(20 * MS, 0);
    bench.op(0, 10 * MS, 100);
    bench.op(10 * MS, 20 * MS, 100);
    bench.op(20 * MS, 20 * MS, 7);
    bench.close();
    assert_eq!(
        bench.ticks(),
        [tick(0, 100 * B, O, 10 * MS), tick(1, 100 * B, O, 10 * MS), tick(2, 7 * B, O, 0),]
    );
    // Interval k is [20 k, 20 (k + 1)): what completes at 20 ms belongs to the second.
    assert_eq!(bench.counters, [entry(0, 100, 1, 0), entry(1, 107, 2, 0)]);
    assert_eq!(bench.latencies, [(0, 1), (1, 2)]);
}

#[test]
fn an_operation_over_three_intervals_is_whole_in_its_last() {
    // Intervals of 15 ms have edges where ticks have none.
    let mut bench = Bench::new(15 * MS, 0);
    bench.op(5 * MS, 6 * MS, 10);
    bench.op(6 * MS, 46 * MS, 400);
    assert_eq!(bench.inlet.passed(), 3);
    bench.op(46 * MS, 47 * MS, 10);
    bench.close();
    assert_eq!(bench.counters, [entry(0, 10, 1, 0), entry(3, 410, 2, 0)]);
    assert_eq!(
        bench.ticks(),
        [
            tick(0, 10 * B + 40 * B, O + O / 10, 5 * MS),
            tick(1, 100 * B, O / 4, 10 * MS),
            tick(2, 100 * B, O / 4, 10 * MS),
            tick(3, 100 * B, O / 4, 10 * MS),
            tick(4, 60 * B + 10 * B, O - O / 10 - 3 * (O / 4) + O, 7 * MS),
        ]
    );
}

#[test]
fn the_warm_up_keeps_to_itself() {
    let mut bench = Bench::new(10 * MS, 20 * MS);
    bench.op(0, 5 * MS, 1);
    bench.op(5 * MS, 19 * MS, 2);
    // Issued during the warm-up, completed after it: bytes, ops, series, but no latency.
    bench.op(19 * MS, 21 * MS, 4);
    bench.op(21 * MS, 22 * MS, 8);
    bench.recorder.failed(22 * MS, 31 * MS, Failure { call: Call::Read, errno: 5 }, &request());
    bench.drain();
    bench.close();
    assert_eq!(bench.recorder.ramp(), Totals { bytes: 3, ops: 2, errors: 0 });
    assert_eq!(bench.recorder.measured(), Totals { bytes: 12, ops: 2, errors: 1 });
    assert_eq!(
        bench.counters,
        [entry(0, 1, 1, 0), entry(1, 2, 1, 0), entry(2, 12, 2, 0), entry(3, 0, 0, 1)]
    );
    assert_eq!(bench.latencies, [(0, 1), (1, 1), (2, 1)]);
    // The failed operation has a latency of its own, and no service time.
    let failed = bench.recorder.failures().kinds()[0];
    assert_eq!((failed.sum_ns, failed.first_offset, failed.first_ns), (9 * MS, 4_096, 31 * MS));
    assert_eq!(bench.runs.iter().map(|run| run.busy_ns * run.length).sum::<u64>(), 22 * MS);
}

#[test]
fn a_late_thread_leaves_nothing_before_its_first_operation() {
    let mut bench = Bench::new(10 * MS, 0);
    bench.op(95 * MS, 96 * MS, 5);
    bench.close();
    assert_eq!(bench.counters, [entry(9, 5, 1, 0)]);
    assert_eq!(bench.ticks(), [tick(9, 5 * B, O, MS)]);
}

#[test]
fn latencies_wait_for_a_collector_that_is_late() {
    let mut bench = Bench::new(10 * MS, 50 * MS);
    // Nothing is fetched: two spare histograms leave, then one covers all until the warm-up ends.
    for k in 0..7 {
        bench.recorder.completed(k * 10 * MS, k * 10 * MS + MS, 1);
    }
    bench.drain();
    bench.close();
    let handed: Vec<bool> = bench.counters.iter().map(|entry| entry.latency_handed).collect();
    assert_eq!(handed, [true, true, false, false, true, false, true]);
    // The end of the warm-up is never covered: for it there is a reserve.
    assert_eq!(bench.latencies, [(0, 1), (1, 1), (4, 3), (6, 2)]);
}

#[test]
fn a_full_queue_is_told_and_not_waited_for() {
    let mut bench = Bench::new(10 * MS, 0);
    for k in 0..600 {
        bench.recorder.completed(k * 10 * MS, k * 10 * MS + MS, 1);
    }
    // 599 of 600 intervals were handed over to a queue of 256. Of the ticks the last 64 and the next
    // have places of their own, so that 537 were handed over to a queue of 514.
    assert_eq!(bench.recorder.lost(), (599 - 256) + (537 - 514));
}

#[test]
fn stamps_out_of_order_lose_nothing() {
    let mut bench = Bench::new(10 * MS, 0);
    bench.op(0, 10 * MS + 5, 1);
    // A begin before the last end, and an end before the begin.
    bench.op(10 * MS, 10 * MS + 8, 1);
    bench.op(10 * MS + 8, 10 * MS + 6, 1);
    bench.close();
    assert_eq!(bench.runs.iter().map(|run| run.ops * run.length).sum::<u64>(), 3 * O);
    // 10 ms and 5 ns, 8 ns beside them, and nothing.
    assert_eq!(bench.runs.iter().map(|run| run.busy_ns).sum::<u64>(), 10 * MS + 13);
}

#[derive(Debug, Clone, Copy)]
struct Op {
    idle: u64,
    takes: u64,
    bytes: u64,
    fails: bool,
}

fn any_op() -> impl Strategy<Value = Op> {
    let idle = prop_oneof![Just(0), 0..1_000_u64, 0..100 * MS];
    let takes = prop_oneof![Just(0), 0..1_000_u64, 0..30 * MS, 0..3_000 * MS];
    let bytes = prop_oneof![1..5_000_u64, Just(1 << 20), Just(1 << 30)];
    (idle, takes, bytes, proptest::bool::weighted(0.1)).prop_map(|(idle, takes, bytes, fails)| Op {
        idle,
        takes,
        bytes,
        fails,
    })
}

proptest! {
    #[test]
    fn nothing_is_lost_on_any_way(
        ops in proptest::collection::vec(any_op(), 0..60),
        interval_ns in 10 * MS..40 * MS,
        ramp in 0..5_u64,
        fetch_every in 1..4_usize,
    ) {
        let mut bench = Bench::new(interval_ns, ramp * interval_ns);
        let (mut now, mut busy, mut bytes, mut done, mut late) = (0, 0, 0, 0, 0);
        for (at, op) in ops.iter().enumerate() {
            let (start, end) = (now + op.idle, now + op.idle + op.takes);
            now = end;
            if op.fails {
                bench.recorder.failed(start, end, Failure { call: Call::Read, errno: 5 }, &request());
            } else {
                bench.recorder.completed(start, end, op.bytes);
                (busy, bytes, done) = (busy + op.takes, bytes + op.bytes, done + 1);
                let ramp_ns = ramp * interval_ns;
                late += u64::from(start < ramp_ns && end >= ramp_ns);
            }
            if at % fetch_every == 0 {
                bench.drain();
            }
        }
        bench.drain();
        bench.close();
        let sum = |part: fn(&TickRun) -> u64| -> u128 {
            bench.runs.iter().map(|run| u128::from(part(run)) * u128::from(run.length)).sum()
        };
        prop_assert_eq!(sum(|run| run.bytes), u128::from(bytes) * u128::from(B));
        prop_assert_eq!(sum(|run| run.ops), u128::from(done) * u128::from(O));
        prop_assert_eq!(sum(|run| run.busy_ns), u128::from(busy));
        // No tick is busier than it is long, and each is where the one before ended or later.
        let mut series = Series::new(OpKind::Read, 1);
        for run in &bench.runs {
            prop_assert!(run.length == 1 || run.busy_ns == TICK_NS);
            series.ticks(0, *run);
        }
        prop_assert_eq!(bench.latencies.iter().map(|(_, count)| count).sum::<u64>(), done - late);
        prop_assert!(bench.latencies.is_sorted_by_key(|(k, _)| *k));
        bench.counters.iter().for_each(|entry| series.counters(0, *entry));
        let mut totals = bench.recorder.ramp();
        totals.add(bench.recorder.measured());
        prop_assert_eq!(series.differs_from(0, totals), None);
        while series.next_at_end().is_some() {}
        prop_assert_eq!(series.node_differs_from(totals), None);
        let ticks = series.into_ticks();
        prop_assert!(ticks.iter().all(|tick| tick.busy_ns <= TICK_NS));
        prop_assert_eq!(crate::collector::sums_of(&ticks), Some((bytes, done)));
    }
}
