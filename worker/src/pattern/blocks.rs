//! The blocks of a thread's files, numbered through, and where each is.

use std::ops::Range;

use iofleet_shared::work::{Extent, FilePart};

/// A block, or a run of them: its number among the thread's blocks, and where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// From 0, over all files and extents in their order.
    pub number: u64,
    /// Byte offset in the file.
    pub offset: u64,
    /// Place of the file among the thread's files.
    pub file: u32,
    /// Length: a whole block, but for the rest at the end of a tree's file.
    pub bytes: u32,
}

/// The blocks of a thread's files, numbered in the order of files and extents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocks {
    /// Parts with at least one block, and after them one that begins at `count` and has none.
    parts: Vec<Part>,
    count: u64,
    block_bytes: u32,
    /// Whether some block is shorter than the others.
    rests: bool,
}

/// Blocks at equal distances in one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    /// Number of its first block.
    first: u64,
    offset: u64,
    stride: u64,
    file: u32,
    /// Length of its last block.
    last_bytes: u32,
}

impl Blocks {
    /// The whole blocks of `extents` of one file; `block_bytes` is not 0 and at most
    /// `BLOCK_BYTES_MAX`.
    #[must_use]
    pub fn new(extents: &[Extent], block_bytes: u64) -> Self {
        let mut blocks = Self::empty(block_bytes, extents.len());
        blocks.push_extents(0, extents, block_bytes);
        blocks.closed()
    }

    /// The whole blocks of files: of each extent those that begin at a multiple of the stride
    /// after its start and lie in it.
    #[must_use]
    pub fn of(files: &[FilePart], block_bytes: u64) -> Self {
        let parts = files.iter().map(|file| file.extents.len()).sum();
        let mut blocks = Self::empty(block_bytes, parts);
        for (file, part) in (0..).zip(files) {
            // Blocks don't overlap.
            let stride = part.stride_bytes.max(block_bytes);
            blocks.push_extents(file, &part.extents, stride);
        }
        blocks.closed()
    }

    /// The blocks of whole files of these sizes; the last of each has what is left of the file.
    #[must_use]
    pub fn of_sizes(sizes: impl Iterator<Item = u64>, block_bytes: u64) -> Self {
        let mut blocks = Self::empty(block_bytes, sizes.size_hint().0);
        for (file, size) in (0..).zip(sizes) {
            let rest = u32::try_from(size % block_bytes).unwrap_or(u32::MAX);
            blocks.rests |= rest > 0;
            let last_bytes = if rest > 0 { rest } else { blocks.block_bytes };
            let part =
                Part { first: blocks.count, offset: 0, stride: block_bytes, file, last_bytes };
            blocks.push(part, size.div_ceil(block_bytes));
        }
        blocks.closed()
    }

    fn empty(block_bytes: u64, parts: usize) -> Self {
        let block_bytes = u32::try_from(block_bytes).unwrap_or(u32::MAX);
        Self { parts: Vec::with_capacity(parts + 1), count: 0, block_bytes, rests: false }
    }

    fn push_extents(&mut self, file: u32, extents: &[Extent], stride: u64) {
        let last_bytes = self.block_bytes;
        for extent in extents {
            let blocks = match extent.length.checked_sub(self.block_bytes()) {
                Some(after_first) => after_first / stride + 1,
                None => 0,
            };
            let part = Part { first: self.count, offset: extent.offset, stride, file, last_bytes };
            self.push(part, blocks);
        }
    }

    fn push(&mut self, part: Part, blocks: u64) {
        if blocks > 0 {
            self.parts.push(part);
            self.count += blocks;
        }
    }

    fn closed(mut self) -> Self {
        let end = Part { first: self.count, offset: 0, stride: 0, file: u32::MAX, last_bytes: 0 };
        self.parts.push(end);
        self
    }

    /// How many there are.
    #[inline]
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Bytes of a whole one.
    #[inline]
    #[must_use]
    pub fn block_bytes(&self) -> u64 {
        u64::from(self.block_bytes)
    }

    /// Whether some are shorter than [`Blocks::block_bytes`].
    #[must_use]
    pub fn has_rests(&self) -> bool {
        self.rests
    }

    /// The block of a number below [`Blocks::count`].
    #[inline(always)]
    #[must_use]
    pub fn place(&self, number: u64) -> Place {
        match self.parts.as_slice() {
            [only, end] => self.place_in(only, end.first, number),
            _ => self.place_at(self.part_of(number), number),
        }
    }

    /// The block of a number below [`Blocks::count`], found at once if it is in the part of the
    /// block asked for before, or in the next or previous one. `hint` begins as 0.
    #[inline]
    #[must_use]
    pub fn place_near(&self, number: u64, hint: &mut usize) -> Place {
        match self.parts.as_slice() {
            [only, end] => self.place_in(only, end.first, number),
            _ => {
                self.find(number, hint);
                self.place_at(*hint, number)
            }
        }
    }

    #[inline]
    fn place_at(&self, at: usize, number: u64) -> Place {
        self.place_in(&self.parts[at], self.parts[at + 1].first, number)
    }

    /// `end`: number after the part's last block.
    #[inline(always)]
    fn place_in(&self, part: &Part, end: u64, number: u64) -> Place {
        let offset = part.offset + (number - part.first) * part.stride;
        let bytes = if number + 1 == end { part.last_bytes } else { self.block_bytes };
        Place { number, offset, file: part.file, bytes }
    }

    fn part_of(&self, number: u64) -> usize {
        self.parts[1..].partition_point(|part| part.first <= number)
    }

    /// Sets `hint` to the part of a block.
    #[inline]
    fn find(&self, number: u64, hint: &mut usize) {
        let at = *hint;
        if !self.holds(at, number) {
            *hint = if self.holds(at + 1, number) {
                at + 1
            } else if self.holds(at.wrapping_sub(1), number) {
                at - 1
            } else {
                self.part_of(number)
            };
        }
    }

    #[inline]
    fn holds(&self, at: usize, number: u64) -> bool {
        match self.parts.get(at..).unwrap_or_default() {
            [this, next, ..] => (this.first..next.first).contains(&number),
            [] | [_] => false,
        }
    }

    /// The numbers around block `number` that follow each other in its file without a gap.
    #[inline]
    pub(super) fn run(&self, number: u64, hint: &mut usize) -> Range<u64> {
        self.find(number, hint);
        let part = &self.parts[*hint];
        if part.stride == self.block_bytes() {
            part.first..self.parts[*hint + 1].first
        } else {
            number..number + 1
        }
    }

    /// Whether the last block of the part that `hint` was set to is a whole one.
    #[inline]
    pub(super) fn ends_whole(&self, hint: usize) -> bool {
        self.parts[hint].last_bytes == self.block_bytes
    }

    /// Blocks `first` and `end` - 1 with all between them, as one place: they belong to one run.
    #[inline]
    pub(super) fn joined(&self, numbers: Range<u64>, hint: &mut usize) -> Place {
        let last = self.place_near(numbers.end - 1, hint);
        let before = (numbers.end - 1 - numbers.start) * self.block_bytes();
        Place {
            number: numbers.start,
            offset: last.offset - before,
            bytes: last.bytes.saturating_add(u32::try_from(before).unwrap_or(u32::MAX)),
            ..last
        }
    }

    /// Bytes in the blocks of these numbers, which belong to one run.
    pub(super) fn bytes_in(&self, numbers: Range<u64>, hint: &mut usize) -> u64 {
        let last = self.place_near(numbers.end - 1, hint);
        (numbers.end - 1 - numbers.start) * self.block_bytes() + u64::from(last.bytes)
    }

    /// The files that have blocks, ascending, each with the numbers of its blocks.
    pub(super) fn files(&self) -> impl Iterator<Item = (u32, Range<u64>)> {
        let mut parts = self.parts.as_slice();
        std::iter::from_fn(move || {
            let first = parts.first().filter(|first| first.first < self.count)?;
            let next = parts.partition_point(|part| part.file == first.file);
            parts = &parts[next..];
            let end = parts.first().map_or(self.count, |part| part.first);
            Some((first.file, first.first..end))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn offsets(blocks: &Blocks) -> Vec<(u32, u64, u32)> {
        (0..blocks.count())
            .map(|number| blocks.place(number))
            .map(|place| (place.file, place.offset, place.bytes))
            .collect()
    }

    fn file(extents: &[(u64, u64)], stride_bytes: u64) -> FilePart {
        let extents = extents.iter().map(|&(offset, length)| Extent { offset, length }).collect();
        FilePart { file: String::new(), extents, stride_bytes }
    }

    #[test]
    fn blocks_of_several_extents_are_numbered_through() {
        let extents = file(&[(100, 25), (200, 9), (300, 20)], 0).extents;
        let blocks = Blocks::new(&extents, 10);
        assert_eq!(offsets(&blocks), [(0, 100, 10), (0, 110, 10), (0, 300, 10), (0, 310, 10)]);
        assert!(!blocks.has_rests());
    }

    #[test]
    fn strides_leave_gaps_and_whole_blocks_fit() {
        // 0, 25 and 50 of 60 bytes; of 59 bytes only two.
        let blocks = Blocks::of(&[file(&[(0, 60), (100, 59)], 25), file(&[(7, 20)], 0)], 10);
        let expected = [(0, 0), (0, 25), (0, 50), (0, 100), (0, 125), (1, 7), (1, 17)];
        assert_eq!(offsets(&blocks), expected.map(|(file, offset)| (file, offset, 10)));
        let files: Vec<_> = blocks.files().collect();
        assert_eq!(files, [(0, 0..5), (1, 5..7)]);
    }

    #[test]
    fn whole_files_end_in_rests() {
        let blocks = Blocks::of_sizes([10, 0, 8, 3].into_iter(), 4);
        let expected = [(0, 0, 4), (0, 4, 4), (0, 8, 2), (2, 0, 4), (2, 4, 4), (3, 0, 3)];
        assert_eq!(offsets(&blocks), expected);
        assert!(blocks.has_rests());
        assert_eq!(blocks.joined(1..3, &mut 0), Place { number: 1, offset: 4, file: 0, bytes: 6 });
        assert_eq!(Blocks::of_sizes(std::iter::empty(), 4).count(), 0);
    }

    proptest! {
        #[test]
        fn a_hint_changes_nothing(
            sizes in prop::collection::vec(0..40_u64, 1..30),
            numbers in prop::collection::vec(any::<u64>(), 1..50),
        ) {
            let blocks = Blocks::of_sizes(sizes.into_iter(), 7);
            prop_assume!(blocks.count() > 0);
            let mut hint = 0;
            for number in numbers {
                let number = number % blocks.count();
                prop_assert_eq!(blocks.place_near(number, &mut hint), blocks.place(number));
            }
        }
    }
}
