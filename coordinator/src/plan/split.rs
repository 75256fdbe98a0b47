//! Exact division of blocks among threads, and seeds that differ in all of their bits.

/// First block and number of blocks of a part, when `blocks` are dealt to `parts` contiguously and
/// in order. Parts differ by at most one block, the larger ones first.
pub(super) fn share(blocks: u64, parts: u32, part: u32) -> (u64, u64) {
    let (parts, part) = (u64::from(parts.max(1)), u64::from(part));
    let (each, more) = (blocks / parts, blocks % parts);
    (part * each + part.min(more), each + u64::from(part < more))
}

/// The seed of a thread in a point.
pub(super) fn seed(seed: u64, point: u32, thread: u32) -> u64 {
    // Two rounds keep sums of point and thread from meeting: (1, 2) and (2, 1) are different.
    mix(mix(mix(seed) ^ u64::from(point)) ^ u64::from(thread))
}

/// One step of splitmix64.
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ten_blocks_among_four() {
        let shares: Vec<_> = (0..4).map(|part| share(10, 4, part)).collect();
        assert_eq!(shares, [(0, 3), (3, 3), (6, 2), (8, 2)]);
    }

    #[test]
    fn splitmix_is_the_published_one() {
        // The first outputs of the reference generator for seed 0.
        assert_eq!(mix(0), 0xE220_A839_7B1D_CDAF);
        assert_eq!(mix(0x9E37_79B9_7F4A_7C15), 0x6E78_9E6A_A1B9_65F4);
    }

    #[test]
    fn seeds_of_neighbours_differ() {
        let mut seeds = BTreeSet::new();
        for of_all in 0..4 {
            for point in 0..16 {
                for thread in 0..64 {
                    seeds.insert(seed(of_all, point, thread));
                }
            }
        }
        assert_eq!(seeds.len(), 4 * 16 * 64);
    }

    proptest! {
        #[test]
        fn shares_are_contiguous_even_and_exact(blocks in 0_u64..1 << 40, parts in 1_u32..3_000) {
            let mut next = 0;
            let (mut least, mut most) = (u64::MAX, 0);
            for part in 0..parts {
                let (first, count) = share(blocks, parts, part);
                prop_assert_eq!(first, next);
                next += count;
                (least, most) = (least.min(count), most.max(count));
            }
            prop_assert_eq!(next, blocks);
            prop_assert!(most - least <= 1);
        }
    }
}
