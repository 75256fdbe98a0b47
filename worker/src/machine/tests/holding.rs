//! Who holds a worker, and how it lets go.

use super::*;

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
    let effects = fixture.after(as_ns(GIVE_UP_AFTER), claim(B, "c2"));
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
        fixture.now = T0 + as_ns(LEASE) * 2;
        assert_eq!(words(&fixture.handle(Event::Tick)).replace("Began", ""), "");
        assert_eq!(words(&fixture.handle(claim(B, "c2"))), "Refused(Busy)>2");
        assert_eq!(fixture.machine.phase(), Phase::Running);
    }
}

#[test]
fn the_lease_runs_from_the_last_sign_of_life_and_from_the_end_of_the_point() {
    let lease = as_ns(LEASE);
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
fn one_inspection_at_a_time() {
    let mut fixture = Fixture::at(Phase::Claimed);
    fixture.handle(command(A, Command::Inspect(Box::new(spec()))));
    assert_eq!(
        words(&fixture.handle(command(A, Command::Inspect(Box::new(spec()))))),
        "Refused(Phase)>1"
    );
    assert_eq!(words(&fixture.handle(arm(POINT))), "Refused(Phase)>1");
    // Its answer is for the coordinator that asked, not for the next one.
    fixture.handle(Event::Gone { peer: A });
    fixture.handle(Event::Removed { ticket: Ticket(2), removal: Removal::default() });
    assert_eq!(words(&fixture.handle(claim(B, "c2"))), "Claimed>2");
    let late = Event::Inspected { ticket: Ticket(1), result: Ok(target_facts()) };
    assert_eq!(fixture.handle(late), []);
}
