//! The nodes' series as the fleet's: integers only, and nothing is lost. Pure.

use std::{borrow::Cow, collections::BTreeMap, mem};

use iofleet_shared::{
    stats::{Latency, NodeInterval, Tick},
    work::OpKind,
};

use super::Report;
use crate::{plan::PointPlan, record::IntervalPhase};

/// A node's spread series of all kinds of operation together.
pub(super) fn all_kinds(ticks: &BTreeMap<OpKind, Vec<Tick>>) -> Cow<'_, [Tick]> {
    let mut series = ticks.values();
    match (series.next(), series.next()) {
        (None, _) => Cow::Borrowed(&[]),
        (Some(only), None) => Cow::Borrowed(only),
        (Some(_), Some(_)) => Cow::Owned(merged(ticks.values().map(Vec::as_slice))),
    }
}

/// The sum of series, tick by tick.
pub(super) fn merged<'a>(series: impl Iterator<Item = &'a [Tick]> + Clone) -> Vec<Tick> {
    let length = series.clone().map(<[Tick]>::len).max().unwrap_or(0);
    let mut merged = vec![Tick::default(); length];
    for ticks in series {
        for (sum, tick) in merged.iter_mut().zip(ticks) {
            sum.merge(*tick);
        }
    }
    merged
}

/// The sum of the nodes' completion series, from interval 0 without a gap: of one kind of operation,
/// or of all.
///
/// Where the latencies of one node come with a later interval, so do those of all: an interval has
/// either those of all of its operations or none, and the later one those of both.
pub(super) fn merged_intervals(reports: &[Report<'_>], op: Option<OpKind>) -> Vec<NodeInterval> {
    let every = || reports.iter().flat_map(|(_, node, _)| &node.intervals);
    let all = || every().filter(|interval| op.is_none() || interval.op == op);
    // Kinds may end at different times; all have the same number of intervals here.
    let length = every().map(|interval| interval.k + 1).max().unwrap_or(0);
    let one = |k| NodeInterval::empty(k, op);
    let mut merged: Vec<NodeInterval> = (0..length).map(one).collect();
    for interval in all() {
        if let Some(sum) = merged.get_mut(interval.k as usize) {
            let late = sum.latency_intervals == 0 || interval.latency_intervals == 0;
            sum.merge(interval);
            sum.latency_intervals = u32::from(!late);
        }
    }
    let (mut waiting, mut responses, mut covered) = (Latency::default(), Latency::default(), 0);
    for sum in &mut merged {
        waiting.merge(&mem::take(&mut sum.latency));
        responses.merge(&mem::take(&mut sum.response));
        covered += 1;
        if sum.latency_intervals > 0 {
            sum.latency = mem::take(&mut waiting);
            sum.response = mem::take(&mut responses);
            sum.latency_intervals = mem::take(&mut covered);
        }
    }
    merged
}

/// A warm-up is whole intervals, so that an interval belongs to it or not.
pub(super) fn phase_of(plan: &PointPlan, k: u32) -> IntervalPhase {
    let params = &plan.spec.params;
    let start = u64::from(k) * params.interval_ns;
    let deadline = params.duration_ns.map(|duration| params.ramp_ns + duration);
    if start < params.ramp_ns {
        IntervalPhase::Ramp
    } else if deadline.is_some_and(|deadline| start >= deadline) {
        IntervalPhase::Drain
    } else {
        IntervalPhase::Measure
    }
}
