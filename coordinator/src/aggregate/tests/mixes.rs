//! Points of two kinds of operation: what each kind adds up to is what all of them are.

use proptest::prelude::*;

use super::*;
use crate::record::IntervalOp;

/// A point whose threads do the operations of both scripts, two at a time.
fn mixed(writes: &Script, reads: &Script, ramp_ns: u64) -> (PointPlan, PointOutcome) {
    let nodes = writes.iter().zip(reads);
    let both: Script = nodes
        .map(|(w, r)| w.iter().zip(r).map(|(w, r)| [w.clone(), r.clone()].concat()).collect())
        .collect();
    let mut plan = plan(&both);
    let share = |op| iofleet_shared::work::OpShare { op, weight: 1 };
    plan.spec.params.ops = vec![share(OpKind::Write), share(OpKind::Read)];
    (plan.spec.params.engine.depth, plan.spec.params.ramp_ns) = (2, ramp_ns);
    let mut outcome = outcome(&plan, &both);
    let parts = [(OpKind::Write, writes), (OpKind::Read, reads)];
    let parts = parts.map(|(op, script)| (op, fixture::outcome(&plan, script)));
    for (index, node) in &mut outcome.nodes {
        node.intervals.clear();
        let report = node.report.as_mut().unwrap();
        report.threads.iter_mut().for_each(|thread| thread.counts.clear());
        for (op, part) in &parts {
            let part = &part.nodes[index];
            node.ticks.insert(*op, part.ticks[&OpKind::Write].clone());
            node.intervals.extend(part.intervals.iter().cloned().map(|mut interval| {
                interval.op = Some(*op);
                interval
            }));
            let threads = &part.report.as_ref().unwrap().threads;
            for (thread, own) in report.threads.iter_mut().zip(threads) {
                thread.counts.push(OpCounts { op: *op, ..own.counts[0] });
            }
        }
        report.intervals = u32::try_from(node.intervals.len()).unwrap();
        report.ticks = node.ticks.values().map(|ticks| ticks.len() as u64).sum();
    }
    (plan, outcome)
}

fn record_of(plan: &PointPlan, outcome: &PointOutcome) -> PointRecord {
    assemble(plan, &FleetConfig::default(), &ready(outcome.nodes.len()), outcome).0
}

/// Node 1 writes 4 x 1000 bytes in 400 ms and reads 2 x 5000; node 2 writes nothing, reads from 40 ms
/// on 2 x 3000 bytes.
fn two_kinds() -> (PointPlan, PointOutcome) {
    let writes = vec![
        vec![ops_ms(&[(0, 100), (100, 200), (200, 300), (300, 400)], 1_000)],
        vec![Vec::new()],
    ];
    let reads = vec![
        vec![ops_ms(&[(0, 250), (250, 400)], 5_000)],
        vec![ops_ms(&[(40, 240), (240, 400)], 3_000)],
    ];
    mixed(&writes, &reads, 0)
}

#[test]
fn a_thread_without_a_kind_adds_nothing_to_it() {
    let (plan, outcome) = two_kinds();
    let record = record_of(&plan, &outcome);
    // The window is [40, 400].
    let [write, read] = &record.by_op[..] else { panic!("two kinds") };
    assert_eq!((write.op.as_str(), write.bytes, write.ops), ("write", 4_000, 4));
    assert_eq!(write.bandwidth.common, Some(3_600.0 / 0.36));
    assert_eq!(write.bandwidth.span, Some(4_000.0 / 0.4));
    assert_eq!((read.op.as_str(), read.bytes, read.ops), ("read", 16_000, 4));
    // 210 of 250 ms of the first read, and all others.
    assert_eq!(read.bandwidth.common, Some((4_200.0 + 5_000.0 + 6_000.0) / 0.36));
    assert_eq!(read.iops.span, Some(4.0 / 0.4));
    assert_eq!((record.bytes, record.ops), (20_000, 8));
    assert_eq!(record.bandwidth.common, Some((3_600.0 + 15_200.0) / 0.36));
    // At 200 ms one write completes, at 240 and 250 ms the first reads.
    let of = |by_op: &IntervalOp| (by_op.bytes, by_op.ops);
    let kinds: Vec<_> = record.intervals[2].by_op.iter().map(of).collect();
    assert_eq!(kinds, [(1_000, 1), (8_000, 2)]);
    assert_eq!(record.status, PointStatus::Ok, "{:?}", record.why);
    let histograms = assemble(&plan, &FleetConfig::default(), &ready(2), &outcome).1;
    let sets: Vec<_> = histograms.iter().map(|set| (set.op, set.latency.count)).collect();
    assert_eq!(sets, [(None, 8), (Some(OpKind::Write), 4), (Some(OpKind::Read), 4)]);
}

#[test]
fn each_kinds_accounts_must_agree() {
    let (plan, mut outcome) = two_kinds();
    // The sums of all kinds still agree.
    let counts = &mut thread(&mut outcome, 0).counts;
    (counts[0].ops, counts[1].ops) = (counts[0].ops + 1, counts[1].ops - 1);
    let record = record_of(&plan, &outcome);
    assert_eq!(record.status, PointStatus::Failed);
    let why = record.why.unwrap();
    assert!(why.contains("client01: write: 5 operations by threads, 4 by intervals"), "{why}");
    assert!(why.contains("client01: read: 1 operations by threads, 2 by intervals"), "{why}");
}

#[test]
fn operations_on_names_move_no_bytes_and_have_all_figures() {
    let mut script = even(2, 2, 60, 100);
    script.iter_mut().flatten().flatten().for_each(|op| op.bytes = Some(0));
    let record = assembled(&script, |plan, outcome| {
        plan.spec.params.ops[0].op = OpKind::Stat;
        for node in outcome.nodes.values_mut() {
            let ticks = node.ticks.remove(&OpKind::Write).unwrap();
            node.ticks.insert(OpKind::Stat, ticks);
            node.intervals.iter_mut().for_each(|interval| interval.op = Some(OpKind::Stat));
            let threads = &mut node.report.as_mut().unwrap().threads;
            threads.iter_mut().for_each(|thread| thread.counts[0].op = OpKind::Stat);
        }
    });
    assert_eq!((record.op.as_str(), record.status), ("stat", PointStatus::Ok));
    assert!(!record.moves_data() && record.marks.is_empty(), "{:?}", record.marks);
    assert_eq!(record.headline, Some(Headline::Common));
    assert_eq!((record.bandwidth.common, record.iops.common), (Some(0.0), Some(40.0)));
    assert!(record.steady.is_some_and(|steady| steady.steady));
    assert_eq!((record.params.fsync, record.params.fresh), (None, None));
    assert_eq!((record.verification, record.network.payload_share), (None, None));
}

fn any_ops() -> impl Strategy<Value = Vec<Op>> {
    let step = (0..20_000_000_i64, 1..90_000_000_i64, prop::option::weighted(0.95, 0..5_000_u64));
    (0..100_000_000_i64, prop::collection::vec(step, 0..10)).prop_map(|(begin, steps)| {
        let mut now = begin;
        let one = |(pause, service, bytes)| {
            let issue_ns = now + pause;
            now = issue_ns + service;
            Op { issue_ns, done_ns: now, bytes }
        };
        steps.into_iter().map(one).collect()
    })
}

/// Operations of two nodes with two threads each.
fn any_script() -> impl Strategy<Value = Script> {
    prop::collection::vec(prop::collection::vec(any_ops(), 2), 2)
}

fn total(values: impl Iterator<Item = Option<f64>>) -> f64 {
    values.map(|value| value.unwrap_or(0.0)).sum()
}

proptest! {
    #[test]
    fn kinds_add_up_to_all(
        writes in any_script(),
        reads in any_script(),
        ramp_ms in prop_oneof![Just(0_u64), Just(100)],
    ) {
        let (plan, outcome) = mixed(&writes, &reads, ramp_ms * MS);
        let record = record_of(&plan, &outcome);
        let sum = |part: fn(&ByOp) -> u64| record.by_op.iter().map(part).sum::<u64>();
        prop_assert_eq!(sum(|o| o.bytes), record.bytes);
        prop_assert_eq!(sum(|o| o.ops), record.ops);
        prop_assert_eq!(sum(|o| o.errors), record.errors);
        let near = |one: f64, other: Option<f64>| (one - other.unwrap_or(0.0)).abs() <= one.abs() * 1e-9;
        let rates = || record.by_op.iter();
        prop_assert!(near(total(rates().map(|o| o.bandwidth.common)), record.bandwidth.common));
        prop_assert!(near(total(rates().map(|o| o.bandwidth.span)), record.bandwidth.span));
        prop_assert!(near(total(rates().map(|o| o.iops.common)), record.iops.common));
        prop_assert!(near(total(rates().map(|o| o.iops.span)), record.iops.span));
        let latencies = rates().filter_map(|o| o.latency_ns.service).map(|l| l.count);
        let all = record.latency_ns.service.map_or(0, |latency| latency.count);
        prop_assert_eq!(latencies.sum::<u64>(), all);
        for interval in &record.intervals {
            let sum = |part: fn(&IntervalOp) -> u64| interval.by_op.iter().map(part).sum::<u64>();
            prop_assert_eq!(sum(|o| o.bytes), interval.bytes);
            prop_assert_eq!(sum(|o| o.ops), interval.ops);
            prop_assert_eq!(sum(|o| o.errors), interval.errors);
            let counted = interval.by_op.iter().filter_map(|o| o.latency_ns).map(|l| l.count);
            let all = interval.latency_ns.map_or(0, |latency| latency.count);
            prop_assert_eq!(counted.sum::<u64>(), all);
        }
        prop_assert!(!codes(&record).contains(&"sums"), "{:?}", record.why);
    }
}
