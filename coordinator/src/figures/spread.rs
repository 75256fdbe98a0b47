//! The spread series as a function of time: how much payload lies between two instants.

use iofleet_shared::{
    limits::TICK_NS,
    stats::{BYTE_UNITS, OP_UNITS, Tick, tick_of},
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
    fn payload_of_an_edge_tick_lies_in_its_active_part() {
        let ticks = ticks(&[1_000, 2_000]);
        // Active from 4 ms to 15 ms: the first tick's payload lies in 6 ms, the second's in 5 ms.
        let spread = Spread::new(&ticks, Some(4_000_000), Some(15_000_000));
        assert_eq!(spread.between(4_000_000, 15_000_000).bytes, 3_000.0);
        assert_eq!(spread.between(7_000_000, 10_000_000).bytes, 500.0);
        assert_eq!(spread.between(10_000_000, 12_000_000).bytes, 800.0);
    }
}
