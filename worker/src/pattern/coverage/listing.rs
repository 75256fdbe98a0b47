//! The byte ranges of written blocks, file by file.

use std::{iter::Peekable, ops::Range};

use iofleet_shared::{
    limits::EXTENTS_PER_THREAD_MAX,
    stats::{Written, WrittenPart},
    work::Extent,
};

use super::Blocks;

/// Of every file something unknown.
pub(super) fn scattered(blocks: &Blocks) -> Vec<WrittenPart> {
    blocks.files().map(|(file, _)| WrittenPart { file, written: Written::Scattered }).collect()
}

/// What runs of blocks, ascending, are of each file. A thread reports so many ranges and no more;
/// files that need others are scattered.
pub(super) fn listed(blocks: &Blocks, runs: impl Iterator<Item = Range<u64>>) -> Vec<WrittenPart> {
    let mut runs = Runs { runs: runs.peekable(), from: 0 };
    let mut ranges_left = EXTENTS_PER_THREAD_MAX;
    let mut hint = 0;
    let files = blocks.files().filter_map(|(file, numbers)| {
        let written = written_of(blocks, &numbers, &mut runs, ranges_left, &mut hint);
        if let Written::Ranges(ranges) = &written {
            ranges_left -= ranges.len();
        }
        (written != Written::Nothing).then_some(WrittenPart { file, written })
    });
    files.collect()
}

/// Runs that are taken piece by piece.
struct Runs<I: Iterator<Item = Range<u64>>> {
    runs: Peekable<I>,
    /// What is below has been taken.
    from: u64,
}

impl<I: Iterator<Item = Range<u64>>> Runs<I> {
    /// The next run, or what is left of it, up to `end`.
    fn next_below(&mut self, end: u64) -> Option<Range<u64>> {
        let run = self.runs.peek()?;
        let piece = run.start.max(self.from)..run.end.min(end);
        if piece.is_empty() {
            return None;
        }
        self.from = piece.end;
        if piece.end == run.end {
            self.runs.next();
        }
        Some(piece)
    }
}

/// What is written of the file that has the blocks `numbers`.
fn written_of(
    blocks: &Blocks,
    numbers: &Range<u64>,
    runs: &mut Runs<impl Iterator<Item = Range<u64>>>,
    ranges_max: usize,
    hint: &mut usize,
) -> Written {
    let mut found = 0;
    let mut ranges: Vec<Extent> = Vec::new();
    while let Some(run) = runs.next_below(numbers.end) {
        found += run.end - run.start;
        if run == *numbers {
            return Written::All;
        }
        push_ranges(blocks, run, &mut ranges, ranges_max, hint);
    }
    if found == 0 {
        Written::Nothing
    } else if ranges.len() > ranges_max {
        Written::Scattered
    } else {
        Written::Ranges(ranges)
    }
}

/// Appends the byte ranges of a run of numbers: cut where a part ends, merged where one begins at
/// the end of the one before. Stops when there are more than `ranges_max`.
fn push_ranges(
    blocks: &Blocks,
    run: Range<u64>,
    ranges: &mut Vec<Extent>,
    ranges_max: usize,
    hint: &mut usize,
) {
    let mut number = run.start;
    while number < run.end && ranges.len() <= ranges_max {
        let end = blocks.run(number, hint).end.min(run.end);
        let offset = blocks.place_near(number, hint).offset;
        let length = blocks.bytes_in(number..end, hint);
        match ranges.last_mut() {
            Some(last) if last.offset + last.length == offset => last.length += length,
            _ => ranges.push(Extent { offset, length }),
        }
        number = end;
    }
}
