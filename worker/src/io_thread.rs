//! The loop of an I/O thread, and how it begins and ends.
//!
//! Between the two stamps of an operation there is its call and nothing else. Filing it happens
//! after the second stamp, in memory of the thread's own: no lock, no allocation, no formatting.
//! There is one loop for engines that do one operation at a time (`steps`) and one for those with a
//! queue (`queued`), both generic over engine, source and clock, picked once by [`run`].

use std::{thread, time::Duration};

use iofleet_shared::{
    limits::ROLL_CALL,
    stats::{CpuTime, FileTimes, NamesLeft, ThreadEnd},
};

use crate::{
    engine::{AnyEngine, Engine, Failure, Queue},
    pattern::{AnySource, Source},
    stamp::{Clock, Gettime, StampClock, StampKind, Tsc, sleep_until},
};

pub use account::{Account, AccountSpec, Issued};
pub use claim::{Glance, Gone, Seat, Taken, Watch, Whereabouts, seat};
pub use control::Control;
pub use fittings::{Contents, Fittings, Pacing};

mod account;
mod claim;
mod control;
mod fittings;
mod queued;
mod steps;
mod usage;

/// How long before T0 a parked thread changes over to the absolute sleep.
const SLEEP_NS: u64 = 2_000_000;
/// How long before T0 a thread begins to spin, where it has a core for itself.
const SPIN_NS: u64 = 200_000;

/// What one thread is to do, beside where.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    /// Blocks of the thread's grid, or names, at most.
    pub blocks: u64,
    /// No operation is issued from then on, in ns after T0.
    pub deadline_ns: Option<u64>,
    /// Whether fsync follows the last operation.
    pub flush_at_end: bool,
}

/// T0 on the stamp clock, and how stamps convert.
#[derive(Debug, Clone, Copy)]
pub struct Timeline {
    clock: StampClock,
    t0_stamp: u64,
}

impl Timeline {
    /// The time line of a T0 on the worker's monotonic clock.
    #[must_use]
    pub fn new(clock: StampClock, t0_worker_ns: u64) -> Self {
        Self { clock, t0_stamp: clock.from_ns(t0_worker_ns) }
    }

    /// ns from T0 to a stamp, 0 for stamps before it.
    #[inline]
    #[must_use]
    pub fn after_t0(&self, stamp: u64) -> u64 {
        self.clock.delta_ns(stamp.saturating_sub(self.t0_stamp))
    }

    /// The first stamp that is `ns` after T0 or later.
    #[must_use]
    pub fn stamp_at(&self, ns: u64) -> u64 {
        self.t0_stamp.saturating_add(self.clock.units_of(ns))
    }
}

/// Waits for T0.
///
/// Gives none where there is no I/O to be done: the crew was stopped or dismissed, or the start was
/// not committed when T0 came.
#[must_use]
pub fn await_start(control: &Control, clock: StampClock) -> Option<Timeline> {
    let t0 = loop {
        if control.is_stopped() {
            return None;
        }
        if let Some(t0) = control.t0() {
            break t0;
        }
        thread::park();
    };
    loop {
        let ahead = t0.saturating_sub(clock.to_ns(clock.now()));
        if control.is_stopped() {
            return None;
        }
        if ahead <= SLEEP_NS {
            break;
        }
        thread::park_timeout(Duration::from_nanos(ahead - SLEEP_NS));
    }
    sleep_until(if control.may_spin() { t0.saturating_sub(SPIN_NS) } else { t0 });
    let timeline = Timeline::new(clock, t0);
    while clock.now() < timeline.t0_stamp {
        std::hint::spin_loop();
    }
    (control.is_committed() && !control.is_stopped()).then_some(timeline)
}

/// Does the job with the loop made for this engine, source and clock.
///
/// # Errors
/// When the thread was given up meanwhile.
pub fn run(
    seat: Seat<Account>,
    engine: AnyEngine,
    source: AnySource,
    fittings: Fittings,
    bench: Bench<'_>,
) -> Result<Seat<Account>, Gone> {
    let rest = Rest { seat, source, fittings, bench };
    match engine {
        AnyEngine::Sync(engine) => rest.in_steps(engine),
        AnyEngine::SyncSpecial(engine) => rest.in_steps(engine),
        AnyEngine::Mmap(engine) => rest.in_steps(engine),
        AnyEngine::Names(engine) => rest.in_steps(*engine),
        AnyEngine::Both(engine) => rest.in_steps(*engine),
        AnyEngine::Null(engine) => rest.in_steps(engine),
        AnyEngine::Uring(engine) => rest.queued(*engine),
        AnyEngine::Libaio(engine) => rest.queued(*engine),
        #[cfg(test)]
        AnyEngine::Scripted(engine) => rest.in_steps(engine),
        #[cfg(test)]
        AnyEngine::ScriptedQueue(engine) => rest.queued(engine),
    }
}

/// What a thread has to go by.
#[derive(Debug, Clone, Copy)]
pub struct Bench<'a> {
    /// What it is to do.
    pub job: &'a Job,
    /// T0, and how stamps convert.
    pub timeline: &'a Timeline,
    /// What its crew shares.
    pub control: &'a Control,
}

struct Rest<'a> {
    seat: Seat<Account>,
    source: AnySource,
    fittings: Fittings,
    bench: Bench<'a>,
}

impl Rest<'_> {
    fn in_steps(self, engine: impl Engine) -> Result<Seat<Account>, Gone> {
        let Self { seat, source, fittings, bench } = self;
        with_source(source, bench, StepsLoop { seat, engine, fittings, bench })
    }

    fn queued(self, engine: impl Queue) -> Result<Seat<Account>, Gone> {
        let Self { seat, source, fittings, bench } = self;
        with_source(source, bench, QueuedLoop { seat, engine, fittings, bench })
    }
}

/// A loop that waits for its source and clock.
trait Loop {
    fn run(self, source: impl Source, clock: impl Clock) -> Result<Seat<Account>, Gone>;
}

fn with_source(
    source: AnySource,
    bench: Bench<'_>,
    ready: impl Loop,
) -> Result<Seat<Account>, Gone> {
    match source {
        AnySource::Sequential(source) => with_clock(source, bench, ready),
        AnySource::Random(source) => with_clock(source, bench, ready),
        AnySource::RandomOnce(source) => with_clock(source, bench, ready),
        AnySource::Drawn(source) => with_clock(source, bench, ready),
        AnySource::Names(source) => with_clock(*source, bench, ready),
        AnySource::Both(source) => with_clock(*source, bench, ready),
    }
}

fn with_clock(
    source: impl Source,
    bench: Bench<'_>,
    ready: impl Loop,
) -> Result<Seat<Account>, Gone> {
    match bench.timeline.clock.kind() {
        StampKind::Tsc => ready.run(source, Tsc),
        StampKind::Gettime => ready.run(source, Gettime),
    }
}

struct StepsLoop<'a, E> {
    seat: Seat<Account>,
    engine: E,
    fittings: Fittings,
    bench: Bench<'a>,
}

impl<E: Engine> Loop for StepsLoop<'_, E> {
    fn run(self, mut source: impl Source, clock: impl Clock) -> Result<Seat<Account>, Gone> {
        let Self { seat, mut engine, mut fittings, bench } = self;
        let spent = usage::now();
        let (seat, end, since) =
            steps::operate(seat, &mut engine, &mut source, &mut fittings, clock, bench)?;
        let mut seat = finish(seat, end, &fittings, bench, spent);
        seat = flush(seat, end, since, clock, bench, || engine.flush())?;
        let mut settled = Ok(());
        while let Some(request) = source.settle().filter(|_| settled.is_ok()) {
            let call = || engine.prepare(&request).and_then(|()| engine.perform(&request).result);
            let (back, result) = seat.away(clock.now(), call)?;
            (seat, settled) = (back, result.map(|_| ()));
        }
        let (mut seat, closed) = seat.away(clock.now(), || engine.close())?;
        if let Err(failure) = settled.and(closed) {
            seat.account().failed_late(timeline_now(clock, bench), failure);
        }
        let names = source.names();
        let known = |names: NamesLeft| {
            // What a failed call has left, nobody knows.
            let renamed = names.renamed.filter(|_| settled.is_ok());
            NamesLeft { renamed, ..names }
        };
        seat.account().names_left(names.map(known));
        seat.account().closed(engine.file_times());
        Ok(seat)
    }
}

struct QueuedLoop<'a, Q> {
    seat: Seat<Account>,
    engine: Q,
    fittings: Fittings,
    bench: Bench<'a>,
}

impl<Q: Queue> Loop for QueuedLoop<'_, Q> {
    fn run(self, mut source: impl Source, clock: impl Clock) -> Result<Seat<Account>, Gone> {
        let Self { seat, mut engine, mut fittings, bench } = self;
        let spent = usage::now();
        let (seat, end, since) =
            queued::operate(seat, &mut engine, &mut source, &mut fittings, clock, bench)?;
        let seat = finish(seat, end, &fittings, bench, spent);
        let seat = flush(seat, end, since, clock, bench, || engine.flush())?;
        let (mut seat, ()) = seat.away(clock.now(), || engine.close())?;
        seat.account().closed(FileTimes::default());
        Ok(seat)
    }
}

/// ns after T0.
fn timeline_now(clock: impl Clock, bench: Bench<'_>) -> u64 {
    bench.timeline.after_t0(clock.now())
}

/// No further operation will be issued.
fn finish(
    mut seat: Seat<Account>,
    end: ThreadEnd,
    fittings: &Fittings,
    bench: Bench<'_>,
    spent: CpuTime,
) -> Seat<Account> {
    let account = seat.account();
    account.spent(usage::since(spent));
    if account.issued() == 0 {
        bench.control.has_begun();
    }
    account.finished(end, bench.job.deadline_ns);
    account.offered(fittings.pacing.totals());
    seat
}

/// Makes what was written durable, where that was asked for, and says when the thread ended.
fn flush(
    mut seat: Seat<Account>,
    end: ThreadEnd,
    since: u64,
    clock: impl Clock,
    bench: Bench<'_>,
    call: impl FnOnce() -> Result<(), Failure>,
) -> Result<Seat<Account>, Gone> {
    let Bench { job, timeline, control } = bench;
    // Who is told to stop does not wait for data to become durable, and reports no fsync.
    if job.flush_at_end && seat.account().issued() > 0 && end != ThreadEnd::Stopped {
        let (back, flush) = seat.away(since, || {
            let start = clock.now();
            let outcome = call();
            Stamped { start, end: clock.now(), outcome }
        })?;
        seat = back;
        let (start, end) = (timeline.after_t0(flush.start), timeline.after_t0(flush.end));
        seat.account().flushed(start, end, flush.outcome);
    }
    if let Some(ended) = seat.account().ended() {
        control.ended_at(ended);
    }
    Ok(seat)
}

/// The stamps and the outcome of a call.
struct Stamped<T> {
    start: u64,
    end: u64,
    outcome: T,
}

/// Yields until all threads of the worker have issued an operation: without it, each would keep its
/// core for whole slices of the scheduler while the others have not begun.
#[cold]
fn roll_call(clock: impl Clock, timeline: &Timeline, control: &Control) {
    let at_most = u64::try_from(ROLL_CALL.as_nanos()).unwrap_or(u64::MAX);
    let until = clock.now().saturating_add(timeline.clock.units_of(at_most));
    while !control.all_have_begun() && !control.is_stopped() && clock.now() < until {
        thread::yield_now();
    }
}

#[cfg(test)]
mod tests;
