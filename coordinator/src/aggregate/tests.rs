//! Known answers of whole points: several nodes, late, early, lost, in warm-up, with errors. Times
//! in the scripts are ms.

use iofleet_shared::{
    stats::{BYTE_UNITS, FirstEnd, LatencyCounts, OP_UNITS, OpCounts},
    work::{Fsync, OpKind},
};

use super::{
    fixture::{MS, Script, even, outcome, plan, ready},
    *,
};
use crate::scenario::speeds::LinkSpeeds;
use crate::{
    figures::{
        Five, LatencySummary, Steady,
        script::{Op, ops_ms},
        summarise,
    },
    record::{
        ByOp, ErrorKind, Interval, IntervalPhase, Latencies, LatencyKind, NodeStatus, PointNode,
        PointThread, Rates,
    },
};

mod campaigns;
mod costs;
mod doubts;
mod mixes;
mod whole;
mod wire;

fn close(figure: Option<f64>, expected: f64) -> bool {
    figure.is_some_and(|figure| (figure - expected).abs() <= expected.abs() * 1e-12)
}

fn codes(record: &PointRecord) -> Vec<&str> {
    record.marks.iter().map(|mark| mark.code.as_str()).collect()
}

fn assembled(
    script: &Script,
    alter: impl FnOnce(&mut PointPlan, &mut PointOutcome),
) -> PointRecord {
    let mut plan = plan(script);
    let mut outcome = outcome(&plan, script);
    alter(&mut plan, &mut outcome);
    assemble(&plan, &FleetConfig::default(), &ready(script.len()), &outcome).0
}

fn node(outcome: &mut PointOutcome, node: u32) -> &mut NodeOutcome {
    outcome.nodes.get_mut(&NodeIndex(node)).unwrap()
}

fn report(outcome: &mut PointOutcome, index: u32) -> &mut PointReport {
    node(outcome, index).report.as_mut().unwrap()
}

fn thread(outcome: &mut PointOutcome, index: u32) -> &mut ThreadReport {
    &mut report(outcome, index).threads[0]
}

fn counts(outcome: &mut PointOutcome, index: u32) -> &mut OpCounts {
    &mut thread(outcome, index).counts[0]
}

fn ticks(outcome: &mut PointOutcome, index: u32) -> &mut Vec<Tick> {
    node(outcome, index).ticks.get_mut(&OpKind::Write).unwrap()
}

fn lose(outcome: &mut PointOutcome, index: u32, why: &str) {
    let node = node(outcome, index);
    (node.report, node.lost) = (None, Some(why.to_owned()));
}

/// Node 1 with two threads from 0 to 400 ms, node 2 with one that begins at 1 ms and ends early, at
/// 371 ms.
fn two_nodes() -> Script {
    vec![
        vec![
            ops_ms(&[(0, 200), (200, 400)], 1_000),
            ops_ms(&[(0, 100), (100, 250), (250, 400)], 3_000),
        ],
        vec![ops_ms(&[(1, 171), (171, 371)], 10_000)],
    ]
}

#[test]
fn a_nodes_own_count_at_the_first_end_stands_in_place_of_its_ticks() {
    let first_done = |first_end| {
        let alter = |_: &mut _, outcome: &mut _| report(outcome, 1).first_end = first_end;
        assembled(&two_nodes(), alter).bandwidth.first_done
    };
    // Node 1 at 371 ms: 1 000 and 171/200 of as much, 6 000 and 121/150 of 3 000.
    let node_1 = 1_855.0 + 8_420.0;
    let own = FirstEnd {
        at_ns: 371_000_000,
        bytes: 20_000 * u128::from(BYTE_UNITS),
        ops: 2 * u128::from(OP_UNITS),
    };
    assert!(close(first_done(Some(own)), (node_1 + 20_000.0) / 0.371));
    // By ticks the 50 bytes of its last millisecond seem to last to the end of the tick.
    assert!(close(first_done(None), (node_1 + 19_950.0 + 5.0) / 0.371));
}

#[test]
fn edges_between_ticks_by_hand() {
    let record = assembled(&two_nodes(), |_, _| ());
    assert_eq!((record.bytes, record.ops, record.errors), (31_000, 7, 0));
    // The window [1, 371] snaps to [10, 370].
    let window = record.window.unwrap();
    assert_eq!((window.start_s, window.seconds), (0.01, 0.36));
    // Threads: 190/200 + 170/200 of 1000; 90/100, 1 and 120/150 of 3000; 161/170 and 199/200 of
    // 10,000. Ticks hold whole units, so shares of 170 ms may be off by a hundredth of a byte.
    let node_1 = 950.0 + 850.0 + 2_700.0 + 3_000.0 + 2_400.0;
    let node_2 = 10_000.0 * (161.0 / 170.0 + 199.0 / 200.0);
    assert!((window.bytes - (node_1 + node_2)).abs() < 0.01);
    assert!((record.bandwidth.common.unwrap() - (node_1 + node_2) / 0.36).abs() < 0.1);
    assert!(close(record.nodes[0].bandwidth, node_1 / 0.36));
    assert!((record.nodes[1].bandwidth.unwrap() - node_2 / 0.36).abs() < 0.1);
    assert!(close(Some(window.overlap), 370.0 / 400.0));
    assert_eq!(record.busy_share, Some(1.0));
    assert_eq!((record.status, exit_of(&record)), (PointStatus::Ok, Exit::Done));
    assert_eq!((record.threads[2].begin_s, record.threads[2].end_s), (Some(0.001), Some(0.371)));
}

#[test]
fn parts_of_nodes_add_up_to_common() {
    let record = assembled(&even(4, 3, 30, 17), |_, _| ());
    let parts: f64 = record.nodes.iter().map(|node| node.bandwidth.unwrap()).sum();
    assert!(close(record.bandwidth.common, parts));
}

#[test]
fn clock_offsets_change_no_figure_and_the_greatest_errors_are_told() {
    let far = assembled(&two_nodes(), |_, _| ());
    let near = assembled(&two_nodes(), |_, outcome| {
        outcome.nodes.values_mut().for_each(|node| node.clock.offset_ns = 0);
    });
    assert_eq!(far, near);
    assert_eq!(far.clock_uncertainty_ns, Some(40_001));
    assert_eq!(far.clock_residual_ns, Some(1_001));
}

#[test]
fn warm_up_and_drain_of_a_point_by_time() {
    let times = [(0, 90), (90, 150), (150, 290), (290, 410), (410, 620)];
    let script = vec![vec![ops_ms(&times, 1_000)]];
    let record = assembled(&script, |plan, outcome| {
        plan.spec.params.ramp_ns = 100 * MS;
        plan.spec.params.duration_ns = Some(400 * MS);
        (plan.bytes, plan.ops) = (None, None);
        *outcome = fixture::outcome(plan, &script);
    });
    assert_eq!((record.bytes, record.ops, record.ramp_bytes), (4_000, 4, 1_000));
    use IntervalPhase::{Drain, Measure, Ramp};
    let phases: Vec<IntervalPhase> = record.intervals.iter().map(|row| row.phase).collect();
    assert_eq!(phases, [Ramp, Measure, Measure, Measure, Measure, Drain, Drain]);
    let rows: Vec<u64> = record.intervals.iter().map(|row| row.bytes).collect();
    assert_eq!(rows, [1_000, 1_000, 1_000, 0, 1_000, 0, 1_000]);
    assert_eq!((record.intervals[6].start_s, record.intervals[6].seconds), (0.6, 0.02));
    // The operation in flight at the end of the warm-up was issued at 90 ms, and counts whole.
    assert!(close(record.bandwidth.span, 4_000.0 / 0.53));
    assert_eq!(record.threads[0].begin_s, Some(0.09));
    // From 100 ms: 5/6 of the second operation, and three whole ones.
    assert!((record.window.unwrap().bytes - (1_000.0 * 50.0 / 60.0 + 3_000.0)).abs() < 0.001);
    // Issued after the warm-up: three, of 140, 120 and 210 ms.
    let service = record.latency_ns.service.unwrap();
    assert_eq!((service.count, service.min, service.max), (3, 120 * MS, 210 * MS));
    assert_eq!(service.mean, 470e6 / 3.0);
    assert_eq!(record.params.duration_ns, Some(400 * MS));
    assert_eq!((record.status, record.steady), (PointStatus::Ok, None));
}

#[test]
fn the_interval_that_holds_the_deadline_is_measured() {
    let mut plan = plan(&two_nodes());
    (plan.spec.params.ramp_ns, plan.spec.params.duration_ns) = (200 * MS, Some(250 * MS));
    use IntervalPhase::{Drain, Measure, Ramp};
    let phases = (0..7).map(|k| series::phase_of(&plan, k));
    assert!(phases.eq([Ramp, Ramp, Measure, Measure, Measure, Drain, Drain]));
    (plan.spec.params.ramp_ns, plan.spec.params.duration_ns) = (0, None);
    assert_eq!((series::phase_of(&plan, 0), series::phase_of(&plan, 900)), (Measure, Measure));
}

#[test]
fn what_drains_after_the_deadline_is_no_round() {
    // 5 s at 10 operations/s; one that was in flight takes 2 s more.
    let mut script = even(1, 1, 50, 100);
    script[0][0].extend(ops_ms(&[(5_000, 7_000)], 1));
    let record = assembled(&script, |plan, _| {
        plan.spec.params.duration_ns = Some(5_000 * MS);
        (plan.bytes, plan.ops) = (None, None);
    });
    let steady = Steady { steady: true, round_s: 1.0, rounds: 5, spread: 0.0, slope: 0.0 };
    assert_eq!(record.steady, Some(steady));
}

#[test]
fn a_lost_node_is_named_and_in_no_sum() {
    let record = assembled(&two_nodes(), |_, outcome| {
        lose(outcome, 1, "silent for 15 s");
        node(outcome, 1).intervals.truncate(2);
    });
    assert_eq!((record.bytes, record.ops), (11_000, 5));
    assert_eq!((record.status, exit_of(&record)), (PointStatus::Partial, Exit::Partial));
    assert_eq!(record.why.as_deref(), Some("client02: silent for 15 s"));
    let census = Census { expected: 2, reported: 1, lost: vec!["client02".to_owned()] };
    assert_eq!(record.census, census);
    let lost = PointNode {
        node: "client02".to_owned(),
        status: NodeStatus::Lost,
        bytes: 10_000,
        ops: 1,
        errors: 0,
        bandwidth: None,
        iops: None,
        cpu_ns: None,
        cpu_system_ns: None,
        cpu_share: None,
        tx_bytes: None,
        rx_bytes: None,
        link_share: None,
        busiest_core_share: None,
        run_delay_share: None,
        cold_start: None,
        samples: Vec::new(),
        remarks: Vec::new(),
    };
    assert_eq!(record.nodes[1], lost);
    assert_eq!(codes(&record), ["partial"]);
    assert!(close(record.bandwidth.span, 11_000.0 / 0.4));
    assert!(close(record.bandwidth.common, 11_000.0 / 0.4));
    assert_eq!(record.intervals.iter().map(|row| row.bytes).sum::<u64>(), 11_000);
    assert_eq!((record.threads.len(), record.clock_uncertainty_ns), (2, Some(40_000)));
    assert_eq!(record.latency_ns.service.unwrap().count, 5);
}

#[test]
fn a_node_that_is_given_up_after_its_report_is_lost_in_every_account() {
    let script = two_nodes();
    let plan = plan(&script);
    let mut outcome = outcome(&plan, &script);
    node(&mut outcome, 1).lost = Some("its report came twice".to_owned());
    let (record, histograms) = assemble(&plan, &FleetConfig::default(), &ready(2), &outcome);
    assert_eq!((record.bytes, record.census.reported), (11_000, 1));
    assert_eq!(record.census.lost, ["client02"]);
    assert_eq!((record.status, codes(&record)), (PointStatus::Partial, vec!["partial"]));
    assert_eq!(record.latency_ns.service.unwrap().count, 5);
    assert_eq!(histograms[0].latency.count, 5);
}

#[test]
fn all_nodes_lost_fail_the_point() {
    let record = assembled(&two_nodes(), |_, outcome| {
        lose(outcome, 0, "gone");
        lose(outcome, 1, "silent");
    });
    assert_eq!((record.status, exit_of(&record)), (PointStatus::Failed, Exit::Partial));
    assert_eq!(record.why.as_deref(), Some("no node reported: client01: gone; client02: silent"));
    assert_eq!((record.headline, record.bandwidth), (None, Five::default()));
    assert_eq!((record.window, record.latency_ns.service), (None, None));
    assert!(record.intervals.is_empty() && record.threads.is_empty());
    assert_eq!(record.nodes[1].bytes, 20_000);
}

#[test]
fn each_broken_account_fails_the_point_and_keeps_everything() {
    type Breakage = fn(&mut PointOutcome);
    let breakages: [(Breakage, &str); 12] = [
        (|o| counts(o, 1).bytes += 1, "client02: 20001 bytes by threads, 20000 by intervals"),
        (|o| counts(o, 1).ops += 1, "client02: 3 operations by threads, 2 by intervals"),
        (|o| counts(o, 0).errors += 1, "client01: 1 errors by threads, 0 by intervals"),
        (|o| counts(o, 0).ramp_bytes += 5, "client01: 5 warm-up bytes by threads, 0 by"),
        (|o| counts(o, 0).ramp_ops += 5, "client01: 5 warm-up operations by threads, 0 by"),
        (|o| counts(o, 0).ramp_errors += 5, "client01: 5 warm-up errors by threads, 0 by"),
        (|o| node(o, 0).intervals[1].bytes -= 1, "11000 bytes by threads, 10999 by intervals"),
        (|o| report(o, 0).intervals += 1, "client01: 6 intervals were sent, 5 came"),
        (|o| report(o, 0).ticks += 1, "client01: 41 ticks were sent, 40 came"),
        (|o| report(o, 0).sums = Some("thread 1: 3 is not 4".to_owned()), "client01: thread 1: 3"),
        (
            |o| ticks(o, 0)[7].bytes += 1,
            "client01: 11000 bytes by threads, 11534336001 / 1048576 by ticks",
        ),
        (|o| ticks(o, 0)[7].ops -= 1, "client01: 5 operations by threads, 21474836479 /"),
    ];
    for (breakage, expected) in breakages {
        let record = assembled(&two_nodes(), |_, outcome| breakage(outcome));
        assert_eq!((record.status, exit_of(&record)), (PointStatus::Failed, Exit::Partial));
        let why = record.why.unwrap();
        assert!(why.starts_with("the accounts do not agree: "), "{why}");
        assert!(why.contains(expected), "{expected} in {why}");
        assert_eq!((record.marks[0].code.as_str(), &record.marks[0].text), ("sums", &why));
        assert!(record.bandwidth.common.is_some() && record.intervals.len() == 5);
    }
}

#[test]
fn a_point_by_size_must_do_what_the_plan_says() {
    let with = |alter: fn(&mut PointPlan)| {
        let record = assembled(&two_nodes(), |plan, _| alter(plan));
        (record.status, record.why.unwrap_or_default())
    };
    let (failed, none) = (PointStatus::Failed, String::new());
    let why = |text: &str| format!("the accounts do not agree: {text}");
    let bytes = why("31000 bytes by threads, 31001 by the plan");
    assert_eq!(with(|plan| plan.bytes = Some(31_001)), (failed, bytes));
    let ops = why("7 operations by threads, 6 by the plan");
    assert_eq!(with(|plan| plan.ops = Some(6)), (failed, ops));
    let threads = why("3 threads reported, 4 were planned");
    assert_eq!(with(|plan| plan.threads = 4), (failed, threads));
    // By time nothing is planned.
    let by_time: fn(&mut PointPlan) = |plan| {
        (plan.bytes, plan.spec.params.duration_ns) = (Some(31_001), Some(400 * MS));
    };
    assert_eq!(with(by_time), (PointStatus::Ok, none));
    // What errors or a stop kept from it is no flaw.
    let stopped = assembled(&two_nodes(), |plan, outcome| {
        plan.bytes = Some(31_001);
        thread(outcome, 1).end = ThreadEnd::Stopped;
    });
    assert_eq!(stopped.status, PointStatus::Partial);
}

#[test]
fn many_flaws_are_counted() {
    let record = assembled(&even(6, 1, 5, 100), |_, outcome| {
        (0..6).for_each(|index| report(outcome, index).ticks += 1);
    });
    assert!(record.why.unwrap().ends_with("client04: 51 ticks were sent, 50 came; and 2 more"));
}

#[test]
fn errors_mark_a_complete_point() {
    let mut script = two_nodes();
    script[1][0].push(Op { issue_ns: 371_000_000, done_ns: 380_000_000, bytes: None });
    let record = assembled(&script, |_, _| ());
    assert_eq!((record.status, exit_of(&record)), (PointStatus::Ok, Exit::IoErrors));
    assert_eq!((record.errors, record.bytes, record.ops), (1, 31_000, 7));
    assert_eq!((record.intervals[3].errors, record.nodes[1].errors), (1, 1));
    assert_eq!((record.threads[2].errors, record.by_op[0].errors), (1, 1));
    let kind = ErrorKind {
        node: "client02".to_owned(),
        op: "write".to_owned(),
        call: "pwrite".to_owned(),
        errno: 5,
        text: "Input/output error (os error 5)".to_owned(),
        count: 1,
        file: "0.dat".to_owned(),
        offset: 4_096,
        max_ns: 1_500,
    };
    assert_eq!(record.error_kinds, [kind]);
    assert_eq!(codes(&record)[0], "errors");
    assert_eq!(parts::error_text("short read", 0), "fewer bytes than were written there");
}

#[test]
fn errors_in_the_warm_up_alone_are_told_too() {
    let times = [(110, 200), (200, 300), (300, 400)];
    let mut script = vec![vec![ops_ms(&times, 1_000)]];
    script[0][0].insert(0, Op { issue_ns: 0, done_ns: 90_000_000, bytes: None });
    let record = assembled(&script, |plan, outcome| {
        plan.spec.params.ramp_ns = 100 * MS;
        *outcome = fixture::outcome(plan, &script);
    });
    assert_eq!((record.errors, record.intervals[0].errors), (0, 1));
    assert_eq!((record.status, exit_of(&record)), (PointStatus::Ok, Exit::IoErrors));
    assert!(codes(&record).contains(&"errors"));
}

#[test]
fn threads_that_end_early_make_it_partial() {
    let ends = [
        (ThreadEnd::Stopped, "stopped", "1 of 3 threads were stopped", NodeStatus::Ok),
        (ThreadEnd::Errors, "errors", "1 of 3 threads ended by errors", NodeStatus::Ok),
        (
            ThreadEnd::Stuck,
            "stuck",
            "1 of 3 threads never returned from an operation",
            NodeStatus::Stuck,
        ),
    ];
    for (end, word, why, status) in ends {
        let record = assembled(&two_nodes(), |_, outcome| {
            let thread = thread(outcome, 1);
            (thread.end, thread.unfinished) = (end, 1);
            thread.unfinished_ns = Some(31_500_000_000);
        });
        assert_eq!((record.status, record.why.as_deref()), (PointStatus::Partial, Some(why)));
        assert_eq!(exit_of(&record), Exit::Partial);
        assert_eq!(record.unfinished, Unfinished { count: 1, oldest_ns: Some(31_500_000_000) });
        assert_eq!((record.nodes[0].status, record.nodes[1].status), (NodeStatus::Ok, status));
        assert_eq!(record.threads[2].end, word);
        assert_eq!(codes(&record).contains(&"stuck"), end == ThreadEnd::Stuck);
    }
}

#[test]
fn interrupted_and_failed_points() {
    let record = assembled(&two_nodes(), |_, outcome| {
        outcome.interrupted = true;
        thread(outcome, 1).end = ThreadEnd::Stopped;
    });
    // That threads were stopped follows from the interrupt.
    assert_eq!((record.status, record.why.as_deref()), (PointStatus::Partial, Some("interrupted")));
    assert_eq!(codes(&record)[0], "interrupted");
    let record = assembled(&two_nodes(), |_, outcome| outcome.failed = Some("no start".to_owned()));
    assert_eq!((record.status, record.why.as_deref()), (PointStatus::Failed, Some("no start")));
    assert_eq!(exit_of(&record), Exit::Partial);
}

#[test]
fn a_skipped_point_says_why_and_measures_nothing() {
    let record = skipped(&plan(&two_nodes()), "client02 was lost and on_fault is abort");
    assert_eq!((record.status, exit_of(&record)), (PointStatus::Skipped, Exit::Partial));
    assert_eq!(record.why.as_deref(), Some("client02 was lost and on_fault is abort"));
    assert_eq!((record.bytes, record.headline, record.t0.clone()), (0, None, None));
    assert_eq!((record.bandwidth, record.passes), (Five::default(), None));
    assert_eq!((record.params.threads, record.census.expected), (3, 2));
    assert!(record.marks.is_empty() && record.nodes.is_empty() && record.intervals.is_empty());
}

#[test]
fn buffered_writes_headline_what_reached_storage() {
    let with = |fsync: Fsync, direct: bool| {
        assembled(&even(1, 1, 4, 100), |plan, outcome| {
            (plan.spec.params.fsync, plan.spec.params.options.direct) = (fsync, direct);
            let thread = thread(outcome, 0);
            (thread.ended_ns, thread.fsync_ns) = (Some(450_000_000), Some(50_000_000));
            // The overlap is not what decides here.
            thread.busy_end_ns = Some(410_000_000);
        })
    };
    let at_end = with(Fsync::End, false);
    assert_eq!(at_end.headline, Some(Headline::Span));
    assert!(close(at_end.bandwidth.span, f64::from(4 << 20) / 0.45));
    assert!(close(at_end.bandwidth.common, f64::from(4 << 20) / 0.41));
    assert_eq!(at_end.fsync_s, Some(0.05));
    assert_eq!(with(Fsync::Each, false).headline, Some(Headline::Common));
    assert_eq!(with(Fsync::None, false).headline, Some(Headline::Common));
    assert_eq!(with(Fsync::End, true).headline, Some(Headline::Common));
}

#[test]
fn low_overlap_makes_span_the_headline() {
    let script: Script =
        vec![vec![ops_ms(&[(0, 100), (100, 200)], 1_000), ops_ms(&[(80, 200), (200, 300)], 1_000)]];
    let record = assembled(&script, |_, _| ());
    assert_eq!(record.headline, Some(Headline::Span));
    let mark = record.marks.iter().find(|mark| mark.code == "not-an-aggregate").unwrap();
    assert_eq!((mark.value, mark.limit), (Some(120.0 / 300.0), Some(0.9)));
    let skew = record.marks.iter().find(|mark| mark.code == "skew").unwrap();
    assert_eq!((skew.value, skew.limit), (Some(80.0 / 120.0), Some(0.01)));
}

#[test]
fn a_thread_that_completed_nothing_leaves_no_window() {
    let mut script = two_nodes();
    script[1].push(Vec::new());
    let record = assembled(&script, |_, outcome| {
        let hung = &mut report(outcome, 1).threads[1];
        (hung.end, hung.first_issue_ns) = (ThreadEnd::Stuck, Some(0));
        hung.unfinished_ns = Some(9);
    });
    assert_eq!((record.window, record.bandwidth.common), (None, None));
    assert_eq!((record.headline, record.busy_share), (Some(Headline::Span), None));
    assert_eq!((record.status, record.threads[3].end_s), (PointStatus::Partial, None));
    assert!(codes(&record).contains(&"no-window") && codes(&record).contains(&"stuck"));
}

#[test]
fn late_latencies_stand_with_the_later_interval_and_none_is_lost() {
    let record = assembled(&two_nodes(), |_, outcome| {
        let node = node(outcome, 0);
        let early = std::mem::take(&mut node.intervals[1].latency);
        node.intervals[1].latency_intervals = 0;
        node.intervals[2].latency_intervals = 2;
        node.intervals[2].latency.merge(&early);
    });
    // Node 2 was on time, but its latencies of interval 1 alone would not be the fleet's.
    let counts = record.intervals.iter().map(|row| row.latency_ns.map_or(0, |l| l.count));
    assert!(counts.eq([0, 0, 4, 1, 2]));
    assert_eq!(record.latency_ns.service.unwrap().count, 7);
    assert!(codes(&record).contains(&"intervals-late") && record.status == PointStatus::Ok);
}

#[test]
fn latencies_of_all_nodes_merge() {
    let (script, mut counts) = (two_nodes(), LatencyCounts::new());
    let record = assembled(&script, |_, _| ());
    for ms in [200, 200, 100, 150, 150, 170, 200] {
        counts.record(ms * MS);
    }
    assert_eq!(record.latency_ns.service, summarise(&counts.to_latency()));
    let plan = plan(&script);
    let histograms =
        assemble(&plan, &FleetConfig::default(), &ready(2), &outcome(&plan, &script)).1;
    let [only] = &histograms[..] else { panic!("one kind, no response times") };
    assert_eq!((only.op, only.kind), (None, LatencyKind::Service));
    assert_eq!(only.latency, counts.to_latency());
}

#[test]
fn the_least_stated_limit_is_the_networks() {
    let script = even(2, 1, 5, 100);
    let (plan, common) = (plan(&script), f64::from(10 << 20) / 0.5);
    let with = |link_speed: Option<u64>, network_limit| {
        let link_speed = link_speed.map(LinkSpeeds::of_all).unwrap_or_default();
        let fleet = FleetConfig { network_limit, link_speed, ..FleetConfig::default() };
        assemble(&plan, &fleet, &ready(2), &outcome(&plan, &script)).0.network
    };
    let links = with(Some(8_000_000_000), Some(3e9));
    assert_eq!(links.limit_bytes_per_s, Some(2e9));
    assert_eq!(links.limit_source.as_deref(), Some("link_speed"));
    assert_eq!(links.payload_share, Some(common / 2e9));
    let fabric = with(Some(16_000_000_000), Some(3e9));
    assert_eq!(fabric.limit_source.as_deref(), Some("network_limit"));
    assert_eq!(fabric.payload_share, Some(common / 3e9));
    let none = with(None, None);
    assert_eq!((none.limit_bytes_per_s, none.payload_share), (None, None));
    assert_eq!(none.directions[0].payload_bytes_per_s, Some(common));
}
