//! What frames must stand: every message whole, no piece of one, and no byte of strangers.

use proptest::prelude::*;

use super::*;
use crate::{
    clock::ClockMap,
    facts::{
        AlignmentSource, DirectAlignment, HostFacts, LinkFacts, LinkKind, LinkRule, MachineSetup,
        NetworkFacts, TargetFacts,
    },
    ids::PointId,
    lifecycle::Phase,
    stats::{
        Bucket, CpuCounters, CpuTime, DamageCount, DamageKind, ErrorCount, FileTimes, FirstEnd,
        HostSample, Latency, LinkCounters, NamesLeft, NodeInterval, Offered, OpCounts, PointReport,
        ThreadEnd, ThreadReport, Tick, Written, WrittenPart,
    },
    wire::{Beat, NetFlow, NetOrder, NetReceived, Refusal, RefusalKind, Removal},
    work::{
        Advice, Amount, Arrivals, Content, Data, DatasetDir, EngineKind, EngineSpec, Extent,
        FileOptions, FilePart, Files, Fsync, Load, Names, OpKind, OpShare, Pattern, Placement,
        SizeShare, TargetSpec, ThreadPlan, TreePart, WorkerPlan,
    },
};

const POINT: PointId = PointId { index: 0x0102_0304, attempt: 1 };

fn text(words: &str) -> String {
    words.to_owned()
}

fn dir() -> DatasetDir {
    DatasetDir { path: text("/mnt/é"), name: text("d"), campaign: text("c") }
}

fn extents() -> Vec<Extent> {
    vec![Extent { offset: 0, length: 1 << 40 }, Extent { offset: 1 << 50, length: 4096 }]
}

fn thread_plan(thread: u32) -> ThreadPlan {
    ThreadPlan {
        thread,
        ops: vec![OpShare { op: OpKind::Read, weight: 7 }, OpShare { op: OpKind::Stat, weight: 3 }],
        files: match thread {
            0 => Files::Named(vec![FilePart {
                file: format!("f{thread}"),
                extents: extents(),
                stride_bytes: 47_008,
            }]),
            _ => Files::Tree(tree()),
        },
        operations: 17,
        seed: u64::MAX,
    }
}

fn tree() -> TreePart {
    TreePart {
        base: text("tree-0"),
        shared_dirs: true,
        dirs: 3,
        files_per_dir: 1 << 20,
        sizes: vec![SizeShare { bytes: 4_096, weight: 1 }],
        sizes_seed: 9,
        existing: Names { dirs: 3, files: 7, gone: 2 },
        renamed: true,
    }
}

fn worker_plan() -> WorkerPlan {
    WorkerPlan {
        point: POINT,
        dir: dir(),
        remove: vec![text("old"), text("")],
        engine: engine(),
        pattern: Pattern::Zipf { theta_milli: 1_200 },
        blocks: vec![SizeShare { bytes: 1 << 20, weight: 3 }],
        options: FileOptions { direct: true, advice: Some(Advice::DontNeed), ..Default::default() },
        fsync: Fsync::Each,
        file_bytes: 1 << 40,
        cold: false,
        create: false,
        data: Data {
            content: Content::Random { compress_milli: 2_000, dedupe_milli: 1_000 },
            refresh: true,
            verify: true,
            generation: 3,
            generation_known: false,
            dataset: u64::MAX,
        },
        load: Load::Open(Arrivals { per_1000_s: 7, exponential: true, phase_ns: 8, seed: 9 }),
        placement: placement(),
        amount: Amount::Time { duration_ns: 10, repeat: true },
        ramp_ns: 1,
        interval_ns: 2,
        stuck_after_ns: 3,
        threads: vec![thread_plan(0), thread_plan(4)],
    }
}

fn engine() -> EngineSpec {
    EngineSpec {
        kind: EngineKind::IoUring,
        depth: 32,
        sqpoll: true,
        iopoll: false,
        high_priority: false,
    }
}

fn placement() -> Placement {
    Placement { cores: Some(vec![0, 5]), numa_nodes: None, huge_pages: true }
}

fn commands() -> Vec<Command> {
    let map =
        ClockMap { offset_ns: i64::MIN, reference_ns: 7, drift_ppb: -3, uncertainty_ns: u64::MAX };
    let target = TargetSpec {
        dir: dir(),
        direct: true,
        engines: vec![engine()],
        direct_blocks: vec![4096, 1 << 20],
        writes: true,
        listed: vec![text("/mnt/x")],
        devices: vec![text("/dev/sdz")],
        destroys_data: true,
        bytes: 1,
        files: 2,
        min_free_milli: 100,
        allow_holes: true,
        threads: 3,
        buffer_bytes: 4,
        placements: vec![placement()],
        interfaces: vec![text("ib0")],
    };
    vec![
        Command::Claim { campaign: text("c"), holder: text("a@b, pid 1"), node: text("n") },
        Command::Inspect(Box::new(target)),
        Command::Arm(Box::new(worker_plan())),
        Command::Start { point: POINT, t0_fleet_ns: 99, map },
        Command::Commit { point: POINT },
        Command::Stop { point: POINT },
        Command::Acknowledge { point: POINT, through: 5 },
        Command::Observe { interval_ns: 5, interfaces: vec![text("ib0")] },
        Command::NetListen { token: [7; 16] },
        Command::NetRun(NetOrder {
            me: 3,
            token: [9; 16],
            flows: vec![NetFlow { address: "10.0.0.1".to_owned(), port: 4_000, streams: 8 }],
            warm_ns: 1_000,
            window_ns: 5_000,
        }),
        Command::Release { keep: true },
    ]
}

fn host() -> HostFacts {
    HostFacts {
        hostname: text("h"),
        boot_id: text("b"),
        net_namespace: 1,
        incarnation: 2,
        version: text("0"),
        kernel: text("6"),
        cpus: 112,
        memory_bytes: 1 << 39,
        stamp_clock: text("tsc"),
        stamp_resolution_ns: 1,
        stamp_cost_ns: 20,
        control_priority: false,
        setup: MachineSetup::default(),
    }
}

fn target() -> TargetFacts {
    let source = AlignmentSource::Probe;
    TargetFacts {
        token: "a1".to_owned(),
        fs_type: text("beegfs"),
        mount_source: text("s"),
        mount_options: text("rw"),
        free_bytes: 1,
        total_bytes: 2,
        free_inodes: None,
        alignment: Some(DirectAlignment { memory: 512, offset: 4096, source }),
        network: Some(network()),
    }
}

fn network() -> NetworkFacts {
    let link = |kind| LinkFacts {
        name: text("ib0"),
        kind,
        bits_per_s: Some(100_000_000_000),
        speed_source: text("kernel"),
        mtu: Some(2044),
        driver: text("mlx5_core"),
    };
    NetworkFacts {
        rule: LinkRule::Route,
        reason: text("10.0.0.1"),
        links: vec![link(LinkKind::InfiniBand)],
        others: vec![link(LinkKind::Ethernet), link(LinkKind::Roce)],
    }
}

fn notices() -> Vec<Notice> {
    let removal = Removal { files: 3, left: vec![text("/x: busy")] };
    vec![
        Notice::Claimed(host()),
        Notice::Inspected(target()),
        Notice::Armed { point: POINT, took_ns: 1 },
        Notice::Ready { point: POINT, t0_worker_ns: 1, ahead_ns: 2 },
        Notice::NotStarted { point: POINT, why: text("no commit") },
        Notice::Refused(Refusal { kind: RefusalKind::Busy, point: None, text: text("held") }),
        Notice::Observing(network()),
        Notice::Observed(vec![host_sample(); 2]),
        Notice::NetListening { port: 40_000 },
        Notice::NetMeasured {
            elapsed_ns: 5,
            received: vec![NetReceived { from: 2, bytes: 1 << 40 }],
        },
        Notice::Released(removal),
    ]
}

fn thread_report() -> ThreadReport {
    ThreadReport {
        thread: 4,
        end: ThreadEnd::Deadline,
        counts: vec![OpCounts {
            op: OpKind::Write,
            bytes: 1,
            ops: 2,
            errors: 3,
            ramp_bytes: 4,
            ramp_ops: 5,
            ramp_errors: 6,
        }],
        cpu: CpuTime { user_ns: 5, system_ns: 6 },
        short_transfers: 7,
        first_issue_ns: Some(-8),
        begin_ns: Some(-8),
        ended_ns: None,
        busy_begin_ns: Some(-8),
        busy_end_ns: Some(9),
        fsync_ns: None,
        open_ns: 10,
        files: FileTimes { count: 1, sum_ns: 2, max_ns: 2 },
        bytes_touched: Some(11),
        passes_milli: 1_500,
        unfinished: 3,
        unfinished_ns: Some(12),
        written: vec![WrittenPart { file: 0, written: Written::Ranges(extents()) }],
        names: Some(NamesLeft { names: tree().existing, renamed: None }),
        damages: vec![DamageCount {
            kind: DamageKind::Misdirected,
            units: 4,
            file: text("f"),
            offset: 4_096,
            found: text("offset 8192 of f"),
        }],
    }
}

fn report() -> PointReport {
    PointReport {
        point: POINT,
        t0_worker_ns: 1,
        threads: vec![thread_report()],
        errors: vec![ErrorCount {
            op: OpKind::Write,
            call: text("pwrite"),
            errno: 28,
            count: 2,
            file: text("f"),
            offset: 3,
            sum_ns: 4,
            max_ns: 5,
        }],
        intervals: 3,
        ticks: 300,
        samples: 0,
        syncfs_ns: None,
        cpu_share: Some(0.25),
        stamp_residual_ns: -1,
        first_end: Some(FirstEnd { at_ns: 5, bytes: 1 << 70, ops: 6 }),
        offered: Some(Offered { arrived: 3, not_issued: 2, backlog_max: 1 }),
        remarks: vec![text("buffers are not registered")],
        cold: None,
        holes: None,
        stopped: Some("full".to_owned()),
        sums: Some(text("thread 4: 1 and 2 bytes")),
    }
}

fn deliveries() -> Vec<Delivery> {
    let interval = NodeInterval {
        k: 2,
        op: Some(OpKind::Read),
        bytes: 1,
        ops: 1,
        errors: 0,
        response: Latency::default(),
        latency: Latency {
            count: 1,
            sum_ns: 5,
            sum_sq: u128::MAX,
            min_ns: 5,
            max_ns: 5,
            over: 0,
            buckets: vec![Bucket { index: 5, count: 1 }],
        },
        latency_intervals: 1,
    };
    let ticks = vec![Tick { bytes: u64::MAX, ops: 1, busy_ns: 2 }; 3];
    let ticks = crate::wire::Content::Ticks { op: OpKind::Write, first: 100, ticks };
    let samples = crate::wire::Content::Samples(vec![host_sample(); 2]);
    let report = crate::wire::Content::Report(report());
    [crate::wire::Content::Interval(interval), ticks, samples, report]
        .into_iter()
        .zip(0..)
        .map(|(content, number)| Delivery { point: POINT, number, content })
        .collect()
}

fn host_sample() -> HostSample {
    HostSample {
        at_ns: -5,
        links: vec![Some(LinkCounters { rx_bytes: 1, tx_bytes: u64::MAX }), None],
        cpu: Some(CpuCounters { user_ns: 1, ..CpuCounters::default() }),
        busiest_core_milli: None,
        run_delay_ns: Some(7),
    }
}

fn datagrams() -> Vec<Datagram> {
    let beat = Beat {
        sequence: 1,
        incarnation: 2,
        phase: Phase::Draining,
        threads: 3,
        bytes: 4,
        oldest_ns: 5,
    };
    vec![
        Datagram::Ping { sequence: 1, sent_ns: 2 },
        Datagram::Pong { sequence: 1, sent_ns: 2, received_ns: 3, answered_ns: 4 },
        Datagram::Alive { sequence: 9 },
        Datagram::Beat(beat),
    ]
}

/// Whole, it comes back; without its last bytes, or with one more, it is refused.
fn check<B: Body + PartialEq + std::fmt::Debug>(bodies: &[B]) {
    for body in bodies {
        let frame = body.encode().unwrap();
        assert_eq!(B::decode_frame(&frame).as_ref(), Ok(body));
        for length in 0..frame.len() {
            let error = B::decode_frame(&frame[..length]).unwrap_err();
            assert!(matches!(error, CodecError::Truncated { .. }), "{length}: {error}");
        }
        let longer = [frame.as_slice(), &[0]].concat();
        let error = B::decode_frame(&longer).unwrap_err();
        assert!(matches!(error, CodecError::Truncated { .. }), "{error}");
    }
}

#[test]
fn every_message_comes_back_whole_and_no_piece_of_it() {
    check(&commands());
    check(&notices());
    check(&deliveries());
    check(&datagrams());
}

/// A body cut short under a header that fits the cut: the archive itself has to be refused or to be
/// another value, but never the same one.
#[test]
fn a_cut_body_is_never_taken_for_the_whole() {
    for command in commands() {
        let frame = command.encode().unwrap();
        for length in HEADER_BYTES..frame.len() {
            let mut cut = frame[..length].to_vec();
            let body = u32::try_from(length - HEADER_BYTES).unwrap();
            cut[8..12].copy_from_slice(&body.to_le_bytes());
            assert_ne!(Command::decode_frame(&cut).as_ref(), Ok(&command));
        }
    }
}

/// What every build puts before its bodies, and one small body whole: a change of these bytes is a
/// new protocol version.
#[test]
fn bytes_are_pinned() {
    let header = Header { kind: 2, length: 0x0001_0203 }.encode();
    assert_eq!(header, *b"IOFL\x03\x00\x02\x00\x03\x02\x01\x00");
    let frame = Datagram::Alive { sequence: 0x0102_0304_0506_0708 }.encode().unwrap();
    let (header, body) = frame.split_at(HEADER_BYTES);
    assert_eq!(header, [b"IOFL\x03\x00\x04\x00".as_slice(), &length(body)].concat());
    assert_eq!(body[..9], [2, 8, 7, 6, 5, 4, 3, 2, 1]);
    let kinds = [Command::KIND, Notice::KIND, Delivery::KIND, Datagram::KIND];
    assert_eq!(kinds, [1, 2, 3, 4]);
}

fn length(body: &[u8]) -> [u8; 4] {
    u32::try_from(body.len()).unwrap().to_le_bytes()
}

#[test]
fn headers_of_strangers_are_refused_by_name() {
    let good = Header { kind: 1, length: FRAME_BYTES_MAX }.encode();
    assert_eq!(Header::decode(good), Ok(Header { kind: 1, length: FRAME_BYTES_MAX }));
    let with = |at: usize, byte: u8| {
        let mut bytes = good;
        bytes[at] = byte;
        Header::decode(bytes)
    };
    for at in 0..4 {
        assert_eq!(with(at, b'x'), Err(CodecError::Magic));
    }
    assert_eq!(with(4, 2), Err(CodecError::Version(2)));
    assert_eq!(with(4, 4), Err(CodecError::Version(4)));
    assert_eq!(with(5, 1), Err(CodecError::Version(0x0103)));
    assert_eq!(with(8, 1), Err(CodecError::Length(FRAME_BYTES_MAX + 1)));
}

#[test]
fn a_body_of_another_kind_is_refused() {
    let frame = Command::Release { keep: false }.encode().unwrap();
    let expected = CodecError::Kind { found: 1, expected: 2 };
    assert_eq!(Notice::decode_frame(&frame), Err(expected));
}

#[test]
fn an_over_long_body_is_not_encoded() {
    let of = |length| Notice::NotStarted { point: POINT, why: "x".repeat(length) }.encode();
    let overhead = of(1_000).unwrap().len() - 1_000;
    let fits = FRAME_BYTES_MAX as usize + HEADER_BYTES - overhead;
    assert_eq!(of(fits).unwrap().len(), FRAME_BYTES_MAX as usize + HEADER_BYTES);
    assert_eq!(of(fits + 1), Err(CodecError::Length(FRAME_BYTES_MAX + 1)));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
        let _ = Command::decode_frame(&bytes);
        let header = |kind| Header { kind, length: u32::try_from(bytes.len()).unwrap() };
        let _ = Command::decode(header(1), &bytes);
        let _ = Notice::decode(header(2), &bytes);
        let _ = Delivery::decode(header(3), &bytes);
        let _ = Datagram::decode(header(4), &bytes);
    }

    #[test]
    fn a_damaged_message_makes_no_panic(at in 0_usize..4_096, bits in 1_u8..=255) {
        for command in commands() {
            let mut frame = command.encode().unwrap();
            let at = at % frame.len();
            frame[at] ^= bits;
            let _ = Command::decode_frame(&frame);
        }
        for delivery in deliveries() {
            let mut frame = delivery.encode().unwrap();
            let at = at % frame.len();
            frame[at] ^= bits;
            let _ = Delivery::decode_frame(&frame);
        }
    }
}
