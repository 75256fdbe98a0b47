//! The raw material of every figure, and how it merges.
//!
//! Laws, checked by property tests: merging is commutative and associative, the empty value is its
//! identity, and no merge loses a count. Everything is an integer until `figures` divides.
//!
//! Three independent accounts of the same operations leave a worker: the *totals* of each thread
//! ([`ThreadReport`]), the *completion series* ([`NodeInterval`], each operation whole in the
//! interval in which it completed) and the *spread series* ([`Tick`], each operation shared out
//! over the ticks between its issue and its completion).

use rkyv::{Archive, Deserialize, Serialize};

use crate::{
    ids::PointId,
    limits::{LATENCY_NS_MAX, TICK_NS},
    work::{Extent, Names, OpKind},
};

pub use host::{CpuCounters, HostSample, LinkCounters};
pub use latency::{Bucket, Latency, LatencyCounts};

mod host;
mod latency;

/// Units of one byte in [`Tick::bytes`].
pub const BYTE_UNITS: u64 = 1 << 20;
/// Units of one operation in [`Tick::ops`].
pub const OP_UNITS: u64 = 1 << 32;

/// One tick ([`TICK_NS`]) of the spread series of a node, counted from T0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Archive, Serialize, Deserialize)]
pub struct Tick {
    /// Payload in 1/[`BYTE_UNITS`] byte.
    pub bytes: u64,
    /// Operations in 1/[`OP_UNITS`].
    pub ops: u64,
    /// Time that operations were in service, summed over threads, in ns.
    pub busy_ns: u64,
}

impl Tick {
    /// Adds another node's or thread's same tick.
    pub fn merge(&mut self, other: Self) {
        let Self { bytes, ops, busy_ns } = other;
        self.bytes += bytes;
        self.ops += ops;
        self.busy_ns += busy_ns;
    }
}

/// What operations of one kind completed in one interval on one node (or, merged, in the fleet, or
/// of all kinds).
#[derive(Debug, Clone, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct NodeInterval {
    /// Interval k is [T0 + k·d, T0 + (k+1)·d).
    pub k: u32,
    /// The kind of operation; none where kinds were merged.
    pub op: Option<OpKind>,
    /// Payload of the operations that completed in it.
    pub bytes: u64,
    /// Operations that completed in it.
    pub ops: u64,
    /// Operations that failed in it.
    pub errors: u64,
    /// Service time of its operations. In the measured phase without those that were issued during
    /// the warm-up.
    pub latency: Latency,
    /// Under an offered load: time from the intended start to completion. Otherwise empty.
    pub response: Latency,
    /// How many intervals the latencies cover, this one the last: 1 unless the collector came late;
    /// 0 when a later interval's latencies cover this one.
    pub latency_intervals: u32,
}

impl NodeInterval {
    /// An interval in which nothing completed.
    #[must_use]
    pub fn empty(k: u32, op: Option<OpKind>) -> Self {
        Self {
            k,
            op,
            bytes: 0,
            ops: 0,
            errors: 0,
            latency: Latency::default(),
            response: Latency::default(),
            latency_intervals: 1,
        }
    }

    /// Adds the same interval of another node, thread or kind of operation.
    pub fn merge(&mut self, other: &Self) {
        let Self { k, op, bytes, ops, errors, latency, response, latency_intervals } = other;
        debug_assert_eq!(self.k, *k, "only the same interval merges");
        self.op = self.op.filter(|own| Some(*own) == *op);
        self.bytes += bytes;
        self.ops += ops;
        self.errors += errors;
        self.latency.merge(latency);
        self.response.merge(response);
        self.latency_intervals = self.latency_intervals.max(*latency_intervals);
    }
}

/// Totals of one kind of operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct OpCounts {
    /// The kind.
    pub op: OpKind,
    /// Payload of operations that completed in the measured phase (all phases after the warm-up).
    pub bytes: u64,
    /// Operations that completed in the measured phase.
    pub ops: u64,
    /// Operations that failed in the measured phase.
    pub errors: u64,
    /// Payload that completed during the warm-up.
    pub ramp_bytes: u64,
    /// Operations that completed during the warm-up.
    pub ramp_ops: u64,
    /// Operations that failed during the warm-up.
    pub ramp_errors: u64,
}

/// Why a thread ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub enum ThreadEnd {
    /// It did its share, or the end of its range with `loop = false`.
    Finished,
    /// The deadline of a point by time.
    Deadline,
    /// It was told to stop.
    Stopped,
    /// Too many errors, or one after which going on makes no sense (no space, stale handle…).
    Errors,
    /// It never returned from an operation and was given up.
    Stuck,
}

/// One thread's own account of a point. Times are ns after T0 on the worker's clock.
#[derive(Debug, Clone, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct ThreadReport {
    /// Its number in the fleet.
    pub thread: u32,
    /// How it ended.
    pub end: ThreadEnd,
    /// Totals by kind of operation, in the order of kinds.
    pub counts: Vec<OpCounts>,
    /// CPU time that it spent from its start to its last completion.
    pub cpu: CpuTime,
    /// Transfers that the kernel cut short and that were continued.
    pub short_transfers: u64,
    /// Issue of its first operation; none if it never issued one.
    pub first_issue_ns: Option<i64>,
    /// From when on its measured payload counts: its first issue; after a warm-up, the issue of the
    /// operation that was in flight at its end (all of that operation counts), else that end.
    pub begin_ns: Option<i64>,
    /// Its last completion, or the return of its fsync; none if nothing completed.
    pub ended_ns: Option<i64>,
    /// From when on it was busy: with a depth of 1, `begin_ns`; with a queue, the first issue with
    /// which the queue was full after as many completions as it is deep.
    pub busy_begin_ns: Option<i64>,
    /// Completion after which it could not keep its queue full, or the deadline that cut it off
    /// between two operations; none if nothing completed.
    pub busy_end_ns: Option<i64>,
    /// Duration of its final fsync.
    pub fsync_ns: Option<u64>,
    /// Time to open (or create) its file while arming.
    pub open_ns: u64,
    /// Open to close of each file that it opened and closed while it ran.
    pub files: FileTimes,
    /// Bytes of different blocks that it touched; none where that was not kept.
    pub bytes_touched: Option<u64>,
    /// Whole and broken passes over its range, in 1/1000.
    pub passes_milli: u64,
    /// Operations that never completed.
    pub unfinished: u32,
    /// Age of the oldest of them at the end of the point.
    pub unfinished_ns: Option<u64>,
    /// What it wrote of each of its files, by their places in its plan.
    pub written: Vec<WrittenPart>,
    /// Where its names stand, if it worked on any.
    pub names: Option<NamesLeft>,
    /// What verification found.
    pub damages: Vec<DamageCount>,
}

impl ThreadReport {
    /// Payload of the measured phase.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.counts.iter().map(|counts| counts.bytes).sum()
    }

    /// Operations of the measured phase.
    #[must_use]
    pub fn ops(&self) -> u64 {
        self.counts.iter().map(|counts| counts.ops).sum()
    }

    /// Operations that failed in the measured phase.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.counts.iter().map(|counts| counts.errors).sum()
    }

    /// Payload of the warm-up.
    #[must_use]
    pub fn ramp_bytes(&self) -> u64 {
        self.counts.iter().map(|counts| counts.ramp_bytes).sum()
    }

    /// Operations of the warm-up.
    #[must_use]
    pub fn ramp_ops(&self) -> u64 {
        self.counts.iter().map(|counts| counts.ramp_ops).sum()
    }

    /// Operations that failed in the warm-up.
    #[must_use]
    pub fn ramp_errors(&self) -> u64 {
        self.counts.iter().map(|counts| counts.ramp_errors).sum()
    }
}

/// CPU time of a thread in ns. The kernel knows the sum exactly, and its parts by sampling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Archive, Serialize, Deserialize)]
pub struct CpuTime {
    /// Outside of the kernel: the generator itself.
    pub user_ns: u64,
    /// Inside of it.
    pub system_ns: u64,
}

/// From open to close of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Archive, Serialize, Deserialize)]
pub struct FileTimes {
    /// Files that were closed again.
    pub count: u64,
    /// Sum in ns.
    pub sum_ns: u64,
    /// Longest, in ns.
    pub max_ns: u64,
}

/// What a thread wrote of one file.
#[derive(Debug, Clone, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct WrittenPart {
    /// Place of the file among the thread's files.
    pub file: u32,
    /// What of it.
    pub written: Written,
}

/// Where the names of a thread stand at the end of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct NamesLeft {
    /// Which exist.
    pub names: Names,
    /// Files have been renamed an odd number of times, all of them; none where some were and some
    /// were not.
    pub renamed: Option<bool>,
}

/// Damaged units of one kind, with the first of them.
#[derive(Debug, Clone, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct DamageCount {
    /// What is wrong.
    pub kind: DamageKind,
    /// Units of 4 KiB.
    pub units: u64,
    /// File of the first one, relative to the dataset's directory.
    pub file: String,
    /// Its offset in the file.
    pub offset: u64,
    /// What was found there, in words.
    pub found: String,
}

/// What an offered load came to on one worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Archive, Serialize, Deserialize)]
pub struct Offered {
    /// Operations that arrived in the measured phase.
    pub arrived: u64,
    /// Operations that had arrived at the end of the point and were never issued.
    pub not_issued: u64,
    /// Greatest number of operations that had arrived and were not issued yet.
    pub backlog_max: u64,
}

/// What of its extents a writing thread has written, over all passes of this point.
#[derive(Debug, Clone, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub enum Written {
    /// Nothing, or the point reads.
    Nothing,
    /// Every whole block of its extents.
    All,
    /// These ranges.
    Ranges(Vec<Extent>),
    /// Blocks too scattered to list.
    Scattered,
}

/// Failed operations of one kind on one node.
#[derive(Debug, Clone, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct ErrorCount {
    /// What failed.
    pub op: OpKind,
    /// The call that failed, as people know it: `pwrite`, `pread`, `fsync`, `short read`.
    pub call: String,
    /// errno, 0 for a short read inside written ranges.
    pub errno: i32,
    /// How many.
    pub count: u64,
    /// File of the first one, relative to the dataset's directory.
    pub file: String,
    /// Offset of the first one.
    pub offset: u64,
    /// Sum of the failed operations' own service times in ns.
    pub sum_ns: u64,
    /// Longest of them.
    pub max_ns: u64,
}

/// How what was read differs from what was written.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Archive, Serialize, Deserialize,
)]
pub enum DamageKind {
    /// Part of one write arrived, and part of another: in a block, or inside of a unit of it.
    Torn,
    /// Whole data of an earlier write: a later one was lost.
    Stale,
    /// Whole data that belongs somewhere else.
    Misdirected,
    /// Data that nobody has written like that.
    Corrupted,
    /// Zeros where data was written.
    Missing,
}

impl DamageKind {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Torn, Self::Stale, Self::Misdirected, Self::Corrupted, Self::Missing];

    /// As in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Torn => "torn",
            Self::Stale => "stale",
            Self::Misdirected => "misdirected",
            Self::Corrupted => "corrupted",
            Self::Missing => "missing",
        }
    }
}

/// What a damaged unit says of itself; without meaning where it is corrupted, 0 where it is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Archive, Serialize, Deserialize)]
pub struct Found {
    /// `Data::dataset` of its writer.
    pub dataset: u64,
    /// File that it was written to.
    pub file: u64,
    /// Byte offset in that file.
    pub offset: u64,
    /// Generation of the write.
    pub generation: u32,
}

/// The payload of a node's measured phase up to the instant at which its first thread ended: as in
/// the spread series, but cut at that instant instead of the edge of a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct FirstEnd {
    /// Earliest `ended_ns` of the node's threads, ns after T0.
    pub at_ns: i64,
    /// Payload of all its threads in 1/[`BYTE_UNITS`] byte; a day's does not fit in 64 bits.
    pub bytes: u128,
    /// Operations in 1/[`OP_UNITS`].
    pub ops: u128,
}

/// The last word of a worker on a point. Complete once all numbered deliveries before it are there.
#[derive(Debug, Clone, PartialEq, Archive, Serialize, Deserialize)]
pub struct PointReport {
    /// Which point, which try.
    pub point: PointId,
    /// T0 on the worker's monotonic clock.
    pub t0_worker_ns: u64,
    /// Its threads, by number.
    pub threads: Vec<ThreadReport>,
    /// Its failed operations by kind.
    pub errors: Vec<ErrorCount>,
    /// Number of intervals that it delivered, those of each kind of operation counted.
    pub intervals: u32,
    /// Number of ticks that it delivered, those of each kind of operation counted.
    pub ticks: u64,
    /// Number of samples of its machine that it delivered.
    pub samples: u32,
    /// How long syncfs took after the threads had ended; none if it was not called.
    pub syncfs_ns: Option<u64>,
    /// Share of the machine's CPU time that was busy between T0 and the last end.
    pub cpu_share: Option<f64>,
    /// Reading of the stamp clock, converted to ns, less the monotonic clock's, after the last end.
    pub stamp_residual_ns: i64,
    /// What its threads had moved when the first of them ended; none if none completed anything.
    pub first_end: Option<FirstEnd>,
    /// Under an offered load: what it came to.
    pub offered: Option<Offered>,
    /// What should be known of how the engine ran: a kernel's refusal of registered buffers, say.
    pub remarks: Vec<String>,
    /// How caches were dropped before it; none where that was not asked for.
    pub cold: Option<ColdStart>,
    /// What was looked for in the files that it read; none where that does not apply.
    pub holes: Option<HoleCheck>,
    /// Why the worker ended it before its time by itself; none if it did not.
    pub stopped: Option<String>,
    /// The sums of threads, intervals and ticks agreed on the worker. If not, what differs.
    pub sums: Option<String>,
}

/// How a machine's caches were dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Archive, Serialize, Deserialize)]
pub enum ColdStart {
    /// By the kernel, all of them.
    Kernel,
    /// By the kernel, all of them, for a helper with the right to ask for it.
    Helper,
    /// Pages of single files, by advice.
    Advice,
}

impl ColdStart {
    /// As in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Helper => "helper",
            Self::Advice => "advice",
        }
    }
}

/// Whether files have holes where threads read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Archive, Serialize, Deserialize)]
pub struct HoleCheck {
    /// A file lies where holes are not reported, and was not looked at.
    pub blind: bool,
    /// Parts of files that have holes.
    pub files: u64,
    /// The first of them, and where.
    pub first: Option<String>,
}

/// Interval that an instant after T0 belongs to; what is before T0 belongs to the first.
#[must_use]
pub fn interval_of(after_t0_ns: i64, interval_ns: u64) -> u32 {
    let after = u64::try_from(after_t0_ns).unwrap_or(0);
    u32::try_from(after / interval_ns).unwrap_or(u32::MAX)
}

/// Tick that an instant after T0 belongs to; what is before T0 belongs to the first.
#[must_use]
pub fn tick_of(after_t0_ns: i64) -> u64 {
    u64::try_from(after_t0_ns).unwrap_or(0) / TICK_NS
}

const _: () = assert!(LATENCY_NS_MAX < 1 << 42);
