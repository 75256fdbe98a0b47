//! The network's view of a point: its limit by direction, and what the links of the network hosts
//! carried. Pure.
//!
//! Workers with the same boot id and network namespace share their links: such a network host is
//! counted once, by the samples of its first node. The clients' links are known only as a whole: if
//! one host's are not, nothing of the wire stands in the record.

use std::collections::BTreeSet;

use iofleet_shared::{
    facts::{LinkFacts, LinkKind, NetworkFacts},
    stats::BYTE_UNITS,
    work::OpKind,
};

use super::{Point, Report, campaign, samples, to_f64};
use crate::{
    figures::{HostWire, MTU_USUAL, Payload, WireBytes, framing},
    record::{Direction, Network, ObserverRecord, WireInterval},
    scenario::FleetConfig,
};

/// What bounds a direction.
#[derive(Debug, Clone, PartialEq)]
struct Limit {
    bytes_per_s: f64,
    side: &'static str,
    source: String,
}

/// A way through the network, as the clients see it.
#[derive(Debug, Clone, Copy)]
struct Way {
    op: OpKind,
    name: &'static str,
    of: fn(WireBytes) -> f64,
    /// The same way as the storage side sees it.
    of_storage: fn(WireBytes) -> f64,
}

const WAYS: [Way; 2] = [
    Way { op: OpKind::Write, name: "tx", of: |wire| wire.tx, of_storage: |wire| wire.rx },
    Way { op: OpKind::Read, name: "rx", of: |wire| wire.rx, of_storage: |wire| wire.tx },
];

/// A network host, by the node whose samples stand for it.
struct Host<'a> {
    report: Report<'a>,
    facts: Option<&'a NetworkFacts>,
}

impl Host<'_> {
    fn wire(&self) -> Option<HostWire<'_>> {
        let links = self.facts.filter(|facts| !facts.links.is_empty())?.links.len();
        Some(HostWire::new(&self.report.1.samples, 0..links))
    }
}

/// The view of a point's reported nodes.
pub(super) fn of(point: &Point<'_>, fleet: &FleetConfig) -> Network {
    let hosts = hosts(point);
    let limit = limit(point, fleet, &hosts);
    let ways = WAYS.into_iter().filter(|way| {
        let params = &point.plan.spec.params;
        params.ops.iter().any(|share| share.op == way.op)
    });
    let directions: Vec<Direction> =
        ways.map(|way| direction(point, fleet, &hosts, way, limit.as_ref())).collect();
    let whole = whole(&hosts);
    let network = Network {
        tx_bytes: whole.map(|whole| rounded(whole.tx)),
        rx_bytes: whole.map(|whole| rounded(whole.rx)),
        intervals: intervals(point, &hosts),
        observers: observers(point),
        ..Network::default()
    };
    match &directions[..] {
        [only] => Network {
            limit_bytes_per_s: only.limit_bytes_per_s,
            limit_source: only.limit_source.clone(),
            payload_share: only.payload_share,
            wire_share: only.wire_share,
            wire_per_payload: only.wire_per_payload,
            directions,
            ..network
        },
        _ => Network { directions, ..network },
    }
}

/// What a network host's links sent and received from T0 until it had flushed.
pub(super) fn of_node(report: &Report<'_>, facts: Option<&NetworkFacts>) -> Option<WireBytes> {
    let wire = Host { report: *report, facts };
    let wire = wire.wire()?;
    wire.between(0, wire.last_ns()?)
}

/// What a network host's links carried in the common window, over their speed, in the direction of
/// the payload; the greater one of a mix.
pub(super) fn share_of_node(
    point: &Point<'_>,
    report: &Report<'_>,
    facts: Option<&NetworkFacts>,
    link_speed: Option<f64>,
) -> Option<f64> {
    let window = point.figures.window?;
    let begin = i64::try_from(window.begin_ns()).ok()?;
    let length = i64::try_from(window.length_ns()).ok()?;
    let host = Host { report: *report, facts };
    let carried = host.wire()?.between(begin, begin + length)?.per(length);
    let speed = match link_speed {
        Some(speed) => speed,
        None => to_f64(facts?.links.iter().map(|link| link.bits_per_s).sum::<Option<u64>>()?) / 8.0,
    };
    let ops = &point.plan.spec.params.ops;
    let ways = WAYS.iter().filter(|way| ops.iter().any(|share| share.op == way.op));
    ways.map(|way| (way.of)(carried) / speed).reduce(f64::max)
}

/// Of the other ports of a network host, those that moved at least half of so many bytes.
pub(super) fn elsewhere(point: &Point<'_>, payload: f64) -> Vec<String> {
    let mut moved = Vec::new();
    for host in hosts(point) {
        let Some(facts) = host.facts else { continue };
        let samples = &host.report.1.samples;
        for (at, other) in facts.others.iter().enumerate() {
            let at = facts.links.len() + at;
            let wire = HostWire::new(samples, at..at + 1);
            let bytes = wire.last_ns().and_then(|last| wire.between(0, last));
            if bytes.is_some_and(|bytes| bytes.tx.max(bytes.rx) >= payload / 2.0) {
                moved.push(format!("{} of {}", other.name, point.name(host.report.0)));
            }
        }
    }
    moved
}

fn hosts<'a>(point: &'a Point<'_>) -> Vec<Host<'a>> {
    let mut seen = BTreeSet::new();
    let reports = point.reports.iter();
    reports
        .filter_map(|report| {
            let ready = point.nodes.get(report.0.at())?;
            let host = (ready.host.boot_id.as_str(), ready.host.net_namespace);
            let facts = ready.target.network.as_ref();
            seen.insert(host).then_some(Host { report: *report, facts })
        })
        .collect()
}

/// The least of what is known: the clients' links, the fabric, the storage side.
fn limit(point: &Point<'_>, fleet: &FleetConfig, hosts: &[Host<'_>]) -> Option<Limit> {
    let stated = |value: Option<f64>, side, source: &str| {
        value.map(|bytes_per_s| Limit { bytes_per_s, side, source: source.to_owned() })
    };
    let known = [
        clients(point, fleet, hosts),
        stated(fleet.network_limit, "fabric", "network_limit"),
        storage(point, fleet),
    ];
    known.into_iter().flatten().min_by(|a, b| a.bytes_per_s.total_cmp(&b.bytes_per_s))
}

/// As the scenario says, else the sum of the observers' links.
fn storage(point: &Point<'_>, fleet: &FleetConfig) -> Option<Limit> {
    let side = "storage";
    if let Some(bytes_per_s) = fleet.storage_limit {
        return Some(Limit { bytes_per_s, side, source: "storage_limit".to_owned() });
    }
    let mut sum = Speeds::default();
    for observed in &point.outcome.observers {
        sum.add(fleet, &observed.name, observed.network.as_ref())?;
    }
    sum.limit(side)
}

/// Speeds of links, and who says so.
#[derive(Default)]
struct Speeds<'a> {
    bytes_per_s: f64,
    sources: BTreeSet<&'a str>,
}

impl<'a> Speeds<'a> {
    /// Adds those of a host; none where nobody says.
    fn add(
        &mut self,
        fleet: &FleetConfig,
        node: &str,
        facts: Option<&'a NetworkFacts>,
    ) -> Option<()> {
        if let Some(speed) = fleet.link_speed.of(node) {
            self.bytes_per_s += speed;
            self.sources.insert("link_speed");
            return Some(());
        }
        let links: &[LinkFacts] = &facts.filter(|facts| !facts.links.is_empty())?.links;
        for link in links {
            self.bytes_per_s += to_f64(link.bits_per_s?) / 8.0;
            self.sources.insert(link.speed_source.as_str());
        }
        Some(())
    }

    fn limit(self, side: &'static str) -> Option<Limit> {
        let source = self.sources.into_iter().collect::<Vec<_>>().join(", ");
        let bytes_per_s = self.bytes_per_s;
        (bytes_per_s > 0.0).then_some(Limit { bytes_per_s, side, source })
    }
}

/// What the observers' links carried in the common window, per second, less their idle rates; by
/// their own directions. None without observers, or where one does not say.
fn storage_wire(point: &Point<'_>) -> Option<WireBytes> {
    let window = point.figures.window?;
    let begin = i64::try_from(window.begin_ns()).ok()?;
    let length = i64::try_from(window.length_ns()).ok()?;
    let mut sum = WireBytes::default();
    for observed in &point.outcome.observers {
        let links = observed.network.as_ref().filter(|facts| !facts.links.is_empty())?.links.len();
        let wire = HostWire::new(&observed.samples, 0..links);
        let moved = wire.between(begin, begin + length)?;
        sum = sum.plus(moved.less(wire.idle().unwrap_or_default(), length));
    }
    (!point.outcome.observers.is_empty()).then(|| sum.per(length))
}

fn observers(point: &Point<'_>) -> Vec<ObserverRecord> {
    let observers = point.outcome.observers.iter();
    observers
        .map(|observed| ObserverRecord {
            node: observed.name.clone(),
            links: observed.network.as_ref().map(campaign::links).unwrap_or_default(),
            lost: observed.lost.clone(),
            samples: samples::between(&observed.samples, observed.network.as_ref()),
        })
        .collect()
}

/// Of lost nodes nobody knows whether they are hosts of their own, and they moved nothing that
/// counts.
fn clients(point: &Point<'_>, fleet: &FleetConfig, hosts: &[Host<'_>]) -> Option<Limit> {
    let mut sum = Speeds::default();
    for host in hosts {
        sum.add(fleet, &point.name(host.report.0), host.facts)?;
    }
    sum.limit("clients")
}

fn direction(
    point: &Point<'_>,
    fleet: &FleetConfig,
    hosts: &[Host<'_>],
    way: Way,
    limit: Option<&Limit>,
) -> Direction {
    let window = point.figures.window;
    let payload = window.map(|window| {
        let series = point.reports.iter().filter_map(|(_, node, _)| node.ticks.get(&way.op));
        let parts = series.map(|ticks| window.of(ticks).0);
        parts.fold(Payload::default(), Payload::plus).per(window.length_ns()).bytes
    });
    let wire = window.and_then(|window| {
        let begin = i64::try_from(window.begin_ns()).ok()?;
        let length = i64::try_from(window.length_ns()).ok()?;
        Some(beyond_idle(hosts, |_| Some((begin, begin + length)))?.per(length))
    });
    let settled = beyond_idle(hosts, |wire| Some((0, wire.last_ns()?)));
    let moved = moved(point, way.op);
    let to_end = point
        .figures
        .last_end_ns
        .and_then(|end| beyond_idle(hosts, |wire| Some((0, end.min(wire.last_ns()?)))));
    let per_payload =
        |wire: Option<WireBytes>| wire.filter(|_| moved > 0.0).map(|wire| (way.of)(wire) / moved);
    let limit_of = limit.map(|limit| limit.bytes_per_s);
    let share = |rate: Option<f64>| rate.zip(limit_of).map(|(rate, limit)| rate / limit);
    let wire = wire.map(way.of);
    let storage_wire = storage_wire(point).map(way.of_storage);
    // The side that bounds is measured there, where it can be.
    let at_limit = storage_wire.filter(|_| limit.is_some_and(|limit| limit.side == "storage"));
    Direction {
        direction: way.name.to_owned(),
        op: way.op.name().to_owned(),
        limit_bytes_per_s: limit_of,
        achievable_share: achievable(hosts),
        limit_side: limit.map(|limit| limit.side.to_owned()),
        limit_source: limit.map(|limit| limit.source.clone()),
        payload_bytes_per_s: payload,
        wire_bytes_per_s: wire,
        idle_bytes_per_s: idle(hosts).map(way.of),
        payload_share: share(payload),
        wire_share: share(at_limit.or(wire)),
        storage_limit_bytes_per_s: storage(point, fleet).map(|limit| limit.bytes_per_s),
        storage_wire_bytes_per_s: storage_wire,
        wire_per_payload: per_payload(settled),
        wire_per_payload_at_end: per_payload(to_end),
        client_limit_bytes_per_s: clients(point, fleet, hosts).map(|limit| limit.bytes_per_s),
        expected_wire_per_payload: if way.op == OpKind::Write {
            fleet.expected_wire_per_payload()
        } else {
            1.0
        },
    }
}

/// Of the clients' links the least. InfiniBand's rate is of data, and its headers are a few in a
/// thousand.
fn achievable(hosts: &[Host<'_>]) -> f64 {
    let links = hosts.iter().filter_map(|host| host.facts).flat_map(|facts| &facts.links);
    let shares = links.map(|link| match link.kind {
        LinkKind::InfiniBand => 1.0,
        LinkKind::Ethernet | LinkKind::Roce => framing(link.mtu.unwrap_or(MTU_USUAL)),
    });
    shares.reduce(f64::min).unwrap_or_else(|| framing(MTU_USUAL))
}

/// Payload of a kind of operation over the whole point, warm-up included.
fn moved(point: &Point<'_>, op: OpKind) -> f64 {
    let series = point.reports.iter().filter_map(|(_, node, _)| node.ticks.get(&op));
    let units: u128 = series.flatten().map(|tick| u128::from(tick.bytes)).sum();
    to_f64(u64::try_from(units / u128::from(BYTE_UNITS)).unwrap_or(u64::MAX))
}

/// The sum over hosts of what they carried in a time of their own, less their idle rates.
fn beyond_idle(
    hosts: &[Host<'_>],
    time: impl Fn(&HostWire<'_>) -> Option<(i64, i64)>,
) -> Option<WireBytes> {
    sum(hosts, |wire| {
        let (begin, end) = time(wire)?;
        Some(wire.between(begin, end)?.less(wire.idle().unwrap_or_default(), end - begin))
    })
}

fn whole(hosts: &[Host<'_>]) -> Option<WireBytes> {
    sum(hosts, |wire| wire.between(0, wire.last_ns()?))
}

fn idle(hosts: &[Host<'_>]) -> Option<WireBytes> {
    sum(hosts, |wire| wire.idle())
}

fn sum(hosts: &[Host<'_>], part: impl Fn(&HostWire<'_>) -> Option<WireBytes>) -> Option<WireBytes> {
    let mut sum = WireBytes::default();
    for host in hosts {
        sum = sum.plus(part(&host.wire()?)?);
    }
    (!hosts.is_empty()).then_some(sum)
}

fn intervals(point: &Point<'_>, hosts: &[Host<'_>]) -> Vec<WireInterval> {
    if hosts.is_empty() || hosts.iter().any(|host| host.wire().is_none()) {
        return Vec::new();
    }
    let every = point.reports.iter().flat_map(|(_, node, _)| &node.intervals);
    let count = every.map(|interval| interval.k + 1).max().unwrap_or(0);
    let length = i64::try_from(point.plan.spec.params.interval_ns).unwrap_or(i64::MAX);
    let one = |k: u32| {
        let begin = i64::from(k).saturating_mul(length);
        let wire = sum(hosts, |wire| {
            let end = begin.saturating_add(length).min(wire.last_ns()?);
            wire.between(begin, end)
        });
        let bytes = |of: fn(WireBytes) -> f64| wire.map(|wire| rounded(of(wire)));
        WireInterval { k, tx_bytes: bytes(|wire| wire.tx), rx_bytes: bytes(|wire| wire.rx) }
    };
    (0..count).map(one).collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sums of counters are not negative"
)]
pub(super) fn rounded(bytes: f64) -> u64 {
    bytes.round() as u64
}
