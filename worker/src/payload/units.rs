//! Units of a block that carry their place and generation, and what became of them.
//!
//! A unit of [`UNIT`] bytes, all numbers little-endian:
//!
//! | bytes      | what                                                       |
//! |------------|------------------------------------------------------------|
//! | 0–7        | mark                                                       |
//! | 8–15       | dataset                                                    |
//! | 16–23      | file                                                       |
//! | 24–31      | offset of the unit in the file                             |
//! | 32–35      | generation                                                 |
//! | 36–39      | tag: a hash of dataset, file, offset and generation        |
//! | 40–4079    | random, of these four as well; zeros where it is to compress |
//! | 4080–4083  | generation again                                           |
//! | 4084–4087  | tag again                                                  |
//! | 4088–4095  | XXH3-64 of all before                                      |
//!
//! A unit whose sum is right is whole. If not, head and tail may each be whole parts of different
//! writes to this place: then it is torn.

use iofleet_shared::{
    stats::{DamageKind, Found},
    work::{Content, Data},
};
use twox_hash::XxHash3_64;

use super::{
    UNIT,
    random::{Base, Key, random_bytes},
};
use crate::pattern::mix64;

/// Smallest part of a unit that storage writes as a whole.
const SECTOR: usize = 512;
const MARK: u64 = u64::from_le_bytes(*b"iofleet1");
const HEAD: usize = 40;
const TAIL: usize = UNIT - 16;
const SUM: usize = UNIT - 8;

/// The generations of which a block may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// The last write that was begun.
    pub newest: u32,
    /// The last write that is known to have taken effect. 0: perhaps none has, so that zeros are
    /// right as well.
    pub oldest: u32,
    /// Without this, every generation is right.
    pub known: bool,
}

impl Expected {
    /// What a thread finds in blocks that it has not written in this point.
    #[must_use]
    pub fn before(data: &Data) -> Self {
        let generation = data.generation.saturating_sub(1);
        Self { newest: generation, oldest: generation, known: data.generation_known }
    }

    /// What a read may find that was issued when `self` was expected and completed when `later` was:
    /// writes of the same blocks may have begun and ended meanwhile.
    #[must_use]
    pub fn until(self, later: Self) -> Self {
        Self {
            newest: self.newest.max(later.newest),
            oldest: self.oldest.min(later.oldest),
            known: self.known && later.known,
        }
    }
}

/// What is wrong with a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    /// What is wrong with its first bad unit.
    pub kind: DamageKind,
    /// Byte offset of that unit in the file.
    pub offset: u64,
    /// Bad units in the block, of whatever kind.
    pub units: u32,
    /// What that unit says of itself.
    pub found: Found,
}

impl Damage {
    /// What was found in place of what was to be there, in words.
    #[must_use]
    pub fn found_words(&self) -> String {
        let Found { file, offset, generation, .. } = self.found;
        match self.kind {
            DamageKind::Torn => format!("part of it is of generation {generation}"),
            DamageKind::Stale => format!("generation {generation} of it"),
            DamageKind::Misdirected => {
                format!("what belongs to offset {offset} of file {file:016x}")
            }
            DamageKind::Corrupted => "bytes that nobody wrote".to_owned(),
            DamageKind::Missing => "zeros".to_owned(),
        }
    }
}

/// Stamps the blocks of one I/O thread, and checks them. Blocks are whole [`UNIT`]s at whole units
/// of their files; what is beyond the last whole unit of a block is neither stamped nor checked.
#[derive(Debug)]
pub struct Units {
    dataset: u64,
    base: Box<Base>,
    random: usize,
}

impl Units {
    /// Those of a dataset.
    #[must_use]
    pub fn new(data: &Data) -> Self {
        let random = match data.content {
            Content::Zero => 0,
            Content::Random { compress_milli, .. } => random_bytes(UNIT, compress_milli as usize),
        };
        Self { dataset: data.dataset, base: Base::new(data.dataset), random }
    }

    /// Makes `block` what is to be written at `offset` of `file` as `generation`, whatever was in
    /// it.
    #[inline]
    pub fn stamp(&mut self, block: &mut [u8], file: u64, offset: u64, generation: u32) {
        for (unit, offset) in block.as_chunks_mut::<UNIT>().0.iter_mut().zip(offsets(offset)) {
            let hash = place_hash(Found { dataset: self.dataset, file, offset, generation });
            self.base.lay(unit, self.random, Key::of(hash, 0));
            let end = end_of(generation, tag(hash));
            let head = [MARK, self.dataset, file, offset, end].map(u64::to_le_bytes);
            unit[..HEAD].copy_from_slice(head.as_flattened());
            unit[TAIL..SUM].copy_from_slice(&end.to_le_bytes());
            let sum = XxHash3_64::oneshot(&unit[..SUM]);
            unit[SUM..].copy_from_slice(&sum.to_le_bytes());
        }
    }

    /// What is wrong with `block`, which was read at `offset` of `file`.
    ///
    /// Of a block of which some units are as expected and others earlier, the earlier ones are
    /// torn and not stale.
    #[inline]
    #[must_use]
    pub fn check(
        &self,
        block: &[u8],
        file: u64,
        offset: u64,
        expected: Expected,
    ) -> Option<Damage> {
        let mut damage: Option<Damage> = None;
        let mut right = false;
        for (unit, offset) in block.as_chunks::<UNIT>().0.iter().zip(offsets(offset)) {
            let Some(kind) = self.judge(unit, file, offset, expected) else {
                right = true;
                continue;
            };
            match &mut damage {
                Some(damage) => damage.units += 1,
                None => damage = Some(Damage { kind, offset, units: 1, found: found(unit) }),
            }
        }
        damage.map(|damage| match damage.kind {
            DamageKind::Stale if right => Damage { kind: DamageKind::Torn, ..damage },
            DamageKind::Torn
            | DamageKind::Stale
            | DamageKind::Misdirected
            | DamageKind::Corrupted
            | DamageKind::Missing => damage,
        })
    }

    #[inline]
    fn judge(
        &self,
        unit: &[u8; UNIT],
        file: u64,
        offset: u64,
        expected: Expected,
    ) -> Option<DamageKind> {
        if XxHash3_64::oneshot(&unit[..SUM]) != word(unit, SUM) || word(unit, 0) != MARK {
            return self.broken(unit, file, offset, expected);
        }
        let Found { generation, .. } = found(unit);
        if found(unit) != (Found { dataset: self.dataset, file, offset, generation }) {
            Some(DamageKind::Misdirected)
        } else if !expected.known || (expected.oldest..=expected.newest).contains(&generation) {
            None
        } else if generation < expected.oldest {
            Some(DamageKind::Stale)
        } else {
            // Whole, and at its place, but nobody has begun to write it: neither late nor lost, so
            // that no other kind fits. Data of another run would look like this.
            Some(DamageKind::Corrupted)
        }
    }

    /// What is wrong with a unit that is not whole.
    #[cold]
    fn broken(
        &self,
        unit: &[u8; UNIT],
        file: u64,
        offset: u64,
        expected: Expected,
    ) -> Option<DamageKind> {
        let zeros = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
        if zeros(unit) {
            return if expected.oldest == 0 { None } else { Some(DamageKind::Missing) };
        }
        let head = word(unit, 0) == MARK && self.end_is_of(word(unit, HEAD - 8), file, offset);
        let tail = self.end_is_of(word(unit, TAIL), file, offset);
        let two_writes = head && tail && word(unit, HEAD - 8) != word(unit, TAIL);
        let first_write =
            (head && zeros(&unit[UNIT - SECTOR..])) || (tail && zeros(&unit[..SECTOR]));
        Some(if two_writes || first_write { DamageKind::Torn } else { DamageKind::Corrupted })
    }

    /// Whether generation and tag belong together, and to this place.
    fn end_is_of(&self, end: u64, file: u64, offset: u64) -> bool {
        let generation = generation_of(end);
        let hash = place_hash(Found { dataset: self.dataset, file, offset, generation });
        end == end_of(generation, tag(hash))
    }
}

/// Offsets of the units of a block.
#[inline]
fn offsets(first: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(first), |offset| Some(offset.wrapping_add(UNIT as u64)))
}

/// A hash of a place and a generation.
#[inline]
fn place_hash(Found { dataset, file, offset, generation }: Found) -> u64 {
    let file = mix64(mix64(dataset ^ MARK).wrapping_add(file));
    mix64(mix64(file.wrapping_add(offset)) ^ u64::from(generation))
}

/// Upper half of a hash.
#[inline]
fn tag(hash: u64) -> u64 {
    hash >> 32
}

/// The word that ends the head of a unit, and is in its tail again.
#[inline]
fn end_of(generation: u32, tag: u64) -> u64 {
    u64::from(generation) | (tag << 32)
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "its lower half")]
fn generation_of(end: u64) -> u32 {
    end as u32
}

#[inline]
fn word(unit: &[u8; UNIT], at: usize) -> u64 {
    u64::from_le_bytes(unit.as_chunks::<8>().0[at / 8])
}

#[inline]
fn found(unit: &[u8; UNIT]) -> Found {
    Found {
        dataset: word(unit, 8),
        file: word(unit, 16),
        offset: word(unit, 24),
        generation: generation_of(word(unit, HEAD - 8)),
    }
}

#[cfg(test)]
mod tests;
