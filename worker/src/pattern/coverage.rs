//! Which blocks a thread has touched and, when it writes, what a manifest may say of them.
//!
//! Orders that take each block once in a pass need a counter and the few blocks that failed; the
//! others need a map with a bit for each block. All memory is taken while arming.
//!
//! Operations may come to an end in another order than they were issued in. What is said here holds
//! once each operation that was issued has been reported: one that will never come to an end, as
//! failed. Then those reported were the first of the order, however they were shuffled.

use std::{ops::Range, sync::Arc};

use iofleet_shared::{
    stats::WrittenPart,
    work::{OpKind, OpShare, Pattern, SizeShare},
};

use super::Blocks;

mod listing;

/// Runs of failed blocks that are kept by number.
const FAILED_MAX: usize = 1_024;
/// Most blocks of which reads in uniform order keep a map (32 KiB). Above, the number of different
/// blocks is its expectation, which is then within a thousandth of the truth.
const UNIFORM_MAP_BLOCKS: u64 = 1 << 18;
/// Most blocks of which reads keep a map at all (2 MiB). Above, nobody knows what they touched.
const READ_MAP_BLOCKS: u64 = 1 << 24;

/// What of its blocks a thread has transferred by operations of one kind.
#[derive(Debug)]
pub struct Coverage {
    blocks: Arc<Blocks>,
    op: OpKind,
    /// Blocks of operations that came to an end.
    attempts: u64,
    /// Those of operations that succeeded.
    succeeded: u64,
    seen: Seen,
}

#[derive(Debug)]
enum Seen {
    /// The first `attempts` blocks of the order but those that failed.
    Counted(Counted),
    /// A bit for each block.
    Mapped(Vec<u64>),
    /// Only how many succeeded.
    Estimated,
    /// Nothing is kept.
    Untold,
}

#[derive(Debug)]
struct Counted {
    prefix: Prefix,
    /// Ascending, with blocks between them.
    failed: Vec<Range<u64>>,
    failed_more: u64,
}

/// Which blocks the first of an order are.
#[derive(Debug, Clone, Copy)]
enum Prefix {
    /// Those of the lowest numbers.
    Lowest,
    /// Those of the highest numbers.
    Highest,
    /// Any.
    Unknown,
}

impl Coverage {
    /// Of those operations of a thread that are of kind `op`, where kinds and sizes are drawn from
    /// these (none: of one kind and of one block). Nothing yet, with all the memory that it will need. What a thread touches by reads and writes together
    /// is a coverage of `OpKind::Read` with no `ops`, told of all of them.
    #[must_use]
    pub fn of_mix(
        blocks: Arc<Blocks>,
        op: OpKind,
        pattern: Pattern,
        ops: &[OpShare],
        sizes: &[SizeShare],
    ) -> Self {
        let (alone, even) = (ops.len() <= 1, sizes.len() <= 1);
        let (reads, count) = (op != OpKind::Write, blocks.count());
        // Bytes follow from the number of blocks.
        let uniform_bytes = !blocks.has_rests();
        let counted = |prefix| {
            let failed = Vec::with_capacity(FAILED_MAX);
            Seen::Counted(Counted { prefix, failed, failed_more: 0 })
        };
        let seen = match pattern {
            Pattern::Sequential if alone => counted(Prefix::Lowest),
            Pattern::Backward if alone => counted(Prefix::Highest),
            Pattern::Strided { .. } | Pattern::RandomOnce if alone && reads && uniform_bytes => {
                counted(Prefix::Unknown)
            }
            Pattern::Random if reads && even && uniform_bytes && count > UNIFORM_MAP_BLOCKS => {
                Seen::Estimated
            }
            Pattern::Sequential
            | Pattern::Backward
            | Pattern::Strided { .. }
            | Pattern::Random
            | Pattern::RandomOnce
            | Pattern::Zipf { .. }
            | Pattern::Pareto { .. }
            | Pattern::Normal { .. } => {
                if reads && count > READ_MAP_BLOCKS {
                    Seen::Untold
                } else {
                    Seen::Mapped(map_of(&blocks))
                }
            }
        };
        Self { blocks, op, attempts: 0, succeeded: 0, seen }
    }

    /// An operation on `count` blocks from `number` on succeeded.
    #[inline]
    pub fn succeeded(&mut self, number: u64, count: u64) {
        self.attempts += count;
        self.succeeded += count;
        match &mut self.seen {
            Seen::Counted(counted) => {
                if !counted.failed.is_empty() {
                    counted.made_good(&(number..number + count));
                }
            }
            Seen::Mapped(map) => (number..number + count).for_each(|number| set(map, number)),
            Seen::Estimated | Seen::Untold => {}
        }
    }

    /// An operation on `count` blocks from `number` on failed.
    ///
    /// Counted orders miss these blocks from then on, until they succeed: where operations overtake
    /// each other nobody knows in which pass one was issued, and no block may be said to be there
    /// that is not.
    #[cold]
    pub fn failed(&mut self, number: u64, count: u64) {
        self.attempts += count;
        let first_pass = self.attempts <= self.blocks.count();
        match &mut self.seen {
            Seen::Counted(counted) => counted.missed(number..number + count, first_pass),
            Seen::Mapped(_) | Seen::Estimated | Seen::Untold => {}
        }
    }

    /// Bytes of different blocks that were transferred; none if that is not known.
    #[must_use]
    pub fn bytes_touched(&self) -> Option<u64> {
        let blocks = match &self.seen {
            Seen::Untold => return None,
            Seen::Mapped(_) | Seen::Counted(_) if self.blocks.has_rests() => {
                let mut hint = 0;
                return Some(self.runs()?.map(|run| self.bytes_of(run, &mut hint)).sum());
            }
            Seen::Counted(counted) => {
                self.attempts.min(self.blocks.count()).saturating_sub(counted.missing())
            }
            Seen::Mapped(map) => map.iter().map(|word| u64::from(word.count_ones())).sum(),
            Seen::Estimated => expected(self.blocks.count(), self.succeeded),
        };
        Some(blocks * self.blocks.block_bytes())
    }

    /// Whole and broken passes over the blocks, in 1/1000.
    #[must_use]
    pub fn passes_milli(&self) -> u64 {
        let milli = u128::from(self.attempts) * 1_000 / u128::from(self.blocks.count().max(1));
        u64::try_from(milli).unwrap_or(u64::MAX)
    }

    /// Files that its blocks are of.
    #[must_use]
    pub fn files(&self) -> u64 {
        self.blocks.files().count() as u64
    }

    /// Nobody knows what was written: operations in flight were given up.
    #[must_use]
    pub fn unknown(&self) -> Vec<WrittenPart> {
        if self.op == OpKind::Write { listing::scattered(&self.blocks) } else { Vec::new() }
    }

    /// What was written of each file, ascending; files of which nothing was are left out.
    #[must_use]
    pub fn written(&self) -> Vec<WrittenPart> {
        if self.op != OpKind::Write || self.succeeded == 0 {
            return Vec::new();
        }
        match self.runs() {
            Some(runs) => listing::listed(&self.blocks, runs),
            None => listing::scattered(&self.blocks),
        }
    }

    /// The numbers of the blocks that were transferred, in ascending runs; none if they are not
    /// known.
    fn runs(&self) -> Option<Box<dyn Iterator<Item = Range<u64>> + '_>> {
        let count = self.blocks.count();
        match &self.seen {
            Seen::Counted(Counted { failed_more: 1.., .. }) => None,
            Seen::Counted(Counted { prefix, failed, .. }) => {
                let reached = self.attempts.min(count);
                let range = match prefix {
                    Prefix::Lowest => 0..reached,
                    Prefix::Highest => count - reached..count,
                    Prefix::Unknown if reached == count => 0..count,
                    Prefix::Unknown => return None,
                };
                Some(Box::new(runs_without(range, failed)))
            }
            Seen::Mapped(map) => {
                Some(Box::new(runs_of((0..count).filter(|number| is_set(map, *number)))))
            }
            Seen::Estimated | Seen::Untold => None,
        }
    }

    fn bytes_of(&self, run: Range<u64>, hint: &mut usize) -> u64 {
        let mut bytes = 0;
        let mut number = run.start;
        while number < run.end {
            let end = self.blocks.run(number, hint).end.min(run.end);
            bytes += self.blocks.bytes_in(number..end, hint);
            number = end;
        }
        bytes
    }
}

impl Counted {
    fn missing(&self) -> u64 {
        self.failed.iter().map(|run| run.end - run.start).sum::<u64>() + self.failed_more
    }

    /// Places of the failed runs that have some of `numbers` in them.
    fn overlapping(&self, numbers: &Range<u64>) -> Range<usize> {
        let from = self.failed.partition_point(|run| run.end <= numbers.start);
        let to = self.failed.partition_point(|run| run.start < numbers.end);
        from..to
    }

    fn made_good(&mut self, numbers: &Range<u64>) {
        let at = self.overlapping(numbers);
        let Some([first, .., last] | [first @ last]) = self.failed.get(at.clone()) else {
            return;
        };
        let left = first.start..numbers.start;
        let right = numbers.end..last.end;
        match (left.is_empty(), right.is_empty()) {
            (true, true) => drop(self.failed.drain(at)),
            (false, true) => {
                self.failed[at.start] = left;
                self.failed.drain(at.start + 1..at.end);
            }
            (true, false) => {
                self.failed[at.start] = right;
                self.failed.drain(at.start + 1..at.end);
            }
            (false, false) if at.len() == 1 => {
                // Without room for another run the blocks stay missing.
                if self.failed.len() < FAILED_MAX {
                    self.failed[at.start] = left;
                    self.failed.insert(at.end, right);
                }
            }
            (false, false) => {
                self.failed[at.start] = left;
                self.failed[at.end - 1] = right;
                self.failed.drain(at.start + 1..at.end - 1);
            }
        }
    }

    /// Beyond the room for runs there is only a count, which is of the first pass: later on the
    /// same blocks may fail again.
    fn missed(&mut self, mut numbers: Range<u64>, first_pass: bool) {
        let at = self.overlapping(&(numbers.start.saturating_sub(1)..numbers.end + 1));
        if let Some([first, .., last] | [first @ last]) = self.failed.get(at.clone()) {
            numbers = numbers.start.min(first.start)..numbers.end.max(last.end);
            self.failed[at.start] = numbers;
            self.failed.drain(at.start + 1..at.end);
        } else if self.failed.len() < FAILED_MAX {
            self.failed.insert(at.start, numbers);
        } else {
            let more = if first_pass { numbers.end - numbers.start } else { 0 };
            self.failed_more = (self.failed_more + more).max(1);
        }
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

/// Maximal runs of ascending numbers.
fn runs_of(numbers: impl Iterator<Item = u64>) -> impl Iterator<Item = Range<u64>> {
    let mut numbers = numbers.peekable();
    std::iter::from_fn(move || {
        let first = numbers.next()?;
        let mut end = first + 1;
        while numbers.next_if_eq(&end).is_some() {
            end += 1;
        }
        Some(first..end)
    })
}

/// The runs that are left of `range` without the ascending runs `holes`.
fn runs_without(range: Range<u64>, holes: &[Range<u64>]) -> impl Iterator<Item = Range<u64>> {
    let Range { start: mut from, end } = range;
    let before_holes = holes.iter().map(move |hole| (hole.start.min(end), hole.end));
    before_holes.chain([(end, end)]).filter_map(move |(to, next)| {
        let run = from..to;
        from = from.max(next);
        (!run.is_empty()).then_some(run)
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
mod tests;
