//! Scenarios: the file as written, and its meaning as resolved.
//!
//! Text becomes a [`ScenarioFile`] (`file`: everything optional, every value with its place), the
//! command line and the environment change it (`overrides`), and [`load`] works out what it means
//! (`resolve`, `check`, `legal`, `coverage`). One table of keys (`keys`) drives all of that, the flags and the
//! documents (`docs`). Only `source` reads a file.

use std::sync::Arc;

use require::Requirement;
use speeds::LinkSpeeds;
use thresholds::Thresholds;

pub use canon::rate;
pub use docs::{json_schema, key_table};
pub use error::{Origin, ScenarioError};
pub use file::ScenarioFile;
pub use keys::{Effect, KEYS, Key, KeyId, Kind, Place};
pub use overrides::Override;
pub use params::{DirSharing, MixBy, Offer, OfferedRate, Params, RatePer, Tree, Verify};
pub use source::Source;
pub use value::Value;

mod canon;
mod check;
pub(crate) mod coverage;
mod docs;
mod effect;
mod error;
mod file;
pub mod hosts;
mod keys;
pub mod legal;
mod overrides;
mod params;
pub mod require;
mod resolve;
mod source;
pub mod speeds;
pub mod thresholds;
mod value;
pub mod words;

/// Reads a scenario, changes it as the overrides say (the last wins), and works out its meaning.
///
/// # Errors
/// When anything in it is wrong: all that can be found in one go, each at its place in the file or
/// at its argument.
pub fn load(
    source: &Source,
    overrides: &[Override],
    context: &Context,
) -> Result<Scenario, ScenarioError> {
    resolve::load(source, overrides, context)
}

/// What a command says beside the scenario.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Context {
    /// The fleet is started on this machine: neither workers nor a path are needed, and workers
    /// that the scenario names are not used.
    pub local: bool,
    /// `--workers`, which wins over the scenario's.
    pub workers_flag: Option<String>,
}

/// A scenario as resolved: nothing is optional that has a default.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Name, for people.
    pub name: String,
    /// The question that it answers.
    pub question: Option<String>,
    /// What the result has to reach.
    pub require: Vec<Requirement>,
    /// What verdicts compare with.
    pub thresholds: Thresholds,
    /// The fleet's key values.
    pub fleet: FleetConfig,
    /// The target's.
    pub target: TargetConfig,
    /// Points in the order in which they run: for each sweep value (keys nest as written, the first
    /// slowest), for each repetition, the stages.
    pub points: Vec<PointSpec>,
    /// The resolved scenario as canonical TOML, for the record.
    pub resolved_toml: String,
    /// SHA-256, in hex, of the canonical JSON of the meaning without name, notes, workers and path.
    pub id: String,
}

/// `[fleet]`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FleetConfig {
    /// Host list as written, expanded: `host:port` or `[v6]:port` each, in order, no duplicates.
    pub workers: Vec<WorkerAddress>,
    /// Bytes per second.
    pub network_limit: Option<f64>,
    /// Speeds of the clients' links, as far as they are stated.
    pub link_speed: LinkSpeeds,
    /// Bytes per second.
    pub storage_limit: Option<f64>,
    /// Storage hosts that run a worker and are watched.
    pub observers: Vec<WorkerAddress>,
    /// Names of the clients' interfaces; empty: the workers find them.
    pub interfaces: Vec<String>,
    /// In 1/1000; none: 1.
    pub expected_wire_milli: Option<u32>,
}

impl FleetConfig {
    /// Bytes on the clients' links for one byte of payload written.
    #[must_use]
    pub fn expected_wire_per_payload(&self) -> f64 {
        self.expected_wire_milli.map_or(1.0, |milli| f64::from(milli) / 1000.0)
    }
}

/// A worker's place in the host list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerAddress {
    /// Name as in the host list, without the port.
    pub name: String,
    /// Host name or address to connect to, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// `[target]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TargetConfig {
    /// Absolute path, placeholders `{node}` and `{role}` not yet expanded; none only with a local
    /// fleet.
    pub path: Option<String>,
    /// Leave the files.
    pub keep: bool,
    /// Share of the file system that stays free, in 1/1000.
    pub min_free_milli: u32,
    /// Files that are read may have holes.
    pub allow_holes: bool,
    /// Files that are there before, by absolute path, for the layout `file-list`.
    pub files: Arc<[String]>,
    /// Block devices, by absolute path, for the layout `device`.
    pub devices: Arc<[String]>,
    /// Consent that listed files and devices are overwritten.
    pub destroys_data: bool,
}

impl TargetConfig {
    /// The path with its placeholders expanded for a node. All nodes have the role `client`.
    #[must_use]
    pub fn path_of(&self, node: &str) -> Option<String> {
        let path = self.path.as_ref()?;
        // A name with a slash in it would be another directory.
        Some(path.replace("{node}", &node.replace('/', "_")).replace("{role}", ROLE))
    }
}

/// The role of nodes that were given none.
const ROLE: &str = "client";

/// One point: which stage, which sweep values, which repetition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PointSpec {
    /// Place in the order, from 0.
    pub index: u32,
    /// Name of its stage.
    pub stage: String,
    /// Repetition, from 0.
    pub repeat: u32,
    /// Swept keys and their values as people write them, in the order of nesting.
    pub swept: Vec<(String, String)>,
    /// Points with the same number share a dataset: one pass over the stages.
    pub group: u32,
    /// What it does.
    pub params: Params,
}

/// Threads of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// Of the whole fleet.
    Fleet(u32),
    /// Of each node.
    PerNode(u32),
}

/// What happens to later points when a worker is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFault {
    /// They run without it, and say so.
    Continue,
    /// The campaign ends.
    Abort,
}

#[cfg(test)]
mod tests;
