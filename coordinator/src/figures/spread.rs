//! The spread series as a function of time: how much payload lies between two instants.

use iofleet_shared::{
    limits::TICK_NS,
    stats::{BYTE_UNITS, FirstEnd, OP_UNITS, Tick, tick_of},
};

/// Bytes and operations, or both per second.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Payload {
    /// Bytes.
    pub bytes: f64,
    /// Operations.
    pub ops: f64,
}

impl Payload {
    /// From the units of ticks.
    #[must_use]
    pub fn of_units(bytes: u128, ops: u128) -> Self {
        Self { bytes: bytes as f64 / BYTE_UNITS as f64, ops: ops as f64 / OP_UNITS as f64 }
    }

    /// From whole bytes and operations.
    #[must_use]
    pub fn of_counts(bytes: u64, ops: u64) -> Self {
        Self { bytes: bytes as f64, ops: ops as f64 }
    }

    /// Per second, over a time in ns.
    #[must_use]
    pub fn per(self, ns: u64) -> Self {
        let seconds = ns as f64 / 1e9;
        Self { bytes: self.bytes / seconds, ops: self.ops / seconds }
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { bytes: self.bytes + other.bytes, ops: self.ops + other.ops }
    }

    /// What is left without another.
    #[must_use]
    pub fn less(self, other: Self) -> Self {
        self.plus(other.times(-1.0))
    }

    fn times(self, factor: f64) -> Self {
        Self { bytes: self.bytes * factor, ops: self.ops * factor }
    }
}

/// A merged series of ticks and the time in which it was active.
#[derive(Debug, Clone, Copy)]
pub struct Spread<'a> {
    ticks: &'a [Tick],
    begin_ns: i64,
    end_ns: i64,
}

impl<'a> Spread<'a> {
    /// A series that was active from the first issue of any thread to its last completion. Within
    /// the ticks that hold these two, payload is taken to lie in the active part.
    #[must_use]
    pub fn new(ticks: &'a [Tick], first_issue_ns: Option<i64>, last_busy_ns: Option<i64>) -> Self {
        Self {
            ticks,
            begin_ns: first_issue_ns.unwrap_or(0).max(0),
            end_ns: last_busy_ns.unwrap_or(i64::MAX),
        }
    }

    /// Payload between two instants after T0. Whole ticks count exactly; a tick that holds one of
    /// the two is shared linearly over its active part.
    #[must_use]
    pub fn between(&self, from_ns: i64, to_ns: i64) -> Payload {
        let first = usize::try_from(tick_of(from_ns)).unwrap_or(usize::MAX);
        let (mut bytes, mut ops) = (0_u128, 0_u128);
        for (index, tick) in self.ticks.iter().enumerate().skip(first) {
            let start = i64::try_from(index as u64 * TICK_NS).unwrap_or(i64::MAX);
            if start >= to_ns {
                break;
            }
            let (inside, active) = self.share(start, from_ns, to_ns);
            bytes += u128::from(tick.bytes) * inside / active;
            ops += u128::from(tick.ops) * inside / active;
        }
        Payload::of_units(bytes, ops)
    }

    /// Payload from the first begin to `to_ns`, where it is known exactly up to another instant.
    ///
    /// At that instant it is what is known. Before it, within the same tick, the rest of the tick is
    /// shared linearly up to there; in other ticks knowing it helps nothing.
    #[must_use]
    pub fn up_to(&self, first_begin_ns: i64, to_ns: i64, known: FirstEnd) -> Payload {
        let exact = Payload::of_units(known.bytes, known.ops);
        let edge = i64::try_from(tick_of(to_ns).saturating_mul(TICK_NS)).unwrap_or(i64::MAX);
        let low = edge.max(first_begin_ns);
        if known.at_ns == to_ns {
            exact
        } else if known.at_ns < to_ns || tick_of(known.at_ns) != tick_of(to_ns) || to_ns < low {
            self.between(first_begin_ns, to_ns)
        } else {
            let before = self.between(first_begin_ns, low);
            let part = (to_ns - low) as f64 / (known.at_ns - low) as f64;
            before.plus(exact.less(before).times(part))
        }
    }

    /// How much of the active part of the tick that begins at `start` lies between two instants:
    /// numerator and denominator, in ns.
    fn share(&self, start: i64, from_ns: i64, to_ns: i64) -> (u128, u128) {
        let end = start.saturating_add_unsigned(TICK_NS);
        let (mut low, mut high) = (start.max(self.begin_ns), end.min(self.end_ns));
        if high <= low {
            (low, high) = (start, end);
        }
        let inside = high.min(to_ns).saturating_sub(low.max(from_ns)).max(0);
        (u128::from(inside.unsigned_abs()), u128::from(high.abs_diff(low)).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(bytes: &[u64]) -> Vec<Tick> {
        bytes
            .iter()
            .map(|bytes| Tick { bytes: bytes * BYTE_UNITS, ops: OP_UNITS, busy_ns: 0 })
            .collect()
    }

    #[test]
    fn whole_ticks_are_exact_and_edges_are_linear() {
        let ticks = ticks(&[1_000, 2_000, 4_000, 8_000]);
        let spread = Spread::new(&ticks, Some(0), Some(40_000_000));
        assert_eq!(spread.between(0, 40_000_000).bytes, 15_000.0);
        assert_eq!(spread.between(10_000_000, 30_000_000).bytes, 6_000.0);
        // Half of the second tick, the third, a quarter of the fourth.
        let part = spread.between(15_000_000, 32_500_000);
        assert_eq!(part.bytes, 1_000.0 + 4_000.0 + 2_000.0);
        assert_eq!(part.ops, 0.5 + 1.0 + 0.25);
        assert_eq!(spread.between(40_000_000, 90_000_000), Payload::default());
    }

    #[test]
    fn what_is_known_exactly_bends_the_tick_it_lies_in() {
        let ticks = ticks(&[1_000, 2_000, 4_000]);
        let spread = Spread::new(&ticks, Some(5_000_000), Some(30_000_000));
        let known = |at_ns, bytes: u128| FirstEnd {
            at_ns,
            bytes: bytes * u128::from(BYTE_UNITS),
            ops: 2 * u128::from(OP_UNITS),
        };
        let up_to = |to_ns, known| spread.up_to(5_000_000, to_ns, known).bytes;
        // By ticks 1 600 at 13 ms and 2 600 at 18 ms.
        assert_eq!(up_to(18_000_000, known(18_000_000, 2_900)), 2_900.0);
        // 1 000 at 10 ms and 2 900 at 18 ms: a line between them.
        assert_eq!(up_to(14_000_000, known(18_000_000, 2_900)), 1_950.0);
        // In another tick, or too late to be the count of this one.
        assert_eq!(up_to(13_000_000, known(22_000_000, 2_900)), 1_600.0);
        assert_eq!(up_to(18_000_000, known(12_000_000, 1_900)), 2_600.0);
        // Within the tick of the first begin it begins there.
        assert_eq!(up_to(7_000_000, known(9_000_000, 900)), 450.0);
    }

    #[test]
    fn payload_of_an_edge_tick_lies_in_its_active_part() {
        let ticks = ticks(&[1_000, 2_000]);
        // Active from 4 ms to 15 ms: the first tick's payload lies in 6 ms, the second's in 5 ms.
        let spread = Spread::new(&ticks, Some(4_000_000), Some(15_000_000));
        assert_eq!(spread.between(4_000_000, 15_000_000).bytes, 3_000.0);
        assert_eq!(spread.between(7_000_000, 10_000_000).bytes, 500.0);
        assert_eq!(spread.between(10_000_000, 12_000_000).bytes, 800.0);
    }
}
