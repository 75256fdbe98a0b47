//! Placements as the kernel shows them, and those that can not be had.

use std::thread;

use super::*;
use crate::payload::{Buffer, memory::node_of};

const BUFFERS: Buffers =
    Buffers { threads: 3, per_thread: 2, bytes: (2 << 20) + 1, alignment: 4_096 };

fn placed(cores: Option<Vec<u32>>, numa_nodes: Option<Vec<u32>>) -> Placement {
    Placement { cores, numa_nodes, huge_pages: false }
}

fn refusal(placement: &Placement, sysfs: &Path) -> String {
    check(placement, &BUFFERS, sysfs).unwrap_err().to_string()
}

/// Nodes 0 (all cores of this process, memory), 1 (memory) and 2 (nothing).
fn tree() -> tempfile::TempDir {
    let tree = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = tree.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("devices/system/cpu/online", "0-8191\n");
    write("devices/system/node/online", "0-2\n");
    for (node, cpus, kib) in [(0, "0-8000\n", 16_337_060), (1, "\n", 4_096), (2, "\n", 0)] {
        let dir = format!("devices/system/node/node{node}");
        write(&format!("{dir}/cpulist"), cpus);
        let meminfo = format!("Node {node} MemTotal:  {kib} kB\nNode {node} MemFree:  1 kB\n");
        write(&format!("{dir}/meminfo"), &meminfo);
        write(&format!("{dir}/hugepages/hugepages-2048kB/nr_hugepages"), "20\n");
        let free = if node == 0 { "14\n" } else { "3\n" };
        write(&format!("{dir}/hugepages/hugepages-2048kB/free_hugepages"), free);
    }
    for (name, number) in [("nr", "20\n"), ("free", "14\n"), ("resv", "3\n")] {
        write(&format!("kernel/mm/hugepages/hugepages-2048kB/{name}_hugepages"), number);
    }
    tree
}

#[test]
fn cores_that_cannot_be_had_are_refused_by_name() {
    let allowed = cores::allowed().unwrap();
    let one = *allowed.0.first().unwrap();
    check(&placed(Some(vec![one]), None), &BUFFERS, Path::new(SYSFS)).unwrap();
    let text = refusal(&placed(Some(vec![one, 8_190]), None), Path::new(SYSFS));
    assert!(text.contains("core 8190 does not exist"), "{text}");
    assert!(text.ends_with(&format!("this process may use {allowed}")), "{text}");
    let text = refusal(&placed(Some(vec![8_190]), None), tree().path());
    let expected = format!("core 8190 is not one of those that this process may use ({allowed})");
    assert_eq!(text, expected);
    assert!(
        refusal(&placed(Some(Vec::new()), None), tree().path()).contains("empty list of cores")
    );
}

#[test]
fn nodes_that_cannot_be_had_are_refused_by_name() {
    let tree = tree();
    let of = |node| refusal(&placed(None, Some(vec![node])), tree.path());
    assert_eq!(of(3), "NUMA node 3 does not exist (there are: 0-2)");
    assert_eq!(of(2), "NUMA node 2 has no memory for buffers");
    assert!(
        of(1).starts_with("NUMA node 1 has no core that this process may use (its cores: none;")
    );
    let bare = tempfile::tempdir().unwrap();
    let text = refusal(&placed(None, Some(vec![0])), bare.path());
    assert!(text.starts_with("this kernel shows no NUMA nodes"), "{text}");
}

#[test]
fn too_few_huge_pages_are_refused_with_the_number_that_is_needed() {
    let tree = tree();
    let huge = |numa_nodes| Placement { huge_pages: true, numa_nodes, ..Placement::default() };
    // Each of the six buffers takes two pages; of the 14 free ones 3 are promised.
    let text = refusal(&huge(None), tree.path());
    let expected = "huge pages of 2 MiB: 12 are needed for the buffers and 11 of 20 are free: \
                    set vm.nr_hugepages to at least 21 (now 20)";
    assert_eq!(text, expected);
    let fewer = Buffers { bytes: 2 << 20, ..BUFFERS };
    check(&huge(None), &fewer, tree.path()).unwrap();
    // Two of three threads are on the first node, one on the second.
    let on_nodes = |nodes: &[u32], bytes| {
        check_huge_pages(Some(nodes), &Buffers { bytes, ..BUFFERS }, tree.path())
    };
    assert!(on_nodes(&[0, 1], 2 << 20).is_ok());
    let text = on_nodes(&[1, 0], 2 << 20).unwrap_err().to_string();
    assert!(text.contains("on NUMA node 1: 4 are needed for the buffers and 3 are free"), "{text}");
    assert!(text.contains("write at least 21 to "), "{text}");
    assert!(text.ends_with("node/node1/hugepages/hugepages-2048kB/nr_hugepages"), "{text}");
    let bare = tempfile::tempdir().unwrap();
    assert!(refusal(&huge(None), bare.path()).contains("no huge pages of 2 MiB"));
}

/// The cores that a thread of its own is bound to when it asks for them.
fn cores_when_bound(placement: Placement, index: usize, sysfs: PathBuf) -> io::Result<CpuList> {
    thread::spawn(move || {
        bind_thread_at(&placement, index, &sysfs)?;
        let status = fs::read_to_string("/proc/thread-self/status")?;
        let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        CpuList::parse(line.unwrap_or("?")).ok_or_else(|| io::ErrorKind::InvalidData.into())
    })
    .join()
    .unwrap()
}

#[test]
fn binding_is_what_the_kernel_shows() {
    let allowed = cores::allowed().unwrap();
    let (first, last) = (*allowed.0.first().unwrap(), *allowed.0.last().unwrap());
    let tree = tree();
    let bound = |cores: Option<Vec<u32>>, nodes: Option<Vec<u32>>, index| {
        cores_when_bound(placed(cores, nodes), index, tree.path().to_owned())
    };
    let two = Some(vec![first, last]);
    assert_eq!(bound(two.clone(), Some(vec![1]), 2).unwrap(), CpuList([first].into()));
    assert_eq!(bound(two, None, 3).unwrap(), CpuList([last].into()));
    assert_eq!(bound(None, Some(vec![0]), 7).unwrap(), allowed);
    assert_eq!(bound(None, None, 0).unwrap(), allowed);
    let error = bound(Some(vec![8_190]), None, 0).unwrap_err().to_string();
    assert!(error.starts_with("can't bind a thread to core 8190: "), "{error}");
    let error = bound(None, Some(vec![1]), 0).unwrap_err().to_string();
    assert!(error.contains("NUMA node 1 has no core"), "{error}");
    fs::write(tree.path().join("devices/system/node/node1/cpulist"), format!("{last}\n")).unwrap();
    assert_eq!(bound(None, Some(vec![0, 1]), 1).unwrap(), CpuList([last].into()));
}

#[test]
fn buffers_lie_on_their_node() {
    let sysfs = Path::new(SYSFS);
    let on_first = placed(None, Some(vec![0]));
    match check(&on_first, &BUFFERS, sysfs) {
        Ok(()) => {}
        Err(error) => return println!("SKIP: {error}"),
    }
    let buffer = Buffer::with(1 << 20, 4_096, &MemoryPlace::of(&on_first, 5)).unwrap();
    let address = buffer.bytes().as_ptr();
    assert_eq!(node_of(address).unwrap(), 0);
    let maps = fs::read_to_string("/proc/self/numa_maps").unwrap();
    let start = format!("{:x} bind:0 ", address.addr());
    assert!(maps.lines().any(|line| line.starts_with(&start)), "{start} is not in\n{maps}");
}
