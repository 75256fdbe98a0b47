//! Which blocks a thread has touched and, when it writes, what a manifest may say of them.
//!
//! Orders that take each block once in a pass need a counter and the few blocks that failed; the
//! others need a map with a bit for each block. All memory is taken while arming.

use std::sync::Arc;

use iofleet_shared::{
    limits::EXTENTS_PER_THREAD_MAX,
    stats::Written,
    work::{Extent, OpKind, Pattern},
};

use super::Blocks;

/// Failed blocks that are kept by number.
const FAILED_MAX: usize = 1_024;
/// Most blocks of which reads in random order keep a map (32 KiB). Above, the number of different
/// blocks is its expectation, which is then within a thousandth of the truth.
const READ_MAP_BLOCKS: u64 = 1 << 18;

/// What of its blocks a thread has transferred.
#[derive(Debug)]
pub struct Coverage {
    blocks: Arc<Blocks>,
    op: OpKind,
    attempts: u64,
    seen: Seen,
}

#[derive(Debug)]
enum Seen {
    /// The first `attempts` blocks of the order but those that failed. In ascending order those
    /// are the blocks of the lowest numbers.
    Counted { ascending: bool, failed: Vec<u64>, failed_more: u64 },
    /// A bit for each block.
    Mapped(Vec<u64>),
    /// Only how many operations succeeded.
    Estimated { succeeded: u64 },
}

impl Coverage {
    /// Nothing yet, with all the memory that it will need.
    #[must_use]
    pub fn new(blocks: Arc<Blocks>, op: OpKind, pattern: Pattern) -> Self {
        let counted = |ascending| Seen::Counted {
            ascending,
            failed: Vec::with_capacity(FAILED_MAX),
            failed_more: 0,
        };
        let seen = match (pattern, op) {
            (Pattern::Sequential, _) => counted(true),
            (Pattern::RandomOnce, OpKind::Read) => counted(false),
            (Pattern::Random, OpKind::Read) if blocks.count() > READ_MAP_BLOCKS => {
                Seen::Estimated { succeeded: 0 }
            }
            _ => Seen::Mapped(map_of(&blocks)),
        };
        Self { blocks, op, attempts: 0, seen }
    }

    /// An operation on block `number` succeeded.
    #[inline]
    pub fn succeeded(&mut self, number: u64) {
        self.attempts += 1;
        match &mut self.seen {
            Seen::Counted { failed, .. } => {
                if !failed.is_empty() {
                    failed.retain(|block| *block != number);
                }
            }
            Seen::Mapped(map) => set(map, number),
            Seen::Estimated { succeeded } => *succeeded += 1,
        }
    }

    /// An operation on block `number` failed.
    #[cold]
    pub fn failed(&mut self, number: u64) {
        self.attempts += 1;
        // A block that failed in a later pass had its turn in the first.
        if let Seen::Counted { failed, failed_more, .. } = &mut self.seen
            && self.attempts <= self.blocks.count()
        {
            if failed.len() < FAILED_MAX {
                failed.push(number);
            } else {
                *failed_more += 1;
            }
        }
    }

    /// Bytes of different blocks that were transferred.
    #[must_use]
    pub fn bytes_touched(&self) -> u64 {
        let blocks = match &self.seen {
            Seen::Counted { failed, failed_more, .. } => {
                self.attempts.min(self.blocks.count()) - failed.len() as u64 - failed_more
            }
            Seen::Mapped(map) => map.iter().map(|word| u64::from(word.count_ones())).sum(),
            Seen::Estimated { succeeded } => expected(self.blocks.count(), *succeeded),
        };
        blocks * self.blocks.block_bytes()
    }

    /// Whole and broken passes over the blocks, in 1/1000.
    #[must_use]
    pub fn passes_milli(&self) -> u64 {
        let milli = u128::from(self.attempts) * 1_000 / u128::from(self.blocks.count().max(1));
        u64::try_from(milli).unwrap_or(u64::MAX)
    }

    /// What was written.
    #[must_use]
    pub fn written(&self) -> Written {
        let touched = self.bytes_touched() / self.blocks.block_bytes();
        match (self.op, &self.seen) {
            (op, _) if op != OpKind::Write => Written::Nothing,
            (_, _) if touched == 0 => Written::Nothing,
            (_, _) if touched == self.blocks.count() => Written::All,
            (_, Seen::Counted { ascending: true, failed, failed_more: 0 }) => {
                self.ranges(runs_without(self.attempts.min(self.blocks.count()), failed))
            }
            (_, Seen::Mapped(map)) => {
                self.ranges(runs_of((0..self.blocks.count()).filter(|number| is_set(map, *number))))
            }
            (_, Seen::Counted { .. } | Seen::Estimated { .. }) => Written::Scattered,
        }
    }

    /// The byte ranges of runs of block numbers: cut where an extent ends, merged where one begins
    /// at the end of the one before.
    fn ranges(&self, runs: impl Iterator<Item = (u64, u64)>) -> Written {
        let bytes = self.blocks.block_bytes();
        let mut ranges: Vec<Extent> = Vec::new();
        for (mut number, end) in runs {
            while number < end {
                let part_end = self.blocks.part_end(number).min(end);
                let place = self.blocks.place(number);
                let length = (part_end - number) * bytes;
                match ranges.last_mut() {
                    Some(last) if last.offset + last.length == place.offset => {
                        last.length += length;
                    }
                    _ => ranges.push(Extent { offset: place.offset, length }),
                }
                if ranges.len() > EXTENTS_PER_THREAD_MAX {
                    return Written::Scattered;
                }
                number = part_end;
            }
        }
        Written::Ranges(ranges)
    }
}

impl Blocks {
    /// Number after the last block of the extent that block `number` belongs to.
    fn part_end(&self, number: u64) -> u64 {
        let next = self.parts.partition_point(|part| part.first <= number);
        self.parts.get(next).map_or(self.count, |part| part.first)
    }
}

/// A bit for each block, every page of it written.
fn map_of(blocks: &Blocks) -> Vec<u64> {
    let words = usize::try_from(blocks.count().div_ceil(64)).unwrap_or(usize::MAX);
    let mut map = Vec::with_capacity(words);
    map.resize(words, u64::MAX);
    std::hint::black_box(&mut map).fill(0);
    map
}

#[inline]
fn word_of(number: u64) -> usize {
    usize::try_from(number / 64).unwrap_or(usize::MAX)
}

#[inline]
fn set(map: &mut [u64], number: u64) {
    if let Some(word) = map.get_mut(word_of(number)) {
        *word |= 1 << (number % 64);
    }
}

fn is_set(map: &[u64], number: u64) -> bool {
    map.get(word_of(number)).is_some_and(|word| word & (1 << (number % 64)) != 0)
}

/// Maximal runs [first, end) of ascending numbers.
fn runs_of(numbers: impl Iterator<Item = u64>) -> impl Iterator<Item = (u64, u64)> {
    let mut numbers = numbers.peekable();
    std::iter::from_fn(move || {
        let first = numbers.next()?;
        let mut end = first + 1;
        while numbers.next_if_eq(&end).is_some() {
            end += 1;
        }
        Some((first, end))
    })
}

/// The runs that are left of [0, end) without the ascending numbers `holes`.
fn runs_without(end: u64, holes: &[u64]) -> impl Iterator<Item = (u64, u64)> {
    let mut from = 0;
    holes.iter().copied().chain([end]).filter_map(move |hole| {
        let run = (from, hole);
        from = hole + 1;
        (run.0 < run.1).then_some(run)
    })
}

/// Expected number of different blocks among `draws` uniform draws of `blocks`.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate between 0 and `blocks`"
)]
fn expected(blocks: u64, draws: u64) -> u64 {
    let n = blocks as f64;
    // n · (1 - (1 - 1/n)^draws), without the loss of digits in 1 - 1/n.
    (-n * (draws as f64 * (-1.0 / n).ln_1p()).exp_m1()).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(extents: &[(u64, u64)]) -> Arc<Blocks> {
        let extents: Vec<Extent> =
            extents.iter().map(|&(offset, length)| Extent { offset, length }).collect();
        Arc::new(Blocks::new(&extents, 10))
    }

    fn ranges(of: &[(u64, u64)]) -> Written {
        Written::Ranges(of.iter().map(|&(offset, length)| Extent { offset, length }).collect())
    }

    #[test]
    fn a_prefix_spans_extents() {
        let mut coverage = Coverage::new(
            blocks(&[(0, 20), (20, 20), (100, 20)]),
            OpKind::Write,
            Pattern::Sequential,
        );
        assert_eq!(coverage.written(), Written::Nothing);
        (0..5).for_each(|number| coverage.succeeded(number));
        assert_eq!(coverage.written(), ranges(&[(0, 40), (100, 10)]));
        assert_eq!((coverage.bytes_touched(), coverage.passes_milli()), (50, 833));
        coverage.succeeded(5);
        coverage.succeeded(0);
        assert_eq!(coverage.written(), Written::All);
        assert_eq!((coverage.bytes_touched(), coverage.passes_milli()), (60, 1_166));
    }

    #[test]
    fn a_failed_block_is_missing_until_it_is_written() {
        let mut coverage = Coverage::new(blocks(&[(0, 40)]), OpKind::Write, Pattern::Sequential);
        coverage.succeeded(0);
        coverage.failed(1);
        coverage.succeeded(2);
        assert_eq!(coverage.written(), ranges(&[(0, 10), (20, 10)]));
        assert_eq!(coverage.bytes_touched(), 20);
        coverage.succeeded(3);
        coverage.failed(0);
        assert_eq!(coverage.written(), ranges(&[(0, 10), (20, 20)]));
        coverage.succeeded(1);
        assert_eq!(coverage.written(), Written::All);
    }

    #[test]
    fn random_writes_are_mapped() {
        let mut coverage = Coverage::new(blocks(&[(0, 2_000)]), OpKind::Write, Pattern::Random);
        [3, 70, 3, 71, 199].into_iter().for_each(|number| coverage.succeeded(number));
        coverage.failed(5);
        assert_eq!(coverage.written(), ranges(&[(30, 10), (700, 20), (1_990, 10)]));
        assert_eq!((coverage.bytes_touched(), coverage.passes_milli()), (40, 30));
        let many = (EXTENTS_PER_THREAD_MAX as u64 + 1) * 2;
        let mut coverage =
            Coverage::new(blocks(&[(0, many * 10)]), OpKind::Write, Pattern::RandomOnce);
        (0..many / 2).for_each(|number| coverage.succeeded(number * 2));
        assert_eq!(coverage.written(), Written::Scattered);
        (0..many / 2).for_each(|number| coverage.succeeded(number * 2 + 1));
        assert_eq!(coverage.written(), Written::All);
    }

    #[test]
    fn reads_write_nothing_and_may_be_estimated() {
        let mut few = Coverage::new(blocks(&[(0, 100)]), OpKind::Read, Pattern::Random);
        [1, 1, 2].into_iter().for_each(|number| few.succeeded(number));
        assert_eq!((few.written(), few.bytes_touched()), (Written::Nothing, 20));
        // One draw of each block: 1 - 1/e of them are seen.
        assert_eq!(expected(1 << 20, 1 << 20), 662_827);
        assert_eq!((expected(1 << 20, 0), expected(1 << 20, 1)), (0, 1));
    }
}
