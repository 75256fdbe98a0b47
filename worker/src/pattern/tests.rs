//! What all orders have in common, and those in which all blocks have the same part.

use iofleet_shared::work::Extent;
use proptest::prelude::*;

use super::*;

fn one(blocks: u64) -> Arc<Blocks> {
    Arc::new(Blocks::new(&[Extent { offset: 0, length: blocks * 8 }], 8))
}

fn numbers(cursor: &mut impl Cursor, count: u64) -> Vec<u64> {
    (0..count).map(|_| cursor.next().number).collect()
}

#[test]
fn orders_without_chance_begin_again() {
    assert_eq!(numbers(&mut Sequential::new(one(3)), 7), [0, 1, 2, 0, 1, 2, 0]);
    assert_eq!(numbers(&mut Backward::new(one(3)), 7), [2, 1, 0, 2, 1, 0, 2]);
    assert_eq!(numbers(&mut Strided::new(one(7), 3), 9), [0, 3, 6, 1, 4, 2, 5, 0, 3]);
    assert_eq!(numbers(&mut Strided::new(one(3), u64::MAX), 5), [0, 1, 2, 0, 1]);
    assert_eq!(numbers(&mut Strided::new(one(3), 1), 5), [0, 1, 2, 0, 1]);
}

#[test]
fn random_is_uniform_and_reproducible() {
    let drawn = numbers(&mut Random::new(one(10), 5), 100_000);
    assert_eq!(drawn, numbers(&mut Random::new(one(10), 5), 100_000));
    assert_ne!(drawn, numbers(&mut Random::new(one(10), 6), 100_000));
    let mut counts = [0.0_f64; 10];
    drawn.iter().for_each(|number| counts[usize::try_from(*number).unwrap()] += 1.0);
    let chi2: f64 = counts.iter().map(|count| (count - 10_000.0).powi(2) / 10_000.0).sum();
    // 9 degrees of freedom: above 27.9 once in a thousand seeds, and this seed is fixed.
    assert!(chi2 < 27.9, "{chi2}");
}

#[test]
fn passes_of_random_once_differ() {
    let mut cursor = RandomOnce::new(one(1_000), 1);
    let (first, second) = (numbers(&mut cursor, 1_000), numbers(&mut cursor, 1_000));
    assert_ne!(first, second);
    assert_eq!(first, numbers(&mut RandomOnce::new(one(1_000), 1), 1_000));
    assert_ne!(first, numbers(&mut RandomOnce::new(one(1_000), 2), 1_000));
    // Of 999 neighbours in a random order about two follow each other upwards.
    let runs = first.windows(2).filter(|pair| pair[0] + 1 == pair[1]).count();
    assert!(runs < 20, "{runs} blocks follow their predecessor");
}

/// Blocks of some files of whole and broken blocks.
fn some_blocks() -> impl Strategy<Value = Arc<Blocks>> {
    prop::collection::vec(0..600_u64, 1..20)
        .prop_map(|sizes| Arc::new(Blocks::of_sizes(sizes.into_iter(), 4)))
        .prop_filter("no blocks", |blocks| blocks.count() > 0)
}

proptest! {
    #[test]
    fn passes_take_each_block_once(
        blocks in some_blocks(),
        pattern in prop_oneof![
            Just(Pattern::Sequential),
            Just(Pattern::Backward),
            (1..400_u64).prop_map(|step| Pattern::Strided { step }),
            Just(Pattern::RandomOnce),
        ],
        seed: u64,
    ) {
        let mut cursor = AnyCursor::new(&pattern, Arc::clone(&blocks), seed);
        for _ in 0..2 {
            let mut pass: Vec<Place> = (0..blocks.count()).map(|_| cursor.next()).collect();
            pass.sort_unstable_by_key(|place| place.number);
            prop_assert!(pass.into_iter().eq((0..blocks.count()).map(|number| blocks.place(number))));
        }
    }

    #[test]
    fn draws_stay_among_the_blocks_and_follow_from_the_seed(
        blocks in some_blocks(),
        pattern in prop_oneof![
            Just(Pattern::Random),
            (1..5_000_u32).prop_map(|theta_milli| Pattern::Zipf { theta_milli }),
            (500..1_000_u32).prop_map(|h_milli| Pattern::Pareto { h_milli }),
            (0..=1_000_u32).prop_map(|deviation_milli| Pattern::Normal { deviation_milli }),
        ],
        seed: u64,
    ) {
        let mut cursor = AnyCursor::new(&pattern, Arc::clone(&blocks), seed);
        let mut again = AnyCursor::new(&pattern, Arc::clone(&blocks), seed);
        for _ in 0..50 {
            let place = cursor.next();
            prop_assert!(place.number < blocks.count());
            prop_assert_eq!(place, blocks.place(place.number));
            prop_assert_eq!(place.number, again.draw());
        }
    }
}
