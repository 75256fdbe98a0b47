//! The loop of one I/O thread, on a scripted engine and a scripted clock.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use iofleet_shared::{
    limits::ERRORS_IN_A_ROW_MAX,
    stats::{BYTE_UNITS, FileTimes, OP_UNITS, OpCounts, ThreadReport, Written, WrittenPart},
    work::{Extent, OpKind, Pattern},
};

use super::*;
use crate::{
    engine::{
        Call,
        scripted::{ScriptClock, Scripted, Step},
    },
    fixture::MS,
    pattern::{Blocks, Coverage, Sequential, Single},
    recorder::{Inlet, Recorder, Totals, rings},
};

mod first_end;
mod lanes;
mod open_load;
mod queued;

/// T0 of the scripts, so that stamps and times after T0 are not the same numbers.
const T0: u64 = 1_000 * MS;
const NO_SPACE: Failure = Failure { call: Call::Write, errno: libc::ENOSPC };
const BROKEN: Failure = Failure { call: Call::Write, errno: libc::EIO };

/// What came of a scripted run of a thread that writes blocks of ten bytes from offset 100 on.
struct Run {
    report: ThreadReport,
    offsets: Vec<u64>,
    totals: Totals,
}

fn play(blocks: u64, job: Job, tick: u64, control: &Control, script: Script) -> Run {
    let time = Arc::new(AtomicU64::new(T0));
    let mut engine = Scripted::new(10, &time, script.steps).flushes(script.flush.0, script.flush.1);
    let thread = Thread::writer(blocks, 100, 0, 1);
    let clock = ScriptClock { time: &time, tick };
    let account = thread.in_steps(&mut engine, job, clock, control);
    Run {
        report: report(&account),
        offsets: engine.offsets().to_vec(),
        totals: account.lanes()[0].measured(),
    }
}

fn report(account: &Account) -> ThreadReport {
    account.report(7, 55, None, |file| format!("f{file}"))
}

/// What a scripted thread has beside its engine.
struct Thread {
    account: Account,
    fittings: Fittings,
    blocks: Arc<Blocks>,
    inlets: Vec<Inlet>,
}

impl Thread {
    /// One that writes so many blocks of ten bytes, in order.
    fn writer(blocks: u64, interval_ms: u64, ramp_ms: u64, depth: u32) -> Self {
        Self::of(&[OpKind::Write], blocks, interval_ms, ramp_ms, depth)
    }

    fn of(ops: &[OpKind], blocks: u64, interval_ms: u64, ramp_ms: u64, depth: u32) -> Self {
        let extent = Extent { offset: 100, length: blocks * 10 };
        let blocks = Arc::new(Blocks::new(&[extent], 10));
        let lane = |op: &OpKind| {
            let (outlet, inlet) = rings(true);
            ((*op, Recorder::new(interval_ms * MS, ramp_ms * MS, depth, outlet)), inlet)
        };
        let (lanes, inlets) = ops.iter().map(lane).unzip();
        let coverage =
            Coverage::of_mix(Arc::clone(&blocks), OpKind::Write, Pattern::Sequential, &[], &[]);
        let coverage = Some((OpKind::Write, coverage));
        let spec = AccountSpec { lanes, coverage, tree_dirs: None };
        let fittings = Fittings { contents: Contents::Unchanged, pacing: Pacing::Closed };
        Self { account: Account::new(spec), fittings, blocks, inlets }
    }

    fn in_steps(
        self,
        engine: &mut Scripted,
        job: Job,
        clock: ScriptClock<'_>,
        control: &Control,
    ) -> Taken<Account> {
        let source = Single::new(Sequential::new(Arc::clone(&self.blocks)), OpKind::Write, 0);
        let timeline = Timeline::new(StampClock::gettime(), T0);
        let (seat, watch) = seat(self.account);
        let bench = Bench { job: &job, timeline: &timeline, control };
        let steps = StepsLoop { seat, engine, fittings: self.fittings, bench };
        drop(steps.run(source, clock).unwrap());
        watch.take(Whereabouts::Ended).unwrap()
    }
}

struct Script {
    steps: Vec<Step>,
    flush: (u64, Result<(), Failure>),
}

fn script(steps: Vec<Step>) -> Script {
    Script { steps, flush: (20 * MS, Ok(())) }
}

fn job(blocks: u64) -> Job {
    Job { blocks, deadline_ns: None, flush_at_end: true }
}

fn written(written: Written) -> Vec<WrittenPart> {
    vec![WrittenPart { file: 0, written }]
}

fn alone() -> Control {
    Control::new(1, 1)
}

#[test]
fn a_share_is_done_once_and_flushed() {
    let steps = vec![Step::Moves(5 * MS), Step::MovesShort(7 * MS, 2), Step::Moves(MS)];
    let run = play(3, job(3), 0, &alone(), script(steps));
    assert_eq!(run.offsets, [100, 110, 120]);
    let ms = |ms: u64| Some((ms * MS).cast_signed());
    assert_eq!(
        run.report,
        ThreadReport {
            thread: 7,
            end: ThreadEnd::Finished,
            counts: vec![OpCounts {
                op: OpKind::Write,
                bytes: 30,
                ops: 3,
                errors: 0,
                ramp_bytes: 0,
                ramp_ops: 0,
                ramp_errors: 0,
            }],
            cpu: CpuTime::default(),
            short_transfers: 2,
            first_issue_ns: Some(0),
            begin_ns: Some(0),
            ended_ns: ms(33),
            busy_begin_ns: Some(0),
            busy_end_ns: ms(13),
            fsync_ns: Some(20 * MS),
            open_ns: 55,
            files: FileTimes::default(),
            bytes_touched: Some(30),
            passes_milli: 1_000,
            unfinished: 0,
            unfinished_ns: None,
            written: written(Written::All),
            names: None,
            damages: vec![],
        }
    );
}

#[test]
fn an_operation_in_flight_at_the_deadline_counts() {
    let steps = vec![Step::Moves(4 * MS), Step::Moves(4 * MS), Step::Moves(4 * MS)];
    let job = Job { blocks: u64::MAX, deadline_ns: Some(10 * MS), flush_at_end: false };
    let run = play(2, job, 0, &alone(), script(steps));
    assert_eq!((run.report.end, run.report.ops()), (ThreadEnd::Deadline, 3));
    assert_eq!(run.offsets, [100, 110, 100]);
    assert_eq!(run.report.busy_end_ns, Some((12 * MS).cast_signed()));
    assert_eq!(run.report.ended_ns, run.report.busy_end_ns);
    assert_eq!((run.report.bytes_touched, run.report.passes_milli), (Some(20), 1_500));
}

#[test]
fn a_thread_cut_off_between_two_operations_was_busy_up_to_the_deadline() {
    // Each reading of the clock takes 1 ms: the first at 0, the operations from 1 to 6 and 7 to 12.
    let steps = vec![Step::Moves(4 * MS), Step::Moves(4 * MS)];
    let job = Job { blocks: u64::MAX, deadline_ns: Some(13 * MS), flush_at_end: false };
    let run = play(2, job, MS, &alone(), script(steps));
    assert_eq!((run.report.end, run.report.ops()), (ThreadEnd::Deadline, 2));
    assert_eq!(run.report.first_issue_ns, Some(MS.cast_signed()));
    assert_eq!(run.report.ended_ns, Some((12 * MS).cast_signed()));
    assert_eq!(run.report.busy_end_ns, Some((13 * MS).cast_signed()));
}

#[test]
fn no_space_ends_a_thread_and_what_is_there_is_flushed() {
    let steps = vec![Step::Moves(MS), Step::Fails(MS, NO_SPACE)];
    let flush = (3 * MS, Err(Failure { call: Call::Fsync, errno: libc::EIO }));
    let run = play(5, job(5), 0, &alone(), Script { steps, flush });
    assert_eq!(run.report.end, ThreadEnd::Errors);
    // The failed fsync is an error as well.
    assert_eq!(run.totals, Totals { bytes: 10, ops: 1, errors: 2 });
    assert_eq!((run.report.bytes(), run.report.ops(), run.report.errors()), (10, 1, 2));
    let range = Extent { offset: 100, length: 10 };
    assert_eq!(run.report.written, written(Written::Ranges(vec![range])));
    assert_eq!(run.report.busy_end_ns, Some((2 * MS).cast_signed()));
    assert_eq!(run.report.ended_ns, Some((5 * MS).cast_signed()));
}

#[test]
fn a_file_that_does_not_close_is_an_error_and_no_later_end() {
    let time = Arc::new(AtomicU64::new(T0));
    let mut engine = Scripted::new(10, &time, vec![Step::Moves(3 * MS)]).closes(Err(BROKEN));
    let thread = Thread::of(&[OpKind::Write, OpKind::Read], 1, 10, 0, 1);
    // The close comes 30 ms after the last operation.
    let job = Job { blocks: 1, deadline_ns: None, flush_at_end: false };
    let clock = ScriptClock { time: &time, tick: 10 * MS };
    let control = alone();
    let account = thread.in_steps(&mut engine, job, clock, &control);
    let report = report(&account);
    assert_eq!(report.errors(), 1);
    // Readings at 0 and 10 ms, the operation's end at 23 ms.
    assert_eq!(report.ended_ns, Some((23 * MS).cast_signed()));
    assert_eq!(control.first_ended(), Some(23 * MS));
    let intervals: Vec<u32> = account.lanes().iter().map(Recorder::interval).collect();
    assert_eq!(intervals[0], intervals[1], "all kinds have the same intervals");
}

#[test]
fn only_errors_in_a_row_end_a_thread() {
    let fails = |count| (0..count).map(|_| Step::Fails(10, BROKEN));
    let most = ERRORS_IN_A_ROW_MAX;
    let steps = fails(most - 1).chain([Step::Moves(10)]).chain(fails(most)).collect();
    let run = play(1_000, job(1_000), 0, &alone(), script(steps));
    assert_eq!(run.report.end, ThreadEnd::Errors);
    assert_eq!((run.report.ops(), run.report.errors()), (1, u64::from(2 * most - 1)));
    let steps = fails(most).collect();
    let run = play(1_000, job(1_000), 0, &alone(), script(steps));
    assert_eq!((run.report.ended_ns, run.report.busy_end_ns), (None, None));
    assert_eq!(run.report.first_issue_ns, Some(0));
    assert_eq!(run.report.written, []);
}

#[test]
fn a_stopped_thread_issues_nothing_and_does_not_flush() {
    let control = alone();
    control.stop();
    let run = play(3, job(3), 0, &control, script(vec![]));
    assert_eq!(run.report.end, ThreadEnd::Stopped);
    assert_eq!((run.report.first_issue_ns, run.report.fsync_ns), (None, None));
    assert!(run.offsets.is_empty());
    assert!(control.all_have_begun(), "nobody waits for it in the roll call");
}

#[test]
fn nobody_waits_for_a_roll_call_longer_than_its_time() {
    // Two threads on one core, of which the other never begins: the script's clock ends the wait.
    let control = Control::new(2, 1);
    let roll_call = u64::try_from(ROLL_CALL.as_nanos()).unwrap();
    let steps = vec![Step::Moves(MS), Step::Moves(MS)];
    let job = Job { flush_at_end: false, ..job(2) };
    let run = play(2, job, MS, &control, script(steps));
    let ended = u64::try_from(run.report.ended_ns.unwrap()).unwrap();
    assert!(ended > roll_call && ended < roll_call + 20 * MS, "{ended}");
    assert_eq!(run.report.ops(), 2);
}

#[test]
fn a_start_needs_t0_and_a_commit_and_no_stop() {
    let clock = StampClock::gettime();
    let started = |prepare: fn(&Control)| {
        let control = alone();
        prepare(&control);
        await_start(&control, clock).is_some()
    };
    assert!(started(|control| {
        control.set_t0(1);
        control.commit();
    }));
    assert!(!started(|control| control.set_t0(1)));
    assert!(!started(Control::stop));
    assert!(!started(|control| {
        control.set_t0(u64::MAX - 1);
        control.commit();
        control.stop();
    }));
}

#[test]
fn the_script_clock_ticks_when_it_is_read() {
    let time = AtomicU64::new(5);
    let clock = ScriptClock { time: &time, tick: 2 };
    assert_eq!((clock.now(), clock.now(), time.load(Ordering::Relaxed)), (5, 7, 9));
}
