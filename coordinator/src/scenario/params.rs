//! The workload keys of one point, resolved: nothing is optional that has a default, and what has
//! no effect in the point has its neutral value.

use std::sync::Arc;

use iofleet_shared::{
    units::Rate,
    work::{
        Content, EngineKind, EngineSpec, FileOptions, Fsync, Layout, OpKind, OpShare, Pattern,
        Placement, SizeShare,
    },
};

use super::{OnFault, Threads};

/// The workload keys of one point, resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// `op`, or `mix`: one entry, or several.
    pub ops: Vec<OpShare>,
    /// `mix_by`.
    pub mix_by: MixBy,
    /// `threads` or `threads_per_node`.
    pub threads: Threads,
    /// `nodes`: how many of the fleet take part; none: all.
    pub nodes: Option<u32>,
    /// `cold`.
    pub cold: bool,
    /// `layout`.
    pub layout: Layout,
    /// `dirs`, `files`, `dir_sharing`; zeros where the layout is no tree.
    pub tree: Tree,
    /// Paths of listed files or devices; empty in the other layouts.
    pub listed: Arc<[String]>,
    /// `file_size`: of each thread's file, of the whole shared file, of each file of a tree (there
    /// it may be a mix), or of the part that is used of each listed file.
    pub file_sizes: Vec<SizeShare>,
    /// `block`: one size or a mix, all multiples of the smallest.
    pub blocks: Vec<SizeShare>,
    /// `pattern` and what sets it.
    pub pattern: Pattern,
    /// `duration`; none: by size.
    pub duration_ns: Option<u64>,
    /// `ramp`; 0: none.
    pub ramp_ns: u64,
    /// `interval`.
    pub interval_ns: u64,
    /// `loop`.
    pub repeat_range: bool,
    /// `engine`, `depth` and what else sets it.
    pub engine: EngineSpec,
    /// `direct`, `dsync`, `append`, `preallocate`, `truncate`, `advice`, `lock`.
    pub options: FileOptions,
    /// `fsync`; none where nothing is written.
    pub fsync: Fsync,
    /// `fresh` (writes only).
    pub fresh: bool,
    /// `rate` or `think`.
    pub offer: Offer,
    /// `content`, `compress`, `dedupe`.
    pub content: Content,
    /// `refresh`.
    pub refresh: bool,
    /// `verify`.
    pub verify: Verify,
    /// `cores`, `numa_nodes`, `huge_pages`.
    pub placement: Placement,
    /// `seed`.
    pub seed: u64,
    /// `on_fault`.
    pub on_fault: OnFault,
    /// `stuck_after`.
    pub stuck_after_ns: u64,
}

/// How a mix of kinds of operation is dealt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MixBy {
    /// Each thread draws the kind of each operation.
    Operation,
    /// Each thread does one kind; threads are dealt to kinds.
    Thread,
}

/// Whose the directories of a tree are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DirSharing {
    /// Each thread's own.
    #[default]
    Own,
    /// All threads use the same.
    Shared,
}

/// Shape of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tree {
    /// Directories of each thread, or of all.
    pub dirs: u32,
    /// Files of each thread in each directory.
    pub files: u32,
    /// Whose the directories are.
    pub sharing: DirSharing,
}

impl Tree {
    /// Files of each thread.
    #[must_use]
    pub fn files_per_thread(self) -> u64 {
        u64::from(self.dirs) * u64::from(self.files)
    }
}

/// How operations are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// As soon as a thread has room for one.
    Closed {
        /// `think`; 0: none.
        think_ns: u64,
        /// `burst`.
        burst: u32,
    },
    /// At their times.
    Open {
        /// `rate`.
        rate: OfferedRate,
        /// `rate_per`.
        per: RatePer,
        /// `arrivals = "exponential"`.
        exponential: bool,
    },
}

/// A rate of operations or bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfferedRate {
    /// Operations in 1000 s.
    Operations(u64),
    /// Payload.
    Bytes(Rate),
}

/// What a rate is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RatePer {
    /// All nodes together.
    Fleet,
    /// Each node that has threads.
    Node,
    /// Each thread.
    Thread,
}

/// What is compared of the data that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verify {
    /// Nothing.
    Off,
    /// All: what is torn, stale, misdirected, corrupted or missing is told.
    All,
    /// All but whether it is the last that was written.
    NoStale,
}

impl Params {
    /// Whether operations of a kind are among its own.
    #[must_use]
    pub fn has(&self, op: OpKind) -> bool {
        self.ops.iter().any(|share| share.op == op)
    }

    /// Whether bytes are written.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.has(OpKind::Write)
    }

    /// Whether bytes are read.
    #[must_use]
    pub fn reads(&self) -> bool {
        self.has(OpKind::Read)
    }

    /// Whether any of its operations moves bytes of files.
    #[must_use]
    pub fn moves_data(&self) -> bool {
        self.ops.iter().any(|share| share.op.moves_data())
    }

    /// Whether all of its operations move bytes of files.
    #[must_use]
    pub fn moves_only_data(&self) -> bool {
        self.ops.iter().all(|share| share.op.moves_data())
    }

    /// Pause after each burst of operations; 0: none.
    #[must_use]
    pub fn think_ns(&self) -> u64 {
        match self.offer {
            Offer::Closed { think_ns, .. } => think_ns,
            Offer::Open { .. } => 0,
        }
    }

    /// Whether operations arrive at their times whatever became of the ones before.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.offer, Offer::Open { .. })
    }

    /// Whether its names are used up: each is made or removed once.
    #[must_use]
    pub fn uses_names_up(&self) -> bool {
        let once = [OpKind::Mkdir, OpKind::Create, OpKind::Unlink, OpKind::Rmdir];
        self.ops.iter().all(|share| once.contains(&share.op)) && !self.is_mix()
    }

    /// Whether it has more than one kind of operation.
    #[must_use]
    pub fn is_mix(&self) -> bool {
        self.ops.len() > 1
    }

    /// The kind of its operations, or `mix`.
    #[must_use]
    pub fn op_word(&self) -> &'static str {
        match self.ops.as_slice() {
            [one] => one.op.name(),
            _ => "mix",
        }
    }

    /// Bytes of the smallest operation, the grid of blocks; at least 1.
    #[must_use]
    pub fn block_bytes(&self) -> u64 {
        self.blocks.iter().map(|block| block.bytes).min().unwrap_or(1).max(1)
    }

    /// Bytes of the largest operation.
    #[must_use]
    pub fn block_bytes_max(&self) -> u64 {
        self.blocks.iter().map(|block| block.bytes).max().unwrap_or(1)
    }

    /// Bytes of the largest file.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.file_sizes.iter().map(|size| size.bytes).max().unwrap_or(0)
    }

    /// `compress` in 1/1000.
    #[must_use]
    pub fn compress_milli(&self) -> u32 {
        match self.content {
            Content::Zero => 1000,
            Content::Random { compress_milli, .. } => compress_milli,
        }
    }

    /// `dedupe` in 1/1000.
    #[must_use]
    pub fn dedupe_milli(&self) -> u32 {
        match self.content {
            Content::Zero => 1000,
            Content::Random { dedupe_milli, .. } => dedupe_milli,
        }
    }

    /// Whether its files were there before: listed ones or devices.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        matches!(self.layout, Layout::FileList | Layout::Device)
    }

    /// Whether one file is of all threads.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        matches!(self.layout, Layout::SharedFile | Layout::SharedStrided)
    }

    /// Whether blocks come again before all have come once.
    #[must_use]
    pub fn repeats_blocks(&self) -> bool {
        match self.pattern {
            Pattern::Sequential
            | Pattern::Backward
            | Pattern::Strided { .. }
            | Pattern::RandomOnce => false,
            Pattern::Random
            | Pattern::Zipf { .. }
            | Pattern::Pareto { .. }
            | Pattern::Normal { .. } => true,
        }
    }
}

/// A write as the table's defaults have it, of a file of 1 GiB.
impl Default for Params {
    fn default() -> Self {
        Self {
            ops: vec![OpShare { op: OpKind::Write, weight: 1 }],
            mix_by: MixBy::Operation,
            threads: Threads::Fleet(1),
            nodes: None,
            cold: false,
            layout: Layout::FilePerThread,
            tree: Tree::default(),
            listed: Arc::default(),
            file_sizes: vec![SizeShare { bytes: 1 << 30, weight: 1 }],
            blocks: vec![SizeShare { bytes: 1 << 20, weight: 1 }],
            pattern: Pattern::Sequential,
            duration_ns: None,
            ramp_ns: 0,
            interval_ns: 1_000_000_000,
            repeat_range: false,
            engine: EngineSpec {
                kind: EngineKind::Sync,
                depth: 1,
                sqpoll: false,
                iopoll: false,
                high_priority: false,
            },
            options: FileOptions { direct: true, ..FileOptions::default() },
            fsync: Fsync::End,
            fresh: true,
            offer: Offer::Closed { think_ns: 0, burst: 1 },
            content: Content::Random { compress_milli: 1000, dedupe_milli: 1000 },
            refresh: true,
            verify: Verify::Off,
            placement: Placement::default(),
            seed: 1,
            on_fault: OnFault::Continue,
            stuck_after_ns: 60_000_000_000,
        }
    }
}
