//! Which interface the way to a server leads through.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs, UdpSocket};

use sysinfo::Networks;

/// Where no port is named: any will do, for nothing is sent.
const ANY_PORT: u16 = 9;

/// Ways to servers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Way {
    /// Names of interfaces, each once.
    pub(super) interfaces: Vec<String>,
    /// One of them is this machine itself.
    pub(super) loopback: bool,
}

/// The servers that a mount's source names: `host:/path`, `[fd00::1]:/path`, `a,b:/path`,
/// `//host/share` (CIFS), `10.0.0.1@tcp:10.0.0.2@tcp:/fs` (Lustre), `10.0.0.1:6789,10.0.0.2:6789:/` (CephFS).
pub(super) fn servers(source: &str) -> Vec<String> {
    if let Some(server) = source.strip_prefix("//").and_then(|rest| rest.split('/').next()) {
        return vec![server.to_owned()];
    }
    let Some((servers, _)) = source.split_once(":/") else { return Vec::new() };
    let mut found: Vec<String> = Vec::new();
    for part in servers.split(',') {
        if let Some(inside) = part.strip_prefix('[') {
            found.extend(inside.split(']').next().map(str::to_owned));
            continue;
        }
        let pieces = part.split(':').filter(|piece| piece.parse::<u16>().is_err());
        found.extend(pieces.map(|piece| piece.split('@').next().unwrap_or(piece).to_owned()));
    }
    found.retain(|server| !server.is_empty());
    found.dedup();
    found
}

/// The interfaces through which datagrams to the servers would leave; none where no name has an
/// address, or no address a way.
pub(super) fn interfaces(servers: &[String]) -> Option<Way> {
    let networks = Networks::new_with_refreshed_list().ok()?;
    let mut way = Way::default();
    for local in servers.iter().filter_map(|server| local_address(server)) {
        if local.is_loopback() {
            way.loopback = true;
            continue;
        }
        let owner = networks
            .iter()
            .find(|(_, data)| data.ip_networks().iter().any(|network| network.addr == local));
        let name = owner.and_then(|(name, _)| name.to_str());
        if let Some(name) = name.filter(|name| way.interfaces.iter().all(|known| known != name)) {
            way.interfaces.push(name.to_owned());
        }
    }
    (way.loopback || !way.interfaces.is_empty()).then_some(way)
}

/// The address that this host would send from. A UDP socket that connects asks the routing table
/// and sends nothing.
fn local_address(server: &str) -> Option<IpAddr> {
    let to = (server, ANY_PORT).to_socket_addrs().ok()?.next()?;
    let any: IpAddr = match to {
        std::net::SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        std::net::SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(to).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_of_each_kind_of_source() {
        for (source, expected) in [
            ("s1:/pfs", &["s1"][..]),
            ("10.0.0.1:/export/a", &["10.0.0.1"]),
            ("[fd00::1]:/x", &["fd00::1"]),
            ("a,b:/x", &["a", "b"]),
            ("10.0.0.1@tcp:10.0.0.2@tcp1:/fs", &["10.0.0.1", "10.0.0.2"]),
            ("10.0.0.1:6789,10.0.0.2:6789:/", &["10.0.0.1", "10.0.0.2"]),
            ("//srv/share", &["srv"]),
            ("beegfs_nodev", &[]),
            ("/dev/sda1", &[]),
        ] {
            assert_eq!(servers(source), expected, "{source}");
        }
    }

    #[test]
    fn the_way_to_this_machine_is_no_link() {
        let way = interfaces(&["127.0.0.1".to_owned()]).unwrap();
        assert_eq!(way, Way { interfaces: Vec::new(), loopback: true });
        assert_eq!(interfaces(&[]), None);
        assert_eq!(interfaces(&["no such host.invalid".to_owned()]), None);
    }
}
