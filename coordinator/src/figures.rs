//! Every formula of a point's figures, and nothing else: what a number means is decided here.
//!
//! All times are ns after T0. T0 is one instant of the whole fleet, and every worker counts from it
//! by a clock map that was frozen when the point was armed, so the times of different nodes stand
//! on one axis and no residual is applied to them afterwards.
//!
//! The *measured phase* begins at the end of the warm-up. Its payload is what completed after the
//! warm-up, each operation whole; so a thread's own begin is its first issue or, after a warm-up,
//! the issue of the operation that was in flight at its end. `first_done` and `common` share
//! operations out by time and begin with the end of the warm-up itself.
//!
//! Between `thread_sum`, `last_done` and `span` an order holds by construction: a thread's own time
//! lies inside the slowest thread's or is shorter, and that inside the fleet's from first begin to
//! last end. [`Figures::ordered`] checks it all the same.

use iofleet_shared::{
    limits::{TICK_NS, WINDOW_TICKS_MIN},
    stats::{FirstEnd, Tick},
    work::Fsync,
};
use serde::{Deserialize, Serialize};

pub use kinds::Rates;
pub use latency::{LatencySummary, percentile_ns, summarise};
pub use ort::{LoadPoint, ort};
pub use repetition::{Repetition, repetition};
pub use spread::{Payload, Spread};
pub use steady::{Steady, steady};
pub use wire::{HostWire, MTU_USUAL, WireBytes, framing};

mod kinds;
mod latency;
mod ort;
mod repetition;
pub mod scaling;
#[cfg(test)]
pub(crate) mod script;
mod spread;
mod steady;
mod wire;

/// Overlap below which the headline is `span`, and `thread_sum` and `first_done` are no aggregates.
pub const OVERLAP_MIN: f64 = 0.9;
/// `thread_sum` over `span` above which `thread_sum` is no aggregate, whatever the overlap.
pub const THREAD_SUM_MAX: f64 = 1.01;
/// Busy share below which the generator or the scheduler holds the rate.
pub const BUSY_SHARE_MIN: f64 = 0.95;
/// Busy share above which the account itself is wrong.
pub const BUSY_SHARE_MAX: f64 = 1.005;
/// Achieved over offered rate below which a point is overloaded.
pub const ACHIEVED_MIN: f64 = 0.95;
/// Start skew over the window's length above which the point is marked.
pub const SKEW_SHARE_MAX: f64 = 0.01;
/// Clock uncertainty over the window's length above which the point is marked.
pub const CLOCK_SHARE_MAX: f64 = 0.005;

/// What one I/O thread says of its own point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadTimes {
    /// Payload of the measured phase, bytes.
    pub bytes: u64,
    /// Operations of the measured phase.
    pub ops: u64,
    /// Issue of its first operation, warm-up included.
    pub first_issue_ns: Option<i64>,
    /// From when on its measured payload counts.
    pub begin_ns: Option<i64>,
    /// Its last completion, or the return of its fsync.
    pub ended_ns: Option<i64>,
    /// The issue that first filled its queue.
    pub busy_begin_ns: Option<i64>,
    /// Completion after which it could not keep its queue full.
    pub busy_end_ns: Option<i64>,
    /// Whether it had anything to do. A thread without work is in no figure.
    pub has_work: bool,
}

/// What the five figures and the window are computed from.
#[derive(Debug, Clone, Copy)]
pub struct FigureInput<'a> {
    /// All threads whose reports came.
    pub threads: &'a [ThreadTimes],
    /// The spread series of their nodes, merged, from tick 0.
    pub ticks: &'a [Tick],
    /// The nodes that counted exactly up to the end of their first thread; of others the ticks tell.
    pub exact: &'a [ExactNode<'a>],
    /// Length of the warm-up.
    pub ramp_ns: u64,
    /// Operations that a thread has in flight at most.
    pub depth: u32,
    /// Under an offered load: the instant after T0 up to which it is offered, [`i64::MAX`] without
    /// a deadline. None: each thread issues the next operation as soon as it has room for it.
    pub offered_until_ns: Option<i64>,
}

/// A node that says what it had moved when its first thread ended.
#[derive(Debug, Clone, Copy)]
pub struct ExactNode<'a> {
    /// Its own spread series, which is in the merged one as well.
    pub ticks: &'a [Tick],
    /// Its exact count.
    pub first_end: FirstEnd,
}

/// The five figures of one quantity, per second: bytes/s or operations/s. None: not measured.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Five {
    /// Payload in the common window over its length.
    pub common: Option<f64>,
    /// All payload over (last end − first begin).
    pub span: Option<f64>,
    /// Sum over threads of own payload over own time.
    pub thread_sum: Option<f64>,
    /// Spread payload from the first begin to the earliest end of a thread, over that time.
    pub first_done: Option<f64>,
    /// All payload over the slowest thread's own time.
    pub last_done: Option<f64>,
}

/// Which of the five figures stands for the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Headline {
    /// The rate while all threads were busy.
    Common,
    /// The rate from the first begin to the last end.
    Span,
}

impl Headline {
    /// As in JSON and in tables.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Common => "common",
            Self::Span => "span",
        }
    }
}

impl Five {
    /// The one that stands for the point.
    #[must_use]
    pub fn of(&self, headline: Headline) -> Option<f64> {
        match headline {
            Headline::Common => self.common,
            Headline::Span => self.span,
        }
    }
}

/// The time in which every thread with work was busy (under an offered load: in which it was
/// offered), snapped inwards to ticks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// First tick inside.
    pub first_tick: u64,
    /// Ticks inside, at least [`WINDOW_TICKS_MIN`].
    pub ticks: u64,
    /// Payload and operations inside, fleet.
    pub payload: Payload,
}

impl Window {
    /// Its begin, ns after T0.
    #[must_use]
    pub fn begin_ns(&self) -> u64 {
        self.first_tick * TICK_NS
    }

    /// Its length in ns.
    #[must_use]
    pub fn length_ns(&self) -> u64 {
        self.ticks * TICK_NS
    }

    /// Payload, operations and service time of a series of ticks inside the window.
    #[must_use]
    pub fn of(&self, ticks: &[Tick]) -> (Payload, u128) {
        window_sums(ticks, self.first_tick, self.ticks)
    }
}

/// All that follows from threads and ticks.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Figures {
    /// Bytes per second.
    pub bandwidth: Five,
    /// Operations per second.
    pub iops: Five,
    /// The common window; none where there is none, it is too short, or a thread with work
    /// completed nothing.
    pub window: Option<Window>,
    /// Length of the window before it is snapped over (last end − first begin); 0 where the threads
    /// were never all busy. None where a thread with work completed nothing.
    pub overlap: Option<f64>,
    /// Service time in the window over (threads with work × depth × window): Little's law.
    pub busy_share: Option<f64>,
    /// Latest less earliest first issue.
    pub start_skew_ns: Option<u64>,
    /// First begin of the measured phase, ns after T0.
    pub first_begin_ns: Option<i64>,
    /// Last end, ns after T0.
    pub last_end_ns: Option<i64>,
    /// Last completion after which a thread could not keep its queue full, ns after T0.
    pub last_busy_ns: Option<i64>,
}

impl Figures {
    /// `thread_sum` ≥ `last_done` ≥ `span`, in bytes and in operations, up to rounding.
    #[must_use]
    pub fn ordered(&self) -> bool {
        [self.bandwidth, self.iops].iter().all(|five| {
            let at_least = |greater: Option<f64>, lesser: Option<f64>| {
                greater.zip(lesser).is_none_or(|(g, l)| g >= l * (1.0 - 1e-9))
            };
            at_least(five.thread_sum, five.last_done) && at_least(five.last_done, five.span)
        })
    }

    /// The length that skew and uncertainty are compared with: the window, else from first begin to
    /// last end. In ns.
    #[must_use]
    pub fn reference_ns(&self) -> Option<u64> {
        self.window.map(|window| window.length_ns()).or_else(|| self.span_ns())
    }

    /// From first begin to last end in ns.
    #[must_use]
    pub fn span_ns(&self) -> Option<u64> {
        let (begin, end) = self.first_begin_ns.zip(self.last_end_ns)?;
        Some(elapsed(begin, end))
    }

    /// The spread series that these figures were computed from, with its active range.
    #[must_use]
    pub fn spread<'a>(&self, input: &FigureInput<'a>) -> Spread<'a> {
        let begin = input.threads.iter().filter_map(|thread| thread.first_issue_ns).min();
        Spread::new(input.ticks, begin, self.last_busy_ns)
    }
}

/// What durability a point's bytes had when its threads ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Points that write no bytes, direct or synchronous writes, and buffered writes with
    /// `fsync = "each"`: an operation is done when it returns.
    Each,
    /// Buffered writes, one fsync at the end: the window holds the page cache's speed.
    AtEnd,
    /// Buffered writes without fsync.
    Never,
}

impl Durability {
    /// Of a workload: `writes` says whether any of its operations writes bytes, `buffered` whether
    /// those return before storage has them.
    #[must_use]
    pub fn of(writes: bool, buffered: bool, fsync: Fsync) -> Self {
        match (writes && buffered, fsync) {
            (false, _) | (true, Fsync::Each) => Self::Each,
            (true, Fsync::End) => Self::AtEnd,
            (true, Fsync::None) => Self::Never,
        }
    }
}

/// The figure that stands for the point: `common` where it exists, the threads overlapped by at
/// least [`OVERLAP_MIN`] and the window does not hold unflushed writes; else `span`; none where
/// nothing was measured.
#[must_use]
pub fn headline(figures: &Figures, durability: Durability) -> Option<Headline> {
    figures.bandwidth.span?;
    let overlaps = figures.overlap.is_some_and(|overlap| overlap >= OVERLAP_MIN);
    if figures.bandwidth.common.is_some() && overlaps && durability != Durability::AtEnd {
        Some(Headline::Common)
    } else {
        Some(Headline::Span)
    }
}

/// Computes the figures of a point.
#[must_use]
pub fn compute(input: &FigureInput<'_>) -> Figures {
    let ramp = i64::try_from(input.ramp_ns).unwrap_or(i64::MAX);
    let own: Vec<Own> = input.threads.iter().filter_map(Own::of).collect();
    let first_begin = own.iter().map(|own| own.begin_ns).min();
    let last_end = own.iter().map(|own| own.end_ns).max();
    let mut figures = Figures {
        start_skew_ns: start_skew(input.threads),
        first_begin_ns: first_begin,
        last_end_ns: last_end,
        last_busy_ns: input.threads.iter().filter_map(|thread| thread.busy_end_ns).max(),
        ..Figures::default()
    };
    let (Some(first_begin), Some(last_end)) = (first_begin, last_end) else {
        return figures;
    };
    let total = own.iter().fold(Payload::default(), |sum, own| sum.plus(own.payload()));
    let slowest = own.iter().map(Own::time_ns).max().unwrap_or(1);
    let sum =
        own.iter().fold(Payload::default(), |sum, own| sum.plus(own.payload().per(own.time_ns())));
    let span = total.per(elapsed(first_begin, last_end));
    let last_done = total.per(slowest);
    let first_done = first_done(input, &figures, first_begin.max(ramp));
    let busy = match input.offered_until_ns {
        None => busy_together(input.threads, ramp),
        Some(until) => offered_time(input.threads, ramp, until),
    };
    let shared = busy.map(|busy| Shared::new(busy, elapsed(first_begin, last_end)));
    figures.overlap = shared.map(|shared| shared.overlap);
    figures.window = shared.and_then(|shared| shared.snapped(input.ticks));
    figures.busy_share = figures.window.map(|window| busy_share(input, &window));
    let common = figures.window.map(|window| window.payload.per(window.length_ns()));
    let five = |part: fn(Payload) -> f64| Five {
        common: common.map(part),
        span: Some(part(span)),
        thread_sum: Some(part(sum)),
        first_done: first_done.map(part),
        last_done: Some(part(last_done)),
    };
    figures.bandwidth = five(|payload| payload.bytes);
    figures.iops = five(|payload| payload.ops);
    figures
}

/// A thread's own measured phase. It has one when something of it ended after the warm-up.
#[derive(Debug, Clone, Copy)]
struct Own {
    begin_ns: i64,
    end_ns: i64,
    bytes: u64,
    ops: u64,
}

impl Own {
    fn of(thread: &ThreadTimes) -> Option<Self> {
        let (begin_ns, end_ns) = thread.begin_ns.zip(thread.ended_ns)?;
        (end_ns >= begin_ns).then_some(Self {
            begin_ns,
            end_ns,
            bytes: thread.bytes,
            ops: thread.ops,
        })
    }

    fn time_ns(&self) -> u64 {
        elapsed(self.begin_ns, self.end_ns)
    }

    fn payload(&self) -> Payload {
        Payload::of_counts(self.bytes, self.ops)
    }
}

/// The time that all threads share.
#[derive(Debug, Clone, Copy)]
struct Busy {
    /// All have begun: what the overlap counts from.
    at_work_ns: i64,
    /// All are busy: what the window begins with.
    begin_ns: i64,
    end_ns: i64,
}

/// The window before it is snapped.
#[derive(Debug, Clone, Copy)]
struct Shared {
    begin_ns: i64,
    end_ns: i64,
    overlap: f64,
}

impl Shared {
    fn new(busy: Busy, span_ns: u64) -> Self {
        let Busy { at_work_ns, begin_ns, end_ns } = busy;
        let length = u64::try_from(end_ns.saturating_sub(at_work_ns)).unwrap_or(0);
        Self { begin_ns, end_ns, overlap: (length as f64 / span_ns as f64).min(1.0) }
    }

    /// The whole ticks inside, where there are enough of them.
    fn snapped(&self, ticks: &[Tick]) -> Option<Window> {
        let begin = u64::try_from(self.begin_ns).unwrap_or(0);
        let end = u64::try_from(self.end_ns).unwrap_or(0);
        let first_tick = begin.div_ceil(TICK_NS);
        let count = (end / TICK_NS).saturating_sub(first_tick);
        (count >= WINDOW_TICKS_MIN).then(|| Window {
            first_tick,
            ticks: count,
            payload: window_sums(ticks, first_tick, count).0,
        })
    }
}

/// From the latest busy-begin to the earliest busy-end of all threads with work, not before the end
/// of the warm-up. None where one of them never filled its queue or completed nothing.
fn busy_together(threads: &[ThreadTimes], ramp_ns: i64) -> Option<Busy> {
    let mut all: Option<Busy> = None;
    for thread in threads.iter().filter(|thread| thread.has_work) {
        let begin_ns = thread.busy_begin_ns?.max(ramp_ns);
        let at_work_ns = thread.begin_ns.unwrap_or(begin_ns).max(ramp_ns).min(begin_ns);
        let own = Busy { at_work_ns, begin_ns, end_ns: thread.busy_end_ns? };
        all = Some(all.map_or(own, |all| Busy {
            at_work_ns: all.at_work_ns.max(own.at_work_ns),
            begin_ns: all.begin_ns.max(own.begin_ns),
            end_ns: all.end_ns.min(own.end_ns),
        }));
    }
    all
}

/// The time in which operations were offered and taken: threads that wait for an arrival are as they
/// should be, so it runs from the fleet's first issue to its last completion or the deadline.
fn offered_time(threads: &[ThreadTimes], ramp_ns: i64, until_ns: i64) -> Option<Busy> {
    let begin = threads.iter().filter_map(|thread| thread.first_issue_ns).min()?;
    let end = threads.iter().filter_map(|thread| thread.busy_end_ns).max()?;
    let begin_ns = begin.max(ramp_ns);
    Some(Busy { at_work_ns: begin_ns, begin_ns, end_ns: end.min(until_ns) })
}

/// Ticks are too coarse for a point that is over within a few of them, so where a node counted
/// exactly that stands in place of its ticks.
fn first_done(input: &FigureInput<'_>, figures: &Figures, first_begin_ns: i64) -> Option<Payload> {
    let end = input.threads.iter().filter_map(|thread| thread.ended_ns).min()?;
    (end > first_begin_ns).then(|| {
        let payload = input.exact.iter().fold(
            figures.spread(input).between(first_begin_ns, end),
            |payload, node| {
                let alone = FigureInput { ticks: node.ticks, ..*input };
                let spread = figures.spread(&alone);
                let by_ticks = spread.between(first_begin_ns, end);
                payload.plus(spread.up_to(first_begin_ns, end, node.first_end)).less(by_ticks)
            },
        );
        payload.per(elapsed(first_begin_ns, end))
    })
}

fn busy_share(input: &FigureInput<'_>, window: &Window) -> f64 {
    let threads = input.threads.iter().filter(|thread| thread.has_work).count();
    let slots = threads.max(1) as f64 * f64::from(input.depth.max(1));
    let (_, busy_ns) = window.of(input.ticks);
    busy_ns as f64 / (slots * window.length_ns() as f64)
}

fn window_sums(ticks: &[Tick], first_tick: u64, count: u64) -> (Payload, u128) {
    let place = |tick: u64| usize::try_from(tick).unwrap_or(usize::MAX).min(ticks.len());
    let inside = ticks.get(place(first_tick)..place(first_tick + count)).unwrap_or(&[]);
    let (mut bytes, mut ops, mut busy_ns) = (0_u128, 0_u128, 0_u128);
    for tick in inside {
        bytes += u128::from(tick.bytes);
        ops += u128::from(tick.ops);
        busy_ns += u128::from(tick.busy_ns);
    }
    (Payload::of_units(bytes, ops), busy_ns)
}

fn start_skew(threads: &[ThreadTimes]) -> Option<u64> {
    let issues = threads.iter().filter_map(|thread| thread.first_issue_ns);
    let (earliest, latest) = (issues.clone().min()?, issues.max()?);
    Some(latest.abs_diff(earliest))
}

/// Time between two instants; at least 1 ns, so that a quotient is always a number.
fn elapsed(begin_ns: i64, end_ns: i64) -> u64 {
    u64::try_from(end_ns.saturating_sub(begin_ns)).unwrap_or(0).max(1)
}

#[cfg(test)]
mod tests;
