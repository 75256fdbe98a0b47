//! Known answers of what threads had moved when the first of them ended. Threads are played one
//! after the other, each in its own time: who is played before the first to end does not see it,
//! as if its end were not visible yet.

use super::*;
use crate::recorder::Units;

/// A thread's account after its script of blocks of ten bytes, begun at `begin_ms`.
fn account(control: &Control, ramp_ms: u64, begin_ms: u64, script: Script) -> Taken<Account> {
    let blocks = script.steps.len() as u64;
    let time = Arc::new(AtomicU64::new(T0 + begin_ms * MS));
    let mut engine = Scripted::new(10, &time, script.steps).flushes(script.flush.0, script.flush.1);
    let job = Job { blocks, deadline_ns: None, flush_at_end: script.flush.0 > 0 };
    let clock = ScriptClock { time: &time, tick: 0 };
    Thread::writer(blocks, 10, ramp_ms, 1).in_steps(&mut engine, job, clock, control)
}

/// Operations of so many ms each, one after the other, without fsync.
fn moves(ms: &[u64]) -> Script {
    Script { steps: ms.iter().map(|ms| Step::Moves(ms * MS)).collect(), flush: (0, Ok(())) }
}

fn crew() -> Control {
    Control::new(4, 4)
}

/// Payload at the first end, in tenths of an operation, each of which is a byte.
fn tenths(control: &Control, account: &Account) -> f64 {
    let Units { bytes, ops } = account.up_to(control.first_ended().unwrap());
    let (bytes, ops) = (bytes as f64 / BYTE_UNITS as f64, ops as f64 / OP_UNITS as f64);
    assert!((ops * 10.0 - bytes).abs() < 1e-4, "{bytes} bytes, {ops} operations");
    (bytes * 1_000.0).round() / 1_000.0
}

#[test]
fn operations_across_the_first_end_count_by_their_share() {
    let control = crew();
    // Does not see the end at 12 ms: from 0 to 8, and from 8 to 16, half of it before.
    let unaware = account(&control, 0, 0, moves(&[8, 8]));
    let first = account(&control, 0, 0, moves(&[5, 7]));
    assert_eq!(control.first_ended(), Some(12 * MS));
    // From 8 to 24 ms a quarter is before, and nothing of what follows, however much it is.
    let long = account(&control, 0, 0, moves(&[4, 4, 16, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]));
    let late = account(&control, 0, 13, moves(&[1, 1]));
    // One that ends exactly then counts whole.
    let level = account(&control, 0, 2, moves(&[10, 5]));
    let all = [&unaware, &first, &long, &late, &level].map(|account| tenths(&control, account));
    assert_eq!(all, [15.0, 20.0, 22.5, 0.0, 10.0]);
}

#[test]
fn the_return_of_fsync_is_an_end() {
    let control = crew();
    let flushing = |ms, flush_ms| Script { flush: (flush_ms * MS, Ok(())), ..moves(&[ms, ms]) };
    let first = account(&control, 0, 0, flushing(3, 20));
    assert_eq!(control.first_ended(), Some(26 * MS));
    // All of it lies before; of the other, 2/16 of the second.
    let done = account(&control, 0, 0, flushing(4, 40));
    let other = account(&control, 0, 0, moves(&[24, 16]));
    let all = [&first, &done, &other].map(|account| tenths(&control, account));
    assert_eq!(all, [20.0, 20.0, 11.25]);
}

#[test]
fn warm_up_counts_from_its_end_only() {
    let control = crew();
    // Warm-up to 10 ms, first end at 24. Of 6 to 16 ms 6/10 lie after the warm-up.
    let first = account(&control, 10, 0, moves(&[6, 10, 8]));
    // Across both: 14/40. Up to the end of the warm-up: nothing of the first, 14/20 of the second.
    let across = account(&control, 10, 0, moves(&[40]));
    let up_to = account(&control, 10, 0, moves(&[10, 20, 1]));
    let all = [&first, &across, &up_to].map(|account| tenths(&control, account));
    assert_eq!(all, [16.0, 3.5, 7.0]);
}

#[test]
fn an_end_in_the_warm_up_leaves_nothing() {
    let control = crew();
    let first = account(&control, 30, 0, moves(&[6, 10]));
    let other = account(&control, 30, 0, moves(&[20, 20, 20]));
    assert_eq!(control.first_ended(), Some(16 * MS));
    assert_eq!([tenths(&control, &first), tenths(&control, &other)], [0.0, 0.0]);
}

#[test]
fn failed_operations_count_nothing_and_end_nobody() {
    let control = crew();
    let fails = |ms| Step::Fails(ms * MS, BROKEN);
    let nothing = Script { steps: vec![fails(1), fails(1)], flush: (0, Ok(())) };
    drop(account(&control, 0, 0, nothing));
    assert_eq!(control.first_ended(), None);
    let first = account(&control, 0, 0, moves(&[10]));
    // From 0 to 5 and from 8 to 12 ms, and a failed one across the first end of another thread.
    let steps = vec![Step::Moves(5 * MS), fails(3), Step::Moves(4 * MS), fails(9)];
    let mixed = account(&control, 0, 0, Script { steps, flush: (0, Ok(())) });
    let steps = vec![Step::Moves(5 * MS), fails(9), Step::Moves(MS)];
    let failed = account(&control, 0, 0, Script { steps, flush: (0, Ok(())) });
    let all = [&first, &mixed, &failed].map(|account| tenths(&control, account));
    assert_eq!(all, [10.0, 15.0, 10.0]);
}

#[test]
fn an_earlier_end_that_shows_later_is_the_one_that_counts() {
    let control = crew();
    drop(account(&control, 0, 0, moves(&[20])));
    // It sees the end at 20 ms; the one at 18 shows only then.
    let other = account(&control, 0, 0, moves(&[15, 2, 2, 2, 9]));
    let first = account(&control, 0, 0, moves(&[18]));
    assert_eq!(control.first_ended(), Some(18 * MS));
    assert_eq!([tenths(&control, &other), tenths(&control, &first)], [25.0, 10.0]);
}
