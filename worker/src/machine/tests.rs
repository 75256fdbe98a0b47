//! The table of every phase and event, and the sequences that matter, by hand.

use std::fmt::Write;

use iofleet_shared::{
    clock::ClockMap,
    limits::{GIVE_UP_AFTER, TICKS_PER_FRAME},
    stats::{ThreadEnd, ThreadReport, Written},
    wire::Content,
    work::{Amount, EngineKind, Extent, Fsync, OpKind, Pattern, ThreadPlan},
};

use super::*;

const MS: u64 = 1_000_000;
const S: u64 = 1000 * MS;
/// When the tests begin, on the worker's clock.
const NOW: u64 = 1000 * S;
/// T0 of every point.
const T0: u64 = NOW + S;
const A: PeerId = PeerId(1);
const B: PeerId = PeerId(2);
const POINT: PointId = PointId { index: 3, attempt: 0 };

fn facts() -> HostFacts {
    HostFacts {
        hostname: "h".to_owned(),
        boot_id: "b".to_owned(),
        net_namespace: 1,
        incarnation: 7,
        version: "0".to_owned(),
        kernel: "k".to_owned(),
        cpus: 2,
        memory_bytes: 1,
        stamp_clock: "tsc".to_owned(),
        stamp_resolution_ns: 1,
        stamp_cost_ns: 20,
        control_priority: false,
    }
}

fn target_facts() -> TargetFacts {
    TargetFacts {
        fs_type: "tmpfs".to_owned(),
        mount_source: "none".to_owned(),
        mount_options: "rw".to_owned(),
        free_bytes: 1,
        total_bytes: 1,
        free_inodes: None,
        alignment: None,
    }
}

fn dir() -> DatasetDir {
    DatasetDir { path: "/mnt/t".to_owned(), name: "d".to_owned(), campaign: "c1".to_owned() }
}

fn spec() -> TargetSpec {
    TargetSpec {
        dir: dir(),
        direct: false,
        direct_blocks: vec![],
        writes: true,
        bytes: 1,
        files: 1,
        threads: 1,
        buffer_bytes: 1,
    }
}

fn plan(point: PointId, op: OpKind) -> WorkerPlan {
    WorkerPlan {
        point,
        dir: dir(),
        remove: vec![],
        op,
        engine: EngineKind::Sync,
        pattern: Pattern::Sequential,
        block_bytes: 4096,
        direct: false,
        fsync: Fsync::End,
        create: true,
        amount: Amount::Share,
        ramp_ns: 0,
        interval_ns: S,
        stuck_after_ns: S,
        threads: vec![ThreadPlan {
            thread: 0,
            file: "f".to_owned(),
            extents: vec![Extent { offset: 0, length: 8192 }],
            operations: 2,
            seed: 1,
        }],
    }
}

fn thread_report(end: ThreadEnd, written: Written) -> ThreadReport {
    ThreadReport {
        thread: 0,
        end,
        bytes: 8192,
        ops: 2,
        errors: 0,
        ramp_bytes: 0,
        ramp_ops: 0,
        ramp_errors: 0,
        short_transfers: 0,
        first_issue_ns: Some(0),
        ended_ns: Some(1),
        busy_end_ns: Some(1),
        fsync_ns: None,
        open_ns: 1,
        bytes_touched: 8192,
        passes_milli: 1000,
        unfinished_ns: None,
        written,
    }
}

fn report(end: ThreadEnd) -> Box<PointReport> {
    Box::new(PointReport {
        point: POINT,
        t0_worker_ns: T0,
        threads: vec![thread_report(end, Written::All)],
        errors: vec![],
        intervals: 0,
        ticks: 0,
        syncfs_ns: None,
        cpu_share: Some(0.5),
        stamp_residual_ns: 0,
        sums: None,
    })
}

fn command(peer: PeerId, command: Command) -> Event {
    Event::Command { peer, command }
}

fn claim(peer: PeerId, campaign: &str) -> Event {
    let holder = format!("user{}@host, pid 12", peer.0);
    let (campaign, node) = (campaign.to_owned(), "n1".to_owned());
    command(peer, Command::Claim { campaign, holder, node })
}

fn arm(point: PointId) -> Event {
    command(A, Command::Arm(Box::new(plan(point, OpKind::Write))))
}

fn start(t0_fleet_ns: u64) -> Event {
    command(A, Command::Start { point: POINT, t0_fleet_ns, map: ClockMap::IDENTITY })
}

fn commit() -> Event {
    command(A, Command::Commit { point: POINT })
}

fn stop() -> Event {
    command(A, Command::Stop { point: POINT })
}

fn release(keep: bool) -> Event {
    command(A, Command::Release { keep })
}

fn ended(ticket: Ticket) -> Event {
    Event::Ended { ticket, ticks: vec![Tick::default()], report: report(ThreadEnd::Finished) }
}

/// A machine on its way, and the ticket of its crew.
struct Fixture {
    machine: Machine,
    crew: Ticket,
    now: u64,
}

impl Fixture {
    /// Drives a machine to a phase by the ordinary way.
    fn at(phase: Phase) -> Self {
        let mut fixture =
            Self { machine: Machine::new(facts()), crew: Ticket(0), now: NOW };
        for (reached, event) in [
            (Phase::Claimed, claim(A, "c1")),
            (Phase::Arming, arm(POINT)),
            (Phase::Armed, Event::Armed { ticket: Ticket(1), result: Ok(5) }),
            (Phase::Ready, start(T0)),
            (Phase::Waiting, commit()),
            (Phase::Running, Event::Tick),
            (Phase::Draining, ended(Ticket(1))),
            (Phase::Cleaning, release(false)),
        ] {
            if fixture.machine.phase() == phase {
                break;
            }
            if reached == Phase::Running {
                fixture.now = T0;
            }
            fixture.handle(event);
            assert_eq!(fixture.machine.phase(), reached);
        }
        if phase != Phase::Idle && phase != Phase::Claimed {
            fixture.crew = Ticket(1);
        }
        fixture
    }

    fn handle(&mut self, event: Event) -> Vec<Effect> {
        self.machine.handle(event, self.now)
    }

    fn after(&mut self, ns: u64, event: Event) -> Vec<Effect> {
        self.now += ns;
        self.handle(event)
    }

    fn deliveries(&mut self) -> Vec<Delivery> {
        let mut all = vec![];
        while let Some((peer, delivery)) = self.machine.take_delivery() {
            assert_eq!(peer, A);
            all.push(delivery);
        }
        all
    }
}

/// An effect in short.
fn word(effect: &Effect) -> String {
    match effect {
        Effect::Send { peer, notice } => {
            let what = match notice {
                Notice::Refused(refusal) => format!("Refused({:?})", refusal.kind),
                other => {
                    let text = format!("{other:?}");
                    text.split([' ', '(', '{']).next().unwrap().to_owned()
                }
            };
            format!("{what}>{}", peer.0)
        }
        Effect::Close { peer, .. } => format!("Close>{}", peer.0),
        other => {
            let text = format!("{other:?}");
            text.split([' ', '(', '{']).next().unwrap().to_owned()
        }
    }
}

fn words(effects: &[Effect]) -> String {
    effects.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn events(crew: Ticket) -> Vec<(&'static str, Event)> {
    vec![
        ("claim by another", claim(B, "c2")),
        ("claim by the holder", claim(A, "c1")),
        ("command of another", command(B, Command::Release { keep: false })),
        ("inspect", command(A, Command::Inspect(spec()))),
        ("remove", command(A, Command::Remove(dir()))),
        ("arm", arm(PointId { index: 4, attempt: 0 })),
        ("start", start(T0 + S)),
        ("commit", commit()),
        ("stop", stop()),
        ("acknowledge", command(A, Command::Acknowledge { point: POINT, through: 1 })),
        ("release", release(true)),
        ("alive", Event::Alive { peer: A }),
        ("gone", Event::Gone { peer: A }),
        ("another gone", Event::Gone { peer: B }),
        ("armed", Event::Armed { ticket: crew, result: Ok(5) }),
        (
            "arming failed",
            Event::Armed {
                ticket: crew,
                result: Err(Refusal {
                    kind: RefusalKind::Target,
                    point: None,
                    text: "full".to_owned(),
                }),
            },
        ),
        ("interval", Event::Interval { ticket: crew, interval: NodeInterval::default() }),
        ("ended", ended(crew)),
        ("stale end", ended(Ticket(99))),
        ("stale armed", Event::Armed { ticket: Ticket(99), result: Ok(5) }),
        ("stale removal", Event::Removed { ticket: Ticket(99), removal: Removal::default() }),
        ("stale inspection", Event::Inspected { ticket: Ticket(99), result: Ok(target_facts()) }),
        ("stale flush", Event::Synced { ticket: Ticket(99), took_ns: None }),
        ("tick", Event::Tick),
        ("shutdown", Event::Shutdown),
    ]
}

/// The whole table, so that a changed cell is seen in review.
#[test]
fn every_phase_by_event() {
    let mut table = String::new();
    for phase in Phase::ALL {
        for (name, event) in events(Fixture::at(phase).crew) {
            let mut fixture = Fixture::at(phase);
            let effects = fixture.handle(event);
            let after = fixture.machine.phase();
            if effects.is_empty() && after == phase {
                continue;
            }
            writeln!(table, "{phase} | {name} | {after} | {}", words(&effects)).unwrap();
        }
    }
    let expected = include_str!("table.txt");
    if table != expected {
        panic!("the table is now:\n{table}");
    }
}

#[test]
fn a_point_from_claim_to_release() {
    let mut fixture = Fixture::at(Phase::Idle);
    assert_eq!(
        fixture.handle(claim(A, "c1")),
        [Effect::Send { peer: A, notice: Notice::Claimed(facts()) }]
    );
    let effects = fixture.handle(command(A, Command::Inspect(spec())));
    assert_eq!(effects, [Effect::Inspect { ticket: Ticket(1), spec: spec() }]);
    let found = Event::Inspected { ticket: Ticket(1), result: Ok(target_facts()) };
    let effects = fixture.handle(found);
    assert_eq!(effects, [Effect::Send { peer: A, notice: Notice::Inspected(target_facts()) }]);
    let crew = Ticket(2);
    let effects = fixture.handle(arm(POINT));
    let plan = Box::new(plan(POINT, OpKind::Write));
    assert_eq!(effects, [Effect::Arm { ticket: crew, plan }]);
    let effects = fixture.handle(Event::Armed { ticket: crew, result: Ok(5) });
    let armed = Notice::Armed { point: POINT, took_ns: 5 };
    assert_eq!(effects, [Effect::Send { peer: A, notice: armed }]);
    let effects = fixture.handle(start(T0));
    let ready = Notice::Ready { point: POINT, t0_worker_ns: T0, ahead_ns: S };
    let set = Effect::SetStart { ticket: crew, t0_worker_ns: T0 };
    assert_eq!(effects, [set, Effect::Send { peer: A, notice: ready }]);
    assert_eq!(fixture.machine.next_deadline(), Some(T0));
    let effects = fixture.after(S / 2, commit());
    assert_eq!(effects, [Effect::CommitCrew { ticket: crew }]);
    let effects = fixture.after(S / 2, Event::Tick);
    assert_eq!(effects, [Effect::Began { ticket: crew }]);
    let interval = NodeInterval { bytes: 8192, ops: 2, ..NodeInterval::default() };
    fixture.handle(Event::Interval { ticket: crew, interval: interval.clone() });
    let first = fixture.deliveries();
    let content = Content::Interval(interval);
    assert_eq!(first, [Delivery { point: POINT, number: 0, content }]);
    let effects = fixture.handle(ended(crew));
    let sync = Effect::SyncFs { ticket: Ticket(3), dir: dir() };
    assert_eq!(effects, [Effect::DropCrew { ticket: crew }, sync]);
    assert!(fixture.deliveries().is_empty());
    fixture.handle(Event::Synced { ticket: Ticket(3), took_ns: Some(42) });
    let last = fixture.deliveries();
    assert_eq!(last.iter().map(|delivery| delivery.number).collect::<Vec<_>>(), [1, 2]);
    let Content::Report(report) = &last[1].content else {
        panic!("the last delivery is the report, not {:?}", last[1].content);
    };
    assert_eq!((report.syncfs_ns, report.cpu_share), (Some(42), Some(0.5)));
    // An acknowledgement of less than the report leaves it where it is.
    fixture.handle(command(A, Command::Acknowledge { point: POINT, through: 1 }));
    assert_eq!(fixture.machine.phase(), Phase::Draining);
    fixture.handle(command(A, Command::Acknowledge { point: POINT, through: 2 }));
    assert_eq!(fixture.machine.phase(), Phase::Claimed);
    let effects = fixture.handle(release(true));
    assert_eq!(effects, [Effect::Clean { ticket: Ticket(4), keep: true }]);
    let removal = Removal { files: 0, left: vec!["x: kept".to_owned()] };
    let effects = fixture.handle(Event::Removed { ticket: Ticket(4), removal: removal.clone() });
    assert_eq!(effects, [Effect::Send { peer: A, notice: Notice::Released(removal) }]);
    assert_eq!(fixture.machine.phase(), Phase::Idle);
    assert_eq!(fixture.machine.next_deadline(), None);
}

#[test]
fn a_second_coordinator_is_told_who_holds_the_worker() {
    let mut fixture = Fixture::at(Phase::Claimed);
    fixture.after(130 * S, Event::Alive { peer: A });
    let busy = |effects: Vec<Effect>| match &effects[..] {
        [Effect::Send { peer: B, notice: Notice::Refused(refusal) }] => {
            assert_eq!(refusal.kind, RefusalKind::Busy);
            refusal.text.clone()
        }
        _ => panic!("{effects:?}"),
    };
    let text = busy(fixture.after(3 * S, claim(B, "c2")));
    let start = "held by user1@host, pid 12 for campaign c1, for 2 min 13 s so far: wait until";
    assert!(text.starts_with(start) && !text.contains("silent"), "{text}");
    let text = busy(fixture.after(3 * S, claim(B, "c2")));
    assert!(text.contains("has been silent for 6 s"), "{text}");
    assert!(text.contains("after 15 s of silence"), "{text}");
}

#[test]
fn a_silent_holder_loses_the_worker_and_its_files() {
    let mut fixture = Fixture::at(Phase::Armed);
    let effects = fixture.after(nanoseconds(GIVE_UP_AFTER), claim(B, "c2"));
    assert_eq!(words(&effects), "Close>1 DropCrew Clean");
    let Some(Effect::Clean { ticket, keep: false }) = effects.last() else {
        panic!("{effects:?}");
    };
    let removed = Event::Removed { ticket: *ticket, removal: Removal::default() };
    // The old holder's connection ends in the meantime, which changes nothing.
    assert_eq!(fixture.handle(Event::Gone { peer: A }), []);
    assert_eq!(words(&fixture.handle(removed)), "Claimed>2");
    assert_eq!(fixture.machine.holder(), Some(B));
}

#[test]
fn a_running_point_is_never_taken_over() {
    for phase in [Phase::Waiting, Phase::Running] {
        let mut fixture = Fixture::at(phase);
        fixture.now = T0 + nanoseconds(LEASE) * 2;
        assert_eq!(words(&fixture.handle(Event::Tick)).replace("Began", ""), "");
        assert_eq!(words(&fixture.handle(claim(B, "c2"))), "Refused(Busy)>2");
        assert_eq!(fixture.machine.phase(), Phase::Running);
    }
}

#[test]
fn the_lease_runs_from_the_last_sign_of_life_and_from_the_end_of_the_point() {
    let lease = nanoseconds(LEASE);
    let mut fixture = Fixture::at(Phase::Claimed);
    assert_eq!(fixture.machine.next_deadline(), Some(NOW + lease));
    fixture.after(S, Event::Alive { peer: A });
    assert_eq!(fixture.machine.next_deadline(), Some(NOW + S + lease));
    assert_eq!(fixture.after(lease - 1, Event::Tick), []);
    assert_eq!(words(&fixture.after(1, Event::Tick)), "Close>1 Clean");
    let mut fixture = Fixture::at(Phase::Running);
    fixture.after(2 * lease, ended(Ticket(1)));
    assert_eq!(fixture.machine.next_deadline(), Some(fixture.now + lease));
    assert_eq!(fixture.after(lease - 1, Event::Tick), []);
    assert_eq!(words(&fixture.after(1, Event::Tick)), "Close>1 Clean");
}

#[test]
fn one_claim_waits_until_the_worker_is_clean() {
    let mut fixture = Fixture::at(Phase::Cleaning);
    assert_eq!(fixture.handle(claim(B, "c2")), []);
    let effects = fixture.handle(claim(PeerId(3), "c3"));
    assert_eq!(words(&effects), "Refused(Busy)>3");
    let clean = Event::Removed { ticket: Ticket(3), removal: Removal::default() };
    assert_eq!(words(&fixture.handle(clean)), "Released>1 Claimed>2");
    let mut fixture = Fixture::at(Phase::Cleaning);
    fixture.handle(claim(B, "c2"));
    fixture.handle(Event::Gone { peer: B });
    let clean = Event::Removed { ticket: Ticket(3), removal: Removal::default() };
    assert_eq!(words(&fixture.handle(clean)), "Released>1");
    assert_eq!(fixture.machine.phase(), Phase::Idle);
}

#[test]
fn removal_waits_for_a_running_crew_but_not_for_ever() {
    let mut fixture = Fixture::at(Phase::Running);
    assert_eq!(words(&fixture.handle(Event::Gone { peer: A })), "StopCrew");
    assert_eq!(words(&fixture.handle(ended(Ticket(1)))), "DropCrew Clean");
    let mut fixture = Fixture::at(Phase::Running);
    fixture.handle(Event::Gone { peer: A });
    assert_eq!(fixture.machine.next_deadline(), Some(T0 + LEAVES_WITHIN_NS));
    assert_eq!(fixture.after(LEAVES_WITHIN_NS - 1, Event::Tick), []);
    assert_eq!(words(&fixture.after(1, Event::Tick)), "DropCrew Clean");
    // The crew ends after all: nothing is cleaned twice.
    assert_eq!(words(&fixture.handle(ended(Ticket(1)))), "DropCrew");
}

#[test]
fn removal_waits_for_an_arming_that_nobody_wants_any_more() {
    let mut fixture = Fixture::at(Phase::Arming);
    assert_eq!(fixture.handle(release(false)), []);
    let armed = Event::Armed { ticket: Ticket(1), result: Ok(5) };
    assert_eq!(words(&fixture.handle(armed)), "DropCrew Clean");
    // One that hangs: files are removed without it, and its crew is dropped when it comes.
    let mut fixture = Fixture::at(Phase::Arming);
    fixture.handle(release(false));
    assert_eq!(words(&fixture.after(LEAVES_WITHIN_NS, Event::Tick)), "Clean");
    let armed = Event::Armed { ticket: Ticket(1), result: Ok(5) };
    assert_eq!(words(&fixture.handle(armed)), "DropCrew");
}

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
    let why = effects.iter().find_map(|effect| match effect {
        Effect::Send { notice: Notice::NotStarted { point: POINT, why }, .. } => Some(why),
        _ => None,
    });
    why.unwrap_or_else(|| panic!("{effects:?}"))
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
    assert_eq!(words(&fixture.handle(ended(Ticket(1)))), "DropCrew SyncFs");
}

#[test]
fn who_stops_does_not_wait_for_a_flush() {
    let mut fixture = Fixture::at(Phase::Draining);
    assert!(!fixture.machine.has_delivery());
    fixture.handle(stop());
    let last = fixture.deliveries().pop().unwrap();
    let Content::Report(report) = last.content else {
        panic!("{last:?}");
    };
    assert_eq!(report.syncfs_ns, None);
    // The flush comes back later, and is nothing to anybody.
    assert_eq!(fixture.handle(Event::Synced { ticket: Ticket(2), took_ns: Some(1) }), []);
    assert_eq!(fixture.deliveries(), []);
}

#[test]
fn reads_and_stuck_threads_are_not_flushed() {
    let mut fixture = Fixture::at(Phase::Running);
    let (ticks, report) = (vec![], report(ThreadEnd::Stuck));
    let effects = fixture.handle(Event::Ended { ticket: Ticket(1), ticks, report });
    assert_eq!(words(&effects), "DropCrew");
    assert_eq!(fixture.deliveries().len(), 1);
    let mut fixture = Fixture::at(Phase::Claimed);
    fixture.handle(command(A, Command::Arm(Box::new(plan(POINT, OpKind::Read)))));
    fixture.handle(Event::Armed { ticket: Ticket(1), result: Ok(5) });
    fixture.handle(start(T0));
    fixture.handle(commit());
    fixture.now = T0;
    assert_eq!(words(&fixture.handle(ended(Ticket(1)))), "Began DropCrew");
    assert_eq!(fixture.deliveries().len(), 2);
}

#[test]
fn long_series_go_in_chunks() {
    let mut fixture = Fixture::at(Phase::Running);
    let ticks = vec![Tick::default(); TICKS_PER_FRAME + 1];
    let report = report(ThreadEnd::Stuck);
    fixture.handle(Event::Ended { ticket: Ticket(1), ticks, report });
    let deliveries = fixture.deliveries();
    let chunks: Vec<_> = deliveries
        .iter()
        .filter_map(|delivery| match &delivery.content {
            Content::Ticks { first, ticks } => Some((*first, ticks.len())),
            Content::Interval(_) | Content::Report(_) => None,
        })
        .collect();
    assert_eq!(chunks, [(0, TICKS_PER_FRAME), (TICKS_PER_FRAME as u64, 1)]);
    assert_eq!(deliveries.len(), 3);
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
    let last = fixture.deliveries().pop().unwrap();
    let frame = iofleet_shared::wire::Body::encode(&last);
    assert!(frame.is_ok_and(|frame| frame.len() < 10_000));
    let Content::Report(report) = last.content else {
        panic!("the report is last");
    };
    let kinds: Vec<_> = report.threads.iter().map(|thread| &thread.written).collect();
    assert_eq!(kinds, [&Written::All, &Written::Scattered, &Written::Scattered]);
}

#[test]
fn a_coordinator_that_takes_nothing_ends_its_point() {
    let mut fixture = Fixture::at(Phase::Running);
    let interval = || Event::Interval { ticket: Ticket(1), interval: NodeInterval::default() };
    for _ in 0..DELIVERIES_KEPT_MAX {
        assert_eq!(fixture.handle(interval()), []);
    }
    assert_eq!(words(&fixture.handle(interval())), "StopCrew");
    assert_eq!(fixture.handle(interval()), []);
}

#[test]
fn a_shutdown_removes_files_and_is_bounded() {
    let mut fixture = Fixture::at(Phase::Running);
    assert_eq!(words(&fixture.handle(Event::Shutdown)), "CloseAll StopCrew");
    assert_eq!(fixture.handle(Event::Gone { peer: A }), []);
    let effects = fixture.handle(ended(Ticket(1)));
    assert_eq!(words(&effects), "DropCrew Clean");
    assert_eq!(words(&fixture.handle(claim(B, "c2"))), "Refused(Busy)>2");
    let clean = Event::Removed { ticket: Ticket(2), removal: Removal::default() };
    assert_eq!(fixture.handle(clean), [Effect::Exit]);
    // With a mount that hangs, the deadline ends it.
    let mut fixture = Fixture::at(Phase::Running);
    fixture.handle(Event::Shutdown);
    assert_eq!(words(&fixture.after(LEAVES_WITHIN_NS, Event::Tick)), "DropCrew Clean");
    assert_eq!(fixture.machine.next_deadline(), Some(T0 + EXIT_WITHIN_NS));
    assert_eq!(fixture.after(EXIT_WITHIN_NS - LEAVES_WITHIN_NS, Event::Tick), [Effect::Exit]);
}

#[test]
fn one_errand_at_a_time() {
    let mut fixture = Fixture::at(Phase::Claimed);
    fixture.handle(command(A, Command::Inspect(spec())));
    assert_eq!(words(&fixture.handle(command(A, Command::Inspect(spec())))), "Refused(Phase)>1");
    assert_eq!(words(&fixture.handle(arm(POINT))), "Refused(Phase)>1");
    // Its answer is for the coordinator that asked, not for the next one.
    fixture.handle(Event::Gone { peer: A });
    fixture.handle(Event::Removed { ticket: Ticket(2), removal: Removal::default() });
    assert_eq!(words(&fixture.handle(claim(B, "c2"))), "Claimed>2");
    let late = Event::Inspected { ticket: Ticket(1), result: Ok(target_facts()) };
    assert_eq!(fixture.handle(late), []);
    fixture.handle(command(B, Command::Remove(dir())));
    let removal = Removal { files: 2, left: vec![] };
    let effects = fixture.handle(Event::Removed { ticket: Ticket(3), removal: removal.clone() });
    assert_eq!(effects, [Effect::Send { peer: B, notice: Notice::Removed(removal) }]);
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

#[test]
fn plans_without_sense_are_refused() {
    let flaws: [(&str, fn(&mut WorkerPlan)); 10] = [
        ("0 threads", |plan| plan.threads.clear()),
        ("a block of 0 B", |plan| plan.block_bytes = 0),
        ("an interval of 0 ns", |plan| plan.interval_ns = 0),
        ("a duration of 0", |plan| {
            plan.amount = Amount::Time { duration_ns: 0, repeat: true };
        }),
        ("a warm-up of", |plan| plan.ramp_ns = u64::MAX),
        ("0 extents", |plan| plan.threads[0].extents.clear()),
        ("overflows", |plan| plan.threads[0].extents[0].offset = u64::MAX),
        ("overlaps", |plan| {
            let extent = plan.threads[0].extents[0];
            plan.threads[0].extents.push(extent);
        }),
        ("no whole block", |plan| plan.threads[0].extents[0].length = 4095),
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
