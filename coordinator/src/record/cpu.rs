//! What operations cost the generator's own threads.

use serde::{Deserialize, Serialize};

/// CPU time of I/O threads, from their start to their last completion: warm-up included. What kernel
/// workers did for them is not in it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Cpu {
    /// Outside of the kernel, over the operations of all phases; null if there were none.
    pub user_ns_per_op: Option<f64>,
    /// Inside of it, likewise.
    pub system_ns_per_op: Option<f64>,
    /// Outside of the kernel.
    pub user_ns: u64,
    /// Inside of it.
    pub system_ns: u64,
}
