//! Each verdict is provoked once, and a near miss gives another, at the default thresholds.

use super::*;
use crate::record::{Headline, NodeStatus, PointThread, Swept, example};

/// Of packets of 1500 bytes.
const FRAMING: f64 = 1_448.0 / 1_514.0;
/// 100 MB/s by the labels of the clients' links.
const LIMIT: f64 = 100e6;

/// A sound direct write of 8 threads on four nodes that bounds nothing: 40 MB/s.
fn clean() -> PointRecord {
    let base = example::full(0);
    let mut point = PointRecord {
        op: "write".to_owned(),
        status: PointStatus::Ok,
        why: None,
        marks: Vec::new(),
        errors: 0,
        error_kinds: Vec::new(),
        verification: None,
        offered: None,
        busy_share: Some(0.999),
        verdict: None,
        headline: Some(Headline::Common),
        ..base
    };
    point.params.direct = true;
    point.params.options.dsync = false;
    point.params.think_ns = 0;
    point.network.directions[0].op = "write".to_owned();
    point.nodes = (1..=4).map(node).collect();
    point.threads = (0..8).map(thread).collect();
    at(point, 8, 40e6, 1_000_000.0)
}

/// The same with other threads, rate and mean latency in ns; the wire carries what the payload is.
fn at(mut point: PointRecord, threads: u32, rate: f64, latency: f64) -> PointRecord {
    point.index = threads;
    point.params.threads = threads;
    point.params.swept = vec![Swept { key: "threads".to_owned(), value: threads.to_string() }];
    point.bandwidth.common = Some(rate);
    if let Some(service) = &mut point.latency_ns.service {
        service.mean = latency;
    }
    wire(&mut point, rate / LIMIT, 1.002);
    point
}

fn wire(point: &mut PointRecord, share: f64, per_payload: f64) {
    let way = &mut point.network.directions[0];
    way.limit_bytes_per_s = Some(LIMIT);
    way.client_limit_bytes_per_s = Some(LIMIT);
    way.limit_side = Some("clients".to_owned());
    way.achievable_share = FRAMING;
    way.wire_share = Some(share);
    way.wire_bytes_per_s = Some(share * LIMIT);
    way.wire_per_payload = Some(per_payload);
    way.wire_per_payload_at_end = Some(per_payload);
}

fn node(number: u32) -> PointNode {
    PointNode {
        node: format!("client{number:02}"),
        status: NodeStatus::Ok,
        errors: 0,
        bandwidth: Some(10e6),
        busiest_core_share: Some(0.4),
        run_delay_share: Some(0.01),
        link_share: Some(0.4),
        ..example::full(0).nodes.remove(0)
    }
}

fn thread(number: u32) -> PointThread {
    PointThread {
        thread: number,
        node: format!("client{:02}", number % 4 + 1),
        ..example::full(0).threads.remove(0)
    }
}

/// The verdict of the last of these points.
fn last_of(mut points: Vec<PointRecord>, known: Known) -> Verdict {
    judge_all(&mut points, known, &Thresholds::default());
    points.pop().unwrap().verdict.unwrap()
}

fn alone(change: impl Fn(&mut PointRecord)) -> Verdict {
    let mut point = clean();
    change(&mut point);
    last_of(vec![point], Known::default())
}

fn codes(verdict: &Verdict) -> Vec<&str> {
    let also = verdict.also.iter().map(|also| also.code.as_str());
    std::iter::once(verdict.code.as_str()).chain(also).collect()
}

/// A threshold that is set decides.
#[test]
fn thresholds_can_be_set() {
    let set = Thresholds::parse("network 0.5").unwrap();
    let mut point = [clean()];
    wire(&mut point[0], 0.6, 1.0);
    judge_all(&mut point, Known::default(), &set);
    assert_eq!(point[0].verdict.as_ref().unwrap().code, "network-bound");
}

#[test]
fn nothing_is_undetermined_and_says_what_is_missing() {
    let verdict = alone(|_| ());
    assert_eq!(codes(&verdict), ["undetermined"]);
    let missing = ["what the storage side does by itself", "a point with fewer threads"];
    assert_eq!(verdict.missing, missing);
    let blind = alone(|point| point.network.directions[0].wire_bytes_per_s = None);
    assert!(blind.missing.contains(&"wire bytes of the clients' links".to_owned()));
}

#[test]
fn invalid() {
    let partial = alone(|point| point.status = PointStatus::Partial);
    assert_eq!(partial.code, "invalid");
    assert_eq!(alone(|point| point.errors = 1).code, "invalid");
    assert_eq!(alone(|point| point.headline = None).code, "invalid");
    // A doubt is no fault.
    let doubt = alone(|point| point.marks = example::full(0).marks);
    assert_eq!(doubt.code, "undetermined");
}

#[test]
fn cache_served() {
    let read = |per_payload| {
        alone(move |point| {
            point.network.directions[0].op = "read".to_owned();
            wire(point, 0.4, per_payload);
        })
    };
    let verdict = read(0.49);
    assert_eq!(verdict.code, "cache-served");
    assert!((verdict.evidence[0].value - 0.49).abs() < 1e-9 && verdict.text.contains("0.49"));
    assert_eq!(read(0.51).code, "undetermined");
}

#[test]
fn cache_absorbed() {
    let write = |direct, at_end| {
        alone(move |point| {
            point.params.direct = direct;
            point.network.directions[0].wire_per_payload_at_end = Some(at_end);
        })
    };
    assert_eq!(write(false, 0.89).code, "cache-absorbed");
    assert_eq!(write(false, 0.91).code, "undetermined");
    assert_eq!(write(true, 0.5).code, "undetermined");
}

/// Links that don't carry the payload say nothing of caches and networks.
#[test]
fn doubtful_links_are_no_evidence() {
    let verdict = alone(|point| {
        point.network.directions[0].op = "read".to_owned();
        wire(point, 0.95, 0.1);
        point.marks = example::full(0).marks;
        "links-doubtful".clone_into(&mut point.marks[0].code);
    });
    assert_eq!(verdict.code, "undetermined");
    assert!(verdict.missing.contains(&"links that explain the payload".to_owned()));
}

#[test]
fn straggler() {
    let slow = |rate: f64, link: f64| {
        alone(move |point| {
            point.nodes[2].bandwidth = Some(rate);
            point.nodes[2].link_share = Some(link);
        })
    };
    let verdict = slow(4.9e6, 0.95);
    assert_eq!(verdict.code, "straggler");
    assert!(verdict.text.contains("client03") && verdict.text.contains("its link is full"));
    assert!(slow(4.9e6, 0.2).text.contains("its link is not full"));
    assert_eq!(slow(5.1e6, 0.95).code, "undetermined");
    // A node with half the threads does half, and is none.
    let few = alone(|point| {
        point.nodes[0].bandwidth = Some(5e6);
        point.threads.retain(|thread| thread.thread != 0);
    });
    assert_eq!(few.code, "undetermined");
}

/// 0.90 of 0.9564 of the label.
#[test]
fn network_bound_by_the_achievable_rate() {
    let full = |share: f64| alone(move |point| wire(point, share, 1.002));
    let verdict = full(0.90 * FRAMING + 0.001);
    assert_eq!(verdict.code, "network-bound");
    assert!(verdict.text.starts_with("the clients' links"), "{}", verdict.text);
    assert_eq!(full(0.90 * FRAMING - 0.001).code, "undetermined");
    let storage = alone(|point| {
        wire(point, 0.95, 1.002);
        point.network.directions[0].limit_side = Some("storage".to_owned());
    });
    assert!(storage.text.starts_with("the storage side's links"));
}

/// Large packets carry more: what is 0.90 of the rate with small ones is less of theirs.
#[test]
fn large_packets_can_achieve_more() {
    let with = |achievable: f64| {
        alone(move |point| {
            wire(point, 0.88, 1.002);
            point.network.directions[0].achievable_share = achievable;
        })
    };
    assert_eq!(with(FRAMING).code, "network-bound");
    assert_eq!(with(8_948.0 / 9_014.0).code, "undetermined");
}

/// 0.80 of what can be achieved is enough on a plateau below which the storage does more.
#[test]
fn network_bound_on_a_plateau() {
    let ramp = |share: f64, before: f64, storage| {
        let known = Known { storage_bytes_per_s: storage, running: false };
        let rate = share * FRAMING * LIMIT;
        let points = vec![at(clean(), 6, before * rate, 1e6), at(clean(), 8, rate, 1.3e6)];
        last_of(points, known).code
    };
    assert_eq!(ramp(0.81, 0.97, Some(1.2 * LIMIT)), "network-bound");
    assert_eq!(ramp(0.79, 0.97, Some(1.2 * LIMIT)), "undetermined");
    assert_eq!(ramp(0.81, 0.97, Some(1.1 * LIMIT)), "undetermined");
    assert_eq!(ramp(0.81, 0.97, None), "undetermined");
    // Below what an earlier point did it is on no plateau.
    assert_eq!(ramp(0.81, 1.1, Some(1.2 * LIMIT)), "undetermined");
}

/// 45.10 and 42.97 GB/s of 50, from a storage that by itself reads 130.35 and writes 70: the read by
/// the first rule, the write by the second. (Published test of 2024, BeeGFS over 4 x 100 Gbit/s.)
#[test]
fn the_published_test_is_network_bound() {
    let published = |rate: f64, storage: f64| {
        let known = Known { storage_bytes_per_s: Some(storage), running: false };
        let point = |threads, rate: f64| {
            let mut point = at(clean(), threads, rate, 1e6);
            wire(&mut point, rate / 50e9, 1.0);
            point.network.directions[0].limit_bytes_per_s = Some(50e9);
            point
        };
        last_of(vec![point(128, rate * 0.98), point(256, rate)], known)
    };
    let (read, write) = (published(45.10e9, 130.35e9), published(42.97e9, 70e9));
    assert_eq!((&*read.code, &*write.code), ("network-bound", "network-bound"));
    assert_eq!((read.evidence.len(), write.evidence.len()), (1, 2));
}

#[test]
fn client_bound() {
    let code = |change: fn(&mut PointRecord)| alone(change).code;
    assert_eq!(code(|point| point.nodes[1].busiest_core_share = Some(0.95)), "client-bound");
    assert_eq!(code(|point| point.nodes[1].busiest_core_share = Some(0.94)), "undetermined");
    assert_eq!(code(|point| point.nodes[1].run_delay_share = Some(0.20)), "client-bound");
    assert_eq!(code(|point| point.nodes[1].run_delay_share = Some(0.19)), "undetermined");
    assert_eq!(code(|point| point.busy_share = Some(0.94)), "client-bound");
    assert_eq!(code(|point| point.busy_share = Some(0.96)), "undetermined");
    // Threads that pause are not held by anything.
    let paced = |point: &mut PointRecord| {
        point.busy_share = Some(0.5);
        point.params.think_ns = 1;
    };
    assert_eq!(code(paced), "undetermined");
}

#[test]
fn server_bound() {
    let code = |gain: f64, growth: f64, links: f64| {
        let rate = links * FRAMING * LIMIT;
        let points =
            vec![at(clean(), 5, rate / (1.0 + gain), 1e6), at(clean(), 8, rate, growth * 1e6)];
        last_of(points, Known::default()).code
    };
    assert_eq!(code(0.04, 1.5, 0.79), "server-bound");
    assert_eq!(code(0.06, 1.5, 0.79), "undetermined");
    assert_eq!(code(0.04, 1.4, 0.79), "undetermined");
    assert_eq!(code(0.04, 1.5, 0.81), "undetermined");
}

/// Storage hosts whose links have room are named without their network.
#[test]
fn observed_servers_are_told_from_their_network() {
    let text = |storage: Option<f64>| {
        let with = |mut point: PointRecord| {
            point.network.directions[0].storage_limit_bytes_per_s = Some(LIMIT);
            point.network.directions[0].storage_wire_bytes_per_s = storage;
            point
        };
        let points = vec![with(at(clean(), 5, 20e6, 1e6)), with(at(clean(), 8, 20e6, 1.6e6))];
        let verdict = last_of(points, Known::default());
        assert_eq!(verdict.code, "server-bound");
        verdict.text
    };
    assert!(text(Some(0.5 * FRAMING * LIMIT)).starts_with("servers: "));
    assert!(text(Some(0.85 * FRAMING * LIMIT)).starts_with("servers or their network: "));
    assert!(text(None).starts_with("servers or their network: "));
}

#[test]
fn unsaturated() {
    let code = |gain: f64| {
        let points = vec![at(clean(), 4, 40e6 / (1.0 + gain), 1e6), at(clean(), 8, 40e6, 1e6)];
        last_of(points, Known::default()).code
    };
    assert_eq!(code(0.11), "unsaturated");
    assert_eq!(code(0.09), "undetermined");
}

#[test]
fn the_first_that_fits_stands_and_the_others_beside_it() {
    let verdict = alone(|point| {
        wire(point, 0.95, 1.002);
        point.nodes[0].busiest_core_share = Some(0.99);
    });
    assert_eq!(codes(&verdict), ["network-bound", "client-bound"]);
}

#[test]
fn a_ramp_is_of_one_stage_and_one_repetition() {
    let mut other = at(clean(), 4, 10e6, 1e6);
    other.repeat = 1;
    let verdict = last_of(vec![other, clean()], Known { running: true, ..Known::default() });
    assert_eq!(verdict.code, "undetermined");
    assert!(verdict.provisional);
}
