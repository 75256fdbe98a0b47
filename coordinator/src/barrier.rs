//! Fleet time: how each worker's clock reads against the coordinator's, how sure that is, and the
//! instant at which a point starts. Pure.
//!
//! A ping leaves at t1 (fleet), comes at t2 (worker), its answer leaves at t3 (worker) and comes at
//! t4 (fleet). Then the worker's clock is ahead of the fleet's by
//! `((t2 - t1) + (t3 - t4)) / 2`, and that is wrong by at most half of the round trip
//! `(t4 - t1) - (t3 - t2)`: the whole of it may have been spent on one way (RFC 5905, section 8).
//! A sample's bound grows by [`CLOCK_DRIFT_PPM`] with its age.

use std::collections::VecDeque;

use iofleet_shared::{clock::ClockMap, limits::CLOCK_DRIFT_PPM};

/// Samples kept of a worker: the last ones, in which the best is looked for.
const SAMPLES: usize = 64;
/// Drift is estimated from samples at least this far apart…
const DRIFT_BASE_NS: u64 = 20_000_000_000;
/// …and only where their bounds leave it this sure, in parts per 10^9.
const DRIFT_ERROR_PPB: u64 = 5_000;
/// Time that a start takes on both sides beside the network.
const START_NS: u64 = 12_000_000;
/// Time that waking one more I/O thread takes.
const START_PER_THREAD_NS: u64 = 30_000;
/// Longer margin of the second try.
const RETRY_FACTOR: u64 = 5;

/// One ping and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sample {
    /// Fleet instant in the middle of the round trip.
    at_ns: u64,
    offset_ns: i64,
    /// Half of the round trip.
    bound_ns: u64,
}

impl Sample {
    fn bound_at(&self, now_ns: u64) -> u64 {
        self.bound_ns + now_ns.saturating_sub(self.at_ns) / 1_000_000 * CLOCK_DRIFT_PPM
    }
}

/// What is known of one worker's clock within one epoch (a stretch in which the coordinator did
/// not sleep).
#[derive(Debug, Clone, Default)]
pub struct ClockEstimate {
    samples: VecDeque<Sample>,
    /// The best sample that has left `samples`: the far end of the drift's base line.
    anchor: Option<Sample>,
}

impl ClockEstimate {
    /// Takes one ping and its answer; false if its stamps can't be true.
    pub fn add(&mut self, t1: u64, t2: u64, t3: u64, t4: u64) -> bool {
        if t4 < t1 || t3 < t2 || t3 - t2 > t4 - t1 {
            return false;
        }
        let sum = i128::from(t2) - i128::from(t1) + i128::from(t3) - i128::from(t4);
        let Ok(offset_ns) = i64::try_from(sum.div_euclid(2)) else { return false };
        let round_trip = (t4 - t1) - (t3 - t2);
        if self.samples.len() == SAMPLES
            && let Some(old) = self.samples.pop_front()
        {
            let better = |anchor: Sample| anchor.bound_ns <= old.bound_ns.saturating_mul(2);
            self.anchor = Some(self.anchor.filter(|anchor| better(*anchor)).unwrap_or(old));
        }
        self.samples.push_back(Sample {
            at_ns: t1 + (t4 - t1) / 2,
            offset_ns,
            bound_ns: round_trip.div_ceil(2),
        });
        true
    }

    /// Forgets everything: the coordinator slept, so that samples from before say nothing.
    pub fn new_epoch(&mut self) {
        *self = Self::default();
    }

    /// Number of samples at hand.
    #[must_use]
    pub fn samples(&self) -> usize {
        self.samples.len()
    }

    /// The map by the sample with the least bound as of now; none without samples.
    #[must_use]
    pub fn map(&self, now_ns: u64) -> Option<ClockMap> {
        let best = self.samples.iter().min_by_key(|sample| sample.bound_at(now_ns))?;
        Some(ClockMap {
            offset_ns: best.offset_ns,
            reference_ns: best.at_ns,
            drift_ppb: self.drift_ppb(best),
            // One more for the halving that rounds.
            uncertainty_ns: best.bound_at(now_ns) + 1,
        })
    }

    /// How far the worker's clock now is from where `map` expects it, in ns; none without samples
    /// that are newer than the map's.
    #[must_use]
    pub fn residual_ns(&self, map: &ClockMap, now_ns: u64) -> Option<i64> {
        let newer = self.samples.iter().filter(|sample| sample.at_ns > map.reference_ns);
        let best = newer.min_by_key(|sample| sample.bound_at(now_ns))?;
        let expected = map.to_worker(best.at_ns)?;
        let seen = i128::from(best.at_ns) + i128::from(best.offset_ns);
        i64::try_from(seen - i128::from(expected)).ok()
    }

    /// Least half round trip at hand, in ns.
    #[must_use]
    pub fn half_trip_ns(&self) -> Option<u64> {
        self.samples.iter().map(|sample| sample.bound_ns).min()
    }

    fn drift_ppb(&self, best: &Sample) -> i32 {
        let Some(anchor) = self.anchor else { return 0 };
        let base = best.at_ns.saturating_sub(anchor.at_ns);
        let error = u128::from(anchor.bound_ns + best.bound_ns) * 1_000_000_000;
        if base < DRIFT_BASE_NS || error / u128::from(base) > u128::from(DRIFT_ERROR_PPB) {
            return 0;
        }
        let change = i128::from(best.offset_ns) - i128::from(anchor.offset_ns);
        i32::try_from(change * 1_000_000_000 / i128::from(base)).unwrap_or(0)
    }
}

/// How far ahead of now T0 is laid: the start and the commit each cross the network once and the
/// answer comes back once, and the threads need to be on their way to sleep.
#[must_use]
pub fn start_margin_ns(half_trip_ns: u64, threads_per_node: u32, attempt: u32) -> u64 {
    let margin = START_NS + 8 * half_trip_ns + START_PER_THREAD_NS * u64::from(threads_per_node);
    if attempt == 0 { margin } else { margin * RETRY_FACTOR }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn offset_and_bound_by_hand() {
        let mut clock = ClockEstimate::default();
        // The worker is 1000 ahead; 40 on the way there, 20 in the worker, 60 back.
        assert!(clock.add(5_000, 6_040, 6_060, 5_120));
        let map = clock.map(5_060).unwrap();
        // (1040 + 940) / 2: off by 10 from the truth, within half of the round trip of 100.
        assert_eq!((map.offset_ns, map.reference_ns, map.uncertainty_ns), (990, 5_060, 51));
        // A millisecond later it is less sure by 100 ns.
        assert_eq!(clock.map(1_005_060).unwrap().uncertainty_ns, 151);
    }

    #[test]
    fn the_least_round_trip_wins_until_it_is_old() {
        let mut clock = ClockEstimate::default();
        assert!(clock.add(0, 100, 100, 200));
        assert!(clock.add(1_000_000_000, 1_000_050_000, 1_000_050_000, 1_000_100_000));
        // The first has a bound of 100 ns, but a second has passed: 100 us; the second has 50 us.
        assert_eq!(clock.map(1_000_100_000).unwrap().reference_ns, 1_000_050_000);
        assert_eq!(clock.map(1_000_000).unwrap().reference_ns, 100);
    }

    #[test]
    fn impossible_stamps_are_refused() {
        let mut clock = ClockEstimate::default();
        assert!(!clock.add(100, 0, 0, 50));
        assert!(!clock.add(0, 100, 50, 200));
        assert!(!clock.add(0, 0, 300, 200));
        assert_eq!(clock.map(0), None);
    }

    #[test]
    fn drift_is_seen_over_a_long_base() {
        let mut clock = ClockEstimate::default();
        for second in 0..200_u64 {
            let t1 = second * 1_000_000_000;
            // 20 ppm fast: 20 us more each second.
            let worker = t1 + 500 + second * 20_000;
            assert!(clock.add(t1, worker, worker, t1 + 1_000));
        }
        let map = clock.map(200_000_000_000).unwrap();
        assert!((map.drift_ppb - 20_000).abs() < 100, "{map:?}");
        assert_eq!(clock.residual_ns(&map, 200_000_000_000), None);
        let stale = ClockMap { reference_ns: 0, offset_ns: 0, drift_ppb: 0, ..map };
        let residual = clock.residual_ns(&stale, 199_000_000_000).unwrap();
        assert_eq!(residual, 199 * 20_000);
    }

    proptest! {
        /// Whatever the delays, the true offset lies within the reported bound.
        #[test]
        fn truth_is_within_the_bound(
            offset in -1_000_000_000_000_i64..1_000_000_000_000,
            trips in proptest::collection::vec((0..5_000_000_u64, 0..5_000_000_u64, 0..1_000_000_u64), 1..80),
        ) {
            let mut clock = ClockEstimate::default();
            let mut now = 2_000_000_000_000_u64;
            for (there, back, held) in trips {
                let t2 = (now + there).checked_add_signed(offset).unwrap();
                let t4 = now + there + held + back;
                prop_assert!(clock.add(now, t2, t2 + held, t4));
                now = t4 + 1_000_000;
            }
            let map = clock.map(now).unwrap();
            prop_assert!((map.offset_ns - offset).unsigned_abs() <= map.uncertainty_ns);
        }
    }
}
