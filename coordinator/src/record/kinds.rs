//! What was done by kind of operation, and over time.

use iofleet_shared::{stats, work::OpKind};
use serde::{Deserialize, Serialize};

pub use crate::figures::{LatencySummary as Latency, Rates};

/// Latencies of a point or an interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Latencies {
    /// Issue to completion; null where nothing completed.
    pub service: Option<Latency>,
    /// Intended start to completion; null without an offered rate.
    pub response: Option<Latency>,
}

/// Counts of one kind of operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ByOp {
    /// `write`, `read`, `stat` and so on.
    pub op: String,
    /// Payload.
    pub bytes: u64,
    /// Operations.
    pub ops: u64,
    /// Failed ones.
    pub errors: u64,
    /// Latencies.
    pub latency_ns: Latencies,
    /// Bytes per second, in the window and over the span of all kinds.
    #[serde(default)]
    pub bandwidth: Rates,
    /// Operations per second, likewise.
    #[serde(default)]
    pub iops: Rates,
}

/// What an interval belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum IntervalPhase {
    /// Warm-up: in no figure.
    Ramp,
    /// The measured phase.
    Measure,
    /// After the deadline of a point by time: operations that were in flight.
    Drain,
}

impl IntervalPhase {
    /// As in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Ramp => "ramp",
            Self::Measure => "measure",
            Self::Drain => "drain",
        }
    }
}

/// The fleet in one interval: operations whole in the interval in which they completed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// Number.
    pub k: u32,
    /// Begin, after T0.
    pub start_s: f64,
    /// Length; the last one ends with the last thread.
    pub seconds: f64,
    /// What it belongs to.
    pub phase: IntervalPhase,
    /// Payload.
    pub bytes: u64,
    /// Operations.
    pub ops: u64,
    /// Failed ones.
    pub errors: u64,
    /// Service times; null where nothing completed or they are counted with a later interval.
    pub latency_ns: Option<Latency>,
    /// Response times likewise; null without an offered load.
    #[serde(default)]
    pub response_ns: Option<Latency>,
    /// The same by kind of operation, where the point has more than one.
    #[serde(default)]
    pub by_op: Vec<IntervalOp>,
}

/// Operations of one kind in one interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct IntervalOp {
    /// `write`, `read`, `stat` and so on.
    pub op: String,
    /// Payload.
    pub bytes: u64,
    /// Operations.
    pub ops: u64,
    /// Failed ones.
    pub errors: u64,
    /// Service times; null as those of the interval.
    pub latency_ns: Option<Latency>,
    /// Response times; null as those of the interval.
    pub response_ns: Option<Latency>,
}

/// What a latency is counted from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LatencyKind {
    /// The issue of the operation.
    Service,
    /// Its intended start.
    Response,
}

impl LatencyKind {
    /// As in the store.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Response => "response",
        }
    }
}

/// A histogram of a point, which the store keeps beside the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    /// Of which kind of operation; none: of all.
    pub op: Option<OpKind>,
    /// What it counts.
    pub kind: LatencyKind,
    /// The latencies.
    pub latency: stats::Latency,
}
