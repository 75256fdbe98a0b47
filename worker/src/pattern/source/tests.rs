//! Mixes of kinds and sizes over parts, gaps and rests.

use iofleet_shared::work::{Extent, FilePart};
use proptest::prelude::*;

use super::*;
use crate::pattern::{Random, Sequential};

const LANES: [OpKind; 2] = [OpKind::Write, OpKind::Read];

fn sizes(of: &[u64]) -> Vec<SizeShare> {
    of.iter().map(|&bytes| SizeShare { bytes, weight: 1 }).collect()
}

fn only(op: OpKind) -> [OpShare; 1] {
    [OpShare { op, weight: 1 }]
}

fn drawn(blocks: &Arc<Blocks>, pattern: Pattern, of: &[u64], seed: u64) -> Drawn {
    Drawn::new(Arc::clone(blocks), &pattern, &only(OpKind::Read), &sizes(of), &LANES, seed)
}

#[test]
fn one_kind_and_size_is_the_cursor_itself() {
    let blocks = Arc::new(Blocks::new(&[Extent { offset: 100, length: 400 }], 4));
    let mut single = Single::new(Random::new(Arc::clone(&blocks), 3), OpKind::Read, 1);
    let mut drawn = drawn(&blocks, Pattern::Random, &[4], 3);
    for _ in 0..50 {
        let request = single.next().unwrap();
        assert_eq!((request.op, request.lane, request.bytes), (OpKind::Read, 1, 4));
        assert_eq!(request.offset, 100 + 4 * request.number);
        assert_eq!(request, drawn.next().unwrap());
    }
    let mut single = Single::new(Sequential::new(blocks), OpKind::Write, 0);
    single.next().unwrap();
    let offset = 104;
    let expected =
        Request { op: OpKind::Write, lane: 0, file: 0, bytes: 4, number: 1, offset, blocks: 1 };
    assert_eq!(single.next().unwrap(), expected);
}

#[test]
fn kinds_are_drawn_by_weight_and_places_do_not_depend_on_them() {
    let blocks = Arc::new(Blocks::new(&[Extent { offset: 0, length: 400 }], 4));
    let ops = [OpShare { op: OpKind::Read, weight: 7 }, OpShare { op: OpKind::Write, weight: 3 }];
    let mix = Drawn::new(Arc::clone(&blocks), &Pattern::Random, &ops, &[], &LANES, 5);
    let mut alone = drawn(&blocks, Pattern::Random, &[4], 5);
    let (mut mix, mut reads) = (mix, 0_u32);
    for _ in 0..10_000 {
        let request = mix.next().unwrap();
        assert_eq!(LANES[usize::try_from(request.lane).unwrap()], request.op);
        assert_eq!(request.number, alone.next().unwrap().number);
        reads += u32::from(request.op == OpKind::Read);
    }
    // Mean 7000, deviation 46.
    assert!(reads.abs_diff(7_000) < 150, "{reads}");
}

#[test]
fn sizes_that_do_not_fit_give_way() {
    // 11 blocks and a rest of 2 bytes: sizes of 8 blocks fit once, of 2 blocks at 8 and not at 10.
    let blocks = Arc::new(Blocks::of_sizes([46].into_iter(), 4));
    let mut hint = 0;
    let mut at = |number, most| {
        let place = around(&blocks, number, most, &[8, 2, 1], &mut hint);
        (place.offset, place.bytes)
    };
    assert_eq!([at(5, 8), at(9, 8), at(9, 1)], [(0, 32), (32, 8), (36, 4)]);
    assert_eq!([at(10, 8), at(11, 8), at(11, 1)], [(40, 4), (44, 2), (44, 2)]);
}

#[test]
fn sizes_at_random_have_their_shares_and_slots_are_even() {
    let blocks = Arc::new(Blocks::new(&[Extent { offset: 0, length: 64 }], 4));
    let mut drawn = drawn(&blocks, Pattern::Random, &[16, 4], 8);
    let mut slots = [0.0_f64; 4];
    for _ in 0..20_000 {
        let request = drawn.next().unwrap();
        if request.bytes == 16 {
            slots[usize::try_from(request.offset / 16).unwrap()] += 1.0;
        }
    }
    // 2500 each; chi-square with 3 degrees of freedom, scaled by the draws that there were.
    let mean = slots.iter().sum::<f64>() / 4.0;
    assert!((mean - 2_500.0).abs() < 80.0, "{slots:?}");
    let chi2: f64 = slots.iter().map(|count| (count - mean).powi(2) / mean).sum();
    assert!(chi2 < 16.3, "{chi2}");
}

/// Files with extents of their own, contiguous or with gaps; or whole files with rests.
fn some_blocks() -> impl Strategy<Value = Arc<Blocks>> {
    let extent = (0..9_u64, 0..90_u64);
    let part = (prop::collection::vec(extent, 0..4), prop_oneof![Just(0_u64), 4..13_u64]);
    let parts = prop::collection::vec(part, 1..4).prop_map(|parts| {
        let file = |(extents, stride_bytes): (Vec<(u64, u64)>, u64)| {
            let mut from = 0;
            let extents = extents.into_iter().map(|(gap, length)| {
                let offset = from + gap;
                from = offset + length;
                Extent { offset, length }
            });
            FilePart { file: String::new(), extents: extents.collect(), stride_bytes }
        };
        Blocks::of(&parts.into_iter().map(file).collect::<Vec<_>>(), 4)
    });
    let whole = prop::collection::vec(0..90_u64, 1..6)
        .prop_map(|sizes| Blocks::of_sizes(sizes.into_iter(), 4));
    prop_oneof![parts, whole]
        .prop_filter("no blocks", |blocks| blocks.count() > 0)
        .prop_map(Arc::new)
}

/// The numbers of a request's blocks, each of which must be where the request says it is.
fn blocks_of(blocks: &Blocks, request: &Request) -> Vec<u64> {
    let mut numbers = Vec::new();
    let (mut number, mut at) = (request.number, request.offset);
    let end = request.offset + u64::from(request.bytes);
    while at < end {
        let place = blocks.place(number);
        assert_eq!((place.file, place.offset), (request.file, at));
        numbers.push(number);
        at += u64::from(place.bytes);
        number += 1;
    }
    assert_eq!(at, end);
    numbers
}

proptest! {
    #[test]
    fn sequential_sizes_cover_each_block_once_a_pass(
        blocks in some_blocks(),
        backward: bool,
        seed: u64,
    ) {
        let pattern = if backward { Pattern::Backward } else { Pattern::Sequential };
        let mut drawn = drawn(&blocks, pattern, &[4, 12, 20], seed);
        for _ in 0..2 {
            let mut pass = Vec::new();
            while pass.len() < usize::try_from(blocks.count()).unwrap() {
                let request = drawn.next().unwrap();
                prop_assert!(request.bytes <= 20);
                let mut numbers = blocks_of(&blocks, &request);
                if backward {
                    numbers.reverse();
                }
                pass.extend(numbers);
            }
            if backward {
                pass.reverse();
            }
            prop_assert!(pass.into_iter().eq(0..blocks.count()));
        }
    }

    #[test]
    fn sizes_at_random_stay_in_their_parts(
        blocks in some_blocks(),
        pattern in prop_oneof![
            Just(Pattern::Random),
            Just(Pattern::Zipf { theta_milli: 900 }),
            Just(Pattern::Pareto { h_milli: 800 }),
            Just(Pattern::Normal { deviation_milli: 200 }),
        ],
        seed: u64,
    ) {
        let mut drawn = drawn(&blocks, pattern, &[12, 4, 20], seed);
        for _ in 0..40 {
            let request = drawn.next().unwrap();
            let numbers = blocks_of(&blocks, &request);
            let run = blocks.run(request.number, &mut 0);
            prop_assert!(numbers.iter().all(|number| run.contains(number)));
            prop_assert!(matches!(request.bytes, 1..=4 | 12 | 20));
            let size = numbers.len() as u64;
            prop_assert_eq!((request.number - run.start) % size, 0);
        }
    }
}
