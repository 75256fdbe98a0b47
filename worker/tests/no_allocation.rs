//! From T0 to the end of its operations an I/O thread allocates nothing: a call of the allocator may
//! take a lock, a page fault or a system call, and would be measured as if it were the file system.

#![expect(clippy::unwrap_used, reason = "a test fails by it")]

use std::{fs::File, os::fd::AsFd, sync::Arc};

use iofleet_shared::{
    clock::monotonic_ns,
    stats::{ThreadEnd, ThreadReport},
    work::{
        Arrivals, DatasetDir, EngineKind, Files, Load, Names, OpKind, OpShare, Pattern, SizeShare,
        ThreadPlan, TreePart, WorkerPlan,
    },
};
use iofleet_worker::{
    arrivals::ArrivalQueue,
    engine::{AnyEngine, EngineError, Libaio, Mmap, Namespace, Null, QueueSetup, Sync, Uring},
    files::Descriptors,
    io_thread::{
        Account, AccountSpec, Bench, Contents, Control, Fittings, Job, Pacing, Timeline,
        Whereabouts, run, seat,
    },
    names::NameSource,
    pattern::{AnySource, Blocks, Coverage},
    payload::{Buffer, MemoryPlace},
    recorder::{Inlet, Recorder, rings_of_depth},
    stamp::StampClock,
    tree::Tree,
};

use fixture::{BLOCK, MS};

#[expect(dead_code, reason = "other tests use more of it")]
#[path = "../src/fixture.rs"]
mod fixture;

#[path = "common/counting.rs"]
mod counting;

const BLOCKS: u64 = 64;
/// By so much two clocks may differ.
const MARGIN_NS: u64 = 5_000;
const DEPTH: u32 = 4;
const BY_TIME: Job = Job { blocks: u64::MAX, deadline_ns: Some(300 * MS), flush_at_end: false };
/// In 1000 s: about one in 20 us.
const RATE: u64 = 50_000_000;

/// What a thread's run came to.
struct Outcome {
    /// Of the allocator, from its first operation to its end.
    calls: usize,
    report: ThreadReport,
    intervals: usize,
}

fn plan(ops: &[OpShare], kind: EngineKind, pattern: Pattern) -> WorkerPlan {
    let dir = DatasetDir { path: "/x".into(), name: "d".into(), campaign: "c".into() };
    let files = fixture::named("f", BLOCKS * BLOCK);
    let thread = ThreadPlan { ops: ops.to_vec(), ..fixture::thread(0, &[], files, BLOCKS) };
    let depth = if matches!(kind, EngineKind::IoUring | EngineKind::Libaio) { DEPTH } else { 1 };
    let mut plan = fixture::plan(dir, vec![thread]);
    (plan.engine, plan.pattern) = (fixture::engine(kind, depth), pattern);
    plan.data.refresh = true;
    plan
}

fn only(op: OpKind) -> Vec<OpShare> {
    fixture::shares(&[op])
}

fn buffer() -> Buffer {
    Buffer::new(usize::try_from(BLOCK).unwrap(), 512).unwrap()
}

/// The engine of a plan on a file.
fn engine(plan: &WorkerPlan, file: File) -> Result<AnyEngine, EngineError> {
    let files = vec![Arc::new(file)];
    let setup = |files| QueueSetup {
        files,
        depth: DEPTH,
        buffer_bytes: usize::try_from(BLOCK).unwrap(),
        alignment: 512,
        place: MemoryPlace::default(),
        sqpoll: false,
        iopoll: false,
        fsync_each: false,
    };
    Ok(match plan.engine.kind {
        EngineKind::Sync => AnyEngine::Sync(Sync::new(Descriptors::fixed(files), buffer())),
        EngineKind::Mmap => {
            let lengths = vec![BLOCKS * BLOCK];
            AnyEngine::Mmap(Mmap::new(files, lengths, plan.writes(), buffer(), false).unwrap())
        }
        EngineKind::Null => AnyEngine::Null(Null::new(buffer())),
        EngineKind::IoUring => AnyEngine::Uring(Box::new(Uring::new(setup(files))?)),
        EngineKind::Libaio => AnyEngine::Libaio(Box::new(Libaio::new(setup(files))?)),
    })
}

/// Runs a thread's job on this thread.
fn outcome(plan: &WorkerPlan, engine: AnyEngine, source: AnySource, job: Job) -> Outcome {
    let thread = &plan.threads[0];
    let blocks = Arc::new(Blocks::of(thread.parts(), BLOCK));
    let depth = plan.engine.depth;
    let contents = Contents::new(plan, thread, blocks.count(), depth).unwrap();
    let (lanes, mut inlets): (Vec<_>, Vec<Inlet>) = plan
        .ops()
        .into_iter()
        .map(|op| {
            let (outlet, inlet) = rings_of_depth(depth, true);
            ((op, Recorder::new(10 * MS, 20 * MS, depth, outlet)), inlet)
        })
        .unzip();
    let coverage = (blocks.count() > 0).then(|| {
        let of = if plan.writes() { OpKind::Write } else { OpKind::Read };
        let sizes: &[SizeShare] = &plan.blocks;
        (of, Coverage::of_mix(Arc::clone(&blocks), of, plan.pattern, &thread.ops, sizes))
    });
    let (seat, watch) = seat(Account::new(AccountSpec { lanes, coverage, tree_dirs: None }));
    let control = Control::new(1, 1);
    let mut clock = StampClock::calibrate();
    clock.refine();
    let pacing = match plan.load {
        Load::Open(arrivals) => {
            Pacing::open(&Arc::new(ArrivalQueue::new(&arrivals)), clock, &control)
        }
        Load::Closed { .. } => Pacing::Closed,
    };
    let fittings = Fittings { contents, pacing };
    let t0_ns = monotonic_ns();
    let timeline = Timeline::new(clock, t0_ns);
    let bench = Bench { job: &job, timeline: &timeline, control: &control };
    counting::count_from(0);
    drop(run(seat, engine, source, fittings, bench).unwrap());
    let made = counting::calls();
    let account = watch.take(Whereabouts::Ended).unwrap();
    let report = account.report(0, 0, None, |_| "f".to_owned());
    counting::count_from(made);
    let after_t0 = |ns: Option<i64>| u64::try_from(ns.unwrap_or(0)).unwrap();
    let ended = after_t0(report.ended_ns);
    let last = t0_ns + ended.saturating_sub(MARGIN_NS);
    let calls = counting::calls_between(t0_ns + after_t0(report.first_issue_ns) + MARGIN_NS, last);
    let handed = |inlet: &mut Inlet| std::iter::from_fn(|| inlet.counters()).count();
    let intervals = inlets.iter_mut().map(handed).sum();
    Outcome { calls, report, intervals }
}

fn source(plan: &WorkerPlan) -> AnySource {
    let thread = &plan.threads[0];
    let blocks = Arc::new(Blocks::of(thread.parts(), BLOCK));
    AnySource::new(&blocks, &plan.pattern, &thread.ops, &plan.blocks, &plan.ops(), thread.seed)
}

/// Runs a plan by time and looks that it did something and never asked for memory.
fn allocates_nothing(plan: &WorkerPlan) {
    let file = tempfile::tempfile().unwrap();
    file.set_len(BLOCKS * BLOCK).unwrap();
    let kind = plan.engine.kind;
    let engine = match engine(plan, file) {
        Ok(engine) => engine,
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "{error}");
            return;
        }
    };
    let Outcome { calls, report, intervals } = outcome(plan, engine, source(plan), BY_TIME);
    assert_eq!(report.end, ThreadEnd::Deadline);
    assert_eq!(report.errors() + report.ramp_errors(), 0);
    assert!(report.ops() + report.ramp_ops() > 0);
    assert!(intervals > 0, "several intervals were handed over");
    let ops = plan.ops();
    assert_eq!(calls, 0, "{kind:?} {ops:?} {:?}", plan.pattern);
}

const ENGINES: [EngineKind; 5] =
    [EngineKind::Sync, EngineKind::IoUring, EngineKind::Libaio, EngineKind::Mmap, EngineKind::Null];

#[test]
fn the_loop_allocates_nothing() {
    for kind in ENGINES {
        for op in [OpKind::Write, OpKind::Read] {
            for pattern in [Pattern::Sequential, Pattern::Random, Pattern::RandomOnce] {
                allocates_nothing(&plan(&only(op), kind, pattern));
            }
        }
    }
}

#[test]
fn a_mix_and_verification_allocate_nothing() {
    let share = |op, weight| OpShare { op, weight };
    let mix = [share(OpKind::Read, 70), share(OpKind::Write, 30)];
    for kind in ENGINES {
        let mut plan = plan(&mix, kind, Pattern::Random);
        allocates_nothing(&plan);
        // Nothing comes back from where nothing goes.
        if kind != EngineKind::Null {
            // The file is empty in the beginning.
            plan.data.verify = true;
            allocates_nothing(&plan);
        }
    }
}

#[test]
fn an_offered_load_allocates_nothing() {
    for kind in ENGINES {
        for exponential in [false, true] {
            let arrivals = Arrivals { per_1000_s: RATE, exponential, phase_ns: 0, seed: 1 };
            let load = Load::Open(arrivals);
            allocates_nothing(&WorkerPlan {
                load,
                ..plan(&only(OpKind::Read), kind, Pattern::Random)
            });
        }
    }
}

#[test]
fn names_allocate_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let dataset = File::open(dir.path()).unwrap();
    let part = TreePart {
        base: "tree".to_owned(),
        shared_dirs: false,
        dirs: 10,
        files_per_dir: 100,
        sizes: vec![],
        sizes_seed: 0,
        existing: Names::default(),
        renamed: false,
    };
    let kinds: Vec<_> = OpKind::ALL.into_iter().filter(|op| !op.moves_data()).collect();
    let ops = fixture::shares(&kinds);
    let mut plan = plan(&ops, EngineKind::Sync, Pattern::Random);
    plan.threads[0].files = Files::Tree(part.clone());
    let tree = Tree::arm(dataset.as_fd(), &part, 0, &ops).unwrap();
    let engine = AnyEngine::Names(Box::new(Namespace::new(tree)));
    let names = NameSource::new(&part, &ops, &plan.ops(), plan.pattern, true, 1).unwrap();
    let source = AnySource::Names(Box::new(names));
    let Outcome { calls, report, .. } = outcome(&plan, engine, source, BY_TIME);
    assert_eq!((report.end, report.errors() + report.ramp_errors()), (ThreadEnd::Deadline, 0));
    assert!(report.ops() + report.ramp_ops() > 0);
    assert_eq!(calls, 0);
}

#[test]
fn errors_allocate_nothing() {
    // The file has half of its blocks: too many errors in a row would be the end.
    let job = Job { blocks: 500, deadline_ns: None, flush_at_end: false };
    for kind in [EngineKind::Sync, EngineKind::IoUring, EngineKind::Libaio] {
        let plan = plan(&only(OpKind::Read), kind, Pattern::Random);
        let file = tempfile::tempfile().unwrap();
        file.set_len(BLOCKS / 2 * BLOCK).unwrap();
        let Ok(engine) = engine(&plan, file) else { continue };
        let Outcome { calls, report, .. } = outcome(&plan, engine, source(&plan), job);
        let counts = (report.ramp_errors() + report.errors(), report.ramp_ops() + report.ops());
        assert_eq!((report.end, counts.0 + counts.1), (ThreadEnd::Finished, 500));
        assert!(counts.0 > 100 && counts.1 > 100, "{counts:?}");
        assert_eq!(calls, 0);
    }
}

#[test]
fn the_counter_counts() {
    counting::count_from(0);
    let before = monotonic_ns();
    drop(std::hint::black_box(vec![1_u8; 100]));
    assert_eq!(counting::calls_between(before, monotonic_ns() + 1), 2);
    assert_eq!(counting::calls_between(0, before), 0);
}
