//! From a scenario and the size of a fleet to what each worker does in each point. Pure.
//!
//! Thread i runs on node i mod N and keeps its node and its file through the ramp; with fewer
//! threads than nodes the rest of the nodes stand by. The same scenario and fleet give the same
//! plans, byte for byte.
//!
//! Files of a dataset: `t00000` and so on, one a thread; `shared-0`, and for each fresh write of a
//! shared file the next number, while thread 0's node removes the ones before.

use std::collections::BTreeSet;

use iofleet_shared::{
    ids::{NodeIndex, PointId},
    limits::{FRAME_BYTES_MAX, NODES_MAX, THREADS_MAX},
    work::{Amount, DatasetDir, Extent, Layout, OpKind, TargetSpec, ThreadPlan, WorkerPlan},
};

use crate::scenario::{PointSpec, Scenario, Threads, coverage};

pub use manifest::Manifest;

mod manifest;
mod space;
mod split;

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
    /// Which of the shared files it uses: how many fresh ones were planned before.
    pub shared_file: u32,
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
        let mut points = Vec::with_capacity(scenario.points.len());
        let mut fresh_shared = 0_u32;
        for spec in &scenario.points {
            let params = &spec.params;
            if params.layout == Layout::SharedFile && params.op == OpKind::Write && params.fresh {
                fresh_shared += 1;
            }
            points.push(PointPlan::new(spec, nodes, fresh_shared.saturating_sub(1))?);
        }
        for pass in scenario.points.chunk_by(|a, b| a.group == b.group) {
            let pass: Vec<&PointSpec> = pass.iter().collect();
            let count = |threads| threads_of_fleet(threads, nodes).unwrap_or(THREADS_MAX);
            coverage::check(&pass, count).map_err(|uncovered| PlanError::Uncovered {
                text: uncovered.text,
                help: uncovered.help,
            })?;
        }
        let (space_bytes, files) = space::greatest(&points)?;
        Ok(Self { nodes, points, space_bytes, files })
    }

    /// What a worker must know of the target beforehand: the greatest over all points.
    #[must_use]
    pub fn target_spec(&self, node: NodeIndex, dir: DatasetDir) -> TargetSpec {
        let own = || self.points.iter().filter(|point| point.threads_on(node) > 0);
        let direct_blocks: BTreeSet<u64> = own()
            .filter(|point| point.spec.params.direct)
            .map(|point| point.spec.params.block_bytes)
            .collect();
        let buffers = |point: &PointPlan| {
            u64::from(point.threads_on(node)).saturating_mul(point.spec.params.block_bytes)
        };
        TargetSpec {
            dir,
            direct: !direct_blocks.is_empty(),
            direct_blocks: direct_blocks.into_iter().collect(),
            writes: self.points.iter().any(|point| point.spec.params.op == OpKind::Write),
            bytes: self.space_bytes,
            files: self.files,
            threads: own().map(|point| point.threads_on(node)).max().unwrap_or(0),
            buffer_bytes: own().map(buffers).max().unwrap_or(0),
        }
    }
}

impl PointPlan {
    fn new(spec: &PointSpec, nodes: u32, shared_file: u32) -> Result<Self, PlanError> {
        let params = &spec.params;
        let stage = || spec.stage.clone();
        let threads = threads_of_fleet(params.threads, nodes).ok_or_else(|| {
            let (Threads::Fleet(per_node) | Threads::PerNode(per_node)) = params.threads;
            PlanError::TooManyThreads { stage: stage(), per_node, nodes }
        })?;
        let too_many = || PlanError::TooManyBytes { stage: stage(), threads };
        let bytes = match params.layout {
            Layout::FilePerThread => {
                params.file_bytes.checked_mul(u64::from(threads)).ok_or_else(too_many)?
            }
            Layout::SharedFile => params.file_bytes,
        };
        let blocks = params.file_bytes / params.block_bytes;
        if params.layout == Layout::SharedFile && blocks < u64::from(threads) {
            return Err(PlanError::TooFewBlocks { stage: stage(), threads, blocks });
        }
        let by_size = params.duration_ns.is_none();
        Ok(Self {
            spec: spec.clone(),
            threads,
            active: (0..threads.min(nodes)).map(NodeIndex).collect(),
            bytes: by_size.then_some(bytes),
            ops: by_size.then_some(bytes / params.block_bytes),
            working_set_bytes: bytes,
            shared_file,
        })
    }

    /// Numbers of the threads that run on a node.
    pub fn threads_of(&self, node: NodeIndex) -> impl Iterator<Item = u32> + use<> {
        // With fewer threads than nodes, each has a node to itself.
        (node.0..self.threads).step_by(self.active.len().max(1))
    }

    /// How many threads run on a node.
    #[must_use]
    pub fn threads_on(&self, node: NodeIndex) -> u32 {
        let nodes = u32::try_from(self.active.len().max(1)).unwrap_or(u32::MAX);
        self.threads.saturating_sub(node.0).div_ceil(nodes)
    }

    /// A worker's part of the point; none when its node stands by.
    ///
    /// # Errors
    /// When its threads would read or rewrite what was not written: which file, and what is
    /// missing.
    pub fn worker_plan(
        &self,
        node: NodeIndex,
        dir: DatasetDir,
        manifest: &Manifest,
        attempt: u32,
    ) -> Result<Option<WorkerPlan>, String> {
        if self.threads_on(node) == 0 {
            return Ok(None);
        }
        let params = &self.spec.params;
        let create = params.op == OpKind::Write && params.fresh;
        let threads = self
            .threads_of(node)
            .map(|thread| self.thread_plan(thread, manifest))
            .collect::<Result<Vec<_>, String>>()?;
        let extents: usize = threads.iter().map(|thread| thread.extents.len()).sum();
        if extents > EXTENTS_MAX {
            return Err(format!(
                "what was written lies in {extents} pieces on one node, more than {EXTENTS_MAX}: \
                 write with `sequential`, or in larger blocks"
            ));
        }
        let amount = match params.duration_ns {
            None => Amount::Share,
            Some(duration_ns) => Amount::Time { duration_ns, repeat: params.repeat_range },
        };
        Ok(Some(WorkerPlan {
            point: PointId { index: self.spec.index, attempt },
            dir,
            remove: if create { self.stale(node, manifest) } else { Vec::new() },
            op: params.op,
            engine: params.engine,
            pattern: params.pattern,
            block_bytes: params.block_bytes,
            direct: params.direct,
            fsync: params.fsync,
            create,
            amount,
            ramp_ns: params.ramp_ns,
            interval_ns: params.interval_ns,
            stuck_after_ns: params.stuck_after_ns,
            threads,
        }))
    }

    /// Files that a fresh write makes room by removing.
    fn stale(&self, node: NodeIndex, manifest: &Manifest) -> Vec<String> {
        match self.spec.params.layout {
            Layout::FilePerThread => {
                self.threads_of(node).map(|thread| self.file_of(thread)).collect()
            }
            Layout::SharedFile if node == NodeIndex(0) => {
                // The one before, and whatever points that did not run as planned have left.
                let mut stale: BTreeSet<String> = manifest.shared_files().collect();
                stale.extend(self.shared_file.checked_sub(1).map(shared_name));
                stale.remove(&shared_name(self.shared_file));
                stale.into_iter().collect()
            }
            Layout::SharedFile => Vec::new(),
        }
    }

    fn thread_plan(&self, thread: u32, manifest: &Manifest) -> Result<ThreadPlan, String> {
        let params = &self.spec.params;
        let file = self.file_of(thread);
        let range = self.range_of(thread);
        let extents = match params.op {
            OpKind::Read => {
                manifest.readable(&file, range, params.block_bytes, params.duration_ns.is_none())?
            }
            OpKind::Write if !params.fresh && !manifest.holds(&file) => {
                return Err(format!(
                    "{file}: there is nothing to rewrite, since it was never written: let the \
                     stage that writes it run first"
                ));
            }
            OpKind::Write => vec![range],
        };
        let operations = extents.iter().map(|extent| extent.length / params.block_bytes).sum();
        let seed = split::seed(params.seed, self.spec.index, thread);
        Ok(ThreadPlan { thread, file, extents, operations, seed })
    }

    fn file_of(&self, thread: u32) -> String {
        match self.spec.params.layout {
            Layout::FilePerThread => format!("t{thread:05}"),
            Layout::SharedFile => shared_name(self.shared_file),
        }
    }

    /// The thread's part of its file: whole blocks.
    fn range_of(&self, thread: u32) -> Extent {
        let params = &self.spec.params;
        match params.layout {
            Layout::FilePerThread => Extent { offset: 0, length: params.file_bytes },
            Layout::SharedFile => {
                let blocks = params.file_bytes / params.block_bytes;
                let (first, count) = split::share(blocks, self.threads, thread);
                Extent { offset: first * params.block_bytes, length: count * params.block_bytes }
            }
        }
    }
}

fn shared_name(number: u32) -> String {
    format!("{SHARED_PREFIX}{number}")
}

/// Threads of the whole fleet; none when they are more than a fleet may have.
fn threads_of_fleet(threads: Threads, nodes: u32) -> Option<u32> {
    match threads {
        Threads::Fleet(count) => Some(count),
        Threads::PerNode(count) => count.checked_mul(nodes).filter(|all| *all <= THREADS_MAX),
    }
}

/// Extents that one worker's plan may have: half of a frame of the protocol.
const EXTENTS_MAX: usize = 1 << 19;
const _: () = assert!(EXTENTS_MAX * size_of::<Extent>() <= FRAME_BYTES_MAX as usize / 2);
/// What names of shared files begin with.
const SHARED_PREFIX: &str = "shared-";

#[cfg(test)]
pub(crate) mod tests;
