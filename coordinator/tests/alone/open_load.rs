//! Offered loads, against what follows from the rate, the file system's pace and one stall of it,
//! worked out on paper.
//!
//! R operations arrive in a second at a file system that does 2R, and does none for one second.
//! What arrives t into the stall (up to 2 s, when the backlog is gone) completes at 1 s + t/2, so
//! that its response is 1 s - t/2: above x in 2R(1 - x) operations. A generator that waits for its
//! operations would report it of as many operations as it has threads.

use hdrhistogram::Histogram;
use iofleet_coordinator::{record::LatencyKind, store::Store};
use iofleet_shared::{limits::LATENCY_NS_MAX, stats::Latency};
use serde_json::Value;

use crate::{
    alone,
    observer::Observer,
    pace::{Pace, Stall},
    support::{Scratch, run, skip, text},
};

/// Operations per second that are offered.
const RATE: f64 = 1_000.0;
const THREADS: u64 = 16;
const MS: u64 = 1_000_000;
/// Servers with 2 ms for each transfer: 2 `RATE`.
const SERVERS: usize = 4;
const SERVICE_NS: u64 = 2 * MS;

/// What a run of one stage came to.
struct Came {
    point: Value,
    /// Transfers that the file system saw.
    seen: u64,
    service: Latency,
    response: Latency,
}

/// Runs it; none where there is no FUSE.
fn offered(rate: f64, duration: &str, arrivals: &str, stall: Option<Stall>) -> Option<Came> {
    let scratch = Scratch::in_memory();
    let mount = scratch.folder("mount");
    let Ok(observer) = Observer::mount(&mount) else {
        skip("no FUSE here");
        return None;
    };
    observer.set_pace(Some(Pace::new(SERVERS, SERVICE_NS, stall)));
    let file = scratch.write(
        "offered.toml",
        &format!(
            "[workload]\nthreads = {THREADS}\nfile_size = \"1 MiB\"\nblock = \"4 KiB\"\n\
             rate = \"{rate} op/s\"\narrivals = \"{arrivals}\"\nduration = \"{duration}\"\n\
             [[stage]]\nop = \"write\"\n"
        ),
    );
    let path = mount.join("t");
    let run =
        run(&scratch, &[file.to_str().unwrap(), "--local", "2", "--path", path.to_str().unwrap()]);
    assert!([0, 6].contains(&run.code()), "{}", text(&run.output));
    let store = Store::open_existing(&scratch.path("store.sqlite")).unwrap().unwrap();
    let histograms = store.histograms("last", 0).unwrap();
    let of = |kind| {
        let found = histograms.iter().find(|h| h.op.is_none() && h.kind == kind);
        found.unwrap().latency.clone()
    };
    let seen = observer.arrivals().iter().filter(|arrival| arrival.file.starts_with('t')).count();
    Some(Came {
        point: run.points()[0].clone(),
        seen: seen as u64,
        service: of(LatencyKind::Service),
        response: of(LatencyKind::Response),
    })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "less than a second")]
fn ns(s: f64) -> u64 {
    (s * 1e9) as u64
}

/// Operations of at least `s`, moved up to the next value that the histogram tells from others; and
/// that value.
fn at_least(latency: &Latency, s: f64) -> (f64, f64) {
    let layout = Histogram::<u64>::new_with_bounds(1, LATENCY_NS_MAX, 2).unwrap();
    let from = layout.next_non_equivalent(ns(s));
    let above = latency.buckets.iter().filter(|bucket| bucket.low_ns() >= from);
    (above.map(|bucket| bucket.count as f64).sum(), from as f64 / 1e9)
}

/// Every operation that arrived was issued or is counted as not issued.
fn nothing_is_lost(came: &Came, rate: f64, seconds: f64, deviations: f64) {
    let number = |key: &str| came.point["offered"][key].as_u64().unwrap();
    let (arrived, not_issued) = (number("arrived"), number("not_issued"));
    assert_eq!(arrived, came.point["ops"].as_u64().unwrap() + not_issued);
    assert_eq!(came.seen, arrived - not_issued, "as the file system saw it");
    assert_eq!(came.service.count, came.seen);
    assert_eq!(came.response.count, came.seen);
    let wanted = rate * seconds;
    let off = (arrived as f64 - wanted).abs();
    assert!(off <= 2.0 + deviations * wanted.sqrt(), "{arrived} arrived, {wanted} were to");
}

fn stalled(arrivals: &str, deviations: f64) {
    let _alone = alone();
    let stall = Stall { after_ns: 1_500 * MS, for_ns: 1_000 * MS };
    let Some(came) = offered(RATE, "6 s", arrivals, Some(stall)) else { return };
    nothing_is_lost(&came, RATE, 6.0, deviations);
    for wanted in [0.25, 0.5, 0.75] {
        let (count, x) = at_least(&came.response, wanted);
        let right = 2.0 * RATE * (1.0 - x);
        // The arrivals' own deviation comes in twice: as arrivals, and by prolonging the backlog.
        let off = (0.05 * right).max(deviations * 2.0 * right.sqrt());
        println!("{arrivals}: {count} of {x} s and more, {right} by theory");
        assert!((count - right).abs() <= off, "{count} of {x} s and more, not {right}");
    }
    let (waited, _) = at_least(&came.service, 0.9);
    assert_eq!(waited, THREADS as f64, "all that were in flight, and no more");
    let achieved = came.point["offered"]["achieved_per_s"].as_f64().unwrap();
    assert!((achieved / RATE - 1.0).abs() < 0.05, "{achieved} per second");
    assert!(!has_mark(&came.point, "overloaded"), "{}", came.point["marks"]);
    // The backlog at the end of the stall, on one worker of two.
    let backlog = came.point["offered"]["backlog_max"].as_f64().unwrap();
    assert!((0.3..0.7).contains(&(backlog / RATE)), "{backlog} waited");
}

fn has_mark(point: &Value, code: &str) -> bool {
    point["marks"].as_array().unwrap().iter().any(|mark| mark["code"] == code)
}

#[test]
fn a_stall_is_in_the_response_of_all_that_arrived_in_it() {
    stalled("even", 0.0);
}

#[test]
fn a_stall_is_in_the_response_of_what_arrives_at_random() {
    stalled("exponential", 4.0);
}

#[test]
fn without_a_stall_responses_are_short() {
    let _alone = alone();
    let Some(came) = offered(RATE, "3 s", "even", None) else { return };
    nothing_is_lost(&came, RATE, 3.0, 0.0);
    let p99 = came.point["latency_ns"]["response"]["p99"].as_u64().unwrap();
    assert!(p99 < 50 * MS, "{p99} ns");
    let min = came.point["latency_ns"]["response"]["min"].as_u64().unwrap();
    assert!(min >= SERVICE_NS, "{min} ns are less than the file system takes");
    assert_eq!(came.point["offered"]["not_issued"], 0);
    assert!(!has_mark(&came.point, "overloaded"), "{}", came.point["marks"]);
}

#[test]
fn what_is_offered_beyond_the_peak_is_told() {
    let _alone = alone();
    let peak = 2.0 * RATE;
    let Some(came) = offered(2.0 * peak, "2 s", "even", None) else { return };
    nothing_is_lost(&came, 2.0 * peak, 2.0, 0.0);
    assert!(has_mark(&came.point, "overloaded"), "{}", came.point["marks"]);
    let number = |key: &str| came.point["offered"][key].as_f64().unwrap();
    // Half of it can be served in the time; what is in flight at the end is.
    assert!((number("not_issued") / (2.0 * peak) - 1.0).abs() < 0.05, "{}", came.point["offered"]);
    assert!((number("achieved_per_s") / peak - 1.0).abs() < 0.05, "{}", came.point["offered"]);
    assert!(number("backlog_max") * 2.0 >= 0.9 * number("not_issued"), "{}", came.point["offered"]);
}
