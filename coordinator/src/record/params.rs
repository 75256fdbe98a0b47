//! What was asked of a point.

use serde::{Deserialize, Serialize};

/// What was asked of a point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// I/O threads of the fleet.
    pub threads: u32,
    /// Nodes that have work.
    pub nodes: u32,
    /// Kinds of operation with their weights; empty in records of before there were mixes.
    #[serde(default)]
    pub ops: Vec<OpWeight>,
    /// As in scenarios: `file-per-thread`, `shared-file` and so on.
    pub layout: String,
    /// Of each thread's file, or of the shared one.
    pub file_bytes: u64,
    /// Of the smallest operation.
    pub block_bytes: u64,
    /// Sizes of operations with their weights; empty in records of before there were mixes.
    #[serde(default)]
    pub blocks: Vec<SizeWeight>,
    /// Order of blocks.
    pub pattern: String,
    /// Length of the measured phase; null by size.
    pub duration_ns: Option<u64>,
    /// Length of the warm-up.
    pub ramp_ns: u64,
    /// Direct I/O.
    pub direct: bool,
    /// How else files are opened and prepared.
    #[serde(default)]
    pub options: Options,
    /// Engine.
    pub engine: String,
    /// Operations in flight per thread.
    #[serde(default = "one")]
    pub depth: u32,
    /// How the engine is set: `sqpoll`, `iopoll`, `high-priority`.
    #[serde(default)]
    pub engine_flags: Vec<String>,
    /// The offered load; null where each operation follows the one before.
    #[serde(default)]
    pub rate: Option<Rate>,
    /// Pause of a thread after each burst of operations; 0: none.
    #[serde(default)]
    pub think_ns: u64,
    /// Operations of a thread before each of its pauses; 0 where it does not pause.
    #[serde(default)]
    pub burst: u32,
    /// Whether each thread of a mix has one kind of operation.
    #[serde(default)]
    pub mix_by_thread: bool,
    /// Cores that threads are bound to, in turn; null: the kernel's choice.
    #[serde(default)]
    pub cores: Option<Vec<u32>>,
    /// NUMA nodes that threads and buffers are bound to, in turn; null: the kernel's choice.
    #[serde(default)]
    pub numa_nodes: Option<Vec<u32>>,
    /// Whether buffers lie in huge pages.
    #[serde(default)]
    pub huge_pages: bool,
    /// Whether caches were dropped and other nodes read than wrote.
    #[serde(default)]
    pub cold: bool,
    /// Whether what is read is compared with what was written.
    #[serde(default)]
    pub verify: bool,
    /// Fsync policy; null where the point writes no bytes.
    pub fsync: Option<String>,
    /// Fresh files; null where the point writes no bytes.
    pub fresh: Option<bool>,
    /// Seed.
    pub seed: u64,
    /// Swept keys and their values as written, in order.
    pub swept: Vec<Swept>,
}

/// A swept key and its value in this point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Swept {
    /// Key.
    pub key: String,
    /// Value as people write it.
    pub value: String,
}

/// A kind of operation in a mix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OpWeight {
    /// `write`, `read`, `stat` and so on.
    pub op: String,
    /// Its share is this over the sum of all.
    pub weight: u32,
}

/// A size of operations in a mix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SizeWeight {
    /// Bytes.
    pub bytes: u64,
    /// Its share is this over the sum of all.
    pub weight: u32,
}

/// How files are opened and prepared, beside `direct`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// `O_DSYNC`.
    pub dsync: bool,
    /// `O_APPEND`.
    pub append: bool,
    /// Space is allocated while arming.
    pub preallocate: bool,
    /// Files are truncated while arming, in place of being made anew.
    pub truncate: bool,
    /// `flock` around each operation.
    pub lock: bool,
    /// What the kernel is told of coming accesses; null: nothing.
    pub advice: Option<String>,
}

/// A load that is offered whatever becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// Operations per second of the whole fleet.
    pub per_s: f64,
    /// Gaps are drawn from an exponential distribution; otherwise they are all the same.
    pub exponential: bool,
}

/// The depth of records that do not name it.
fn one() -> u32 {
    1
}
