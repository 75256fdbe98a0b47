//! What has been written to the campaign's dataset so far, by file: what reads may touch.

use std::collections::BTreeMap;

use iofleet_shared::{
    limits::EXTENTS_PER_THREAD_MAX,
    stats::{ThreadReport, Written},
    units::format_size,
    work::{Extent, FilePart, Files, Names, OpKind, ThreadPlan, TreePart, WorkerPlan},
};

use super::deal::{SHARED_PREFIX, blocks_in};

/// What has been written to the campaign's dataset so far, by file: what reads may touch.
#[derive(Debug, Clone, Default)]
pub struct Manifest {
    files: BTreeMap<String, FileCoverage>,
    /// Names by tree and thread.
    trees: BTreeMap<String, BTreeMap<u32, NamesHeld>>,
}

#[derive(Debug, Clone, Default)]
struct FileCoverage {
    /// Written for sure: sorted, not touching.
    ranges: Vec<Extent>,
    /// In these some blocks were written and nobody knows which: sorted, not touching.
    scattered: Vec<Extent>,
    /// Strided shares that were written whole.
    strided: Vec<Strided>,
}

/// Threads of which each has written all of its strided share: every `stride_bytes` a block.
#[derive(Debug, Clone)]
struct Strided {
    block_bytes: u64,
    stride_bytes: u64,
    /// Length of each thread's share by its offset.
    shares: BTreeMap<u64, u64>,
}

/// Names of a thread in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct NamesHeld {
    /// Which exist.
    pub(super) names: Names,
    /// They have been renamed an odd number of times; none where some were and some were not.
    pub(super) renamed: Option<bool>,
    /// Files below this number have been written to their ends.
    pub(super) whole: u64,
}

impl Manifest {
    /// Takes note that a worker is told to arm: files that it removes, makes anew or truncates are
    /// empty.
    pub fn begin(&mut self, plan: &WorkerPlan) {
        for name in &plan.remove {
            self.files.remove(name);
            self.trees.remove(name);
        }
        for thread in &plan.threads {
            match &thread.files {
                Files::Named(parts) => {
                    for part in parts.iter().filter(|_| plan.create || plan.options.truncate) {
                        let coverage = self.files.entry(part.file.clone()).or_default();
                        if plan.options.truncate {
                            *coverage = FileCoverage::default();
                        }
                    }
                }
                Files::Tree(tree) if plan.create => {
                    // What was made is known when the thread reports; until then nothing is.
                    let threads = self.trees.entry(tree.base.clone()).or_default();
                    threads.entry(thread.thread).or_default();
                }
                Files::Tree(_) | Files::Listed(_) | Files::Devices(_) => {}
            }
        }
    }

    /// Takes note of what a worker's threads have written in a point.
    pub fn record(&mut self, plan: &WorkerPlan, threads: &[ThreadReport]) {
        for report in threads {
            let planned = |thread: &&ThreadPlan| thread.thread == report.thread;
            let Some(thread) = plan.threads.iter().find(planned) else {
                continue;
            };
            match &thread.files {
                Files::Named(parts) => {
                    for written in &report.written {
                        let part = usize::try_from(written.file).ok().and_then(|k| parts.get(k));
                        if let Some(part) = part {
                            self.written(part, plan.block_bytes(), &written.written);
                        }
                    }
                }
                Files::Tree(tree) => self.named(tree, thread, report),
                // They are readable whatever was written.
                Files::Listed(_) | Files::Devices(_) => {}
            }
        }
    }

    fn written(&mut self, part: &FilePart, block_bytes: u64, written: &Written) {
        let coverage = self.files.entry(part.file.clone()).or_default();
        match written {
            Written::Nothing => {}
            Written::All if part.stride_bytes == 0 => {
                let whole = part.extents.iter().map(|extent| Extent {
                    length: extent.length / block_bytes * block_bytes,
                    ..*extent
                });
                add(&mut coverage.ranges, whole);
            }
            Written::All => {
                for extent in &part.extents {
                    coverage.stride(*extent, part.stride_bytes, block_bytes);
                }
            }
            Written::Ranges(ranges) => add(&mut coverage.ranges, ranges.iter().copied()),
            Written::Scattered => add(&mut coverage.scattered, part.extents.iter().copied()),
        }
    }

    fn named(&mut self, tree: &TreePart, thread: &ThreadPlan, report: &ThreadReport) {
        let threads = self.trees.entry(tree.base.clone()).or_default();
        let held = threads.entry(thread.thread).or_default();
        let before = tree.existing.files;
        if let Some(left) = report.names {
            // What writes data says how many files it wrote whole, and removes none.
            let on_data = thread.ops.iter().all(|share| share.op.moves_data());
            let least = if on_data { held.names.files } else { 0 };
            held.names = Names { files: left.names.files.max(least), ..left.names };
            held.renamed = left.renamed;
        }
        let all = report.written.iter().any(|part| part.written == Written::All);
        if all {
            held.whole = held.names.files;
        } else if thread.ops.iter().any(|share| share.op == OpKind::Write) && before == 0 {
            // Each file is written to its end before the next is made, and counts then.
            held.whole = held.names.files;
        }
    }

    /// Whether a file was made.
    pub(super) fn holds(&self, file: &str) -> bool {
        self.files.contains_key(file)
    }

    /// The name by which a shared file or tree was made, by whichever attempt; none if it was not.
    pub(super) fn made_as(&self, name: &str, tree: bool) -> Option<String> {
        let same = |made: &&String| {
            made.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let last = if tree { self.trees.keys().rfind(same) } else { self.files.keys().rfind(same) };
        last.cloned()
    }

    /// Shared files that were made and not removed.
    pub(super) fn shared_files(&self) -> impl Iterator<Item = String> {
        self.files.keys().filter(|file| file.starts_with(SHARED_PREFIX)).cloned()
    }

    /// Trees that were begun and not removed.
    pub(super) fn trees(&self) -> impl Iterator<Item = String> {
        self.trees.keys().cloned()
    }

    /// Names of a thread in a tree, if any were made.
    pub(super) fn names(&self, base: &str, thread: u32) -> Option<NamesHeld> {
        self.trees.get(base)?.get(&thread).copied()
    }

    /// What of a part can be read in whole blocks; all of it when it must be. `sharers`: of a
    /// strided part how many threads share the file, and which of them has the part.
    pub(super) fn readable(
        &self,
        part: &FilePart,
        sharers: Option<(u32, u32)>,
        block_bytes: u64,
        all: bool,
    ) -> Result<Vec<FilePart>, String> {
        let file = &part.file;
        let nothing = FileCoverage::default();
        let coverage = self.files.get(file).unwrap_or(&nothing);
        let mut blocks: Vec<Extent> = Vec::new();
        for range in &part.extents {
            let inside: Vec<Extent> =
                coverage.ranges.iter().filter_map(|written| overlap(*written, *range)).collect();
            if inside == [*range] || coverage.has_share(*range, part.stride_bytes, block_bytes) {
                blocks.push(*range);
                continue;
            }
            if coverage.scattered.iter().any(|blocks| overlap(*blocks, *range).is_some()) {
                return Err(format!(
                    "{file}: the blocks that were written lie too scattered to list: write with \
                     `sequential` or `random-once`, or in larger blocks"
                ));
            }
            blocks.extend(inside.iter().filter_map(|extent| match sharers {
                None => whole_blocks(*extent, block_bytes),
                Some(sharers) => strided_blocks(*extent, block_bytes, sharers),
            }));
            let written: u64 = match sharers {
                None => inside.iter().map(|extent| extent.length).sum(),
                Some(_) => blocks_in(&strided(part, blocks.clone()), block_bytes) * block_bytes,
            };
            if all {
                return Err(format!(
                    "{file}: only {} of {} was written: give the write stage a size instead of a \
                     duration, or the read a duration",
                    format_size(written),
                    format_size(blocks_in(part, block_bytes) * block_bytes)
                ));
            }
        }
        if blocks.is_empty() {
            let first = part.extents.first().map_or(0, |range| range.offset);
            let end = part.extents.last().map_or(0, |range| range.offset + range.length);
            return Err(format!(
                "{file}: there is no block to read, since nothing was written between offsets \
                 {first} and {end}: let the write stage run longer"
            ));
        }
        if blocks.len() > EXTENTS_PER_THREAD_MAX {
            return Err(format!(
                "{file}: what was written lies in {} pieces, more than {EXTENTS_PER_THREAD_MAX}: \
                 write with `sequential`, or in larger blocks",
                blocks.len()
            ));
        }
        Ok(vec![strided(part, blocks)])
    }
}

impl FileCoverage {
    /// Takes note that a thread has written its whole strided share. Once the shares of all threads
    /// are there, the file is whole.
    fn stride(&mut self, share: Extent, stride_bytes: u64, block_bytes: u64) {
        let same = |known: &&mut Strided| {
            known.stride_bytes == stride_bytes && known.block_bytes == block_bytes
        };
        let place = match self.strided.iter_mut().find(same) {
            Some(known) => known,
            None => {
                let shares = BTreeMap::new();
                self.strided.push(Strided { block_bytes, stride_bytes, shares });
                let last = self.strided.len() - 1;
                &mut self.strided[last]
            }
        };
        let known = place.shares.entry(share.offset).or_default();
        *known = share.length.max(*known);
        if place.shares.len() as u64 == stride_bytes / block_bytes.max(1) {
            // The file is whole up to the first block that a thread has not written.
            let ends = || place.shares.iter().map(|(offset, length)| offset + length);
            let missing =
                ends().map(|end| end.saturating_sub(block_bytes) + stride_bytes).min().unwrap_or(0);
            let length = ends().max().unwrap_or(0).min(missing);
            add(&mut self.ranges, std::iter::once(Extent { offset: 0, length }));
            self.strided.retain(|known| {
                known.stride_bytes != stride_bytes || known.block_bytes != block_bytes
            });
        }
    }

    /// Whether exactly this share, or a longer one of the same blocks, was written whole.
    fn has_share(&self, share: Extent, stride_bytes: u64, block_bytes: u64) -> bool {
        stride_bytes > 0
            && self.strided.iter().any(|known| {
                known.stride_bytes == stride_bytes
                    && known.block_bytes == block_bytes
                    && known.shares.get(&share.offset).is_some_and(|own| *own >= share.length)
            })
    }
}

fn strided(part: &FilePart, extents: Vec<Extent>) -> FilePart {
    FilePart { file: part.file.clone(), extents, stride_bytes: part.stride_bytes }
}

/// The blocks of one of the threads that share a file which lie inside an extent: from its first
/// such block to the end of its last.
fn strided_blocks(extent: Extent, block_bytes: u64, sharers: (u32, u32)) -> Option<Extent> {
    let (threads, thread) = (u64::from(sharers.0.max(1)), u64::from(sharers.1));
    let whole = whole_blocks(extent, block_bytes)?;
    let (first, end) = (whole.offset / block_bytes, (whole.offset + whole.length) / block_bytes);
    let own = first + (thread + threads - first % threads) % threads;
    if own >= end {
        return None;
    }
    let last = own + (end - 1 - own) / threads * threads;
    Some(Extent { offset: own * block_bytes, length: (last - own + 1) * block_bytes })
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

    fn read(
        manifest: &Manifest,
        file: &str,
        range: Extent,
        block: u64,
        all: bool,
    ) -> Result<Vec<Extent>, String> {
        let part = FilePart { file: file.to_owned(), extents: vec![range], stride_bytes: 0 };
        let parts = manifest.readable(&part, None, block, all)?;
        Ok(parts.into_iter().flat_map(|part| part.extents).collect())
    }

    fn with(ranges: &[(u64, u64)], scattered: &[(u64, u64)]) -> Manifest {
        let mut coverage = FileCoverage::default();
        add(&mut coverage.ranges, ranges.iter().map(|(offset, length)| extent(*offset, *length)));
        let blocks = scattered.iter().map(|(offset, length)| extent(*offset, *length));
        add(&mut coverage.scattered, blocks);
        Manifest { files: [("f".to_owned(), coverage)].into(), ..Manifest::default() }
    }

    #[test]
    fn by_size_all_must_be_there() {
        let manifest = with(&[(0, 4 << 20), (4 << 20, 8 << 20)], &[]);
        let of = |length| read(&manifest, "f", extent(0, length), 1 << 20, true);
        assert_eq!(of(12 << 20), Ok(vec![extent(0, 12 << 20)]));
        assert_eq!(of(2 << 20), Ok(vec![extent(0, 2 << 20)]));
        assert_eq!(
            of(16 << 20).unwrap_err(),
            "f: only 12 MiB of 16 MiB was written: give the write stage a size instead of a \
             duration, or the read a duration"
        );
        assert!(
            read(&manifest, "g", extent(0, 1), 1, true).unwrap_err().starts_with("g: only 0 B")
        );
    }

    #[test]
    fn by_time_whole_blocks_of_the_grid_are_read() {
        let manifest = with(&[(3, 10), (20, 3), (40, 8)], &[]);
        let of = |range| read(&manifest, "f", range, 4, false);
        // 3..13 holds blocks 4..12; 20..23 holds none; 40..48 holds two.
        assert_eq!(of(extent(0, 100)), Ok(vec![extent(4, 8), extent(40, 8)]));
        assert_eq!(of(extent(8, 36)), Ok(vec![extent(8, 4), extent(40, 4)]));
        assert_eq!(
            of(extent(20, 16)).unwrap_err(),
            "f: there is no block to read, since nothing was written between offsets 20 and 36: \
             let the write stage run longer"
        );
    }

    #[test]
    fn scattered_blocks_count_only_where_all_is_covered_anyway() {
        let manifest = with(&[(0, 8)], &[(0, 16)]);
        assert_eq!(read(&manifest, "f", extent(0, 8), 4, true), Ok(vec![extent(0, 8)]));
        let error = read(&manifest, "f", extent(0, 16), 4, false).unwrap_err();
        assert!(error.starts_with("f: the blocks that were written lie too scattered"), "{error}");
    }

    #[test]
    fn too_many_pieces_are_refused() {
        let pieces = EXTENTS_PER_THREAD_MAX as u64 + 1;
        let ranges: Vec<_> = (0..pieces).map(|piece| (piece * 2, 1)).collect();
        let manifest = with(&ranges, &[]);
        let error = read(&manifest, "f", extent(0, pieces * 2), 1, false).unwrap_err();
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
