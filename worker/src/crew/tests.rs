//! Whole crews: armed, started at one instant, ended, stopped, given up.

use std::{
    fs::{self, File},
    os::{
        fd::AsRawFd,
        unix::fs::{FileExt, MetadataExt},
    },
    path::Path,
    sync::{atomic::AtomicU64, mpsc},
};

use iofleet_shared::{
    clock::monotonic_ns,
    limits::TICK_NS,
    stats::{BYTE_UNITS, OP_UNITS, ThreadEnd, Written, WrittenPart},
    work::{
        Amount, DatasetDir, EngineKind, FilePart, Files, Fsync, Pattern, SizeShare, ThreadPlan,
    },
};
use tokio::sync::mpsc as mpsc_tokio;

use super::*;
use crate::{
    engine::{
        AnyEngine,
        scripted::{Scripted, ScriptedQueue, Step, Wave},
    },
    fixture::{self, BLOCK, MS},
    target::Hold,
};

mod contents;
mod trees;

fn dir() -> DatasetDir {
    DatasetDir { path: "/x".into(), name: "d".into(), campaign: "c".into() }
}

/// Threads that write so many blocks each to a file of its own.
fn plan(threads: u32, blocks: u64) -> WorkerPlan {
    plan_of(&[OpKind::Write], threads, blocks)
}

fn plan_of(ops: &[OpKind], threads: u32, blocks: u64) -> WorkerPlan {
    let files = |thread| fixture::named(&format!("f{thread}"), blocks * BLOCK);
    let thread = |thread| fixture::thread(thread, ops, files(thread), blocks);
    fixture::plan(dir(), (0..threads).map(thread).collect())
}

fn open(dir: &Path, part: &FilePart) -> Arc<File> {
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    Arc::new(options.open(dir.join(&part.file)).unwrap())
}

fn hold(dir: &Path, thread: &ThreadPlan) -> Hold {
    match &thread.files {
        Files::Tree(_) => Hold::Tree(File::open(dir).unwrap().into()),
        Files::Named(parts) | Files::Listed(parts) | Files::Devices(parts) => {
            Hold::Files(parts.iter().map(|part| open(dir, part)).collect())
        }
    }
}

fn opens(dir: &Path, plan: &Arc<WorkerPlan>) -> OpenFiles {
    let (dir, plan) = (dir.to_owned(), Arc::clone(plan));
    Arc::new(move |at| {
        let hold = hold(&dir, &plan.threads[at]);
        Ok(OpenedFiles { hold, open_ns: 11, descriptors: DESCRIPTORS })
    })
}

/// Most operations that a thread of these tests has in flight.
const DEPTH_MOST: u64 = 4;
/// Files that a thread of a tree may hold open.
const DESCRIPTORS: u32 = 16;

fn written(written: Written) -> Vec<WrittenPart> {
    vec![WrittenPart { file: 0, written }]
}

/// What came of a crew, with the sums that must agree checked.
struct Outcome {
    intervals: Vec<NodeInterval>,
    ticks: Vec<(OpKind, Vec<Tick>)>,
    report: PointReport,
}

fn outcome(mut events: mpsc_tokio::Receiver<CrewEvent>) -> Outcome {
    let mut intervals = Vec::new();
    loop {
        match events.blocking_recv().expect("an end before the channel's") {
            CrewEvent::Interval(interval) => intervals.push(interval),
            CrewEvent::Ended { ticks, report } => {
                assert!(events.blocking_recv().is_none(), "nothing follows the end");
                let outcome = Outcome { intervals, ticks, report: *report };
                outcome.check();
                return outcome;
            }
        }
    }
}

impl Outcome {
    fn check(&self) {
        let Self { intervals, ticks, report } = self;
        assert_eq!(report.sums, None);
        assert_eq!(report.intervals as usize, intervals.len());
        assert_eq!(report.ticks, ticks.iter().map(|(_, ticks)| ticks.len() as u64).sum::<u64>());
        let threads = &report.threads;
        for (op, ticks) in ticks {
            let intervals: Vec<_> = intervals.iter().filter(|i| i.op == Some(*op)).collect();
            assert!((0..).zip(&intervals).all(|(k, interval)| interval.k == k));
            let counts = || threads.iter().flat_map(|t| &t.counts).filter(|c| c.op == *op);
            let bytes: u64 = counts().map(|c| c.bytes + c.ramp_bytes).sum();
            let ops: u64 = counts().map(|c| c.ops + c.ramp_ops).sum();
            let errors: u64 = counts().map(|c| c.errors + c.ramp_errors).sum();
            assert_eq!(intervals.iter().map(|i| i.bytes).sum::<u64>(), bytes);
            assert_eq!(intervals.iter().map(|i| i.ops).sum::<u64>(), ops);
            assert_eq!(intervals.iter().map(|i| i.errors).sum::<u64>(), errors);
            let failed = report.errors.iter().filter(|e| e.op == *op);
            assert_eq!(failed.map(|e| e.count).sum::<u64>(), errors);
            let sum =
                |part: fn(&Tick) -> u64| ticks.iter().map(|t| u128::from(part(t))).sum::<u128>();
            assert_eq!(sum(|t| t.bytes), u128::from(bytes) * u128::from(BYTE_UNITS));
            assert_eq!(sum(|t| t.ops), u128::from(ops) * u128::from(OP_UNITS));
            // Each interval belongs to one group of latencies.
            let grouped: u32 = intervals.iter().map(|i| i.latency_intervals).sum();
            assert_eq!(grouped as usize, intervals.len());
        }
        let ops: u64 = threads.iter().map(|t| t.ops() + t.ramp_ops()).sum();
        let threads = threads.len() as u64;
        let mut busy = ticks.iter().flat_map(|(_, ticks)| ticks);
        assert!(busy.all(|t| t.busy_ns <= threads * DEPTH_MOST * TICK_NS));
        let ends = report.threads.iter().filter(|t| t.end != ThreadEnd::Stuck);
        let first_end = report.first_end;
        assert_eq!(first_end.map(|at| at.at_ns), ends.filter_map(|t| t.ended_ns).min());
        assert!(first_end.is_none_or(|first| first.ops <= u128::from(ops) * u128::from(OP_UNITS)));
    }

    fn latencies(&self) -> u64 {
        self.intervals.iter().map(|interval| interval.latency.count).sum()
    }
}

fn start(crew: &Crew) {
    crew.commit();
    crew.set_start(monotonic_ns() + MS);
}

fn arm(plan: &WorkerPlan, dir: &Path) -> (Crew, mpsc_tokio::Receiver<CrewEvent>) {
    let (send, events) = mpsc_tokio::channel(4);
    let plan = Arc::new(plan.clone());
    let open = opens(dir, &plan);
    let crew = Crew::arm(plan, open, StampClock::calibrate(), 512, send).unwrap();
    (crew, events)
}

#[test]
fn a_write_by_size_fills_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(4, 64);
    let (crew, events) = arm(&plan, dir.path());
    assert_eq!(crew.status(0).threads, 4);
    start(&crew);
    let outcome = outcome(events);
    assert_eq!(outcome.report.point, plan.point);
    assert_eq!(outcome.latencies(), 4 * 64);
    let first_end = outcome.report.first_end.unwrap();
    assert!(first_end.ops >= 64 << 32, "the first to end had moved all its blocks");
    // Shares are rounded, in bytes finer than in operations.
    let (bytes, ops) = (first_end.bytes >> 20, (first_end.ops * u128::from(BLOCK)) >> 32);
    assert!(bytes.abs_diff(ops) <= 1, "{bytes} bytes, {ops} by operations");
    let mut contents = Vec::new();
    for (thread, report) in plan.threads.iter().zip(&outcome.report.threads) {
        let path = dir.path().join(&thread.parts()[0].file);
        assert_eq!(report.bytes(), fs::metadata(&path).unwrap().len());
        assert_eq!((report.end, report.ops()), (ThreadEnd::Finished, 64));
        assert_eq!((&report.written, report.open_ns), (&written(Written::All), 11));
        assert_eq!(report.passes_milli, 1_000);
        assert!(report.fsync_ns.is_some() && report.ended_ns > report.busy_end_ns);
        assert!(report.first_issue_ns.unwrap() >= 0);
        contents.push(fs::read(path).unwrap());
    }
    contents.dedup();
    assert_eq!(contents.len(), 4, "threads write different data");
    let status = crew.status(monotonic_ns());
    assert_eq!(status, CrewStatus { threads: 0, bytes: 4 * 64 * BLOCK, oldest_ns: 0 });
}

#[test]
fn a_read_by_time_begins_its_range_again() {
    let dir = tempfile::tempdir().unwrap();
    let amount = Amount::Time { duration_ns: 40 * MS, repeat: true };
    let base = plan_of(&[OpKind::Read], 2, 8);
    for pattern in [Pattern::Sequential, Pattern::Random, Pattern::RandomOnce] {
        let plan = WorkerPlan { amount, pattern, ramp_ns: 20 * MS, ..base.clone() };
        for part in plan.threads.iter().flat_map(|thread| thread.parts()) {
            open(dir.path(), part).set_len(8 * BLOCK).unwrap();
        }
        let (crew, events) = arm(&plan, dir.path());
        start(&crew);
        let outcome = outcome(events);
        for report in &outcome.report.threads {
            assert_eq!((report.end, report.written.len()), (ThreadEnd::Deadline, 0));
            assert!(report.busy_end_ns.unwrap() >= (60 * MS).cast_signed());
            assert_eq!(report.bytes(), report.ops() * BLOCK);
            let issued = report.ops() + report.ramp_ops();
            assert_eq!(report.passes_milli, issued * 1_000 / 8);
            let touched = report.bytes_touched.unwrap();
            assert!(touched <= 8 * BLOCK && touched > 0);
            assert_eq!(report.fsync_ns, None);
        }
        // All but those that began during the warm-up and completed after it.
        let ops: u64 = outcome.intervals.iter().map(|interval| interval.ops).sum();
        assert!(ops - outcome.latencies() <= 2);
        let ramp: u64 = outcome.intervals.iter().take(2).map(|interval| interval.ops).sum();
        let threads = &outcome.report.threads;
        assert_eq!(threads.iter().map(|t| t.ramp_ops()).sum::<u64>(), ramp);
    }
}

#[test]
fn without_repetition_the_end_of_the_range_ends_a_thread() {
    let dir = tempfile::tempdir().unwrap();
    let amount = Amount::Time { duration_ns: 3_600_000 * MS, repeat: false };
    let (crew, events) = arm(&WorkerPlan { amount, ..plan(1, 5) }, dir.path());
    start(&crew);
    let report = &outcome(events).report.threads[0];
    assert_eq!((report.end, report.ops()), (ThreadEnd::Finished, 5));
}

#[test]
fn more_threads_than_cores_call_the_roll_and_add_up() {
    let dir = tempfile::tempdir().unwrap();
    let plan = WorkerPlan { fsync: Fsync::None, ..plan(64, 16) };
    let (crew, events) = arm(&plan, dir.path());
    start(&crew);
    let outcome = outcome(events);
    assert!(outcome.report.threads.iter().all(|t| t.ops() == 16 && t.fsync_ns.is_none()));
    assert_eq!(outcome.ticks[0].1.iter().map(|t| u128::from(t.ops)).sum::<u128>(), 1_024 << 32);
}

#[test]
fn a_stop_before_t0_leaves_no_trace() {
    let dir = tempfile::tempdir().unwrap();
    for has_t0 in [false, true] {
        let (crew, events) = arm(&plan(3, 8), dir.path());
        crew.commit();
        if has_t0 {
            crew.set_start(monotonic_ns() + 3_600_000 * MS);
        }
        crew.stop();
        let outcome = outcome(events);
        assert!(outcome.intervals.is_empty() && outcome.ticks.iter().all(|(_, t)| t.is_empty()));
        for report in &outcome.report.threads {
            assert_eq!((report.end, report.first_issue_ns), (ThreadEnd::Stopped, None));
            assert_eq!((report.ended_ns, report.written.len()), (None, 0));
        }
        assert_eq!(fs::metadata(dir.path().join("f0")).unwrap().len(), 0);
    }
}

#[test]
fn a_start_that_is_not_committed_in_time_does_no_io() {
    let dir = tempfile::tempdir().unwrap();
    let (crew, events) = arm(&plan(3, 8), dir.path());
    crew.set_start(monotonic_ns());
    let outcome = outcome(events);
    assert!(outcome.report.threads.iter().all(|t| t.end == ThreadEnd::Stopped && t.ops() == 0));
    assert!(!crew.commit(), "the commit came too late, and is told so");
}

#[test]
fn a_running_crew_stops_after_the_operations_in_flight() {
    let dir = tempfile::tempdir().unwrap();
    let amount = Amount::Time { duration_ns: 3_600_000 * MS, repeat: true };
    let (crew, mut events) = arm(&WorkerPlan { amount, ..plan(2, 8) }, dir.path());
    start(&crew);
    // Both threads are at work once an interval is final.
    let Some(CrewEvent::Interval(first)) = events.blocking_recv() else {
        panic!("an interval comes first")
    };
    crew.stop();
    let mut intervals = vec![first];
    let report = loop {
        match events.blocking_recv().unwrap() {
            CrewEvent::Interval(interval) => intervals.push(interval),
            CrewEvent::Ended { ticks, report } => {
                Outcome { intervals, ticks, report: *report.clone() }.check();
                break report;
            }
        }
    };
    assert!(report.threads.iter().all(|t| t.end == ThreadEnd::Stopped && t.fsync_ns.is_none()));
}

#[test]
fn errors_are_counted_by_kind_and_the_rest_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan_of(&[OpKind::Read], 2, 4);
    // The files end after one and a half and after four blocks.
    for (thread, bytes) in [(0, BLOCK * 3 / 2), (1, BLOCK * 4)] {
        let file = File::create(dir.path().join(format!("f{thread}"))).unwrap();
        file.write_all_at(&vec![1; usize::try_from(bytes).unwrap()], 0).unwrap();
    }
    let (crew, events) = arm(&plan, dir.path());
    start(&crew);
    let Outcome { report, .. } = outcome(events);
    assert_eq!((report.threads[0].ops(), report.threads[0].errors()), (1, 3));
    assert_eq!((report.threads[1].ops(), report.threads[1].errors()), (4, 0));
    assert_eq!(report.threads[0].bytes_touched, Some(BLOCK));
    assert_eq!(report.threads[0].short_transfers, 1);
    let [error] = report.errors.as_slice() else { panic!("{:?}", report.errors) };
    assert_eq!((error.call.as_str(), error.errno, error.count), ("short read", 0, 3));
    assert_eq!((error.file.as_str(), error.offset), ("f0", BLOCK));
    assert!(error.max_ns <= error.sum_ns);
}

/// Makes an engine on the thread that will use it.
type MakeEngine = Box<dyn FnOnce() -> AnyEngine + Send>;

/// A crew on engines of a script, one for each thread.
fn muster(plan: WorkerPlan, engines: Vec<MakeEngine>) -> (Crew, mpsc_tokio::Receiver<CrewEvent>) {
    let outfits = engines
        .into_iter()
        .map(|engine| {
            let files = OpenedFiles { hold: Hold::Files(vec![]), open_ns: 0, descriptors: 1 };
            let outfit = move |station: &Station<'_>| {
                let outfit = station.outfit(files)?;
                Ok(Outfit { engine: engine(), ..outfit })
            };
            Box::new(outfit) as MakeOutfit
        })
        .collect();
    let (send, events) = mpsc_tokio::channel(4);
    let clock = StampClock::calibrate();
    let camp = Camp { plan: Arc::new(plan), clock, memory_alignment: 512 };
    (Crew::muster(camp, outfits, send).unwrap(), events)
}

#[test]
fn a_stuck_thread_is_given_up_with_all_it_counted() {
    let plan = WorkerPlan { stuck_after_ns: 20 * MS, ..plan_of(&[OpKind::Read], 3, 4) };
    let mut releases = Vec::new();
    let time = Arc::new(AtomicU64::new(0));
    // Thread 0 does its share; 1 never returns from its third block, 2 from its first.
    let engines = [4, 2, 0].map(|moves| {
        let (release, released) = mpsc::channel();
        releases.push(release);
        let steps = (0..moves).map(|_| Step::Moves(0));
        let steps = steps.chain([Step::Blocks(released)]).collect();
        let engine = Scripted::new(BLOCK, &time, steps);
        Box::new(|| AnyEngine::Scripted(engine)) as MakeEngine
    });
    let (crew, events) = muster(plan, engines.into());
    start(&crew);
    let outcome = outcome(events);
    let [done, third, first] = outcome.report.threads.as_slice() else { panic!("three threads") };
    assert_eq!((done.end, done.ops(), done.unfinished_ns), (ThreadEnd::Finished, 4, None));
    assert_eq!((third.end, third.ops(), third.bytes()), (ThreadEnd::Stuck, 2, 2 * BLOCK));
    assert_eq!((third.bytes_touched, third.passes_milli), (Some(2 * BLOCK), 500));
    assert_eq!((first.end, first.ops()), (ThreadEnd::Stuck, 0));
    assert_eq!((first.ended_ns, first.busy_end_ns), (None, None));
    assert!(first.first_issue_ns.is_some(), "it did issue an operation");
    assert!([third, first].iter().all(|thread| thread.unfinished_ns.unwrap() >= 20 * MS));
    // Also the latencies of the interval in which it got stuck are there.
    assert_eq!(outcome.latencies(), 6);
    // Thread 1 was stuck when thread 0 ended, or was still to do its two blocks.
    let first_end = outcome.report.first_end.unwrap();
    assert_eq!(Some(first_end.at_ns), done.ended_ns);
    assert!(first_end.ops >= 4 << 32 && first_end.ops <= 6 << 32);
    assert_eq!(crew.status(monotonic_ns()).threads, 0);
    // Who comes back after all finds its account gone, and leaves.
    drop(releases);
}

#[test]
fn a_stuck_queue_is_given_up_with_all_that_are_in_flight() {
    let plan = WorkerPlan {
        stuck_after_ns: 20 * MS,
        engine: fixture::engine(EngineKind::Null, 4),
        ..plan(1, 16)
    };
    let time = Arc::new(AtomicU64::new(0));
    let (release, released) = mpsc::channel();
    // The second completes, and one more takes its place; then nothing does.
    let waves = vec![Wave::Done(0, vec![1]), Wave::Blocks(released)];
    let queue = ScriptedQueue::new(4, &time, waves);
    let (crew, events) = muster(plan, vec![Box::new(|| AnyEngine::ScriptedQueue(queue))]);
    start(&crew);
    let Outcome { report, .. } = outcome(events);
    let thread = &report.threads[0];
    assert_eq!((thread.end, thread.ops(), thread.unfinished), (ThreadEnd::Stuck, 1, 4));
    // The oldest of them are those of the first round.
    assert!(thread.unfinished_ns.unwrap() >= 20 * MS);
    assert_eq!(thread.busy_begin_ns, None);
    // Nobody knows what became of the four.
    assert_eq!(thread.written, written(Written::Scattered));
    drop(release);
}

#[test]
fn threads_are_where_the_plan_says() {
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    let Some(core) = (0..1_024).rev().find(|core| allowed.is_set(*core)) else { return };
    let cores = Some(vec![u32::try_from(core).unwrap()]);
    let mut plan = WorkerPlan { fsync: Fsync::None, ..plan(1, 4) };
    plan.placement.cores = cores;
    let dir = tempfile::tempdir().unwrap();
    let (path, part) = (dir.path().to_owned(), plan.threads[0].clone());
    let (tell, hear) = mpsc::channel();
    let outfit = move |station: &Station<'_>| {
        let now = rustix::thread::sched_getaffinity(None).unwrap();
        tell.send((now.count(), now.is_set(core))).unwrap();
        let hold = hold(&path, &part);
        station.outfit(OpenedFiles { hold, open_ns: 0, descriptors: 1 })
    };
    let outfits = vec![Box::new(outfit) as MakeOutfit];
    let (send, events) = mpsc_tokio::channel(4);
    let clock = StampClock::calibrate();
    let camp = Camp { plan: Arc::new(plan), clock, memory_alignment: 512 };
    let crew = Crew::muster(camp, outfits, send).unwrap();
    assert_eq!(hear.recv().unwrap(), (1, true));
    start(&crew);
    assert_eq!(outcome(events).report.threads[0].ops(), 4);
}

#[test]
fn a_crew_that_never_starts_is_dismissed() {
    let dir = tempfile::tempdir().unwrap();
    let (crew, mut events) = arm(&plan(3, 8), dir.path());
    drop(crew);
    assert!(events.blocking_recv().is_none());
}

#[test]
fn what_cant_be_armed_is_refused_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(2, 8);
    let refusal = |plan: &WorkerPlan, alignment| {
        let (send, mut events) = mpsc_tokio::channel(4);
        let plan = Arc::new(plan.clone());
        let open = opens(dir.path(), &plan);
        let error = Crew::arm(plan, open, StampClock::gettime(), alignment, send).unwrap_err();
        assert!(events.blocking_recv().is_none(), "nothing of it is left");
        error.to_string()
    };
    let blocks = |bytes| vec![SizeShare { bytes, weight: 1 }];
    let bad = WorkerPlan { blocks: blocks(0), ..plan.clone() };
    assert!(refusal(&bad, 512).contains("block"));
    let bad = WorkerPlan { interval_ns: MS, ..plan.clone() };
    assert!(refusal(&bad, 512).contains("interval"));
    let bad = WorkerPlan { threads: vec![], ..plan.clone() };
    assert!(refusal(&bad, 512).contains("no threads"));
    let bad = WorkerPlan { blocks: blocks(1 << 60), ..plan.clone() };
    assert!(refusal(&bad, 512).starts_with("no buffer of 1152921504606846976 bytes"));
}

#[test]
fn a_file_that_does_not_open_on_its_thread_refuses_the_crew() {
    let plan = Arc::new(plan(3, 8));
    let dir = tempfile::tempdir().unwrap();
    let good = opens(dir.path(), &plan);
    let open = move |at: usize| match at {
        1 => Err(Refusal { kind: RefusalKind::Target, point: None, text: "no such file".into() }),
        at => good(at),
    };
    let (send, mut events) = mpsc_tokio::channel(4);
    let refused = Crew::arm(plan, Arc::new(open), StampClock::gettime(), 512, send);
    assert!(matches!(refused, Err(CrewError::Refused(refusal)) if refusal.text == "no such file"));
    assert!(events.blocking_recv().is_none(), "nothing of it is left");
}

#[test]
fn each_thread_has_its_descriptors_to_itself() {
    let dir = tempfile::tempdir().unwrap();
    let plan = Arc::new(plan(2, 8));
    let good = opens(dir.path(), &plan);
    let (tell, hear) = mpsc::channel();
    let open = move |at: usize| {
        let opened = good(at)?;
        let Hold::Files(files) = &opened.hold else { panic!("no tree was asked for") };
        tell.send((files[0].as_raw_fd(), files[0].metadata().unwrap().ino())).unwrap();
        Ok(opened)
    };
    let (send, events) = mpsc_tokio::channel(4);
    let crew = Crew::arm(plan, Arc::new(open), StampClock::calibrate(), 512, send).unwrap();
    for _ in 0..2 {
        let (fd, inode) = hear.recv().unwrap();
        let here = fs::metadata(format!("/proc/self/fd/{fd}")).map(|file| file.ino());
        assert_ne!(here.ok(), Some(inode), "the file is open in the table of the process");
    }
    start(&crew);
    let report = outcome(events).report;
    assert_eq!(report.threads.iter().map(|thread| thread.ops()).sum::<u64>(), 16);
}
