//! Whole campaigns down to their records, with figures worked out by hand: what workers deliver by
//! kind of operation, with queues, under load and with damage, arrives in the record to the byte.

use iofleet_coordinator::{
    aggregate,
    events::{NodeReady, RunEvent},
    exit::Exit,
    plan::Plan,
    record::{ByOp, PointRecord, PointStatus, Rates},
    scenario::{FleetConfig, Offer, OfferedRate, Params, RatePer, Verify},
};
use iofleet_shared::{
    stats::{DamageCount, DamageKind, Offered},
    work::{EngineKind, Fsync, OpKind, OpShare},
};

use super::{OFFSETS, SECOND, outcomes, params, plan_over, settled, world::World};

/// Runs a campaign whose workers behave as `alter` says, to the records of its points.
fn records(nodes: usize, points: Vec<Params>, alter: impl FnOnce(&mut World)) -> Vec<PointRecord> {
    let plan: Plan = plan_over(u32::try_from(nodes).unwrap(), points);
    let mut world = World::new(plan.clone(), &OFFSETS[..nodes]);
    alter(&mut world);
    settled(&mut world, &[]);
    let ready: Vec<NodeReady> = world
        .events
        .iter()
        .find_map(|event| match event {
            RunEvent::FleetReady(nodes) => Some(nodes.clone()),
            _ => None,
        })
        .unwrap();
    let fleet = FleetConfig::default();
    let record = |outcome: &iofleet_coordinator::events::PointOutcome| {
        aggregate::assemble(&plan.points[outcome.index as usize], &fleet, &ready, outcome).0
    };
    outcomes(&world).into_iter().map(record).collect()
}

/// A write of 2 s, and then what is to be looked at.
fn after_a_write(looked_at: Params) -> Vec<Params> {
    let write = Params { duration_ns: Some(2 * SECOND), ..params(OpKind::Write, 2) };
    vec![write, Params { duration_ns: Some(2 * SECOND), fsync: Fsync::None, ..looked_at }]
}

fn codes(record: &PointRecord) -> Vec<&str> {
    record.marks.iter().map(|mark| mark.code.as_str()).collect()
}

fn of<'a>(record: &'a PointRecord, op: &str) -> &'a ByOp {
    record.by_op.iter().find(|by_op| by_op.op == op).unwrap()
}

/// One write to three reads. The second node begins 43 ms late, so the window is [50, 2000] ms: of
/// the first node it holds operations 50 to 1999, of the second 7 to 1956. Writes are the multiples
/// of 4: 487 and 488 of them.
#[test]
fn a_mix_over_two_nodes_to_the_byte() {
    let ops = [(OpKind::Write, 1), (OpKind::Read, 3)];
    let ops = ops.map(|(op, weight)| OpShare { op, weight }).to_vec();
    let mix = Params { ops, fresh: false, ..params(OpKind::Write, 2) };
    let records = records(2, after_a_write(mix), |world| world.workers[1].manner.late_ms = 43);
    let record = &records[1];
    assert_eq!((record.op.as_str(), record.status), ("mix", PointStatus::Ok));
    let window = record.window.unwrap();
    assert_eq!((window.start_s, window.seconds), (0.05, 1.95));
    assert_eq!((window.bytes, window.ops), (3_900.0 * 4_096.0, 3_900.0));
    let (write, read) = (of(record, "write"), of(record, "read"));
    // Of the first node 2000 operations, of the second 1957.
    assert_eq!((write.ops, read.ops), (500 + 490, 1_500 + 1_467));
    assert_eq!((write.bytes, read.bytes), (990 * 4_096, 2_967 * 4_096));
    let rates =
        |in_window: f64, all: f64| Rates { common: Some(in_window / 1.95), span: Some(all / 2.0) };
    assert_eq!(write.bandwidth, rates(975.0 * 4_096.0, 990.0 * 4_096.0));
    assert_eq!(read.bandwidth, rates(2_925.0 * 4_096.0, 2_967.0 * 4_096.0));
    assert_eq!(write.iops, rates(975.0, 990.0));
    assert_eq!(read.iops, rates(2_925.0, 2_967.0));
    assert_eq!(record.bandwidth.common, Some(3_900.0 * 4_096.0 / 1.95));
    for interval in &record.intervals {
        assert_eq!(interval.by_op.len(), 2);
        assert_eq!(interval.by_op.iter().map(|by_op| by_op.ops).sum::<u64>(), interval.ops);
    }
    let counts = |by_op: &ByOp| by_op.latency_ns.service.unwrap().count;
    assert_eq!((counts(write), counts(read)), (990, 2_967));
    assert_eq!(record.latency_ns.service.unwrap().count, 3_957);
}

/// 32 operations in flight, issued a millisecond apart: the queue is full from 31 ms on, and runs
/// empty from the deadline to 2031 ms.
#[test]
fn a_queue_is_busy_once_it_is_full() {
    let mut queue = Params { fresh: false, ..params(OpKind::Write, 2) };
    (queue.engine.kind, queue.engine.depth) = (EngineKind::IoUring, 32);
    let record = &records(2, after_a_write(queue), |_| ())[1];
    assert_eq!(record.status, PointStatus::Ok, "{:?}", record.why);
    let window = record.window.unwrap();
    assert_eq!((window.start_s, window.seconds), (0.04, 1.96));
    assert_eq!(record.bandwidth.common, Some(2.0 * 1_000.0 * 4_096.0));
    assert_eq!(record.bandwidth.span, Some(2.0 * 2_000.0 * 4_096.0 / 2.031));
    assert_eq!((record.busy_share, record.params.depth), (Some(1.0), 32));
    assert_eq!(record.latency_ns.service.unwrap().mean, 32e6);
    // From the first issue to where the queue can't be kept full, not snapped.
    assert_eq!(window.overlap, 2_000.0 / 2_031.0);
}

#[test]
fn an_offered_load_has_responses_and_what_was_not_issued() {
    let offer = Offer::Open {
        rate: OfferedRate::Operations(6_400_000),
        per: RatePer::Fleet,
        exponential: false,
    };
    let load = Params { offer, fresh: false, ..params(OpKind::Write, 6) };
    let points = vec![params(OpKind::Write, 6), load];
    let record = &records(3, points, |world| {
        for (worker, backlog_max) in world.workers.iter_mut().zip([40, 70, 60]) {
            worker.manner.waits_ns = Some(500_000);
            worker.manner.offered = Some(Offered { arrived: 8_500, not_issued: 500, backlog_max });
        }
    })[1];
    let offered = record.offered.unwrap();
    assert_eq!((offered.per_s, offered.achieved_per_s), (6_400.0, Some(6_000.0)));
    assert_eq!((offered.arrived, offered.not_issued, offered.backlog_max), (25_500, 1_500, 70));
    let (service, response) = (record.latency_ns.service.unwrap(), record.latency_ns.response);
    assert_eq!((service.mean, response.unwrap().mean), (1e6, 1.5e6));
    assert_eq!(of(record, "write").latency_ns.response, response);
    assert!(record.intervals.iter().all(|interval| interval.response_ns.is_some()));
    assert!(codes(record).contains(&"overloaded"), "{:?}", record.marks);
}

#[test]
fn damage_is_told_and_ends_with_6() {
    let read = Params { verify: Verify::NoStale, ..params(OpKind::Read, 2) };
    let write = Params { verify: Verify::NoStale, ..params(OpKind::Write, 2) };
    let records = records(2, vec![write, read], |world| {
        world.workers[1].manner.damages = vec![DamageCount {
            kind: DamageKind::Stale,
            units: 2,
            file: "t00001".to_owned(),
            offset: 8_192,
            found: "generation 1".to_owned(),
        }];
    });
    let verification = records[1].verification.as_ref().unwrap();
    let [damage] = &verification.damages[..] else { panic!("{verification:?}") };
    assert!(verification.checked);
    assert_eq!(
        (damage.node.as_str(), damage.kind.as_str(), damage.units),
        ("client02", "stale", 2)
    );
    assert_eq!((damage.file.as_str(), damage.offset), ("t00001", 8_192));
    assert_eq!((records[1].status, codes(&records[1])[0]), (PointStatus::Ok, "damaged"));
    let exit = aggregate::exit_of(&records[1]);
    assert_eq!((exit, exit.code()), (Exit::Damaged, 6));
}
