//! The only reader of the operating system's clocks.
//!
//! Figures come from [`monotonic_ns`]. [`wall`] is for people and is never subtracted.

use rkyv::{Archive, Deserialize, Serialize};
use rustix::time::{ClockId, clock_gettime};

const NS_PER_S: u64 = 1_000_000_000;

/// `CLOCK_MONOTONIC` in ns.
#[must_use]
pub fn monotonic_ns() -> u64 {
    read_ns(ClockId::Monotonic)
}

/// Time that the machine spent suspended since boot, in ns: `CLOCK_BOOTTIME` less
/// `CLOCK_MONOTONIC`. A change of more than a few ms means that it slept in between.
#[must_use]
pub fn suspended_ns() -> u64 {
    read_ns(ClockId::Boottime).saturating_sub(monotonic_ns())
}

/// The wall clock, for people.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the wall clock")]
pub fn wall() -> std::time::SystemTime {
    std::time::SystemTime::now()
}

fn read_ns(id: ClockId) -> u64 {
    let t = clock_gettime(id);
    // Both parts of a monotonic reading are never negative.
    u64::try_from(t.tv_sec).unwrap_or(0) * NS_PER_S + u64::try_from(t.tv_nsec).unwrap_or(0)
}

/// How a worker's monotonic clock reads at a fleet instant. Fleet time is the coordinator's
/// monotonic clock. Frozen when a point is armed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct ClockMap {
    /// Worker clock less fleet clock at `reference_ns`, in ns.
    pub offset_ns: i64,
    /// The fleet instant at which the offset was seen.
    pub reference_ns: u64,
    /// How much faster the worker's clock runs, in parts per 10^9.
    pub drift_ppb: i32,
    /// Bound of the offset's error at the time of freezing, in ns.
    pub uncertainty_ns: u64,
}

impl ClockMap {
    /// The map of a clock onto itself.
    pub const IDENTITY: Self =
        Self { offset_ns: 0, reference_ns: 0, drift_ppb: 0, uncertainty_ns: 0 };

    /// The worker's reading at a fleet instant; none if it would be before the worker's boot.
    #[must_use]
    pub fn to_worker(&self, fleet_ns: u64) -> Option<u64> {
        let elapsed = i128::from(fleet_ns) - i128::from(self.reference_ns);
        let drift = elapsed * i128::from(self.drift_ppb) / 1_000_000_000;
        u64::try_from(i128::from(fleet_ns) + i128::from(self.offset_ns) + drift).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn map_adds_offset_and_drift() {
        let map = ClockMap {
            offset_ns: -5_000,
            reference_ns: 1_000_000_000,
            drift_ppb: 100_000,
            uncertainty_ns: 0,
        };
        // One second later a clock that gains 100 ppm has gained 100 us.
        assert_eq!(map.to_worker(2_000_000_000), Some(2_000_000_000 - 5_000 + 100_000));
        assert_eq!(map.to_worker(1_000_000_000), Some(1_000_000_000 - 5_000));
        assert_eq!(ClockMap { offset_ns: -10, ..ClockMap::IDENTITY }.to_worker(5), None);
    }

    #[test]
    fn monotonic_does_not_go_back() {
        let first = monotonic_ns();
        assert!(monotonic_ns() >= first);
    }
}
