//! What a simulated crew does and delivers, so plain that figures can be worked out by hand: each
//! thread issues an operation a millisecond, and each takes as many of them as its queue is deep.

use std::collections::BTreeMap;

use iofleet_shared::{
    limits::TICK_NS,
    stats::{
        BYTE_UNITS, CpuTime, DamageCount, FileTimes, Latency, LatencyCounts, NodeInterval,
        OP_UNITS, Offered, OpCounts, PointReport, ThreadEnd, ThreadReport, Tick, Written,
        WrittenPart, interval_of,
    },
    work::{OpKind, OpShare, WorkerPlan},
};

/// From one issue of a thread to the next.
pub(crate) const OP_NS: u64 = 1_000_000;

/// How the threads of a worker behave, beside what its plan says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Manner {
    /// Their first issue, in ms after T0.
    pub(crate) late_ms: u64,
    /// Operations wait for so long before they are issued.
    pub(crate) waits_ns: Option<u64>,
    /// What it says of its offered load.
    pub(crate) offered: Option<Offered>,
    /// What its first thread finds.
    pub(crate) damages: Vec<DamageCount>,
}

/// All that leaves a worker.
pub(crate) struct Delivered {
    /// Those of one k follow each other.
    pub(crate) intervals: Vec<NodeInterval>,
    pub(crate) ticks: BTreeMap<OpKind, Vec<Tick>>,
    pub(crate) report: PointReport,
}

/// One thread for so long.
struct Script<'a> {
    plan: &'a WorkerPlan,
    late_ns: u64,
    count: u64,
    service_ns: u64,
}

/// One operation.
struct Op {
    kind: OpKind,
    bytes: u64,
    issue_ns: u64,
    done_ns: u64,
}

impl Script<'_> {
    fn op(&self, number: u64) -> Op {
        let kind = kind_of(&self.plan.threads[0].ops, number);
        let bytes = if kind.moves_data() { self.plan.block_bytes() } else { 0 };
        let issue_ns = self.late_ns + number * OP_NS;
        Op { kind, bytes, issue_ns, done_ns: issue_ns + self.service_ns }
    }

    fn ops(&self) -> impl Iterator<Item = Op> {
        (0..self.count).map(|number| self.op(number))
    }

    /// What completes on the edge of an interval just did so before it.
    fn interval(&self, op: &Op) -> u32 {
        interval_of(i64::try_from(op.done_ns - 1).unwrap(), self.plan.interval_ns)
    }
}

/// Kinds take turns by their weights.
fn kind_of(ops: &[OpShare], number: u64) -> OpKind {
    let sum: u32 = ops.iter().map(|share| share.weight).sum();
    let mut place = u32::try_from(number % u64::from(sum)).unwrap();
    for share in ops {
        if place < share.weight {
            return share.op;
        }
        place -= share.weight;
    }
    unreachable!("a place below the sum of weights")
}

/// What leaves a worker whose threads issue for so long.
pub(crate) fn deliver(
    plan: &WorkerPlan,
    manner: &Manner,
    length_ns: u64,
    t0_worker_ns: u64,
) -> Delivered {
    let late_ns = manner.late_ms * OP_NS;
    let script = Script {
        plan,
        late_ns,
        count: length_ns.saturating_sub(late_ns) / OP_NS,
        service_ns: u64::from(plan.engine.depth) * OP_NS,
    };
    let (intervals, ticks) = (intervals(&script, manner), ticks(&script));
    let mut threads: Vec<ThreadReport> =
        plan.threads.iter().map(|thread| thread_report(&script, thread.thread)).collect();
    threads[0].damages.clone_from(&manner.damages);
    let report = PointReport {
        point: plan.point,
        t0_worker_ns,
        threads,
        errors: Vec::new(),
        intervals: u32::try_from(intervals.len()).unwrap(),
        ticks: ticks.values().map(|series| series.len() as u64).sum(),
        samples: 0,
        syncfs_ns: None,
        cpu_share: None,
        stamp_residual_ns: 0,
        first_end: None,
        offered: manner.offered,
        remarks: Vec::new(),
        cold: None,
        holes: None,
        stopped: None,
        sums: None,
    };
    Delivered { intervals, ticks, report }
}

fn intervals(script: &Script<'_>, manner: &Manner) -> Vec<NodeInterval> {
    let threads = script.plan.threads.len() as u64;
    let last = script.ops().last().map_or(0, |op| script.interval(&op) + 1);
    let mut intervals = Vec::new();
    for (k, kind) in (0..last).flat_map(|k| script.plan.ops().into_iter().map(move |op| (k, op))) {
        let own = || script.ops().filter(|op| script.interval(op) == k && op.kind == kind);
        let ops = own().count() as u64 * threads;
        let of = |ns: u64| {
            let mut counts = LatencyCounts::new();
            (0..ops).for_each(|_| counts.record(ns));
            counts.to_latency()
        };
        intervals.push(NodeInterval {
            bytes: own().map(|op| op.bytes).sum::<u64>() * threads,
            ops,
            latency: of(script.service_ns),
            response: manner
                .waits_ns
                .map_or_else(Latency::default, |ns| of(ns + script.service_ns)),
            ..NodeInterval::empty(k, Some(kind))
        });
    }
    intervals
}

/// Each millisecond of an operation holds the same part of it: depths are powers of two.
fn ticks(script: &Script<'_>) -> BTreeMap<OpKind, Vec<Tick>> {
    let threads = script.plan.threads.len() as u64;
    let mut ticks: BTreeMap<OpKind, Vec<Tick>> = BTreeMap::new();
    for op in script.ops() {
        let series = ticks.entry(op.kind).or_default();
        let parts = script.service_ns / OP_NS;
        for part in 0..parts {
            let tick = usize::try_from((op.issue_ns + part * OP_NS) / TICK_NS).unwrap();
            series.resize(series.len().max(tick + 1), Tick::default());
            series[tick].merge(Tick {
                bytes: op.bytes * BYTE_UNITS / parts * threads,
                ops: OP_UNITS / parts * threads,
                busy_ns: OP_NS * threads,
            });
        }
    }
    ticks
}

fn thread_report(script: &Script<'_>, thread: u32) -> ThreadReport {
    let plan = script.plan;
    let counts = plan.ops().into_iter().map(|kind| {
        let is_ramp = |op: &Op| u64::from(script.interval(op)) * plan.interval_ns < plan.ramp_ns;
        let own = |ramp| script.ops().filter(move |op| op.kind == kind && is_ramp(op) == ramp);
        OpCounts {
            op: kind,
            bytes: own(false).map(|op| op.bytes).sum(),
            ops: own(false).count() as u64,
            errors: 0,
            ramp_bytes: own(true).map(|op| op.bytes).sum(),
            ramp_ops: own(true).count() as u64,
            ramp_errors: 0,
        }
    });
    let after = |ns: u64| Some(i64::try_from(ns).unwrap());
    let written = if plan.writes() { Written::All } else { Written::Nothing };
    ThreadReport {
        thread,
        end: ThreadEnd::Finished,
        counts: counts.collect(),
        cpu: CpuTime::default(),
        short_transfers: 0,
        first_issue_ns: after(script.late_ns),
        begin_ns: after(script.late_ns),
        ended_ns: script.ops().last().and_then(|op| after(op.done_ns)),
        busy_begin_ns: after(script.late_ns + script.service_ns - OP_NS),
        busy_end_ns: after(script.late_ns + script.count * OP_NS),
        fsync_ns: None,
        open_ns: 0,
        files: FileTimes::default(),
        bytes_touched: None,
        passes_milli: 1000,
        unfinished: 0,
        unfinished_ns: None,
        written: vec![WrittenPart { file: 0, written }],
        names: None,
        damages: Vec::new(),
    }
}
