//! Where threads and buffers are put: what a scenario asks for is checked against the machine before
//! anything runs, since a thread that is not where the result says it was makes a wrong result.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use iofleet_shared::work::Placement;

use crate::payload::memory::{HUGE_PAGE, Mapping, MemoryPlace, PAGE};

pub use cores::CpuList;

mod cores;

/// Where the kernel shows cores, nodes and huge pages.
pub const SYSFS: &str = "/sys";

const HUGE_PAGES: &str = "hugepages/hugepages-2048kB";

/// Buffers of this worker in one point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffers {
    /// I/O threads of this worker.
    pub threads: u32,
    /// Buffers of each.
    pub per_thread: u32,
    /// Bytes of a buffer.
    pub bytes: u64,
    /// Its alignment, a power of two.
    pub alignment: u64,
}

/// Why a placement can't be had on this machine.
#[derive(Debug, thiserror::Error)]
pub enum PlacementError {
    /// Of the scenario.
    #[error("an empty list of {0}: leave it out where the kernel is to choose")]
    Empty(&'static str),
    /// Not there, or not running.
    #[error(
        "core {core} does not exist or is offline (online: {online}); this process may use \
         {allowed}"
    )]
    NoCore {
        /// Which.
        core: u32,
        /// Those that are online.
        online: CpuList,
        /// Those of the process.
        allowed: CpuList,
    },
    /// Of a cpuset, a unit's `CPUAffinity` or taskset.
    #[error("core {core} is not one of those that this process may use ({allowed})")]
    CoreNotAllowed {
        /// Which.
        core: u32,
        /// Those of the process.
        allowed: CpuList,
    },
    /// The kernel was built without NUMA.
    #[error("this kernel shows no NUMA nodes ({0} is not there)")]
    NoNuma(PathBuf),
    /// No such node.
    #[error("NUMA node {node} does not exist (there are: {online})")]
    NoNode {
        /// Which.
        node: u32,
        /// Those that are.
        online: CpuList,
    },
    /// A node of cores alone.
    #[error("NUMA node {0} has no memory for buffers")]
    NoMemory(u32),
    /// A node of memory alone, or of other processes.
    #[error(
        "NUMA node {node} has no core that this process may use (its cores: {cores}; this process \
         may use {allowed}): name `cores` for the threads"
    )]
    NoNodeCore {
        /// Which.
        node: u32,
        /// Its cores.
        cores: CpuList,
        /// Those of the process.
        allowed: CpuList,
    },
    /// The kernel does not bind memory for this process.
    #[error("{0}")]
    Bind(io::Error),
    /// Not a size of this kernel.
    #[error("this kernel has no huge pages of 2 MiB ({0} is not there)")]
    NoHugePages(PathBuf),
    /// Too few are reserved.
    #[error(
        "huge pages of 2 MiB: {needed} are needed for the buffers and {free} of {reserved} are free: \
         set vm.nr_hugepages to at least {} (now {reserved})",
        reserved.saturating_add(needed.saturating_sub(*free))
    )]
    FewHugePages {
        /// Pages.
        needed: u64,
        /// Free and promised to nobody.
        free: u64,
        /// In all.
        reserved: u64,
    },
    /// Too few are reserved on a node, whatever the others have.
    #[error(
        "huge pages of 2 MiB on NUMA node {node}: {needed} are needed for the buffers and {free} \
         are free (vm.nr_hugepages spreads them over all nodes): write at least {} to {}",
        reserved.saturating_add(needed.saturating_sub(*free)),
        path.display()
    )]
    FewNodeHugePages {
        /// Which.
        node: u32,
        /// Pages.
        needed: u64,
        /// Free.
        free: u64,
        /// In all, on the node.
        reserved: u64,
        /// Where the number of pages of the node is set.
        path: PathBuf,
    },
    /// Buffers that no machine has.
    #[error("buffers of {bytes} bytes, aligned to {alignment}, can't be had")]
    Impossible {
        /// Bytes of a buffer.
        bytes: u64,
        /// Its alignment.
        alignment: u64,
    },
    /// The machine can't be asked.
    #[error("{path}: {source}")]
    Unreadable {
        /// What was read.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// Checks that threads and `buffers` can be placed as asked for on this machine as it is now; other
/// processes may take huge pages a moment later. `sysfs` is [`SYSFS`] but in tests.
///
/// # Errors
/// What is missing, by name.
pub fn check(placement: &Placement, buffers: &Buffers, sysfs: &Path) -> Result<(), PlacementError> {
    let allowed = cores::allowed().map_err(|source| PlacementError::Unreadable {
        path: "sched_getaffinity".into(),
        source,
    })?;
    if let Some(cores) = &placement.cores {
        check_cores(cores, &allowed, sysfs)?;
    }
    if let Some(nodes) = &placement.numa_nodes {
        check_nodes(nodes, placement.cores.is_none().then_some(&allowed), sysfs)?;
    }
    if placement.huge_pages {
        check_huge_pages(placement.numa_nodes.as_deref(), buffers, sysfs)?;
    }
    Ok(())
}

/// Binds the calling thread, whose place among the I/O threads of this worker is `index` (from 0):
/// to its core, or else to the cores of its node; does nothing where the placement says neither.
///
/// # Errors
/// When the core or the node's cores are not there or not allowed to this process.
pub fn bind_thread(placement: &Placement, index: usize) -> io::Result<()> {
    bind_thread_at(placement, index, Path::new(SYSFS))
}

fn bind_thread_at(placement: &Placement, index: usize, sysfs: &Path) -> io::Result<()> {
    if let Some(core) = in_turn(placement.cores.as_deref(), index) {
        return cores::bind(&CpuList([core].into())).map_err(|error| {
            io::Error::new(error.kind(), format!("can't bind a thread to core {core}: {error}"))
        });
    }
    let Some(node) = in_turn(placement.numa_nodes.as_deref(), index) else {
        return Ok(());
    };
    let allowed = cores::allowed()?;
    let own = node_cores(sysfs, node, &allowed).map_err(io::Error::other)?;
    cores::bind(&own).map_err(|error| {
        let text = format!("can't bind a thread to cores {own} of NUMA node {node}: {error}");
        io::Error::new(error.kind(), text)
    })
}

fn in_turn(list: Option<&[u32]>, index: usize) -> Option<u32> {
    let list = list?;
    list.get(index.checked_rem(list.len())?).copied()
}

fn check_cores(cores: &[u32], allowed: &CpuList, sysfs: &Path) -> Result<(), PlacementError> {
    if cores.is_empty() {
        return Err(PlacementError::Empty("cores"));
    }
    let online = list_at(&sysfs.join("devices/system/cpu/online"))?;
    for &core in cores {
        if !online.contains(core) {
            return Err(PlacementError::NoCore { core, online, allowed: allowed.clone() });
        }
        if !allowed.contains(core) {
            return Err(PlacementError::CoreNotAllowed { core, allowed: allowed.clone() });
        }
    }
    Ok(())
}

/// With `threads_on`, the cores of the process, threads are to run on the nodes' cores.
fn check_nodes(
    nodes: &[u32],
    threads_on: Option<&CpuList>,
    sysfs: &Path,
) -> Result<(), PlacementError> {
    if nodes.is_empty() {
        return Err(PlacementError::Empty("NUMA nodes"));
    }
    let path = sysfs.join("devices/system/node/online");
    if !path.exists() {
        return Err(PlacementError::NoNuma(path));
    }
    let online = list_at(&path)?;
    for &node in nodes {
        if !online.contains(node) {
            return Err(PlacementError::NoNode { node, online });
        }
        let path = node_dir(sysfs, node).join("meminfo");
        if memory_kib(&text_at(&path)?).ok_or_else(|| damaged(&path))? == 0 {
            return Err(PlacementError::NoMemory(node));
        }
        if let Some(allowed) = threads_on {
            node_cores(sysfs, node, allowed)?;
        }
        // Only the kernel knows whether this process may: cpusets and seccomp filters forbid it.
        let place = MemoryPlace { huge_pages: false, numa_node: Some(node) };
        Mapping::new(PAGE, &place).map_err(PlacementError::Bind)?;
    }
    Ok(())
}

fn check_huge_pages(
    nodes: Option<&[u32]>,
    buffers: &Buffers,
    sysfs: &Path,
) -> Result<(), PlacementError> {
    let dir = sysfs.join("kernel/mm").join(HUGE_PAGES);
    if !dir.exists() {
        return Err(PlacementError::NoHugePages(dir));
    }
    let per_thread = pages_per_thread(buffers)?;
    let needed = u64::from(buffers.threads).saturating_mul(per_thread);
    let reserved = number_at(&dir.join("nr_hugepages"))?;
    let promised = number_at(&dir.join("resv_hugepages"))?;
    let free = number_at(&dir.join("free_hugepages"))?.saturating_sub(promised);
    if needed > free {
        return Err(PlacementError::FewHugePages { needed, free, reserved });
    }
    let nodes = nodes.unwrap_or_default();
    for &node in nodes {
        let threads = (0..buffers.threads as usize)
            .filter(|index| in_turn(Some(nodes), *index) == Some(node))
            .count() as u64;
        let dir = node_dir(sysfs, node).join(HUGE_PAGES);
        let needed = threads.saturating_mul(per_thread);
        let free = number_at(&dir.join("free_hugepages"))?;
        if needed > free {
            let path = dir.join("nr_hugepages");
            let reserved = number_at(&path)?;
            return Err(PlacementError::FewNodeHugePages { node, needed, free, reserved, path });
        }
    }
    Ok(())
}

/// Huge pages of a thread's buffers, each of which has its own.
fn pages_per_thread(buffers: &Buffers) -> Result<u64, PlacementError> {
    let &Buffers { per_thread, bytes, alignment, .. } = buffers;
    let place = MemoryPlace { huge_pages: true, numa_node: None };
    let mapped = usize::try_from(bytes)
        .ok()
        .zip(usize::try_from(alignment).ok())
        .and_then(|(bytes, alignment)| place.mapped(bytes, alignment))
        .ok_or(PlacementError::Impossible { bytes, alignment })?;
    Ok(u64::from(per_thread).saturating_mul((mapped / HUGE_PAGE) as u64))
}

/// The cores of a node that the process may use, at least one.
fn node_cores(sysfs: &Path, node: u32, allowed: &CpuList) -> Result<CpuList, PlacementError> {
    let cores = list_at(&node_dir(sysfs, node).join("cpulist"))?;
    let own = cores.and(allowed);
    if own.is_empty() {
        return Err(PlacementError::NoNodeCore { node, cores, allowed: allowed.clone() });
    }
    Ok(own)
}

fn node_dir(sysfs: &Path, node: u32) -> PathBuf {
    sysfs.join(format!("devices/system/node/node{node}"))
}

/// `Node 0 MemTotal:       16337060 kB`.
fn memory_kib(meminfo: &str) -> Option<u64> {
    let mut words = meminfo.lines().find(|line| line.contains("MemTotal:"))?.split_whitespace();
    words.nth(3)?.parse().ok()
}

fn list_at(path: &Path) -> Result<CpuList, PlacementError> {
    CpuList::parse(&text_at(path)?).ok_or_else(|| damaged(path))
}

fn number_at(path: &Path) -> Result<u64, PlacementError> {
    text_at(path)?.trim().parse().map_err(|_| damaged(path))
}

fn text_at(path: &Path) -> Result<String, PlacementError> {
    fs::read_to_string(path)
        .map_err(|source| PlacementError::Unreadable { path: path.to_owned(), source })
}

fn damaged(path: &Path) -> PlacementError {
    PlacementError::Unreadable { path: path.to_owned(), source: io::ErrorKind::InvalidData.into() }
}

#[cfg(test)]
mod tests;
