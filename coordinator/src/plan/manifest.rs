//! What has been written to the campaign's dataset so far, by file: what reads may touch.

use std::collections::BTreeMap;

use iofleet_shared::{
    limits::EXTENTS_PER_THREAD_MAX,
    stats::{ThreadReport, Written},
    units::format_size,
    work::{Extent, OpKind, ThreadPlan, WorkerPlan},
};

use super::SHARED_PREFIX;

/// What has been written to the campaign's dataset so far, by file: what reads may touch.
#[derive(Debug, Clone, Default)]
pub struct Manifest {
    files: BTreeMap<String, FileCoverage>,
}

#[derive(Debug, Clone, Default)]
struct FileCoverage {
    /// Written for sure: sorted, not touching.
    ranges: Vec<Extent>,
    /// In these some blocks were written and nobody knows which: sorted, not touching.
    scattered: Vec<Extent>,
}

impl Manifest {
    /// Takes note that a worker is told to arm: files that it removes or makes anew are empty.
    pub fn begin(&mut self, plan: &WorkerPlan) {
        for file in &plan.remove {
            self.files.remove(file);
        }
        if plan.create {
            for thread in &plan.threads {
                self.files.entry(thread.file.clone()).or_default();
            }
        }
    }

    /// Takes note of what a worker's threads have written in a point.
    pub fn record(&mut self, plan: &WorkerPlan, threads: &[ThreadReport]) {
        if plan.op != OpKind::Write {
            return;
        }
        for report in threads {
            let planned = |thread: &&ThreadPlan| thread.thread == report.thread;
            let Some(thread) = plan.threads.iter().find(planned) else {
                continue;
            };
            let coverage = self.files.entry(thread.file.clone()).or_default();
            match &report.written {
                Written::Nothing => {}
                Written::All => {
                    let whole = thread.extents.iter().map(|extent| Extent {
                        length: extent.length / plan.block_bytes * plan.block_bytes,
                        ..*extent
                    });
                    add(&mut coverage.ranges, whole);
                }
                Written::Ranges(ranges) => add(&mut coverage.ranges, ranges.iter().copied()),
                Written::Scattered => {
                    add(&mut coverage.scattered, thread.extents.iter().copied());
                }
            }
        }
    }

    /// Whether a file was made.
    pub(super) fn holds(&self, file: &str) -> bool {
        self.files.contains_key(file)
    }

    /// Shared files that were made and not removed.
    pub(super) fn shared_files(&self) -> impl Iterator<Item = String> {
        self.files.keys().filter(|file| file.starts_with(SHARED_PREFIX)).cloned()
    }

    /// What of a file's range can be read in whole blocks; `all` of it must be readable when asked
    /// for.
    pub(super) fn readable(
        &self,
        file: &str,
        range: Extent,
        block_bytes: u64,
        all: bool,
    ) -> Result<Vec<Extent>, String> {
        let nothing = FileCoverage::default();
        let coverage = self.files.get(file).unwrap_or(&nothing);
        let inside: Vec<Extent> =
            coverage.ranges.iter().filter_map(|written| overlap(*written, range)).collect();
        if inside == [range] {
            return Ok(inside);
        }
        if coverage.scattered.iter().any(|blocks| overlap(*blocks, range).is_some()) {
            return Err(format!(
                "{file}: the blocks that were written lie too scattered to list: write with \
                 `sequential` or `random-once`, or in larger blocks"
            ));
        }
        if all {
            let written: u64 = inside.iter().map(|extent| extent.length).sum();
            return Err(format!(
                "{file}: only {} of {} was written: give the write stage a size instead of a \
                 duration, or the read a duration",
                format_size(written),
                format_size(range.length)
            ));
        }
        let blocks: Vec<Extent> =
            inside.iter().filter_map(|extent| whole_blocks(*extent, block_bytes)).collect();
        if blocks.is_empty() {
            return Err(format!(
                "{file}: there is no block to read, since nothing was written between offsets {} \
                 and {}: let the write stage run longer",
                range.offset,
                range.offset + range.length
            ));
        }
        if blocks.len() > EXTENTS_PER_THREAD_MAX {
            return Err(format!(
                "{file}: what was written lies in {} pieces, more than {EXTENTS_PER_THREAD_MAX}: \
                 write with `sequential`, or in larger blocks",
                blocks.len()
            ));
        }
        Ok(blocks)
    }
}

/// The blocks of the file's grid that lie inside an extent.
fn whole_blocks(extent: Extent, block_bytes: u64) -> Option<Extent> {
    let start = extent.offset.checked_next_multiple_of(block_bytes)?;
    let end = (extent.offset + extent.length) / block_bytes * block_bytes;
    (start < end).then(|| Extent { offset: start, length: end - start })
}

fn overlap(left: Extent, right: Extent) -> Option<Extent> {
    let start = left.offset.max(right.offset);
    let end = (left.offset + left.length).min(right.offset + right.length);
    (start < end).then(|| Extent { offset: start, length: end - start })
}

/// Adds extents and joins those that touch.
fn add(ranges: &mut Vec<Extent>, more: impl Iterator<Item = Extent>) {
    ranges.extend(more.filter(|extent| extent.length > 0));
    ranges.sort_unstable();
    let mut joined: Vec<Extent> = Vec::with_capacity(ranges.len());
    for extent in ranges.drain(..) {
        match joined.last_mut() {
            Some(last) if extent.offset <= last.offset + last.length => {
                let end = (extent.offset + extent.length).max(last.offset + last.length);
                last.length = end - last.offset;
            }
            _ => joined.push(extent),
        }
    }
    *ranges = joined;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn extent(offset: u64, length: u64) -> Extent {
        Extent { offset, length }
    }

    fn with(ranges: &[(u64, u64)], scattered: &[(u64, u64)]) -> Manifest {
        let mut coverage = FileCoverage::default();
        add(&mut coverage.ranges, ranges.iter().map(|(offset, length)| extent(*offset, *length)));
        let blocks = scattered.iter().map(|(offset, length)| extent(*offset, *length));
        add(&mut coverage.scattered, blocks);
        Manifest { files: [("f".to_owned(), coverage)].into() }
    }

    #[test]
    fn by_size_all_must_be_there() {
        let manifest = with(&[(0, 4 << 20), (4 << 20, 8 << 20)], &[]);
        let read = |length| manifest.readable("f", extent(0, length), 1 << 20, true);
        assert_eq!(read(12 << 20), Ok(vec![extent(0, 12 << 20)]));
        assert_eq!(read(2 << 20), Ok(vec![extent(0, 2 << 20)]));
        assert_eq!(
            read(16 << 20).unwrap_err(),
            "f: only 12 MiB of 16 MiB was written: give the write stage a size instead of a \
             duration, or the read a duration"
        );
        assert!(
            manifest.readable("g", extent(0, 1), 1, true).unwrap_err().starts_with("g: only 0 B")
        );
    }

    #[test]
    fn by_time_whole_blocks_of_the_grid_are_read() {
        let manifest = with(&[(3, 10), (20, 3), (40, 8)], &[]);
        let read = |range| manifest.readable("f", range, 4, false);
        // 3..13 holds blocks 4..12; 20..23 holds none; 40..48 holds two.
        assert_eq!(read(extent(0, 100)), Ok(vec![extent(4, 8), extent(40, 8)]));
        assert_eq!(read(extent(8, 36)), Ok(vec![extent(8, 4), extent(40, 4)]));
        assert_eq!(
            read(extent(20, 16)).unwrap_err(),
            "f: there is no block to read, since nothing was written between offsets 20 and 36: \
             let the write stage run longer"
        );
    }

    #[test]
    fn scattered_blocks_count_only_where_all_is_covered_anyway() {
        let manifest = with(&[(0, 8)], &[(0, 16)]);
        assert_eq!(manifest.readable("f", extent(0, 8), 4, true), Ok(vec![extent(0, 8)]));
        let error = manifest.readable("f", extent(0, 16), 4, false).unwrap_err();
        assert!(error.starts_with("f: the blocks that were written lie too scattered"), "{error}");
    }

    #[test]
    fn too_many_pieces_are_refused() {
        let pieces = EXTENTS_PER_THREAD_MAX as u64 + 1;
        let ranges: Vec<_> = (0..pieces).map(|piece| (piece * 2, 1)).collect();
        let manifest = with(&ranges, &[]);
        let error = manifest.readable("f", extent(0, pieces * 2), 1, false).unwrap_err();
        assert!(error.starts_with("f: what was written lies in 4097 pieces"), "{error}");
    }

    proptest! {
        #[test]
        fn adding_is_a_union(parts in proptest::collection::vec((0_u64..200, 0_u64..20), 0..30)) {
            let mut ranges = Vec::new();
            let mut bytes = [false; 256];
            for (offset, length) in &parts {
                add(&mut ranges, std::iter::once(extent(*offset, *length)));
                for byte in *offset..offset + length {
                    bytes[usize::try_from(byte).unwrap()] = true;
                }
            }
            let mut seen = [false; 256];
            let mut end = None;
            for range in &ranges {
                prop_assert!(end.is_none_or(|end| range.offset > end), "sorted, not touching");
                end = Some(range.offset + range.length);
                for byte in range.offset..range.offset + range.length {
                    seen[usize::try_from(byte).unwrap()] = true;
                }
            }
            prop_assert_eq!(seen, bytes);
        }
    }
}
