//! What a thread had moved when the first thread of its crew ended.
//!
//! That instant, E, is not known before it has passed, and by then operations may have completed
//! after it. So each thread remembers its last few operations, and stops remembering with the first
//! one of which it sees that it went beyond E; of those that complete later it keeps the ones that
//! were in flight at E. In the end its payload up to E is its total at that moment less what of the
//! remembered operations lies after E, with the part before E of those that came later, each shared
//! out by time.

use super::{Totals, Units};

/// Operations remembered beside those in flight. E is stored some ns after the clock was read for
/// it; what others complete meanwhile must fit. Should a thread lose its core between the two,
/// others may complete more than this: the excess counts as if it lay before E. That takes a time
/// slice lost within a few dozen instructions, on the one thread that is first, and is not worth
/// more.
const DEPTH: usize = 8;

/// An operation that succeeded, in ns after T0.
#[derive(Debug, Clone, Copy, Default)]
struct Op {
    start: u64,
    end: u64,
    bytes: u64,
}

/// The last operations of a thread.
#[derive(Debug)]
pub(super) struct Recent {
    /// A ring of a power of two.
    ops: Box<[Op]>,
    next: usize,
    /// Of the operations that were under way when the warm-up ended, the part before.
    in_ramp: Units,
    /// Totals of the measured phase when remembering stopped, and what E was said to be.
    kept: Option<(Totals, u64)>,
    /// Operations that completed later and had begun before.
    later: Vec<Op>,
}

impl Recent {
    /// For a thread with at most `depth` operations in flight.
    pub(super) fn new(depth: u32) -> Self {
        let depth = usize::try_from(depth).unwrap_or(usize::MAX);
        // All that are in flight may complete at once.
        let length = if depth > 1 { (DEPTH + depth).next_power_of_two() } else { DEPTH };
        Self {
            ops: vec![Op::default(); length].into_boxed_slice(),
            next: 0,
            in_ramp: Units::default(),
            kept: None,
            later: Vec::with_capacity(depth),
        }
    }

    /// Remembers an operation.
    #[inline]
    pub(super) fn push(&mut self, start: u64, end: u64, bytes: u64) {
        match self.kept {
            None => {
                let place = self.next & (self.ops.len() - 1);
                self.ops[place] = Op { start, end, bytes };
                self.next = self.next.wrapping_add(1);
            }
            Some((_, first_end)) => {
                if start < first_end && self.later.len() < self.later.capacity() {
                    self.later.push(Op { start, end, bytes });
                }
            }
        }
    }

    /// The warm-up ended during this operation.
    pub(super) fn straddles(&mut self, start: u64, end: u64, bytes: u64, ramp_ns: u64) {
        self.in_ramp.add(Op { start, end, bytes }.before(ramp_ns));
    }

    /// Remembers nothing further but what was in flight at `first_end`. Only the first call counts.
    #[inline]
    pub(super) fn keep(&mut self, measured: Totals, first_end: u64) {
        if self.kept.is_none() {
            self.kept = Some((measured, first_end));
        }
    }

    /// Payload between the end of the warm-up and `until`, of a thread that had `measured` in the
    /// end.
    pub(super) fn up_to(&self, until: u64, ramp_ns: u64, measured: Totals) -> Units {
        if until <= ramp_ns {
            return Units::default();
        }
        let Totals { bytes, ops, .. } = self.kept.map_or(measured, |(totals, _)| totals);
        let mut units = Units::of(bytes, ops);
        // Whoever ended after the warm-up has these in its measured totals.
        for op in self.ops.iter().filter(|op| op.end > until) {
            units = units.minus(op.whole().minus(op.before(until)));
        }
        for op in &self.later {
            units.add(op.before(until));
        }
        units.minus(self.in_ramp)
    }
}

impl Op {
    fn whole(self) -> Units {
        Units::of(self.bytes, 1)
    }

    /// The share that lies before an instant.
    fn before(self, instant: u64) -> Units {
        let Self { start, end, .. } = self;
        if instant <= start {
            Units::default()
        } else if instant >= end {
            self.whole()
        } else {
            self.whole().share(instant - start, end - start)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        engine::{Call, Failure, Request},
        recorder::{Recorder, rings},
    };

    const MS: u64 = 1_000_000;

    /// Operations as begin, end, bytes; none: it failed.
    type Script = Vec<(u64, u64, Option<u64>)>;

    fn any_thread() -> impl Strategy<Value = Script> {
        let takes = || prop_oneof![Just(0), 0..1_000_u64, 0..40 * MS];
        let bytes = proptest::option::weighted(0.9, prop_oneof![Just(4_096), 0..1_u64 << 24]);
        let steps = proptest::collection::vec((takes(), takes(), bytes), 1..40);
        (0..100 * MS, steps).prop_map(|(mut now, steps)| {
            let step = |(idle, takes, bytes)| {
                let start = now + idle;
                now = start + takes;
                (start, now, bytes)
            };
            steps.into_iter().map(step).collect()
        })
    }

    /// Each operation's share by the time that it lies between the two instants.
    fn plainly(script: &Script, ramp_ns: u64, until: u64) -> Units {
        let mut sum = Units::default();
        for (start, end, bytes) in script {
            let Some(bytes) = bytes else { continue };
            let inside = (*end).min(until).saturating_sub((*start).max(ramp_ns));
            if start == end && *end >= ramp_ns && *end <= until {
                sum.add(Units::of(*bytes, 1));
            } else if inside > 0 {
                sum.add(Units::of(*bytes, 1).share(inside, end - start));
            }
        }
        sum
    }

    fn played(script: &Script, ramp_ns: u64, first_end: u64, unseen: usize) -> Recorder {
        played_at(script, ramp_ns, first_end, unseen, 1)
    }

    /// The first end is seen only after so many operations went beyond it.
    fn played_at(
        script: &Script,
        ramp_ns: u64,
        first_end: u64,
        unseen: usize,
        depth: usize,
    ) -> Recorder {
        let depth = u32::try_from(depth).unwrap();
        let mut recorder = Recorder::new(10 * MS, ramp_ns, depth, rings(false).0);
        let mut beyond = 0;
        for (start, end, bytes) in script {
            match bytes {
                Some(bytes) => recorder.completed(*start, *end, *bytes),
                None => {
                    let failure = Failure { call: Call::Read, errno: 5 };
                    recorder.failed(*start, *end, failure, &Request::NOTHING);
                }
            }
            beyond += usize::from(*end > first_end);
            if beyond > unseen {
                recorder.first_end_passed(first_end);
            }
        }
        recorder
    }

    proptest! {
        #[test]
        fn so_they_are_with_several_in_flight(
            slots in proptest::collection::vec(any_thread(), 1..8),
            ramp in prop_oneof![Just(0_u64), 1..20_u64],
            unseen in 0..DEPTH,
        ) {
            let ramp_ns = ramp * 10 * MS;
            let depth = slots.len();
            let mut script: Script = slots.into_iter().flatten().collect();
            script.sort_by_key(|(_, end, _)| *end);
            // In the midst of things, near the beginning, and at an end that all reach together.
            for until in [script[script.len() / 2].1, script[0].1 + MS, script[script.len() - 1].0] {
                let recorder = played_at(&script, ramp_ns, until, unseen, depth);
                let got = recorder.up_to(until);
                if until <= ramp_ns {
                    prop_assert_eq!(got, Units::default());
                    continue;
                }
                let plain = plainly(&script, ramp_ns, until);
                // Each that is cut is rounded down, at either edge.
                let most = 2 * depth as u128;
                prop_assert!(got.bytes.abs_diff(plain.bytes) <= most, "{:?} {:?}", got, plain);
                prop_assert!(got.ops.abs_diff(plain.ops) <= most, "{:?} {:?}", got, plain);
            }
        }

        #[test]
        fn shares_are_those_of_the_plainest_count(
            threads in proptest::collection::vec((any_thread(), 0..DEPTH), 1..8),
            ramp in prop_oneof![Just(0_u64), 1..20_u64],
        ) {
            let ramp_ns = ramp * 10 * MS;
            let ended = |script: &Script| script.last().map(|(_, end, _)| *end);
            let first_end = threads.iter().filter_map(|(script, _)| ended(script)).min().unwrap();
            for (script, unseen) in &threads {
                // Up to the first end, and up to one in the midst of things.
                for until in [first_end, script[script.len() / 2].0 + MS] {
                    let got = played(script, ramp_ns, until, *unseen).up_to(until);
                    if until <= ramp_ns {
                        prop_assert_eq!(got, Units::default());
                        continue;
                    }
                    let plain = plainly(script, ramp_ns, until);
                    // Two operations are cut at most, and each share is rounded down.
                    prop_assert!(got.bytes.abs_diff(plain.bytes) <= 2, "{:?} {:?}", got, plain);
                    prop_assert!(got.ops.abs_diff(plain.ops) <= 2, "{:?} {:?}", got, plain);
                }
            }
        }
    }

    #[test]
    fn what_is_forgotten_counts_as_before() {
        let mut recorder = Recorder::new(10 * MS, 0, 1, rings(false).0);
        let ops = DEPTH as u64 + 4;
        (0..ops).for_each(|ms| recorder.completed(ms * MS, ms * MS + MS, 10));
        // The first end at 2 ms is seen by nobody: of ten operations after it two are forgotten.
        assert_eq!(recorder.up_to(2 * MS), Units::of(40, 4));
        assert_eq!(recorder.up_to(9 * MS), Units::of(90, 9));
    }
}
