//! Orders in which some blocks come far more often than others.
//!
//! A draw costs the same whatever the number of blocks, and needs no table. Where popularity has
//! nothing to do with place, ranks are scattered over the blocks by a permutation that follows from
//! the seed.

use std::sync::Arc;

use super::{Blocks, Cursor, Place, permutation::Permutation, random::Xoshiro};

/// The k-th most popular block in proportion to 1/k^theta.
///
/// Rejection-inversion (Hörmann and Derflinger 1996): exact for every theta and count.
#[derive(Debug)]
pub struct Zipf {
    blocks: Arc<Blocks>,
    scatter: Permutation,
    random: Xoshiro,
    theta: f64,
    /// Number of blocks.
    n: f64,
    /// Bounds of the area that is drawn from, and how near to its rank a draw is taken unseen.
    lower: f64,
    upper: f64,
    near: f64,
}

impl Zipf {
    /// Draws that follow from `seed`; theta in 1/1000 is more than 0.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "files have fewer than 2^53 blocks")]
    pub fn new(blocks: Arc<Blocks>, theta_milli: u32, seed: u64) -> Self {
        let theta = f64::from(theta_milli) / 1_000.0;
        let n = blocks.count() as f64;
        Self {
            scatter: Permutation::new(blocks.count(), seed),
            random: Xoshiro::new(seed),
            theta,
            n,
            lower: integral(1.5, theta) - 1.0,
            upper: integral(n + 0.5, theta),
            near: 2.0 - inverse(integral(2.5, theta) - density(2.0, theta), theta),
            blocks,
        }
    }

    /// A rank from 0, the most popular.
    #[inline]
    fn rank(&mut self) -> u64 {
        loop {
            let area = self.upper + self.random.unit() * (self.lower - self.upper);
            let x = inverse(area, self.theta);
            let rank = (x + 0.5).floor().clamp(1.0, self.n);
            if rank - x <= self.near
                || area >= integral(rank + 0.5, self.theta) - density(rank, self.theta)
            {
                return index(rank - 1.0, self.blocks.count());
            }
        }
    }
}

/// 1/x^theta.
#[inline]
fn density(x: f64, theta: f64) -> f64 {
    (-theta * x.ln()).exp()
}

/// Integral of [`density`] from 1 to `x`.
#[inline]
fn integral(x: f64, theta: f64) -> f64 {
    let log = x.ln();
    let t = (1.0 - theta) * log;
    // (x^(1 - theta) - 1) / (1 - theta), and its limit where theta is 1.
    if t == 0.0 { log } else { t.exp_m1() / t * log }
}

/// The `x` up to which the integral is `area`.
#[inline]
fn inverse(area: f64, theta: f64) -> f64 {
    // Rounding may push a far end below the pole.
    let t = (area * (1.0 - theta)).max(-1.0);
    if t == 0.0 { area.exp() } else { (t.ln_1p() / t * area).exp() }
}

impl Cursor for Zipf {
    #[inline]
    fn draw(&mut self) -> u64 {
        let rank = self.rank();
        self.scatter.of(rank)
    }

    #[inline]
    fn next(&mut self) -> Place {
        let number = self.draw();
        self.blocks.place(number)
    }
}

/// Self-similar: a share h of draws on a share 1 - h of the blocks, and the same among those.
#[derive(Debug)]
pub struct Pareto {
    blocks: Arc<Blocks>,
    scatter: Permutation,
    random: Xoshiro,
    n: f64,
    exponent: f64,
}

impl Pareto {
    /// Draws that follow from `seed`; h in 1/1000 is at least 500 (uniform) and less than 1000.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "files have fewer than 2^53 blocks")]
    pub fn new(blocks: Arc<Blocks>, h_milli: u32, seed: u64) -> Self {
        let h = f64::from(h_milli) / 1_000.0;
        Self {
            scatter: Permutation::new(blocks.count(), seed),
            random: Xoshiro::new(seed),
            n: blocks.count() as f64,
            exponent: (1.0 - h).ln() / h.ln(),
            blocks,
        }
    }

    #[inline]
    fn rank(&mut self) -> u64 {
        index(self.n * self.random.unit().powf(self.exponent), self.blocks.count())
    }
}

impl Cursor for Pareto {
    #[inline]
    fn draw(&mut self) -> u64 {
        let rank = self.rank();
        self.scatter.of(rank)
    }

    #[inline]
    fn next(&mut self) -> Place {
        let number = self.draw();
        self.blocks.place(number)
    }
}

/// A hot spot in the middle: block numbers normally distributed, drawn again outside the range.
#[derive(Debug)]
pub struct Normal {
    blocks: Arc<Blocks>,
    random: Xoshiro,
    n: f64,
    deviation: f64,
    /// The second of a pair of normal draws.
    spare: Option<f64>,
}

impl Normal {
    /// Draws that follow from `seed`; the standard deviation in 1/1000 of the blocks is at most
    /// 1000, lest most draws fall outside.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "files have fewer than 2^53 blocks")]
    pub fn new(blocks: Arc<Blocks>, deviation_milli: u32, seed: u64) -> Self {
        Self {
            random: Xoshiro::new(seed),
            n: blocks.count() as f64,
            deviation: f64::from(deviation_milli) / 1_000.0,
            spare: None,
            blocks,
        }
    }

    /// A standard normal draw, by Marsaglia's polar method.
    #[inline]
    fn standard(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let (x, y) = (2.0 * self.random.unit() - 1.0, 2.0 * self.random.unit() - 1.0);
            let square = x * x + y * y;
            if square < 1.0 && square > 0.0 {
                let scale = (-2.0 * square.ln() / square).sqrt();
                self.spare = Some(y * scale);
                return x * scale;
            }
        }
    }
}

impl Cursor for Normal {
    #[inline]
    fn draw(&mut self) -> u64 {
        loop {
            let share = 0.5 + self.deviation * self.standard();
            if (0.0..1.0).contains(&share) {
                return index(share * self.n, self.blocks.count());
            }
        }
    }

    #[inline]
    fn next(&mut self) -> Place {
        let number = self.draw();
        self.blocks.place(number)
    }
}

/// `x` rounded down, below `count` whatever rounding did.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative, and rounding down is wanted"
)]
fn index(x: f64, count: u64) -> u64 {
    (x as u64).min(count - 1)
}

#[cfg(test)]
mod tests;
