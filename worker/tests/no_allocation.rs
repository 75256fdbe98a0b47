//! From T0 to the end of its operations an I/O thread allocates nothing: a call of the allocator may
//! take a lock, a page fault or a system call, and would be measured as if it were the file system.

#![expect(clippy::unwrap_used, reason = "a test fails by it")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    fs::File,
    sync::Arc,
};

use iofleet_shared::{
    clock::monotonic_ns,
    stats::{ThreadEnd, ThreadReport},
    work::{Extent, OpKind, Pattern},
};
use iofleet_worker::{
    engine::{AnyEngine, SyncRead, SyncWrite},
    io_thread::{Account, Control, Job, Order, Timeline, Whereabouts, run, seat},
    pattern::Blocks,
    payload::Buffer,
    recorder::{Inlet, Recorder, rings},
    stamp::StampClock,
};

/// The system's allocator, with a count of each thread's calls.
struct Counting;

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    CALLS.with(|calls| calls.set(calls.get() + 1));
}

// SAFETY: every call is passed on as it came; counting touches only a number of this thread.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count();
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const MS: u64 = 1_000_000;
const BLOCK: u64 = 4_096;
const BLOCKS: u64 = 64;

/// Runs a thread's job on this thread; gives the allocator's calls meanwhile and the account.
fn calls_of(op: OpKind, pattern: Pattern, file: File, job: Job) -> (u64, Outcome) {
    let extent = Extent { offset: 0, length: BLOCKS * BLOCK };
    let blocks = Arc::new(Blocks::new(&[extent], BLOCK));
    let order = Order { blocks, pattern, seed: 1 };
    let file = Arc::new(file);
    let bytes = usize::try_from(BLOCK).unwrap();
    let engine = match op {
        OpKind::Read => {
            AnyEngine::SyncRead(SyncRead::new(Arc::clone(&file), Buffer::new(bytes, 1).unwrap()))
        }
        OpKind::Write => AnyEngine::SyncWrite(SyncWrite::new(
            Arc::clone(&file),
            Buffer::seeded(bytes, 1, 1).unwrap(),
        )),
    };
    let (outlet, mut inlet) = rings();
    let recorder = Recorder::new(10 * MS, 20 * MS, outlet);
    let (seat, watch) = seat(Account::new(recorder, &order, op));
    let control = Control::new(1, 1);
    let mut clock = StampClock::calibrate();
    clock.refine();
    let timeline = Timeline::new(clock, monotonic_ns());
    let before = CALLS.with(Cell::get);
    let result = run(seat, engine, order, &job, &timeline, &control);
    let calls = CALLS.with(Cell::get) - before;
    drop(result.unwrap());
    let account = watch.take(Whereabouts::Ended).unwrap();
    let report = account.report(0, 0, None);
    (calls, Outcome { report, intervals: drain(&mut inlet) })
}

struct Outcome {
    report: ThreadReport,
    intervals: usize,
}

fn drain(inlet: &mut Inlet) -> usize {
    std::iter::from_fn(|| inlet.counters()).count()
}

#[test]
fn the_loop_allocates_nothing() {
    let by_time = Job { operations: u64::MAX, deadline_ns: Some(80 * MS), flush_at_end: false };
    for op in [OpKind::Write, OpKind::Read] {
        for pattern in [Pattern::Sequential, Pattern::Random, Pattern::RandomOnce] {
            let file = tempfile::tempfile().unwrap();
            file.set_len(BLOCKS * BLOCK).unwrap();
            let (calls, account) = calls_of(op, pattern, file, by_time);
            assert_eq!(account.report.end, ThreadEnd::Deadline);
            assert!(account.report.ops + account.report.ramp_ops > 0);
            assert!(account.intervals > 0, "several intervals were handed over");
            assert_eq!(calls, 0, "{op:?} {pattern:?}");
        }
    }
}

#[test]
fn errors_allocate_nothing() {
    // The file is empty, so that every read is short.
    let job = Job { operations: 50, deadline_ns: None, flush_at_end: false };
    let file = tempfile::tempfile().unwrap();
    let (calls, account) = calls_of(OpKind::Read, Pattern::Random, file, job);
    assert_eq!((account.report.end, account.report.ramp_errors), (ThreadEnd::Finished, 50));
    assert_eq!(calls, 0);
}

#[test]
fn the_counter_counts() {
    let before = CALLS.with(Cell::get);
    drop(std::hint::black_box(vec![1_u8; 100]));
    assert_eq!(CALLS.with(Cell::get) - before, 2);
}
