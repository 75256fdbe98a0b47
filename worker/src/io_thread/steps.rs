//! The loop of a thread with one operation in flight.

use iofleet_shared::{limits::ERRORS_IN_A_ROW_MAX, stats::ThreadEnd};

use super::{
    Account, Bench, Control, Gone, Issued, Seat, Stamped,
    fittings::{Fittings, Turn},
    roll_call,
};
use crate::{
    engine::{Engine, Failure, Request, Transfer},
    pattern::Source,
    stamp::Clock,
};

/// Issues operations until the job is done. Returns the account, why it ended, and the last stamp.
///
/// # Errors
/// When the thread was given up meanwhile: its account is gone and it must leave.
#[inline]
pub(super) fn operate(
    mut seat: Seat<Account>,
    engine: &mut impl Engine,
    source: &mut impl Source,
    fittings: &mut Fittings,
    clock: impl Clock,
    bench: Bench<'_>,
) -> Result<(Seat<Account>, ThreadEnd, u64), Gone> {
    let Bench { job, timeline, control } = bench;
    let deadline = job.deadline_ns.map_or(u64::MAX, |ns| timeline.stamp_at(ns));
    let mut since = clock.now();
    let mut progress = Progress::default();
    let mut budget = job.blocks;
    let mut is_first = true;
    while budget > 0 {
        if control.is_stopped() {
            return Ok((seat, ThreadEnd::Stopped, since));
        }
        let Some(request) = source.next() else {
            return Ok((seat, ThreadEnd::Finished, since));
        };
        budget = budget.saturating_sub(u64::from(request.blocks));
        let mut intended = None;
        if fittings.pacing.is_paced() {
            match fittings.pacing.turn(clock, bench) {
                Turn::Now(arrived) => intended = arrived,
                Turn::Ended(end) => {
                    source.taken_back(&request);
                    return Ok((seat, end, since));
                }
            }
            since = clock.now();
        }
        fittings.contents.before(0, engine.buffer(), &request);
        let (back, call) = seat.away(since, || {
            // Not part of the operation, but it may take as long as the mount does.
            let ready = engine.prepare(&request);
            let start = clock.now();
            if start >= deadline {
                return None;
            }
            let outcome = performed(engine, ready, &request);
            Some(Stamped { start, end: clock.now(), outcome })
        })?;
        seat = back;
        let Some(Stamped { start, end, outcome }) = call else {
            fittings.contents.taken_back(&request);
            source.taken_back(&request);
            return Ok((seat, ThreadEnd::Deadline, since));
        };
        since = end;
        let times =
            Issued { intended, start: timeline.after_t0(start), end: timeline.after_t0(end) };
        if is_first {
            seat.account().begun(times.start);
            seat.account().full(times.start);
        }
        let account = seat.account();
        if let Some(damage) = fittings.contents.after(0, engine.buffer(), &request, outcome.result)
        {
            account.damaged(&request, damage);
        }
        let goes_on = progress.count(account, times, &request, outcome);
        seat.show_bytes(progress.bytes);
        see_first_end(&mut seat, control, times.end);
        if !goes_on {
            return Ok((seat, ThreadEnd::Errors, since));
        }
        fittings.pacing.done(times.end);
        if is_first {
            is_first = false;
            if control.has_begun() {
                roll_call(clock, timeline, control);
                since = clock.now();
            }
        }
    }
    Ok((seat, ThreadEnd::Finished, since))
}

/// An operation that was made ready, or was not.
#[inline]
fn performed(engine: &mut impl Engine, ready: Result<(), Failure>, request: &Request) -> Transfer {
    match ready {
        Ok(()) => engine.perform(request),
        Err(failure) => Transfer { shorts: 0, result: Err(failure) },
    }
}

/// After an operation that ended at `end`: whether the crew's first thread had ended before.
#[inline]
pub(super) fn see_first_end(seat: &mut Seat<Account>, control: &Control, end: u64) {
    let first_end = control.first_end();
    if end > first_end {
        seat.account().first_end_passed(first_end);
    }
}

/// What a thread has done, for those who watch, and how many errors came in a row.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub(super) bytes: u64,
    pub(super) completed: u64,
    errors_in_a_row: u32,
}

impl Progress {
    /// Counts an operation's outcome. Says whether it makes sense to go on.
    #[inline(always)]
    pub(super) fn count(
        &mut self,
        account: &mut Account,
        times: Issued,
        request: &Request,
        outcome: Transfer,
    ) -> bool {
        match outcome {
            Transfer { shorts: 0, result: Ok(bytes) } => {
                account.succeeded(times, request, bytes);
                self.bytes += bytes;
                self.completed += 1;
                self.errors_in_a_row = 0;
                true
            }
            Transfer { shorts, result } => {
                account.uncommon(times, request, shorts, result);
                self.completed += u64::from(result.is_ok());
                self.errors_in_a_row = if result.is_ok() { 0 } else { self.errors_in_a_row + 1 };
                self.bytes += result.unwrap_or(0);
                !(result.is_err_and(Failure::is_fatal)
                    || self.errors_in_a_row >= ERRORS_IN_A_ROW_MAX)
            }
        }
    }
}
