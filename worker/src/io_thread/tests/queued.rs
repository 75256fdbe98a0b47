//! The loop of several operations in flight, on a queue and a clock that follow a script.

use super::*;
use crate::engine::scripted::{ScriptedQueue, Wave};

/// A thread that writes blocks of ten bytes by a queue. Each reading of the clock takes `tick`.
fn play(depth: u32, tick: u64, job: Job, control: &Control, waves: Vec<Wave>) -> Played {
    let thread = Thread::writer(job.blocks.min(100), 1_000, 0, depth);
    thread.in_flight(depth, tick, job, control, waves)
}

pub(super) struct Played {
    pub(super) report: ThreadReport,
    pub(super) account: Taken<Account>,
    pub(super) queue: ScriptedQueue,
}

impl Thread {
    pub(super) fn in_flight(
        self,
        depth: u32,
        tick: u64,
        job: Job,
        control: &Control,
        waves: Vec<Wave>,
    ) -> Played {
        let time = Arc::new(AtomicU64::new(T0));
        let mut queue = ScriptedQueue::new(depth, &time, waves);
        let source = Single::new(Sequential::new(Arc::clone(&self.blocks)), OpKind::Write, 0);
        let timeline = Timeline::new(StampClock::gettime(), T0);
        let (seat, watch) = seat(self.account);
        let bench = Bench { job: &job, timeline: &timeline, control };
        let engine = &mut queue;
        let ready = QueuedLoop { seat, engine, fittings: self.fittings, bench };
        drop(ready.run(source, ScriptClock { time: &time, tick }).unwrap());
        let account = watch.take(Whereabouts::Ended).unwrap();
        Played { report: report(&account), account, queue }
    }
}

fn share(blocks: u64) -> Job {
    Job { blocks, deadline_ns: None, flush_at_end: false }
}

fn ms(ms: u64) -> Option<i64> {
    Some((ms * MS).cast_signed())
}

fn numbers(queue: &ScriptedQueue) -> Vec<u64> {
    queue.handed.iter().map(|request| request.number).collect()
}

#[test]
fn a_queue_is_kept_full_until_nothing_is_left() {
    // Depth 3, five blocks: the third completes first, then the first two, then the last two.
    let waves = vec![
        Wave::Done(4 * MS, vec![2]),
        Wave::Done(5 * MS, vec![1, 0]),
        Wave::Done(2 * MS, vec![4]),
        Wave::Done(MS, vec![3]),
    ];
    let Played { report, account, queue } = play(3, 0, share(5), &alone(), waves);
    assert_eq!((report.end, report.ops(), report.bytes()), (ThreadEnd::Finished, 5, 50));
    assert_eq!(numbers(&queue), [0, 1, 2, 3, 4]);
    assert_eq!(queue.in_flight, [3, 3, 2, 1]);
    // It was out of work before each slot had been used once.
    assert_eq!((report.first_issue_ns, report.busy_begin_ns), (Some(0), None));
    // From the completion at 9 ms on there was one block for two free slots: none at 11 ms.
    assert_eq!((report.busy_end_ns, report.ended_ns), (ms(9), ms(12)));
    assert_eq!(report.written, written(Written::All));
    // From 0 to 4, 9 and 9 ms, from 4 to 12, and from 9 to 11.
    let mut account = account;
    let (_, histograms) = account.lanes_mut()[0].close(|_| {}).latency.unwrap();
    let latency = histograms.service.to_latency();
    assert_eq!((latency.count, latency.min_ns, latency.max_ns), (5, 2 * MS, 9 * MS));
}

#[test]
fn a_queue_is_busy_once_it_has_turned_over() {
    // Depth 2, six blocks, one completion each 4 ms: the second slot is used again at 8 ms.
    let waves = (0..6).map(|wave| Wave::Done(4 * MS, vec![wave])).collect();
    let Played { report, queue, .. } = play(2, 0, share(6), &alone(), waves);
    assert_eq!(queue.in_flight, [2, 2, 2, 2, 2, 1]);
    assert_eq!((report.first_issue_ns, report.begin_ns), (Some(0), Some(0)));
    assert_eq!((report.busy_begin_ns, report.busy_end_ns), (ms(8), ms(20)));
    assert_eq!(report.ended_ns, ms(24));
}

#[test]
fn a_share_below_the_depth_never_fills_the_queue() {
    let waves = vec![Wave::Done(MS, vec![1]), Wave::Done(2 * MS, vec![0])];
    let Played { report, queue, .. } = play(4, 0, share(2), &alone(), waves);
    assert_eq!((report.end, report.ops()), (ThreadEnd::Finished, 2));
    assert_eq!((report.first_issue_ns, report.busy_begin_ns), (Some(0), None));
    // It was out of work as soon as it began.
    assert_eq!((report.busy_end_ns, report.ended_ns), (Some(0), ms(3)));
    assert_eq!(queue.in_flight, [2, 1]);
}

#[test]
fn what_is_in_flight_at_the_deadline_counts() {
    let job = Job { blocks: u64::MAX, deadline_ns: Some(10 * MS), flush_at_end: false };
    let waves =
        vec![Wave::Done(6 * MS, vec![0]), Wave::Done(6 * MS, vec![2]), Wave::Done(3 * MS, vec![1])];
    let Played { report, queue, .. } = play(2, 0, job, &alone(), waves);
    assert_eq!((report.end, report.ops()), (ThreadEnd::Deadline, 3));
    assert_eq!(queue.in_flight, [2, 2, 1]);
    assert_eq!((report.busy_end_ns, report.ended_ns), (ms(12), ms(15)));
}

#[test]
fn what_was_chosen_at_the_deadline_is_not_handed_over() {
    // Each reading takes 1 ms: the loop begins at 0, hands over at 1, and hears at 6 that one is
    // complete; when it is about to hand over the next one, it is 7 ms.
    let job = Job { blocks: u64::MAX, deadline_ns: Some(7 * MS), flush_at_end: false };
    let waves = vec![Wave::Done(4 * MS, vec![0]), Wave::Done(4 * MS, vec![1])];
    let Played { report, queue, .. } = play(2, MS, job, &alone(), waves);
    assert_eq!((report.end, report.ops()), (ThreadEnd::Deadline, 2));
    assert_eq!(numbers(&queue), [0, 1]);
    assert_eq!((report.first_issue_ns, report.busy_begin_ns), (ms(1), None));
    assert_eq!((report.busy_end_ns, report.ended_ns), (ms(7), ms(12)));
    assert_eq!((report.bytes_touched, report.passes_milli), (Some(20), 20));
}

#[test]
fn a_stop_waits_for_what_is_in_flight() {
    let control = Arc::new(alone());
    let waves = vec![
        Wave::Done(MS, vec![1]),
        Wave::Stopped(Arc::clone(&control), Box::new(Wave::Done(MS, vec![0]))),
        Wave::Done(MS, vec![3, 2]),
    ];
    let Played { report, queue, .. } = play(3, 0, share(50), &control, waves);
    assert_eq!((report.end, report.ops()), (ThreadEnd::Stopped, 4));
    assert_eq!(queue.in_flight, [3, 3, 2]);
    assert_eq!((report.busy_end_ns, report.ended_ns, report.fsync_ns), (ms(2), ms(3), None));
}

#[test]
fn a_fatal_error_lets_the_others_come_to_an_end() {
    let waves = vec![Wave::Fails(2 * MS, 1, NO_SPACE), Wave::Done(3 * MS, vec![2, 0])];
    let Played { report, queue, .. } = play(3, 0, share(50), &alone(), waves);
    assert_eq!((report.end, report.ops(), report.errors()), (ThreadEnd::Errors, 2, 1));
    assert_eq!(queue.in_flight, [3, 2]);
    assert_eq!((report.busy_end_ns, report.ended_ns), (ms(2), ms(5)));
    let range = |at: u64| Extent { offset: 100 + at, length: 10 };
    assert_eq!(report.written, written(Written::Ranges(vec![range(0), range(20)])));
}

#[test]
fn a_queue_calls_the_roll_once() {
    let control = Control::new(2, 1);
    let waves = vec![Wave::Done(MS, vec![0]), Wave::Done(MS, vec![1, 2])];
    let Played { report, .. } = play(2, MS, share(3), &control, waves);
    assert_eq!(report.ops(), 3);
    assert!(!control.all_have_begun(), "the other has not begun");
    control.has_begun();
    assert!(control.all_have_begun());
}

#[test]
fn a_pause_follows_each_burst_of_completions() {
    let control = alone();
    let mut thread = Thread::writer(4, 1_000, 0, 2);
    thread.fittings.pacing = Pacing::think(20_000, 2, StampClock::gettime(), &control);
    // Each reading of the clock takes 100 ns. Two have completed at about 15 us: nothing is issued
    // before about 35 us.
    let waves = vec![
        Wave::Done(10_000, vec![0]),
        Wave::Done(5_000, vec![1]),
        Wave::Done(10_000, vec![2]),
        Wave::Done(40_000, vec![3]),
    ];
    let Played { report, queue, .. } = thread.in_flight(2, 100, share(4), &control, waves);
    assert_eq!((report.end, report.ops()), (ThreadEnd::Finished, 4));
    assert_eq!(queue.in_flight, [2, 2, 1, 1]);
    let waits: Vec<_> = queue.waits.iter().map(|wait| wait.map(|wait| wait.as_micros())).collect();
    // The third is in flight from 10 us on; it is over at 25 us, and the last waits 10 us more.
    assert_eq!(waits, [None, None, Some(20), None]);
}
