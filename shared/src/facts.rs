//! What a worker observes of its machine and of the target, as plain data.

use rkyv::{Archive, Deserialize, Serialize};

/// Facts of a node that hold for as long as its daemon lives.
#[derive(Debug, Clone, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct HostFacts {
    /// Host name.
    pub hostname: String,
    /// The kernel's boot id: workers that share it are one machine.
    pub boot_id: String,
    /// Inode of the network namespace: with the boot id, a network host.
    pub net_namespace: u64,
    /// Number drawn when the daemon started: another one is another incarnation.
    pub incarnation: u64,
    /// Version of iofleet.
    pub version: String,
    /// Kernel release.
    pub kernel: String,
    /// CPUs that the daemon may use.
    pub cpus: u32,
    /// Memory of the machine in bytes.
    pub memory_bytes: u64,
    /// Clock that stamps operations: `tsc` or `clock_gettime`.
    pub stamp_clock: String,
    /// Smallest step of that clock in ns, rounded up.
    pub stamp_resolution_ns: u64,
    /// Cost of one stamp in ns, rounded.
    pub stamp_cost_ns: u64,
    /// Whether the control plane got a better priority than the I/O threads.
    pub control_priority: bool,
    /// How it is set up.
    pub setup: MachineSetup,
}

/// How a machine is set up, as far as it says.
#[derive(Debug, Clone, PartialEq, Eq, Default, Archive, Serialize, Deserialize)]
pub struct MachineSetup {
    /// As the processor names itself.
    pub cpu_model: Option<String>,
    /// Of the first core's frequency.
    pub governor: Option<String>,
    /// Of the kernel: `tsc`, `kvm-clock`, `hpet`.
    pub clock_source: Option<String>,
    /// Files that the worker may open at most; none: no limit.
    pub open_files_max: Option<u64>,
    /// Processes and threads that its user may have at most; none: no limit.
    pub processes_max: Option<u64>,
}

/// Where a direct-I/O alignment comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub enum AlignmentSource {
    /// `statx(STATX_DIOALIGN)` of a file in the target.
    Statx,
    /// An operation of the very block size on a scratch file went through.
    Probe,
}

/// What direct I/O needs on the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct DirectAlignment {
    /// Of buffers in memory, bytes.
    pub memory: u32,
    /// Of offsets and lengths, bytes.
    pub offset: u32,
    /// Who says so.
    pub source: AlignmentSource,
}

/// Facts of the target as one node sees it.
#[derive(Debug, Clone, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct TargetFacts {
    /// File system type as in /proc/self/mountinfo.
    pub fs_type: String,
    /// Mount source as in /proc/self/mountinfo.
    pub mount_source: String,
    /// Mount options as in /proc/self/mountinfo (per mount, then per super block).
    pub mount_options: String,
    /// Bytes that an unprivileged user may still write.
    pub free_bytes: u64,
    /// Size of the file system in bytes.
    pub total_bytes: u64,
    /// Free inodes; none where the file system does not count them.
    pub free_inodes: Option<u64>,
    /// Alignment of direct I/O; none where it was not asked for.
    pub alignment: Option<DirectAlignment>,
    /// The links towards it; none where they can't be known.
    pub network: Option<NetworkFacts>,
    /// What the mark of the campaign's directory says: the same on all nodes that see the same one.
    pub token: String,
}

/// How a link's bytes are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub enum LinkKind {
    /// By the interface's statistics: Ethernet, bonds, VLANs, veths.
    Ethernet,
    /// By the port's counters, in units of four bytes; IP over InfiniBand is inside them.
    InfiniBand,
    /// By the interface's statistics and the port's RDMA counters together.
    Roce,
}

/// By which rule links were taken for those that carry the file system's traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub enum LinkRule {
    /// The scenario names them.
    Given,
    /// The route to the server that the mount names.
    Route,
    /// All physical ports.
    Physical,
}

impl LinkRule {
    /// As in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Given => "interfaces",
            Self::Route => "route",
            Self::Physical => "physical",
        }
    }
}

/// A network port that is counted once, whatever lies on top of it.
#[derive(Debug, Clone, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct LinkFacts {
    /// As people know it: `eth0`, `bond0`, `mlx5_0/1`.
    pub name: String,
    /// How it is counted.
    pub kind: LinkKind,
    /// In each direction; none where nobody says.
    pub bits_per_s: Option<u64>,
    /// Who says so.
    pub speed_source: String,
    /// Largest packet in bytes; none where it is unknown.
    pub mtu: Option<u32>,
    /// The adapter's driver; empty where there is none.
    pub driver: String,
}

/// The links of a network host.
#[derive(Debug, Clone, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct NetworkFacts {
    /// How those that carry the traffic were found.
    pub rule: LinkRule,
    /// What the rule went by: the interfaces named, or the server's address.
    pub reason: String,
    /// Those that carry the file system's traffic.
    pub links: Vec<LinkFacts>,
    /// Other ports, sampled as well so that it can be said which one moved the bytes instead.
    pub others: Vec<LinkFacts>,
}
