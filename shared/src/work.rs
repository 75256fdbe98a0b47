//! What a worker and each of its I/O threads are to do in one point.
//!
//! Made by the coordinator's `plan`, carried by `wire`, obeyed by the worker. All of it is plain
//! data: the same scenario and fleet give the same plans, byte for byte.

use rkyv::{Archive, Deserialize, Serialize};

use crate::ids::PointId;

/// What an operation does.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Archive, Serialize, Deserialize,
)]
pub enum OpKind {
    /// Bytes go to the file system.
    Write,
    /// Bytes come from the file system.
    Read,
}

/// How files and threads relate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub enum Layout {
    /// Each thread has a file of its own.
    FilePerThread,
    /// One file; each thread has a contiguous range of whole blocks of it.
    SharedFile,
}

/// The order in which a thread takes the blocks of its extents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub enum Pattern {
    /// Ascending.
    Sequential,
    /// Uniform, with repetition.
    Random,
    /// A seeded permutation: each block once before any comes again.
    RandomOnce,
}

/// The mechanism that moves the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub enum EngineKind {
    /// `pread` and `pwrite`, one operation in flight per thread.
    Sync,
}

/// When a writing thread calls fsync.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub enum Fsync {
    /// Once, after its last operation; the thread ends when it returns.
    End,
    /// Never.
    None,
    /// After each operation, inside the operation's service time.
    Each,
}

/// A byte range of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Archive, Serialize, Deserialize)]
pub struct Extent {
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
}

/// How much a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub enum Amount {
    /// By size: `ThreadPlan::operations` operations.
    Share,
    /// By time: until `ramp_ns + duration_ns` after T0.
    Time {
        /// Length of the measured phase, which follows the warm-up.
        duration_ns: u64,
        /// Begin the extents again at their end; otherwise the thread ends there.
        repeat: bool,
    },
}

/// The directory that the campaign may touch: `<path>/iofleet-<dataset>`.
#[derive(Debug, Clone, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct DatasetDir {
    /// `target.path`, absolute, with its placeholders expanded for this node.
    pub path: String,
    /// The dataset's name; the directory is `iofleet-<name>` and holds the mark `.iofleet.json`.
    pub name: String,
    /// Campaign that owns the dataset (written into the mark, and compared with it).
    pub campaign: String,
}

/// What a worker must know of the target before any I/O, to accept or refuse it.
#[derive(Debug, Clone, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct TargetSpec {
    /// Where.
    pub dir: DatasetDir,
    /// Whether any stage uses direct I/O.
    pub direct: bool,
    /// All block sizes that direct stages use.
    pub direct_blocks: Vec<u64>,
    /// Whether the campaign writes.
    pub writes: bool,
    /// Most bytes that the whole fleet's files take at one time.
    pub bytes: u64,
    /// Most files of the whole fleet at one time.
    pub files: u64,
    /// Most threads of this worker in one point (descriptors, processes).
    pub threads: u32,
    /// Most bytes of buffers of this worker in one point.
    pub buffer_bytes: u64,
}

/// One worker's part of one point.
#[derive(Debug, Clone, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct WorkerPlan {
    /// Which point, which try.
    pub point: PointId,
    /// Where its files are.
    pub dir: DatasetDir,
    /// Names of files in the dataset's directory that are unlinked while arming, if they exist.
    pub remove: Vec<String>,
    /// What each operation does.
    pub op: OpKind,
    /// Mechanism.
    pub engine: EngineKind,
    /// Order of blocks.
    pub pattern: Pattern,
    /// Bytes of one operation.
    pub block_bytes: u64,
    /// `O_DIRECT`.
    pub direct: bool,
    /// Fsync policy of writes.
    pub fsync: Fsync,
    /// Files are created (they must not exist after `remove`; with a shared file they may).
    pub create: bool,
    /// How much.
    pub amount: Amount,
    /// Warm-up before the measured phase, 0 for none; whole intervals.
    pub ramp_ns: u64,
    /// Length of an interval.
    pub interval_ns: u64,
    /// Age of an operation after which its thread is given up.
    pub stuck_after_ns: u64,
    /// The I/O threads.
    pub threads: Vec<ThreadPlan>,
}

/// One I/O thread's part of one point.
#[derive(Debug, Clone, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct ThreadPlan {
    /// Its number in the fleet, from 0.
    pub thread: u32,
    /// Its file's name in the dataset's directory.
    pub file: String,
    /// What of the file it touches: sorted, not overlapping. Blocks are laid from each extent's
    /// start; a rest shorter than a block is not used.
    pub extents: Vec<Extent>,
    /// Operations by size (`Amount::Share`): once each block of the extents.
    pub operations: u64,
    /// Seed of its offsets and data.
    pub seed: u64,
}

impl ThreadPlan {
    /// Whole blocks in its extents.
    #[must_use]
    pub fn blocks(&self, block_bytes: u64) -> u64 {
        self.extents.iter().map(|extent| extent.length / block_bytes).sum()
    }
}
