//! Limits, wire shares and wire over payload, against answers computed by hand.

use iofleet_shared::{
    facts::{LinkFacts, LinkKind, LinkRule, NetworkFacts},
    stats::{HostSample, LinkCounters},
};

use super::*;
use crate::events::Observed;

const S: i64 = 1_000_000_000;

fn link(name: &str, bits_per_s: Option<u64>) -> LinkFacts {
    LinkFacts {
        name: name.to_owned(),
        kind: LinkKind::Ethernet,
        bits_per_s,
        speed_source: "the kernel".to_owned(),
        mtu: Some(1_500),
        driver: "veth".to_owned(),
    }
}

fn facts(links: &[Option<u64>]) -> NetworkFacts {
    NetworkFacts {
        rule: LinkRule::Route,
        reason: "10.0.0.1".to_owned(),
        links: links.iter().map(|speed| link("eth0", *speed)).collect(),
        others: vec![link("eth1", None)],
    }
}

/// Counters of `eth0` that send, and of `eth1` that sends: (at ms, sent, sent elsewhere).
fn samples(of: &[(i64, u64, u64)]) -> Vec<HostSample> {
    let sent = |tx_bytes| Some(LinkCounters { rx_bytes: 0, tx_bytes });
    of.iter()
        .map(|&(ms, tx, other)| HostSample {
            at_ns: ms * (S / 1000),
            links: vec![sent(tx), sent(other)],
            cpu: None,
            busiest_core_milli: None,
            run_delay_ns: None,
        })
        .collect()
}

/// Two nodes, one thread each, that write 5 MiB in 0.5 s; the nodes' facts and samples.
fn record_of(
    fleet: &FleetConfig,
    facts: &[NetworkFacts],
    series: &[Vec<HostSample>],
    same_host: bool,
) -> PointRecord {
    let script = even(2, 1, 5, 100);
    let plan = plan(&script);
    let mut outcome = outcome(&plan, &script);
    let mut nodes = ready(2);
    for (index, node) in nodes.iter_mut().enumerate() {
        node.target.network = Some(facts[index].clone());
        if same_host {
            "one".clone_into(&mut node.host.boot_id);
        }
    }
    for (node, samples) in outcome.nodes.values_mut().zip(series) {
        node.samples.clone_from(samples);
        let report = node.report.as_mut().unwrap();
        report.samples = u32::try_from(samples.len()).unwrap();
    }
    assemble(&plan, fleet, &nodes, &outcome).0
}

const PAYLOAD: u64 = 5 << 20;

/// 1000 bytes in the second before T0, and then twice the payload per node within 0.5 s, which is
/// the window, and a tenth of it while the file system is flushed.
fn double() -> Vec<HostSample> {
    let at_end = 1_000 + 2 * PAYLOAD;
    samples(&[(-1_000, 0, 0), (0, 1_000, 0), (500, at_end, 0), (700, at_end + PAYLOAD / 10, 0)])
}

#[test]
fn the_wire_is_counted_in_the_window_and_over_the_point() {
    let speeds = [facts(&[Some(1_000_000_000)]), facts(&[Some(1_000_000_000)])];
    let record = record_of(&FleetConfig::default(), &speeds, &[double(), double()], false);
    let network = record.network;
    // 2 x 1 Gbit/s.
    assert_eq!(network.limit_bytes_per_s, Some(250e6));
    assert_eq!(network.limit_source.as_deref(), Some("the kernel"));
    let [way] = &network.directions[..] else { panic!("writes only send") };
    assert_eq!((way.direction.as_str(), way.op.as_str()), ("tx", "write"));
    assert_eq!(way.limit_side.as_deref(), Some("clients"));
    assert_eq!(way.idle_bytes_per_s, Some(2_000.0));
    let payload = 2.0 * (5_u64 << 20) as f64;
    let in_window = (2.0 * payload - 1_000.0) / 0.5;
    assert!((way.wire_bytes_per_s.unwrap() - in_window).abs() < 1.0, "{way:?}");
    assert!((network.wire_share.unwrap() - in_window / 250e6).abs() < 1e-9);
    let settled = (2.1 * payload - 0.7 * 2_000.0) / payload;
    assert!((network.wire_per_payload.unwrap() - settled).abs() < 1e-9, "{way:?}");
    assert_eq!(network.tx_bytes, Some(2 * (2 * PAYLOAD + PAYLOAD / 10)));
    assert_eq!(network.rx_bytes, Some(0));
    assert_eq!(record.nodes[0].tx_bytes, Some(2 * PAYLOAD + PAYLOAD / 10));
    let sent: Vec<u64> = network.intervals.iter().map(|k| k.tx_bytes.unwrap()).collect();
    // The last operations complete with the sixth interval's begin; half of the flush is in it.
    assert_eq!((sent.len(), sent[..5].iter().sum()), (6, 4 * PAYLOAD));
    assert_eq!(sent[5], PAYLOAD / 10);
}

/// Two workers on one machine see the same counters.
#[test]
fn a_network_host_is_counted_once() {
    let speeds = [facts(&[Some(1_000_000_000)]), facts(&[Some(1_000_000_000)])];
    let network = record_of(&FleetConfig::default(), &speeds, &[double(), double()], true).network;
    assert_eq!(network.limit_bytes_per_s, Some(125e6));
    assert_eq!(network.tx_bytes, Some(2 * PAYLOAD + PAYLOAD / 10));
    let stated =
        FleetConfig { link_speed: LinkSpeeds::of_all(8_000_000_000), ..FleetConfig::default() };
    let network = record_of(&stated, &speeds, &[double(), double()], true).network;
    assert_eq!(network.limit_bytes_per_s, Some(1e9));
}

#[test]
fn one_unknown_link_makes_the_clients_limit_unknown() {
    let speeds = [facts(&[Some(1_000_000_000)]), facts(&[Some(8_000), None])];
    let storage = FleetConfig { storage_limit: Some(5e9), ..FleetConfig::default() };
    let network = record_of(&storage, &speeds, &[double(), double()], false).network;
    assert_eq!(network.limit_bytes_per_s, Some(5e9));
    assert_eq!(network.directions[0].limit_side.as_deref(), Some("storage"));
}

#[test]
fn one_host_without_counters_makes_the_wire_unknown() {
    let speeds = [facts(&[Some(1_000_000_000)]), facts(&[Some(1_000_000_000)])];
    let network =
        record_of(&FleetConfig::default(), &speeds, &[double(), Vec::new()], false).network;
    assert_eq!(
        (network.tx_bytes, network.wire_share, network.wire_per_payload),
        (None, None, None)
    );
    assert_eq!(network.limit_bytes_per_s, Some(250e6), "speeds are known all the same");
}

/// The links sent a tenth of the payload, and `eth1` all of it.
#[test]
fn links_that_do_not_explain_the_payload_are_doubtful() {
    let speeds = [facts(&[Some(1_000_000_000)]), facts(&[Some(1_000_000_000)])];
    let few =
        samples(&[(0, 0, 0), (500, PAYLOAD / 10, PAYLOAD * 2), (700, PAYLOAD / 10, PAYLOAD * 2)]);
    let record = record_of(&FleetConfig::default(), &speeds, &[few.clone(), few], false);
    let mark = record.marks.iter().find(|mark| mark.code == "links-doubtful").unwrap();
    assert!(mark.text.contains("eth1 of client01, eth1 of client02"), "{}", mark.text);
    assert!((mark.value.unwrap() - 0.1).abs() < 1e-6);
    let record = record_of(&FleetConfig::default(), &speeds, &[double(), double()], false);
    assert!(record.marks.iter().all(|mark| mark.code != "links-doubtful"));
}

/// Copies that the clients write themselves are expected on their links.
#[test]
fn expected_wire_bytes_are_what_the_scenario_says() {
    let speeds = [facts(&[Some(1_000_000_000)]), facts(&[Some(1_000_000_000)])];
    let copies = FleetConfig { expected_wire_milli: Some(3_000), ..FleetConfig::default() };
    let record = record_of(&copies, &speeds, &[double(), double()], false);
    assert!((record.network.directions[0].expected_wire_per_payload - 3.0).abs() < 1e-12);
    let mark = record.marks.iter().find(|mark| mark.code == "links-doubtful").unwrap();
    assert!(mark.text.contains("no other port"), "{}", mark.text);
}

/// One node's link is a quarter of the others', and full: its share is of its own speed.
#[test]
fn a_nodes_share_is_of_its_own_link() {
    let speeds = [facts(&[Some(1_000_000_000)]), facts(&[Some(1_000_000_000)])];
    let stated = FleetConfig {
        link_speed: LinkSpeeds::parse("400 Mbit/s, client02 100 Mbit/s").unwrap(),
        ..FleetConfig::default()
    };
    let record = record_of(&stated, &speeds, &[double(), double()], false);
    assert_eq!(record.network.limit_bytes_per_s, Some(62.5e6));
    // 10 MiB in half a second.
    let carried = (2 * PAYLOAD) as f64 / 0.5;
    let shares: Vec<f64> = record.nodes.iter().map(|node| node.link_share.unwrap()).collect();
    assert!((shares[0] - carried / 50e6).abs() < 1e-9, "{shares:?}");
    assert!((shares[1] - carried / 12.5e6).abs() < 1e-9, "{shares:?}");
}

/// Reads of as many bytes as the wire carried, and of a hundred for each that it did.
#[test]
fn a_cold_read_is_proven_by_the_wire() {
    let codes = |wire: Option<u64>, direct: bool| {
        let script = even(2, 1, 5, 100);
        let mut plan = plan(&script);
        plan.spec.params.ops[0].op = OpKind::Read;
        (plan.spec.params.cold, plan.spec.params.options.direct) = (true, direct);
        let mut outcome = outcome(&plan, &script);
        let mut nodes = ready(2);
        for (node, ready) in outcome.nodes.values_mut().zip(&mut nodes) {
            let ticks = std::mem::take(&mut node.ticks);
            node.ticks = ticks.into_values().map(|ticks| (OpKind::Read, ticks)).collect();
            if let Some(bytes) = wire {
                ready.target.network = Some(facts(&[None]));
                node.samples = samples(&[(0, 0, 0), (700, 0, 0)]);
                node.samples[1].links[0] = Some(LinkCounters { rx_bytes: bytes, tx_bytes: 0 });
            }
        }
        let record = assemble(&plan, &FleetConfig::default(), &nodes, &outcome).0;
        record.marks.into_iter().map(|mark| mark.code).collect::<Vec<_>>()
    };
    let has = |codes: &[String], code: &str| codes.iter().any(|known| known == code);
    let proven = codes(Some(PAYLOAD), false);
    assert!(!has(&proven, "not-cold") && !has(&proven, "cold-unproven") && !has(&proven, "cached"));
    let cached = codes(Some(PAYLOAD / 100), false);
    assert!(has(&cached, "not-cold") && has(&cached, "cached"));
    let unknown = codes(None, true);
    assert!(has(&unknown, "cold-unproven") && !has(&unknown, "not-cold"));
}

/// Two storage hosts of 10 MB/s each: the sum is less than the clients', and what they received in the
/// window is the share. Nobody said what they carry.
#[test]
fn observers_are_the_storage_side() {
    let script = even(2, 1, 5, 100);
    let plan = plan(&script);
    let mut outcome = outcome(&plan, &script);
    let mut nodes = ready(2);
    for node in &mut nodes {
        node.target.network = Some(facts(&[Some(1_000_000_000)]));
    }
    let received = |ms: i64, rx_bytes| HostSample {
        at_ns: ms * (S / 1000),
        links: vec![Some(LinkCounters { rx_bytes, tx_bytes: 0 }), None],
        cpu: None,
        busiest_core_milli: None,
        run_delay_ns: None,
    };
    let observed = |name: &str| Observed {
        name: name.to_owned(),
        network: Some(facts(&[Some(80_000_000)])),
        samples: vec![received(-1_000, 0), received(0, 1_000), received(1_000, 9_001_000)],
        lost: None,
    };
    outcome.observers = vec![observed("s1"), observed("s2")];
    let network = assemble(&plan, &FleetConfig::default(), &nodes, &outcome).0.network;
    let [way] = &network.directions[..] else { panic!("writes only send") };
    assert_eq!(way.limit_bytes_per_s, Some(20e6));
    assert_eq!(way.limit_side.as_deref(), Some("storage"));
    assert_eq!(way.client_limit_bytes_per_s, Some(250e6));
    // 9 MB/s each, less 1000 bytes a second.
    assert!((way.storage_wire_bytes_per_s.unwrap() - 2.0 * (9e6 - 1_000.0)).abs() < 1.0);
    assert!((way.wire_share.unwrap() - 2.0 * (9e6 - 1_000.0) / 20e6).abs() < 1e-6);
    assert_eq!(network.observers.len(), 2);
    assert_eq!(network.observers[0].samples.len(), 1);
    let stated = FleetConfig { storage_limit: Some(15e6), ..FleetConfig::default() };
    let stated = assemble(&plan, &stated, &nodes, &outcome).0.network;
    assert_eq!(stated.limit_source.as_deref(), Some("storage_limit"));
}
