//! What stands around the points of a campaign.

use std::{
    collections::BTreeMap,
    time::{SystemTime, UNIX_EPOCH},
};

use iofleet_shared::facts::{AlignmentSource, LinkFacts, MachineSetup, NetworkFacts};

use super::marks::OVERLOADED;
use crate::{
    events::NodeReady,
    figures::{self, LoadPoint},
    record::{
        Campaign, CampaignRecord, CampaignStatus, Clock, Headline, Link, LoadCurve, Node,
        PointRecord, PointStatus, Repetition, SCHEMA, Setup, Swept, Target, Tool, Unit,
    },
    scenario::Scenario,
};

/// A campaign at its beginning.
#[must_use]
pub fn campaign(id: &str, scenario: &Scenario, host: &str, started: SystemTime) -> CampaignRecord {
    CampaignRecord {
        schema: SCHEMA.to_owned(),
        tool: Tool {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: option_env!("IOFLEET_COMMIT").map(str::to_owned),
        },
        campaign: Campaign {
            id: id.to_owned(),
            name: scenario.name.clone(),
            question: scenario.question.clone(),
            scenario_id: scenario.id.clone(),
            started: rfc3339(started),
            ended: None,
            status: CampaignStatus::Running,
            message: None,
            host: host.to_owned(),
        },
        scenario: scenario.resolved_toml.clone(),
        nodes: Vec::new(),
        points: Vec::new(),
        repetitions: Vec::new(),
        load_curves: Vec::new(),
        scaling: Vec::new(),
        requirements: Vec::new(),
    }
}

/// A worker as the record keeps it.
#[must_use]
pub fn node(ready: &NodeReady) -> Node {
    let NodeReady { name, host, target, clock } = ready;
    let source = |source: AlignmentSource| match source {
        AlignmentSource::Statx => "statx".to_owned(),
        AlignmentSource::Probe => "probe".to_owned(),
    };
    Node {
        node: name.clone(),
        hostname: host.hostname.clone(),
        boot_id: host.boot_id.clone(),
        net_namespace: host.net_namespace,
        version: host.version.clone(),
        kernel: host.kernel.clone(),
        cpus: host.cpus,
        memory_bytes: host.memory_bytes,
        clock: Clock {
            offset_ns: clock.offset_ns,
            uncertainty_ns: clock.uncertainty_ns,
            stamp: host.stamp_clock.clone(),
            resolution_ns: host.stamp_resolution_ns,
            cost_ns: host.stamp_cost_ns,
        },
        control_priority: host.control_priority,
        setup: setup(&host.setup),
        target: Target {
            fs_type: target.fs_type.clone(),
            mount_source: target.mount_source.clone(),
            mount_options: target.mount_options.clone(),
            total_bytes: target.total_bytes,
            free_bytes: target.free_bytes,
            free_inodes: target.free_inodes,
            direct_alignment_bytes: target.alignment.map(|alignment| alignment.offset),
            direct_alignment_source: target.alignment.map(|alignment| source(alignment.source)),
        },
        links: target.network.as_ref().map(links).unwrap_or_default(),
    }
}

fn setup(setup: &MachineSetup) -> Setup {
    let MachineSetup { cpu_model, governor, clock_source, open_files_max, processes_max } = setup;
    Setup {
        cpu_model: cpu_model.clone(),
        governor: governor.clone(),
        clock_source: clock_source.clone(),
        open_files_max: *open_files_max,
        processes_max: *processes_max,
    }
}

/// Those that carry the traffic, and then the others.
pub(super) fn links(network: &NetworkFacts) -> Vec<Link> {
    let link = |carries: bool| {
        move |link: &LinkFacts| Link {
            name: link.name.clone(),
            carries,
            bits_per_s: link.bits_per_s,
            source: link.speed_source.clone(),
            rule: network.rule.name().to_owned(),
            mtu: link.mtu,
            driver: link.driver.clone(),
        }
    };
    let carry = network.links.iter().map(link(true));
    carry.chain(network.others.iter().map(link(false))).collect()
}

/// Statistics of points that were measured more than once: same stage, same swept values.
#[must_use]
pub fn repetitions(points: &[PointRecord]) -> Vec<Repetition> {
    let mut groups: BTreeMap<(u32, &str, String), Vec<&PointRecord>> = BTreeMap::new();
    let mut order = Vec::new();
    let measured = |point: &&PointRecord| point.status == PointStatus::Ok;
    for point in points.iter().filter(measured).filter(|point| point.headline.is_some()) {
        let swept = format!("{:?}", point.params.swept);
        let key = (point.params.threads, point.stage.as_str(), swept);
        let group = groups.entry(key.clone()).or_default();
        if group.is_empty() {
            order.push(key);
        }
        group.push(point);
    }
    let statistics = order.into_iter().filter_map(|key| {
        let group = &groups[&key];
        // Two different figures have no mean; `span` is there for each.
        let common = group.iter().all(|point| point.headline == Some(Headline::Common));
        let headline = if common { Headline::Common } else { Headline::Span };
        let data = group.iter().all(|point| point.moves_data());
        let unit = if data { Unit::Bytes } else { Unit::Ops };
        let rate = |point: &&PointRecord| match unit {
            Unit::Bytes => point.bandwidth.of(headline),
            Unit::Ops => point.iops.of(headline),
        };
        let values: Vec<f64> = group.iter().filter_map(rate).collect();
        let figures::Repetition { mean, stddev, ci95 } = figures::repetition(&values)?;
        Some(Repetition {
            stage: key.1.to_owned(),
            points: group.iter().map(|point| point.index).collect(),
            headline,
            unit,
            mean,
            stddev: stddev?,
            ci95: ci95?,
        })
    });
    statistics.collect()
}

/// Response over load of stages that were offered more than one: same stage, same swept values but
/// for the load itself.
#[must_use]
pub fn load_curves(points: &[PointRecord]) -> Vec<LoadCurve> {
    let mut groups: Vec<(LoadKey<'_>, Vec<(&PointRecord, LoadPoint)>)> = Vec::new();
    for point in points {
        let (Some(load), Some(key)) = (load_point(point), LoadKey::of(point)) else { continue };
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push((point, load)),
            None => groups.push((key, vec![(point, load)])),
        }
    }
    let curves = groups.into_iter().filter_map(|(key, group)| {
        let rates: Vec<f64> = group.iter().filter_map(|(point, _)| rate_of(point)).collect();
        let first = rates.first()?;
        if rates.iter().all(|rate| rate == first) {
            return None;
        }
        let loads: Vec<LoadPoint> = group.iter().map(|(_, load)| *load).collect();
        Some(LoadCurve {
            stage: key.stage.to_owned(),
            points: group.iter().map(|(point, _)| point.index).collect(),
            ort_ns: figures::ort(&loads)?,
        })
    });
    curves.collect()
}

/// What points on one curve have in common.
#[derive(Debug, PartialEq)]
struct LoadKey<'a> {
    stage: &'a str,
    threads: u32,
    swept: Vec<&'a Swept>,
}

impl<'a> LoadKey<'a> {
    fn of(point: &'a PointRecord) -> Option<Self> {
        rate_of(point)?;
        let swept = point.params.swept.iter().filter(|swept| swept.key != "rate").collect();
        Some(Self { stage: &point.stage, threads: point.params.threads, swept })
    }
}

fn rate_of(point: &PointRecord) -> Option<f64> {
    point.params.rate.map(|rate| rate.per_s)
}

/// A sound point that was not overloaded.
fn load_point(point: &PointRecord) -> Option<LoadPoint> {
    let overloaded = point.marks.iter().any(|mark| mark.code == OVERLOADED.0);
    let sound = point.status == PointStatus::Ok && !overloaded;
    let achieved_per_s = point.offered.filter(|_| sound)?.achieved_per_s?;
    let response_ns = point.latency_ns.response.as_ref()?.mean;
    Some(LoadPoint { achieved_per_s, response_ns })
}

/// An instant of the wall clock for people, to the millisecond, in UTC.
#[must_use]
pub fn rfc3339(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let millis = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    match jiff::Timestamp::from_millisecond(millis) {
        Ok(timestamp) => format!("{timestamp:.3}"),
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn instants_read_as_rfc_3339() {
        let at = UNIX_EPOCH + Duration::from_millis(1_796_090_123_045);
        assert_eq!(rfc3339(at), "2026-12-01T01:55:23.045Z");
    }
}
