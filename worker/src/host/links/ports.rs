//! The ports below a sysfs tree.

use std::{
    fs,
    path::{Path, PathBuf},
};

use iofleet_shared::facts::{LinkFacts, LinkKind};

use super::{number, rate, text};

/// `type` of Ethernet and of InfiniBand interfaces (`ARPHRD_*`).
const ETHERNET: u64 = 1;
const INFINIBAND: u64 = 32;
const BITS_PER_MBIT: u64 = 1_000_000;

/// A port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Port {
    pub(super) facts: LinkFacts,
    /// There is an adapter to it.
    pub(super) physical: bool,
}

/// All that are up, by name.
pub(super) fn all(sys: &Path) -> Vec<Port> {
    let nets = names(&sys.join("class/net"));
    let interfaces = nets.iter().filter_map(|name| interface(sys, name));
    let mut ports: Vec<Port> = interfaces.chain(infiniband(sys)).collect();
    ports.sort_by(|a, b| a.facts.name.cmp(&b.facts.name));
    ports
}

/// The places of the ports that an interface, or a port, of this name is counted by. Nothing where
/// there is none.
pub(super) fn under(sys: &Path, ports: &[Port], name: &str) -> Vec<usize> {
    let mut found = Vec::new();
    // A device on devices is seen once, whatever circle a driver makes of them.
    let mut seen: Vec<String> = Vec::new();
    let mut todo = vec![name.to_owned()];
    while let Some(name) = todo.pop() {
        if seen.contains(&name) {
            continue;
        }
        match counted_as(sys, ports, &name) {
            Some(at) if found.contains(&at) => {}
            Some(at) => found.push(at),
            None => {
                let net = sys.join("class/net").join(&name);
                todo.extend(aggregate_of(sys, &net).map_or_else(|| lowers(&net), |one| vec![one]));
            }
        }
        seen.push(name);
    }
    found.sort_unstable();
    found
}

fn counted_as(sys: &Path, ports: &[Port], name: &str) -> Option<usize> {
    let place = |name: &str| ports.iter().position(|port| port.facts.name == name);
    let net = sys.join("class/net").join(name);
    let over_infiniband = || {
        let port = rdma_port(&net).filter(|_| number(&net.join("type")) == Some(INFINIBAND))?;
        place(&port_name(&port)?)
    };
    // A device of one port may be named without its number.
    place(name).or_else(over_infiniband).or_else(|| place(&format!("{name}/1")))
}

fn interface(sys: &Path, name: &str) -> Option<Port> {
    let net = sys.join("class/net").join(name);
    let ethernet = number(&net.join("type")) == Some(ETHERNET);
    let up = text(&net.join("operstate")).is_some_and(|state| state == "up" || state == "unknown");
    // What lies on others and is no aggregate of them is counted by them.
    let on_top = aggregate_of(sys, &net).is_some()
        || net.join("bridge").exists()
        || (!is_aggregate(&net) && !lowers(&net).is_empty());
    if !ethernet || !up || on_top {
        return None;
    }
    let physical = net.join("device").exists() || members_are_physical(sys, &net);
    let roce = rdma_of(sys, &net).is_some();
    let (bits_per_s, speed_source) = speed(&net, physical);
    Some(Port {
        facts: LinkFacts {
            name: name.to_owned(),
            kind: if roce { LinkKind::Roce } else { LinkKind::Ethernet },
            bits_per_s,
            speed_source,
            mtu: number(&net.join("mtu")).and_then(|mtu| u32::try_from(mtu).ok()),
            driver: driver(&net),
        },
        physical,
    })
}

fn members_are_physical(sys: &Path, net: &Path) -> bool {
    let members = text(&net.join("bonding/slaves")).unwrap_or_default();
    let mut members = members.split_whitespace();
    members.any(|name| sys.join("class/net").join(name).join("device").exists())
}

/// The kernel says nothing of a port without carrier, and 10000 of any virtual one.
fn speed(net: &Path, physical: bool) -> (Option<u64>, String) {
    let mbit = text(&net.join("speed")).and_then(|text| text.parse::<i64>().ok());
    let bits = mbit.and_then(|mbit| u64::try_from(mbit).ok()).filter(|mbit| *mbit > 0);
    let source = match (bits, physical) {
        (None, _) => "unknown",
        (Some(_), true) => "kernel",
        (Some(_), false) => "kernel, of a virtual port",
    };
    (bits.map(|mbit| mbit * BITS_PER_MBIT), source.to_owned())
}

fn infiniband(sys: &Path) -> Vec<Port> {
    let class = sys.join("class/infiniband");
    let mut ports = Vec::new();
    for device in names(&class) {
        for number in names(&class.join(&device).join("ports")) {
            ports.extend(infiniband_port(&class.join(&device), &device, &number));
        }
    }
    ports
}

fn infiniband_port(dir: &Path, device: &str, number: &str) -> Option<Port> {
    let port = dir.join("ports").join(number);
    // RoCE is counted with its Ethernet interface.
    let is_infiniband = text(&port.join("link_layer")).is_none_or(|layer| layer == "InfiniBand");
    let active = text(&port.join("state")).is_some_and(|state| state.ends_with("ACTIVE"));
    if !is_infiniband || !active {
        return None;
    }
    let rate = text(&port.join("rate")).and_then(|text| rate::parse(&text));
    let (bits_per_s, speed_source) =
        rate.map_or_else(|| (None, "unknown".to_owned()), |(rate, source)| (Some(rate), source));
    Some(Port {
        facts: LinkFacts {
            name: format!("{device}/{number}"),
            kind: LinkKind::InfiniBand,
            bits_per_s,
            speed_source,
            mtu: None,
            driver: driver(dir),
        },
        physical: true,
    })
}

/// The RDMA port of an interface: `…/device/infiniband/mlx5_0/ports/1`.
pub(super) fn rdma_port(net: &Path) -> Option<PathBuf> {
    let devices = net.join("device/infiniband");
    let device = names(&devices).into_iter().next()?;
    let number = number(&net.join("dev_port")).unwrap_or(0) + 1;
    let port = devices.join(device).join("ports").join(number.to_string());
    port.exists().then_some(port)
}

/// `mlx5_0/1` of `…/mlx5_0/ports/1`.
fn port_name(port: &Path) -> Option<String> {
    let number = port.file_name()?.to_str()?;
    let device = port.parent()?.parent()?.file_name()?.to_str()?;
    Some(format!("{device}/{number}"))
}

/// The RDMA port that belongs to an interface, or to the first member of a bond that has one.
pub(super) fn rdma_of(sys: &Path, net: &Path) -> Option<PathBuf> {
    let members = text(&net.join("bonding/slaves")).unwrap_or_default();
    let of_member = |name: &str| rdma_port(&sys.join("class/net").join(name));
    rdma_port(net).or_else(|| members.split_whitespace().find_map(of_member))
}

/// A device whose counters are those of all its members together: a bond, or an adapter with a faster
/// one inside (the virtual function of `hv_netvsc`, the primary of `net_failover`).
fn is_aggregate(net: &Path) -> bool {
    net.join("bonding").exists() || net.join("device").exists()
}

/// The aggregate that an interface is a member of. A bridge, a switch, a team or a routing table is
/// none: their members count for themselves.
fn aggregate_of(sys: &Path, net: &Path) -> Option<String> {
    let master = link_target(&net.join("master"))?;
    let above = sys.join("class/net").join(&master);
    let bridged = above.join("bridge").exists();
    (!bridged && is_aggregate(&above)).then_some(master)
}

/// What an interface lies on.
fn lowers(net: &Path) -> Vec<String> {
    let lower = |name: String| name.strip_prefix("lower_").map(str::to_owned);
    names(net).into_iter().filter_map(lower).collect()
}

fn driver(net: &Path) -> String {
    link_target(&net.join("device/driver")).unwrap_or_default()
}

fn link_target(link: &Path) -> Option<String> {
    Some(fs::read_link(link).ok()?.file_name()?.to_str()?.to_owned())
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}
