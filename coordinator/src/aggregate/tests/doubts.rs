//! Each mark: provoked once, and not by what only just is no doubt.

use iofleet_shared::{
    stats::{BYTE_UNITS, DamageCount, DamageKind, ErrorCount, HoleCheck},
    work::{EngineKind, OpKind},
};

use super::*;
use crate::scenario::{Offer, OfferedRate, RatePer, Verify};

type Alter = fn(&mut PointPlan, &mut PointOutcome);

/// Two nodes of one thread, five operations of 100 ms each: nothing about it is doubtful.
fn clean() -> Script {
    even(2, 1, 5, 100)
}

fn end_of(outcome: &mut PointOutcome, end: ThreadEnd) {
    thread(outcome, 1).end = end;
}

fn busy_end(outcome: &mut PointOutcome, ns: i64) {
    thread(outcome, 1).busy_end_ns = Some(ns);
}

fn begins(outcome: &mut PointOutcome, ns: i64) {
    let thread = thread(outcome, 1);
    (thread.first_issue_ns, thread.busy_begin_ns) = (Some(ns), Some(ns));
}

fn buffered(plan: &mut PointPlan, fsync: Fsync) {
    (plan.spec.params.options.direct, plan.spec.params.fsync) = (false, fsync);
}

fn reads(plan: &mut PointPlan, outcome: &mut PointOutcome, passes_milli: u64) {
    plan.spec.params.ops[0].op = OpKind::Read;
    thread(outcome, 1).passes_milli = passes_milli;
}

/// Moves latencies of interval 1 into interval 2, said or unsaid.
fn late(outcome: &mut PointOutcome, said: bool) {
    let intervals = &mut node(outcome, 1).intervals;
    let early = std::mem::take(&mut intervals[1].latency);
    intervals[2].latency.merge(&early);
    if said {
        (intervals[1].latency_intervals, intervals[2].latency_intervals) = (0, 2);
    }
}

fn failed_operation() -> ErrorCount {
    ErrorCount {
        op: OpKind::Write,
        call: "fsync".to_owned(),
        errno: 28,
        count: 1,
        file: "1.dat".to_owned(),
        offset: 0,
        sum_ns: 1,
        max_ns: 1,
    }
}

/// One byte more in all accounts.
fn one_more(plan: &mut PointPlan, outcome: &mut PointOutcome) {
    plan.bytes = plan.bytes.map(|bytes| bytes + 1);
    counts(outcome, 0).bytes += 1;
    node(outcome, 0).intervals[1].bytes += 1;
    ticks(outcome, 0)[10].bytes += BYTE_UNITS;
}

fn damage(outcome: &mut PointOutcome, units: u64) {
    thread(outcome, 1).damages.push(DamageCount {
        kind: DamageKind::Torn,
        units,
        file: "t00001".to_owned(),
        offset: 8_192,
        found: "generations 1 and 2".to_owned(),
    });
}

fn offer(plan: &mut PointPlan, per_s: f64) {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small rate")]
    let rate = OfferedRate::Operations((per_s * 1_000.0) as u64);
    plan.spec.params.offer = Offer::Open { rate, per: RatePer::Fleet, exponential: false };
}

/// Takes 50 ms and some ns out of 1 s of service time.
fn idle(outcome: &mut PointOutcome, more_ns: u64) {
    let ticks = ticks(outcome, 0);
    ticks.iter_mut().take(5).for_each(|tick| tick.busy_ns = 0);
    ticks[5].busy_ns -= more_ns;
}

/// Code; what provokes it, with value and limit; what does not.
type Case = (&'static str, Alter, Option<f64>, Option<f64>, Alter);

fn cases_of_the_census() -> Vec<Case> {
    vec![
        ("sums", |_, o| counts(o, 0).bytes += 1, None, None, one_more),
        (
            "damaged",
            |_, o| damage(o, 3),
            Some(3.0),
            Some(0.0),
            |p, _| p.spec.params.verify = Verify::All,
        ),
        (
            "no-io",
            |p, _| p.spec.params.engine.kind = EngineKind::Null,
            None,
            None,
            |p, _| p.spec.params.engine.kind = EngineKind::Mmap,
        ),
        (
            "partial",
            |_, o| lose(o, 1, "silent"),
            Some(1.0),
            Some(0.0),
            |_, o| end_of(o, ThreadEnd::Stopped),
        ),
        (
            "interrupted",
            |_, o| o.interrupted = true,
            None,
            None,
            |_, o| end_of(o, ThreadEnd::Stopped),
        ),
        (
            "stuck",
            |_, o| end_of(o, ThreadEnd::Stuck),
            Some(1.0),
            Some(0.0),
            |_, o| end_of(o, ThreadEnd::Errors),
        ),
        (
            "errors",
            |_, o| report(o, 1).errors.push(failed_operation()),
            Some(1.0),
            Some(0.0),
            |_, o| thread(o, 1).short_transfers = 1,
        ),
        (
            "short-transfers",
            |_, o| thread(o, 1).short_transfers = 1,
            Some(1.0),
            Some(0.0),
            |_, o| report(o, 1).errors.push(failed_operation()),
        ),
        ("intervals-late", |_, o| late(o, true), Some(1.0), Some(0.0), |_, o| late(o, false)),
    ]
}

fn cases_of_the_window() -> Vec<Case> {
    vec![
        // Nine ticks, and ten.
        ("no-window", |_, o| busy_end(o, 99_999_999), None, None, |_, o| busy_end(o, 100_000_000)),
        (
            "not-an-aggregate",
            |_, o| busy_end(o, 449_999_999),
            Some(449_999_999.0 / 5e8),
            Some(0.9),
            |_, o| busy_end(o, 450_000_000),
        ),
        // Thread 1 ends at t: (500 / t + 1) / 2 is 1.01 for t = 490.196 ms.
        (
            "not-an-aggregate",
            |_, o| thread(o, 1).ended_ns = Some(490_196_078),
            Some((0.5 / 0.490_196_078 + 1.0) / 2.0),
            Some(1.01),
            |_, o| thread(o, 1).ended_ns = Some(490_196_079),
        ),
        (
            "internal",
            |_, o| ticks(o, 0)[20].busy_ns += 5_000_001,
            Some(1.005_000_001),
            Some(1.005),
            |_, o| ticks(o, 0)[20].busy_ns += 5_000_000,
        ),
        ("busy", |_, o| idle(o, 1), Some(0.949_999_999), Some(0.95), |_, o| idle(o, 0)),
        (
            "unflushed",
            |p, _| buffered(p, Fsync::End),
            Some(20_971_520.0),
            None,
            |p, _| buffered(p, Fsync::Each),
        ),
        (
            "not-durable",
            |p, _| buffered(p, Fsync::None),
            None,
            None,
            |p, _| p.spec.params.fsync = Fsync::None,
        ),
        (
            "cached",
            |p, o| {
                reads(p, o, 1_000);
                p.spec.params.options.direct = false;
            },
            None,
            None,
            |p, o| reads(p, o, 1_000),
        ),
        (
            "rewritten",
            |p, o| {
                buffered(p, Fsync::Each);
                thread(o, 1).passes_milli = 2_000;
            },
            Some(2.0),
            Some(1.0),
            |_, o| thread(o, 1).passes_milli = 2_000,
        ),
        ("re-read", |p, o| reads(p, o, 1_001), Some(1.001), Some(1.0), |p, o| reads(p, o, 1_000)),
        (
            "re-read",
            |p, o| reads(p, o, 2_000),
            Some(2.0),
            Some(1.0),
            |_, o| thread(o, 1).passes_milli = 2_000,
        ),
    ]
}

fn cases_of_clocks_and_load() -> Vec<Case> {
    vec![
        // 20 operations per second are achieved.
        (
            "overloaded",
            |p, _| offer(p, 21.06),
            Some(20.0 / 21.06),
            Some(0.95),
            |p, _| offer(p, 21.05),
        ),
        // A begin between 0 and 10 ms leaves a window of 490 ms.
        (
            "skew",
            |_, o| begins(o, 4_900_001),
            Some(4_900_001.0 / 4.9e8),
            Some(0.01),
            |_, o| begins(o, 4_900_000),
        ),
        (
            "clock",
            |_, o| node(o, 1).clock.uncertainty_ns = 2_500_001,
            Some(2_500_001.0 / 5e8),
            Some(0.005),
            |_, o| node(o, 1).clock.uncertainty_ns = 2_500_000,
        ),
        (
            "clock",
            |_, o| node(o, 1).residual_ns = Some(-2_500_001),
            Some(2_500_001.0 / 5e8),
            Some(0.005),
            |_, o| node(o, 1).residual_ns = Some(-2_500_000),
        ),
        ("holes", |_, o| holes(o, 2, false), Some(2.0), Some(0.0), |_, o| holes(o, 0, true)),
        ("holes-unknown", |_, o| holes(o, 0, true), None, None, |_, o| holes(o, 2, false)),
    ]
}

fn holes(outcome: &mut PointOutcome, files: u64, blind: bool) {
    let first = (files > 0).then(|| "f0 at offset 0".to_owned());
    let check = HoleCheck { blind, files, first };
    node(outcome, 1).report.as_mut().unwrap().holes = Some(check);
}

fn cases() -> Vec<Case> {
    [cases_of_the_census(), cases_of_the_window(), cases_of_clocks_and_load()].concat()
}

#[test]
fn the_clean_point_has_no_doubts() {
    let record = assembled(&clean(), |_, _| ());
    assert_eq!((record.status, record.marks), (PointStatus::Ok, Vec::new()));
}

#[test]
fn each_mark_is_provoked_with_its_value_and_not_by_a_near_miss() {
    for (code, provoke, value, limit, near) in cases() {
        let record = assembled(&clean(), provoke);
        let marks: Vec<_> = record.marks.iter().filter(|mark| mark.code == code).collect();
        let [mark] = marks[..] else { panic!("{code}: {:?}", record.marks) };
        assert_eq!(mark.limit, limit, "{code}");
        match value {
            Some(value) => assert!(close(mark.value, value), "{mark:?}, not {value}"),
            None => assert_eq!(mark.value, None, "{code}"),
        }
        assert!(!mark.text.is_empty() && !mark.text.ends_with('.'), "{mark:?}");
        let record = assembled(&clean(), near);
        assert!(!codes(&record).contains(&code), "{code}: {:?}", record.marks);
    }
}

#[test]
fn every_code_has_a_case() {
    // These need a fleet with a limit or with links, and have tests of their own.
    let apart = ["above-limit", "links-doubtful", "not-cold", "cold-unproven"];
    for code in marks::CODES.iter().filter(|code| !apart.contains(*code)) {
        assert!(cases().iter().any(|case| case.0 == *code), "{code}");
    }
    assert!(cases().iter().all(|case| marks::CODES.contains(&case.0)));
}

/// The clean point's `common` is 20,971,520 bytes/s.
#[test]
fn more_than_the_network_carries_is_marked() {
    let plan = plan(&clean());
    let outcome = outcome(&plan, &clean());
    for (limit, marked) in [(20_971_519.0, true), (20_971_520.0, false)] {
        let fleet = FleetConfig { network_limit: Some(limit), ..FleetConfig::default() };
        let (record, _) = assemble(&plan, &fleet, &ready(clean().len()), &outcome);
        assert_eq!(codes(&record).contains(&"above-limit"), marked, "{limit}");
    }
}

#[test]
fn impossible_service_times_fail_the_point() {
    let record = assembled(&clean(), |_, o| ticks(o, 0)[20].busy_ns += 5_000_001);
    assert_eq!((record.status, exit_of(&record)), (PointStatus::Failed, Exit::Partial));
}

#[test]
fn the_documents_list_the_codes_and_no_others() {
    let path: std::path::PathBuf =
        [env!("CARGO_MANIFEST_DIR"), "..", "docs", "figures.md"].iter().collect();
    let text = std::fs::read_to_string(path).unwrap();
    let (_, section) = text.split_once("\n## Marks\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    let listed: Vec<&str> = rows.map(|(code, _)| code).collect();
    assert_eq!(listed, marks::CODES);
}
