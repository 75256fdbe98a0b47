//! What a machine's own counters said at an instant: of its links and its CPUs.

use rkyv::{Archive, Deserialize, Serialize};

/// Counters of one link since the machine counts, headers of the link included as its driver does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Archive, Serialize, Deserialize)]
pub struct LinkCounters {
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
}

/// CPU time of all CPUs since boot, ns; of guests, inside user time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Archive, Serialize, Deserialize)]
pub struct CpuCounters {
    /// In programs, at any priority.
    pub user_ns: u64,
    /// In the kernel.
    pub system_ns: u64,
    /// In interrupts, hard and soft: most of a network's work.
    pub softirq_ns: u64,
    /// Idle while I/O was awaited.
    pub iowait_ns: u64,
    /// Idle otherwise.
    pub idle_ns: u64,
    /// Taken by the hypervisor for others.
    pub steal_ns: u64,
}

/// All counters of a machine at an instant.
#[derive(Debug, Clone, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct HostSample {
    /// When they were read, ns after T0 on the worker's clock; before T0 below 0. The middle of the
    /// reading.
    pub at_ns: i64,
    /// Of the links and then the other ports, in the order of the node's
    /// [`crate::facts::NetworkFacts`]; none where one could not be read.
    pub links: Vec<Option<LinkCounters>>,
    /// None where the kernel does not say.
    pub cpu: Option<CpuCounters>,
    /// Greatest share in 1/1000 of the time since the sample before in which one CPU was busy; none
    /// in the first.
    pub busiest_core_milli: Option<u32>,
    /// Time that the I/O threads were ready to run and did not, summed, ns since they began; none
    /// where the kernel does not count it.
    pub run_delay_ns: Option<u64>,
}
