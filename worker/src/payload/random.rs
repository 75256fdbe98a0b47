//! Random bytes as fast as memory takes them: one unit of them, made anew for each use by a key.
//!
//! Every 32 bytes of the unit are XORed with the same key. Two uses then differ by a difference of
//! keys: no 4 bytes of one are anywhere in the other but by chance, so that compression by matches
//! (of whatever window) and deduplication (of whatever size) find as little in them as in bytes
//! that were drawn one by one. The unit stays in the first cache; only the block's memory moves.

use super::UNIT;
use crate::pattern::mix64;

/// Words of a key.
const LANE: usize = 4;
const LANE_BYTES: usize = 8 * LANE;
const LANES: usize = UNIT / LANE_BYTES;

/// Distance of the states of `splitmix64`.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// What makes a use of a [`Base`] different from all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key([u64; LANE]);

impl Key {
    /// The `number`-th key of a stream; no two numbers of a stream below 2^62 share a word.
    #[inline]
    pub(super) fn of(stream: u64, number: u64) -> Self {
        let first = number.wrapping_mul(LANE as u64);
        let word = |i: u64| mix64(stream.wrapping_add(first.wrapping_add(i).wrapping_mul(STEP)));
        Self([word(0), word(1), word(2), word(3)])
    }

    #[cfg(test)]
    pub(super) fn words(self) -> [u64; LANE] {
        self.0
    }
}

/// A unit of random bytes.
// Aligned like blocks, so that no load shares the low bits of its address with a store just before.
#[repr(align(4096))]
#[derive(Debug)]
pub(super) struct Base {
    lanes: [[u64; LANE]; LANES],
    #[cfg(target_arch = "x86_64")]
    avx2: bool,
}

impl Base {
    /// That of a seed.
    pub(super) fn new(seed: u64) -> Box<Self> {
        // Seeds of neighbours differ by little; mixed, their streams have nothing in common.
        let stream = mix64(seed ^ 0x5eed_da7a_0000_0000);
        let mut lanes = [[0; LANE]; LANES];
        for (number, lane) in (0..).zip(&mut lanes) {
            *lane = Key::of(stream, number).0;
        }
        Box::new(Self {
            lanes,
            #[cfg(target_arch = "x86_64")]
            avx2: is_x86_feature_detected!("avx2"),
        })
    }

    /// Makes the first `random` bytes of `unit` those of `key`, and the rest zeros. What is beyond
    /// [`UNIT`] is zeros as well.
    #[inline]
    pub(super) fn lay(&self, unit: &mut [u8], random: usize, key: Key) {
        let random = random.min(unit.len()).min(UNIT);
        let (bytes, zeros) = unit.split_at_mut(random);
        let (lanes, tail) = bytes.as_chunks_mut::<LANE_BYTES>();
        self.lay_lanes(lanes, key);
        if !tail.is_empty() {
            let last = keyed(&self.lanes[random / LANE_BYTES], key);
            tail.copy_from_slice(&last[..tail.len()]);
        }
        // A masked store of nothing at the end of a mapping, as `memset` may do, takes 150 ns.
        if !zeros.is_empty() {
            zeros.fill(0);
        }
    }

    #[inline]
    fn lay_lanes(&self, lanes: &mut [[u8; LANE_BYTES]], key: Key) {
        #[cfg(target_arch = "x86_64")]
        if self.avx2 {
            // SAFETY: `avx2` says that this processor has it.
            return unsafe { self.lay_lanes_avx2(lanes, key) };
        }
        self.lay_lanes_anywhere(lanes, key);
    }

    /// The same with registers of a whole lane: three times as fast.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn lay_lanes_avx2(&self, lanes: &mut [[u8; LANE_BYTES]], key: Key) {
        self.lay_lanes_anywhere(lanes, key);
    }

    #[inline(always)]
    fn lay_lanes_anywhere(&self, lanes: &mut [[u8; LANE_BYTES]], key: Key) {
        for (lane, base) in lanes.iter_mut().zip(&self.lanes) {
            *lane = keyed(base, key);
        }
    }
}

#[inline]
fn keyed(base: &[u64; LANE], key: Key) -> [u8; LANE_BYTES] {
    let mut bytes = [0; LANE_BYTES];
    for (out, (base, key)) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(base.iter().zip(key.0)) {
        *out = (base ^ key).to_le_bytes();
    }
    bytes
}

/// How many of `length` bytes are random so that all of them compress to `length` · 1000 /
/// `compress_milli`.
#[inline]
pub(super) fn random_bytes(length: usize, compress_milli: usize) -> usize {
    /// What a compressor notes of a run of zeros between random bytes: `zstd -1` about 5 bytes.
    const NOTE: usize = 5;
    /// Without so many, units would not be different ones.
    const LEAST: usize = 16;
    if compress_milli <= 1_000 {
        return length;
    }
    (length * 1_000 / compress_milli).saturating_sub(NOTE).max(LEAST).min(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_the_outputs_of_splitmix64() {
        // Its first eight for the seed 0.
        let first = [
            0xe220_a839_7b1d_cdaf,
            0x6e78_9e6a_a1b9_65f4,
            0x06c4_5d18_8009_454f,
            0xf88b_b8a8_724c_81ec,
        ];
        let second = [
            0x1b39_896a_51a8_749b,
            0x53cb_9f0c_747e_a2ea,
            0x2c82_9abe_1f45_32e1,
            0xc584_133a_c916_ab3c,
        ];
        assert_eq!(Key::of(STEP, 0), Key(first));
        assert_eq!(Key::of(STEP, 1), Key(second));
    }

    #[test]
    fn any_length_is_the_base_by_the_key_and_zeros() {
        let base = Base::new(5);
        let key = Key::of(6, 7);
        let expected: Vec<u8> = (base.lanes.iter().flatten())
            .zip(key.0.iter().cycle())
            .flat_map(|(base, key)| (base ^ key).to_le_bytes())
            .collect();
        for length in [0, 1, 31, 32, 33, 511, 512, 4_095, 4_096, 5_000] {
            for random in [0, 1, 16, 40, 2_043, 4_096, 9_999] {
                let mut unit = vec![0xaa; length];
                base.lay(&mut unit, random, key);
                let random = random.min(length).min(UNIT);
                assert_eq!(unit[..random], expected[..random], "{random} of {length}");
                assert!(unit[random..].iter().all(|byte| *byte == 0), "{random} of {length}");
            }
        }
        let mut plain = [[0; LANE_BYTES]; LANES];
        base.lay_lanes_anywhere(&mut plain, key);
        assert_eq!(plain.as_flattened(), expected);
    }

    #[test]
    fn what_is_random_follows_from_the_ratio() {
        // 4096 / 2 less 5; 512 / 10 = 51.2, less 5; never less than 16, nor more than there is.
        for (length, milli, expected) in [
            (4_096, 1_000, 4_096),
            (4_096, 2_000, 2_043),
            (512, 10_000, 46),
            (4_096, 4_000_000, 16),
            (10, 2_000, 10),
        ] {
            assert_eq!(random_bytes(length, milli), expected);
        }
    }
}
