//! Hashes and draws that the orders are made of.

/// The finaliser of `splitmix64`: every bit of the result hangs on every bit of `x`.
#[inline]
#[must_use]
pub fn mix64(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The upper half of a product.
#[inline]
pub(super) fn high_product(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

/// The generator xoshiro256++.
#[derive(Debug)]
pub(crate) struct Xoshiro([u64; 4]);

impl Xoshiro {
    /// Draws that follow from `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        let mut state = mix64(seed ^ 0x0ff5_e700_0000_0000);
        Self(std::array::from_fn(|_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mix64(state)
        }))
    }

    /// 64 random bits.
    #[inline]
    pub(super) fn draw(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform below `range`, without bias: draws that would favour some numbers are repeated
    /// (Lemire).
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the lower half of 128 bits")]
    pub(crate) fn below(&mut self, range: u64) -> u64 {
        let mut product = u128::from(self.draw()) * u128::from(range);
        if (product as u64) < range {
            let threshold = range.wrapping_neg() % range;
            while (product as u64) < threshold {
                product = u128::from(self.draw()) * u128::from(range);
            }
        }
        (product >> 64) as u64
    }

    /// Uniform from 0 to less than 1, in steps of 2^-53.
    #[inline]
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
    pub(super) fn unit(&mut self) -> f64 {
        const STEP: f64 = 1.0 / (1_u64 << 53) as f64;
        (self.draw() >> 11) as f64 * STEP
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn draws_stay_in_range(count in 1..=u64::MAX / 8, seed: u64) {
            let mut random = Xoshiro::new(seed);
            for _ in 0..20 {
                prop_assert!(random.below(count) < count);
                prop_assert!((0.0..1.0).contains(&random.unit()));
            }
        }
    }
}
