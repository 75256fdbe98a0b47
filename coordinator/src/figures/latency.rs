//! Percentiles and moments of a set of latencies.
//!
//! A percentile is the highest value that falls into the same bucket as the operation of that rank
//! (never above the exact maximum), so it is not below the true one and at most 1/128 above it.
//! The rank of p is ⌈count · p⌉. Mean and standard deviation (of the population, n) come from the
//! exact sums, not from buckets.

use iofleet_shared::stats::{Bucket, Latency};
use serde::{Deserialize, Serialize};

/// Operations that must lie above a percentile for it to be said.
const ABOVE_MIN: u64 = 10;

/// Latencies of a set of operations, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LatencySummary {
    /// Operations.
    pub count: u64,
    /// Operations longer than an hour: in `count`, mean, stddev and `max`, in no bucket.
    pub out_of_range: u64,
    /// Least.
    pub min: u64,
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub stddev: f64,
    /// Median. This and each percentile: null where fewer than 10 operations lie above.
    pub p50: Option<u64>,
    /// 90 %.
    pub p90: Option<u64>,
    /// 95 %.
    pub p95: Option<u64>,
    /// 99 %.
    pub p99: Option<u64>,
    /// 99.9 %.
    pub p99_9: Option<u64>,
    /// 99.99 %.
    pub p99_99: Option<u64>,
    /// Greatest.
    pub max: u64,
}

/// Summarises latencies; none where there are none.
#[must_use]
pub fn summarise(latency: &Latency) -> Option<LatencySummary> {
    if latency.count == 0 {
        return None;
    }
    let count = latency.count as f64;
    Some(LatencySummary {
        count: latency.count,
        out_of_range: latency.over,
        min: latency.min_ns,
        mean: latency.sum_ns as f64 / count,
        stddev: stddev(latency),
        p50: percentile_ns(latency, 5_000),
        p90: percentile_ns(latency, 9_000),
        p95: percentile_ns(latency, 9_500),
        p99: percentile_ns(latency, 9_900),
        p99_9: percentile_ns(latency, 9_990),
        p99_99: percentile_ns(latency, 9_999),
        max: latency.max_ns,
    })
}

/// The latency that `per_10_000` of 10,000 operations do not exceed, in ns. None where fewer than 10
/// operations lie above.
#[must_use]
pub fn percentile_ns(latency: &Latency, per_10_000: u16) -> Option<u64> {
    let product = u128::from(latency.count) * u128::from(per_10_000);
    let rank = u64::try_from(product.div_ceil(10_000)).ok()?.max(1);
    if latency.count.checked_sub(rank)? < ABOVE_MIN {
        return None;
    }
    let mut seen = 0;
    for bucket in &latency.buckets {
        seen += bucket.count;
        if seen >= rank {
            return Some(highest_ns(*bucket).min(latency.max_ns));
        }
    }
    // The rank lies among the operations out of range.
    Some(latency.max_ns)
}

/// The highest value that falls into a bucket.
fn highest_ns(bucket: Bucket) -> u64 {
    let next = Bucket { index: bucket.index.saturating_add(1), count: 0 };
    next.low_ns().saturating_sub(1)
}

/// √(n·Σx² − (Σx)²) / n, in integers up to the root as long as they hold it.
fn stddev(latency: &Latency) -> f64 {
    let count = u128::from(latency.count);
    let exact = count
        .checked_mul(latency.sum_sq)
        .zip(latency.sum_ns.checked_mul(latency.sum_ns))
        .map(|(squares, square)| squares.saturating_sub(square) as f64);
    let scaled = exact.unwrap_or_else(|| {
        (count as f64 * latency.sum_sq as f64 - (latency.sum_ns as f64).powi(2)).max(0.0)
    });
    scaled.sqrt() / latency.count as f64
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;
    use iofleet_shared::{limits::LATENCY_NS_MAX, stats::LatencyCounts};
    use proptest::prelude::*;

    use super::*;

    fn latency_of(values: impl IntoIterator<Item = u64>) -> Latency {
        let mut counts = LatencyCounts::new();
        values.into_iter().for_each(|value| counts.record(value));
        counts.to_latency()
    }

    #[test]
    fn hundred_values_by_hand() {
        // 1 to 100: each has a bucket of its own.
        let summary = summarise(&latency_of(1..=100)).unwrap();
        assert_eq!((summary.count, summary.min, summary.max), (100, 1, 100));
        assert_eq!(summary.mean, 50.5);
        // Variance of 1..n is (n² − 1)/12.
        assert!((summary.stddev - (9_999.0_f64 / 12.0).sqrt()).abs() < 1e-12);
        assert_eq!((summary.p50, summary.p90), (Some(50), Some(90)));
        // Only five lie above p95.
        assert_eq!((summary.p95, summary.p99), (None, None));
    }

    #[test]
    fn ten_operations_above_are_enough_and_nine_are_not() {
        assert_eq!(percentile_ns(&latency_of(1..=20), 5_000), Some(10));
        assert_eq!(percentile_ns(&latency_of(1..=19), 5_000), None);
        let thousand = summarise(&latency_of((1..=1_000).map(|_| 100))).unwrap();
        assert_eq!((thousand.p99, thousand.p99_9), (Some(100), None));
        let many = summarise(&latency_of((1..=100_000).map(|n| n % 200))).unwrap();
        assert_eq!((many.p99_9, many.p99_99), (Some(199), Some(199)));
        assert_eq!(summarise(&Latency::default()), None);
    }

    #[test]
    fn a_bucket_answers_with_its_highest_value_but_not_above_the_maximum() {
        // 1000 to 1003 share a bucket.
        let spread = latency_of((0..40).map(|_| 1_000).chain(std::iter::once(5_000)));
        assert_eq!(percentile_ns(&spread, 5_000), Some(1_003));
        assert_eq!(percentile_ns(&latency_of([1_000; 40]), 5_000), Some(1_000));
    }

    #[test]
    fn out_of_range_ranks_answer_with_the_maximum() {
        let latency = latency_of((0..40).map(|_| LATENCY_NS_MAX + 7));
        assert_eq!(percentile_ns(&latency, 5_000), Some(LATENCY_NS_MAX + 7));
        assert_eq!(summarise(&latency).unwrap().out_of_range, 40);
    }

    #[test]
    fn large_sums_keep_a_spread() {
        // Two values an hour long, 2 ns apart: the deviation is 1 ns.
        let latency = latency_of([LATENCY_NS_MAX - 2, LATENCY_NS_MAX]);
        assert!((stddev(&latency) - 1.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn percentiles_are_those_of_hdrhistogram(
            values in proptest::collection::vec(
                prop_oneof![1..300_u64, 1..10_000_000_u64, 1..LATENCY_NS_MAX], 20..400),
            per_10_000 in 1..9_999_u16,
        ) {
            let latency = latency_of(values.iter().copied());
            let mut hdr = Histogram::<u64>::new_with_bounds(1, LATENCY_NS_MAX, 2).unwrap();
            values.iter().for_each(|value| hdr.record(*value).unwrap());
            if let Some(ours) = percentile_ns(&latency, per_10_000) {
                let rank = (values.len() * usize::from(per_10_000)).div_ceil(10_000).max(1);
                // Theirs multiplies by a float, which may lie just above a whole rank: ask between.
                let theirs = hdr.value_at_quantile((rank as f64 - 0.5) / values.len() as f64);
                prop_assert_eq!(ours, theirs.min(latency.max_ns));
                let mut sorted = values.clone();
                sorted.sort_unstable();
                let exact = sorted[rank - 1];
                prop_assert!(exact <= ours && ours <= exact + exact / 128 + 1);
            }
        }
    }
}
