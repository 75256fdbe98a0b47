//! From a scenario and the size of a fleet to what each worker does in each point. Pure.

use std::collections::BTreeMap;

use iofleet_shared::{
    ids::{NodeIndex, PointId},
    stats::{ThreadReport, Written},
    work::{DatasetDir, Extent, TargetSpec, WorkerPlan},
};

use crate::scenario::{PointSpec, Scenario};

/// All points of a campaign over a fleet of a given size.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Number of nodes.
    pub nodes: u32,
    /// Points in order.
    pub points: Vec<PointPlan>,
    /// Most bytes that files take at one time.
    pub space_bytes: u64,
    /// Most files at one time.
    pub files: u64,
}

/// One point over a fleet of a given size.
#[derive(Debug, Clone)]
pub struct PointPlan {
    /// What the scenario says.
    pub spec: PointSpec,
    /// I/O threads in the fleet.
    pub threads: u32,
    /// Nodes that have work: the first of the host list.
    pub active: Vec<NodeIndex>,
    /// Payload; none for points by time.
    pub bytes: Option<u64>,
    /// Operations; none for points by time.
    pub ops: Option<u64>,
    /// Bytes of different blocks that the point may touch.
    pub working_set_bytes: u64,
}

/// What has been written to the campaign's dataset so far, by file: what reads may touch.
#[derive(Debug, Clone, Default)]
pub struct Manifest {
    files: BTreeMap<String, FileCoverage>,
}

#[derive(Debug, Clone)]
struct FileCoverage {
    _ranges: Vec<Extent>,
}

// The functions of this module, to be filled by their owner:
//   Plan::new(&Scenario, nodes: u32) -> Result<Plan, PlanError>
//   PointPlan::worker_plan(&self, node, dir: DatasetDir, &Manifest, lost: &BTreeSet<NodeIndex>, attempt: u32) -> Result<WorkerPlan, String>
//   Plan::target_spec(&self, node, dir: DatasetDir) -> TargetSpec
//   Manifest::record(&mut self, plan: &WorkerPlan, threads: &[ThreadReport])
