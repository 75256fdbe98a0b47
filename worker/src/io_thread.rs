//! The loop of an I/O thread, and how it begins and ends.
//!
//! Between the two stamps of an operation there is its call and nothing else. Filing it happens
//! after the second stamp, in memory of the thread's own: no lock, no allocation, no formatting.
//! The loop is generic over engine, order and clock, picked once by [`run`].

use std::{sync::Arc, thread, time::Duration};

use iofleet_shared::{
    limits::{ERRORS_IN_A_ROW_MAX, ROLL_CALL},
    stats::ThreadEnd,
    work::Pattern,
};

use crate::{
    engine::{AnyEngine, Engine, Failure, Transfer},
    pattern::{AnyCursor, Blocks, Cursor, Place, Random, RandomOnce, Sequential},
    stamp::{Clock, Gettime, StampClock, StampKind, Tsc, sleep_until},
};

pub use account::{Account, Issued};
pub use claim::{Glance, Gone, Seat, Taken, Watch, Whereabouts, seat};
pub use control::Control;

mod account;
mod claim;
mod control;

/// How long before T0 a parked thread changes over to the absolute sleep.
const SLEEP_NS: u64 = 2_000_000;
/// How long before T0 a thread begins to spin, where it has a core for itself.
const SPIN_NS: u64 = 200_000;

/// What one thread is to do, beside where.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    /// Operations at most.
    pub operations: u64,
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

/// Does the job with the loop made for this engine, order and clock.
///
/// # Errors
/// When the thread was given up meanwhile.
pub fn run(
    seat: Seat<Account>,
    engine: AnyEngine,
    order: Order,
    job: &Job,
    timeline: &Timeline,
    control: &Control,
) -> Result<Seat<Account>, Gone> {
    let rest = Rest { seat, order, job, timeline, control };
    match engine {
        AnyEngine::SyncRead(engine) => rest.with_engine(engine),
        AnyEngine::SyncWrite(engine) => rest.with_engine(engine),
        AnyEngine::SyncWriteEach(engine) => rest.with_engine(engine),
        #[cfg(test)]
        AnyEngine::Scripted(engine) => rest.with_engine(engine),
    }
}

/// A thread's blocks, and the order in which it takes them.
#[derive(Debug, Clone)]
pub struct Order {
    /// Which blocks.
    pub blocks: Arc<Blocks>,
    /// In which order.
    pub pattern: Pattern,
    /// Seed of the order.
    pub seed: u64,
}

struct Rest<'a> {
    seat: Seat<Account>,
    order: Order,
    job: &'a Job,
    timeline: &'a Timeline,
    control: &'a Control,
}

impl Rest<'_> {
    fn with_engine(self, mut engine: impl Engine) -> Result<Seat<Account>, Gone> {
        let Order { blocks, pattern, seed } = self.order.clone();
        match pattern {
            Pattern::Sequential => self.with_cursor(&mut engine, Sequential::new(blocks)),
            Pattern::Random => self.with_cursor(&mut engine, Random::new(blocks, seed)),
            Pattern::RandomOnce => self.with_cursor(&mut engine, RandomOnce::new(blocks, seed)),
            Pattern::Backward
            | Pattern::Strided { .. }
            | Pattern::Zipf { .. }
            | Pattern::Pareto { .. }
            | Pattern::Normal { .. } => {
                self.with_cursor(&mut engine, AnyCursor::new(&pattern, blocks, seed))
            }
        }
    }

    fn with_cursor(
        self,
        engine: &mut impl Engine,
        mut cursor: impl Cursor,
    ) -> Result<Seat<Account>, Gone> {
        let Self { seat, job, timeline, control, .. } = self;
        match timeline.clock.kind() {
            StampKind::Tsc => drive(seat, engine, &mut cursor, Tsc, job, timeline, control),
            StampKind::Gettime => drive(seat, engine, &mut cursor, Gettime, job, timeline, control),
        }
    }
}

/// The stamps and the outcome of a call.
struct Stamped<T> {
    start: u64,
    end: u64,
    outcome: T,
}

/// Issues operations until the job is done, then closes the account.
///
/// # Errors
/// When the thread was given up meanwhile: its account is gone and it must leave.
pub fn drive(
    seat: Seat<Account>,
    engine: &mut impl Engine,
    cursor: &mut impl Cursor,
    clock: impl Clock,
    job: &Job,
    timeline: &Timeline,
    control: &Control,
) -> Result<Seat<Account>, Gone> {
    let (mut seat, end, since) = operate(seat, engine, cursor, clock, job, timeline, control)?;
    let account = seat.account();
    if account.issued() == 0 {
        control.has_begun();
    }
    account.finished(end, job.deadline_ns);
    // Who is told to stop does not wait for data to become durable, and reports no fsync.
    if job.flush_at_end && account.issued() > 0 && end != ThreadEnd::Stopped {
        let (back, flush) = seat.away(since, || {
            let start = clock.now();
            let outcome = engine.flush();
            Stamped { start, end: clock.now(), outcome }
        })?;
        seat = back;
        let (start, end) = (timeline.after_t0(flush.start), timeline.after_t0(flush.end));
        seat.account().flushed(start, end, flush.outcome);
    }
    if let Some(ended) = seat.account().ended() {
        control.ended_at(ended);
    }
    let (mut seat, ()) = seat.away(clock.now(), || engine.close())?;
    seat.account().seal();
    Ok(seat)
}

#[inline]
fn operate(
    mut seat: Seat<Account>,
    engine: &mut impl Engine,
    cursor: &mut impl Cursor,
    clock: impl Clock,
    job: &Job,
    timeline: &Timeline,
    control: &Control,
) -> Result<(Seat<Account>, ThreadEnd, u64), Gone> {
    let deadline = job.deadline_ns.map_or(u64::MAX, |ns| timeline.stamp_at(ns));
    let mut since = clock.now();
    let mut bytes_shown = 0;
    let mut errors_in_a_row = 0;
    for issued in 0..job.operations {
        if control.is_stopped() {
            return Ok((seat, ThreadEnd::Stopped, since));
        }
        let Place { number, offset, .. } = cursor.next();
        let (back, call) = seat.away(since, || {
            let start = clock.now();
            if start >= deadline {
                return None;
            }
            let outcome = engine.transfer(offset);
            Some(Stamped { start, end: clock.now(), outcome })
        })?;
        seat = back;
        let Some(Stamped { start, end, outcome }) = call else {
            return Ok((seat, ThreadEnd::Deadline, since));
        };
        since = end;
        let times = Issued { start: timeline.after_t0(start), end: timeline.after_t0(end) };
        if issued == 0 {
            seat.account().begun(times.start);
        }
        match outcome {
            Transfer { shorts: 0, result: Ok(bytes) } => {
                seat.account().succeeded(times, number, bytes);
                bytes_shown += bytes;
                seat.show_bytes(bytes_shown);
                errors_in_a_row = 0;
            }
            Transfer { shorts, result } => {
                seat.account().uncommon(times, number, offset, shorts, result);
                errors_in_a_row = if result.is_ok() { 0 } else { errors_in_a_row + 1 };
                bytes_shown += result.unwrap_or(0);
                seat.show_bytes(bytes_shown);
                if result.is_err_and(Failure::is_fatal) || errors_in_a_row >= ERRORS_IN_A_ROW_MAX {
                    return Ok((seat, ThreadEnd::Errors, since));
                }
            }
        }
        if times.end > control.first_end() {
            seat.account().recorder.first_end_passed();
        }
        if issued == 0 && control.has_begun() {
            roll_call(clock, timeline, control);
            since = clock.now();
        }
    }
    Ok((seat, ThreadEnd::Finished, since))
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
