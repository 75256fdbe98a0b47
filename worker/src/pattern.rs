//! Which operation comes next: the orders in which a thread takes the blocks of its files, and the
//! mixes of kinds and sizes.
//!
//! A closed set, picked once per point by a match on `shared::work::Pattern`; the loop is generic
//! over [`Source`], and a [`Source`] of one kind and size over [`Cursor`]. Neither ever ends: after
//! the last block of a pass the next pass begins, and how many operations there are is the loop's
//! business. The same seed gives the same operations.

use std::sync::Arc;

use iofleet_shared::work::Pattern;

pub use blocks::{Blocks, Place};
pub use coverage::Coverage;
pub use orders::{Backward, Random, RandomOnce, Sequential, Strided};
pub use picker::Picker;
pub(crate) use random::Xoshiro;
pub use random::mix64;
pub use skewed::{Normal, Pareto, Zipf};
pub(crate) use source::lane_of;
pub use source::{AnySource, Both, Drawn, Single, Source};

mod blocks;
mod coverage;
mod orders;
mod permutation;
mod picker;
mod random;
mod skewed;
mod source;

/// An endless order of blocks. [`Blocks`] without a block must not be asked.
pub trait Cursor {
    /// The next block's number.
    fn draw(&mut self) -> u64;

    /// The next block.
    fn next(&mut self) -> Place;
}

/// A cursor of any pattern, as a value.
#[derive(Debug)]
pub enum AnyCursor {
    /// Ascending.
    Sequential(Sequential),
    /// Descending.
    Backward(Backward),
    /// In steps.
    Strided(Strided),
    /// Uniform, with repetition.
    Random(Random),
    /// A permutation in each pass.
    RandomOnce(RandomOnce),
    /// In proportion to 1/rank^theta.
    Zipf(Zipf),
    /// Self-similar.
    Pareto(Pareto),
    /// A hot spot.
    Normal(Normal),
}

impl AnyCursor {
    /// The cursor of a pattern; what it draws follows from `seed`.
    #[must_use]
    pub fn new(pattern: &Pattern, blocks: Arc<Blocks>, seed: u64) -> Self {
        match *pattern {
            Pattern::Sequential => Self::Sequential(Sequential::new(blocks)),
            Pattern::Backward => Self::Backward(Backward::new(blocks)),
            Pattern::Strided { step } => Self::Strided(Strided::new(blocks, step)),
            Pattern::Random => Self::Random(Random::new(blocks, seed)),
            Pattern::RandomOnce => Self::RandomOnce(RandomOnce::new(blocks, seed)),
            Pattern::Zipf { theta_milli } => Self::Zipf(Zipf::new(blocks, theta_milli, seed)),
            Pattern::Pareto { h_milli } => Self::Pareto(Pareto::new(blocks, h_milli, seed)),
            Pattern::Normal { deviation_milli } => {
                Self::Normal(Normal::new(blocks, deviation_milli, seed))
            }
        }
    }
}

impl Cursor for AnyCursor {
    #[inline]
    fn draw(&mut self) -> u64 {
        match self {
            Self::Sequential(cursor) => cursor.draw(),
            Self::Backward(cursor) => cursor.draw(),
            Self::Strided(cursor) => cursor.draw(),
            Self::Random(cursor) => cursor.draw(),
            Self::RandomOnce(cursor) => cursor.draw(),
            Self::Zipf(cursor) => cursor.draw(),
            Self::Pareto(cursor) => cursor.draw(),
            Self::Normal(cursor) => cursor.draw(),
        }
    }

    #[inline]
    fn next(&mut self) -> Place {
        match self {
            Self::Sequential(cursor) => cursor.next(),
            Self::Backward(cursor) => cursor.next(),
            Self::Strided(cursor) => cursor.next(),
            Self::Random(cursor) => cursor.next(),
            Self::RandomOnce(cursor) => cursor.next(),
            Self::Zipf(cursor) => cursor.next(),
            Self::Pareto(cursor) => cursor.next(),
            Self::Normal(cursor) => cursor.next(),
        }
    }
}

#[cfg(test)]
mod tests;
