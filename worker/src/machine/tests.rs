//! The table of every phase and event, and the sequences that matter, by hand.

use std::fmt::Write;

use iofleet_shared::{
    clock::ClockMap,
    limits::{GIVE_UP_AFTER, TICKS_PER_FRAME},
    stats::{
        CpuTime, FileTimes, HostSample, OpCounts, ThreadEnd, ThreadReport, Written, WrittenPart,
    },
    wire::Content,
    work::{Amount, OpKind},
};

use super::*;
use crate::fixture;

mod holding;
mod points;

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
        setup: iofleet_shared::facts::MachineSetup::default(),
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
        network: None,
        token: "t".to_owned(),
    }
}

fn dir() -> DatasetDir {
    DatasetDir { path: "/mnt/t".to_owned(), name: "d".to_owned(), campaign: "c1".to_owned() }
}

fn spec() -> TargetSpec {
    fixture::target_spec(dir())
}

fn plan(point: PointId, op: OpKind) -> WorkerPlan {
    let thread = fixture::thread(0, &[op], fixture::named("f", 8_192), 2);
    WorkerPlan { point, interval_ns: S, stuck_after_ns: S, ..fixture::plan(dir(), vec![thread]) }
}

fn thread_report(end: ThreadEnd, written: Written) -> ThreadReport {
    let counts = OpCounts {
        op: OpKind::Write,
        bytes: 8192,
        ops: 2,
        errors: 0,
        ramp_bytes: 0,
        ramp_ops: 0,
        ramp_errors: 0,
    };
    ThreadReport {
        thread: 0,
        end,
        counts: vec![counts],
        cpu: CpuTime::default(),
        short_transfers: 0,
        first_issue_ns: Some(0),
        begin_ns: Some(0),
        ended_ns: Some(1),
        busy_begin_ns: Some(0),
        busy_end_ns: Some(1),
        fsync_ns: None,
        open_ns: 1,
        files: FileTimes::default(),
        bytes_touched: Some(8192),
        passes_milli: 1000,
        unfinished: 0,
        unfinished_ns: None,
        written: vec![WrittenPart { file: 0, written }],
        names: None,
        damages: vec![],
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
        samples: 0,
        syncfs_ns: None,
        cpu_share: Some(0.5),
        stamp_residual_ns: 0,
        first_end: None,
        offered: None,
        remarks: vec![],
        cold: None,
        holes: None,
        stopped: None,
        sums: None,
    })
}

fn interval() -> NodeInterval {
    NodeInterval::empty(0, Some(OpKind::Write))
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
    Event::Ended {
        ticket,
        ticks: vec![(OpKind::Write, vec![Tick::default()])],
        report: report(ThreadEnd::Finished),
    }
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
        let mut fixture = Self { machine: Machine::new(facts()), crew: Ticket(0), now: NOW };
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
    let name = |text: String| text.split([' ', '(', '{']).next().unwrap().to_owned();
    if let Effect::Send { peer, notice } = effect {
        return if let Notice::Refused(refusal) = notice {
            format!("Refused({:?})>{}", refusal.kind, peer.0)
        } else {
            format!("{}>{}", name(format!("{notice:?}")), peer.0)
        };
    }
    if let Effect::Close { peer, .. } = effect {
        return format!("Close>{}", peer.0);
    }
    name(format!("{effect:?}"))
}

fn words(effects: &[Effect]) -> String {
    effects.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn commands() -> Vec<(&'static str, Event)> {
    vec![
        ("claim by another", claim(B, "c2")),
        ("claim by the holder", claim(A, "c1")),
        ("command of another", command(B, Command::Release { keep: false })),
        ("inspect", command(A, Command::Inspect(Box::new(spec())))),
        ("observe", command(A, Command::Observe { interval_ns: 1, interfaces: vec![] })),
        ("net listen", command(A, Command::NetListen { token: [1; 16] })),
        ("net run", command(A, Command::NetRun(order()))),
        ("arm", arm(PointId { index: 4, attempt: 0 })),
        ("start", start(T0 + S)),
        ("commit", commit()),
        ("stop", stop()),
        ("acknowledge", command(A, Command::Acknowledge { point: POINT, through: 1 })),
        ("release", release(true)),
    ]
}

fn sample(at_ns: i64) -> HostSample {
    HostSample { at_ns, links: vec![None], cpu: None, busiest_core_milli: None, run_delay_ns: None }
}

fn order() -> NetOrder {
    NetOrder { me: 0, token: [1; 16], flows: Vec::new(), warm_ns: 1, window_ns: 1 }
}

fn other_events(crew: Ticket) -> Vec<(&'static str, Event)> {
    vec![
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
        ("interval", Event::Interval { ticket: crew, interval: interval() }),
        ("ended", ended(crew)),
        ("commit late", Event::CommitLate { ticket: crew }),
        ("stale end", ended(Ticket(99))),
        ("stale armed", Event::Armed { ticket: Ticket(99), result: Ok(5) }),
        ("stale removal", Event::Removed { ticket: Ticket(99), removal: Removal::default() }),
        ("stale inspection", Event::Inspected { ticket: Ticket(99), result: Ok(target_facts()) }),
        ("stale flush", Event::Settled { ticket: Ticket(99), took_ns: None, samples: vec![] }),
        ("tick", Event::Tick),
        ("shutdown", Event::Shutdown),
    ]
}

/// The whole table, so that a changed cell is seen in review.
#[test]
fn every_phase_by_event() {
    let mut table = String::new();
    for phase in Phase::ALL {
        let crew = Fixture::at(phase).crew;
        for (name, event) in commands().into_iter().chain(other_events(crew)) {
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

fn sends(notice: Notice) -> Effect {
    Effect::Send { peer: A, notice }
}

#[test]
fn a_point_from_claim_to_its_beginning() {
    let mut fixture = Fixture::at(Phase::Idle);
    let effects = fixture.handle(claim(A, "c1"));
    assert_eq!(effects, [sends(Notice::Claimed(facts()))]);
    let effects = fixture.handle(command(A, Command::Inspect(Box::new(spec()))));
    assert_eq!(effects, [Effect::Inspect { ticket: Ticket(1), spec: spec() }]);
    let found = Event::Inspected { ticket: Ticket(1), result: Ok(target_facts()) };
    assert_eq!(fixture.handle(found), [sends(Notice::Inspected(target_facts()))]);
    let crew = Ticket(2);
    let plan = Box::new(plan(POINT, OpKind::Write));
    assert_eq!(fixture.handle(arm(POINT)), [Effect::Arm { ticket: crew, plan }]);
    let effects = fixture.handle(Event::Armed { ticket: crew, result: Ok(5) });
    assert_eq!(effects, [sends(Notice::Armed { point: POINT, took_ns: 5 })]);
    let effects = fixture.handle(start(T0));
    let ready = Notice::Ready { point: POINT, t0_worker_ns: T0, ahead_ns: S };
    let set = Effect::SetStart { ticket: crew, t0_worker_ns: T0 };
    assert_eq!(effects, [set, sends(ready)]);
    assert_eq!(fixture.machine.next_deadline(), Some(T0));
    let effects = fixture.after(S / 2, commit());
    assert_eq!(effects, [Effect::CommitCrew { ticket: crew }]);
    let effects = fixture.after(S / 2, Event::Tick);
    assert_eq!(effects, [Effect::Began { ticket: crew }]);
    assert_eq!(fixture.machine.phase(), Phase::Running);
}

#[test]
fn a_point_from_its_beginning_to_its_end() {
    let mut fixture = Fixture::at(Phase::Running);
    let (crew, flush) = (Ticket(1), Ticket(2));
    let interval = NodeInterval { bytes: 8192, ops: 2, ..interval() };
    fixture.handle(Event::Interval { ticket: crew, interval: interval.clone() });
    let content = Content::Interval(interval);
    assert_eq!(fixture.deliveries(), [Delivery { point: POINT, number: 0, content }]);
    let effects = fixture.handle(ended(crew));
    let sync = Effect::Settle { ticket: flush, dir: dir(), flush: true };
    assert_eq!(effects, [Effect::DropCrew { ticket: crew }, sync]);
    assert!(fixture.deliveries().is_empty());
    fixture.handle(Event::Settled {
        ticket: flush,
        took_ns: Some(42),
        samples: vec![sample(5); 2],
    });
    let last = fixture.deliveries();
    assert_eq!(last.iter().map(|delivery| delivery.number).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(last[1].content, Content::Samples(vec![sample(5); 2]));
    let Content::Report(report) = &last[2].content else {
        panic!("the last delivery is the report, not {:?}", last[2].content);
    };
    assert_eq!((report.syncfs_ns, report.cpu_share), (Some(42), Some(0.5)));
    assert_eq!(report.samples, 2);
    // An acknowledgement of less than the report leaves it where it is.
    fixture.handle(command(A, Command::Acknowledge { point: POINT, through: 2 }));
    assert_eq!(fixture.machine.phase(), Phase::Draining);
    fixture.handle(command(A, Command::Acknowledge { point: POINT, through: 3 }));
    assert_eq!(fixture.machine.phase(), Phase::Claimed);
}

#[test]
fn a_release_says_what_is_left() {
    let mut fixture = Fixture::at(Phase::Claimed);
    let clean = Ticket(1);
    let effects = fixture.handle(release(true));
    assert_eq!(effects, [Effect::Clean { ticket: clean, keep: true }]);
    let removal = Removal { files: 0, left: vec!["x: kept".to_owned()] };
    let effects = fixture.handle(Event::Removed { ticket: clean, removal: removal.clone() });
    assert_eq!(effects, [sends(Notice::Released(removal))]);
    assert_eq!(fixture.machine.phase(), Phase::Idle);
    assert_eq!(fixture.machine.next_deadline(), None);
}
