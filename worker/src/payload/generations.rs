//! Which generation each block of a thread has that both writes and reads it.

use std::{hint::black_box, io, ops::Range};

use iofleet_shared::work::Data;

use super::Expected;

/// Words in a page.
const PAGE_WORDS: usize = 1_024;

/// For each block (of the smallest size) how often this thread has begun to write it in this point,
/// and which of these writes may be in the file: 4 bytes per block.
///
/// A block's n-th write has the generation `Data::generation + n - 1`; a write of several blocks has
/// that of the block that was written most often. What does not fit makes the expectation wider and
/// never wrong: from the 2^23rd write of a block on, its generation stays; and where more than 14
/// writes of a block are in flight at a time, its earlier content counts as right from then on.
#[derive(Debug)]
pub struct Generations {
    words: Vec<u32>,
    before: Expected,
}

impl Generations {
    /// Of `blocks` blocks, none of which has been written in the point.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub fn new(blocks: u64, data: &Data) -> io::Result<Self> {
        let blocks = usize::try_from(blocks).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let mut words = Vec::new();
        words.try_reserve_exact(blocks).map_err(|_| io::ErrorKind::OutOfMemory)?;
        words.resize(blocks, 0);
        // The kernel gives a page when it is first written.
        for page in words.chunks_mut(PAGE_WORDS) {
            page[0] = black_box(0);
        }
        Ok(Self { words, before: Expected::before(data) })
    }

    /// Before blocks `number..number + count` are written by one write: its generation.
    #[inline]
    pub fn begin(&mut self, number: u64, count: u64) -> u32 {
        let blocks = self.blocks_mut(number, count);
        let newest = blocks.iter().map(|word| Block::from_word(*word).newest).max().unwrap_or(0);
        let newest = (newest + 1).min(Block::NEWEST_MAX);
        for word in blocks {
            *word = Block::from_word(*word).begin(newest).word();
        }
        self.before.newest.saturating_add(newest)
    }

    /// After that write has succeeded.
    #[inline]
    pub fn done(&mut self, number: u64, count: u64) {
        for word in self.blocks_mut(number, count) {
            *word = Block::from_word(*word).end(false).word();
        }
    }

    /// After that write has failed: both what it wrote and what was there before are right, until
    /// a later write succeeds.
    #[inline]
    pub fn failed(&mut self, number: u64, count: u64) {
        for word in self.blocks_mut(number, count) {
            *word = Block::from_word(*word).end(true).word();
        }
    }

    /// What a read of blocks `number..number + count` may find now. If the blocks have been written
    /// differently often, that is the widest of what each of them may hold: checked one by one they
    /// are told exactly. See [`Expected::until`] for reads with others in flight.
    #[inline]
    #[must_use]
    pub fn expected(&self, number: u64, count: u64) -> Expected {
        self.words
            .get(range(number, count, self.words.len()))
            .unwrap_or_default()
            .iter()
            .map(|word| Block::from_word(*word).expected(self.before))
            .reduce(Expected::until)
            .unwrap_or(self.before)
    }

    /// The words of blocks; what is beyond the last is left out.
    #[inline]
    fn blocks_mut(&mut self, number: u64, count: u64) -> &mut [u32] {
        let range = range(number, count, self.words.len());
        self.words.get_mut(range).unwrap_or_default()
    }
}

#[inline]
fn range(number: u64, count: u64, length: usize) -> Range<usize> {
    let index = |number: u64| usize::try_from(number).map_or(length, |at| at.min(length));
    index(number)..index(number.saturating_add(count))
}

/// The state of one block, unpacked. Generations are counted from the one before the point.
#[derive(Debug, Clone, Copy)]
struct Block {
    /// Of the last write that was begun.
    newest: u32,
    /// By how much the oldest that may be in the file is older; at its limit, all may be.
    span: u32,
    /// Writes in flight; at its limit, it stays.
    flying: u32,
    /// Some write of those in flight, or since the last time that none was, failed or met another.
    unsure: bool,
}

impl Block {
    const NEWEST_MAX: u32 = (1 << 23) - 1;
    const SPAN_MAX: u32 = 15;
    const FLYING_MAX: u32 = 15;

    #[inline]
    fn from_word(word: u32) -> Self {
        Self {
            newest: word >> 9,
            span: (word >> 5) & Self::SPAN_MAX,
            flying: (word >> 1) & Self::FLYING_MAX,
            unsure: word & 1 != 0,
        }
    }

    #[inline]
    fn word(self) -> u32 {
        (self.newest << 9) | (self.span << 5) | (self.flying << 1) | u32::from(self.unsure)
    }

    #[inline]
    fn begin(self, newest: u32) -> Self {
        // From the last generation on, a write has that of the one before.
        let more = newest.saturating_sub(self.newest);
        Self {
            newest,
            span: (self.span + more).min(Self::SPAN_MAX),
            flying: (self.flying + 1).min(Self::FLYING_MAX),
            unsure: self.unsure || self.flying > 0,
        }
    }

    #[inline]
    fn end(self, failed: bool) -> Self {
        let unsure = self.unsure || failed;
        match self.flying {
            // Ended more often than begun.
            0 => self,
            1 if unsure => Self { flying: 0, unsure: false, ..self },
            1 => Self { flying: 0, span: 0, ..self },
            Self::FLYING_MAX => self,
            more => Self { flying: more - 1, unsure, ..self },
        }
    }

    #[inline]
    fn expected(self, before: Expected) -> Expected {
        let written = self.span < Self::SPAN_MAX && self.span < self.newest;
        let oldest = if written { self.newest - self.span } else { 0 };
        Expected {
            newest: before.newest.saturating_add(self.newest),
            oldest: before.oldest.saturating_add(oldest),
            known: before.known || written,
        }
    }
}

#[cfg(test)]
mod tests;
