//! Steady state: whether the last five rounds of a point lie together and lead nowhere.

use iofleet_shared::limits::TICK_NS;
use serde::{Deserialize, Serialize};

use crate::figures::{Payload, Spread};

/// Greatest spread of the rounds, over their mean.
const SPREAD_MAX: f64 = 0.20;
/// Greatest rise or fall of their fitted line from first to last round, over their mean.
const SLOPE_MAX: f64 = 0.10;
/// Rounds that are looked at: the last ones.
const ROUNDS: usize = 5;
const ROUND_NS_MIN: u64 = 1_000_000_000;

/// What the last five rounds of the measured phase say.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Steady {
    /// Both limits hold.
    pub steady: bool,
    /// Length of a round in seconds: the greater of 1 s and a tenth of the measured phase.
    pub round_s: f64,
    /// Rounds that the measured phase held.
    pub rounds: u64,
    /// (Greatest − least) / mean of the last five rounds' bandwidths.
    pub spread: f64,
    /// Rise (or, below 0, fall) of the line fitted through them from the first to the last of them,
    /// over their mean.
    pub slope: f64,
}

/// Judges the spread fleet series between two instants after T0: its bytes, or its operations where
/// they move none (`of`). None: fewer than five rounds, or
/// nothing moved in them.
#[must_use]
pub fn steady(
    spread: &Spread<'_>,
    begin_ns: i64,
    end_ns: i64,
    of: fn(Payload) -> f64,
) -> Option<Steady> {
    let length = u64::try_from(end_ns.saturating_sub(begin_ns)).ok()?;
    let round_ns = ROUND_NS_MIN.max(length / 10);
    // A point that ends within a tick of its planned time has had its last round.
    let rounds = (length + TICK_NS) / round_ns;
    let last: Vec<f64> = (rounds.checked_sub(ROUNDS as u64)?..rounds)
        .map(|round| {
            let from = begin_ns.saturating_add_unsigned(round * round_ns);
            let to = from.saturating_add_unsigned(round_ns).min(end_ns);
            of(spread.between(from, to).per(to.abs_diff(from).max(1)))
        })
        .collect();
    let (spread, slope) = shape(&last)?;
    Some(Steady {
        steady: spread <= SPREAD_MAX && slope.abs() <= SLOPE_MAX,
        round_s: round_ns as f64 / 1e9,
        rounds,
        spread,
        slope,
    })
}

/// Spread and slope of the values, each over their mean.
fn shape(values: &[f64]) -> Option<(f64, f64)> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    if mean <= 0.0 {
        return None;
    }
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = values.iter().copied().fold(0.0, f64::max);
    let middle = (count - 1.0) / 2.0;
    let (mut covariance, mut variance) = (0.0, 0.0);
    for (place, value) in values.iter().enumerate() {
        let x = place as f64 - middle;
        covariance += x * (value - mean);
        variance += x * x;
    }
    Some(((greatest - least) / mean, covariance / variance * (count - 1.0) / mean))
}

#[cfg(test)]
mod tests {
    use iofleet_shared::stats::{BYTE_UNITS, Tick};

    use super::*;

    /// One value per second, spread evenly over its 100 ticks.
    fn series(per_second: &[u64]) -> Vec<Tick> {
        per_second
            .iter()
            .flat_map(|bytes| {
                let tick = Tick { bytes: bytes / 100 * BYTE_UNITS, ..Tick::default() };
                std::iter::repeat_n(tick, 100)
            })
            .collect()
    }

    fn judge(per_second: &[u64]) -> Option<Steady> {
        let ticks = series(per_second);
        let end = 1_000_000_000 * i64::try_from(per_second.len()).unwrap();
        steady(&Spread::new(&ticks, Some(0), Some(end)), 0, end, |payload| payload.bytes)
    }

    #[test]
    fn fewer_than_five_rounds_say_nothing() {
        assert_eq!(judge(&[1_000; 4]), None);
        assert!(judge(&[1_000; 5]).is_some());
        assert_eq!(judge(&[0; 5]), None);
    }

    #[test]
    fn only_the_last_five_rounds_count() {
        let verdict = judge(&[100, 200, 300, 1_000, 1_000, 1_000, 1_000, 1_000]).unwrap();
        assert_eq!((verdict.rounds, verdict.round_s), (8, 1.0));
        assert_eq!((verdict.steady, verdict.spread, verdict.slope), (true, 0.0, 0.0));
    }

    #[test]
    fn spread_and_slope_by_hand() {
        // Mean 1000, spread 400/1000; x = -2..2: covariance 2·200 + 1·100 + 1·100 + 2·200 = 1000 over
        // 10 is 100 a round, four rounds are 400.
        let verdict = judge(&[800, 900, 1_000, 1_100, 1_200]).unwrap();
        assert!((verdict.spread - 0.4).abs() < 1e-12);
        assert!((verdict.slope - 0.4).abs() < 1e-12);
        assert!(!verdict.steady);
        let falling = judge(&[1_200, 1_100, 1_000, 900, 800]).unwrap();
        assert!((falling.slope + 0.4).abs() < 1e-12);
        // A zigzag of 300 leads nowhere, but spreads too far.
        let zigzag = judge(&[900, 1_200, 900, 1_200, 900]).unwrap();
        assert!(zigzag.slope.abs() < 1e-12 && zigzag.spread > SPREAD_MAX && !zigzag.steady);
        // A rise of 12 % over the rounds: the spread is legal, the slope is not.
        let rise = judge(&[9_400, 9_700, 10_000, 10_300, 10_600]).unwrap();
        assert!(rise.spread <= SPREAD_MAX && rise.slope > SLOPE_MAX && !rise.steady);
    }

    #[test]
    fn a_round_of_a_long_point_is_a_tenth_of_it() {
        let verdict = judge(&[1_000; 40]).unwrap();
        assert_eq!((verdict.rounds, verdict.round_s), (10, 4.0));
    }

    #[test]
    fn an_end_just_before_the_deadline_loses_no_round() {
        let ticks = series(&[1_000; 5]);
        let end = 4_999_900_000;
        let verdict =
            steady(&Spread::new(&ticks, Some(0), Some(end)), 0, end, |payload| payload.bytes)
                .unwrap();
        assert_eq!(verdict.rounds, 5);
        assert!(verdict.steady);
    }
}
