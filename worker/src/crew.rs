//! The I/O threads of a point: armed together, started at one instant, ended or given up.

use std::{fs::File, sync::Arc};

use iofleet_shared::{
    stats::{NodeInterval, PointReport, Tick},
    work::WorkerPlan,
};

/// A file that `target` opened for one I/O thread.
#[derive(Debug, Clone)]
pub struct OpenedFile {
    /// Open with the plan's flags; threads of a shared file may share it.
    pub file: Arc<File>,
    /// How long open (or create) took.
    pub open_ns: u64,
}

/// What a crew tells the daemon, through the channel given to [`Crew::arm`].
#[derive(Debug)]
pub enum CrewEvent {
    /// A final interval; they come in order of k, none left out.
    Interval(NodeInterval),
    /// All threads have ended or were given up. Nothing follows.
    Ended {
        /// The spread series from tick 0.
        ticks: Vec<Tick>,
        /// Complete but for what the daemon adds (`syncfs_ns`, `cpu_share`).
        report: Box<PointReport>,
    },
}

/// How a running crew stands, for heartbeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CrewStatus {
    /// Threads that have not ended.
    pub threads: u32,
    /// Payload so far, provisional.
    pub bytes: u64,
    /// Age of the oldest operation in flight, 0 if there is none.
    pub oldest_ns: u64,
}

/// The threads of one point.
#[derive(Debug)]
pub struct Crew {
    _plan: WorkerPlan,
}
