//! Scripted fleets for tests: what workers would deliver for operations at given times.

use std::{
    collections::BTreeMap,
    time::{Duration, UNIX_EPOCH},
};

use iofleet_shared::{
    clock::ClockMap,
    facts::{AlignmentSource, DirectAlignment, HostFacts, MachineSetup, TargetFacts},
    ids::{NodeIndex, PointId},
    limits::TICK_NS,
    stats::{
        CpuTime, ErrorCount, FileTimes, Latency, LatencyCounts, NodeInterval, OpCounts,
        PointReport, ThreadEnd, ThreadReport, Written, WrittenPart, interval_of,
    },
    work::{
        EngineKind, EngineSpec, FileOptions, Fsync, Layout, OpKind, OpShare, Pattern, SizeShare,
    },
};

use crate::{
    events::{NodeOutcome, NodeReady, PointOutcome},
    figures::script::{Op, spread, times},
    plan::{Numbers, PointPlan},
    scenario::{FleetConfig, OnFault, Params, PointSpec, Scenario, TargetConfig, Threads},
};

pub(super) const MS: u64 = 1_000_000;

/// Operations of each thread of each node.
pub(super) type Script = Vec<Vec<Vec<Op>>>;

/// A plan of direct writes by size, intervals of 100 ms, that fits the script.
pub(super) fn plan(script: &Script) -> PointPlan {
    let threads = u32::try_from(script.iter().flatten().count()).unwrap();
    let ops: Vec<Op> = script.iter().flatten().flatten().copied().collect();
    PointPlan {
        spec: PointSpec {
            index: 0,
            stage: "write".to_owned(),
            repeat: 0,
            swept: vec![("threads".to_owned(), threads.to_string())],
            group: 0,
            params: Params {
                ops: vec![OpShare { op: OpKind::Write, weight: 1 }],
                threads: Threads::Fleet(threads),
                layout: Layout::FilePerThread,
                file_sizes: vec![SizeShare { bytes: 1 << 30, weight: 1 }],
                blocks: vec![SizeShare { bytes: 1 << 20, weight: 1 }],
                pattern: Pattern::Sequential,
                duration_ns: None,
                ramp_ns: 0,
                interval_ns: 100 * MS,
                repeat_range: true,
                options: FileOptions { direct: true, ..FileOptions::default() },
                engine: EngineSpec {
                    kind: EngineKind::Sync,
                    depth: 1,
                    sqpoll: false,
                    iopoll: false,
                    high_priority: false,
                },
                fsync: Fsync::End,
                fresh: true,
                seed: 1,
                on_fault: OnFault::Continue,
                stuck_after_ns: 30_000 * MS,
                ..Params::default()
            },
        },
        threads,
        active: (0..script.len()).map(|n| NodeIndex(u32::try_from(n).unwrap())).collect(),
        bytes: Some(ops.iter().filter_map(|op| op.bytes).sum()),
        ops: Some(ops.iter().filter(|op| op.bytes.is_some()).count() as u64),
        working_set_bytes: 1 << 30,
        numbers: Numbers::default(),
    }
}

/// Nodes `client01`… whose clocks are far apart.
pub(super) fn ready(count: usize) -> Vec<NodeReady> {
    (0..count)
        .map(|n| NodeReady {
            name: format!("client{:02}", n + 1),
            host: HostFacts {
                hostname: format!("client{:02}.example", n + 1),
                boot_id: format!("boot-{n}"),
                net_namespace: 4_026_531_840,
                incarnation: 7,
                version: "0.1.0".to_owned(),
                kernel: "6.1.0".to_owned(),
                cpus: 8,
                memory_bytes: 64 << 30,
                stamp_clock: "tsc".to_owned(),
                stamp_resolution_ns: 1,
                stamp_cost_ns: 12,
                control_priority: false,
                setup: MachineSetup::default(),
            },
            target: TargetFacts {
                fs_type: "beegfs".to_owned(),
                mount_source: "beegfs_nodev".to_owned(),
                mount_options: "rw,relatime".to_owned(),
                free_bytes: 1 << 40,
                total_bytes: 1 << 42,
                free_inodes: None,
                alignment: Some(DirectAlignment {
                    memory: 512,
                    offset: 4_096,
                    source: AlignmentSource::Statx,
                }),
                network: None,
                token: "t".to_owned(),
            },
            clock: clock(n),
        })
        .collect()
}

/// A clock minutes away from the fleet's, known to 40 µs and more.
pub(super) fn clock(node: usize) -> ClockMap {
    let node = i64::try_from(node).unwrap();
    ClockMap {
        offset_ns: node * 180_000_000_000,
        reference_ns: 5,
        drift_ppb: 0,
        uncertainty_ns: 40_000 + node.unsigned_abs(),
    }
}

/// The outcome of a script that went well.
pub(super) fn outcome(plan: &PointPlan, script: &Script) -> PointOutcome {
    let mut thread = 0;
    let nodes: BTreeMap<NodeIndex, NodeOutcome> = script
        .iter()
        .enumerate()
        .map(|(index, threads)| {
            let first = thread;
            thread += u32::try_from(threads.len()).unwrap();
            let node = node_outcome(&plan.spec.params, index, first, threads);
            (NodeIndex(u32::try_from(index).unwrap()), node)
        })
        .collect();
    PointOutcome {
        index: plan.spec.index,
        nodes,
        t0_wall: UNIX_EPOCH + Duration::from_millis(1_796_139_012_345),
        t0_fleet_ns: 1,
        observers: Vec::new(),
        interrupted: false,
        failed: None,
    }
}

fn node_outcome(params: &Params, index: usize, first: u32, threads: &[Vec<Op>]) -> NodeOutcome {
    let ops = threads.concat();
    let ticks = BTreeMap::from([(OpKind::Write, spread(&ops))]);
    let intervals = intervals(params, &ops);
    let threads = (first..)
        .zip(threads)
        .map(|(number, ops)| thread_report(params, number, ops))
        .collect::<Vec<_>>();
    let failed: Vec<&Op> = ops.iter().filter(|op| op.bytes.is_none()).collect();
    let errors = failed.first().map(|_| ErrorCount {
        op: OpKind::Write,
        call: "pwrite".to_owned(),
        errno: 5,
        count: failed.len() as u64,
        file: "0.dat".to_owned(),
        offset: 4_096,
        sum_ns: 2_000,
        max_ns: 1_500,
    });
    NodeOutcome {
        report: Some(PointReport {
            point: PointId { index: 0, attempt: 0 },
            t0_worker_ns: 77,
            threads,
            errors: errors.into_iter().collect(),
            intervals: u32::try_from(intervals.len()).unwrap(),
            ticks: ticks.values().map(|series| series.len() as u64).sum(),
            samples: 0,
            syncfs_ns: Some(3_000_000 + index as u64),
            cpu_share: Some(0.25),
            stamp_residual_ns: -3,
            first_end: None,
            offered: None,
            remarks: Vec::new(),
            cold: None,
            holes: None,
            stopped: None,
            sums: None,
        }),
        intervals,
        ticks,
        samples: Vec::new(),
        lost: None,
        clock: clock(index),
        residual_ns: Some(-1_000 - i64::try_from(index).unwrap()),
    }
}

fn thread_report(params: &Params, thread: u32, ops: &[Op]) -> ThreadReport {
    let ramp_ns = i64::try_from(params.ramp_ns).unwrap();
    let own = times(ops, ramp_ns);
    let ramp = || ops.iter().filter(|op| op.done_ns < ramp_ns);
    let failed = |op: &&Op| op.bytes.is_none();
    let end = if params.duration_ns.is_some() { ThreadEnd::Deadline } else { ThreadEnd::Finished };
    ThreadReport {
        thread,
        end,
        counts: vec![OpCounts {
            op: OpKind::Write,
            bytes: own.bytes,
            ops: own.ops,
            errors: ops.iter().filter(|op| op.done_ns >= ramp_ns).filter(failed).count() as u64,
            ramp_bytes: ramp().filter_map(|op| op.bytes).sum(),
            ramp_ops: ramp().filter(|op| op.bytes.is_some()).count() as u64,
            ramp_errors: ramp().filter(failed).count() as u64,
        }],
        cpu: CpuTime::default(),
        short_transfers: 0,
        first_issue_ns: own.first_issue_ns,
        begin_ns: own.begin_ns,
        ended_ns: own.ended_ns,
        busy_begin_ns: own.busy_begin_ns,
        busy_end_ns: own.busy_end_ns,
        fsync_ns: None,
        open_ns: 2_000_000 + u64::from(thread),
        files: FileTimes::default(),
        bytes_touched: Some(ops.iter().filter_map(|op| op.bytes).sum()),
        passes_milli: 1_000,
        unfinished: 0,
        unfinished_ns: None,
        written: vec![WrittenPart { file: 0, written: Written::All }],
        names: None,
        damages: Vec::new(),
    }
}

/// Each operation whole under the interval in which it completed.
fn intervals(params: &Params, ops: &[Op]) -> Vec<NodeInterval> {
    let last = ops.iter().map(|op| interval_of(op.done_ns, params.interval_ns)).max();
    let ramp_ns = i64::try_from(params.ramp_ns).unwrap();
    (0..last.map_or(0, |last| last + 1))
        .map(|k| {
            let inside =
                || ops.iter().filter(move |op| interval_of(op.done_ns, params.interval_ns) == k);
            let mut latency = LatencyCounts::new();
            for op in inside().filter(|op| op.bytes.is_some()) {
                // After the warm-up, without what was issued in it.
                if op.done_ns < ramp_ns || op.issue_ns >= ramp_ns {
                    latency.record(u64::try_from(op.done_ns - op.issue_ns).unwrap());
                }
            }
            NodeInterval {
                k,
                bytes: inside().filter_map(|op| op.bytes).sum(),
                ops: inside().filter(|op| op.bytes.is_some()).count() as u64,
                errors: inside().filter(|op| op.bytes.is_none()).count() as u64,
                op: Some(OpKind::Write),
                latency: latency.to_latency(),
                response: Latency::default(),
                latency_intervals: 1,
            }
        })
        .collect()
}

/// A scenario of the given points.
pub(super) fn scenario(plans: &[PointPlan]) -> Scenario {
    Scenario {
        name: "scripted".to_owned(),
        question: None,
        require: Vec::new(),
        thresholds: Default::default(),
        fleet: FleetConfig::default(),
        target: TargetConfig::default(),
        points: plans.iter().map(|plan| plan.spec.clone()).collect(),
        resolved_toml: "name = \"scripted\"\n".to_owned(),
        id: "ab".repeat(32),
    }
}

/// `threads` threads on each of `nodes` nodes, each `count` operations of `service_ms` one after
/// the other.
pub(super) fn even(nodes: usize, threads: usize, count: i64, service_ms: i64) -> Script {
    let thread = || {
        (0..count)
            .map(|n| Op {
                issue_ns: n * service_ms * 1_000_000,
                done_ns: (n + 1) * service_ms * 1_000_000,
                bytes: Some(1 << 20),
            })
            .collect()
    };
    (0..nodes).map(|_| (0..threads).map(|_| thread()).collect()).collect()
}

const _: () = assert!((100 * MS).is_multiple_of(TICK_NS));
