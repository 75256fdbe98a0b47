//! What of which files each thread has, and which kinds of operation it does.

use iofleet_shared::work::{Extent, FilePart, Layout, OpKind, OpShare, SizeShare};

use super::split;
use crate::scenario::{MixBy, Params};

/// What names of shared files begin with.
pub(super) const SHARED_PREFIX: &str = "shared-";
/// What names of trees begin with.
pub(super) const TREE_PREFIX: &str = "tree-";

/// Name of a shared file.
pub(super) fn shared_name(number: u32) -> String {
    format!("{SHARED_PREFIX}{number}")
}

/// Name of a tree.
pub(super) fn tree_name(number: u32) -> String {
    format!("{TREE_PREFIX}{number}")
}

/// The same by a later attempt, which leaves alone what the one before it has begun: there another
/// worker may have just removed it, or not yet.
pub(super) fn of_attempt(name: String, attempt: u32) -> String {
    if attempt == 0 { name } else { format!("{name}.{attempt}") }
}

/// Name of a thread's own file.
pub(super) fn own_name(thread: u32) -> String {
    format!("t{thread:05}")
}

/// The parts of files that a thread has, whatever was written of them; none for trees. `shared`:
/// name of the shared file.
pub(super) fn parts(params: &Params, threads: u32, thread: u32, shared: &str) -> Vec<FilePart> {
    let whole = Extent { offset: 0, length: params.file_bytes() };
    let part =
        |file: String, extent: Extent| FilePart { file, extents: vec![extent], stride_bytes: 0 };
    match params.layout {
        Layout::FilePerThread => vec![part(own_name(thread), whole)],
        Layout::SharedFile => {
            vec![part(shared.to_owned(), contiguous(params, threads, thread))]
        }
        Layout::SharedStrided => {
            let block = params.block_bytes();
            let blocks = params.file_bytes() / block;
            let (first, count) = (u64::from(thread), u64::from(threads));
            let own = blocks.saturating_sub(first).div_ceil(count);
            let length = own.saturating_sub(1) * count * block + block * u64::from(own > 0);
            vec![FilePart {
                file: shared.to_owned(),
                extents: vec![Extent { offset: first * block, length }],
                stride_bytes: count * block,
            }]
        }
        Layout::FileList | Layout::Device => listed(params, threads, thread)
            .map(|(file, extent)| part(file.clone(), extent))
            .collect(),
        Layout::Tree => Vec::new(),
    }
}

/// A thread's contiguous range of whole blocks of a file that `sharers` have together.
fn contiguous(params: &Params, sharers: u32, place: u32) -> Extent {
    let block = params.block_bytes();
    let (first, count) = split::share(params.file_bytes() / block, sharers, place);
    Extent { offset: first * block, length: count * block }
}

/// With as many files as threads or more, thread i has the files i, i + N and so on; with fewer, a
/// part of file i mod M.
fn listed(params: &Params, threads: u32, thread: u32) -> impl Iterator<Item = (&String, Extent)> {
    let files = u32::try_from(params.listed.len()).unwrap_or(u32::MAX).max(1);
    let (first, step, extent) = if files >= threads {
        let whole = Extent { offset: 0, length: params.file_bytes() };
        (thread, threads, whole)
    } else {
        let file = thread % files;
        let sharers = (threads - file).div_ceil(files);
        (file, files, contiguous(params, sharers, thread / files))
    };
    let step = usize::try_from(step).unwrap_or(usize::MAX).max(1);
    let first = usize::try_from(first).unwrap_or(usize::MAX);
    params.listed.iter().skip(first).step_by(step).map(move |file| (file, extent))
}

/// Threads that share a file of fewer blocks, and its blocks. Of a mix the largest counts: each
/// thread's share has room for it.
pub(super) fn too_few_blocks(params: &Params, threads: u32) -> Option<(u32, u64)> {
    let blocks = params.file_bytes() / params.block_bytes_max().max(1);
    let sharers = match params.layout {
        Layout::SharedFile | Layout::SharedStrided => threads,
        Layout::FileList | Layout::Device => {
            threads.div_ceil(u32::try_from(params.listed.len()).unwrap_or(u32::MAX).max(1))
        }
        Layout::FilePerThread | Layout::Tree => return None,
    };
    (blocks < u64::from(sharers)).then_some((sharers, blocks))
}

/// Bytes of all files of a point, those of a tree by its largest size; none when 64 bits do not
/// count them.
pub(super) fn working_set_bytes(params: &Params, threads: u32) -> Option<u64> {
    let files = match params.layout {
        Layout::FilePerThread => u64::from(threads),
        Layout::SharedFile | Layout::SharedStrided => 1,
        Layout::Tree => params.tree.files_per_thread().checked_mul(u64::from(threads))?,
        Layout::FileList | Layout::Device => params.listed.len() as u64,
    };
    params.file_bytes().checked_mul(files)
}

/// Payload and operations of a point by size, as far as they are known beforehand.
pub(super) fn planned(
    params: &Params,
    threads: u32,
    bytes: u64,
    whole: bool,
) -> (Option<u64>, Option<u64>) {
    if params.layout == Layout::Tree && !whole {
        return (None, None);
    }
    if params.moves_only_data() {
        if params.blocks.len() > 1 || params.file_sizes.len() > 1 {
            return (None, None);
        }
        if params.file_bytes() == 0 {
            // Files without a block are opened and closed.
            return (Some(0), None);
        }
        // Each block is an operation, whichever kind it is of.
        return (Some(bytes), Some(bytes / params.block_bytes()));
    }
    if params.is_mix() {
        return (None, None);
    }
    let of_a_thread = names(params, &params.ops);
    (Some(0), Some(of_a_thread * u64::from(threads)))
}

/// Names that a thread works on: its directories where all kinds do, else its files.
pub(super) fn names(params: &Params, ops: &[OpShare]) -> u64 {
    if ops.iter().all(|share| of_directories(share.op)) {
        return u64::from(params.tree.dirs);
    }
    params.tree.files_per_thread()
}

/// Whether a kind works on directories.
pub(super) fn of_directories(op: OpKind) -> bool {
    matches!(op, OpKind::Mkdir | OpKind::Readdir | OpKind::Rmdir)
}

/// Blocks of a tree's file, the largest of a mix.
pub(super) fn blocks_of_file(sizes: &[SizeShare], block_bytes: u64) -> u64 {
    sizes.iter().map(|size| size.bytes / block_bytes.max(1)).max().unwrap_or(0)
}

/// Blocks that lie in the extents of a part.
pub(super) fn blocks_in(part: &FilePart, block_bytes: u64) -> u64 {
    let block = block_bytes.max(1);
    let of_extent = |extent: &Extent| match part.stride_bytes {
        0 => extent.length / block,
        _ if extent.length < block => 0,
        stride => (extent.length - block) / stride + 1,
    };
    part.extents.iter().map(of_extent).sum()
}

/// The kinds of operation of a thread. Dealt to threads, each kind has a run of threads, which
/// lie on all nodes in turn: as many as its weight says by the largest remainder, one at least.
pub(super) fn kinds(params: &Params, threads: u32, thread: u32) -> Vec<OpShare> {
    if params.mix_by == MixBy::Operation || !params.is_mix() {
        return params.ops.clone();
    }
    let mut end = 0;
    for (share, count) in params.ops.iter().zip(dealt(&params.ops, threads)) {
        end += count;
        if thread < end {
            return vec![OpShare { weight: 1, ..*share }];
        }
    }
    params.ops.clone()
}

/// Threads of each kind: their sum is `threads` if that is at least the number of kinds.
fn dealt(ops: &[OpShare], threads: u32) -> Vec<u32> {
    let kinds = u32::try_from(ops.len()).unwrap_or(u32::MAX);
    // One goes to each beforehand; the others follow the weights, so that the whole does.
    let sum: u64 = ops.iter().map(|share| u64::from(share.weight)).sum::<u64>().max(1);
    let quota = |share: &OpShare| u64::from(threads) * u64::from(share.weight);
    let mut counts: Vec<u32> = ops
        .iter()
        .map(|share| u32::try_from(quota(share) / sum).unwrap_or(u32::MAX).max(1))
        .collect();
    let mut order: Vec<usize> = (0..ops.len()).collect();
    // The largest remainder first; of equal ones the first kind.
    order.sort_by_key(|place| std::cmp::Reverse(quota(&ops[*place]) % sum));
    let mut given: u32 = counts.iter().sum();
    for place in order.iter().cycle().take(ops.len() * 2) {
        if given < threads {
            counts[*place] += 1;
            given += 1;
        }
    }
    // Those that got one though their weight gave none: it is taken from the largest.
    while given > threads && threads >= kinds {
        let Some(most) = counts.iter_mut().max_by_key(|count| **count) else { break };
        *most -= 1;
        given -= 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn share(op: OpKind, weight: u32) -> OpShare {
        OpShare { op, weight }
    }

    #[test]
    fn threads_are_dealt_to_kinds_by_the_largest_remainder() {
        let ops = [share(OpKind::Write, 30), share(OpKind::Read, 70)];
        assert_eq!(dealt(&ops, 10), [3, 7]);
        assert_eq!(dealt(&ops, 2), [1, 1]);
        // 1.5 and 3.5: the remainders are equal, the first kind gets it.
        assert_eq!(dealt(&ops, 5), [2, 3]);
        // 2.4 and 5.6.
        assert_eq!(dealt(&ops, 8), [2, 6]);
        let rare = [share(OpKind::Write, 1), share(OpKind::Read, 1000)];
        assert_eq!(dealt(&rare, 4), [1, 3]);
    }

    #[test]
    fn more_files_than_threads_and_fewer() {
        let params = |files: usize| {
            let listed: Vec<String> = (0..files).map(|n| format!("/f{n}")).collect();
            let size = SizeShare { bytes: 10 << 20, weight: 1 };
            Params {
                layout: Layout::FileList,
                listed: listed.into(),
                file_sizes: vec![size],
                ..Params::default()
            }
        };
        let of = |files: usize, threads: u32, thread: u32| -> Vec<(String, u64, u64)> {
            parts(&params(files), threads, thread, "shared-0")
                .into_iter()
                .map(|part| (part.file, part.extents[0].offset >> 20, part.extents[0].length >> 20))
                .collect()
        };
        let file = |name: &str, offset, length| (name.to_owned(), offset, length);
        assert_eq!(of(5, 2, 0), [file("/f0", 0, 10), file("/f2", 0, 10), file("/f4", 0, 10)]);
        assert_eq!(of(5, 2, 1), [file("/f1", 0, 10), file("/f3", 0, 10)]);
        // Five threads, two files: threads 0, 2, 4 have file 0 and threads 1, 3 have file 1.
        assert_eq!(of(2, 5, 2), [file("/f0", 4, 3)]);
        assert_eq!(of(2, 5, 4), [file("/f0", 7, 3)]);
        assert_eq!(of(2, 5, 3), [file("/f1", 5, 5)]);
    }

    proptest! {
        #[test]
        fn dealt_threads_are_all_of_them(
            weights in proptest::collection::vec(1_u32..1000, 2..10), more in 0_u32..300,
        ) {
            let ops: Vec<OpShare> = OpKind::ALL
                .into_iter()
                .zip(&weights)
                .map(|(op, weight)| share(op, *weight))
                .collect();
            let threads = u32::try_from(ops.len()).unwrap() + more;
            let counts = dealt(&ops, threads);
            prop_assert_eq!(counts.iter().sum::<u32>(), threads);
            prop_assert!(counts.iter().all(|count| *count > 0));
        }

        #[test]
        fn strided_threads_have_each_block_once(threads in 1_u32..20, spare in 0_u64..50) {
            let blocks = u64::from(threads) + spare;
            let params = Params {
                layout: Layout::SharedStrided,
                file_sizes: vec![SizeShare { bytes: blocks << 20, weight: 1 }],
                ..Params::default()
            };
            let mut seen = Vec::new();
            for thread in 0..threads {
                let part = parts(&params, threads, thread, "shared-0").remove(0);
                let count = blocks_in(&part, 1 << 20);
                seen.extend((0..count).map(|k| (part.extents[0].offset + k * part.stride_bytes) >> 20));
                let extent = part.extents[0];
                prop_assert!(extent.offset + extent.length <= blocks << 20);
            }
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..blocks).collect::<Vec<_>>());
        }
    }
}
