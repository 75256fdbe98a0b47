//! What is said of blocks that were transferred, failed, or overtook each other.

use iofleet_shared::{
    limits::EXTENTS_PER_THREAD_MAX,
    stats::Written,
    work::{Extent, FilePart},
};
use proptest::prelude::*;

use super::*;
use crate::pattern::{Drawn, Source};

fn extents(of: &[(u64, u64)]) -> Vec<Extent> {
    of.iter().map(|&(offset, length)| Extent { offset, length }).collect()
}

fn blocks(of: &[(u64, u64)]) -> Arc<Blocks> {
    Arc::new(Blocks::new(&extents(of), 10))
}

/// Of a thread whose operations are all of one kind and of one block.
fn plain(blocks: Arc<Blocks>, op: OpKind, pattern: Pattern) -> Coverage {
    Coverage::of_mix(blocks, op, pattern, &[], &[])
}

fn ranges(of: &[(u64, u64)]) -> Vec<WrittenPart> {
    part(0, Written::Ranges(extents(of)))
}

fn part(file: u32, written: Written) -> Vec<WrittenPart> {
    vec![WrittenPart { file, written }]
}

fn all() -> Vec<WrittenPart> {
    part(0, Written::All)
}

#[test]
fn a_prefix_spans_extents() {
    let blocks = blocks(&[(0, 20), (20, 20), (100, 20)]);
    let mut coverage = plain(blocks, OpKind::Write, Pattern::Sequential);
    assert_eq!(coverage.written(), []);
    (0..5).for_each(|number| coverage.succeeded(number, 1));
    assert_eq!(coverage.written(), ranges(&[(0, 40), (100, 10)]));
    assert_eq!((coverage.bytes_touched(), coverage.passes_milli()), (Some(50), 833));
    coverage.succeeded(5, 1);
    coverage.succeeded(0, 1);
    assert_eq!(coverage.written(), all());
    assert_eq!((coverage.bytes_touched(), coverage.passes_milli()), (Some(60), 1_166));
}

#[test]
fn a_suffix_is_what_a_descending_order_wrote() {
    let blocks = blocks(&[(0, 20), (100, 30)]);
    let mut coverage = plain(blocks, OpKind::Write, Pattern::Backward);
    coverage.succeeded(3, 2);
    coverage.failed(2, 1);
    coverage.succeeded(1, 1);
    assert_eq!(coverage.written(), ranges(&[(10, 10), (110, 20)]));
    assert_eq!(coverage.bytes_touched(), Some(30));
}

#[test]
fn a_failed_block_is_missing_until_it_is_written() {
    let mut coverage = plain(blocks(&[(0, 40)]), OpKind::Write, Pattern::Sequential);
    coverage.succeeded(0, 1);
    coverage.failed(1, 1);
    coverage.succeeded(2, 1);
    assert_eq!(coverage.written(), ranges(&[(0, 10), (20, 10)]));
    assert_eq!(coverage.bytes_touched(), Some(20));
    coverage.succeeded(3, 1);
    assert_eq!(coverage.written(), ranges(&[(0, 10), (20, 20)]));
    coverage.succeeded(0, 2);
    assert_eq!(coverage.written(), all());
    // A straggler of the first pass can't be told from one of the second.
    coverage.failed(3, 1);
    assert_eq!(coverage.written(), ranges(&[(0, 30)]));
}

#[test]
fn operations_may_overtake_each_other() {
    let mut coverage = plain(blocks(&[(0, 100)]), OpKind::Write, Pattern::Sequential);
    coverage.succeeded(4, 2);
    coverage.failed(6, 2);
    coverage.succeeded(0, 2);
    coverage.failed(2, 2);
    assert_eq!(coverage.written(), ranges(&[(0, 20), (40, 20)]));
    assert_eq!(coverage.bytes_touched(), Some(40));
}

#[test]
fn more_failures_than_there_is_room_for_are_scattered() {
    let count = 4 * FAILED_MAX as u64;
    let blocks = blocks(&[(0, count * 10)]);
    let mut coverage = plain(blocks, OpKind::Write, Pattern::Sequential);
    (0..count / 2).for_each(|number| coverage.failed(number, 1));
    assert_eq!((coverage.written(), coverage.bytes_touched()), (vec![], Some(0)));
    for number in count / 4..count / 2 {
        coverage.succeeded(2 * number, 1);
        coverage.failed(2 * number + 1, 1);
    }
    assert_eq!(coverage.written(), part(0, Written::Scattered));
    assert_eq!(coverage.bytes_touched(), Some(count / 4 * 10));
}

#[test]
fn random_writes_are_mapped() {
    let mut coverage = plain(blocks(&[(0, 2_000)]), OpKind::Write, Pattern::Random);
    [3, 3, 71, 199].into_iter().for_each(|number| coverage.succeeded(number, 1));
    coverage.succeeded(70, 2);
    coverage.failed(5, 1);
    assert_eq!(coverage.written(), ranges(&[(30, 10), (700, 20), (1_990, 10)]));
    assert_eq!((coverage.bytes_touched(), coverage.passes_milli()), (Some(40), 35));
    let many = (EXTENTS_PER_THREAD_MAX as u64 + 1) * 2;
    let blocks = blocks(&[(0, many * 10)]);
    let mut coverage = plain(blocks, OpKind::Write, Pattern::RandomOnce);
    (0..many / 2).for_each(|number| coverage.succeeded(number * 2, 1));
    assert_eq!(coverage.written(), part(0, Written::Scattered));
    (0..many / 2).for_each(|number| coverage.succeeded(number * 2 + 1, 1));
    assert_eq!(coverage.written(), all());
}

#[test]
fn each_file_has_ranges_of_its_own() {
    let file =
        |stride_bytes| FilePart { file: String::new(), extents: extents(&[(0, 40)]), stride_bytes };
    // Blocks 0..4, 4..6 (at 0 and 20), 6..10 and 10..14.
    let blocks = Blocks::of(&[file(0), file(20), file(0), file(0)], 10);
    let mut coverage = plain(Arc::new(blocks), OpKind::Write, Pattern::Random);
    coverage.succeeded(2, 4);
    coverage.succeeded(7, 1);
    let expected = [
        WrittenPart { file: 0, written: Written::Ranges(extents(&[(20, 20)])) },
        WrittenPart { file: 1, written: Written::All },
        WrittenPart { file: 2, written: Written::Ranges(extents(&[(10, 10)])) },
    ];
    assert_eq!(coverage.written(), expected);
    let rests = Arc::new(Blocks::of_sizes([25, 5, 30].into_iter(), 10));
    let mut coverage = plain(rests, OpKind::Write, Pattern::Sequential);
    (0..5).for_each(|number| coverage.succeeded(number, 1));
    let expected = [
        WrittenPart { file: 0, written: Written::All },
        WrittenPart { file: 1, written: Written::All },
        WrittenPart { file: 2, written: Written::Ranges(extents(&[(0, 10)])) },
    ];
    assert_eq!((coverage.written(), coverage.bytes_touched()), (expected.to_vec(), Some(40)));
}

#[test]
fn reads_write_nothing_and_may_be_estimated_or_unknown() {
    let mut few = plain(blocks(&[(0, 100)]), OpKind::Read, Pattern::Random);
    [1, 1, 2].into_iter().for_each(|number| few.succeeded(number, 1));
    assert_eq!((few.written(), few.bytes_touched()), (vec![], Some(20)));
    // One draw of each block: 1 - 1/e of them are seen.
    assert_eq!(expected(1 << 20, 1 << 20), 662_827);
    assert_eq!((expected(1 << 20, 0), expected(1 << 20, 1)), (0, 1));
    let touched = |count: u64, pattern| {
        let mut coverage = plain(blocks(&[(0, count * 10)]), OpKind::Read, pattern);
        [7, 7, 8].into_iter().for_each(|number| coverage.succeeded(number, 1));
        coverage.bytes_touched()
    };
    let zipf = Pattern::Zipf { theta_milli: 900 };
    assert_eq!(touched(READ_MAP_BLOCKS, zipf), Some(20));
    assert_eq!(touched(READ_MAP_BLOCKS + 1, zipf), None);
    assert_eq!(touched(READ_MAP_BLOCKS + 1, Pattern::Random), Some(30));
    assert_eq!(touched(READ_MAP_BLOCKS + 1, Pattern::Strided { step: 5 }), Some(30));
}

proptest! {
    /// Whatever completes when, the counters say what a map says.
    #[test]
    fn counting_agrees_with_a_map(
        files in prop::collection::vec(0..200_u64, 1..5),
        backward: bool,
        outcomes in prop::collection::vec((any::<bool>(), any::<u32>()), 1..60),
        seed: u64,
    ) {
        let blocks = Arc::new(Blocks::of_sizes(files.into_iter(), 10));
        prop_assume!(blocks.count() > 0);
        let pattern = if backward { Pattern::Backward } else { Pattern::Sequential };
        let ops = [OpShare { op: OpKind::Write, weight: 1 }];
        let sizes = [10, 30].map(|bytes| SizeShare { bytes, weight: 1 });
        let of = Arc::clone(&blocks);
        let mut drawn = Drawn::new(of, &pattern, &ops, &sizes, &[OpKind::Write], seed);
        let mut done = Vec::new();
        let mut issued = 0;
        for (good, order) in outcomes {
            let request = drawn.next().unwrap();
            let count = u64::from(request.bytes).div_ceil(10);
            issued += count;
            if issued > blocks.count() {
                break;
            }
            done.push((order, request.number, count, good));
        }
        done.sort_unstable();
        let of = |pattern| Coverage::of_mix(Arc::clone(&blocks), OpKind::Write, pattern, &ops, &sizes);
        let (mut counted, mut mapped) = (of(pattern), of(Pattern::Random));
        for (_, number, count, good) in done {
            for coverage in [&mut counted, &mut mapped] {
                if good { coverage.succeeded(number, count) } else { coverage.failed(number, count) }
            }
        }
        prop_assert_eq!(counted.written(), mapped.written());
        prop_assert_eq!(counted.bytes_touched(), mapped.bytes_touched());
        prop_assert_eq!(counted.passes_milli(), mapped.passes_milli());
    }

    /// A block is missing exactly if the last that was heard of it is that it failed.
    #[test]
    fn missing_blocks_are_those_that_failed_last(
        events in prop::collection::vec((any::<bool>(), 0..50_u64, 1..10_u64), 0..60),
    ) {
        let mut counted = Counted { prefix: Prefix::Lowest, failed: Vec::new(), failed_more: 0 };
        let mut missing = [false; 60];
        for (good, from, count) in events {
            if good { counted.made_good(&(from..from + count)) } else { counted.missed(from..from + count, true) }
            (from..from + count).for_each(|number| missing[usize::try_from(number).unwrap()] = !good);
        }
        let found: Vec<u64> = counted.failed.iter().cloned().flatten().collect();
        let expected: Vec<u64> =
            (0..60).filter(|number| missing[usize::try_from(*number).unwrap()]).collect();
        prop_assert_eq!(found, expected);
    }
}
