//! The accounts that must agree: what the threads counted themselves, the completion series, the
//! spread series, and the plan. Whatever disagrees is said; nothing is corrected. Pure.

use std::collections::BTreeSet;

use iofleet_shared::{
    stats::{BYTE_UNITS, NodeInterval, OP_UNITS, OpCounts, PointReport, ThreadEnd, Tick},
    work::OpKind,
};

use super::{Point, series::phase_of};
use crate::{
    events::NodeOutcome,
    plan::PointPlan,
    record::{IntervalPhase, PointRecord},
};

/// Flaws that are told; more are counted.
const TOLD_MAX: usize = 4;

/// What does not agree, in words; none where all do.
pub(super) fn flaws(point: &Point<'_>, record: &PointRecord) -> Option<String> {
    let mut flaws: Vec<String> = Vec::new();
    for (index, node, report) in &point.reports {
        let name = point.name(*index);
        let of_node = of_node(point.plan, node, report);
        flaws.extend(of_node.into_iter().map(|flaw| format!("{name}: {flaw}")));
    }
    if flaws.is_empty() {
        // The fleet's accounts are sums of the nodes': here only their merging can be wrong.
        flaws.extend(of_fleet(point, record).into_iter().map(|flaw| format!("fleet: {flaw}")));
    }
    flaws.extend(of_plan(point));
    if !point.figures.ordered() {
        flaws.push("thread_sum, last_done and span are out of order".to_owned());
    }
    let told = flaws.get(..TOLD_MAX).unwrap_or(&flaws).join("; ");
    match flaws.len() {
        0 => None,
        count if count > TOLD_MAX => Some(format!("{told}; and {} more", count - TOLD_MAX)),
        _ => Some(told),
    }
}

/// A node's threads against what it delivered, by kind of operation: its own verdict, numbers,
/// intervals and ticks.
fn of_node(plan: &PointPlan, node: &NodeOutcome, report: &PointReport) -> Vec<String> {
    let mut flaws: Vec<String> = report.sums.iter().cloned().collect();
    let ticks = node.ticks.values().map(|series| series.len() as u64).sum();
    let delivered = [
        ("intervals", u64::from(report.intervals), node.intervals.len() as u64),
        ("ticks", report.ticks, ticks),
    ];
    let missing = delivered.into_iter().filter(|(_, said, came)| said != came);
    flaws.extend(missing.map(|(what, said, came)| format!("{said} {what} were sent, {came} came")));
    let counted = report.threads.iter().flat_map(|thread| &thread.counts).map(|counts| counts.op);
    let kinds = counted.chain(node.intervals.iter().filter_map(|interval| interval.op));
    let kinds: BTreeSet<OpKind> = kinds.chain(node.ticks.keys().copied()).collect();
    for op in &kinds {
        let of_kind = of_kind(plan, node, report, *op);
        let name = if kinds.len() > 1 { format!("{}: ", op.name()) } else { String::new() };
        flaws.extend(of_kind.into_iter().map(|flaw| format!("{name}{flaw}")));
    }
    flaws
}

fn of_kind(plan: &PointPlan, node: &NodeOutcome, report: &PointReport, op: OpKind) -> Vec<String> {
    let of_threads = |part: fn(&OpCounts) -> u64| {
        let counts = report.threads.iter().flat_map(|thread| &thread.counts);
        counts.filter(|counts| counts.op == op).map(part).sum::<u64>()
    };
    let of_intervals = |ramp: bool, part: fn(&NodeInterval) -> u64| {
        let in_phase = |k| (phase_of(plan, k) == IntervalPhase::Ramp) == ramp;
        let chosen = |i: &&NodeInterval| i.op == Some(op) && in_phase(i.k);
        node.intervals.iter().filter(chosen).map(part).sum::<u64>()
    };
    let mut flaws = differing([
        ("bytes", of_threads(|t| t.bytes), of_intervals(false, |i| i.bytes)),
        ("operations", of_threads(|t| t.ops), of_intervals(false, |i| i.ops)),
        ("errors", of_threads(|t| t.errors), of_intervals(false, |i| i.errors)),
        ("warm-up bytes", of_threads(|t| t.ramp_bytes), of_intervals(true, |i| i.bytes)),
        ("warm-up operations", of_threads(|t| t.ramp_ops), of_intervals(true, |i| i.ops)),
        ("warm-up errors", of_threads(|t| t.ramp_errors), of_intervals(true, |i| i.errors)),
    ]);
    let (bytes, ops) = (of_threads(|t| t.bytes + t.ramp_bytes), of_threads(|t| t.ops + t.ramp_ops));
    let ticks = node.ticks.get(&op).map_or(&[][..], Vec::as_slice);
    flaws.extend(of_ticks(bytes, ops, ticks));
    flaws
}

/// The record's totals against its own intervals and against the merged ticks.
fn of_fleet(point: &Point<'_>, record: &PointRecord) -> Vec<String> {
    let of_intervals = |ramp: bool, part: fn(&crate::record::Interval) -> u64| {
        let intervals = record.intervals.iter();
        intervals.filter(|i| (i.phase == IntervalPhase::Ramp) == ramp).map(part).sum::<u64>()
    };
    let mut flaws = differing([
        ("bytes", record.bytes, of_intervals(false, |i| i.bytes)),
        ("operations", record.ops, of_intervals(false, |i| i.ops)),
        ("errors", record.errors, of_intervals(false, |i| i.errors)),
        ("warm-up bytes", record.ramp_bytes, of_intervals(true, |i| i.bytes)),
    ]);
    let ramp_ops: u64 = point.threads().map(|thread| thread.ramp_ops()).sum();
    let bytes = record.bytes + record.ramp_bytes;
    flaws.extend(of_ticks(bytes, record.ops + ramp_ops, &point.ticks));
    flaws
}

/// Once all nodes have reported, their threads against the plan; and what a point by size did, if
/// nothing disturbed it.
fn of_plan(point: &Point<'_>) -> Vec<String> {
    let plan = point.plan;
    if point.reports.len() != plan.active.len() {
        return Vec::new();
    }
    let mut flaws = Vec::new();
    let (threads, planned) = (point.threads().count(), plan.threads);
    if threads as u64 != u64::from(planned) {
        flaws.push(format!("{threads} threads reported, {planned} were planned"));
    }
    let undisturbed = point.reports.iter().all(|(_, _, report)| report.errors.is_empty())
        && point.threads().all(|thread| {
            thread.end == ThreadEnd::Finished && thread.errors() == 0 && thread.ramp_errors() == 0
        });
    if undisturbed && plan.spec.params.duration_ns.is_none() {
        let bytes = point.threads().map(|t| t.bytes() + t.ramp_bytes()).sum::<u64>();
        let ops = point.threads().map(|t| t.ops() + t.ramp_ops()).sum::<u64>();
        for (what, done, planned) in [("bytes", bytes, plan.bytes), ("operations", ops, plan.ops)] {
            if let Some(planned) = planned.filter(|planned| *planned != done) {
                flaws.push(format!("{done} {what} by threads, {planned} by the plan"));
            }
        }
    }
    flaws
}

fn differing<const N: usize>(accounts: [(&str, u64, u64); N]) -> Vec<String> {
    let differ = accounts.into_iter().filter(|(_, threads, intervals)| threads != intervals);
    differ
        .map(|(what, threads, intervals)| {
            format!("{threads} {what} by threads, {intervals} by intervals")
        })
        .collect()
}

/// All phases together, to the unit.
fn of_ticks(bytes: u64, ops: u64, ticks: &[Tick]) -> Vec<String> {
    let spread = |part: fn(&Tick) -> u64| ticks.iter().map(|t| u128::from(part(t))).sum::<u128>();
    let accounts = [
        ("bytes", bytes, spread(|t| t.bytes), BYTE_UNITS),
        ("operations", ops, spread(|t| t.ops), OP_UNITS),
    ];
    let differ = accounts
        .into_iter()
        .filter(|(_, threads, spread, units)| u128::from(*threads) * u128::from(*units) != *spread);
    differ
        .map(|(what, threads, spread, units)| {
            format!("{threads} {what} by threads, {spread} / {units} by ticks")
        })
        .collect()
}
