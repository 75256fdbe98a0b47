//! The immutable record of a campaign: what `--json` writes, what the store keeps, and what every
//! table and sentence is made from.
//!
//! All keys are always there. Null means "not measured" and is never 0; integers stay integers;
//! bandwidths are bytes per second, latencies nanoseconds. Keys may be added, none changes its
//! meaning within [`SCHEMA`].

use serde::{Deserialize, Serialize};

pub use crate::figures::{Five, Headline, Steady};
pub use checks::{Damage, Files, Offered, Verification};
pub use cpu::Cpu;
pub use kinds::{
    ByOp, Histogram, Interval, IntervalOp, IntervalPhase, Latencies, Latency, LatencyKind, Rates,
};
pub use network::{Direction, Link, Network, ObserverRecord, WireInterval};
pub use params::{OpWeight, Options, Params, Rate, SizeWeight, Swept};
pub use samples::{CpuShares, NodeSample};
pub use scaling::{RequirementResult, Scaling, ScalingFit};
pub use verdict::{Evidence, Finding, Verdict};

mod checks;
mod cpu;
mod kinds;
mod network;
mod params;
mod samples;
mod scaling;
mod verdict;

/// Name and version of the document.
pub const SCHEMA: &str = "iofleet.result/1";

/// A whole campaign.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CampaignRecord {
    /// [`SCHEMA`].
    pub schema: String,
    /// What made it.
    pub tool: Tool,
    /// Which campaign.
    pub campaign: Campaign,
    /// The scenario as resolved, TOML.
    pub scenario: String,
    /// The workers, in host-list order.
    pub nodes: Vec<Node>,
    /// The points, in the order in which they ran.
    pub points: Vec<PointRecord>,
    /// Statistics of points that were repeated.
    pub repetitions: Vec<Repetition>,
    /// Response over load, for stages that were offered more than one.
    #[serde(default)]
    pub load_curves: Vec<LoadCurve>,
    /// How rates grow with the number of threads.
    #[serde(default)]
    pub scaling: Vec<Scaling>,
    /// What the scenario demands, and whether it was met; empty while the campaign runs.
    #[serde(default)]
    pub requirements: Vec<RequirementResult>,
}

/// What made a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// Version of iofleet.
    pub version: String,
    /// Commit that it was built from, where that is known.
    pub commit: Option<String>,
}

/// Which campaign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Campaign {
    /// Sorts by time.
    pub id: String,
    /// Name of the scenario.
    pub name: String,
    /// The question that it answers.
    pub question: Option<String>,
    /// SHA-256 of the scenario's meaning.
    pub scenario_id: String,
    /// RFC 3339.
    pub started: String,
    /// RFC 3339; null while it runs.
    pub ended: Option<String>,
    /// How it stands.
    pub status: CampaignStatus,
    /// What ended it early, for people.
    pub message: Option<String>,
    /// Host name of the coordinator.
    pub host: String,
}

/// How a campaign stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CampaignStatus {
    /// Points are still to come.
    Running,
    /// Every point is `ok`.
    Complete,
    /// A point is not.
    Partial,
    /// The user ended it.
    Interrupted,
}

impl CampaignStatus {
    /// As in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Complete => "complete",
            Self::Partial => "partial",
            Self::Interrupted => "interrupted",
        }
    }
}

/// A worker and its machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Name as in the host list.
    pub node: String,
    /// Its own host name.
    pub hostname: String,
    /// Same boot id: same machine.
    pub boot_id: String,
    /// With the boot id, a network host.
    pub net_namespace: u64,
    /// Version of its iofleet.
    pub version: String,
    /// Kernel release.
    pub kernel: String,
    /// CPUs that the daemon may use.
    pub cpus: u32,
    /// Memory of the machine.
    pub memory_bytes: u64,
    /// Its clocks.
    pub clock: Clock,
    /// Whether its control plane has a better priority than its I/O threads.
    pub control_priority: bool,
    /// How its machine is set up.
    #[serde(default)]
    pub setup: Setup,
    /// What it sees at the target.
    pub target: Target,
    /// Links that carry the file system's traffic; empty where they were not sampled.
    pub links: Vec<Link>,
}

/// How a machine is set up, as far as it says.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// As the processor names itself.
    pub cpu_model: Option<String>,
    /// Of the first core's frequency; null where it has none, as virtual machines do.
    pub governor: Option<String>,
    /// Clock source of the kernel.
    pub clock_source: Option<String>,
    /// Files that the worker may open at most; null: no limit.
    pub open_files_max: Option<u64>,
    /// Processes and threads that its user may have at most; null: no limit.
    pub processes_max: Option<u64>,
}

/// A worker's clocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Clock {
    /// Its monotonic clock less the coordinator's, before the first point.
    pub offset_ns: i64,
    /// Bound of the offset's error.
    pub uncertainty_ns: u64,
    /// Clock that stamps operations.
    pub stamp: String,
    /// Its smallest step.
    pub resolution_ns: u64,
    /// What reading it once costs.
    pub cost_ns: u64,
}

/// The target as one worker sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// File system type.
    pub fs_type: String,
    /// What is mounted.
    pub mount_source: String,
    /// How.
    pub mount_options: String,
    /// Size.
    pub total_bytes: u64,
    /// Free before the first point.
    pub free_bytes: u64,
    /// Free inodes; null where the file system does not count them.
    pub free_inodes: Option<u64>,
    /// Alignment that direct I/O needs; null without direct I/O.
    pub direct_alignment_bytes: Option<u32>,
    /// Who says so: `statx` or `probe`.
    pub direct_alignment_source: Option<String>,
}

/// How a point came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum PointStatus {
    /// All workers and threads did what was asked.
    Ok,
    /// Some did not; the figures are of what was done.
    Partial,
    /// It did not take place, or its sums do not agree: no figure can be trusted.
    Failed,
    /// It was not begun.
    Skipped,
}

impl PointStatus {
    /// As in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Partial => "partial",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

/// One measured point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PointRecord {
    /// Place in the plan, from 0.
    pub index: u32,
    /// Name of its stage.
    pub stage: String,
    /// `write`, `read`, `stat` and so on; `mix` for more than one.
    pub op: String,
    /// Repetition, from 0.
    pub repeat: u32,
    /// How it came out.
    pub status: PointStatus,
    /// Why it is not `ok`; null where it is.
    pub why: Option<String>,
    /// Doubts.
    pub marks: Vec<Mark>,
    /// What was asked.
    pub params: Params,
    /// T0 on the wall clock, RFC 3339; null if it was not begun.
    pub t0: Option<String>,
    /// Length of an interval.
    pub interval_ns: u64,
    /// Who reported.
    pub census: Census,
    /// Payload of the measured phase.
    pub bytes: u64,
    /// Operations of the measured phase.
    pub ops: u64,
    /// Failed operations of the measured phase.
    pub errors: u64,
    /// Payload of the warm-up.
    pub ramp_bytes: u64,
    /// Bytes of different blocks that were touched; null where that was not kept.
    pub bytes_touched: Option<u64>,
    /// Passes over the working set, mean of the threads.
    pub passes: Option<f64>,
    /// Transfers that the kernel cut short and that were continued.
    pub short_transfers: u64,
    /// Operations that never completed.
    pub unfinished: Unfinished,
    /// Which bandwidth is the headline: `common` or `span`; null where there is none.
    pub headline: Option<Headline>,
    /// Bytes per second.
    pub bandwidth: Five,
    /// Operations per second.
    pub iops: Five,
    /// The common window; null where there is none.
    pub window: Option<Window>,
    /// Latest first issue less earliest.
    pub start_skew_ns: Option<u64>,
    /// Greatest of the frozen maps.
    pub clock_uncertainty_ns: Option<u64>,
    /// Greatest distance between a frozen map and later samples of the clock.
    pub clock_residual_ns: Option<u64>,
    /// Service time in the window over threads x depth x window; null where threads paused.
    pub busy_share: Option<f64>,
    /// CPU time of the I/O threads; null where it is not known.
    #[serde(default)]
    pub cpu: Option<Cpu>,
    /// Latencies over the point.
    pub latency_ns: Latencies,
    /// The same by kind of operation.
    pub by_op: Vec<ByOp>,
    /// What an offered load came to; null without one.
    #[serde(default)]
    pub offered: Option<Offered>,
    /// Files that were opened and closed while threads ran; null if there were none.
    #[serde(default)]
    pub files: Option<Files>,
    /// What verification found; null where it was not asked for.
    #[serde(default)]
    pub verification: Option<Verification>,
    /// Longest time that a thread took to open its file, while arming.
    pub open_s: Option<f64>,
    /// Longest final fsync of a thread.
    pub fsync_s: Option<f64>,
    /// Longest syncfs of a node after the threads had ended.
    pub syncfs_s: Option<f64>,
    /// Whether the rate was steady; null where the point was too short to tell.
    pub steady: Option<Steady>,
    /// The network's view.
    pub network: Network,
    /// What bounds the result; null where it is not judged.
    pub verdict: Option<Verdict>,
    /// By node.
    pub nodes: Vec<PointNode>,
    /// By thread.
    pub threads: Vec<PointThread>,
    /// Failed operations by kind.
    pub error_kinds: Vec<ErrorKind>,
    /// The fleet over time.
    pub intervals: Vec<Interval>,
}

/// A doubt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// What kind; `docs/figures.md` lists them.
    pub code: String,
    /// What was found.
    pub value: Option<f64>,
    /// What would be no doubt.
    pub limit: Option<f64>,
    /// For people.
    pub text: String,
}

/// Who was to report, and who did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Census {
    /// Nodes with work.
    pub expected: u32,
    /// Nodes whose report came.
    pub reported: u32,
    /// Names of the others.
    pub lost: Vec<String>,
}

/// Operations that never completed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Unfinished {
    /// How many.
    pub count: u64,
    /// Greatest age when they were given up; null if there is none.
    pub oldest_ns: Option<u64>,
}

/// The common window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Begin, after T0.
    pub start_s: f64,
    /// Length.
    pub seconds: f64,
    /// Payload in it.
    pub bytes: f64,
    /// Operations in it.
    pub ops: f64,
    /// Time in which all threads were busy over (last end - first begin).
    pub overlap: f64,
}

/// How a node came out of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum NodeStatus {
    /// It reported, and all of its threads ended by themselves.
    Ok,
    /// Its report never came. What it had delivered by then stands here, and not in the point's sums.
    Lost,
    /// It reported, with threads that never returned from an operation.
    Stuck,
}

/// A node in a point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PointNode {
    /// Name.
    pub node: String,
    /// How it came out.
    pub status: NodeStatus,
    /// Payload of the measured phase.
    pub bytes: u64,
    /// Operations.
    pub ops: u64,
    /// Failed ones.
    pub errors: u64,
    /// Its part of `common`; null where there is no window.
    pub bandwidth: Option<f64>,
    /// The same in operations per second.
    #[serde(default)]
    pub iops: Option<f64>,
    /// CPU time of its I/O threads, warm-up included; null where it is not known.
    #[serde(default)]
    pub cpu_ns: Option<u64>,
    /// What of it was inside of the kernel.
    #[serde(default)]
    pub cpu_system_ns: Option<u64>,
    /// Share of its machine's CPU time that was busy.
    pub cpu_share: Option<f64>,
    /// Bytes that its network host's links sent from T0 until it had flushed; workers of one host
    /// share them. Null where they are not known.
    #[serde(default)]
    pub tx_bytes: Option<u64>,
    /// Bytes that they received.
    #[serde(default)]
    pub rx_bytes: Option<u64>,
    /// What its network host's links carried in the payload's direction in the common window, over
    /// their speed; null where that is not known.
    #[serde(default)]
    pub link_share: Option<f64>,
    /// Share of time in which the busiest of its CPUs was busy, mean of the intervals; null where it
    /// is not known.
    #[serde(default)]
    pub busiest_core_share: Option<f64>,
    /// Time that its I/O threads were ready to run and did not, over their own time; null where it
    /// is not known.
    #[serde(default)]
    pub run_delay_share: Option<f64>,
    /// How its caches were dropped before the point: `kernel`, `helper`, `advice`; null where that was
    /// not asked for.
    #[serde(default)]
    pub cold_start: Option<String>,
    /// Its machine between two readings of its counters, from T0 on.
    #[serde(default)]
    pub samples: Vec<NodeSample>,
    /// What should be known of how its engine ran.
    #[serde(default)]
    pub remarks: Vec<String>,
}

/// A thread in a point. Times are after T0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PointThread {
    /// Number in the fleet.
    pub thread: u32,
    /// Its node.
    pub node: String,
    /// How it ended: `finished`, `deadline`, `stopped`, `errors`, `stuck`.
    pub end: String,
    /// Payload of the measured phase.
    pub bytes: u64,
    /// Operations.
    pub ops: u64,
    /// Failed ones.
    pub errors: u64,
    /// First issue.
    pub begin_s: Option<f64>,
    /// Last completion, or the return of its fsync.
    pub end_s: Option<f64>,
}

/// Failed operations of one kind on one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ErrorKind {
    /// Node.
    pub node: String,
    /// `write`, `read`, `stat` and so on.
    pub op: String,
    /// What failed.
    pub call: String,
    /// errno; 0 for a short read.
    pub errno: i32,
    /// For people.
    pub text: String,
    /// How many.
    pub count: u64,
    /// File of the first one.
    pub file: String,
    /// Offset of the first one.
    pub offset: u64,
    /// Longest that one took.
    pub max_ns: u64,
}

/// Statistics of one point over its repetitions, on the headline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Repetition {
    /// Name of the stage.
    pub stage: String,
    /// Indexes of its points.
    pub points: Vec<u32>,
    /// The figure that the statistics are of: `span` where the points' headlines differ.
    pub headline: Headline,
    /// What it is a rate of.
    #[serde(default)]
    pub unit: Unit,
    /// Mean, per second.
    pub mean: f64,
    /// Standard deviation (n - 1).
    pub stddev: f64,
    /// Half of the 95 % confidence interval (Student t).
    pub ci95: f64,
}

/// What a rate counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Bytes.
    #[default]
    Bytes,
    /// Operations, where none of them moves bytes.
    Ops,
}

/// Response over load of one stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LoadCurve {
    /// Name of the stage.
    pub stage: String,
    /// Indexes of its points that were not overloaded.
    pub points: Vec<u32>,
    /// Overall response time: the area under mean response over achieved rate, over the highest
    /// such rate.
    pub ort_ns: f64,
}

impl PointRecord {
    /// Whether any of its kinds of operation moves bytes of files.
    #[must_use]
    pub fn moves_data(&self) -> bool {
        let kinds = self.params.ops.iter().map(|kind| kind.op.as_str());
        kinds.chain([self.op.as_str()]).any(|op| op == "write" || op == "read")
    }

    /// Units that were not as they had been written.
    #[must_use]
    pub fn damaged_units(&self) -> u64 {
        let damages = self.verification.iter().flat_map(|found| &found.damages);
        damages.map(|damage| damage.units).sum()
    }
}

#[cfg(test)]
pub(crate) mod example;
#[cfg(test)]
mod schema;
