//! Operations that arrive at their times, in both loops.

use iofleet_shared::work::Arrivals;

use super::*;
use crate::{arrivals::ArrivalQueue, engine::scripted::Wave};

const US: u64 = 1_000;

/// An arrival every so many us, the first at T0.
fn every(us: u64) -> Arc<ArrivalQueue> {
    let per_1000_s = 1_000_000_000 / us;
    let arrivals = Arrivals { per_1000_s, exponential: false, phase_ns: 0, seed: 0 };
    Arc::new(ArrivalQueue::new(&arrivals))
}

fn job(deadline_us: u64) -> Job {
    Job { blocks: u64::MAX, deadline_ns: Some(deadline_us * US), flush_at_end: false }
}

/// Least and greatest of service and response, and how many.
fn latencies(account: &mut Account) -> [(u64, u64, u64); 2] {
    let rest = account.lanes_mut()[0].close(|_| {});
    let (_, histograms) = rest.latency.unwrap();
    let of = |counts: &iofleet_shared::stats::LatencyCounts| {
        let latency = counts.to_latency();
        (latency.count, latency.min_ns, latency.max_ns)
    };
    [of(&histograms.service), of(histograms.response.as_ref().unwrap())]
}

#[test]
fn a_late_thread_answers_later_and_leaves_the_rest() {
    let (queue, control) = (every(10), alone());
    let mut thread = Thread::writer(100, 1_000, 0, 1);
    thread.fittings.pacing = Pacing::open(&queue, StampClock::gettime(), &control);
    let time = Arc::new(AtomicU64::new(T0));
    // Each takes 25 us: those that arrived at 0, 10, 20 and 30 end at 25, 50, 75 and 100.
    let steps = (0..4).map(|_| Step::Moves(25 * US)).collect();
    let mut engine = Scripted::new(10, &time, steps);
    let clock = ScriptClock { time: &time, tick: 0 };
    let mut account = thread.in_steps(&mut engine, job(100), clock, &control);
    let report = report(&account);
    assert_eq!((report.end, report.ops()), (ThreadEnd::Deadline, 4));
    assert_eq!(report.ended_ns, Some(100_000));
    assert_eq!(latencies(&mut account), [(4, 25 * US, 25 * US), (4, 25 * US, 70 * US)]);
    // Of ten arrivals before 100 us six were never issued.
    assert_eq!(queue.count_between(0, 100 * US) - account.issued(), 6);
    // At 100 us the eleventh arrives as well: seven wait, the one in hand included.
    assert_eq!(account.offered_totals().backlog_max, 7);
}

#[test]
fn a_thread_in_time_waits_for_each_arrival() {
    let (queue, control) = (every(50), alone());
    let mut thread = Thread::writer(100, 1_000, 0, 1);
    thread.fittings.pacing = Pacing::open(&queue, StampClock::gettime(), &control);
    let time = Arc::new(AtomicU64::new(T0));
    let mut engine = Scripted::new(10, &time, (0..4).map(|_| Step::Moves(5 * US)).collect());
    // Each reading takes 100 ns.
    let clock = ScriptClock { time: &time, tick: 100 };
    let mut account = thread.in_steps(&mut engine, job(200), clock, &control);
    assert_eq!(report(&account).end, ThreadEnd::Deadline);
    let [service, (count, least, most)] = latencies(&mut account);
    assert_eq!((count, service), (4, (4, 5_100, 5_100)));
    // A few readings after the arrival, and none before it.
    assert!(least >= 5_100 && most < 7_000, "{least} to {most}");
    assert_eq!(queue.count_between(0, 200 * US) - account.issued(), 0);
}

#[test]
fn a_queue_hands_over_what_has_arrived() {
    let (queue, control) = (every(10), alone());
    let mut thread = Thread::writer(100, 1_000, 0, 2);
    thread.fittings.pacing = Pacing::open(&queue, StampClock::gettime(), &control);
    // The first is alone until 10 us; the second arrives then, and both are over at 35 us. Those of
    // 20 and 30 us go together at 35, when the deadline's 40 us have not come.
    let waves = vec![
        Wave::Done(10 * US, vec![]),
        Wave::Done(25 * US, vec![1, 0]),
        Wave::Done(30 * US, vec![2, 3]),
    ];
    let played = thread.in_flight(2, 0, job(40), &control, waves);
    let mut account = played.account;
    assert_eq!((played.report.end, played.report.ops()), (ThreadEnd::Deadline, 4));
    assert_eq!(played.queue.in_flight, [1, 2, 2]);
    let waits: Vec<_> = played.queue.waits.iter().map(|wait| wait.map(|w| w.as_micros())).collect();
    assert_eq!(waits, [Some(10), None, None]);
    // Service: 35, 25, 30, 30. Response: 35, 25, 45, 35.
    assert_eq!(latencies(&mut account), [(4, 25 * US, 35 * US), (4, 25 * US, 45 * US)]);
    assert_eq!(queue.count_between(0, 40 * US) - account.issued(), 0);
    // At 35 us two had arrived and were not issued.
    assert_eq!(account.offered_totals().backlog_max, 2);
    assert_eq!(played.report.busy_end_ns, Some(65_000));
}
