//! Units: the layout, all five kinds of damage, and what a place can hold.

use proptest::prelude::*;

use super::*;

const DATASET: u64 = 0x1122_3344_5566_7788;

fn data() -> Data {
    Data {
        content: Content::Random { compress_milli: 1_000, dedupe_milli: 1_000 },
        refresh: true,
        verify: true,
        generation: 1,
        generation_known: true,
        dataset: DATASET,
    }
}

fn block(units: usize, file: u64, offset: u64, generation: u32) -> Vec<u8> {
    let mut block = vec![0xaa; units * UNIT];
    Units::new(&data()).stamp(&mut block, file, offset, generation);
    block
}

fn check(block: &[u8], file: u64, offset: u64, expected: Expected) -> Option<Damage> {
    Units::new(&data()).check(block, file, offset, expected)
}

fn only(generation: u32) -> Expected {
    Expected { newest: generation, oldest: generation, known: true }
}

/// Kind, offset, and number of bad units.
fn verdict(damage: Option<Damage>) -> Option<(DamageKind, u64, u32)> {
    damage.map(|damage| (damage.kind, damage.offset, damage.units))
}

#[test]
fn a_unit_is_laid_out_as_said() {
    let unit = block(1, 5, 8_192, 3);
    assert_eq!(unit[..8], *b"iofleet1");
    assert_eq!(unit[8..16], [0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11]);
    assert_eq!(unit[16..24], [5, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(unit[24..32], [0, 0x20, 0, 0, 0, 0, 0, 0]);
    assert_eq!(unit[32..36], [3, 0, 0, 0]);
    assert_eq!(unit[32..40], unit[4_080..4_088]);
    assert_eq!(unit[4_088..], XxHash3_64::oneshot(&unit[..4_088]).to_le_bytes());
    // The hash of nothing that its specification gives.
    assert_eq!(XxHash3_64::oneshot(&[]), 0x2d06_8005_38d3_94c2);
}

#[test]
fn places_and_generations_have_nothing_in_common() {
    let units = [block(2, 5, 0, 3), block(1, 5, 0, 4), block(1, 6, 0, 3), block(1, 5, 8_192, 3)];
    let all = units.concat();
    let words: std::collections::BTreeSet<&[u8]> =
        all.chunks(UNIT).flat_map(|unit| unit[HEAD..].chunks(8)).collect();
    // In the tail, sums only differ; the end is that of the head.
    assert_eq!(words.len(), 5 * (UNIT - HEAD) / 8);
}

#[test]
fn a_lost_write_is_missing_or_stale() {
    assert_eq!(
        verdict(check(&vec![0; 3 * UNIT], 1, 4_096, only(1))),
        Some((DamageKind::Missing, 4_096, 3))
    );
    let old = block(2, 1, 4_096, 1);
    let damage = check(&old, 1, 4_096, only(2)).unwrap();
    assert_eq!(verdict(Some(damage)), Some((DamageKind::Stale, 4_096, 2)));
    assert_eq!(damage.found, Found { dataset: DATASET, file: 1, offset: 4_096, generation: 1 });
    // A write in flight, and generations that nobody knows.
    assert_eq!(check(&old, 1, 4_096, Expected { newest: 2, oldest: 1, known: true }), None);
    assert_eq!(check(&old, 1, 4_096, Expected { newest: 9, oldest: 9, known: false }), None);
    // Zeros are right as long as perhaps nothing was written.
    let perhaps = Expected { newest: 1, oldest: 0, known: true };
    assert_eq!(check(&[0; UNIT], 1, 0, perhaps), None);
    assert_eq!(check(&block(1, 1, 0, 1), 1, 0, perhaps), None);
}

#[test]
fn data_of_another_place_is_misdirected() {
    let there = block(1, 1, 40_960, 1);
    let mut here = block(2, 1, 0, 1);
    here[UNIT..].copy_from_slice(&there);
    let damage = check(&here, 1, 0, only(1)).unwrap();
    assert_eq!(verdict(Some(damage)), Some((DamageKind::Misdirected, 4_096, 1)));
    assert_eq!(damage.found, Found { dataset: DATASET, file: 1, offset: 40_960, generation: 1 });
    assert_eq!(
        check(&there, 2, 40_960, only(1)).map(|damage| damage.kind),
        Some(DamageKind::Misdirected)
    );
    let others = Units::new(&Data { dataset: 1, ..data() });
    assert_eq!(
        others.check(&there, 1, 40_960, only(1)).map(|damage| damage.kind),
        Some(DamageKind::Misdirected)
    );
}

#[test]
fn a_block_of_two_writes_is_torn() {
    let mut torn = block(4, 1, 0, 2);
    torn[2 * UNIT..].copy_from_slice(&block(2, 1, 8_192, 1));
    assert_eq!(verdict(check(&torn, 1, 0, only(2))), Some((DamageKind::Torn, 8_192, 2)));
    // Both lost: the block is of earlier writes only.
    assert_eq!(verdict(check(&torn, 1, 0, only(3))), Some((DamageKind::Stale, 0, 4)));
}

#[test]
fn a_first_write_that_arrived_in_part_is_torn() {
    let whole = block(1, 1, 0, 1);
    let mut head = whole.clone();
    head[1_024..].fill(0);
    assert_eq!(verdict(check(&head, 1, 0, only(1))), Some((DamageKind::Torn, 0, 1)));
    let mut tail = whole;
    tail[..512].fill(0);
    assert_eq!(verdict(check(&tail, 1, 0, only(1))), Some((DamageKind::Torn, 0, 1)));
}

#[test]
fn what_nobody_wrote_is_corrupted() {
    assert_eq!(
        verdict(check(&vec![0xff; 2 * UNIT], 1, 0, only(1))),
        Some((DamageKind::Corrupted, 0, 2))
    );
    // Whole, but of a write that was never begun.
    let damage = check(&block(1, 1, 0, 7), 1, 0, only(1)).unwrap();
    assert_eq!((damage.kind, damage.found.generation), (DamageKind::Corrupted, 7));
}

#[test]
fn units_compress_as_far_as_asked() {
    let half = Content::Random { compress_milli: 2_000, dedupe_milli: 1_000 };
    for (content, zeros) in [(half, 4_080 - 2_043), (Content::Zero, 4_080 - 40)] {
        let mut units = Units::new(&Data { content, ..data() });
        let mut block = vec![0xaa; UNIT];
        units.stamp(&mut block, 1, 0, 1);
        assert!(block[TAIL - zeros..TAIL].iter().all(|byte| *byte == 0));
        assert_ne!(block[TAIL - zeros - 8..TAIL - zeros], [0; 8]);
        assert_eq!(units.check(&block, 1, 0, only(1)), None);
    }
}

#[test]
fn a_read_among_writes_finds_what_was_there_meanwhile() {
    let issued = Expected { newest: 3, oldest: 2, known: true };
    let completed = Expected { newest: 5, oldest: 5, known: true };
    let between = Expected { newest: 5, oldest: 2, known: true };
    assert_eq!(issued.until(completed), between);
    assert_eq!(
        Expected::before(&Data { generation: 4, generation_known: false, ..data() }),
        Expected { newest: 3, oldest: 3, known: false }
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_was_stamped_is_right(
        units in 1_usize..9,
        file: u64,
        place in 0..u64::MAX / 8_192,
        generation in 1..u32::MAX,
        dataset: u64,
    ) {
        let mut units_of = Units::new(&Data { dataset, ..data() });
        let mut block = vec![0xaa; units * UNIT];
        let offset = place * 4_096;
        units_of.stamp(&mut block, file, offset, generation);
        prop_assert_eq!(units_of.check(&block, file, offset, only(generation)), None);
        let next = only(generation + 1);
        prop_assert_eq!(
            verdict(units_of.check(&block, file, offset, next)),
            Some((DamageKind::Stale, offset, u32::try_from(units).unwrap()))
        );
    }

    #[test]
    fn each_bit_counts(bit in 0..UNIT * 8, known: bool) {
        let mut unit = block(1, 1, 4_096, 6);
        unit[bit / 8] ^= 1 << (bit % 8);
        let expected = Expected { newest: 6, oldest: 1, known };
        prop_assert_eq!(
            verdict(check(&unit, 1, 4_096, expected)),
            Some((DamageKind::Corrupted, 4_096, 1))
        );
    }

    #[test]
    fn a_tear_inside_of_a_unit_is_seen(at in HEAD..=TAIL, first in 1_u32..9, second in 1_u32..9) {
        let mut unit = block(1, 1, 4_096, first);
        unit[at..].copy_from_slice(&block(1, 1, 4_096, second)[at..]);
        let expected = Expected { newest: 9, oldest: 1, known: true };
        let torn = Some((DamageKind::Torn, 4_096, 1));
        let verdict = verdict(check(&unit, 1, 4_096, expected));
        prop_assert_eq!(verdict, if first == second { None } else { torn });
    }
}
