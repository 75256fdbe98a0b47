//! Points that do not go the ordinary way.

use iofleet_shared::work::{Extent, FilePart, Files};

use super::*;

#[test]
fn the_next_arming_waits_for_one_that_was_stopped() {
    let second = PointId { index: 3, attempt: 1 };
    let mut fixture = Fixture::at(Phase::Arming);
    assert_eq!(words(&fixture.handle(stop())), "NotStarted>1");
    assert_eq!(fixture.handle(arm(second)), []);
    assert_eq!(fixture.machine.phase(), Phase::Arming);
    let first = Event::Armed { ticket: Ticket(1), result: Ok(5) };
    assert_eq!(words(&fixture.handle(first)), "DropCrew Arm");
    let armed = Event::Armed { ticket: Ticket(2), result: Ok(6) };
    let effects = fixture.handle(armed);
    let notice = Notice::Armed { point: second, took_ns: 6 };
    assert_eq!(effects, [Effect::Send { peer: A, notice }]);
    // Stopped before it began: there is nothing to wait for.
    let mut fixture = Fixture::at(Phase::Arming);
    fixture.handle(stop());
    fixture.handle(arm(second));
    let effects = fixture.handle(command(A, Command::Stop { point: second }));
    assert_eq!(words(&effects), "NotStarted>1");
    let first = Event::Armed { ticket: Ticket(1), result: Ok(5) };
    assert_eq!(words(&fixture.handle(first)), "DropCrew");
}

fn why(effects: &[Effect]) -> &str {
    for effect in effects {
        if let Effect::Send { notice: Notice::NotStarted { point: POINT, why }, .. } = effect {
            return why;
        }
    }
    panic!("no NotStarted in {effects:?}");
}

#[test]
fn a_start_in_the_past_is_not_taken() {
    let mut fixture = Fixture::at(Phase::Armed);
    let effects = fixture.handle(start(NOW - 7 * MS));
    assert_eq!(words(&effects), "DropCrew NotStarted>1");
    assert_eq!(why(&effects), "T0 was past by 7 ms when it became known here");
    assert_eq!(fixture.machine.phase(), Phase::Claimed);
    // A map that leads before the worker's boot is past too.
    let mut fixture = Fixture::at(Phase::Armed);
    let map = ClockMap { offset_ns: i64::MIN, ..ClockMap::IDENTITY };
    let start = Command::Start { point: POINT, t0_fleet_ns: T0, map };
    assert_eq!(words(&fixture.handle(command(A, start))), "DropCrew NotStarted>1");
}

#[test]
fn the_map_leads_to_the_workers_clock() {
    let mut fixture = Fixture::at(Phase::Armed);
    let map = ClockMap { offset_ns: 1000, ..ClockMap::IDENTITY };
    let start = Command::Start { point: POINT, t0_fleet_ns: T0, map };
    fixture.handle(command(A, start));
    assert_eq!(fixture.machine.next_deadline(), Some(T0 + 1000));
}

#[test]
fn without_a_commit_in_time_nothing_starts() {
    let mut fixture = Fixture::at(Phase::Ready);
    let effects = fixture.after(S, Event::Tick);
    assert_eq!(words(&effects), "DropCrew NotStarted>1");
    assert_eq!(why(&effects), "no commit came before T0");
    // What crossed the notice on the wire is no error.
    assert_eq!(fixture.handle(commit()), []);
    assert_eq!(fixture.handle(stop()), []);
    // The commit itself finds T0 past, whatever the timer does.
    let mut fixture = Fixture::at(Phase::Ready);
    assert_eq!(why(&fixture.after(S, commit())), "no commit came before T0");
    // Or so near that threads may have looked already.
    let mut fixture = Fixture::at(Phase::Ready);
    let effects = fixture.after(S - MS + 1, commit());
    assert_eq!(why(&effects), "the commit came less than 1 ms before T0");
    let mut fixture = Fixture::at(Phase::Ready);
    assert_eq!(words(&fixture.after(S - MS, commit())), "CommitCrew");
}

#[test]
fn a_stop_at_the_last_moment_leads_to_a_report() {
    let mut fixture = Fixture::at(Phase::Waiting);
    assert_eq!(fixture.after(S - MS / 2, stop()), []);
    assert_eq!(words(&fixture.after(MS / 2, Event::Tick)), "Began StopCrew");
    // Told once is enough.
    assert_eq!(fixture.handle(stop()), []);
    assert_eq!(words(&fixture.handle(ended(Ticket(1)))), "DropCrew Settle");
}

#[test]
fn who_stops_does_not_wait_for_a_flush() {
    let mut fixture = Fixture::at(Phase::Draining);
    assert!(!fixture.machine.has_delivery());
    let effects = fixture.handle(stop());
    let settle = Effect::Settle { ticket: Ticket(3), dir: dir(), flush: false };
    assert_eq!(effects, [settle]);
    assert_eq!(fixture.handle(stop()), [], "once is enough");
    let samples = vec![sample(5)];
    let answer = Event::Settled { ticket: Ticket(3), took_ns: None, samples };
    assert_eq!(fixture.handle(answer), []);
    let last = fixture.deliveries().pop().unwrap();
    let Content::Report(report) = last.content else {
        panic!("{last:?}");
    };
    assert_eq!((report.syncfs_ns, report.samples), (None, 1));
    // The flush comes back later, and is nothing to anybody.
    assert_eq!(
        fixture.handle(Event::Settled { ticket: Ticket(2), took_ns: Some(1), samples: vec![] }),
        []
    );
    assert_eq!(fixture.deliveries(), []);
}

#[test]
fn reads_and_stuck_threads_are_not_flushed() {
    let mut fixture = Fixture::at(Phase::Running);
    let (ticks, report) = (vec![], report(ThreadEnd::Stuck));
    let effects = fixture.handle(Event::Ended { ticket: Ticket(1), ticks, report });
    let settle = |ticket| Effect::Settle { ticket, dir: dir(), flush: false };
    assert_eq!(effects, [Effect::DropCrew { ticket: Ticket(1) }, settle(Ticket(2))]);
    fixture.handle(settled());
    assert_eq!(fixture.deliveries().len(), 1);
    let mut fixture = Fixture::at(Phase::Claimed);
    fixture.handle(command(A, Command::Arm(Box::new(plan(POINT, OpKind::Read)))));
    fixture.handle(Event::Armed { ticket: Ticket(1), result: Ok(5) });
    fixture.handle(start(T0));
    fixture.handle(commit());
    fixture.now = T0;
    let effects = fixture.handle(ended(Ticket(1)));
    assert_eq!(words(&effects), "Began DropCrew Settle");
    assert_eq!(effects[2], settle(Ticket(2)));
    fixture.handle(settled());
    assert_eq!(fixture.deliveries().len(), 2);
}

/// Nothing was flushed, and no sample taken.
fn settled() -> Event {
    Event::Settled { ticket: Ticket(2), took_ns: None, samples: vec![] }
}

#[test]
fn long_series_go_in_chunks() {
    let mut fixture = Fixture::at(Phase::Running);
    let ticks = vec![Tick::default(); TICKS_PER_FRAME + 1];
    let ticks = vec![(OpKind::Read, vec![Tick::default()]), (OpKind::Write, ticks)];
    let report = report(ThreadEnd::Stuck);
    fixture.handle(Event::Ended { ticket: Ticket(1), ticks, report });
    fixture.handle(settled());
    let deliveries = fixture.deliveries();
    let chunks: Vec<_> = deliveries
        .iter()
        .filter_map(|delivery| match &delivery.content {
            Content::Ticks { op, first, ticks } => Some((*op, *first, ticks.len())),
            Content::Interval(_) | Content::Samples(_) | Content::Report(_) => None,
        })
        .collect();
    let last = (OpKind::Write, TICKS_PER_FRAME as u64, 1);
    assert_eq!(chunks, [(OpKind::Read, 0, 1), (OpKind::Write, 0, TICKS_PER_FRAME), last]);
    assert_eq!(deliveries.len(), 4);
}

#[test]
fn written_ranges_beyond_a_frame_are_not_listed() {
    let mut fixture = Fixture::at(Phase::Running);
    let mut report = report(ThreadEnd::Stuck);
    let range = Extent { offset: 0, length: 1 };
    let written = Written::Ranges(vec![range; 300_000]);
    report.threads.push(thread_report(ThreadEnd::Finished, written.clone()));
    report.threads.push(thread_report(ThreadEnd::Finished, written));
    fixture.handle(Event::Ended { ticket: Ticket(1), ticks: vec![], report });
    fixture.handle(settled());
    let last = fixture.deliveries().pop().unwrap();
    let frame = iofleet_shared::wire::Body::encode(&last);
    assert!(frame.is_ok_and(|frame| frame.len() < 10_000));
    let Content::Report(report) = last.content else {
        panic!("the report is last");
    };
    let kinds: Vec<_> = report
        .threads
        .iter()
        .flat_map(|thread| &thread.written)
        .map(|part| &part.written)
        .collect();
    assert_eq!(kinds, [&Written::All, &Written::Scattered, &Written::Scattered]);
}

#[test]
fn a_coordinator_that_takes_nothing_ends_its_point() {
    let mut fixture = Fixture::at(Phase::Running);
    let more = || Event::Interval { ticket: Ticket(1), interval: interval() };
    for _ in 0..DELIVERIES_KEPT_MAX {
        assert_eq!(fixture.handle(more()), []);
    }
    assert_eq!(words(&fixture.handle(more())), "StopCrew");
    assert_eq!(fixture.handle(more()), []);
}

#[test]
fn a_refusal_names_both_points() {
    let mut fixture = Fixture::at(Phase::Armed);
    let other = PointId { index: 9, attempt: 1 };
    let effects = fixture.handle(command(A, Command::Commit { point: other }));
    let [Effect::Send { notice: Notice::Refused(refusal), .. }] = &effects[..] else {
        panic!("{effects:?}");
    };
    assert_eq!(refusal.point, Some(other));
    let expected = "point 9 (attempt 2) can't be committed: the worker is armed with point 3";
    assert_eq!(refusal.text, expected);
}

/// The file of a plan's first thread.
fn part(plan: &mut WorkerPlan) -> &mut FilePart {
    let Files::Named(parts) = &mut plan.threads[0].files else {
        panic!("a file by name");
    };
    &mut parts[0]
}

/// Makes a plan senseless.
type Spoil = fn(&mut WorkerPlan);

#[test]
fn plans_without_sense_are_refused() {
    let flaws: [(&str, Spoil); 11] = [
        ("0 threads", |plan| plan.threads.clear()),
        ("a block of 0 B", |plan| plan.blocks[0].bytes = 0),
        ("an interval of 0 ns", |plan| plan.interval_ns = 0),
        ("a duration of 0", |plan| {
            plan.amount = Amount::Time { duration_ns: 0, repeat: true };
        }),
        ("and a duration of 0 ns", |plan| plan.ramp_ns = u64::MAX),
        ("a whole number of intervals", |plan| plan.ramp_ns = S + 1),
        ("0 extents", |plan| part(plan).extents.clear()),
        ("overflows", |plan| part(plan).extents[0].offset = u64::MAX),
        ("overlaps", |plan| {
            let extent = part(plan).extents[0];
            part(plan).extents.push(extent);
        }),
        ("no whole block", |plan| part(plan).extents[0].length = 4095),
        ("3 operations for 2 blocks", |plan| plan.threads[0].operations = 3),
    ];
    for (flaw, spoil) in flaws {
        let mut spoilt = plan(POINT, OpKind::Write);
        spoil(&mut spoilt);
        let mut fixture = Fixture::at(Phase::Claimed);
        let effects = fixture.handle(command(A, Command::Arm(Box::new(spoilt))));
        let [Effect::Send { notice: Notice::Refused(refusal), .. }] = &effects[..] else {
            panic!("{effects:?}");
        };
        assert_eq!(refusal.kind, RefusalKind::Internal);
        assert!(refusal.text.contains(flaw), "{flaw}: {}", refusal.text);
        assert_eq!(fixture.machine.phase(), Phase::Claimed);
    }
}
