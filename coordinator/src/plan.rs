//! From a scenario and the size of a fleet to what each worker does in each point. Pure.
//!
//! Thread i runs on node i mod N and keeps its node and its file through the ramp; with fewer
//! threads than nodes the rest of the nodes stand by. The same scenario and fleet give the same
//! plans, byte for byte.
//!
//! Files of a dataset: `t00000` and so on, one a thread; `shared-0`, and for each fresh write of a
//! shared file the next number, while thread 0's node removes the ones before; trees `tree-0` and
//! so on in the same way.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use iofleet_shared::{
    ids::NodeIndex,
    limits::{NODES_MAX, THREADS_MAX},
    work::{DatasetDir, EngineSpec, Placement, TargetSpec},
};

use crate::scenario::{
    MixBy, Params, PointSpec, Scenario, Threads,
    coverage::{self, Class, Trees},
};

pub use manifest::Manifest;

mod deal;
mod load;
mod manifest;
mod space;
mod split;
mod worker;

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
    /// Listed files that any point uses.
    listed: Arc<[String]>,
    /// Devices that any point uses.
    devices: Arc<[String]>,
    destroys_data: bool,
    /// Of the clients, that carry the traffic; empty: the workers find them.
    interfaces: Vec<String>,
    min_free_milli: u32,
    allow_holes: bool,
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
    /// Payload; none for points by time, and where a mix leaves it open.
    pub bytes: Option<u64>,
    /// Operations; none for points by time, and where a mix leaves it open.
    pub ops: Option<u64>,
    /// Bytes of different blocks that the point may touch.
    pub working_set_bytes: u64,
    /// What depends on the points before it.
    pub numbers: Numbers,
}

/// What of a point depends on the points before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Numbers {
    /// Which of the shared files it uses: how many fresh ones were planned before.
    pub shared_file: u32,
    /// Which of the trees it works on.
    pub tree: u32,
    /// It begins that tree.
    pub begins_tree: bool,
    /// All names of that tree were made by size, as far as is planned.
    pub tree_is_whole: bool,
    /// How many points of the pass have written to files of this kind, itself counted.
    pub generation: u32,
    /// The directory is another one on each node.
    pub node_directories: bool,
    /// Which of the cold reads of the pass it is, from 1; 0: it is none.
    pub cold_read: u32,
}

/// A scenario that does not fit the fleet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// No node.
    #[error("a fleet of no nodes: name at least one worker")]
    NoNodes,
    /// Too many nodes.
    #[error("{0} nodes, more than {NODES_MAX}")]
    TooManyNodes(u32),
    /// A thread would look for its file in another node's directory.
    #[error(
        "stage `{stage}`: with {{node}} in target.path all stages need the same `nodes`, since each \
         thread's file lies with its node"
    )]
    NodeDirectories {
        /// Name of the stage.
        stage: String,
    },
    /// A stage wants more nodes than there are.
    #[error("stage `{stage}`: nodes = {wanted}, and the fleet has {nodes}")]
    TooFewNodes {
        /// Name of the stage.
        stage: String,
        /// As the scenario says.
        wanted: u32,
        /// Of the fleet.
        nodes: u32,
    },
    /// `threads_per_node` times the nodes is too much.
    #[error(
        "stage `{stage}`: {per_node} threads on each of {nodes} nodes are more than {THREADS_MAX}"
    )]
    TooManyThreads {
        /// Name of the stage.
        stage: String,
        /// As the scenario says.
        per_node: u32,
        /// Of the fleet.
        nodes: u32,
    },
    /// A shared file has fewer blocks than threads.
    #[error(
        "stage `{stage}`: {threads} threads share a file of {blocks} blocks: each needs one at \
         least, so make file_size larger"
    )]
    TooFewBlocks {
        /// Name of the stage.
        stage: String,
        /// Of the fleet.
        threads: u32,
        /// In the file.
        blocks: u64,
    },
    /// Fewer threads than kinds of a mix that is dealt to threads.
    #[error(
        "stage `{stage}`: {kinds} kinds of operation need as many threads, but there are {threads}: \
         use more, or set mix_by = \"operation\""
    )]
    TooFewThreads {
        /// Name of the stage.
        stage: String,
        /// Of the mix.
        kinds: usize,
        /// Of the fleet.
        threads: u32,
    },
    /// A rate of which a node would have nothing.
    #[error(
        "stage `{stage}`: its rate is less than an operation in 1000 s on each of {nodes} nodes, or \
         more than 10,000,000,000 operations per second on one"
    )]
    Rate {
        /// Name of the stage.
        stage: String,
        /// That have threads.
        nodes: usize,
    },
    /// A stage that finds less than it needs.
    #[error("{text}: {help}")]
    Uncovered {
        /// What is wrong.
        text: String,
        /// What would be right.
        help: String,
    },
    /// More bytes than 64 bits count.
    #[error("stage `{stage}`: {threads} threads with files of this size are more than 2^64 bytes")]
    TooManyBytes {
        /// Name of the stage.
        stage: String,
        /// Of the fleet.
        threads: u32,
    },
}

impl Plan {
    /// Plans a scenario over a fleet of so many nodes.
    ///
    /// # Errors
    /// When the scenario does not fit the fleet.
    pub fn new(scenario: &Scenario, nodes: u32) -> Result<Self, PlanError> {
        if nodes == 0 {
            return Err(PlanError::NoNodes);
        }
        if nodes > NODES_MAX {
            return Err(PlanError::TooManyNodes(nodes));
        }
        let node_directories =
            scenario.target.path.as_ref().is_some_and(|path| path.contains("{node}"));
        let numbers = Numbers { node_directories, ..Numbers::default() };
        let mut counts = Counts { numbers, ..Counts::default() };
        let mut points = Vec::with_capacity(scenario.points.len());
        for spec in &scenario.points {
            points.push(PointPlan::new(spec, nodes, counts.step(spec))?);
        }
        for pass in scenario.points.chunk_by(|a, b| a.group == b.group) {
            let pass: Vec<&PointSpec> = pass.iter().collect();
            let moved = pass.iter().find(|spec| spec.params.nodes != pass[0].params.nodes);
            if let Some(spec) = moved.filter(|_| node_directories) {
                return Err(PlanError::NodeDirectories { stage: spec.stage.clone() });
            }
            let count = |params: &Params| {
                let nodes = params.nodes.unwrap_or(nodes);
                threads_of_fleet(params.threads, nodes).unwrap_or(THREADS_MAX)
            };
            coverage::check(&pass, count).map_err(|uncovered| PlanError::Uncovered {
                text: uncovered.text,
                help: uncovered.help,
            })?;
        }
        let (space_bytes, files) = space::greatest(&points)?;
        let target = &scenario.target;
        let (listed, devices) = (Arc::clone(&target.files), Arc::clone(&target.devices));
        let destroys_data = target.destroys_data;
        let interfaces = scenario.fleet.interfaces.clone();
        let (min_free_milli, allow_holes) = (target.min_free_milli, target.allow_holes);
        Ok(Self {
            nodes,
            points,
            space_bytes,
            files,
            listed,
            devices,
            destroys_data,
            interfaces,
            min_free_milli,
            allow_holes,
        })
    }

    /// Whether each node has a directory of its own.
    #[must_use]
    pub fn node_directories(&self) -> bool {
        self.points.iter().any(|point| point.numbers.node_directories)
    }

    /// What a worker must know of the target beforehand: the greatest over all points.
    #[must_use]
    pub fn target_spec(&self, node: NodeIndex, dir: DatasetDir) -> TargetSpec {
        let own = || self.points.iter().filter(|point| point.threads_on(node) > 0);
        let params = || own().map(|point| &point.spec.params);
        let direct_blocks: BTreeSet<u64> = params()
            .filter(|params| params.options.direct)
            .flat_map(|params| params.blocks.iter().map(|block| block.bytes))
            .collect();
        let buffers = |point: &PointPlan| {
            let params = &point.spec.params;
            let each = if params.moves_data() { params.block_bytes_max() } else { 0 };
            let depth = u64::from(params.engine.depth);
            u64::from(point.threads_on(node)).saturating_mul(depth).saturating_mul(each)
        };
        let mut engines: Vec<EngineSpec> = Vec::new();
        let mut placements: Vec<Placement> = Vec::new();
        for params in params() {
            if !engines.contains(&params.engine) {
                engines.push(params.engine);
            }
            if params.placement != Placement::default() && !placements.contains(&params.placement) {
                placements.push(params.placement.clone());
            }
        }
        TargetSpec {
            dir,
            direct: !direct_blocks.is_empty(),
            engines,
            direct_blocks: direct_blocks.into_iter().collect(),
            writes: self.points.iter().any(|point| point.changes_dataset()),
            listed: self.listed.to_vec(),
            devices: self.devices.to_vec(),
            destroys_data: self.destroys_data,
            bytes: self.space_bytes,
            files: self.files,
            min_free_milli: self.min_free_milli,
            allow_holes: self.allow_holes,
            threads: own().map(|point| point.threads_on(node)).max().unwrap_or(0),
            buffer_bytes: own().map(buffers).max().unwrap_or(0),
            placements,
            interfaces: self.interfaces.clone(),
        }
    }
}

/// Counts along the points of a campaign.
#[derive(Debug, Default)]
struct Counts {
    numbers: Numbers,
    fresh_shared: u32,
    trees: Trees,
    group: Option<u32>,
    cold_reads: u32,
    /// Write points by class of files. Listed files and devices outlive a pass.
    generations: BTreeMap<Class, u32>,
}

impl Counts {
    fn step(&mut self, spec: &PointSpec) -> Numbers {
        let params = &spec.params;
        if self.group != Some(spec.group) {
            self.group = Some(spec.group);
            self.trees.new_pass();
            self.cold_reads = 0;
            self.generations.retain(|class, _| matches!(class, Class::List | Class::Device));
        }
        self.cold_reads += u32::from(params.cold);
        self.numbers.cold_read = if params.cold { self.cold_reads } else { 0 };
        let class = Class::of(params.layout);
        if class == Class::Shared && params.writes() && params.fresh {
            self.fresh_shared += 1;
        }
        self.numbers.shared_file = self.fresh_shared.saturating_sub(1);
        self.numbers.begins_tree = false;
        if class == Class::Tree {
            (self.numbers.tree, self.numbers.begins_tree) = self.trees.step(params);
            let whole = self.numbers.begins_tree || self.numbers.tree_is_whole;
            self.numbers.tree_is_whole = whole && params.duration_ns.is_none() && !params.is_mix();
        }
        let generation = self.generations.entry(class).or_default();
        *generation += u32::from(params.writes());
        self.numbers.generation = *generation;
        self.numbers
    }
}

impl PointPlan {
    fn new(spec: &PointSpec, nodes: u32, numbers: Numbers) -> Result<Self, PlanError> {
        let params = &spec.params;
        let stage = || spec.stage.clone();
        let wanted = params.nodes.unwrap_or(nodes);
        if wanted > nodes {
            return Err(PlanError::TooFewNodes { stage: stage(), wanted, nodes });
        }
        let nodes = wanted;
        let threads = threads_of_fleet(params.threads, nodes).ok_or_else(|| {
            let (Threads::Fleet(per_node) | Threads::PerNode(per_node)) = params.threads;
            PlanError::TooManyThreads { stage: stage(), per_node, nodes }
        })?;
        let too_many = || PlanError::TooManyBytes { stage: stage(), threads };
        if let Some((threads, blocks)) = deal::too_few_blocks(params, threads) {
            return Err(PlanError::TooFewBlocks { stage: stage(), threads, blocks });
        }
        if params.mix_by == MixBy::Thread && (threads as usize) < params.ops.len() {
            let kinds = params.ops.len();
            return Err(PlanError::TooFewThreads { stage: stage(), kinds, threads });
        }
        let touched = deal::working_set_bytes(params, threads).ok_or_else(too_many)?;
        let mut plan = Self {
            spec: spec.clone(),
            threads,
            active: active(threads, nodes, numbers),
            bytes: None,
            ops: None,
            working_set_bytes: if params.moves_data() { touched } else { 0 },
            numbers,
        };
        let ends = plan.active.first().into_iter().chain(plan.active.last());
        if ends.copied().any(|node| plan.load_of(node).is_none()) {
            return Err(PlanError::Rate { stage: stage(), nodes: plan.active.len() });
        }
        if params.duration_ns.is_none() {
            (plan.bytes, plan.ops) = deal::planned(params, threads, touched, numbers.tree_is_whole);
        }
        Ok(plan)
    }

    /// Whether anything in the dataset's directory is made or changed.
    fn changes_dataset(&self) -> bool {
        let params = &self.spec.params;
        params.writes() || !params.moves_only_data()
    }

    /// Numbers of the threads that run on a node.
    pub fn threads_of(&self, node: NodeIndex) -> impl Iterator<Item = u32> + use<> {
        // With fewer threads than nodes, each has a node to itself; nodes that stand by have none.
        let (first, end) = self.place(node).map_or((0, 0), |place| (place, self.threads));
        (first..end).step_by(self.active.len().max(1))
    }

    /// How many threads run on a node.
    #[must_use]
    pub fn threads_on(&self, node: NodeIndex) -> u32 {
        let nodes = u32::try_from(self.active.len().max(1)).unwrap_or(u32::MAX);
        self.place(node).map_or(0, |place| self.threads.saturating_sub(place).div_ceil(nodes))
    }

    /// Which of the nodes that take part it is.
    fn place(&self, node: NodeIndex) -> Option<u32> {
        let place = self.active.iter().position(|active| *active == node)?;
        u32::try_from(place).ok()
    }
}

/// The nodes that have threads, in the order in which these are dealt to them: the first of the
/// list. Cold reads are dealt further on, so that another node reads than wrote, and than read in the
/// cold read before, as far as there are others.
fn active(threads: u32, nodes: u32, numbers: Numbers) -> Vec<NodeIndex> {
    let shift = match numbers.cold_read.checked_sub(1) {
        Some(earlier) if nodes > 1 && !numbers.node_directories => 1 + earlier % (nodes - 1),
        Some(_) | None => 0,
    };
    (0..threads.min(nodes)).map(|place| NodeIndex((place + shift) % nodes)).collect()
}

/// Threads of the whole fleet; none when they are more than a fleet may have.
fn threads_of_fleet(threads: Threads, nodes: u32) -> Option<u32> {
    match threads {
        Threads::Fleet(count) => Some(count),
        Threads::PerNode(count) => count.checked_mul(nodes).filter(|all| *all <= THREADS_MAX),
    }
}

#[cfg(test)]
pub(crate) mod tests;
