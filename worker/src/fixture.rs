//! Plans for tests, so that each test says only what is peculiar to it.

use iofleet_shared::{
    ids::PointId,
    work::{
        Amount, Content, Data, DatasetDir, EngineKind, EngineSpec, Extent, FileOptions, FilePart,
        Files, Fsync, Load, OpKind, OpShare, Pattern, Placement, SizeShare, TargetSpec, ThreadPlan,
        WorkerPlan,
    },
};

/// 10^6 ns.
pub(crate) const MS: u64 = 1_000_000;
/// Bytes of a block of [`plan`].
pub(crate) const BLOCK: u64 = 4_096;

/// `sync`, one operation at a time.
pub(crate) const SYNC: EngineSpec = engine(EngineKind::Sync, 1);

/// An engine without peculiarities.
pub(crate) const fn engine(kind: EngineKind, depth: u32) -> EngineSpec {
    EngineSpec { kind, depth, sqpoll: false, iopoll: false, high_priority: false }
}

/// Random data, the same block in each write, not verified.
pub(crate) fn data() -> Data {
    Data {
        content: Content::Random { compress_milli: 1_000, dedupe_milli: 1_000 },
        refresh: false,
        verify: false,
        generation: 1,
        generation_known: true,
        dataset: 77,
    }
}

/// Kinds of equal weight.
pub(crate) fn shares(ops: &[OpKind]) -> Vec<OpShare> {
    ops.iter().map(|op| OpShare { op: *op, weight: 1 }).collect()
}

/// The first `bytes` of a file of the dataset.
pub(crate) fn named(file: &str, bytes: u64) -> Files {
    let extents = vec![Extent { offset: 0, length: bytes }];
    Files::Named(vec![FilePart { file: file.to_owned(), extents, stride_bytes: 0 }])
}

/// A thread that does `operations` of the given kinds.
pub(crate) fn thread(thread: u32, ops: &[OpKind], files: Files, operations: u64) -> ThreadPlan {
    ThreadPlan { thread, ops: shares(ops), files, operations, seed: u64::from(thread) + 1 }
}

/// Threads that work by size with the engine `sync`, sequentially, by blocks of [`BLOCK`].
pub(crate) fn plan(dir: DatasetDir, threads: Vec<ThreadPlan>) -> WorkerPlan {
    WorkerPlan {
        point: PointId { index: 3, attempt: 0 },
        dir,
        remove: vec![],
        engine: SYNC,
        pattern: Pattern::Sequential,
        blocks: vec![SizeShare { bytes: BLOCK, weight: 1 }],
        options: FileOptions::default(),
        fsync: Fsync::End,
        file_bytes: 0,
        cold: false,
        create: true,
        data: data(),
        load: Load::Closed { think_ns: 0, burst: 1 },
        placement: Placement::default(),
        amount: Amount::Share,
        ramp_ns: 0,
        interval_ns: 10 * MS,
        stuck_after_ns: 60_000 * MS,
        threads,
    }
}

/// What must be known of a target that one thread writes to with the engine `sync`.
pub(crate) fn target_spec(dir: DatasetDir) -> TargetSpec {
    TargetSpec {
        dir,
        direct: false,
        engines: vec![SYNC],
        direct_blocks: vec![],
        writes: true,
        listed: vec![],
        devices: vec![],
        destroys_data: false,
        bytes: 1,
        files: 1,
        min_free_milli: 0,
        allow_holes: false,
        threads: 1,
        buffer_bytes: 4_096,
        placements: vec![],
        interfaces: vec![],
    }
}
