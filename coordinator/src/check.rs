//! What stands in the way of a scenario on a fleet, from what its workers answered. Pure.

use std::collections::BTreeMap;

use iofleet_shared::facts::{HostFacts, TargetFacts};
use serde::Serialize;

use crate::{conductor::same, scenario::FleetConfig};

/// How far a worker came, and what it said.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// It was not reached, or is lost.
    Lost(String),
    /// It was not to be had.
    Held(String),
    /// The target, or a limit, is not as the scenario needs it.
    Refused(Box<HostFacts>, String),
    /// It could begin.
    Ready(Box<HostFacts>, Box<TargetFacts>),
}

/// Something to be put right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// On which nodes.
    pub nodes: Vec<String>,
    /// What is wrong.
    pub what: String,
    /// What would be right.
    pub help: String,
}

/// All findings, the gravest first; the same of several nodes is one.
#[must_use]
pub fn findings(
    answers: &[(String, Answer)],
    fleet: &FleetConfig,
    one_directory: bool,
) -> Vec<Finding> {
    let mut all = Findings(Vec::new());
    for (node, answer) in answers {
        match answer {
            Answer::Lost(why) => all.add(
                node,
                why,
                "start `iofleet-worker` of this release there, with keys of this fleet",
            ),
            Answer::Held(why) => all.add(node, why, "wait for that campaign, or end it"),
            Answer::Refused(..) | Answer::Ready(..) => {}
        }
    }
    for (node, answer) in answers {
        if let Answer::Refused(_, why) = answer {
            all.add(node, why, "put it right on that node, or ask less of it in the scenario");
        }
    }
    if one_directory {
        all.file_systems(answers);
    }
    all.versions(answers);
    all.links(answers, fleet);
    all.0
}

struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, node: &str, what: &str, help: &str) {
        match self.0.iter_mut().find(|known| known.what == what) {
            Some(known) => known.nodes.push(node.to_owned()),
            None => self.0.push(Finding {
                nodes: vec![node.to_owned()],
                what: what.to_owned(),
                help: help.to_owned(),
            }),
        }
    }

    /// Of nodes that see another directory than most.
    fn file_systems(&mut self, answers: &[(String, Answer)]) {
        let seen = ready(answers).map(|(node, _, target)| (node.as_str(), target));
        for (node, what) in same::strangers(seen) {
            self.add(&node, &what, "mount the file system under test there, at the same path");
        }
    }

    fn versions(&mut self, answers: &[(String, Answer)]) {
        let here = env!("CARGO_PKG_VERSION");
        for (node, host) in hosts(answers).filter(|(_, host)| host.version != here) {
            let what = format!("the worker is iofleet {}, and this is {here}", host.version);
            self.add(node, &what, "install the same release everywhere");
        }
    }

    fn links(&mut self, answers: &[(String, Answer)], fleet: &FleetConfig) {
        let mut speeds: Vec<(&String, u64)> = Vec::new();
        for (node, _, target) in ready(answers) {
            let Some(network) = &target.network else { continue };
            if fleet.link_speed.of(node).is_some() || network.links.is_empty() {
                continue;
            }
            let bits: Option<u64> = network.links.iter().map(|link| link.bits_per_s).sum();
            match bits {
                Some(bits) => speeds.push((node, bits)),
                None => {
                    let what = "nobody says how fast its links are, so that there is no limit";
                    self.add(node, what, "state fleet.link_speed");
                }
            }
        }
        let Some(usual) = usual(speeds.iter().map(|(_, bits)| *bits)) else { return };
        for (node, bits) in speeds.iter().filter(|(_, bits)| *bits != usual) {
            let gbit = |bits: u64| format!("{:.1} Gbit/s", to_f64(bits) / 1e9);
            let what =
                format!("its links have {}, and most nodes have {}", gbit(*bits), gbit(usual));
            self.add(node, &what, "see whether a link came up slower, or state fleet.link_speed");
        }
    }
}

/// What most have; none where all have the same.
fn usual<T: Clone + Ord>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut counts: BTreeMap<T, usize> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    let most = counts.iter().max_by_key(|(_, count)| **count).map(|(value, _)| value.clone());
    most.filter(|_| counts.len() > 1)
}

fn hosts(answers: &[(String, Answer)]) -> impl Iterator<Item = (&String, &HostFacts)> {
    answers.iter().filter_map(|(node, answer)| match answer {
        Answer::Refused(host, _) | Answer::Ready(host, _) => Some((node, &**host)),
        Answer::Lost(_) | Answer::Held(_) => None,
    })
}

fn ready(
    answers: &[(String, Answer)],
) -> impl Iterator<Item = (&String, &HostFacts, &TargetFacts)> + Clone {
    answers.iter().filter_map(|(node, answer)| match answer {
        Answer::Ready(host, target) => Some((node, &**host, &**target)),
        Answer::Lost(_) | Answer::Held(_) | Answer::Refused(..) => None,
    })
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn to_f64(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use iofleet_shared::facts::{LinkFacts, LinkKind, LinkRule, MachineSetup, NetworkFacts};

    use super::*;
    use crate::scenario::speeds::LinkSpeeds;

    fn host(version: &str) -> Box<HostFacts> {
        Box::new(HostFacts {
            hostname: "h".to_owned(),
            boot_id: "b".to_owned(),
            net_namespace: 1,
            incarnation: 1,
            version: version.to_owned(),
            kernel: "6".to_owned(),
            cpus: 1,
            memory_bytes: 1,
            stamp_clock: "tsc".to_owned(),
            stamp_resolution_ns: 1,
            stamp_cost_ns: 1,
            control_priority: true,
            setup: MachineSetup::default(),
        })
    }

    fn target(source: &str, bits_per_s: Option<u64>) -> Box<TargetFacts> {
        let link = LinkFacts {
            name: "eth0".to_owned(),
            kind: LinkKind::Ethernet,
            bits_per_s,
            speed_source: "kernel".to_owned(),
            mtu: None,
            driver: String::new(),
        };
        Box::new(TargetFacts {
            fs_type: "nfs4".to_owned(),
            mount_source: source.to_owned(),
            mount_options: String::new(),
            free_bytes: 1,
            total_bytes: 1,
            free_inodes: None,
            alignment: None,
            network: Some(NetworkFacts {
                rule: LinkRule::Route,
                reason: String::new(),
                links: vec![link],
                others: Vec::new(),
            }),
            token: source.to_owned(),
        })
    }

    fn ready_node(name: &str) -> (String, Answer) {
        let here = env!("CARGO_PKG_VERSION");
        (name.to_owned(), Answer::Ready(host(here), target("s:/x", Some(10_000_000_000))))
    }

    fn found(answers: &[(String, Answer)]) -> Vec<(Vec<String>, String)> {
        let all = findings(answers, &FleetConfig::default(), true);
        assert!(all.iter().all(|finding| !finding.help.is_empty()));
        all.into_iter().map(|finding| (finding.nodes, finding.what)).collect()
    }

    #[test]
    fn nodes_that_are_alike_have_no_findings() {
        assert_eq!(found(&["a", "b", "c"].map(ready_node)), []);
    }

    #[test]
    fn the_gravest_come_first_and_the_same_is_one() {
        let here = env!("CARGO_PKG_VERSION");
        let with = |name: &str, answer| (name.to_owned(), answer);
        let answers = [
            ready_node("a"),
            ready_node("b"),
            with("c", Answer::Ready(host(here), target("other:/x", Some(10_000_000_000)))),
            with("d", Answer::Refused(host(here), "too full".to_owned())),
            with("e", Answer::Lost("protocol 2".to_owned())),
            with("f", Answer::Held("held by alice".to_owned())),
            with("g", Answer::Lost("protocol 2".to_owned())),
            with("h", Answer::Ready(host("0.0.9"), target("s:/x", Some(1_000_000_000)))),
            with("i", Answer::Ready(host(here), target("s:/x", None))),
        ];
        let names: Vec<String> = found(&answers).into_iter().map(|(n, _)| n.concat()).collect();
        assert_eq!(names, ["eg", "f", "d", "c", "h", "i", "h"]);
        let texts: Vec<String> = found(&answers).into_iter().map(|(_, what)| what).collect();
        assert!(texts[3].contains("nfs4 from other:/x") && texts[3].contains("nfs4 from s:/x"));
        assert!(texts[4].contains("0.0.9") && texts[6].contains("1.0 Gbit/s"));
    }

    #[test]
    fn speeds_that_are_stated_and_directories_by_node_are_not_compared() {
        let here = env!("CARGO_PKG_VERSION");
        let other = Answer::Ready(host(here), target("other:/x", None));
        let answers = [ready_node("a"), ready_node("b"), ("c".to_owned(), other)];
        let fleet =
            FleetConfig { link_speed: LinkSpeeds::of_all(1_000_000_000), ..FleetConfig::default() };
        assert_eq!(findings(&answers, &fleet, false), []);
    }
}
