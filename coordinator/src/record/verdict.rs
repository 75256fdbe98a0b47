//! What bounds the result of a point.

use serde::{Deserialize, Serialize};

/// What bounds a point, with the numbers that say so. `docs/verdicts.md` has all codes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// Which.
    pub code: String,
    /// For people.
    pub text: String,
    /// The numbers that it goes by.
    pub evidence: Vec<Evidence>,
    /// What else is the case, in the order in which it would have been the verdict.
    pub also: Vec<Finding>,
    /// What is not known, and would have been looked at.
    pub missing: Vec<String>,
    /// The sweep has not ended: later points may change it.
    pub provisional: bool,
}

/// Another verdict that would have fitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// Which.
    pub code: String,
    /// For people.
    pub text: String,
    /// The numbers that it goes by.
    pub evidence: Vec<Evidence>,
}

/// A number and the threshold that it was compared with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// What it is.
    pub name: String,
    /// What was found.
    pub value: f64,
    /// The threshold.
    pub limit: f64,
}
