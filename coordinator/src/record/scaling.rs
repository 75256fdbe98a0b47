//! How a stage's rate grows with the number of threads.

use serde::{Deserialize, Serialize};

use super::{Swept, Unit};

/// A ramp over threads: sound points of one stage that differ in their threads and repetition alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Scaling {
    /// Name of the stage.
    pub stage: String,
    /// What else is swept, and its values.
    pub swept: Vec<Swept>,
    /// Indexes of its points.
    pub points: Vec<u32>,
    /// What the rate counts.
    pub unit: Unit,
    /// Least number of threads with 95 % of the greatest rate; null where there is one point alone.
    pub knee_threads: Option<u32>,
    /// Universal Scalability Law; null where `no_fit` says why.
    pub fit: Option<ScalingFit>,
    /// Why there is no fit; null where there is one.
    pub no_fit: Option<String>,
}

/// A demand of the scenario, and whether it was met.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RequirementResult {
    /// As the scenario has it.
    pub text: String,
    /// What was measured, in bytes or operations per second, or ns; null where no sound point says.
    pub value: Option<f64>,
    /// What was demanded, in the same unit.
    pub limit: f64,
    /// Whether it was met.
    pub passed: bool,
}

/// X(N) = lambda N / (1 + contention (N - 1) + coherency N (N - 1)).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ScalingFit {
    /// Rate of one thread, per second.
    pub lambda: f64,
    /// Share of contention.
    pub contention: f64,
    /// Share of coherency.
    pub coherency: f64,
    /// Coefficient of determination.
    pub r2: f64,
    /// Threads beyond which the rate would fall; null where it never does.
    pub peak_threads: Option<f64>,
    /// Measured over fitted rate less 1, for each number of threads.
    pub residuals: Vec<f64>,
}
