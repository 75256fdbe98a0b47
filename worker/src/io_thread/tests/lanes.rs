//! Two kinds of operation in one thread, and the point's kinds of which it has none.

use std::collections::VecDeque;

use super::*;
use crate::engine::Request;

/// A source of given operations.
struct Given(VecDeque<Request>);

impl Source for Given {
    fn next(&mut self) -> Option<Request> {
        self.0.pop_front()
    }
}

#[test]
fn kinds_keep_their_own_accounts_and_hold_back_nobody() {
    let ops = [OpKind::Write, OpKind::Read, OpKind::Stat];
    let Thread { account, fittings, mut inlets, .. } = Thread::of(&ops, 10, 10, 0, 1);
    let request = |op, lane, number| {
        let offset = 100 + number * 10;
        Request { op, lane, file: 0, bytes: 10, number, offset, blocks: 1 }
    };
    let (write, read) = (|n| request(OpKind::Write, 0, n), |n| request(OpKind::Read, 1, n));
    let source = Given([write(0), read(1), write(2), read(3), read(4)].into());
    let time = Arc::new(AtomicU64::new(T0));
    // Ends at 4, 7, 12, 14 (failed) and 35 ms.
    let failure = Failure { call: Call::Read, errno: libc::EIO };
    let steps = vec![
        Step::Moves(4 * MS),
        Step::Moves(3 * MS),
        Step::Moves(5 * MS),
        Step::Fails(2 * MS, failure),
        Step::Moves(21 * MS),
    ];
    let mut engine = Scripted::new(10, &time, steps);
    let timeline = Timeline::new(StampClock::gettime(), T0);
    let (job, control) = (Job { blocks: 10, deadline_ns: None, flush_at_end: false }, alone());
    let bench = Bench { job: &job, timeline: &timeline, control: &control };
    let (seat, watch) = seat(account);
    let steps = StepsLoop { seat, engine: &mut engine, fittings, bench };
    drop(steps.run(source, ScriptClock { time: &time, tick: 0 }).unwrap());
    let account = watch.take(Whereabouts::Ended).unwrap();
    let report = report(&account);
    let counts: Vec<_> = report.counts.iter().map(|c| (c.op, c.bytes, c.ops, c.errors)).collect();
    let expected = [(OpKind::Write, 20, 2, 0), (OpKind::Read, 20, 2, 1), (OpKind::Stat, 0, 0, 0)];
    assert_eq!(counts, expected);
    // All have passed the intervals that the thread has, whatever it did in them.
    assert!(inlets.iter().all(|inlet| inlet.passed() == 3));
    assert!(account.lanes().iter().all(|lane| lane.interval() == 3));
    let handed: Vec<Vec<_>> = inlets
        .iter_mut()
        .map(|inlet| {
            std::iter::from_fn(|| inlet.counters()).map(|c| (c.k, c.ops, c.errors)).collect()
        })
        .collect();
    assert_eq!(handed, [vec![(0, 1, 0), (1, 1, 0)], vec![(0, 1, 0), (1, 0, 1)], vec![]]);
    // The failed read has no latency.
    let latencies: Vec<Vec<_>> = inlets
        .iter_mut()
        .map(|inlet| {
            let full = std::iter::from_fn(|| inlet.latency());
            full.map(|full| (full.k, full.counts.service.to_latency().max_ns)).collect()
        })
        .collect();
    assert_eq!(latencies, [vec![(0, 4 * MS), (1, 5 * MS)], vec![(0, 3 * MS)], vec![]]);
    // Only writes are in what was written, and a mix does not say what it touched.
    assert_eq!(report.written.len(), 1);
    assert_eq!(report.bytes_touched, None);
}
