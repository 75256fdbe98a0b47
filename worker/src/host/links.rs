//! The ports of a network host: which there are, which of them carry a file system's traffic, and
//! their counters. Everything is read below the root of a sysfs tree.
//!
//! A port is counted once, whatever lies on top of it: a bond and not its members, the device under
//! a VLAN and not the VLAN, an InfiniBand port and not the IP interface that runs over it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use iofleet_shared::{
    facts::{LinkFacts, LinkKind, LinkRule, NetworkFacts},
    stats::LinkCounters,
};

use ports::Port;

mod ports;
mod rate;
mod route;
#[cfg(test)]
mod tests;

/// Where a machine's own tree is.
pub const SYSFS: &str = "/sys";
/// InfiniBand counts in words.
const WORD_BYTES: u64 = 4;
/// File systems of one machine, beside those whose source is a device: nothing crosses a network.
const LOCAL: &[&str] = &["tmpfs", "ramfs", "overlay", "zfs", "devtmpfs", "hugetlbfs", "rootfs"];
/// File systems of many machines whose sources look like devices.
const SHARED: &[&str] = &["gpfs"];

/// Interfaces that a scenario names and this host does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no network interface {name} here, but {}", .known.join(", "))]
pub struct NoInterface {
    /// As the scenario says.
    name: String,
    /// What there is.
    known: Vec<String>,
}

/// The links that carry the traffic of a mount, and the other ports. None where it is of this
/// machine alone.
///
/// `given` are the scenario's; without any the route to the server that the mount's source names
/// decides, and where that names none, all physical ports carry it.
///
/// # Errors
/// When an interface that is given is not there.
pub fn find(
    sys: &Path,
    fs_type: &str,
    source: &str,
    given: &[String],
) -> Result<Option<NetworkFacts>, NoInterface> {
    let ports = ports::all(sys);
    if !given.is_empty() {
        let chosen = by_names(sys, &ports, given)?;
        return Ok(Some(facts(&ports, LinkRule::Given, given.join(", "), &chosen)));
    }
    if is_local(fs_type, source) {
        return Ok(None);
    }
    let servers = route::servers(source);
    if let Some(way) = route::interfaces(&servers) {
        let ways = way.interfaces.iter().flat_map(|name| ports::under(sys, &ports, name));
        let chosen: Vec<usize> = ways.collect();
        if way.loopback || !chosen.is_empty() {
            return Ok(Some(facts(&ports, LinkRule::Route, servers.join(", "), &chosen)));
        }
    }
    Ok(Some(all_physical(&ports)))
}

fn all_physical(ports: &[Port]) -> NetworkFacts {
    let physical = |physical| {
        let all = ports.iter().enumerate().filter(move |(_, port)| port.physical == physical);
        all.map(|(at, _)| at).collect::<Vec<usize>>()
    };
    // A network namespace has virtual ports alone.
    let (chosen, reason) = match physical(true) {
        none if none.is_empty() => (physical(false), "all ports, none of which is physical"),
        some => (some, "all physical ports"),
    };
    facts(ports, LinkRule::Physical, reason.to_owned(), &chosen)
}

/// The links of a host whatever it serves: those that are given, else all physical ones.
///
/// # Errors
/// When an interface that is given is not there.
pub fn of_host(sys: &Path, given: &[String]) -> Result<NetworkFacts, NoInterface> {
    let ports = ports::all(sys);
    if given.is_empty() {
        return Ok(all_physical(&ports));
    }
    let chosen = by_names(sys, &ports, given)?;
    Ok(facts(&ports, LinkRule::Given, given.join(", "), &chosen))
}

fn is_local(fs_type: &str, source: &str) -> bool {
    let on_a_device = source.starts_with('/') && !source.starts_with("//");
    LOCAL.contains(&fs_type) || (on_a_device && !SHARED.contains(&fs_type))
}

fn by_names(sys: &Path, ports: &[Port], given: &[String]) -> Result<Vec<usize>, NoInterface> {
    let mut all = Vec::new();
    for name in given {
        let found = ports::under(sys, ports, name);
        if found.is_empty() {
            let known = ports.iter().map(|port| port.facts.name.clone()).collect();
            return Err(NoInterface { name: name.clone(), known });
        }
        all.extend(found);
    }
    Ok(all)
}

fn facts(ports: &[Port], rule: LinkRule, reason: String, chosen: &[usize]) -> NetworkFacts {
    let of = |carries: bool| {
        let all = ports.iter().enumerate();
        let those = all.filter(move |(at, _)| chosen.contains(at) == carries);
        those.map(|(_, port)| port.facts.clone()).collect::<Vec<LinkFacts>>()
    };
    NetworkFacts { rule, reason, links: of(true), others: of(false) }
}

/// Reads the counters of ports, in the order of their facts: first the links, then the others.
#[derive(Debug, Clone)]
pub struct Counters {
    ports: Vec<[Vec<Counter>; 2]>,
}

/// One file, and the bytes that it counts by.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Counter {
    path: PathBuf,
    bytes: u64,
}

impl Counters {
    /// Of the ports of a network host.
    #[must_use]
    pub fn of(sys: &Path, network: &NetworkFacts) -> Self {
        let all = network.links.iter().chain(&network.others);
        Self { ports: all.map(|link| counters(sys, link)).collect() }
    }

    /// As they stand; none of a port that can't be read.
    #[must_use]
    pub fn read(&self) -> Vec<Option<LinkCounters>> {
        let sum = |counters: &[Counter]| {
            counters.iter().try_fold(0_u64, |sum, counter| {
                let count = number(&counter.path)?;
                Some(sum.wrapping_add(count.wrapping_mul(counter.bytes)))
            })
        };
        let read = |[rx, tx]: &[Vec<Counter>; 2]| {
            Some(LinkCounters { rx_bytes: sum(rx)?, tx_bytes: sum(tx)? })
        };
        self.ports.iter().map(read).collect()
    }
}

/// Received and sent.
fn counters(sys: &Path, link: &LinkFacts) -> [Vec<Counter>; 2] {
    let net = sys.join("class/net").join(&link.name);
    let interface = |name: &str| Counter { path: net.join("statistics").join(name), bytes: 1 };
    let port = |dir: &Path, name: &str| Counter {
        path: dir.join("counters").join(name),
        bytes: WORD_BYTES,
    };
    match link.kind {
        LinkKind::Ethernet => [vec![interface("rx_bytes")], vec![interface("tx_bytes")]],
        LinkKind::InfiniBand => {
            let (device, number) = link.name.split_once('/').unwrap_or((&link.name, "1"));
            let dir = sys.join("class/infiniband").join(device).join("ports").join(number);
            [vec![port(&dir, "port_rcv_data")], vec![port(&dir, "port_xmit_data")]]
        }
        LinkKind::Roce => {
            let dir = ports::rdma_of(sys, &net).unwrap_or_default();
            [
                vec![interface("rx_bytes"), port(&dir, "port_rcv_data")],
                vec![interface("tx_bytes"), port(&dir, "port_xmit_data")],
            ]
        }
    }
}

fn text(path: &Path) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

fn number(path: &Path) -> Option<u64> {
    text(path)?.parse().ok()
}
