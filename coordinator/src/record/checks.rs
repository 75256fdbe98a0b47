//! What an offered load came to, files, and whether what was read was what had been written.

use serde::{Deserialize, Serialize};

/// What an offered load came to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Offered {
    /// Operations per second that were offered to the whole fleet.
    pub per_s: f64,
    /// Operations per second that completed: in the window, else over the span.
    pub achieved_per_s: Option<f64>,
    /// Operations that arrived in the measured phase.
    pub arrived: u64,
    /// Operations that had arrived at the end and were never issued.
    pub not_issued: u64,
    /// Greatest number of operations that waited on one worker at one time.
    pub backlog_max: u64,
}

/// From open to close of the files that threads opened and closed while they ran.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Files {
    /// Files that were closed again.
    pub count: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Longest.
    pub max_ns: u64,
}

/// What the comparison of read with written data found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Verification {
    /// Whether the point read anything that was compared.
    pub checked: bool,
    /// What was not as it had been written.
    pub damages: Vec<Damage>,
}

/// Damaged units of one kind on one node, with the first of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Damage {
    /// Node that read them.
    pub node: String,
    /// `torn`, `stale`, `misdirected`, `corrupted`, `missing`.
    pub kind: String,
    /// Units of 4 KiB.
    pub units: u64,
    /// File of the first one.
    pub file: String,
    /// Its offset in the file.
    pub offset: u64,
    /// What was found there.
    pub found: String,
}
