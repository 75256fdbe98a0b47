//! The spread series of one thread: each operation's bytes, count of one and service time, shared
//! out over the ticks between its issue and its completion, in integers that lose nothing.
//!
//! What lies whole in the current tick is kept in plain numbers. The rest goes to a difference
//! array over the last ticks, so that an operation costs a few additions however long it took and
//! however many were in flight beside it; ticks leave it once they are old. What of an operation is
//! older still is handed over at once.

use iofleet_shared::{
    limits::TICK_NS,
    stats::{BYTE_UNITS, OP_UNITS},
};

use super::{Outlet, TickRun, Units};

/// Ticks of the difference array: 0.64 s.
const WINDOW: u64 = SLOTS as u64;
const SLOTS: usize = 64;

/// What lies whole in one tick, in bytes, operations and ns.
#[derive(Debug, Clone, Copy, Default)]
struct Plain {
    bytes: u64,
    ops: u64,
    busy_ns: u64,
}

/// What a tick has more than the one before, in units and ns. Sums of steps are never negative,
/// single ones are: they wrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Step {
    bytes: u64,
    ops: u64,
    busy_ns: u64,
}

/// The spread series of one thread, as far as it is not handed over.
#[derive(Debug)]
pub(super) struct Ticks {
    current: u64,
    plain: Plain,
    /// The first tick that was not handed over.
    base: u64,
    /// What the tick before `base` had.
    sum: Step,
    /// Steps of the ticks from `base` on, at their number modulo the length.
    steps: Box<[Step; SLOTS]>,
}

impl Ticks {
    pub(super) fn new() -> Self {
        Self {
            current: 0,
            plain: Plain::default(),
            base: 0,
            sum: Step::default(),
            steps: Box::new([Step::default(); SLOTS]),
        }
    }

    /// Begin of the current tick, ns after T0.
    pub(super) fn begin_ns(&self) -> u64 {
        self.current.saturating_mul(TICK_NS)
    }

    /// End of the current tick, ns after T0.
    pub(super) fn end_ns(&self) -> u64 {
        (self.current + 1).saturating_mul(TICK_NS)
    }

    /// Adds an operation that lies whole in the current tick.
    #[inline]
    pub(super) fn add_whole(&mut self, bytes: u64, busy_ns: u64) {
        self.plain.bytes += bytes;
        self.plain.ops += 1;
        self.plain.busy_ns += busy_ns;
    }

    /// Shares an operation out over its ticks. Each gets its share rounded down, the last one what
    /// is left.
    pub(super) fn spread(&mut self, start: u64, end: u64, bytes: u64, outlet: &mut Outlet) {
        // An operation that ends on an edge has no part in the tick that begins there.
        let last = if end > start { (end - 1) / TICK_NS } else { end / TICK_NS };
        let first = (start / TICK_NS).min(last);
        if last > self.current {
            self.enter(last, outlet);
        }
        let whole = Units::of(bytes, 1);
        if first == last {
            if last == self.current {
                self.add_whole(bytes, end - start);
            } else {
                self.add(last, 1, whole, end - start, outlet);
            }
            return;
        }
        let duration = end - start;
        let head_ns = (first + 1) * TICK_NS - start;
        let head = whole.share(head_ns, duration);
        let middle = whole.share(TICK_NS, duration);
        let length = last - first - 1;
        let middles = u128::from(length);
        let tail = Units {
            bytes: whole.bytes - head.bytes - middles * middle.bytes,
            ops: whole.ops - head.ops - middles * middle.ops,
        };
        self.add(first, 1, head, head_ns, outlet);
        self.add(first + 1, length, middle, TICK_NS, outlet);
        self.add(last, 1, tail, duration - head_ns - length * TICK_NS, outlet);
    }

    /// Hands over all that there is, when no operation will come, to `take`.
    pub(super) fn close(&mut self, mut take: impl FnMut(TickRun)) {
        self.fold();
        while self.base <= self.current + 1 {
            if let Some(run) = self.leave() {
                take(run);
            }
        }
    }

    /// Adds the same to each of `length` ticks from `first` on, none of them after the current one.
    fn add(&mut self, first: u64, length: u64, each: Units, busy_ns: u64, outlet: &mut Outlet) {
        let end = first + length;
        let each = Step { bytes: narrow(each.bytes), ops: narrow(each.ops), busy_ns };
        if first < self.base {
            let early = end.min(self.base) - first;
            if early > 0 {
                outlet.ticks(each.run(first, early));
            }
        }
        let first = first.max(self.base);
        if first < end {
            let slots = &mut self.steps;
            slots[slot(first)].plus(each);
            slots[slot(end)].minus(each);
        }
    }

    /// Goes on to tick `index`, which is after the current one.
    fn enter(&mut self, index: u64, outlet: &mut Outlet) {
        self.fold();
        // The tick after the current one has a step as well.
        let base = (index + 2).saturating_sub(WINDOW);
        for _ in 0..base.saturating_sub(self.base).min(WINDOW) {
            if let Some(run) = self.leave() {
                outlet.ticks(run);
            }
        }
        // After as many ticks as there are steps nothing is left in them.
        self.base = self.base.max(base);
        self.current = index;
    }

    /// Moves the plain numbers of the current tick to its steps.
    fn fold(&mut self) {
        let Plain { bytes, ops, busy_ns } = std::mem::take(&mut self.plain);
        let each = Step { bytes: bytes * BYTE_UNITS, ops: ops * OP_UNITS, busy_ns };
        self.steps[slot(self.current)].plus(each);
        self.steps[slot(self.current + 1)].minus(each);
    }

    /// The oldest tick leaves.
    fn leave(&mut self) -> Option<TickRun> {
        let step = std::mem::take(&mut self.steps[slot(self.base)]);
        self.sum.plus(step);
        let run = (self.sum != Step::default()).then(|| self.sum.run(self.base, 1));
        self.base += 1;
        run
    }
}

impl Step {
    fn plus(&mut self, other: Self) {
        self.bytes = self.bytes.wrapping_add(other.bytes);
        self.ops = self.ops.wrapping_add(other.ops);
        self.busy_ns = self.busy_ns.wrapping_add(other.busy_ns);
    }

    fn minus(&mut self, other: Self) {
        self.bytes = self.bytes.wrapping_sub(other.bytes);
        self.ops = self.ops.wrapping_sub(other.ops);
        self.busy_ns = self.busy_ns.wrapping_sub(other.busy_ns);
    }

    fn run(self, first: u64, length: u64) -> TickRun {
        let Self { bytes, ops, busy_ns } = self;
        TickRun { first, length, bytes, ops, busy_ns }
    }
}

/// A tick's place among the steps.
#[expect(clippy::cast_possible_truncation, reason = "the lower digits are what is kept")]
fn slot(tick: u64) -> usize {
    tick as usize % SLOTS
}

/// Units of one operation fit: a block is far below 2^43 bytes.
fn narrow(units: u128) -> u64 {
    u64::try_from(units).unwrap_or(u64::MAX)
}
