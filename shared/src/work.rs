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
    /// A directory is made.
    Mkdir,
    /// An empty file is created and closed.
    Create,
    /// A file's attributes are asked for by name.
    Stat,
    /// A file is opened for reading and closed.
    Open,
    /// A directory is listed to its end.
    Readdir,
    /// A file gets another name in its directory.
    Rename,
    /// A file is removed.
    Unlink,
    /// A directory is removed.
    Rmdir,
}

impl OpKind {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Write,
        Self::Read,
        Self::Mkdir,
        Self::Create,
        Self::Stat,
        Self::Open,
        Self::Readdir,
        Self::Rename,
        Self::Unlink,
        Self::Rmdir,
    ];

    /// As in scenarios and results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Read => "read",
            Self::Mkdir => "mkdir",
            Self::Create => "create",
            Self::Stat => "stat",
            Self::Open => "open",
            Self::Readdir => "readdir",
            Self::Rename => "rename",
            Self::Unlink => "unlink",
            Self::Rmdir => "rmdir",
        }
    }

    /// Whether it moves bytes of files; the others work on names alone.
    #[must_use]
    pub const fn moves_data(self) -> bool {
        matches!(self, Self::Write | Self::Read)
    }
}

/// One of the kinds of operation in a mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct OpShare {
    /// Which.
    pub op: OpKind,
    /// Its share of operations is this over the sum of all; at least 1.
    pub weight: u32,
}

/// One of the sizes in a mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct SizeShare {
    /// Bytes.
    pub bytes: u64,
    /// Its share is this over the sum of all; at least 1.
    pub weight: u32,
}

/// How files and threads relate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub enum Layout {
    /// Each thread has a file of its own.
    FilePerThread,
    /// One file; each thread has a contiguous range of whole blocks of it.
    SharedFile,
    /// One file; thread i of N has the blocks i, i + N, i + 2N and so on of it.
    SharedStrided,
    /// Directories and files, each thread's own or in directories of all.
    Tree,
    /// Files that were there before.
    FileList,
    /// Block devices, each thread a contiguous range of whole blocks.
    Device,
}

/// The order in which a thread takes its blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub enum Pattern {
    /// Ascending.
    Sequential,
    /// Descending.
    Backward,
    /// Block 0, s, 2s and so on, then 1, 1 + s: each block once in a pass.
    Strided {
        /// s, at least 2.
        step: u64,
    },
    /// Uniform, with repetition.
    Random,
    /// A seeded permutation: each block once before any comes again.
    RandomOnce,
    /// With repetition; the k-th most popular block is drawn in proportion to 1 / k^theta.
    Zipf {
        /// theta in 1/1000, above 0, not 1000.
        theta_milli: u32,
    },
    /// With repetition; a share h of the draws falls on a share 1 - h of the blocks, and within
    /// them again.
    Pareto {
        /// h in 1/1000, above 500, below 1000.
        h_milli: u32,
    },
    /// With repetition; draws lie around the middle of the range by a normal distribution.
    Normal {
        /// Its standard deviation in 1/1000 of the range.
        deviation_milli: u32,
    },
}

/// The mechanism that moves the bytes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Archive, Serialize, Deserialize,
)]
pub enum EngineKind {
    /// `pread` and `pwrite` (`preadv2` and `pwritev2` where flags are asked for).
    Sync,
    /// `io_uring`, up to `depth` operations in flight per thread.
    IoUring,
    /// `io_submit` and `io_getevents`, up to `depth` operations in flight per thread.
    Libaio,
    /// Loads and stores in a shared mapping of the file.
    Mmap,
    /// Nothing is done: what remains is the cost of the generator itself.
    Null,
}

/// The mechanism and how it is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct EngineSpec {
    /// Which.
    pub kind: EngineKind,
    /// Operations in flight per thread; 1 where the engine has no queue.
    pub depth: u32,
    /// `io_uring`: a kernel thread takes submissions (`IORING_SETUP_SQPOLL`).
    pub sqpoll: bool,
    /// `io_uring`: completions are polled for (`IORING_SETUP_IOPOLL`); needs direct I/O.
    pub iopoll: bool,
    /// `sync`: `RWF_HIPRI` with each call; needs direct I/O.
    pub high_priority: bool,
}

/// What written blocks hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct Data {
    /// What the bytes are.
    pub content: Content,
    /// Whether each write has new bytes; otherwise each thread writes the same block again.
    pub refresh: bool,
    /// What a reader finds is compared with what a writer left: units of 4 KiB carry their place.
    pub verify: bool,
    /// The generation that writes of this point leave, from 1; the one before is what they replace.
    pub generation: u32,
    /// Whether a reader may expect exactly one generation in each block that it has not written
    /// itself; otherwise stale data can't be told.
    pub generation_known: bool,
    /// Which dataset, for the units: a hash of campaign and name.
    pub dataset: u64,
}

/// What the bytes of a block are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub enum Content {
    /// Zeros.
    Zero,
    /// Random, as far as the ratios leave them so.
    Random {
        /// Size over compressed size in 1/1000, at least 1000 (incompressible).
        compress_milli: u32,
        /// 4 KiB blocks over different ones in 1/1000, at least 1000 (all differ).
        dedupe_milli: u32,
    },
}

/// How operations are offered to the threads of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub enum Load {
    /// Each thread issues the next as soon as it has room for it.
    Closed {
        /// Pause after each burst.
        think_ns: u64,
        /// Operations between two pauses, at least 1.
        burst: u32,
    },
    /// They arrive at their times whatever happened to the ones before; one queue per worker.
    Open(Arrivals),
}

/// The times at which operations arrive at a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct Arrivals {
    /// Operations in 1000 s that arrive at this worker.
    pub per_1000_s: u64,
    /// Gaps are drawn from an exponential distribution; otherwise they are all the same.
    pub exponential: bool,
    /// Even gaps: the first arrival is this long after T0, so that the fleet's are spaced evenly.
    pub phase_ns: u64,
    /// Seed of exponential gaps, different for each worker.
    pub seed: u64,
}

/// Where threads and buffers are to be.
#[derive(Debug, Clone, PartialEq, Eq, Default, Archive, Serialize, Deserialize)]
pub struct Placement {
    /// Cores that the worker's I/O threads are bound to, in turn; none: the kernel's choice.
    pub cores: Option<Vec<u32>>,
    /// NUMA nodes that threads (where `cores` says nothing) and buffers are bound to, in turn.
    pub numa_nodes: Option<Vec<u32>>,
    /// Buffers lie in huge pages.
    pub huge_pages: bool,
}

/// How files are opened and prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Archive, Serialize, Deserialize)]
pub struct FileOptions {
    /// `O_DIRECT`.
    pub direct: bool,
    /// `O_DSYNC`.
    pub dsync: bool,
    /// `O_APPEND`: the kernel chooses each write's offset.
    pub append: bool,
    /// Space is allocated while arming (`fallocate`).
    pub preallocate: bool,
    /// The file is truncated to nothing while arming, in place of being made anew.
    pub truncate: bool,
    /// `posix_fadvise` (`madvise` with `mmap`) while arming.
    pub advice: Option<Advice>,
    /// `flock` around each operation.
    pub lock: bool,
}

/// What the kernel is told of coming accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub enum Advice {
    /// They will be sequential.
    Sequential,
    /// They will be random.
    Random,
    /// The data will be needed soon.
    WillNeed,
    /// Cached data is not needed.
    DontNeed,
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
    /// All engines that stages use.
    pub engines: Vec<EngineSpec>,
    /// All block sizes that direct stages use.
    pub direct_blocks: Vec<u64>,
    /// Whether the campaign writes.
    pub writes: bool,
    /// Files that are there before, by absolute path below a root.
    pub listed: Vec<String>,
    /// Block devices, by absolute path.
    pub devices: Vec<String>,
    /// The user consents that listed files and devices are overwritten.
    pub destroys_data: bool,
    /// Most bytes that the whole fleet's files take at one time.
    pub bytes: u64,
    /// Most files of the whole fleet at one time.
    pub files: u64,
    /// Share of bytes and inodes that stays free, in 1/1000.
    pub min_free_milli: u32,
    /// Files that are read may have holes.
    pub allow_holes: bool,
    /// Most threads of this worker in one point (descriptors, processes).
    pub threads: u32,
    /// Most bytes of buffers of this worker in one point.
    pub buffer_bytes: u64,
    /// Placements that points ask for.
    pub placements: Vec<Placement>,
    /// Interfaces that carry the file system's traffic; empty: the worker finds them.
    pub interfaces: Vec<String>,
}

/// One worker's part of one point.
#[derive(Debug, Clone, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct WorkerPlan {
    /// Which point, which try.
    pub point: PointId,
    /// Where its files are.
    pub dir: DatasetDir,
    /// Names of files and trees in the dataset's directory that are removed while arming, if they
    /// exist.
    pub remove: Vec<String>,
    /// Mechanism.
    pub engine: EngineSpec,
    /// Order of blocks.
    pub pattern: Pattern,
    /// Bytes of one operation: one entry, or a mix. All are multiples of the smallest.
    pub blocks: Vec<SizeShare>,
    /// How files are opened.
    pub options: FileOptions,
    /// Fsync policy of writes.
    pub fsync: Fsync,
    /// Length that each of its own files has once all threads of the fleet have written it.
    pub file_bytes: u64,
    /// Files are created (they must not exist after `remove`; with a shared file they may).
    pub create: bool,
    /// Caches are dropped while it is armed.
    pub cold: bool,
    /// What blocks hold.
    pub data: Data,
    /// How operations are offered.
    pub load: Load,
    /// Cores, NUMA nodes, pages.
    pub placement: Placement,
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

impl WorkerPlan {
    /// Bytes of the smallest operation, which is the grid of blocks.
    #[must_use]
    pub fn block_bytes(&self) -> u64 {
        self.blocks.iter().map(|block| block.bytes).min().unwrap_or(0)
    }

    /// Bytes of the largest operation, which is the size of a buffer.
    #[must_use]
    pub fn block_bytes_max(&self) -> u64 {
        self.blocks.iter().map(|block| block.bytes).max().unwrap_or(0)
    }

    /// Kinds of operation that any of its threads does, in order, each once.
    #[must_use]
    pub fn ops(&self) -> Vec<OpKind> {
        let all = self.threads.iter().flat_map(|thread| &thread.ops).map(|share| share.op);
        let mut ops: Vec<OpKind> = all.collect();
        ops.sort_unstable();
        ops.dedup();
        ops
    }

    /// Whether any thread writes bytes.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.ops().contains(&OpKind::Write)
    }
}

/// One I/O thread's part of one point.
#[derive(Debug, Clone, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct ThreadPlan {
    /// Its number in the fleet, from 0.
    pub thread: u32,
    /// What its operations do: one entry, or a mix from which each operation is drawn.
    pub ops: Vec<OpShare>,
    /// What it touches.
    pub files: Files,
    /// Operations by size (`Amount::Share`): once each block, or each name.
    pub operations: u64,
    /// Seed of its offsets, mixes and data.
    pub seed: u64,
}

impl ThreadPlan {
    /// Its files; none of a tree.
    #[must_use]
    pub fn parts(&self) -> &[FilePart] {
        match &self.files {
            Files::Named(parts) | Files::Listed(parts) | Files::Devices(parts) => parts,
            Files::Tree(_) => &[],
        }
    }

    /// Name of one of its files, for people.
    #[must_use]
    pub fn file_name(&self, file: u32) -> String {
        match &self.files {
            Files::Named(parts) | Files::Listed(parts) | Files::Devices(parts) => {
                let part = usize::try_from(file).ok().and_then(|place| parts.get(place));
                part.map_or_else(String::new, |part| part.file.clone())
            }
            Files::Tree(tree) => tree.file_name(self.thread, file),
        }
    }
}

/// What a thread touches.
#[derive(Debug, Clone, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub enum Files {
    /// Files of the dataset's directory, opened while arming.
    Named(Vec<FilePart>),
    /// A tree below the dataset's directory.
    Tree(TreePart),
    /// Files that were there before, by absolute path below a root of the worker.
    Listed(Vec<FilePart>),
    /// Block devices that the worker was allowed to use, by absolute path.
    Devices(Vec<FilePart>),
}

/// What of one file a thread touches.
#[derive(Debug, Clone, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct FilePart {
    /// The file.
    pub file: String,
    /// What of it: sorted, not overlapping. Blocks are laid from each extent's start; a rest
    /// shorter than a block is not used.
    pub extents: Vec<Extent>,
    /// From the start of one block to the next; 0: they follow each other.
    pub stride_bytes: u64,
}

impl FilePart {
    /// End of its last whole block.
    #[must_use]
    pub fn end(&self, block_bytes: u64) -> u64 {
        let stride = self.stride_bytes.max(block_bytes).max(1);
        let end = |extent: &Extent| {
            let blocks = extent.length.checked_sub(block_bytes).map_or(0, |last| last / stride + 1);
            (blocks > 0).then(|| extent.offset + (blocks - 1) * stride + block_bytes)
        };
        self.extents.iter().filter_map(end).max().unwrap_or(0)
    }

    /// Whole blocks in it.
    #[must_use]
    pub fn blocks(&self, block_bytes: u64) -> u64 {
        let stride = self.stride_bytes.max(block_bytes).max(1);
        let blocks = |extent: &Extent| {
            extent.length.checked_sub(block_bytes).map_or(0, |last| last / stride + 1)
        };
        self.extents.iter().map(blocks).sum()
    }
}

/// A thread's part of a tree: `<base>/t00003/d0000/f0000001`, or with shared directories
/// `<base>/d0000/t00003-f0000001`.
#[derive(Debug, Clone, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct TreePart {
    /// Name of the tree in the dataset's directory.
    pub base: String,
    /// Directories are those of all threads; otherwise they are its own.
    pub shared_dirs: bool,
    /// Directories.
    pub dirs: u32,
    /// Files of this thread in each directory.
    pub files_per_dir: u32,
    /// Sizes of files by weight, drawn for each from the tree's seed; all 0: empty files.
    pub sizes: Vec<SizeShare>,
    /// Seed of the sizes: the same in all points on the tree.
    pub sizes_seed: u64,
    /// Files and directories that exist when the point begins: those of the names below these
    /// numbers, and not below `gone`.
    pub existing: Names,
    /// Files have been renamed an odd number of times.
    pub renamed: bool,
}

/// How far names have been made and removed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Archive, Serialize, Deserialize)]
pub struct Names {
    /// Directories made: the first so many of the thread.
    pub dirs: u32,
    /// Files made: names below this number…
    pub files: u64,
    /// …and not below this one.
    pub gone: u64,
}

impl TreePart {
    /// Path of one of its files below the dataset's directory, as it was made.
    #[must_use]
    pub fn file_name(&self, thread: u32, file: u32) -> String {
        let (base, dir) = (&self.base, file / self.files_per_dir.max(1));
        if self.shared_dirs {
            format!("{base}/d{dir:04}/t{thread:05}-f{file:07}")
        } else {
            format!("{base}/t{thread:05}/d{dir:04}/f{file:07}")
        }
    }

    /// Size of one of its files: drawn by weight from the seed, the thread and the number.
    #[must_use]
    pub fn size_of(&self, thread: u32, file: u64) -> u64 {
        let all: u64 = self.sizes.iter().map(|size| u64::from(size.weight)).sum();
        let drawn = mix(self.sizes_seed ^ mix((u64::from(thread) << 40) ^ file));
        let mut left = u64::try_from((u128::from(drawn) * u128::from(all)) >> 64).unwrap_or(0);
        for size in &self.sizes {
            match left.checked_sub(u64::from(size.weight)) {
                Some(rest) => left = rest,
                None => return size.bytes,
            }
        }
        0
    }

    /// Files of this thread.
    #[must_use]
    pub fn files(&self) -> u64 {
        u64::from(self.dirs) * u64::from(self.files_per_dir)
    }
}

/// The finaliser of splitmix64: every bit of the result hangs on every bit of `value`.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
