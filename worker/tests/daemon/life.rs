//! Who may have a worker, what it answers to whom, and how it ends.

use iofleet_shared::{
    lifecycle::Phase,
    wire::{Command, Datagram, Notice, RefusalKind, Removal},
    work::Amount,
};

use crate::support::{Daemon, LONG, dataset, plan, spec};

fn refusal(notice: Notice) -> (RefusalKind, String) {
    let Notice::Refused(refusal) = notice else {
        panic!("{notice:?}");
    };
    (refusal.kind, refusal.text)
}

#[tokio::test]
async fn a_second_coordinator_is_told_who_has_the_worker() {
    let root = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(root.path());
    let mut first = daemon.coordinator().await;
    let Notice::Claimed(facts) = first.claim("c1").await else {
        panic!("not claimed");
    };
    assert_eq!(facts.version, env!("CARGO_PKG_VERSION"));
    assert!(facts.cpus > 0 && facts.memory_bytes > 0 && facts.net_namespace > 0);
    assert!(!facts.boot_id.is_empty() && !facts.kernel.is_empty());
    let mut second = daemon.coordinator().await;
    let (kind, text) = refusal(second.claim("c2").await);
    assert_eq!(kind, RefusalKind::Busy);
    assert!(text.contains("ann@laptop, pid 12") && text.contains("campaign c1"), "{text}");
    // Nor can it do anything else.
    let (kind, _) = refusal(second.ask(Command::Release { keep: false }).await);
    assert_eq!(kind, RefusalKind::Phase);
    let released = first.ask(Command::Release { keep: false }).await;
    assert_eq!(released, Notice::Released(Removal::default()));
    assert!(matches!(second.claim("c2").await, Notice::Claimed(_)));
}

#[tokio::test]
async fn a_coordinator_that_leaves_makes_room() {
    let root = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(root.path());
    let mut first = daemon.coordinator().await;
    first.claim("c1").await;
    first.ask(Command::Inspect(Box::new(spec(&dataset(root.path()))))).await;
    assert!(root.path().join("t/iofleet-d").exists());
    first.connection.close(0_u32.into(), b"");
    // The claim is granted at once, or as soon as the files of the first are gone.
    let mut second = daemon.coordinator().await;
    let mut answer = second.claim("c2").await;
    while let Notice::Refused(refusal) = &answer {
        assert_eq!(refusal.kind, RefusalKind::Busy);
        answer = second.claim("c2").await;
    }
    assert!(matches!(answer, Notice::Claimed(_)));
    assert!(!root.path().join("t").exists());
}

#[tokio::test]
async fn pings_are_answered_and_the_holder_hears_a_heartbeat() {
    let root = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(root.path());
    let mut coordinator = daemon.coordinator().await;
    coordinator.ping(7);
    let pong = coordinator.datagram().await;
    let Datagram::Pong { sequence: 7, sent_ns, received_ns, answered_ns } = pong else {
        panic!("{pong:?}");
    };
    // One clock on one machine.
    assert!(sent_ns <= received_ns && received_ns <= answered_ns);
    let Notice::Claimed(facts) = coordinator.claim("c1").await else {
        panic!("not claimed");
    };
    for sequence in 0..2 {
        let datagram = coordinator.datagram().await;
        let Datagram::Beat(beat) = datagram else {
            panic!("{datagram:?}");
        };
        assert_eq!((beat.sequence, beat.phase), (sequence, Phase::Claimed));
        assert_eq!((beat.incarnation, beat.threads, beat.bytes), (facts.incarnation, 0, 0));
    }
}

#[tokio::test]
async fn refusals_come_in_words_and_leave_the_worker_as_it_was() {
    let root = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(root.path());
    let mut coordinator = daemon.coordinator().await;
    let (kind, text) =
        refusal(coordinator.ask(Command::Inspect(Box::new(spec(&dataset(root.path()))))).await);
    assert_eq!(kind, RefusalKind::Phase);
    assert!(text.contains("claim"), "{text}");
    coordinator.claim("c1").await;
    let outside = dataset("/elsewhere".as_ref());
    let (kind, text) = refusal(coordinator.ask(Command::Inspect(Box::new(spec(&outside)))).await);
    assert_eq!(kind, RefusalKind::Target);
    let named = root.path().display().to_string();
    assert!(text.contains("/elsewhere/t") && text.contains(&named), "{text}");
    let mut bad = plan(root.path(), Amount::Share);
    bad.threads[0].files = crate::fixture::named("../../f", 1 << 20);
    let notice = coordinator.ask(Command::Arm(Box::new(bad))).await;
    let Notice::Refused(refused) = notice else {
        panic!("{notice:?}");
    };
    assert_eq!(refused.point, Some(crate::support::POINT));
    let good = plan(root.path(), Amount::Share);
    let notice = coordinator.ask(Command::Arm(Box::new(good))).await;
    assert!(matches!(notice, Notice::Armed { .. }), "{notice:?}");
}

#[tokio::test]
async fn a_worker_that_is_stopped_says_goodbye_and_leaves_nothing() {
    let root = tempfile::tempdir().unwrap();
    let mut daemon = Daemon::start(root.path());
    let mut coordinator = daemon.coordinator().await;
    let plan = plan(root.path(), Amount::Share);
    coordinator.prepare(&plan).await;
    assert!(root.path().join("t/iofleet-d/f1").exists());
    daemon.tell_to_stop();
    let end = tokio::time::timeout(LONG, coordinator.connection.closed()).await.unwrap();
    assert!(end.to_string().contains("the worker is shutting down"), "{end}");
    daemon.join().unwrap();
    assert!(!root.path().join("t").exists());
}

#[tokio::test]
async fn a_root_that_is_not_there_ends_the_daemon() {
    let mut daemon = Daemon::start("/no/such/root".as_ref());
    let error = daemon.join().unwrap_err();
    assert!(error.to_string().contains("/no/such/root"), "{error}");
}
