//! Generations against a file that writes reach in any order.

use iofleet_shared::work::Content;
use proptest::prelude::*;

use super::*;

fn data(generation: u32, generation_known: bool) -> Data {
    Data {
        content: Content::Random { compress_milli: 1_000, dedupe_milli: 1_000 },
        refresh: true,
        verify: true,
        generation,
        generation_known,
        dataset: 0,
    }
}

fn between(oldest: u32, newest: u32) -> Expected {
    Expected { newest, oldest, known: true }
}

#[test]
fn each_write_has_the_next_generation() {
    let mut blocks = Generations::new(4, &data(7, true)).unwrap();
    assert_eq!(blocks.expected(0, 4), between(6, 6));
    assert_eq!(blocks.begin(1, 1), 7);
    assert_eq!(blocks.expected(1, 1), between(6, 7));
    blocks.done(1, 1);
    assert_eq!(blocks.expected(1, 1), between(7, 7));
    // Two blocks, one of them written before.
    assert_eq!(blocks.begin(1, 2), 8);
    blocks.done(1, 2);
    assert_eq!(blocks.expected(2, 1), between(8, 8));
    assert_eq!(blocks.expected(0, 3), between(6, 8));
    assert_eq!(blocks.expected(3, 1), between(6, 6));
}

#[test]
fn after_a_failure_both_are_right() {
    let mut blocks = Generations::new(1, &data(1, true)).unwrap();
    assert_eq!(blocks.begin(0, 1), 1);
    blocks.failed(0, 1);
    // Perhaps nothing was ever written.
    assert_eq!(blocks.expected(0, 1), between(0, 1));
    assert_eq!(blocks.begin(0, 1), 2);
    blocks.failed(0, 1);
    assert_eq!(blocks.expected(0, 1), between(0, 2));
    assert_eq!(blocks.begin(0, 1), 3);
    blocks.done(0, 1);
    assert_eq!(blocks.expected(0, 1), between(3, 3));
}

#[test]
fn what_was_there_before_may_be_unknown() {
    let mut blocks = Generations::new(2, &data(3, false)).unwrap();
    assert!(!blocks.expected(0, 2).known);
    blocks.begin(0, 1);
    assert!(!blocks.expected(0, 1).known);
    blocks.done(0, 1);
    assert_eq!(blocks.expected(0, 1), between(3, 3));
    assert!(!blocks.expected(0, 2).known);
}

#[test]
fn what_does_not_fit_is_never_called_wrong() {
    let mut blocks = Generations::new(1, &data(5, true)).unwrap();
    // More in flight than are counted.
    let last = (0..40).map(|_| blocks.begin(0, 1)).last().unwrap();
    assert_eq!(last, 44);
    (0..20).for_each(|_| blocks.done(0, 1));
    // Twenty are still to land, whatever this one does.
    blocks.begin(0, 1);
    blocks.done(0, 1);
    assert_eq!(blocks.expected(0, 1), between(4, 45));

    // More writes than are counted, and than generations there are.
    let mut blocks = Generations::new(1, &data(5, true)).unwrap();
    blocks.words[0] = Block { newest: (1 << 23) - 2, span: 0, flying: 0, unsure: false }.word();
    for _ in 0..3 {
        assert_eq!(blocks.begin(0, 1), 4 + (1 << 23) - 1);
        blocks.done(0, 1);
        assert_eq!(blocks.expected(0, 1), between(4 + (1 << 23) - 1, 4 + (1 << 23) - 1));
    }

    // Blocks that are not there, and ends without a beginning.
    let mut blocks = Generations::new(2, &data(5, true)).unwrap();
    blocks.done(0, 1);
    assert_eq!(blocks.begin(1, u64::MAX), 5);
    assert_eq!(blocks.begin(2, 3), 5);
    assert_eq!(blocks.expected(0, 1), between(4, 4));
    assert_eq!(blocks.expected(7, 1), between(4, 4));
}

/// A write in flight of a plain file.
#[derive(Debug, Clone, Copy)]
struct Write {
    number: usize,
    count: usize,
    generation: u32,
    landed: bool,
    /// Nothing else was in flight in any of its blocks while it was.
    alone: bool,
}

proptest! {
    /// A file whose writes land at any time while they are in flight, or not at all if they fail.
    #[test]
    fn what_a_file_holds_is_expected(
        steps in prop::collection::vec((0_u8..4, 0_usize..6, 1_usize..4), 0..120),
    ) {
        let mut generations = Generations::new(6, &data(1, true)).unwrap();
        let mut file = [0_u32; 6];
        let mut flying: Vec<Write> = Vec::new();
        for (step, number, count) in steps {
            let count = count.min(6 - number);
            let wide = |at: usize| u64::try_from(at).unwrap();
            match step {
                0 if flying.len() < 5 => {
                    let generation = generations.begin(wide(number), wide(count));
                    prop_assert!(file[number..number + count].iter().all(|old| *old < generation));
                    let mut write = Write { number, count, generation, landed: false, alone: true };
                    for other in &mut flying {
                        if other.number < number + count && number < other.number + other.count {
                            (other.alone, write.alone) = (false, false);
                        }
                    }
                    flying.push(write);
                }
                1 => {
                    // One lands, whatever came later.
                    let count = flying.len().max(1);
                    if let Some(write) = flying.get_mut(number % count).filter(|w| !w.landed) {
                        write.landed = true;
                        file[write.number..write.number + write.count].fill(write.generation);
                    }
                }
                _ if flying.is_empty() => {}
                _ => {
                    let write = flying.swap_remove(number % flying.len());
                    let (first, count) = (wide(write.number), wide(write.count));
                    if write.landed && step == 2 {
                        generations.done(first, count);
                        if write.alone {
                            let only = between(write.generation, write.generation);
                            prop_assert_eq!(generations.expected(first, count), only);
                        }
                    } else {
                        generations.failed(first, count);
                    }
                }
            }
            for (number, found) in (0..).zip(&file) {
                let expected = generations.expected(number, 1);
                prop_assert!((expected.oldest..=expected.newest).contains(found));
                let busy = flying.iter().any(|write| {
                    (wide(write.number)..wide(write.number + write.count)).contains(&number)
                });
                prop_assert!(!busy || expected.oldest < expected.newest);
            }
        }
    }
}
