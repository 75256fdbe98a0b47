//! What is written where nothing is verified: fresh bytes in each block, as compressible and as
//! often the same as the scenario says.

use iofleet_shared::work::{Content, Data};

use super::{
    UNIT,
    random::{Base, Key, random_bytes},
};
use crate::pattern::mix64;

/// How many different units back a copied one may lie. So far that copies are hardly ever within
/// the window of a compressor, whose ratio they would raise; and so near that the first of its kind
/// is in the file still when a thread begins its files again.
const REACH: u64 = 1_024;

/// Fills the blocks of one I/O thread.
#[derive(Debug)]
pub struct Filler {
    content: Content,
    refresh: bool,
    base: Box<Base>,
    units: Stream,
}

impl Filler {
    /// The data of a thread: the same `data` and `seed` give the same blocks.
    #[must_use]
    pub fn new(data: &Data, seed: u64) -> Self {
        let seed = mix64(seed).wrapping_add(u64::from(data.generation));
        let dedupe_milli = match data.content {
            Content::Zero => 1_000,
            Content::Random { dedupe_milli, .. } => dedupe_milli,
        };
        Self {
            content: data.content,
            refresh: data.refresh,
            base: Base::new(seed),
            units: Stream::new(seed, dedupe_milli),
        }
    }

    /// Fills a new buffer, while arming. What it puts there is not counted in any ratio unless it
    /// is what all writes of the buffer will write.
    pub fn prime(&mut self, block: &mut [u8]) {
        let before = self.units;
        self.lay(block);
        if self.refresh {
            self.units = before;
        }
    }

    /// Makes `block` what the next write writes, whatever was in it; with `refresh = false` it
    /// stays as it is.
    ///
    /// The ratios hold for blocks of whole [`UNIT`]s. A rest is always different from all others.
    #[inline]
    pub fn fill(&mut self, block: &mut [u8]) {
        if self.refresh {
            self.lay(block);
        }
    }

    #[inline]
    fn lay(&mut self, block: &mut [u8]) {
        let Content::Random { compress_milli, .. } = self.content else {
            return block.fill(0);
        };
        let compress_milli = compress_milli as usize;
        let (units, rest) = block.as_chunks_mut::<UNIT>();
        let random = random_bytes(UNIT, compress_milli);
        for unit in units {
            self.base.lay(unit, random, self.units.next());
        }
        if !rest.is_empty() {
            self.base.lay(rest, random_bytes(rest.len(), compress_milli), self.units.different());
        }
    }
}

/// The units of a thread, one after the other: different ones, and copies of them in between.
#[derive(Debug, Clone, Copy)]
struct Stream {
    seed: u64,
    /// Different ones so far.
    different: u64,
    /// All so far.
    copies: u64,
    /// Units over different ones in 1/1000.
    ratio_milli: u32,
    /// What is due of the next different unit, of `ratio_milli`.
    due: u32,
}

impl Stream {
    fn new(seed: u64, ratio_milli: u32) -> Self {
        let ratio_milli = ratio_milli.max(1_000);
        Self {
            seed: mix64(seed),
            different: 0,
            copies: 0,
            ratio_milli,
            // Nothing can be copied before the first.
            due: ratio_milli - 1_000,
        }
    }

    /// The key of the next unit. A quota and not a draw: after n units there are n / ratio different
    /// ones, rounded up.
    #[inline]
    fn next(&mut self) -> Key {
        // As differences, since the sum might not fit.
        if let Some(due) = self.due.checked_sub(self.ratio_milli - 1_000) {
            self.due = due;
            self.different()
        } else {
            self.due += 1_000;
            self.copy()
        }
    }

    /// The key of a unit that has not been yet.
    #[inline]
    fn different(&mut self) -> Key {
        let number = self.different;
        self.different = number.wrapping_add(1);
        Key::of(self.seed, number)
    }

    /// The key of an earlier one.
    #[inline]
    fn copy(&mut self) -> Key {
        self.copies = self.copies.wrapping_add(1);
        let farthest = self.different.min(REACH);
        let nearest = farthest / 4;
        let draw = mix64(self.seed ^ !self.copies) >> 32;
        let back = nearest + ((draw * (farthest - nearest)) >> 32);
        Key::of(self.seed, self.different.saturating_sub(1 + back))
    }
}

#[cfg(test)]
mod tests;
