//! What a node's machine did between two readings of its counters.

use serde::{Deserialize, Serialize};

/// Between two samples.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NodeSample {
    /// Begin, after T0.
    pub from_s: f64,
    /// End, after T0.
    pub to_s: f64,
    /// What its links sent; null where that is not known.
    pub tx_bytes_per_s: Option<f64>,
    /// What they received.
    pub rx_bytes_per_s: Option<f64>,
    /// Shares of all CPUs' time; null where the kernel does not say.
    pub cpu: Option<CpuShares>,
    /// Busy share of the busiest CPU.
    pub busiest_core: Option<f64>,
    /// Time that its I/O threads were ready and did not run, summed.
    pub run_delay_ns: Option<u64>,
}

/// Shares of all CPUs' time; the rest is idle.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CpuShares {
    /// In programs.
    pub user: f64,
    /// In the kernel.
    pub system: f64,
    /// In interrupts, hard and soft.
    pub softirq: f64,
    /// Idle while I/O was awaited.
    pub iowait: f64,
    /// Taken by the hypervisor.
    pub steal: f64,
}
