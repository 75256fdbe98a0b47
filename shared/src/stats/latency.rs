//! Latency histograms: the bucket layout of an HDR histogram with a lowest value of 1 ns and two
//! significant decimal digits, bounded at one hour.
//!
//! Values below 256 have a bucket each; above, each power of two has 128 buckets, so that a bucket
//! is at most 1/128 of its values wide. The layout is `hdrhistogram`'s own (a test compares them);
//! recording is written here because it stands in the I/O path and must neither branch on resizing
//! nor saturate.

use std::cmp::Ordering;

use rkyv::{Archive, Deserialize, Serialize};

use crate::limits::LATENCY_NS_MAX;

/// log2 of the number of sub-buckets in a power of two.
const HALF_BITS: u32 = 7;
/// Counters that cover 0 to [`LATENCY_NS_MAX`].
const COUNTERS: usize = index_of(LATENCY_NS_MAX) + 1;

/// Counters of an I/O thread or collector: dense, fixed size, never resized.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LatencyCounts {
    counts: Box<[u64; COUNTERS]>,
    count: u64,
    sum_ns: u128,
    sum_sq: u128,
    min_ns: u64,
    max_ns: u64,
    over: u64,
}

/// A bucket that is not empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct Bucket {
    /// Place in the layout.
    pub index: u16,
    /// Operations in it.
    pub count: u64,
}

impl Bucket {
    /// The lowest value that falls into this bucket, in ns.
    #[must_use]
    pub fn low_ns(self) -> u64 {
        let index = u64::from(self.index);
        match (index >> HALF_BITS).checked_sub(1) {
            None | Some(0) => index,
            Some(power) => (index - (power << HALF_BITS)) << power,
        }
    }
}

/// Latencies of a set of operations: exact count, sum, sum of squares, least and greatest value
/// beside the buckets.
#[derive(Debug, Clone, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct Latency {
    /// Operations, those out of range included.
    pub count: u64,
    /// Sum in ns.
    pub sum_ns: u128,
    /// Sum of squares in ns².
    pub sum_sq: u128,
    /// Least, `u64::MAX` where there is none.
    pub min_ns: u64,
    /// Greatest, 0 where there is none.
    pub max_ns: u64,
    /// Operations longer than [`LATENCY_NS_MAX`]: in `count` and the sums, in no bucket.
    pub over: u64,
    /// Buckets that are not empty, ascending by index.
    pub buckets: Vec<Bucket>,
}

impl Default for Latency {
    fn default() -> Self {
        Self {
            count: 0,
            sum_ns: 0,
            sum_sq: 0,
            min_ns: u64::MAX,
            max_ns: 0,
            over: 0,
            buckets: Vec::new(),
        }
    }
}

impl Latency {
    /// Adds the operations of `other`.
    pub fn merge(&mut self, other: &Self) {
        let Self { count, sum_ns, sum_sq, min_ns, max_ns, over, buckets } = other;
        self.count += count;
        self.sum_ns += sum_ns;
        self.sum_sq += sum_sq;
        self.min_ns = self.min_ns.min(*min_ns);
        self.max_ns = self.max_ns.max(*max_ns);
        self.over += over;
        self.buckets = merge_buckets(&self.buckets, buckets);
    }
}

fn merge_buckets(mut left: &[Bucket], mut right: &[Bucket]) -> Vec<Bucket> {
    let mut merged = Vec::with_capacity(left.len().max(right.len()));
    while let ([l, left_rest @ ..], [r, right_rest @ ..]) = (left, right) {
        merged.push(match l.index.cmp(&r.index) {
            Ordering::Less => *l,
            Ordering::Greater => *r,
            Ordering::Equal => Bucket { index: l.index, count: l.count + r.count },
        });
        (left, right) = (
            if l.index <= r.index { left_rest } else { left },
            if r.index <= l.index { right_rest } else { right },
        );
    }
    merged.extend_from_slice(left);
    merged.extend_from_slice(right);
    merged
}

impl Default for LatencyCounts {
    fn default() -> Self {
        Self::new()
    }
}

impl LatencyCounts {
    /// Empty counters. Every page is written, so that recording takes no page fault.
    #[must_use]
    pub fn new() -> Self {
        let mut counts = Box::new([0; COUNTERS]);
        for counter in counts.iter_mut() {
            std::hint::black_box(&mut *counter);
            *counter = std::hint::black_box(0);
        }
        Self { counts, count: 0, sum_ns: 0, sum_sq: 0, min_ns: u64::MAX, max_ns: 0, over: 0 }
    }

    /// Counts one operation of `ns`.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.count += 1;
        self.sum_ns += u128::from(ns);
        self.sum_sq += u128::from(ns) * u128::from(ns);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        match self.counts.get_mut(index_of(ns)) {
            Some(counter) if ns <= LATENCY_NS_MAX => *counter += 1,
            _ => self.over += 1,
        }
    }

    /// Number of operations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Empties the counters.
    pub fn clear(&mut self) {
        if self.count == 0 {
            return;
        }
        self.counts.fill(0);
        (self.count, self.sum_ns, self.sum_sq) = (0, 0, 0);
        (self.min_ns, self.max_ns, self.over) = (u64::MAX, 0, 0);
    }

    /// Adds the operations of `other`.
    pub fn merge(&mut self, other: &Self) {
        let Self { counts, count, sum_ns, sum_sq, min_ns, max_ns, over } = other;
        if *count == 0 {
            return;
        }
        for (mine, theirs) in self.counts.iter_mut().zip(counts.iter()) {
            *mine += theirs;
        }
        self.count += count;
        self.sum_ns += sum_ns;
        self.sum_sq += sum_sq;
        self.min_ns = self.min_ns.min(*min_ns);
        self.max_ns = self.max_ns.max(*max_ns);
        self.over += over;
    }

    /// The same without the empty buckets.
    #[must_use]
    pub fn to_latency(&self) -> Latency {
        let buckets = (0_u16..)
            .zip(self.counts.iter())
            .filter(|(_, count)| **count > 0)
            .map(|(index, count)| Bucket { index, count: *count })
            .collect();
        let Self { counts: _, count, sum_ns, sum_sq, min_ns, max_ns, over } = self;
        Latency {
            count: *count,
            sum_ns: *sum_ns,
            sum_sq: *sum_sq,
            min_ns: *min_ns,
            max_ns: *max_ns,
            over: *over,
            buckets,
        }
    }
}

/// The bucket of a value.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "an index is below 64 · 128 + 256")]
const fn index_of(ns: u64) -> usize {
    let power = (u64::BITS - (ns | ((2 << HALF_BITS) - 1)).leading_zeros()) - (HALF_BITS + 1);
    (((power as u64) << HALF_BITS) + (ns >> power)) as usize
}

const _: () = assert!(COUNTERS <= u16::MAX as usize && COUNTERS * 8 <= 40 << 10);

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;
    use proptest::prelude::*;

    use super::*;

    fn counts_of(values: &[u64]) -> LatencyCounts {
        let mut counts = LatencyCounts::new();
        values.iter().for_each(|value| counts.record(*value));
        counts
    }

    fn any_latency() -> impl Strategy<Value = Vec<u64>> {
        proptest::collection::vec(
            prop_oneof![0..300_u64, 0..10_000_000_u64, 0..2 * LATENCY_NS_MAX],
            0..60,
        )
    }

    #[test]
    fn known_buckets() {
        assert_eq!(index_of(0), 0);
        assert_eq!(index_of(255), 255);
        assert_eq!(index_of(256), 256);
        assert_eq!(index_of(257), 256);
        assert_eq!(index_of(511), 383);
        assert_eq!(index_of(512), 384);
        assert_eq!(Bucket { index: 383, count: 1 }.low_ns(), 510);
        assert_eq!(Bucket { index: 384, count: 1 }.low_ns(), 512);
    }

    #[test]
    fn out_of_range_is_counted_apart() {
        let latency = counts_of(&[5, LATENCY_NS_MAX, LATENCY_NS_MAX + 1]).to_latency();
        assert_eq!((latency.count, latency.over), (3, 1));
        assert_eq!(latency.buckets.iter().map(|bucket| bucket.count).sum::<u64>(), 2);
        assert_eq!((latency.min_ns, latency.max_ns), (5, LATENCY_NS_MAX + 1));
        assert_eq!(latency.sum_ns, u128::from(2 * LATENCY_NS_MAX + 6));
    }

    proptest! {
        #[test]
        fn layout_is_that_of_hdrhistogram(value in 1..LATENCY_NS_MAX) {
            let mut hdr = Histogram::<u64>::new_with_bounds(1, LATENCY_NS_MAX, 2).unwrap();
            hdr.record(value).unwrap();
            let latency = counts_of(&[value]).to_latency();
            prop_assert_eq!(latency.buckets[0].low_ns(), hdr.lowest_equivalent(value));
        }

        #[test]
        fn dense_and_sparse_merges_agree_and_lose_nothing(a in any_latency(), b in any_latency()) {
            let (mut dense, mut sparse) = (counts_of(&a), counts_of(&a).to_latency());
            dense.merge(&counts_of(&b));
            sparse.merge(&counts_of(&b).to_latency());
            prop_assert_eq!(&dense.to_latency(), &sparse);
            let all: Vec<u64> = a.iter().chain(&b).copied().collect();
            prop_assert_eq!(&counts_of(&all).to_latency(), &sparse);
            let mut swapped = counts_of(&b).to_latency();
            swapped.merge(&counts_of(&a).to_latency());
            prop_assert_eq!(&swapped, &sparse);
            dense.clear();
            prop_assert_eq!(dense.to_latency(), Latency::default());
        }
    }
}
