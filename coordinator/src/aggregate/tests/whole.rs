//! One point, every key of its record: all numbers differ, so that no two can be swapped.

use super::*;
use crate::record::Direction;

/// Edges lie on ticks and operations last 4, 8, 16 or 32 of them, so that every share is exact.
/// Thread 2 idles from 180 to 190 ms.
fn script() -> Script {
    vec![
        vec![
            ops_ms(&[(0, 80), (80, 160), (160, 320), (320, 480)], 4_096),
            ops_ms(&[(10, 170), (170, 490)], 12_288),
        ],
        vec![ops_ms(&[(20, 180), (190, 350), (350, 430), (430, 470)], 32_768)],
    ]
}

fn alter(plan: &mut PointPlan, outcome: &mut PointOutcome) {
    (plan.spec.index, plan.spec.repeat) = (5, 2);
    let first = report(outcome, 0);
    (first.threads[0].fsync_ns, first.threads[1].fsync_ns) = (Some(7 * MS), Some(6 * MS));
    (first.threads[0].passes_milli, first.threads[1].short_transfers) = (500, 3);
    (first.threads[0].bytes_touched, first.cpu_share) = (Some(1), Some(0.75));
    let spent = |user_ns, system_ns| iofleet_shared::stats::CpuTime { user_ns, system_ns };
    (first.threads[0].cpu, first.threads[1].cpu) = (spent(1, 2), spent(10, 20));
    let second = thread(outcome, 1);
    second.cpu = spent(404, 40);
    (second.passes_milli, second.short_transfers) = (750, 8);
}

fn expected() -> PointRecord {
    // Threads' own times: 480, 480 and 450 ms. The window is [20, 470] of [0, 490].
    let total = 16_384.0 + 24_576.0 + 131_072.0;
    // Up to 470 ms: 3 + 150/160 operations, 1 + 300/320, and all four.
    let first_done = 3.9375 * 4_096.0 + 1.9375 * 12_288.0 + 131_072.0;
    PointRecord {
        index: 5,
        stage: "write".to_owned(),
        op: "write".to_owned(),
        repeat: 2,
        status: PointStatus::Ok,
        why: None,
        marks: marks(total),
        params: params(),
        t0: Some("2026-12-01T15:30:12.345Z".to_owned()),
        interval_ns: 100_000_000,
        census: Census { expected: 2, reported: 2, lost: Vec::new() },
        bytes: 172_032,
        ops: 10,
        errors: 0,
        ramp_bytes: 0,
        bytes_touched: Some(1 + 24_576 + 131_072),
        passes: Some((0.5 + 1.0 + 0.75) / 3.0),
        short_transfers: 11,
        unfinished: Unfinished { count: 0, oldest_ns: None },
        headline: Some(Headline::Common),
        bandwidth: Five {
            common: Some(169_216.0 / 0.45),
            span: Some(total / 0.49),
            thread_sum: Some(16_384.0 / 0.48 + 24_576.0 / 0.48 + 131_072.0 / 0.45),
            first_done: Some(first_done / 0.47),
            last_done: Some(total / 0.48),
        },
        iops: Five {
            common: Some(9.5625 / 0.45),
            span: Some(10.0 / 0.49),
            thread_sum: Some(4.0 / 0.48 + 2.0 / 0.48 + 4.0 / 0.45),
            first_done: Some(9.875 / 0.47),
            last_done: Some(10.0 / 0.48),
        },
        // Of thread 0: 60 of 80 ms, two whole ones, 150 of 160; of thread 1: 150 of 160 and 300 of 320.
        window: Some(record::Window {
            start_s: 0.02,
            seconds: 0.45,
            bytes: 3.6875 * 4_096.0 + 1.875 * 12_288.0 + 131_072.0,
            ops: 3.6875 + 1.875 + 4.0,
            overlap: 450.0 / 490.0,
        }),
        start_skew_ns: Some(20_000_000),
        clock_uncertainty_ns: Some(40_001),
        clock_residual_ns: Some(1_001),
        busy_share: Some(1_340.0 / 1_350.0),
        cpu: Some(cpu()),
        latency_ns: Latencies { service: Some(service()), response: None },
        by_op: vec![by_op(total)],
        offered: None,
        files: None,
        verification: None,
        open_s: Some(0.002_000_002),
        fsync_s: Some(0.007),
        syncfs_s: Some(0.003_000_001),
        steady: None,
        network: network(),
        verdict: None,
        nodes: nodes(),
        threads: threads(),
        error_kinds: Vec::new(),
        intervals: intervals(),
    }
}

fn cpu() -> record::Cpu {
    record::Cpu {
        user_ns_per_op: Some(415.0 / 10.0),
        system_ns_per_op: Some(62.0 / 10.0),
        user_ns: 1 + 10 + 404,
        system_ns: 2 + 20 + 40,
    }
}

fn by_op(total: f64) -> ByOp {
    ByOp {
        op: "write".to_owned(),
        bytes: 172_032,
        ops: 10,
        errors: 0,
        latency_ns: Latencies { service: Some(service()), response: None },
        bandwidth: Rates { common: Some(169_216.0 / 0.45), span: Some(total / 0.49) },
        iops: Rates { common: Some(9.5625 / 0.45), span: Some(10.0 / 0.49) },
    }
}

fn marks(total: f64) -> Vec<record::Mark> {
    let mark = |code: &str, value, limit, text: &str| record::Mark {
        code: code.to_owned(),
        value: Some(value),
        limit: Some(limit),
        text: text.to_owned(),
    };
    let excess = (16_384.0 / 0.48 + 24_576.0 / 0.48 + 131_072.0 / 0.45) / (total / 0.49);
    let above = "`thread_sum` is 7.3 % above what moved from first begin to last end";
    let skew = "threads began over 20.0 ms, 4.4 % of the window";
    let short = "11 transfers were cut short by the kernel and continued";
    vec![
        mark("not-an-aggregate", excess, 1.01, above),
        mark("skew", 20.0 / 450.0, 0.01, skew),
        mark("short-transfers", 11.0, 0.0, short),
    ]
}

fn params() -> record::Params {
    record::Params {
        threads: 3,
        nodes: 2,
        ops: vec![record::OpWeight { op: "write".to_owned(), weight: 1 }],
        layout: "file-per-thread".to_owned(),
        file_bytes: 1 << 30,
        block_bytes: 1 << 20,
        blocks: vec![record::SizeWeight { bytes: 1 << 20, weight: 1 }],
        pattern: "sequential".to_owned(),
        duration_ns: None,
        ramp_ns: 0,
        direct: true,
        options: record::Options::default(),
        engine: "sync".to_owned(),
        depth: 1,
        engine_flags: Vec::new(),
        burst: 0,
        mix_by_thread: false,
        cores: None,
        numa_nodes: None,
        huge_pages: false,
        cold: false,
        rate: None,
        think_ns: 0,
        verify: false,
        fsync: Some("end".to_owned()),
        fresh: Some(true),
        seed: 1,
        swept: vec![record::Swept { key: "threads".to_owned(), value: "3".to_owned() }],
    }
}

/// Service times: five of 160 ms, three of 80, 320 and 40. Sum 1400, squares 251,200.
fn service() -> LatencySummary {
    LatencySummary {
        count: 10,
        out_of_range: 0,
        min: 40_000_000,
        mean: 1_400e6 / 10.0,
        stddev: (10.0 * 251_200e12 - 1_960_000e12_f64).sqrt() / 10.0,
        p50: None,
        p90: None,
        p95: None,
        p99: None,
        p99_9: None,
        p99_99: None,
        max: 320_000_000,
    }
}

/// Nothing is known of links, and so there is the payload's direction alone.
fn network() -> Network {
    let direction = Direction {
        direction: "tx".to_owned(),
        op: "write".to_owned(),
        limit_bytes_per_s: None,
        achievable_share: 1_448.0 / 1_514.0,
        limit_side: None,
        limit_source: None,
        payload_bytes_per_s: Some((15_104.0 + 23_040.0 + 131_072.0) / 0.45),
        wire_bytes_per_s: None,
        idle_bytes_per_s: None,
        payload_share: None,
        wire_share: None,
        wire_per_payload: None,
        wire_per_payload_at_end: None,
        client_limit_bytes_per_s: None,
        storage_limit_bytes_per_s: None,
        storage_wire_bytes_per_s: None,
        expected_wire_per_payload: 1.0,
    };
    Network { directions: vec![direction], ..Network::default() }
}

fn nodes() -> Vec<PointNode> {
    let node =
        |name: &str, bytes, ops, in_window: (f64, f64), cpu_share, cpu_ns: (_, _)| PointNode {
            node: name.to_owned(),
            status: NodeStatus::Ok,
            bytes,
            ops,
            errors: 0,
            bandwidth: Some(in_window.0 / 0.45),
            iops: Some(in_window.1 / 0.45),
            cpu_ns: Some(cpu_ns.0),
            cpu_system_ns: Some(cpu_ns.1),
            cpu_share: Some(cpu_share),
            tx_bytes: None,
            rx_bytes: None,
            link_share: None,
            busiest_core_share: None,
            run_delay_share: None,
            cold_start: None,
            samples: Vec::new(),
            remarks: Vec::new(),
        };
    vec![
        node("client01", 40_960, 6, (15_104.0 + 23_040.0, 5.5625), 0.75, (33, 22)),
        node("client02", 131_072, 4, (131_072.0, 4.0), 0.25, (444, 40)),
    ]
}

fn threads() -> Vec<PointThread> {
    let thread = |thread, name: &str, bytes, ops, begin_s, end_s| PointThread {
        thread,
        node: name.to_owned(),
        end: "finished".to_owned(),
        bytes,
        ops,
        errors: 0,
        begin_s: Some(begin_s),
        end_s: Some(end_s),
    };
    vec![
        thread(0, "client01", 16_384, 4, 0.0, 0.48),
        thread(1, "client01", 24_576, 2, 0.01, 0.49),
        thread(2, "client02", 131_072, 4, 0.02, 0.47),
    ]
}

/// Completions at 80; 160, 170 and 180; 320 and 350; 430, 470, 480 and 490, which ends the last one.
fn intervals() -> Vec<Interval> {
    let interval = |k, start_s, seconds, bytes, services: &[u64]| {
        let mut counts = LatencyCounts::new();
        services.iter().for_each(|ms| counts.record(ms * MS));
        Interval {
            k,
            start_s,
            seconds,
            phase: IntervalPhase::Measure,
            bytes,
            ops: services.len() as u64,
            errors: 0,
            latency_ns: summarise(&counts.to_latency()),
            response_ns: None,
            by_op: Vec::new(),
        }
    };
    vec![
        interval(0, 0.0, 0.1, 4_096, &[80]),
        interval(1, 0.1, 0.1, 4_096 + 12_288 + 32_768, &[80, 160, 160]),
        interval(2, 0.2, 0.1, 0, &[]),
        interval(3, 0.3, 0.1, 4_096 + 32_768, &[160, 160]),
        interval(4, 0.4, 0.09, 4_096 + 12_288 + 65_536, &[80, 40, 160, 320]),
    ]
}

#[test]
fn every_key_of_a_point_by_hand() {
    assert_eq!(assembled(&script(), alter), expected());
}

#[test]
fn the_hand_made_figures_all_differ() {
    let PointRecord { bandwidth, iops, window, nodes, .. } = expected();
    let five = |five: Five| {
        let Five { common, span, thread_sum, first_done, last_done } = five;
        [common, span, thread_sum, first_done, last_done]
    };
    let mut values: Vec<Option<f64>> = [five(bandwidth), five(iops)].concat();
    values.extend(nodes.iter().map(|node| node.bandwidth));
    let window = window.unwrap();
    values.extend([window.start_s, window.seconds, window.overlap].map(Some));
    values.extend([window.bytes, window.ops].map(Some));
    for (place, value) in values.iter().enumerate() {
        assert!(value.is_some() && !values[..place].contains(value), "{value:?} twice");
    }
}
