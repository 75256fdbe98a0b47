//! From what the conductor gathered of a point to its record. Pure.
//!
//! The figures are of the nodes whose reports came. Of a lost node only what it had delivered
//! stands in the record, with the node itself and in no sum: its threads' ends are not known, so
//! nothing of it can be divided by a time.

use iofleet_shared::{
    ids::NodeIndex,
    stats::{ErrorCount, Latency, PointReport, ThreadEnd, ThreadReport, Tick},
    work::OpKind,
};

use crate::{
    events::{NodeOutcome, NodeReady, PointOutcome},
    exit::Exit,
    figures::{
        Durability, ExactNode, FigureInput, Figures, ThreadTimes, Window, compute, headline,
        steady, summarise,
    },
    plan::PointPlan,
    record::{
        self, ByOp, Census, ErrorKind, Headline, Interval, IntervalPhase, Latencies, Network,
        NodeStatus, PointNode, PointRecord, PointStatus, PointThread, Unfinished,
    },
    scenario::{FleetConfig, words},
};

use series::{merged_intervals, merged_ticks, phase_of};

pub use campaign::{campaign, node, repetitions, rfc3339};

mod campaign;
#[cfg(test)]
mod fixture;
mod marks;
mod series;
mod sums;
#[cfg(test)]
mod tests;

/// A node whose report came.
type Report<'a> = (NodeIndex, &'a NodeOutcome, &'a PointReport);

/// A point with all that belongs to it.
struct Point<'a> {
    plan: &'a PointPlan,
    nodes: &'a [NodeReady],
    outcome: &'a PointOutcome,
    /// Nodes whose reports came.
    reports: Vec<Report<'a>>,
    /// Their spread series, merged.
    ticks: Vec<Tick>,
    figures: Figures,
    headline: Option<Headline>,
}

/// The record of a point that took place, or was to, and its latencies as the store keeps them.
#[must_use]
pub fn assemble(
    plan: &PointPlan,
    fleet: &FleetConfig,
    nodes: &[NodeReady],
    outcome: &PointOutcome,
) -> (PointRecord, Latency) {
    let nodes_of_point = outcome.nodes.iter();
    let reports: Vec<Report<'_>> =
        nodes_of_point.filter_map(|(index, node)| Some((*index, node, report_of(node)?))).collect();
    let ticks = merged_ticks(&reports);
    let times: Vec<ThreadTimes> =
        reports.iter().flat_map(|(_, _, report)| report.threads.iter().map(times_of)).collect();
    let params = &plan.spec.params;
    let exact: Vec<_> = reports
        .iter()
        .filter_map(|(_, node, report)| {
            Some(ExactNode { ticks: &node.ticks, first_end: report.first_end? })
        })
        .collect();
    let ramp_ns = params.ramp_ns;
    let input = FigureInput { threads: &times, ticks: &ticks, exact: &exact, ramp_ns };
    let figures = compute(&input);
    let durability = Durability::of(params.op, params.direct, params.fsync);
    let headline = headline(&figures, durability);
    let steady = steady_of(plan, &figures, &input);
    let point = Point { plan, nodes, outcome, reports, ticks, figures, headline };
    let latency = latency_of(plan, outcome);
    let mut record = point.record(&latency);
    record.network = network(fleet, plan, figures.bandwidth.common);
    record.steady = steady;
    let flaws = sums::flaws(&point, &record);
    record.marks = marks::of(&point, &record, durability, flaws.as_deref());
    (record.status, record.why) = point.status(flaws.as_deref());
    (record, latency)
}

/// The record of a point that was not begun.
#[must_use]
pub fn skipped(plan: &PointPlan, why: &str) -> PointRecord {
    let outcome = PointOutcome {
        index: plan.spec.index,
        nodes: std::collections::BTreeMap::new(),
        t0_wall: std::time::UNIX_EPOCH,
        t0_fleet_ns: 0,
        interrupted: false,
        failed: None,
    };
    let point = Point {
        plan,
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
        ..point.record(&Latency::default())
    }
}

/// What a point adds to the exit code of its campaign.
#[must_use]
pub fn exit_of(point: &PointRecord) -> Exit {
    match point.status {
        PointStatus::Ok if point.errors > 0 || !point.error_kinds.is_empty() => Exit::IoErrors,
        PointStatus::Ok => Exit::Done,
        PointStatus::Partial | PointStatus::Failed | PointStatus::Skipped => Exit::Partial,
    }
}

/// The latencies of a point, merged over nodes and measured intervals.
fn latency_of(plan: &PointPlan, outcome: &PointOutcome) -> Latency {
    let mut merged = Latency::default();
    let reported = outcome.nodes.values().filter(|node| report_of(node).is_some());
    for interval in reported.flat_map(|node| &node.intervals) {
        if phase_of(plan, interval.k) != IntervalPhase::Ramp {
            merged.merge(&interval.latency);
        }
    }
    merged
}

impl<'a> Point<'a> {
    fn threads(&self) -> impl Iterator<Item = &'a ThreadReport> {
        self.reports.iter().flat_map(|(_, _, report)| &report.threads)
    }

    fn record(&self, latency: &Latency) -> PointRecord {
        let spec = &self.plan.spec;
        let threads = || self.threads();
        let sum = |part: fn(&ThreadReport) -> u64| threads().map(part).sum::<u64>();
        let (bytes, ops, errors) = (sum(|t| t.bytes), sum(|t| t.ops), sum(|t| t.errors));
        let op = words::op(spec.params.op).to_owned();
        let latency_ns = Latencies { service: summarise(latency), response: None };
        let begun = !self.outcome.nodes.is_empty() || self.outcome.failed.is_some();
        PointRecord {
            index: spec.index,
            stage: spec.stage.clone(),
            op: op.clone(),
            repeat: spec.repeat,
            status: PointStatus::Ok,
            why: None,
            marks: Vec::new(),
            params: params(self.plan),
            t0: begun.then(|| rfc3339(self.outcome.t0_wall)),
            interval_ns: spec.params.interval_ns,
            census: self.census(),
            bytes,
            ops,
            errors,
            ramp_bytes: sum(|t| t.ramp_bytes),
            bytes_touched: sum(|t| t.bytes_touched),
            passes: mean(threads().map(|t| to_f64(t.passes_milli) / 1000.0)),
            short_transfers: sum(|t| t.short_transfers),
            unfinished: Unfinished {
                count: threads().filter(|t| t.unfinished_ns.is_some()).count() as u64,
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
            busy_share: self.figures.busy_share,
            by_op: vec![ByOp { op, bytes, ops, errors, latency_ns: latency_ns.clone() }],
            latency_ns,
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

    fn point_nodes(&self) -> Vec<PointNode> {
        let nodes = self.outcome.nodes.iter();
        nodes
            .map(|(index, node)| match report_of(node) {
                Some(report) => self.reported(*index, node, report),
                None => self.lost(*index, node),
            })
            .collect()
    }

    fn reported(&self, index: NodeIndex, node: &NodeOutcome, report: &PointReport) -> PointNode {
        let stuck = report.threads.iter().any(|thread| thread.end == ThreadEnd::Stuck);
        let part = |window: Window| window.of(&node.ticks).0.per(window.length_ns()).bytes;
        PointNode {
            node: self.name(index),
            status: if stuck { NodeStatus::Stuck } else { NodeStatus::Ok },
            bytes: report.threads.iter().map(|thread| thread.bytes).sum(),
            ops: report.threads.iter().map(|thread| thread.ops).sum(),
            errors: report.threads.iter().map(|thread| thread.errors).sum(),
            bandwidth: self.figures.window.map(part),
            cpu_share: report.cpu_share,
        }
    }

    fn lost(&self, index: NodeIndex, node: &NodeOutcome) -> PointNode {
        let measured =
            || node.intervals.iter().filter(|i| phase_of(self.plan, i.k) != IntervalPhase::Ramp);
        PointNode {
            node: self.name(index),
            status: NodeStatus::Lost,
            bytes: measured().map(|interval| interval.bytes).sum(),
            ops: measured().map(|interval| interval.ops).sum(),
            errors: measured().map(|interval| interval.errors).sum(),
            bandwidth: None,
            cpu_share: None,
        }
    }

    fn point_threads(&self) -> Vec<PointThread> {
        let mut threads: Vec<PointThread> = self
            .reports
            .iter()
            .flat_map(|(index, _, report)| report.threads.iter().map(|t| (*index, t)))
            .map(|(index, thread)| PointThread {
                thread: thread.thread,
                node: self.name(index),
                end: end_word(thread.end).to_owned(),
                bytes: thread.bytes,
                ops: thread.ops,
                errors: thread.errors,
                begin_s: thread.begin_ns.map(signed_seconds),
                end_s: thread.ended_ns.map(signed_seconds),
            })
            .collect();
        threads.sort_by_key(|thread| thread.thread);
        threads
    }

    fn error_kinds(&self) -> Vec<ErrorKind> {
        let kinds = self.reports.iter();
        kinds
            .flat_map(|(index, _, report)| report.errors.iter().map(|error| (*index, error)))
            .map(|(index, error)| {
                let ErrorCount { op, call, errno, count, file, offset, sum_ns: _, max_ns } = error;
                ErrorKind {
                    node: self.name(index),
                    op: words::op(*op).to_owned(),
                    call: call.clone(),
                    errno: *errno,
                    text: error_text(*errno),
                    count: *count,
                    file: file.clone(),
                    offset: *offset,
                    max_ns: *max_ns,
                }
            })
            .collect()
    }

    fn intervals(&self) -> Vec<Interval> {
        let length = self.plan.spec.params.interval_ns;
        let last_end = u64::try_from(self.figures.last_end_ns.unwrap_or(0)).unwrap_or(0);
        let merged = merged_intervals(&self.reports).into_iter();
        let fleet = merged.map(|interval| {
            let start = u64::from(interval.k) * length;
            let ended = last_end.saturating_sub(start).min(length);
            Interval {
                k: interval.k,
                start_s: in_seconds(start),
                seconds: in_seconds(if ended == 0 { length } else { ended }),
                phase: phase_of(self.plan, interval.k),
                bytes: interval.bytes,
                ops: interval.ops,
                errors: interval.errors,
                latency_ns: summarise(&interval.latency),
            }
        });
        fleet.collect()
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
    steady(&figures.spread(input), begin, end)
}

fn times_of(thread: &ThreadReport) -> ThreadTimes {
    ThreadTimes {
        bytes: thread.bytes,
        ops: thread.ops,
        first_issue_ns: thread.first_issue_ns,
        begin_ns: thread.begin_ns,
        ended_ns: thread.ended_ns,
        busy_end_ns: thread.busy_end_ns,
        // Plans have no thread without blocks.
        has_work: true,
    }
}

/// The limit that the scenario states for the nodes that took part, and the share of it that
/// payload reached.
fn network(fleet: &FleetConfig, plan: &PointPlan, common: Option<f64>) -> Network {
    let nodes = to_f64(plan.active.len() as u64);
    let links = fleet.link_speed.map(|speed| (speed * nodes, "link_speed"));
    let stated = fleet.network_limit.map(|limit| (limit, "network_limit"));
    let least = links.into_iter().chain(stated).min_by(|a, b| a.0.total_cmp(&b.0));
    Network {
        limit_bytes_per_s: least.map(|(limit, _)| limit),
        limit_source: least.map(|(_, source)| source.to_owned()),
        payload_share: least.zip(common).map(|((limit, _), common)| common / limit),
        ..Network::default()
    }
}

fn params(plan: &PointPlan) -> record::Params {
    let params = &plan.spec.params;
    let writes = params.op == OpKind::Write;
    let swept = plan.spec.swept.iter();
    record::Params {
        threads: plan.threads,
        nodes: u32::try_from(plan.active.len()).unwrap_or(u32::MAX),
        layout: words::layout(params.layout).to_owned(),
        file_bytes: params.file_bytes,
        block_bytes: params.block_bytes,
        pattern: words::pattern(params.pattern).to_owned(),
        duration_ns: params.duration_ns,
        ramp_ns: params.ramp_ns,
        direct: params.direct,
        engine: words::engine(params.engine).to_owned(),
        fsync: writes.then(|| words::fsync(params.fsync).to_owned()),
        fresh: writes.then_some(params.fresh),
        seed: params.seed,
        swept: swept
            .map(|(key, value)| record::Swept { key: key.clone(), value: value.clone() })
            .collect(),
    }
}

fn end_word(end: ThreadEnd) -> &'static str {
    match end {
        ThreadEnd::Finished => "finished",
        ThreadEnd::Deadline => "deadline",
        ThreadEnd::Stopped => "stopped",
        ThreadEnd::Errors => "errors",
        ThreadEnd::Stuck => "stuck",
    }
}

fn error_text(errno: i32) -> String {
    if errno == 0 {
        return "fewer bytes than were written there".to_owned();
    }
    std::io::Error::from_raw_os_error(errno).to_string()
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
