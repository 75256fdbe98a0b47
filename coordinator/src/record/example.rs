//! Hand-made records for tests: one with everything that can be there, one point with nothing.

use super::*;

/// A campaign with a full point and a skipped one.
pub(crate) fn campaign() -> CampaignRecord {
    CampaignRecord {
        schema: SCHEMA.to_owned(),
        tool: Tool { version: "0.1.0".to_owned(), commit: Some("0123abc".to_owned()) },
        campaign: Campaign {
            id: "20261201-153012-4f7a".to_owned(),
            name: "ramp".to_owned(),
            question: Some("How fast is it?".to_owned()),
            scenario_id: "5d".repeat(32),
            started: "2026-12-01T15:30:12Z".to_owned(),
            ended: Some("2026-12-01T15:31:12Z".to_owned()),
            status: CampaignStatus::Partial,
            message: Some("point 1 was skipped".to_owned()),
            host: "head".to_owned(),
        },
        scenario: "name = \"ramp\"\n".to_owned(),
        nodes: vec![node()],
        points: vec![full(0), skipped(1)],
        repetitions: vec![Repetition {
            stage: "write".to_owned(),
            points: vec![0],
            headline: Headline::Common,
            unit: Unit::Bytes,
            mean: 1.5e9,
            stddev: 0.1,
            ci95: 0.25,
        }],
        load_curves: vec![LoadCurve {
            stage: "write".to_owned(),
            points: vec![0],
            ort_ns: 1_250_000.5,
        }],
        scaling: vec![Scaling {
            stage: "write".to_owned(),
            swept: Vec::new(),
            points: vec![0],
            unit: Unit::Bytes,
            knee_threads: Some(16),
            fit: Some(ScalingFit {
                lambda: 0.5e9,
                contention: 0.04,
                coherency: 0.000_4,
                r2: 0.998,
                peak_threads: Some(48.9),
                residuals: vec![0.01],
            }),
            no_fit: Some("the ramp ended network-bound".to_owned()),
        }],
        requirements: vec![RequirementResult {
            text: "write.common >= 1 GB/s".to_owned(),
            value: Some(1.5e9),
            limit: 1e9,
            passed: true,
        }],
    }
}

fn node() -> Node {
    Node {
        node: "client01".to_owned(),
        hostname: "client01.cluster".to_owned(),
        boot_id: "9b3e".to_owned(),
        net_namespace: 4_026_531_840,
        version: "0.1.0".to_owned(),
        kernel: "6.8.0".to_owned(),
        cpus: 112,
        memory_bytes: 512 << 30,
        clock: Clock {
            offset_ns: -1_234,
            uncertainty_ns: 9_000,
            stamp: "tsc".to_owned(),
            resolution_ns: 1,
            cost_ns: 8,
        },
        control_priority: true,
        setup: Setup {
            cpu_model: Some("AMD EPYC 7763".to_owned()),
            governor: Some("performance".to_owned()),
            clock_source: Some("tsc".to_owned()),
            open_files_max: Some(1_048_576),
            processes_max: Some(512_000),
        },
        target: Target {
            fs_type: "beegfs".to_owned(),
            mount_source: "beegfs_nodev".to_owned(),
            mount_options: "rw,relatime".to_owned(),
            total_bytes: 1 << 50,
            free_bytes: 1 << 49,
            free_inodes: Some(1_000_000),
            direct_alignment_bytes: Some(512),
            direct_alignment_source: Some("probe".to_owned()),
        },
        links: vec![Link {
            name: "ib0".to_owned(),
            carries: true,
            bits_per_s: Some(100_000_000_000),
            source: "sysfs".to_owned(),
            rule: "route".to_owned(),
            mtu: Some(4_092),
            driver: "mlx5_core".to_owned(),
        }],
    }
}

fn params() -> Params {
    Params {
        threads: 4,
        nodes: 1,
        ops: ["write", "read"].map(|op| OpWeight { op: op.to_owned(), weight: 7 }).to_vec(),
        layout: "file-per-thread".to_owned(),
        file_bytes: 1 << 30,
        block_bytes: 1 << 20,
        blocks: vec![SizeWeight { bytes: 1 << 20, weight: 1 }],
        pattern: "sequential".to_owned(),
        duration_ns: Some(5_000_000_000),
        ramp_ns: 1_000_000_000,
        direct: true,
        options: Options { advice: Some("random".to_owned()), ..Options::default() },
        engine: "sync".to_owned(),
        depth: 4,
        engine_flags: vec!["sqpoll".to_owned()],
        burst: 4,
        mix_by_thread: true,
        cores: Some(vec![0, 1]),
        numa_nodes: Some(vec![0]),
        huge_pages: true,
        cold: true,
        rate: Some(Rate { per_s: 1_550.5, exponential: true }),
        think_ns: 3,
        verify: true,
        fsync: Some("end".to_owned()),
        fresh: Some(true),
        seed: u64::MAX,
        swept: vec![Swept { key: "threads".to_owned(), value: "4".to_owned() }],
    }
}

fn latency() -> Latency {
    Latency {
        count: 7_500,
        min: 90_000,
        mean: 266_666.666_666_666_7,
        stddev: 0.1 + 0.2,
        p50: Some(250_000),
        p90: Some(400_000),
        p95: Some(500_000),
        p99: Some(900_000),
        p99_9: None,
        p99_99: None,
        max: 2_000_000,
        out_of_range: 0,
    }
}

fn five(value: f64) -> Five {
    Five {
        common: Some(value),
        span: Some(value * 0.9),
        thread_sum: Some(value * 1.1),
        first_done: Some(value / 3.0),
        last_done: Some(value / 7.0),
    }
}

fn network() -> Network {
    Network {
        limit_bytes_per_s: Some(12.5e9),
        limit_source: Some("sysfs".to_owned()),
        tx_bytes: Some(8_000_000_000),
        rx_bytes: Some(9_000_000),
        payload_share: Some(0.126),
        wire_share: Some(0.128),
        wire_per_payload: Some(1.017),
        directions: vec![Direction {
            direction: "tx".to_owned(),
            op: "write".to_owned(),
            limit_bytes_per_s: Some(12.5e9),
            achievable_share: 0.956,
            limit_side: Some("clients".to_owned()),
            limit_source: Some("sysfs".to_owned()),
            payload_bytes_per_s: Some(1.575e9),
            wire_bytes_per_s: Some(1.6e9),
            idle_bytes_per_s: Some(1_200.0),
            payload_share: Some(0.126),
            wire_share: Some(0.128),
            wire_per_payload: Some(1.017),
            wire_per_payload_at_end: Some(1.011),
            client_limit_bytes_per_s: Some(12.5e9),
            storage_limit_bytes_per_s: Some(25e9),
            storage_wire_bytes_per_s: Some(1.61e9),
            expected_wire_per_payload: 1.0,
        }],
        intervals: vec![WireInterval {
            k: 0,
            tx_bytes: Some(1_600_000_000),
            rx_bytes: Some(1_800_000),
        }],
        observers: vec![ObserverRecord {
            node: "storage01".to_owned(),
            links: Vec::new(),
            lost: Some("gone".to_owned()),
            samples: Vec::new(),
        }],
    }
}

fn threads() -> Vec<PointThread> {
    vec![PointThread {
        thread: 0,
        node: "client01".to_owned(),
        end: "deadline".to_owned(),
        bytes: 7_864_320_000,
        ops: 7_500,
        errors: 1,
        begin_s: Some(0.000_1),
        end_s: Some(5.000_3),
    }]
}

fn error_kinds() -> Vec<ErrorKind> {
    vec![ErrorKind {
        node: "client01".to_owned(),
        op: "write".to_owned(),
        call: "pwrite".to_owned(),
        errno: 5,
        text: "Input/output error".to_owned(),
        count: 1,
        file: "t0000".to_owned(),
        offset: 4_096,
        max_ns: 1_000_000,
    }]
}

fn nodes() -> Vec<PointNode> {
    vec![PointNode {
        node: "client01".to_owned(),
        status: NodeStatus::Ok,
        bytes: 7_864_320_000,
        ops: 7_500,
        errors: 1,
        bandwidth: Some(1.572_864e9),
        iops: Some(1_500.0),
        cpu_ns: Some(17_000_625),
        cpu_system_ns: Some(15_751_875),
        cpu_share: Some(0.04),
        tx_bytes: Some(8_000_000_000),
        rx_bytes: Some(9_000_000),
        link_share: Some(0.128),
        busiest_core_share: Some(0.62),
        run_delay_share: Some(0.001),
        cold_start: Some("kernel".to_owned()),
        samples: vec![NodeSample {
            from_s: 0.0,
            to_s: 1.0,
            tx_bytes_per_s: Some(1.6e9),
            rx_bytes_per_s: Some(1.8e6),
            cpu: Some(CpuShares {
                user: 0.01,
                system: 0.02,
                softirq: 0.03,
                iowait: 0.04,
                steal: 0.05,
            }),
            busiest_core: Some(0.62),
            run_delay_ns: Some(1_000),
        }],
        remarks: vec!["no registered buffers".to_owned()],
    }]
}

fn cpu() -> Cpu {
    Cpu {
        user_ns_per_op: Some(166.5),
        system_ns_per_op: Some(2_100.25),
        user_ns: 1_248_750,
        system_ns: 15_751_875,
    }
}

fn verdict() -> Verdict {
    Verdict {
        code: "unsaturated".to_owned(),
        text: "4 threads instead of 2 bring +80 %: more may bring more".to_owned(),
        evidence: vec![Evidence { name: "gain".to_owned(), value: 0.8, limit: 0.1 }],
        also: vec![Finding {
            code: "straggler".to_owned(),
            text: "client03 does 0.40 of the median node's rate per thread".to_owned(),
            evidence: Vec::new(),
        }],
        missing: vec!["what the storage side does by itself".to_owned()],
        provisional: true,
    }
}

/// A point with every field set.
pub(crate) fn full(index: u32) -> PointRecord {
    let latencies = Latencies { service: Some(latency()), response: Some(latency()) };
    PointRecord {
        index,
        stage: "write".to_owned(),
        op: "mix".to_owned(),
        repeat: 0,
        status: PointStatus::Partial,
        why: Some("1 of 2 nodes never reported".to_owned()),
        marks: vec![Mark {
            code: "short".to_owned(),
            value: Some(0.3),
            limit: Some(1.0),
            text: "The window has 0.3 s.".to_owned(),
        }],
        params: params(),
        t0: Some("2026-12-01T15:30:14.5Z".to_owned()),
        interval_ns: 1_000_000_000,
        census: Census { expected: 2, reported: 1, lost: vec!["client02".to_owned()] },
        bytes: 7_864_320_000,
        ops: 7_500,
        errors: 1,
        ramp_bytes: 1 << 30,
        bytes_touched: Some(4 << 30),
        passes: Some(1.8),
        short_transfers: 2,
        unfinished: Unfinished { count: 1, oldest_ns: Some(31_000_000_000) },
        headline: Some(Headline::Common),
        bandwidth: five(1.572_864e9),
        iops: five(1_500.0),
        window: Some(Window {
            start_s: 0.001,
            seconds: 4.9,
            bytes: 7.7e9,
            ops: 7_345.5,
            overlap: 0.98,
        }),
        start_skew_ns: Some(150_000),
        clock_uncertainty_ns: Some(9_000),
        clock_residual_ns: Some(700),
        busy_share: Some(0.999),
        cpu: Some(cpu()),
        latency_ns: latencies.clone(),
        by_op: vec![ByOp {
            op: "write".to_owned(),
            bytes: 7_864_320_000,
            ops: 7_500,
            errors: 1,
            latency_ns: latencies,
            bandwidth: Rates { common: Some(1.5e9), span: Some(1.4e9) },
            iops: Rates { common: Some(1_430.5), span: None },
        }],
        offered: Some(offered()),
        files: Some(Files { count: 4, mean_ns: 1.5e9, max_ns: 4_000_000_000 }),
        verification: Some(Verification { checked: true, damages: vec![damage()] }),
        open_s: Some(0.01),
        fsync_s: Some(0.2),
        syncfs_s: Some(0.3),
        steady: Some(Steady { steady: true, round_s: 1.0, rounds: 7, spread: 0.02, slope: -0.01 }),
        network: network(),
        verdict: Some(verdict()),
        nodes: nodes(),
        threads: threads(),
        error_kinds: error_kinds(),
        intervals: vec![
            interval(0, IntervalPhase::Ramp, None),
            interval(1, IntervalPhase::Measure, Some(latency())),
            interval(2, IntervalPhase::Drain, None),
        ],
    }
}

pub(crate) fn interval(k: u32, phase: IntervalPhase, latency_ns: Option<Latency>) -> Interval {
    Interval {
        k,
        start_s: f64::from(k) * 0.1,
        seconds: 0.1,
        phase,
        bytes: 1 << 30,
        ops: 1_024,
        errors: 0,
        latency_ns,
        response_ns: latency_ns,
        by_op: ["write", "read"].map(|op| interval_op(op, latency_ns)).to_vec(),
    }
}

fn interval_op(op: &str, latency_ns: Option<Latency>) -> IntervalOp {
    IntervalOp {
        op: op.to_owned(),
        bytes: 1 << 29,
        ops: 512,
        errors: 0,
        latency_ns,
        response_ns: None,
    }
}

fn offered() -> Offered {
    Offered {
        per_s: 1_550.5,
        achieved_per_s: Some(1_500.0),
        arrived: 7_600,
        not_issued: 3,
        backlog_max: 40,
    }
}

fn damage() -> Damage {
    Damage {
        node: "client01".to_owned(),
        kind: "stale".to_owned(),
        units: 2,
        file: "t00001".to_owned(),
        offset: 8_192,
        found: "generation 1".to_owned(),
    }
}

/// A point that was not begun: all that can be null or empty is.
pub(crate) fn skipped(index: u32) -> PointRecord {
    PointRecord {
        index,
        stage: "read".to_owned(),
        op: "read".to_owned(),
        repeat: 0,
        status: PointStatus::Skipped,
        why: Some("the stage before it failed".to_owned()),
        marks: Vec::new(),
        params: Params {
            duration_ns: None,
            fsync: None,
            fresh: None,
            swept: Vec::new(),
            ..params()
        },
        t0: None,
        interval_ns: 1_000_000_000,
        census: Census::default(),
        bytes: 0,
        ops: 0,
        errors: 0,
        ramp_bytes: 0,
        bytes_touched: None,
        passes: None,
        short_transfers: 0,
        unfinished: Unfinished::default(),
        headline: None,
        bandwidth: Five::default(),
        iops: Five::default(),
        window: None,
        start_skew_ns: None,
        clock_uncertainty_ns: None,
        clock_residual_ns: None,
        busy_share: None,
        cpu: None,
        latency_ns: Latencies { service: None, response: None },
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
