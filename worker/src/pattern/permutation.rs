//! Seeded permutations of the numbers below any count, without a table.

use super::random::{high_product, mix64};

/// A permutation that follows from seed and pass.
///
/// A number is written as `low + width · high`, and rounds of a Feistel network shift each digit by
/// a hash of the other. That permutes `width · height` numbers, at most `width` more than there
/// are; a result beyond them is sent through again until it is one of them (cycle walking), which
/// keeps the permutation and is rare.
#[derive(Debug)]
pub(super) struct Permutation {
    count: u64,
    width: u64,
    height: u64,
    seed: u64,
    keys: [u64; ROUNDS],
}

/// Four rounds make a pseudo-random permutation of pseudo-random functions; a digit is hashed in
/// half of them, and six leave no visible order in small ranges either.
const ROUNDS: usize = 6;

impl Permutation {
    /// The permutation of pass 0.
    pub(super) fn new(count: u64, seed: u64) -> Self {
        let root = count.isqrt();
        let width = if root * root < count { root + 1 } else { root }.max(1);
        Self { count, width, height: count.div_ceil(width), seed, keys: keys_of(seed, 0) }
    }

    /// Changes over to the permutation of `pass`.
    pub(super) fn set_pass(&mut self, pass: u64) {
        self.keys = keys_of(self.seed, pass);
    }

    /// Numbers whose higher digit is the same.
    #[inline]
    pub(super) fn width(&self) -> u64 {
        self.width
    }

    /// Where `number`, which is below the count, goes.
    #[inline]
    pub(super) fn of(&self, number: u64) -> u64 {
        let high = number / self.width;
        self.of_digits(number - high * self.width, high)
    }

    /// Where the number of these digits goes.
    #[inline]
    pub(super) fn of_digits(&self, mut low: u64, mut high: u64) -> u64 {
        loop {
            for pair in self.keys.chunks_exact(2) {
                low = shifted(low, hash(high, pair[0]), self.width);
                high = shifted(high, hash(low, pair[1]), self.height);
            }
            let number = low + self.width * high;
            if number < self.count {
                return number;
            }
        }
    }
}

fn keys_of(seed: u64, pass: u64) -> [u64; ROUNDS] {
    let mut state = mix64(seed ^ 0x0ace_0f0f_0000_0000).wrapping_add(mix64(pass));
    std::array::from_fn(|_| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix64(state)
    })
}

/// `digit` shifted by a `hash`, modulo `range`.
#[inline]
fn shifted(digit: u64, hash: u64, range: u64) -> u64 {
    let sum = digit + high_product(hash, range);
    if sum >= range { sum - range } else { sum }
}

#[inline]
fn hash(digit: u64, key: u64) -> u64 {
    let x = (digit ^ key).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93)
}
