//! What happens in a run, as values: the conductor emits them, reporters show them, `aggregate`
//! turns a point's outcome into its record.

use std::collections::BTreeMap;

use iofleet_shared::{
    clock::ClockMap,
    facts::{HostFacts, NetworkFacts, TargetFacts},
    ids::NodeIndex,
    stats::{HostSample, NodeInterval, PointReport, Tick},
    wire::Removal,
    work::OpKind,
};

use crate::exit::Exit;

/// What is known of a node before the first point.
#[derive(Debug, Clone)]
pub struct NodeReady {
    /// Name as in the host list.
    pub name: String,
    /// Facts of its machine.
    pub host: HostFacts,
    /// Facts of its target.
    pub target: TargetFacts,
    /// Its clock against the fleet's, as known before the first point.
    pub clock: ClockMap,
}

/// How one node came out of one point.
#[derive(Debug, Clone)]
pub struct NodeOutcome {
    /// Final intervals that were delivered, those of each kind of operation in order of k.
    pub intervals: Vec<NodeInterval>,
    /// Spread series by kind of operation, delivered with the report.
    pub ticks: BTreeMap<OpKind, Vec<Tick>>,
    /// What its machine's counters said, delivered with the report.
    pub samples: Vec<HostSample>,
    /// Its last word; none when it was lost.
    pub report: Option<PointReport>,
    /// Why there is no report.
    pub lost: Option<String>,
    /// The map that was frozen when the point was armed.
    pub clock: ClockMap,
    /// What later clock samples say the map was wrong by, in ns; none without such samples.
    pub residual_ns: Option<i64>,
}

/// How a point ended, before any figure is computed.
#[derive(Debug, Clone)]
pub struct PointOutcome {
    /// Its index in the plan.
    pub index: u32,
    /// Nodes that had work in it.
    pub nodes: BTreeMap<NodeIndex, NodeOutcome>,
    /// T0 on the wall clock, for people.
    pub t0_wall: std::time::SystemTime,
    /// T0 in fleet time.
    pub t0_fleet_ns: u64,
    /// What observers sampled in its time.
    pub observers: Vec<Observed>,
    /// The user ended it before its time.
    pub interrupted: bool,
    /// It was not run to its end at all, and why.
    pub failed: Option<String>,
}

/// What a storage host's counters said while a point ran.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// Its name.
    pub name: String,
    /// Its links; none where it never said.
    pub network: Option<NetworkFacts>,
    /// In order, ns after T0; those before it are of the time while the point was armed.
    pub samples: Vec<HostSample>,
    /// Why it was not heard to the end.
    pub lost: Option<String>,
}

/// What reporters see.
#[derive(Debug, Clone)]
pub enum RunEvent {
    /// All workers are there and fit.
    FleetReady(Vec<NodeReady>),
    /// A point is being armed.
    PointArming {
        /// Its index in the plan.
        index: u32,
    },
    /// A point's T0 is committed.
    PointStarted {
        /// Its index in the plan.
        index: u32,
    },
    /// A heartbeat came in the course of a point.
    Progress {
        /// Which node.
        node: NodeIndex,
        /// Payload so far, provisional.
        bytes: u64,
        /// Age of its oldest operation.
        oldest_ns: u64,
    },
    /// Something that people should know at once: a silent worker, a stuck thread, a retry.
    Warning(String),
    /// A point has ended.
    PointEnded(Box<PointOutcome>),
    /// A point does not run, and why.
    PointSkipped {
        /// Its index in the plan.
        index: u32,
        /// Why.
        why: String,
    },
    /// Files were removed (or not) at the end, by node.
    Cleaned(Vec<(NodeIndex, Removal)>),
    /// The campaign has ended.
    Ended(Ending),
}

/// How a campaign ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// Exit code of what the conductor saw; points and errors may make it worse.
    pub exit: Exit,
    /// What ended it early, for people: one message, many nodes with the same error grouped.
    pub message: Option<String>,
}
