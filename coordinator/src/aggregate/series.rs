//! The nodes' series as the fleet's: integers only, and nothing is lost. Pure.

use std::mem;

use iofleet_shared::stats::{Latency, NodeInterval, Tick};

use super::Report;
use crate::{plan::PointPlan, record::IntervalPhase};

/// The sum of the nodes' spread series, tick by tick.
pub(super) fn merged_ticks(reports: &[Report<'_>]) -> Vec<Tick> {
    let length = reports.iter().map(|(_, node, _)| node.ticks.len()).max().unwrap_or(0);
    let mut merged = vec![Tick::default(); length];
    for (_, node, _) in reports {
        for (sum, tick) in merged.iter_mut().zip(&node.ticks) {
            sum.merge(*tick);
        }
    }
    merged
}

/// The sum of the nodes' completion series, from interval 0 without a gap.
///
/// Where the latencies of one node come with a later interval, so do those of all: an interval has
/// either those of all of its operations or none, and the later one those of both.
pub(super) fn merged_intervals(reports: &[Report<'_>]) -> Vec<NodeInterval> {
    let all = || reports.iter().flat_map(|(_, node, _)| &node.intervals);
    let length = all().map(|interval| interval.k + 1).max().unwrap_or(0);
    let one = |k| NodeInterval { k, latency_intervals: 1, ..NodeInterval::default() };
    let mut merged: Vec<NodeInterval> = (0..length).map(one).collect();
    for interval in all() {
        if let Some(sum) = merged.get_mut(interval.k as usize) {
            let late = sum.latency_intervals == 0 || interval.latency_intervals == 0;
            sum.merge(interval);
            sum.latency_intervals = u32::from(!late);
        }
    }
    let (mut waiting, mut covered) = (Latency::default(), 0);
    for sum in &mut merged {
        waiting.merge(&mem::take(&mut sum.latency));
        covered += 1;
        if sum.latency_intervals > 0 {
            sum.latency = mem::take(&mut waiting);
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
