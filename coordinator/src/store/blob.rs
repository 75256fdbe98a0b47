//! Histograms as the store keeps them: everything that another merge or another percentile needs.
//!
//! Little-endian, without padding: version `u32` (1), count `u64`, sum in ns `u128`, sum of squares
//! in ns² `u128`, least `u64`, greatest `u64`, over `u64`, number of buckets `u32`, then for each
//! bucket that is not empty, ascending, its index `u16` and its count `u64`.

use iofleet_shared::stats::{Bucket, Latency};

/// Version of the encoding.
pub(super) const VERSION: u32 = 1;

/// Bytes that are no histogram of a version known here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlobError {
    /// Made by another version.
    #[error("the histogram has version {found}, known here is {VERSION}")]
    Version {
        /// What its header says.
        found: u32,
    },
    /// Too short or too long.
    #[error("the histogram has {found} bytes, its header says otherwise")]
    Length {
        /// How long it is.
        found: usize,
    },
    /// The buckets don't ascend or don't add up.
    #[error("the histogram's buckets don't ascend, or don't add up to its count")]
    Buckets,
}

/// The bytes of a histogram.
#[must_use]
pub(super) fn encode(latency: &Latency) -> Vec<u8> {
    let Latency { count, sum_ns, sum_sq, min_ns, max_ns, over, buckets } = latency;
    let mut bytes = Vec::with_capacity(72 + buckets.len() * 10);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&count.to_le_bytes());
    bytes.extend_from_slice(&sum_ns.to_le_bytes());
    bytes.extend_from_slice(&sum_sq.to_le_bytes());
    for word in [min_ns, max_ns, over] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    // Indexes are u16, so that there are at most 65536 buckets.
    let len = u32::try_from(buckets.len()).unwrap_or(u32::MAX);
    bytes.extend_from_slice(&len.to_le_bytes());
    for Bucket { index, count } in buckets {
        bytes.extend_from_slice(&index.to_le_bytes());
        bytes.extend_from_slice(&count.to_le_bytes());
    }
    bytes
}

/// The histogram of some bytes.
///
/// # Errors
/// When they are of another version, cut short, too long, or contradict themselves.
pub(super) fn decode(bytes: &[u8]) -> Result<Latency, BlobError> {
    let mut rest = Rest { bytes, total: bytes.len() };
    let version = u32::from_le_bytes(rest.take()?);
    if version != VERSION {
        return Err(BlobError::Version { found: version });
    }
    let count = u64::from_le_bytes(rest.take()?);
    let sum_ns = u128::from_le_bytes(rest.take()?);
    let sum_sq = u128::from_le_bytes(rest.take()?);
    let min_ns = u64::from_le_bytes(rest.take()?);
    let max_ns = u64::from_le_bytes(rest.take()?);
    let over = u64::from_le_bytes(rest.take()?);
    let len = u32::from_le_bytes(rest.take()?);
    let mut buckets = Vec::new();
    for _ in 0..len {
        let index = u16::from_le_bytes(rest.take()?);
        let count = u64::from_le_bytes(rest.take()?);
        buckets.push(Bucket { index, count });
    }
    if !rest.bytes.is_empty() {
        return Err(BlobError::Length { found: bytes.len() });
    }
    let sum = buckets.iter().try_fold(over, |sum, bucket| sum.checked_add(bucket.count));
    let ascending = buckets.windows(2).all(|pair| pair[0].index < pair[1].index);
    if sum != Some(count) || !ascending {
        return Err(BlobError::Buckets);
    }
    Ok(Latency { count, sum_ns, sum_sq, min_ns, max_ns, over, buckets })
}

struct Rest<'a> {
    bytes: &'a [u8],
    total: usize,
}

impl Rest<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], BlobError> {
        let (first, rest) =
            self.bytes.split_first_chunk().ok_or(BlobError::Length { found: self.total })?;
        self.bytes = rest;
        Ok(*first)
    }
}

#[cfg(test)]
mod tests {
    use iofleet_shared::stats::LatencyCounts;
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[u64]) -> Latency {
        let mut counts = LatencyCounts::new();
        values.iter().for_each(|value| counts.record(*value));
        counts.to_latency()
    }

    #[test]
    fn bytes_are_as_documented() {
        let bytes = encode(&of(&[3, 3, 258]));
        let mut expected = vec![1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0];
        expected.extend_from_slice(&[8, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]); // 264
        expected.extend_from_slice(&[0x16, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]); // 66582
        expected.extend_from_slice(&[3, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0]);
        expected.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0]);
        expected.extend_from_slice(&[3, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
        expected.extend_from_slice(&[1, 1, 1, 0, 0, 0, 0, 0, 0, 0]); // bucket 257 holds 258 and 259
        assert_eq!(bytes, expected);
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let good = encode(&of(&[3, 300]));
        let changed = |at: usize, to: u8| {
            let mut bytes = good.clone();
            bytes[at] = to;
            decode(&bytes)
        };
        assert_eq!(changed(0, 2), Err(BlobError::Version { found: 2 }));
        assert_eq!(changed(4, 9), Err(BlobError::Buckets));
        assert_eq!(
            changed(72, 255),
            decode(&good).map(|mut latency| {
                latency.buckets[0].index = 255;
                latency
            })
        );
        assert_eq!(changed(73, 9), Err(BlobError::Buckets));
        let mut long = good.clone();
        long.push(0);
        assert_eq!(decode(&long), Err(BlobError::Length { found: good.len() + 1 }));
    }

    proptest! {
        #[test]
        fn comes_back_equal_and_no_part_of_it_does(
            values in proptest::collection::vec(prop_oneof![0..300_u64, 0..1_u64 << 60], 0..60),
            cut in any::<prop::sample::Index>(),
        ) {
            let latency = of(&values);
            let bytes = encode(&latency);
            prop_assert_eq!(decode(&bytes), Ok(latency));
            let cut = cut.index(bytes.len());
            prop_assert_eq!(decode(&bytes[..cut]), Err(BlobError::Length { found: cut }));
        }
    }
}
