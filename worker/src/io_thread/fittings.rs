//! What a thread's operations go with beside engine and source: what their blocks hold, and when
//! they may be issued.

use std::{sync::Arc, time::Duration};

use iofleet_shared::stats::ThreadEnd;

use super::{Bench, Control, Timeline};
use crate::{
    arrivals::{ArrivalQueue, Meter, Pace, Taker, Wait},
    stamp::{Clock, StampClock},
};

pub use contents::Contents;
pub(super) use contents::Damages;

mod contents;

/// See the module.
#[derive(Debug)]
pub struct Fittings {
    /// What blocks hold.
    pub contents: Contents,
    /// When operations may be issued.
    pub pacing: Pacing,
}

/// When a thread may issue its next operation.
#[derive(Debug)]
pub enum Pacing {
    /// As soon as it has room for it.
    Closed,
    /// The same, with a pause after each burst of completions.
    Think {
        /// When pauses are.
        pace: Pace,
        /// How it waits.
        wait: Wait,
        /// End of the pause, in ns after T0.
        not_before: Option<u64>,
    },
    /// When the next one arrives at the worker.
    Open(Box<Open>),
}

/// A thread's share of an offered load.
#[derive(Debug)]
pub struct Open {
    taker: Taker,
    meter: Meter,
    wait: Wait,
    /// The time of an arrival that was taken and is not issued.
    held: Option<u64>,
    backlog_max: u64,
}

/// What one thread saw of an offered load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OfferedTotals {
    /// Greatest number of operations that had arrived and were not issued yet.
    pub backlog_max: u64,
}

/// Whether it is a thread's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// It may issue an operation that arrived at this time, ns after T0; none: of its own.
    Now(Option<u64>),
    /// It has ended.
    Ended(ThreadEnd),
}

/// When the next operation arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// It may be issued; under an offered load it arrived at this time, ns after T0.
    Now(Option<u64>),
    /// So much later.
    In(Duration),
    /// Not before the deadline.
    Never,
}

impl Pacing {
    /// Pauses of `think_ns` after each `burst` operations. On the thread itself.
    #[must_use]
    pub fn think(think_ns: u64, burst: u32, clock: StampClock, control: &Control) -> Self {
        let wait = Wait::new(clock, control.may_spin());
        Self::Think { pace: Pace::new(think_ns, burst), wait, not_before: None }
    }

    /// Operations that arrive at the worker. On the thread itself.
    #[must_use]
    pub fn open(queue: &Arc<ArrivalQueue>, clock: StampClock, control: &Control) -> Self {
        Self::Open(Box::new(Open {
            taker: Taker::new(Arc::clone(queue)),
            meter: Meter::new(Arc::clone(queue)),
            wait: Wait::new(clock, control.may_spin()),
            held: None,
            backlog_max: 0,
        }))
    }

    /// Whether there is anything to wait for.
    #[inline]
    pub(super) fn is_paced(&self) -> bool {
        !matches!(self, Self::Closed)
    }

    /// Waits until an operation may be issued.
    #[inline(never)]
    pub(super) fn turn(&mut self, clock: impl Clock, bench: Bench<'_>) -> Turn {
        let Bench { job, timeline, control } = bench;
        match self {
            Self::Closed => Turn::Now(None),
            Self::Think { wait, not_before, .. } => {
                let until = at_most(not_before.take().unwrap_or(0), job.deadline_ns);
                match pause(*wait, until, clock, timeline, control) {
                    Some(_) => Turn::Now(None),
                    None => Turn::Ended(ThreadEnd::Stopped),
                }
            }
            Self::Open(open) => {
                let at = open.next();
                if job.deadline_ns.is_some_and(|deadline| at >= deadline) {
                    return Turn::Ended(ThreadEnd::Deadline);
                }
                match pause(open.wait, at, clock, timeline, control) {
                    Some(now) => {
                        open.issue(at, now);
                        Turn::Now(Some(at))
                    }
                    None => Turn::Ended(ThreadEnd::Stopped),
                }
            }
        }
    }

    /// Whether the next operation may be issued at `now_ns` after T0; if it may, it is to be.
    #[inline(never)]
    pub(super) fn due(&mut self, now_ns: u64, deadline_ns: Option<u64>) -> Due {
        let (at, open) = match self {
            Self::Closed => return Due::Now(None),
            Self::Think { not_before, .. } => (at_most(not_before.unwrap_or(0), deadline_ns), None),
            Self::Open(open) => (open.next(), Some(open)),
        };
        if open.is_some() && deadline_ns.is_some_and(|deadline| at >= deadline) {
            return Due::Never;
        }
        if at > now_ns {
            return Due::In(Duration::from_nanos(at - now_ns));
        }
        Due::Now(open.map(|open| {
            open.issue(at, now_ns);
            at
        }))
    }

    /// Waits as long as [`Pacing::due`] said, with nothing in flight.
    #[cold]
    pub(super) fn idle(&mut self, clock: impl Clock, bench: Bench<'_>) -> Option<ThreadEnd> {
        let Bench { job, timeline, control } = bench;
        let (wait, at) = match self {
            Self::Closed => return None,
            Self::Think { wait, not_before, .. } => {
                (*wait, at_most(not_before.unwrap_or(0), job.deadline_ns))
            }
            Self::Open(open) => (open.wait, open.next()),
        };
        pause(wait, at, clock, timeline, control).is_none().then_some(ThreadEnd::Stopped)
    }

    /// An operation has completed, at `end` ns after T0.
    #[inline]
    pub(super) fn done(&mut self, end: u64) {
        if let Self::Think { pace, not_before, .. } = self
            && let Some(until) = pace.after(end)
        {
            *not_before = Some(until);
        }
    }

    /// What came of an offered load.
    pub(super) fn totals(&self) -> OfferedTotals {
        match self {
            Self::Closed | Self::Think { .. } => OfferedTotals::default(),
            Self::Open(open) => OfferedTotals { backlog_max: open.backlog_max },
        }
    }
}

impl Open {
    /// The time of the arrival in hand.
    fn next(&mut self) -> u64 {
        let Self { taker, held, .. } = self;
        *held.get_or_insert_with(|| taker.take().at_ns)
    }

    /// The arrival in hand is issued.
    fn issue(&mut self, at: u64, now_ns: u64) {
        self.held = None;
        if now_ns > at {
            // The one in hand is taken, and had to wait as well.
            self.backlog_max = self.backlog_max.max(self.meter.backlog(now_ns) + 1);
        }
    }
}

/// Nobody waits longer than to the deadline.
fn at_most(until: u64, deadline_ns: Option<u64>) -> u64 {
    deadline_ns.map_or(until, |deadline| until.min(deadline))
}

/// Waits until `until` ns after T0. Returns the time then; none where the thread is to stop.
fn pause(
    wait: Wait,
    until: u64,
    clock: impl Clock,
    timeline: &Timeline,
    control: &Control,
) -> Option<u64> {
    let stopped = || control.is_stopped();
    wait.until(timeline.stamp_at(until), clock, stopped).map(|stamp| timeline.after_t0(stamp))
}
