//! A point's nodes, threads and errors, and what was asked of it. Pure.

use iofleet_shared::{
    ids::NodeIndex,
    stats::{ErrorCount, PointReport, ThreadEnd},
    work::{Advice, EngineSpec, FileOptions},
};

use super::{
    Point,
    cpu::{busiest_core, cpu, run_delay},
    network, report_of, samples,
    series::{all_kinds, phase_of},
    signed_seconds,
};
use crate::{
    events::NodeOutcome,
    figures::Window,
    plan::PointPlan,
    record::{
        ErrorKind, IntervalPhase, NodeStatus, OpWeight, Options, Params, PointNode, PointThread,
        Rate, SizeWeight, Swept,
    },
    scenario::{MixBy, Offer, Verify, words},
};

impl Point<'_> {
    pub(super) fn point_nodes(&self) -> Vec<PointNode> {
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
        let part = |window: Window| window.of(&all_kinds(&node.ticks)).0.per(window.length_ns());
        let part = self.figures.window.map(part);
        let cpu = cpu(report.threads.iter());
        let facts = self.nodes.get(index.at()).and_then(|node| node.target.network.as_ref());
        let wire = network::of_node(&(index, node, report), facts);
        PointNode {
            node: self.name(index),
            status: if stuck { NodeStatus::Stuck } else { NodeStatus::Ok },
            bytes: report.threads.iter().map(|thread| thread.bytes()).sum(),
            ops: report.threads.iter().map(|thread| thread.ops()).sum(),
            errors: report.threads.iter().map(|thread| thread.errors()).sum(),
            bandwidth: part.map(|part| part.bytes),
            iops: part.map(|part| part.ops),
            cpu_ns: cpu.map(|cpu| cpu.user_ns.saturating_add(cpu.system_ns)),
            cpu_system_ns: cpu.map(|cpu| cpu.system_ns),
            cpu_share: report.cpu_share,
            tx_bytes: wire.map(|wire| network::rounded(wire.tx)),
            rx_bytes: wire.map(|wire| network::rounded(wire.rx)),
            busiest_core_share: busiest_core(node, report),
            link_share: network::share_of_node(
                self,
                &(index, node, report),
                facts,
                self.fleet.link_speed.of(&self.name(index)),
            ),
            run_delay_share: run_delay(node, report),
            cold_start: report.cold.map(|cold| cold.name().to_owned()),
            samples: samples::between(&node.samples, facts),
            remarks: report.remarks.clone(),
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
        }
    }

    pub(super) fn point_threads(&self) -> Vec<PointThread> {
        let mut threads: Vec<PointThread> = self
            .reports
            .iter()
            .flat_map(|(index, _, report)| report.threads.iter().map(|t| (*index, t)))
            .map(|(index, thread)| PointThread {
                thread: thread.thread,
                node: self.name(index),
                end: end_word(thread.end).to_owned(),
                bytes: thread.bytes(),
                ops: thread.ops(),
                errors: thread.errors(),
                begin_s: thread.begin_ns.map(signed_seconds),
                end_s: thread.ended_ns.map(signed_seconds),
            })
            .collect();
        threads.sort_by_key(|thread| thread.thread);
        threads
    }

    pub(super) fn error_kinds(&self) -> Vec<ErrorKind> {
        let kinds = self.reports.iter();
        kinds
            .flat_map(|(index, _, report)| report.errors.iter().map(|error| (*index, error)))
            .map(|(index, error)| {
                let ErrorCount { op, call, errno, count, file, offset, sum_ns: _, max_ns } = error;
                ErrorKind {
                    node: self.name(index),
                    op: op.name().to_owned(),
                    call: call.clone(),
                    errno: *errno,
                    text: error_text(call, *errno),
                    count: *count,
                    file: file.clone(),
                    offset: *offset,
                    max_ns: *max_ns,
                }
            })
            .collect()
    }
}

pub(super) fn params(plan: &PointPlan) -> Params {
    let params = &plan.spec.params;
    let swept = plan.spec.swept.iter();
    let ops = params.ops.iter();
    let blocks = params.blocks.iter();
    Params {
        threads: plan.threads,
        nodes: u32::try_from(plan.active.len()).unwrap_or(u32::MAX),
        ops: ops
            .map(|share| OpWeight { op: share.op.name().to_owned(), weight: share.weight })
            .collect(),
        layout: words::layout(params.layout).to_owned(),
        file_bytes: params.file_bytes(),
        block_bytes: params.block_bytes(),
        blocks: blocks
            .map(|share| SizeWeight { bytes: share.bytes, weight: share.weight })
            .collect(),
        pattern: words::pattern(params.pattern).to_owned(),
        duration_ns: params.duration_ns,
        ramp_ns: params.ramp_ns,
        direct: params.options.direct,
        options: options(params.options),
        engine: words::engine(params.engine.kind).to_owned(),
        depth: params.engine.depth,
        engine_flags: engine_flags(params.engine),
        rate: plan.offered().map(|(per_s, exponential)| Rate { per_s, exponential }),
        think_ns: params.think_ns(),
        burst: burst(params.offer),
        mix_by_thread: params.is_mix() && params.mix_by == MixBy::Thread,
        cores: params.placement.cores.clone(),
        numa_nodes: params.placement.numa_nodes.clone(),
        huge_pages: params.placement.huge_pages,
        cold: params.cold,
        verify: params.verify != Verify::Off,
        fsync: params.writes().then(|| words::fsync(params.fsync).to_owned()),
        fresh: params.writes().then_some(params.fresh),
        seed: params.seed,
        swept: swept.map(|(key, value)| Swept { key: key.clone(), value: value.clone() }).collect(),
    }
}

fn burst(offer: Offer) -> u32 {
    match offer {
        Offer::Closed { think_ns, burst } if think_ns > 0 => burst,
        Offer::Closed { .. } | Offer::Open { .. } => 0,
    }
}

fn options(options: FileOptions) -> Options {
    let FileOptions { direct: _, dsync, append, preallocate, truncate, advice, lock } = options;
    let advice = advice.map(|advice| match advice {
        Advice::Sequential => "sequential",
        Advice::Random => "random",
        Advice::WillNeed => "will-need",
        Advice::DontNeed => "dont-need",
    });
    Options { dsync, append, preallocate, truncate, lock, advice: advice.map(str::to_owned) }
}

fn engine_flags(engine: EngineSpec) -> Vec<String> {
    let EngineSpec { kind: _, depth: _, sqpoll, iopoll, high_priority } = engine;
    let flags = [("sqpoll", sqpoll), ("iopoll", iopoll), ("high-priority", high_priority)];
    flags.into_iter().filter(|(_, set)| *set).map(|(name, _)| name.to_owned()).collect()
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

pub(super) fn error_text(call: &str, errno: i32) -> String {
    match (errno, call) {
        (0, "short read") => return "fewer bytes than were written there".to_owned(),
        (0, _) => return "no reason was given".to_owned(),
        _ => {}
    }
    std::io::Error::from_raw_os_error(errno).to_string()
}
