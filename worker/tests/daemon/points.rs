//! Points from arming to acknowledgement, with real files.

use std::fs;

use iofleet_shared::{
    stats::{BYTE_UNITS, HostSample, NodeInterval, PointReport, Tick},
    wire::{Command, Content, Notice, Removal},
    work::Amount,
};

use crate::support::{Coordinator, Daemon, MIB, POINT, plan};

const BY_TIME: Amount = Amount::Time { duration_ns: 60_000_000_000, repeat: true };

/// From before T0 until after the last end, in order, all of them.
fn check_samples(samples: &[HostSample], report: &PointReport) {
    assert_eq!(samples.len(), report.samples as usize);
    assert!(samples.is_sorted_by_key(|sample| sample.at_ns));
    let end = report.threads.iter().filter_map(|thread| thread.ended_ns).max().unwrap();
    assert!(samples[0].at_ns < 0 && samples[samples.len() - 1].at_ns >= end);
    assert!(samples.iter().all(|sample| sample.cpu.is_some()));
}

/// All deliveries of a point, and the number of the last.
async fn gather(coordinator: &mut Coordinator) -> (Vec<NodeInterval>, Vec<Tick>, PointReport, u64) {
    let mut samples: Vec<HostSample> = Vec::new();
    let (mut intervals, mut series) = (vec![], vec![]);
    for number in 0.. {
        let delivery = coordinator.delivery().await;
        assert_eq!((delivery.point, delivery.number), (POINT, number));
        match delivery.content {
            Content::Interval(interval) => intervals.push(interval),
            Content::Ticks { op: _, first, ticks } => {
                assert_eq!(first, series.len() as u64);
                series.extend(ticks);
            }
            Content::Samples(more) => samples.extend(more),
            Content::Report(report) => {
                check_samples(&samples, &report);
                return (intervals, series, report, number);
            }
        }
    }
    unreachable!("a report comes")
}

#[tokio::test]
async fn a_write_by_size_is_what_the_files_say() {
    let root = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(root.path());
    let mut coordinator = daemon.coordinator().await;
    coordinator.prepare(&plan(root.path(), Amount::Share)).await;
    let t0 = coordinator.start().await;
    let (intervals, ticks, report, last) = gather(&mut coordinator).await;
    let on_disk: u64 = ["f0", "f1"]
        .iter()
        .map(|name| fs::metadata(root.path().join("t/iofleet-d").join(name)).unwrap().len())
        .sum();
    assert_eq!(on_disk, 4 * MIB);
    assert_eq!(report.threads.iter().map(|thread| thread.bytes()).sum::<u64>(), on_disk);
    assert_eq!(intervals.iter().map(|interval| interval.bytes).sum::<u64>(), on_disk);
    let units: u128 = ticks.iter().map(|tick| u128::from(tick.bytes)).sum();
    assert_eq!(units, u128::from(on_disk) * u128::from(BYTE_UNITS));
    assert_eq!(report.threads.iter().map(|thread| thread.ops()).sum::<u64>(), 64);
    assert_eq!(
        (u64::from(report.intervals), report.ticks),
        (intervals.len() as u64, ticks.len() as u64)
    );
    assert_eq!((report.t0_worker_ns, &report.sums), (t0, &None));
    // What the daemon adds.
    assert!(report.syncfs_ns.is_some());
    coordinator.say(Command::Acknowledge { point: POINT, through: last }).await;
    let released = coordinator.ask(Command::Release { keep: false }).await;
    assert_eq!(released, Notice::Released(Removal { files: 2, left: vec![] }));
    assert!(!root.path().join("t").exists());
}

#[tokio::test]
async fn a_point_that_is_stopped_reports_as_always() {
    let root = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(root.path());
    let mut coordinator = daemon.coordinator().await;
    coordinator.prepare(&plan(root.path(), BY_TIME)).await;
    coordinator.start().await;
    // The first interval shows that it runs.
    let first = coordinator.delivery().await;
    assert!(matches!(first.content, Content::Interval(NodeInterval { k: 0, .. })));
    coordinator.say(Command::Stop { point: POINT }).await;
    let mut intervals: u32 = 1;
    let report = loop {
        match coordinator.delivery().await.content {
            Content::Interval(interval) => {
                assert_eq!(interval.k, intervals);
                intervals += 1;
            }
            Content::Ticks { .. } | Content::Samples(_) => {}
            Content::Report(report) => break report,
        }
    };
    assert_eq!(report.intervals, intervals);
    assert!(report.threads.iter().all(|thread| thread.bytes() > 0));
}

#[tokio::test]
async fn a_point_that_is_stopped_before_t0_does_no_io() {
    let root = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(root.path());
    let mut coordinator = daemon.coordinator().await;
    let mut again = plan(root.path(), Amount::Share);
    coordinator.prepare(&again).await;
    let notice = coordinator.ask(Command::Stop { point: POINT }).await;
    let Notice::NotStarted { point: POINT, why } = notice else {
        panic!("{notice:?}");
    };
    assert!(why.contains("stopped"), "{why}");
    assert_eq!(fs::metadata(root.path().join("t/iofleet-d/f0")).unwrap().len(), 0);
    // The same point can be armed again.
    again.point.attempt = 1;
    again.remove = vec!["f0".to_owned(), "f1".to_owned()];
    let notice = coordinator.ask(Command::Arm(Box::new(again))).await;
    assert!(matches!(notice, Notice::Armed { point, .. } if point.attempt == 1), "{notice:?}");
}

#[tokio::test]
async fn a_point_without_a_commit_does_not_start() {
    let root = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(root.path());
    let mut coordinator = daemon.coordinator().await;
    coordinator.prepare(&plan(root.path(), Amount::Share)).await;
    let t0_fleet_ns = iofleet_shared::clock::monotonic_ns() + 50_000_000;
    let map = iofleet_shared::clock::ClockMap::IDENTITY;
    let start = Command::Start { point: POINT, t0_fleet_ns, map };
    assert!(matches!(coordinator.ask(start).await, Notice::Ready { .. }));
    let notice = coordinator.hear().await;
    let Notice::NotStarted { point: POINT, why } = notice else {
        panic!("{notice:?}");
    };
    assert_eq!(why, "no commit came before T0");
    assert_eq!(fs::metadata(root.path().join("t/iofleet-d/f0")).unwrap().len(), 0);
}

#[tokio::test]
async fn a_coordinator_that_vanishes_in_the_middle_leaves_no_files() {
    let root = tempfile::tempdir().unwrap();
    let mut daemon = Daemon::start(root.path());
    let mut coordinator = daemon.coordinator().await;
    coordinator.prepare(&plan(root.path(), BY_TIME)).await;
    coordinator.start().await;
    coordinator.delivery().await;
    coordinator.connection.close(0_u32.into(), b"");
    // The next one gets the worker when it is clean.
    let mut next = daemon.coordinator().await;
    let mut answer = next.claim("c2").await;
    while let Notice::Refused(_) = answer {
        answer = next.claim("c2").await;
    }
    assert!(!root.path().join("t").exists());
    daemon.tell_to_stop();
    daemon.join().unwrap();
}
