//! Records for the tests of tables and sentences.

use crate::record::{
    ByOp, Campaign, CampaignRecord, CampaignStatus, Census, ErrorKind, Five, Headline, Latencies,
    Latency, Mark, Network, OpWeight, Options, Params, PointRecord, PointStatus, Rate, Rates,
    SCHEMA, Swept, Tool, Unfinished, Window,
};

/// A good point of 95.6 MB/s.
pub(super) fn point(index: u32, stage: &str, threads: u32, nodes: u32) -> PointRecord {
    let bandwidth = Five {
        common: Some(95.6e6),
        span: Some(95.1e6),
        thread_sum: Some(96.0e6),
        first_done: Some(95.8e6),
        last_done: Some(95.3e6),
    };
    PointRecord {
        index,
        stage: stage.to_owned(),
        op: stage.split('-').next().unwrap_or(stage).to_owned(),
        repeat: 0,
        status: PointStatus::Ok,
        why: None,
        marks: Vec::new(),
        params: params(threads, nodes),
        t0: Some("2026-12-01T00:48:43.045Z".to_owned()),
        interval_ns: 1_000_000_000,
        census: Census { expected: nodes, reported: nodes, lost: Vec::new() },
        bytes: 1 << 30,
        ops: 1 << 12,
        errors: 0,
        ramp_bytes: 0,
        bytes_touched: Some(1 << 30),
        passes: Some(1.0),
        short_transfers: 0,
        unfinished: Unfinished::default(),
        headline: Some(Headline::Common),
        bandwidth,
        iops: Five { common: Some(1364.7), span: Some(1350.0), ..Five::default() },
        window: Some(Window {
            start_s: 0.0,
            seconds: 11.0,
            bytes: 1e9,
            ops: 4000.0,
            overlap: 0.98,
        }),
        start_skew_ns: Some(1_200_000),
        clock_uncertainty_ns: Some(50_000),
        clock_residual_ns: Some(2_000),
        busy_share: Some(0.99),
        cpu: None,
        latency_ns: Latencies { service: Some(latency()), response: None },
        by_op: Vec::new(),
        offered: None,
        files: None,
        verification: None,
        open_s: None,
        fsync_s: None,
        syncfs_s: None,
        steady: None,
        network: Network::default(),
        verdict: None,
        nodes: Vec::new(),
        threads: Vec::new(),
        error_kinds: Vec::new(),
        intervals: Vec::new(),
    }
}

/// The same point as a mix of one write to three reads, under an offered load.
pub(super) fn mix(index: u32) -> PointRecord {
    let mut point = point(index, "mix", 16, 4);
    let kind = |op: &str, weight| OpWeight { op: op.to_owned(), weight };
    point.params.ops = vec![kind("write", 1), kind("read", 3)];
    point.params.rate = Some(Rate { per_s: 1_400.0, exponential: true });
    let response = |p50| Some(Latency { p50: Some(p50), ..latency() });
    point.latency_ns.response = response(40_000_000);
    let by_op = |op: &str, bytes, ops, p50| ByOp {
        op: op.to_owned(),
        bytes: 0,
        ops: 0,
        errors: 0,
        latency_ns: Latencies { service: Some(latency()), response: response(p50) },
        bandwidth: Rates { common: Some(bytes), span: None },
        iops: Rates { common: Some(ops), span: None },
    };
    point.by_op =
        vec![by_op("write", 23.9e6, 341.2, 60_000_000), by_op("read", 71.7e6, 1_023.5, 35_000_000)];
    point
}

/// A point of operations on names.
pub(super) fn names(index: u32) -> PointRecord {
    let mut point = point(index, "stat", 16, 4);
    let zero = Some(0.0);
    point.bandwidth =
        Five { common: zero, span: zero, thread_sum: zero, first_done: zero, last_done: zero };
    point.params.ops = vec![OpWeight { op: "stat".to_owned(), weight: 1 }];
    (point.params.layout, point.params.depth) = ("tree".to_owned(), 1);
    (point.params.fsync, point.params.fresh) = (None, None);
    point
}

/// A partial campaign: a point whose sum is no aggregate, one that lost a node and had errors, one
/// that failed, and one that was skipped.
pub(super) fn campaign() -> CampaignRecord {
    let mut points = vec![
        with_rate(point(0, "write", 1, 1), 12.5e6, 47.68),
        with_rate(point(1, "write", 4, 2), 48.0e6, 183.1),
        point(2, "write", 16, 4),
        with_rate(point(3, "write", 32, 4), 71.0e6, 1084.0),
        point(4, "read", 1, 1),
        nothing(point(5, "read", 16, 4)),
    ];
    points[0].start_skew_ns = Some(0);
    if let Some(latency) = &mut points[0].latency_ns.service {
        latency.p99 = None;
    }
    let overlap = (0.61, 0.9, "threads were all busy for 61 % of the time only");
    points[1].headline = Some(Headline::Span);
    points[1].bandwidth.span = Some(48.0e6);
    points[1].iops.span = Some(183.1);
    points[1].marks.push(mark("not-an-aggregate", overlap));
    lose(&mut points[3]);
    points[4].status = PointStatus::Failed;
    points[4].why = Some("the accounts do not agree: bytes of c1".to_owned());
    points[4].marks.push(Mark {
        code: "sums".to_owned(),
        value: None,
        limit: None,
        text: "the accounts do not agree: bytes of c1".to_owned(),
    });
    CampaignRecord {
        schema: SCHEMA.to_owned(),
        tool: Tool { version: "0.1.0".to_owned(), commit: None },
        campaign: Campaign {
            id: "20261201-004843".to_owned(),
            name: "ramp".to_owned(),
            question: None,
            scenario_id: "00".to_owned(),
            started: "2026-12-01T00:48:43.045Z".to_owned(),
            ended: Some("2026-12-01T00:58:43.045Z".to_owned()),
            status: CampaignStatus::Partial,
            message: None,
            host: "head".to_owned(),
        },
        scenario: String::new(),
        nodes: Vec::new(),
        points,
        repetitions: Vec::new(),
        load_curves: Vec::new(),
        scaling: Vec::new(),
        requirements: Vec::new(),
    }
}

/// A mark with its value, limit and text.
pub(super) fn mark(code: &str, (value, limit, text): (f64, f64, &str)) -> Mark {
    Mark { code: code.to_owned(), value: Some(value), limit: Some(limit), text: text.to_owned() }
}

/// The same failure on one node.
pub(super) fn error(node: &str, count: u64, offset: u64) -> ErrorKind {
    ErrorKind {
        node: node.to_owned(),
        op: "write".to_owned(),
        call: "pwrite".to_owned(),
        errno: 28,
        text: "No space left on device (os error 28)".to_owned(),
        count,
        file: format!("/mnt/fs/{node}/t0"),
        offset,
        max_ns: 2_500_000 * count,
    }
}

fn lose(point: &mut PointRecord) {
    point.status = PointStatus::Partial;
    point.why = Some("c4 was lost".to_owned());
    point.census = Census { expected: 4, reported: 3, lost: vec!["c4".to_owned()] };
    point.error_kinds =
        vec![error("c1", 3, 1 << 20), error("c2", 1200, 0), error("c3", 1, 4 << 20)];
    point.errors = 1204;
    point.marks = vec![
        mark("partial", (1.0, 0.0, "without c4: the figures are of the other nodes")),
        mark("errors", (1204.0, 0.0, "1204 operations failed: they are in no figure")),
    ];
}

/// As a point that was not begun.
fn nothing(point: PointRecord) -> PointRecord {
    PointRecord {
        status: PointStatus::Skipped,
        why: Some("too few workers are left".to_owned()),
        t0: None,
        bytes: 0,
        ops: 0,
        headline: None,
        bandwidth: Five::default(),
        iops: Five::default(),
        window: None,
        start_skew_ns: None,
        latency_ns: Latencies { service: None, response: None },
        ..point
    }
}

fn with_rate(mut point: PointRecord, bandwidth: f64, iops: f64) -> PointRecord {
    point.bandwidth.common = Some(bandwidth);
    point.iops.common = Some(iops);
    point
}

fn params(threads: u32, nodes: u32) -> Params {
    let swept = |key: &str, value: String| Swept { key: key.to_owned(), value };
    Params {
        threads,
        nodes,
        ops: Vec::new(),
        layout: "file-per-thread".to_owned(),
        file_bytes: 1 << 30,
        block_bytes: 256 << 10,
        blocks: Vec::new(),
        pattern: "sequential".to_owned(),
        duration_ns: None,
        ramp_ns: 0,
        direct: true,
        options: Options::default(),
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
        swept: vec![swept("threads", threads.to_string()), swept("block", "256 KiB".to_owned())],
    }
}

fn latency() -> Latency {
    Latency {
        count: 4096,
        out_of_range: 0,
        min: 10_000_000,
        mean: 20e6,
        stddev: 3e6,
        p50: Some(20_100_000),
        p90: Some(25_000_000),
        p95: Some(27_000_000),
        p99: Some(29_000_000),
        p99_9: None,
        p99_99: None,
        max: 31_000_000,
    }
}
