//! What a point did by kind of operation: counts, rates and latencies, over the point and over time.
//! Pure.

use std::collections::{BTreeMap, BTreeSet};

use iofleet_shared::{
    stats::{Latency, NodeInterval, OpCounts},
    work::OpKind,
};

use super::{
    Point, in_seconds, report_of,
    series::{merged_intervals, phase_of},
};
use crate::{
    events::PointOutcome,
    figures::{Payload, Window, summarise},
    plan::PointPlan,
    record::{ByOp, Histogram, Interval, IntervalOp, IntervalPhase, Latencies, LatencyKind},
};

/// Service and response times of a set of operations.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Times {
    pub(super) service: Latency,
    pub(super) response: Latency,
}

impl Times {
    fn merge(&mut self, service: &Latency, response: &Latency) {
        self.service.merge(service);
        self.response.merge(response);
    }

    pub(super) fn summary(&self) -> Latencies {
        Latencies { service: summarise(&self.service), response: summarise(&self.response) }
    }
}

/// The latencies of a point by kind of operation, merged over nodes and measured intervals.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct PointTimes(BTreeMap<OpKind, Times>);

impl PointTimes {
    pub(super) fn of(plan: &PointPlan, outcome: &PointOutcome) -> Self {
        let mut by_op: BTreeMap<OpKind, Times> = BTreeMap::new();
        let reported = outcome.nodes.values().filter(|node| report_of(node).is_some());
        for interval in reported.flat_map(|node| &node.intervals) {
            if let Some(op) = interval.op
                && phase_of(plan, interval.k) != IntervalPhase::Ramp
            {
                by_op.entry(op).or_default().merge(&interval.latency, &interval.response);
            }
        }
        Self(by_op)
    }

    /// Those of all kinds.
    pub(super) fn all(&self) -> Times {
        let mut kinds = self.0.values();
        let mut all = kinds.next().cloned().unwrap_or_default();
        kinds.for_each(|times| all.merge(&times.service, &times.response));
        all
    }

    fn summary(&self, op: OpKind) -> Latencies {
        let none = Latencies { service: None, response: None };
        self.0.get(&op).map_or(none, Times::summary)
    }

    /// As the store keeps them: of all kinds, and of each where there are several; response times
    /// where there are any.
    pub(super) fn histograms(self, all: Times) -> Vec<Histogram> {
        let several = self.0.len() > 1;
        let kinds = self.0.into_iter().filter(|_| several).map(|(op, times)| (Some(op), times));
        let sets = std::iter::once((None, all)).chain(kinds);
        let histograms = sets.flat_map(|(op, Times { service, response })| {
            let response = (response.count > 0).then_some(response);
            let response = response.map(|latency| (LatencyKind::Response, latency));
            let both = std::iter::once((LatencyKind::Service, service)).chain(response);
            both.map(move |(kind, latency)| Histogram { op, kind, latency })
        });
        histograms.collect()
    }
}

impl Point<'_> {
    /// The kinds that the point was to do, and those that were done.
    fn kinds(&self) -> BTreeSet<OpKind> {
        let planned = self.plan.spec.params.ops.iter().map(|share| share.op);
        let done = self.threads().flat_map(|thread| &thread.counts).map(|counts| counts.op);
        planned.chain(done).collect()
    }

    pub(super) fn by_op(&self, times: &PointTimes) -> Vec<ByOp> {
        self.kinds().into_iter().map(|op| self.of_op(op, times)).collect()
    }

    fn of_op(&self, op: OpKind, times: &PointTimes) -> ByOp {
        let counts = self.threads().flat_map(|thread| &thread.counts);
        let counts: Vec<&OpCounts> = counts.filter(|counts| counts.op == op).collect();
        let sum = |part: fn(&OpCounts) -> u64| counts.iter().map(|c| part(c)).sum::<u64>();
        let (bytes, ops) = (sum(|c| c.bytes), sum(|c| c.ops));
        let inside = |window: Window| {
            let series = self.reports.iter().filter_map(|(_, node, _)| node.ticks.get(&op));
            let parts = series.map(|ticks| window.of(ticks).0);
            parts.fold(Payload::default(), Payload::plus)
        };
        let in_window = self.figures.window.map(inside).unwrap_or_default();
        let (bandwidth, iops) = self.figures.of_kind(in_window, Payload::of_counts(bytes, ops));
        ByOp {
            op: op.name().to_owned(),
            bytes,
            ops,
            errors: sum(|c| c.errors),
            latency_ns: times.summary(op),
            bandwidth,
            iops,
        }
    }

    pub(super) fn intervals(&self) -> Vec<Interval> {
        let kinds = self.kinds();
        let mix = kinds.len() > 1;
        let several = kinds.into_iter().filter(|_| mix);
        let by_op: Vec<(OpKind, Vec<NodeInterval>)> =
            several.map(|op| (op, merged_intervals(&self.reports, Some(op)))).collect();
        let merged = merged_intervals(&self.reports, None).into_iter();
        merged.map(|interval| self.interval(&interval, &by_op)).collect()
    }

    fn interval(&self, all: &NodeInterval, by_op: &[(OpKind, Vec<NodeInterval>)]) -> Interval {
        let length = self.plan.spec.params.interval_ns;
        let last_end = u64::try_from(self.figures.last_end_ns.unwrap_or(0)).unwrap_or(0);
        let start = u64::from(all.k) * length;
        let ended = last_end.saturating_sub(start).min(length);
        let kinds = by_op.iter().filter_map(|(op, series)| {
            let interval = series.get(all.k as usize)?;
            Some(IntervalOp {
                op: op.name().to_owned(),
                bytes: interval.bytes,
                ops: interval.ops,
                errors: interval.errors,
                latency_ns: summarise(&interval.latency),
                response_ns: summarise(&interval.response),
            })
        });
        Interval {
            k: all.k,
            start_s: in_seconds(start),
            seconds: in_seconds(if ended == 0 { length } else { ended }),
            phase: phase_of(self.plan, all.k),
            bytes: all.bytes,
            ops: all.ops,
            errors: all.errors,
            latency_ns: summarise(&all.latency),
            response_ns: summarise(&all.response),
            by_op: kinds.collect(),
        }
    }
}
