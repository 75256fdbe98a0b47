//! Several operations in flight: they come in the order of their ends and begin anywhere before.

use super::*;

/// Operations as begin, end and bytes, in the order of their ends, of which at most `depth` are in
/// flight at a time.
fn any_flight() -> impl Strategy<Value = (u32, Vec<(u64, u64, u64)>)> {
    let takes = prop_oneof![0..1_000_u64, 0..20 * MS, 0..200 * MS, 0..2_000 * MS];
    let bytes = prop_oneof![1..5_000_u64, Just(1 << 20), Just(1 << 30)];
    let idle = prop_oneof![Just(0), 0..5 * MS, 0..300 * MS];
    let slot = proptest::collection::vec((idle, takes, bytes), 0..15);
    proptest::collection::vec(slot, 1..9).prop_map(|slots| {
        let depth = u32::try_from(slots.len()).unwrap();
        let mut ops = Vec::new();
        for slot in slots {
            let mut now = 0;
            for (idle, takes, bytes) in slot {
                ops.push((now + idle, now + idle + takes, bytes));
                now += idle + takes;
            }
        }
        ops.sort_by_key(|(_, end, _)| *end);
        (depth, ops)
    })
}

/// Each tick's share of each operation by the time that it lies in it, rounded down; the last tick
/// has what is left.
fn plainly(ops: &[(u64, u64, u64)]) -> Vec<Tick> {
    let mut ticks = Vec::new();
    for &(start, end, bytes) in ops {
        let last = if end > start { (end - 1) / TICK_NS } else { end / TICK_NS };
        let (mut bytes_left, mut ops_left) = (u128::from(bytes) * u128::from(B), u128::from(O));
        let whole = (bytes_left, ops_left);
        for number in start / TICK_NS..=last {
            let (from, to) = (number * TICK_NS, (number + 1) * TICK_NS);
            let inside = end.min(to) - start.max(from);
            let share = |of: u128| of * u128::from(inside) / u128::from((end - start).max(1));
            let (bytes, ops) = match number == last {
                true => (bytes_left, ops_left),
                false => (share(whole.0), share(whole.1)),
            };
            (bytes_left, ops_left) = (bytes_left - bytes, ops_left - ops);
            let at = usize::try_from(number).unwrap();
            if ticks.len() <= at {
                ticks.resize(at + 1, Tick::default());
            }
            let narrow = |of: u128| u64::try_from(of).unwrap();
            ticks[at].merge(Tick { bytes: narrow(bytes), ops: narrow(ops), busy_ns: inside });
        }
    }
    ticks
}

proptest! {
    #[test]
    fn every_tick_is_the_plainest_share(
        (depth, ops) in any_flight(),
        ramp in 0..20_u64,
        fetch_every in 1..4_usize,
    ) {
        let mut bench = Bench::of_depth(20 * MS, ramp * 20 * MS, depth);
        for (at, (start, end, bytes)) in ops.iter().enumerate() {
            bench.recorder.completed(*start, *end, *bytes);
            if at % fetch_every == 0 {
                bench.drain();
            }
        }
        bench.drain();
        bench.close();
        prop_assert_eq!(bench.recorder.lost(), 0);
        let mut series = Series::new(OpKind::Read, 1);
        bench.runs.iter().for_each(|run| series.ticks(0, *run));
        bench.counters.iter().for_each(|entry| series.counters(0, *entry));
        let mut totals = bench.recorder.ramp();
        totals.add(bench.recorder.measured());
        let bytes: u64 = ops.iter().map(|(_, _, bytes)| bytes).sum();
        prop_assert_eq!(totals, Totals { bytes, ops: ops.len() as u64, errors: 0 });
        prop_assert_eq!(series.differs_from(0, totals), None);
        let ticks = series.into_ticks();
        prop_assert!(ticks.iter().all(|tick| tick.busy_ns <= u64::from(depth) * TICK_NS));
        prop_assert_eq!(ticks, plainly(&ops));
        // The warm-up: what was under way at its end counts from its own issue on.
        let ramp_ns = ramp * 20 * MS;
        let straddling = || ops.iter().filter(|op| op.0 < ramp_ns && op.1 >= ramp_ns);
        let from = straddling().map(|op| op.0).min().unwrap_or(ramp_ns);
        prop_assert_eq!(bench.recorder.measured_from(), from);
        let latencies: u64 = bench.latencies.iter().map(|(_, count)| count).sum();
        prop_assert_eq!(latencies, (ops.len() - straddling().count()) as u64);
    }
}

#[test]
fn operations_side_by_side_add_up() {
    let mut bench = Bench::of_depth(100 * MS, 0, 3);
    // Three in flight, which end in another order than they began.
    bench.op(10 * MS, 18 * MS, 80);
    bench.op(5 * MS, 25 * MS, 200);
    bench.op(0, 30 * MS, 300);
    bench.close();
    let thirds = O - 2 * (O / 3);
    assert_eq!(
        bench.ticks(),
        [
            tick(0, 50 * B + 100 * B, O / 4 + O / 3, 15 * MS),
            tick(1, 80 * B + 100 * B + 100 * B, O + O / 2 + O / 3, 28 * MS),
            tick(2, 50 * B + 100 * B, O / 4 + thirds, 15 * MS),
        ]
    );
}

#[test]
fn measuring_begins_with_the_earliest_of_several_that_straddle() {
    let mut bench = Bench::of_depth(10 * MS, 20 * MS, 3);
    bench.op(0, 15 * MS, 1);
    assert_eq!(bench.recorder.measured_from(), 20 * MS);
    // All of these were in flight when the warm-up ended; the second began first.
    bench.op(18 * MS, 21 * MS, 2);
    bench.op(12 * MS, 22 * MS, 4);
    bench.op(16 * MS, 43 * MS, 8);
    bench.op(22 * MS, 44 * MS, 16);
    bench.close();
    assert_eq!(bench.recorder.measured_from(), 12 * MS);
    assert_eq!(bench.recorder.ramp(), Totals { bytes: 1, ops: 1, errors: 0 });
    assert_eq!(bench.recorder.measured(), Totals { bytes: 30, ops: 4, errors: 0 });
    // One of the warm-up, and the one that was issued after it.
    assert_eq!(bench.latencies, [(1, 1), (4, 1)]);
    // Up to 32 ms: 1/3 and 2/10 and 12/27 of those across the edge, 10/22 of the last.
    let Units { bytes, .. } = bench.recorder.up_to(32 * MS);
    let expected = 2.0 / 3.0 + 0.8 + 8.0 * 12.0 / 27.0 + 16.0 * 10.0 / 22.0;
    assert!((bytes as f64 / B as f64 - expected).abs() < 1e-4, "{bytes}");
}

#[test]
fn all_of_a_deep_queue_that_stood_still_comes_through() {
    // All in flight stand still for a second, far beyond the ticks that are kept, and complete at
    // once; nobody fetches anything meanwhile.
    let depth = 1_024;
    let (outlet, inlet) = rings_of_depth(depth, false);
    let mut bench = Bench::of_depth(100 * MS, 0, 1);
    (bench.recorder, bench.inlet) = (Recorder::new(100 * MS, 0, depth, outlet), inlet);
    for slot in 0..u64::from(depth) {
        bench.recorder.completed(slot * 1_000, 1_500 * MS, 4_096);
    }
    assert_eq!(bench.recorder.lost(), 0);
    bench.drain();
    bench.close();
    assert_eq!(bench.ticks().len(), 150);
}
