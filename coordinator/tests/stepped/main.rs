//! The protocol, stepped: both state machines against each other without sockets or sleeping. Every
//! fault in every phase; what must hold in each cell stands in [`settled`].
#![expect(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "tests")]

use iofleet_coordinator::{
    events::{Ending, PointOutcome, RunEvent},
    exit::Exit,
    plan::Plan,
    scenario::{FleetConfig, OnFault, Params, PointSpec, Scenario, TargetConfig, Threads},
};
use iofleet_shared::{
    lifecycle::Phase,
    work::{
        EngineKind, EngineSpec, FileOptions, Fsync, Layout, OpKind, OpShare, Pattern, SizeShare,
    },
};

use world::{World, phases};

mod crew;
mod figures;
mod world;

const SECOND: u64 = 1_000_000_000;
/// Clocks of the workers against the coordinator's: minutes apart.
const OFFSETS: [i64; 3] = [0, 300_000_000_000, -400_000_000_000];

fn params(op: OpKind, threads: u32) -> Params {
    Params {
        ops: vec![OpShare { op, weight: 1 }],
        threads: Threads::Fleet(threads),
        layout: Layout::FilePerThread,
        file_sizes: vec![SizeShare { bytes: 1 << 20, weight: 1 }],
        blocks: vec![SizeShare { bytes: 4096, weight: 1 }],
        pattern: Pattern::Sequential,
        duration_ns: Some(4 * SECOND),
        ramp_ns: 0,
        interval_ns: SECOND,
        repeat_range: true,
        options: FileOptions::default(),
        engine: EngineSpec {
            kind: EngineKind::Sync,
            depth: 1,
            sqpoll: false,
            iopoll: false,
            high_priority: false,
        },
        fsync: Fsync::End,
        fresh: op == OpKind::Write,
        seed: 1,
        on_fault: OnFault::Continue,
        stuck_after_ns: 60 * SECOND,
        ..Params::default()
    }
}

fn plan_of(points: Vec<Params>) -> Plan {
    plan_over(3, points)
}

fn plan_over(nodes: u32, points: Vec<Params>) -> Plan {
    let points = (0_u32..).zip(points).map(|(index, params)| PointSpec {
        index,
        stage: format!("s{index}"),
        repeat: 0,
        swept: Vec::new(),
        group: 0,
        params,
    });
    let scenario = Scenario {
        name: "t".to_owned(),
        question: None,
        require: Vec::new(),
        thresholds: Default::default(),
        fleet: FleetConfig::default(),
        target: TargetConfig {
            path: Some("/mnt/pfs/iofleet".to_owned()),
            ..TargetConfig::default()
        },
        points: points.collect(),
        resolved_toml: String::new(),
        id: String::new(),
    };
    Plan::new(&scenario, nodes).unwrap()
}

/// A write and a read of 4 s on three workers.
fn world() -> World {
    World::new(plan_of(vec![params(OpKind::Write, 6), params(OpKind::Read, 6)]), &OFFSETS)
}

fn outcomes(world: &World) -> Vec<&PointOutcome> {
    let ended = world.events.iter().filter_map(|event| match event {
        RunEvent::PointEnded(outcome) => Some(&**outcome),
        _ => None,
    });
    ended.collect()
}

fn ending(world: &World) -> Ending {
    let ended = world.events.iter().find_map(|event| match event {
        RunEvent::Ended(ending) => Some(ending.clone()),
        _ => None,
    });
    ended.unwrap_or_else(|| panic!("no end\n{}", world.story()))
}

/// What holds after every campaign: it has ended, living workers are idle, and every point either
/// ended or was skipped, unless the user interrupted.
fn settled(world: &mut World, dead: &[usize]) {
    world.run();
    // Workers clean up after the goodbye.
    world.finished = false;
    world.run_for(SECOND / 10);
    for (index, phase) in phases(world).into_iter().enumerate() {
        assert!(dead.contains(&index) || phase == Phase::Idle, "{index}\n{}", world.story());
    }
}

#[test]
fn an_ordinary_campaign() {
    let mut world = world();
    settled(&mut world, &[]);
    assert_eq!(ending(&world).exit, Exit::Done);
    let outcomes = outcomes(&world);
    assert_eq!(outcomes.len(), 2);
    for outcome in outcomes {
        assert_eq!(outcome.nodes.len(), 3);
        for node in outcome.nodes.values() {
            let report = node.report.as_ref().unwrap();
            assert_eq!(report.threads.len(), 2);
            assert_eq!(node.intervals.len(), 4);
            assert_eq!(node.ticks.values().map(Vec::len).sum::<usize>(), 400);
        }
    }
    assert_eq!(world.warnings(), "");
}

/// Clocks are minutes apart; the instants at which workers start are not.
#[test]
fn workers_start_at_one_instant() {
    let mut world = world();
    world.run();
    for outcome in outcomes(&world) {
        for (node, offset) in outcome.nodes.values().zip(OFFSETS) {
            let t0 = node.report.as_ref().unwrap().t0_worker_ns;
            let fleet = t0.checked_add_signed(-offset).unwrap();
            let apart = fleet.abs_diff(outcome.t0_fleet_ns);
            assert!(apart <= node.clock.uncertainty_ns, "{apart} of {:?}", node.clock);
            assert!(node.clock.uncertainty_ns < 1_000_000);
        }
    }
}

#[test]
fn lost_datagrams_cost_nothing() {
    let mut world = world();
    for (worker, percent) in world.workers.iter_mut().zip([60, 30, 10]) {
        worker.loss_percent = percent;
    }
    settled(&mut world, &[]);
    assert_eq!(ending(&world).exit, Exit::Done);
    assert_eq!(outcomes(&world).len(), 2);
}

const MOMENTS: [Phase; 6] =
    [Phase::Arming, Phase::Armed, Phase::Ready, Phase::Waiting, Phase::Running, Phase::Draining];

fn reach(world: &mut World, phase: Phase) {
    world.run_until("the phase", |world| phases(world)[1] == phase);
    if phase == Phase::Running {
        world.run_for(2 * SECOND);
    }
}

#[test]
fn a_worker_dies_in_each_phase() {
    for phase in MOMENTS {
        let mut world = world();
        reach(&mut world, phase);
        world.kill(1);
        let killed_ns = world.now_ns;
        world.run_until("the name of the dead", |world| world.warnings().contains("client02"));
        assert!(world.now_ns - killed_ns <= 5 * SECOND, "{phase}\n{}", world.story());
        settled(&mut world, &[1]);
        // 2 s to the end of the point at most, 15 s of patience, the read of 4 s.
        assert!(world.now_ns - killed_ns <= 40 * SECOND, "{phase}\n{}", world.story());
        assert_eq!(ending(&world).exit, Exit::Partial, "{phase}\n{}", world.story());
        let outcomes = outcomes(&world);
        assert_eq!(outcomes.len(), 2, "{phase}\n{}", world.story());
        for outcome in outcomes {
            let lost: Vec<bool> = outcome.nodes.values().map(|node| node.lost.is_some()).collect();
            let reported = outcome.nodes.values().filter(|node| node.report.is_some()).count();
            assert_eq!(lost, [false, true, false], "{phase}");
            assert_eq!(reported, 2, "{phase}");
        }
    }
}

#[test]
fn a_network_cut_of_eight_seconds_in_each_phase() {
    for phase in MOMENTS {
        let mut world = world();
        reach(&mut world, phase);
        world.cut(1, true);
        world.run_for(8 * SECOND);
        assert!(world.warnings().contains("client02: silent for 4 s"), "{phase}");
        world.cut(1, false);
        settled(&mut world, &[]);
        assert_eq!(ending(&world).exit, Exit::Done, "{phase}\n{}", world.story());
        assert!(world.warnings().contains("client02 answers again"), "{phase}");
        let outcomes = outcomes(&world);
        assert_eq!(outcomes.len(), 2, "{phase}");
        let whole = outcomes.iter().all(|outcome| {
            outcome.nodes.len() == 3 && outcome.nodes.values().all(|node| node.report.is_some())
        });
        assert!(whole, "{phase}\n{}", world.story());
    }
}

/// When no worker at all is heard it is our own link: nobody is given up for half an hour.
#[test]
fn a_cut_of_the_coordinators_own_link() {
    let mut world = world();
    reach(&mut world, Phase::Running);
    (0..3).for_each(|index| world.cut(index, true));
    world.run_for(300 * SECOND);
    (0..3).for_each(|index| world.cut(index, false));
    settled(&mut world, &[]);
    assert_eq!(ending(&world).exit, Exit::Done, "{}", world.story());
    assert_eq!(outcomes(&world).len(), 2);
}

#[test]
fn an_interrupt_in_each_phase() {
    for phase in MOMENTS {
        let mut world = world();
        reach(&mut world, phase);
        let at_ns = world.now_ns;
        world.interrupt();
        settled(&mut world, &[]);
        assert_eq!(ending(&world).exit, Exit::Interrupted, "{phase}");
        assert!(world.now_ns - at_ns <= 3 * SECOND, "{phase}\n{}", world.story());
        let outcomes = outcomes(&world);
        assert_eq!(outcomes.len(), 1, "{phase}\n{}", world.story());
        assert!(outcomes[0].interrupted, "{phase}");
        if phase == Phase::Running {
            for node in outcomes[0].nodes.values() {
                let ops = node.report.as_ref().unwrap().threads[0].ops();
                assert!((1_900..2_100).contains(&ops), "two of four seconds: {ops}");
            }
        }
    }
}

#[test]
fn a_second_interrupt_leaves_at_once() {
    let mut world = world();
    reach(&mut world, Phase::Running);
    world.cut(1, true);
    world.interrupt();
    let at_ns = world.now_ns;
    world.interrupt();
    world.run();
    assert_eq!(world.now_ns, at_ns);
    assert_eq!(ending(&world).exit, Exit::Interrupted);
}

#[test]
fn a_worker_is_shut_down_in_each_phase() {
    for phase in MOMENTS {
        let mut world = world();
        reach(&mut world, phase);
        world.shut_down(1);
        settled(&mut world, &[1]);
        assert_eq!(ending(&world).exit, Exit::Partial, "{phase}\n{}", world.story());
        assert!(
            world.warnings().contains("client02 is lost: the worker is shutting down"),
            "{phase}"
        );
        assert_eq!(outcomes(&world).len(), 2, "{phase}\n{}", world.story());
    }
}

#[test]
fn on_fault_abort_ends_the_campaign() {
    let points = [OpKind::Write, OpKind::Read, OpKind::Read]
        .map(|op| Params { on_fault: OnFault::Abort, ..params(op, 6) });
    let mut world = World::new(plan_of(points.to_vec()), &OFFSETS);
    reach(&mut world, Phase::Running);
    world.kill(1);
    settled(&mut world, &[1]);
    assert_eq!(outcomes(&world).len(), 1);
    let skipped =
        world.events.iter().filter(|event| matches!(event, RunEvent::PointSkipped { .. })).count();
    assert_eq!(skipped, 2);
}

/// The commit to one worker is late: it does not start; the point is taken back from the others
/// and tried once more.
#[test]
fn a_late_commit_is_tried_once_more() {
    let mut world = world();
    reach(&mut world, Phase::Ready);
    world.cut(1, true);
    world.run_for(SECOND / 10);
    world.cut(1, false);
    settled(&mut world, &[]);
    assert_eq!(ending(&world).exit, Exit::Done, "{}", world.story());
    assert!(world.warnings().contains("it is tried once more"), "{}", world.story());
    let outcomes = outcomes(&world);
    assert_eq!(outcomes.len(), 2);
    let attempts: Vec<u32> =
        outcomes[0].nodes.values().map(|n| n.report.as_ref().unwrap().point.attempt).collect();
    assert_eq!(attempts, [1, 1, 1]);
}

#[test]
fn a_sleeping_coordinator_asks_the_clocks_anew() {
    let mut world = world();
    reach(&mut world, Phase::Running);
    world.sleep(600 * SECOND);
    settled(&mut world, &[]);
    assert!(world.warnings().contains("this machine slept"), "{}", world.story());
    assert_eq!(ending(&world).exit, Exit::Done, "{}", world.story());
}

#[test]
fn fewer_threads_than_workers_leave_the_rest_out() {
    let mut world = World::new(plan_of(vec![params(OpKind::Write, 2)]), &OFFSETS);
    settled(&mut world, &[]);
    assert_eq!(ending(&world).exit, Exit::Done);
    assert_eq!(outcomes(&world)[0].nodes.len(), 2);
}

#[test]
fn a_hanging_operation_is_named_again_and_again() {
    let mut world = world();
    world.workers[1].hangs = true;
    reach(&mut world, Phase::Running);
    world.run_for(30 * SECOND);
    let named = world.warnings().matches("client02: an operation has not returned").count();
    assert!((2..=4).contains(&named), "{}", world.warnings());
    world.interrupt();
    settled(&mut world, &[]);
    assert_eq!(ending(&world).exit, Exit::Interrupted);
}

/// A worker that another coordinator holds refuses; the campaign ends at once, and nothing waits
/// for it.
#[test]
fn a_refused_claim_ends_the_campaign_at_once() {
    let mut world = world();
    world.held_by_another(1);
    world.run();
    let Ending { exit, message } = ending(&world);
    assert_eq!(exit, Exit::Fleet);
    assert!(message.unwrap().contains("client02: held by another@there"), "{}", world.story());
    assert!(world.now_ns - world.began_ns < SECOND, "{}", world.story());
}
