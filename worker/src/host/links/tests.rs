//! Trees as machines have them, and this machine's own.

use std::os::unix::fs::symlink;

use super::*;

/// A sysfs tree.
struct Tree(tempfile::TempDir);

impl Tree {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn root(&self) -> &Path {
        self.0.path()
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    fn link(&self, path: &str, to: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(to, path).unwrap();
    }

    /// An interface that is up, with counters.
    fn interface(&self, name: &str, kind: u64, speed: i64, rx: u64, tx: u64) {
        let at = format!("class/net/{name}");
        self.put(&format!("{at}/type"), &kind.to_string());
        self.put(&format!("{at}/operstate"), "up");
        self.put(&format!("{at}/mtu"), "1500");
        self.put(&format!("{at}/speed"), &speed.to_string());
        self.put(&format!("{at}/statistics/rx_bytes"), &rx.to_string());
        self.put(&format!("{at}/statistics/tx_bytes"), &tx.to_string());
    }

    /// A port of an InfiniBand device, in words.
    fn port(&self, at: &str, layer: &str, rate: &str, rx: u64, tx: u64) {
        self.put(&format!("{at}/link_layer"), layer);
        self.put(&format!("{at}/state"), "4: ACTIVE");
        self.put(&format!("{at}/rate"), rate);
        self.put(&format!("{at}/counters/port_rcv_data"), &rx.to_string());
        self.put(&format!("{at}/counters/port_xmit_data"), &tx.to_string());
    }

    fn adapter(&self, name: &str, driver: &str) {
        let at = format!("class/net/{name}/device/driver");
        self.link(&at, &format!("../../../bus/pci/drivers/{driver}"));
    }

    fn find(&self, given: &[&str]) -> NetworkFacts {
        let given: Vec<String> = given.iter().map(|&name| name.to_owned()).collect();
        find(self.root(), "beegfs", "beegfs_nodev", &given).unwrap().unwrap()
    }
}

fn names(links: &[LinkFacts]) -> Vec<&str> {
    links.iter().map(|link| link.name.as_str()).collect()
}

fn read(tree: &Tree, network: &NetworkFacts) -> Vec<(u64, u64)> {
    let counters = Counters::of(tree.root(), network).read();
    counters.into_iter().map(|c| c.map_or((0, 0), |c| (c.rx_bytes, c.tx_bytes))).collect()
}

/// An EDR port with IP over it: counted at the port, in words, and not twice.
#[test]
fn an_edr_port_and_its_ip_interface_are_one() {
    let tree = Tree::new();
    tree.port("class/infiniband/mlx5_0/ports/1", "InfiniBand", "100 Gb/sec (4X EDR)", 250, 1_000);
    tree.interface("ib0", 32, -1, 77, 88);
    let inside = "class/net/ib0/device/infiniband/mlx5_0/ports/1";
    tree.port(inside, "InfiniBand", "100 Gb/sec (4X EDR)", 250, 1_000);
    tree.put("class/net/ib0/dev_port", "0");
    let network = tree.find(&[]);
    assert_eq!((network.rule, names(&network.links)), (LinkRule::Physical, vec!["mlx5_0/1"]));
    assert_eq!(network.links[0].bits_per_s, Some(100_000_000_000));
    assert_eq!(read(&tree, &network), [(1_000, 4_000)]);
    for name in ["ib0", "mlx5_0", "mlx5_0/1"] {
        assert_eq!(names(&tree.find(&[name]).links), ["mlx5_0/1"], "{name}");
    }
}

#[test]
fn an_fdr_port_is_not_as_fast_as_its_text() {
    let tree = Tree::new();
    tree.port("class/infiniband/mlx4_0/ports/2", "InfiniBand", "56 Gb/sec (4X FDR)", 0, 0);
    let network = tree.find(&[]);
    assert!(network.links[0].bits_per_s.unwrap().abs_diff(54_545_454_545) < 1_000);
    assert!(network.links[0].speed_source.contains("less its coding"));
}

/// Of RoCE the interface counts what the kernel sends, the port what the adapter sends by itself.
#[test]
fn roce_is_both_counters_together() {
    let tree = Tree::new();
    tree.interface("eth2", 1, 100_000, 10, 20);
    tree.adapter("eth2", "mlx5_core");
    tree.put("class/net/eth2/dev_port", "0");
    let rate = "100 Gb/sec (4X EDR)";
    tree.port("class/net/eth2/device/infiniband/mlx5_1/ports/1", "Ethernet", rate, 100, 200);
    tree.port("class/infiniband/mlx5_1/ports/1", "Ethernet", rate, 100, 200);
    let network = tree.find(&[]);
    assert_eq!(names(&network.links), ["eth2"]);
    assert_eq!((network.links[0].kind, &*network.links[0].driver), (LinkKind::Roce, "mlx5_core"));
    assert_eq!(read(&tree, &network), [(410, 820)]);
}

fn bond(tree: &Tree) {
    for name in ["eth0", "eth1"] {
        tree.interface(name, 1, 25_000, 1, 1);
        tree.adapter(name, "i40e");
        tree.link(&format!("class/net/{name}/master"), "../bond0");
    }
    tree.interface("bond0", 1, 50_000, 1_000, 2_000);
    tree.put("class/net/bond0/bonding/slaves", "eth0 eth1");
}

#[test]
fn a_bond_of_two_is_one_link() {
    let tree = Tree::new();
    bond(&tree);
    let network = tree.find(&[]);
    assert_eq!((names(&network.links), network.others.len()), (vec!["bond0"], 0));
    assert_eq!(network.links[0].bits_per_s, Some(50_000_000_000));
    assert_eq!(read(&tree, &network), [(1_000, 2_000)]);
    assert_eq!(names(&tree.find(&["eth1"]).links), ["bond0"]);
}

#[test]
fn a_vlan_is_counted_by_what_lies_under_it() {
    let tree = Tree::new();
    bond(&tree);
    tree.interface("bond0.100", 1, 50_000, 5, 5);
    tree.link("class/net/bond0.100/lower_bond0", "../bond0");
    assert_eq!(names(&tree.find(&[]).links), ["bond0"]);
    let given = tree.find(&["bond0.100"]);
    assert_eq!((given.rule, names(&given.links)), (LinkRule::Given, vec!["bond0"]));
}

/// In a network namespace nothing is physical; on a machine virtual ports carry nothing.
#[test]
fn a_veth_counts_where_there_is_nothing_else() {
    let tree = Tree::new();
    tree.interface("veth7", 1, 10_000, 3, 4);
    let alone = tree.find(&[]);
    assert_eq!(names(&alone.links), ["veth7"]);
    assert!(alone.links[0].speed_source.contains("virtual"));
    tree.interface("eth0", 1, 1_000, 1, 2);
    tree.adapter("eth0", "igb");
    let both = tree.find(&[]);
    assert_eq!((names(&both.links), names(&both.others)), (vec!["eth0"], vec!["veth7"]));
    assert_eq!(read(&tree, &both), [(1, 2), (3, 4)]);
}

#[test]
fn ports_that_are_down_and_loopback_are_none() {
    let tree = Tree::new();
    tree.interface("lo", 772, 0, 9, 9);
    tree.interface("eth0", 1, -1, 1, 2);
    tree.adapter("eth0", "igb");
    tree.put("class/net/eth0/operstate", "down");
    assert!(tree.find(&[]).links.is_empty());
}

#[test]
fn a_name_that_is_not_there_is_told_with_those_that_are() {
    let tree = Tree::new();
    tree.interface("eth0", 1, 1_000, 1, 2);
    let error = find(tree.root(), "nfs", "a:/b", &["eht0".to_owned()]).unwrap_err();
    assert_eq!(error.to_string(), "there is no network interface eht0 here, but eth0");
}

#[test]
fn file_systems_of_one_machine_have_no_links() {
    let tree = Tree::new();
    tree.interface("eth0", 1, 1_000, 1, 2);
    assert_eq!(find(tree.root(), "ext4", "/dev/sda1", &[]).unwrap(), None);
    assert_eq!(find(tree.root(), "tmpfs", "tmpfs", &[]).unwrap(), None);
    // Their sources look like devices, and they are not.
    assert!(find(tree.root(), "gpfs", "/dev/fs1", &[]).unwrap().is_some());
    assert!(find(tree.root(), "cifs", "//no such host.invalid/share", &[]).unwrap().is_some());
}

#[test]
fn a_counter_that_is_missing_is_none() {
    let tree = Tree::new();
    tree.interface("eth0", 1, 1_000, 1, 2);
    let network = tree.find(&["eth0"]);
    fs::remove_file(tree.root().join("class/net/eth0/statistics/tx_bytes")).unwrap();
    assert_eq!(Counters::of(tree.root(), &network).read(), [None]);
}

/// The kernel's other account of the same counters.
#[test]
fn this_machines_counters_are_those_of_proc() {
    let counts = |name: &str| {
        let text = fs::read_to_string("/proc/net/dev").unwrap();
        let line = text.lines().find_map(|line| line.trim().strip_prefix(name)).unwrap().to_owned();
        let fields: Vec<u64> =
            line[1..].split_whitespace().map(|field| field.parse().unwrap()).collect();
        (fields[0], fields[8])
    };
    let sys = Path::new("/sys");
    let Ok(Some(network)) = find(sys, "nfs", "x", &[]) else { panic!("given nothing") };
    let Some(link) = network.links.first() else { return };
    let before = counts(&link.name);
    let read = Counters::of(sys, &network).read()[0].unwrap();
    let after = counts(&link.name);
    assert!((before.0..=after.0).contains(&read.rx_bytes), "{before:?} {read:?} {after:?}");
    assert!((before.1..=after.1).contains(&read.tx_bytes), "{before:?} {read:?} {after:?}");
}

/// A virtual function inside of a synthetic adapter: each names the other, and the adapter counts.
#[test]
fn a_device_that_names_its_member_and_is_named_by_it_is_one_port() {
    let tree = Tree::new();
    tree.interface("eth0", 1, 40_000, 300, 400);
    tree.adapter("eth0", "hv_netvsc");
    tree.link("class/net/eth0/lower_enP1", "../enP1");
    tree.interface("enP1", 1, 40_000, 290, 390);
    tree.adapter("enP1", "mlx5_core");
    tree.link("class/net/enP1/master", "../eth0");
    let network = tree.find(&[]);
    assert_eq!((names(&network.links), network.others.len()), (vec!["eth0"], 0));
    assert_eq!(names(&tree.find(&["enP1"]).links), ["eth0"]);
}

/// A team, or a switch of Open vSwitch: its members count, however its driver links them.
#[test]
fn members_of_what_is_no_bond_count_for_themselves() {
    let tree = Tree::new();
    tree.interface("team0", 1, 20_000, 7, 7);
    for (name, rx) in [("eth0", 10), ("eth1", 20)] {
        tree.interface(name, 1, 10_000, rx, 1);
        tree.adapter(name, "ixgbe");
        tree.link(&format!("class/net/{name}/master"), "../team0");
        tree.link(&format!("class/net/team0/lower_{name}"), &format!("../{name}"));
    }
    assert_eq!(names(&tree.find(&[]).links), ["eth0", "eth1"]);
    let given = tree.find(&["team0"]);
    assert_eq!(names(&given.links), ["eth0", "eth1"]);
    assert_eq!(read(&tree, &given), [(10, 1), (20, 1)]);
}

/// In a circle of devices without an adapter nothing is counted, and nothing hangs.
#[test]
fn a_circle_ends() {
    let tree = Tree::new();
    for (name, other) in [("a", "b"), ("b", "a")] {
        tree.interface(name, 1, 10_000, 1, 1);
        tree.link(&format!("class/net/{name}/lower_{other}"), &format!("../{other}"));
    }
    assert!(find(tree.root(), "nfs", "x", &["a".to_owned()]).is_err());
}

#[test]
fn roce_over_a_bond_counts_its_members_rdma_port() {
    let tree = Tree::new();
    bond(&tree);
    tree.put("class/net/eth0/dev_port", "0");
    let at = "class/net/eth0/device/infiniband/mlx5_bond_0/ports/1";
    tree.port(at, "Ethernet", "100 Gb/sec (4X EDR)", 100, 200);
    let network = tree.find(&[]);
    assert_eq!((names(&network.links), network.links[0].kind), (vec!["bond0"], LinkKind::Roce));
    assert_eq!(read(&tree, &network), [(1_400, 2_800)]);
}
