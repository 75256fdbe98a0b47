//! From what the conductor gathered of a point to its record. Pure.
//!
//! The figures are of the nodes whose reports came. Of a lost node only what it had delivered
//! stands in the record, with the node itself and in no sum: its threads' ends are not known, so
//! nothing of it can be divided by a time.

use iofleet_shared::{
    ids::NodeIndex,
    stats::{PointReport, ThreadEnd, ThreadReport, Tick},
    work::Layout,
};

use crate::{
    events::{NodeOutcome, NodeReady, PointOutcome},
    exit::Exit,
    figures::{
        Durability, ExactNode, FigureInput, Figures, Payload, ThreadTimes, compute, headline,
        steady,
    },
    plan::PointPlan,
    record::{self, Census, Headline, Histogram, Network, PointRecord, PointStatus, Unfinished},
    scenario::{FleetConfig, Params},
};

use kinds::{PointTimes, Times};
use series::{all_kinds, merged};

pub use campaign::{campaign, load_curves, node, repetitions, rfc3339};
pub use require::requirements;
pub use scaling::scaling;

mod campaign;
mod checks;
mod cpu;
#[cfg(test)]
mod fixture;
mod kinds;
mod marks;
mod network;
mod parts;
mod require;
mod samples;
mod scaling;
mod series;
mod sums;
#[cfg(test)]
mod tests;

/// A node whose report came.
type Report<'a> = (NodeIndex, &'a NodeOutcome, &'a PointReport);

/// A point with all that belongs to it.
struct Point<'a> {
    plan: &'a PointPlan,
    fleet: &'a FleetConfig,
    nodes: &'a [NodeReady],
    outcome: &'a PointOutcome,
    /// Nodes whose reports came.
    reports: Vec<Report<'a>>,
    /// Their spread series, merged.
    ticks: Vec<Tick>,
    figures: Figures,
    headline: Option<Headline>,
}

/// The record of a point that took place, or was to, and its histograms as the store keeps them.
#[must_use]
pub fn assemble(
    plan: &PointPlan,
    fleet: &FleetConfig,
    nodes: &[NodeReady],
    outcome: &PointOutcome,
) -> (PointRecord, Vec<Histogram>) {
    let nodes_of_point = outcome.nodes.iter();
    let reports: Vec<Report<'_>> =
        nodes_of_point.filter_map(|(index, node)| Some((*index, node, report_of(node)?))).collect();
    let node_ticks: Vec<_> = reports.iter().map(|(_, node, _)| all_kinds(&node.ticks)).collect();
    let ticks = merged(node_ticks.iter().map(|ticks| &**ticks));
    let times: Vec<ThreadTimes> =
        reports.iter().flat_map(|(_, _, report)| report.threads.iter().map(times_of)).collect();
    let params = &plan.spec.params;
    let exact = reports.iter().zip(&node_ticks);
    let exact: Vec<_> = exact
        .filter_map(|((_, _, report), ticks)| {
            Some(ExactNode { ticks, first_end: report.first_end? })
        })
        .collect();
    let input = FigureInput {
        threads: &times,
        ticks: &ticks,
        exact: &exact,
        ramp_ns: params.ramp_ns,
        depth: params.engine.depth,
        offered_until_ns: params.is_open().then(|| deadline_ns(plan).unwrap_or(i64::MAX)),
    };
    let figures = compute(&input);
    let durability = durability(params);
    let headline = headline(&figures, durability);
    let steady = steady_of(plan, &figures, &input);
    let point = Point { plan, fleet, nodes, outcome, reports, ticks, figures, headline };
    let by_op = PointTimes::of(plan, outcome);
    let all = by_op.all();
    let mut record = point.record(&by_op, &all);
    record.network = network::of(&point, fleet);
    record.steady = steady;
    let flaws = sums::flaws(&point, &record);
    record.marks = marks::of(&point, &record, durability, flaws.as_deref());
    (record.status, record.why) = point.status(flaws.as_deref());
    (record, by_op.histograms(all))
}

/// The record of a point that was not begun.
#[must_use]
pub fn skipped(plan: &PointPlan, why: &str) -> PointRecord {
    let outcome = PointOutcome {
        index: plan.spec.index,
        nodes: std::collections::BTreeMap::new(),
        t0_wall: std::time::UNIX_EPOCH,
        t0_fleet_ns: 0,
        observers: Vec::new(),
        interrupted: false,
        failed: None,
    };
    let fleet = FleetConfig::default();
    let point = Point {
        plan,
        fleet: &fleet,
        nodes: &[],
        outcome: &outcome,
        reports: Vec::new(),
        ticks: Vec::new(),
        figures: Figures::default(),
        headline: None,
    };
    PointRecord {
        status: PointStatus::Skipped,
        why: Some(why.to_owned()),
        t0: None,
        ..point.record(&PointTimes::default(), &Times::default())
    }
}

/// What a point adds to the exit code of its campaign.
#[must_use]
pub fn exit_of(point: &PointRecord) -> Exit {
    let of_status = match point.status {
        PointStatus::Ok if point.errors > 0 || !point.error_kinds.is_empty() => Exit::IoErrors,
        PointStatus::Ok => Exit::Done,
        PointStatus::Partial | PointStatus::Failed | PointStatus::Skipped => Exit::Partial,
    };
    if point.damaged_units() > 0 { of_status.worse(Exit::Damaged) } else { of_status }
}

impl<'a> Point<'a> {
    fn threads(&self) -> impl Iterator<Item = &'a ThreadReport> {
        self.reports.iter().flat_map(|(_, _, report)| &report.threads)
    }

    fn record(&self, by_op: &PointTimes, all: &Times) -> PointRecord {
        let spec = &self.plan.spec;
        let threads = || self.threads();
        let sum = |part: fn(&ThreadReport) -> u64| threads().map(part).sum::<u64>();
        let begun = !self.outcome.nodes.is_empty() || self.outcome.failed.is_some();
        PointRecord {
            index: spec.index,
            stage: spec.stage.clone(),
            op: spec.params.op_word().to_owned(),
            repeat: spec.repeat,
            status: PointStatus::Ok,
            why: None,
            marks: Vec::new(),
            params: parts::params(self.plan),
            t0: begun.then(|| rfc3339(self.outcome.t0_wall)),
            interval_ns: spec.params.interval_ns,
            census: self.census(),
            bytes: sum(ThreadReport::bytes),
            ops: sum(ThreadReport::ops),
            errors: sum(ThreadReport::errors),
            ramp_bytes: sum(ThreadReport::ramp_bytes),
            bytes_touched: threads().map(|t| t.bytes_touched).sum(),
            passes: mean(threads().map(|t| to_f64(t.passes_milli) / 1000.0)),
            short_transfers: sum(|t| t.short_transfers),
            unfinished: Unfinished {
                count: sum(|t| u64::from(t.unfinished)),
                oldest_ns: threads().filter_map(|t| t.unfinished_ns).max(),
            },
            headline: self.headline,
            bandwidth: self.figures.bandwidth,
            iops: self.figures.iops,
            window: self.window(),
            start_skew_ns: self.figures.start_skew_ns,
            clock_uncertainty_ns: self.reports.iter().map(|(_, n, _)| n.clock.uncertainty_ns).max(),
            clock_residual_ns: self
                .reports
                .iter()
                .filter_map(|(_, n, _)| n.residual_ns.map(i64::unsigned_abs))
                .max(),
            busy_share: self.busy_share(),
            cpu: cpu::cpu(self.threads()),
            latency_ns: all.summary(),
            by_op: self.by_op(by_op),
            offered: self.offered(),
            files: self.files(),
            verification: self.verification(),
            open_s: seconds(threads().map(|t| t.open_ns).max()),
            fsync_s: seconds(threads().filter_map(|t| t.fsync_ns).max()),
            syncfs_s: seconds(self.reports.iter().filter_map(|(_, _, r)| r.syncfs_ns).max()),
            steady: None,
            network: Network::default(),
            verdict: None,
            nodes: self.point_nodes(),
            threads: self.point_threads(),
            error_kinds: self.error_kinds(),
            intervals: self.intervals(),
        }
    }

    /// Threads that pause are not in service, nor are those that open and close the files of a tree
    /// between operations on data, and that is no doubt.
    fn busy_share(&self) -> Option<f64> {
        let params = &self.plan.spec.params;
        let opens_files = params.layout == Layout::Tree && params.moves_data();
        self.figures.busy_share.filter(|_| params.think_ns() == 0 && !opens_files)
    }

    fn name(&self, index: NodeIndex) -> String {
        let known = self.nodes.get(index.at()).map(|node| node.name.clone());
        known.unwrap_or_else(|| format!("node {}", index.0))
    }

    fn census(&self) -> Census {
        let lost = self.outcome.nodes.iter().filter(|(_, node)| report_of(node).is_none());
        Census {
            expected: u32::try_from(self.plan.active.len()).unwrap_or(u32::MAX),
            reported: u32::try_from(self.reports.len()).unwrap_or(u32::MAX),
            lost: lost.map(|(index, _)| self.name(*index)).collect(),
        }
    }

    fn window(&self) -> Option<record::Window> {
        let window = self.figures.window?;
        Some(record::Window {
            start_s: in_seconds(window.begin_ns()),
            seconds: in_seconds(window.length_ns()),
            bytes: window.payload.bytes,
            ops: window.payload.ops,
            overlap: self.figures.overlap.unwrap_or(0.0),
        })
    }

    /// Nodes without a report, and why.
    fn silent(&self) -> Vec<String> {
        let silent = self.outcome.nodes.iter().filter(|(_, node)| report_of(node).is_none());
        silent
            .map(|(index, node)| {
                let reason = node.lost.as_deref().unwrap_or("no report");
                format!("{}: {reason}", self.name(*index))
            })
            .collect()
    }

    fn status(&self, sums: Option<&str>) -> (PointStatus, Option<String>) {
        if let Some(why) = &self.outcome.failed {
            return (PointStatus::Failed, Some(why.clone()));
        }
        if self.reports.is_empty() {
            let lost = self.silent().join("; ");
            let why = if lost.is_empty() { String::new() } else { format!(": {lost}") };
            return (PointStatus::Failed, Some(format!("no node reported{why}")));
        }
        if let Some(flaw) = sums {
            return (PointStatus::Failed, Some(format!("the accounts do not agree: {flaw}")));
        }
        if self.figures.busy_share.is_some_and(|share| share > crate::figures::BUSY_SHARE_MAX) {
            let why = "more service time than threads had time: a fault of iofleet";
            return (PointStatus::Failed, Some(why.to_owned()));
        }
        let mut why: Vec<String> = Vec::new();
        if self.outcome.interrupted {
            why.push("interrupted".to_owned());
        }
        why.extend(self.silent());
        why.extend(self.reports.iter().filter_map(|(index, _, report)| {
            Some(format!("{}: {}", self.name(*index), report.stopped.as_ref()?))
        }));
        for (end, text) in [
            (ThreadEnd::Stuck, "never returned from an operation"),
            (ThreadEnd::Errors, "ended by errors"),
            (ThreadEnd::Stopped, "were stopped"),
        ] {
            let count = self.threads().filter(|thread| thread.end == end).count();
            if count > 0 && !(self.outcome.interrupted && end == ThreadEnd::Stopped) {
                why.push(format!("{count} of {} threads {text}", self.plan.threads));
            }
        }
        if why.is_empty() {
            (PointStatus::Ok, None)
        } else {
            (PointStatus::Partial, Some(why.join("; ")))
        }
    }
}

/// A node's report; none where it is lost, even if it had reported before.
fn report_of(node: &NodeOutcome) -> Option<&PointReport> {
    node.report.as_ref().filter(|_| node.lost.is_none())
}

/// Rounds of a point by time lie between warm-up and deadline: what drains after it is no state.
fn steady_of(
    plan: &PointPlan,
    figures: &Figures,
    input: &FigureInput<'_>,
) -> Option<record::Steady> {
    let (first, last) = figures.first_begin_ns.zip(figures.last_busy_ns)?;
    let params = &plan.spec.params;
    let (begin, end) = match params.duration_ns {
        Some(duration) => {
            let begin = i64::try_from(params.ramp_ns).unwrap_or(i64::MAX);
            (begin, begin.saturating_add_unsigned(duration).min(last))
        }
        None => (first, last),
    };
    let of: fn(Payload) -> f64 =
        if params.moves_data() { |payload| payload.bytes } else { |payload| payload.ops };
    steady(&figures.spread(input), begin, end, of)
}

/// End of the measured phase of a point by time, ns after T0.
fn deadline_ns(plan: &PointPlan) -> Option<i64> {
    let params = &plan.spec.params;
    let deadline = params.ramp_ns.saturating_add(params.duration_ns?);
    Some(i64::try_from(deadline).unwrap_or(i64::MAX))
}

/// Direct and synchronous writes have left the page cache when they return.
fn durability(params: &Params) -> Durability {
    let buffered = !params.options.direct && !params.options.dsync;
    Durability::of(params.writes(), buffered, params.fsync)
}

fn times_of(thread: &ThreadReport) -> ThreadTimes {
    ThreadTimes {
        bytes: thread.bytes(),
        ops: thread.ops(),
        first_issue_ns: thread.first_issue_ns,
        begin_ns: thread.begin_ns,
        ended_ns: thread.ended_ns,
        busy_begin_ns: thread.busy_begin_ns,
        busy_end_ns: thread.busy_end_ns,
        // Plans have no thread without blocks.
        has_work: true,
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    values.for_each(|value| {
        sum += value;
        count += 1.0;
    });
    (count > 0.0).then(|| sum / count)
}

fn seconds(ns: Option<u64>) -> Option<f64> {
    ns.map(in_seconds)
}

fn in_seconds(ns: u64) -> f64 {
    to_f64(ns) / 1e9
}

#[expect(clippy::cast_precision_loss, reason = "53 bits of a time or a count are enough")]
fn signed_seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

#[expect(clippy::cast_precision_loss, reason = "53 bits of a time or a count are enough")]
fn to_f64(value: u64) -> f64 {
    value as f64
}
