//! Where keys change anything. A key that is set where it changes nothing is an error.

use iofleet_shared::work::{Content, EngineKind, Layout, Pattern};

use super::{Offer, Params};

/// In which points a key changes anything. Set where it changes none, it is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// In all.
    Always,
    /// In those with a duration.
    ByDuration,
    /// In those with a duration whose operations can begin again.
    Repeats,
    /// In those that move bytes.
    Data,
    /// In those that write bytes.
    Writes,
    /// In those that write random bytes.
    RandomContent,
    /// In those that read files and do not write.
    Reads,
    /// In those that write and do not read, to files that the campaign makes.
    Makes,
    /// In those with a mix of operations.
    Mix,
    /// In those that work on a tree.
    Tree,
    /// In those with the pattern `strided`.
    Strided,
    /// With the pattern `zipf`.
    Zipf,
    /// With the pattern `pareto`.
    Pareto,
    /// With the pattern `normal`.
    Normal,
    /// With an engine that has a queue.
    Queue,
    /// With the engine `io_uring`.
    IoUring,
    /// With the engine `sync`, where bytes are moved.
    SyncData,
    /// With a `rate`.
    Rate,
    /// With `think`.
    Think,
}

impl Effect {
    /// Whether it is so in a point.
    pub(super) fn holds(self, params: &Params) -> bool {
        match self {
            Self::Always => true,
            Self::ByDuration => params.duration_ns.is_some(),
            Self::Repeats => params.duration_ns.is_some() && !params.uses_names_up(),
            Self::Data => params.moves_data(),
            Self::Writes => params.writes(),
            Self::RandomContent => params.writes() && params.content != Content::Zero,
            Self::Reads => params.reads() && !params.writes(),
            Self::Makes => params.writes() && !params.reads() && !params.is_listed(),
            Self::Mix => params.is_mix(),
            Self::Tree => params.layout == Layout::Tree,
            Self::Strided => matches!(params.pattern, Pattern::Strided { .. }),
            Self::Zipf => matches!(params.pattern, Pattern::Zipf { .. }),
            Self::Pareto => matches!(params.pattern, Pattern::Pareto { .. }),
            Self::Normal => matches!(params.pattern, Pattern::Normal { .. }),
            Self::Queue => matches!(params.engine.kind, EngineKind::IoUring | EngineKind::Libaio),
            Self::IoUring => params.engine.kind == EngineKind::IoUring,
            Self::SyncData => params.engine.kind == EngineKind::Sync && params.moves_data(),
            Self::Rate => matches!(params.offer, Offer::Open { .. }),
            Self::Think => matches!(params.offer, Offer::Closed { think_ns, .. } if think_ns > 0),
        }
    }

    /// Where a key has no effect, and what would be right; none where it always has one. `by_time`:
    /// the points have a duration.
    pub(super) fn missing(self, by_time: bool) -> Option<(&'static str, &'static str)> {
        Some(match self {
            Self::Always => return None,
            Self::Repeats if by_time => {
                ("where names are used up", "leave it out: each name is made or removed once")
            }
            Self::ByDuration | Self::Repeats => (
                "without `duration`",
                "set a duration, or leave it out: by size each thread does its share once",
            ),
            Self::Data => (
                "on operations that work on names alone",
                "leave it out, or set it in a stage that reads or writes",
            ),
            Self::Writes => {
                ("where nothing is written", "leave it out, or set it in a stage that writes")
            }
            Self::RandomContent => (
                "where no random data is written",
                "leave it out, or set it in a stage that writes with content = \"random\"",
            ),
            Self::Reads => (
                "where bytes are not read, and only read",
                "leave it out, or set it in a stage that reads",
            ),
            Self::Makes => (
                "where no file of the campaign is written, and only written",
                "leave it out, or set it in a stage that writes",
            ),
            Self::Mix => ("without op = \"mix\"", "leave it out, or set op = \"mix\" in the stage"),
            Self::Tree => ("outside of trees", "leave it out, or set layout = \"tree\""),
            Self::Strided => ("on other patterns", "leave it out, or set pattern = \"strided\""),
            Self::Zipf => ("on other patterns", "leave it out, or set pattern = \"zipf\""),
            Self::Pareto => ("on other patterns", "leave it out, or set pattern = \"pareto\""),
            Self::Normal => ("on other patterns", "leave it out, or set pattern = \"normal\""),
            Self::Queue => (
                "on an engine without a queue",
                "leave it out, or set engine = \"io_uring\" or engine = \"libaio\"",
            ),
            Self::IoUring => ("on other engines", "leave it out, or set engine = \"io_uring\""),
            Self::SyncData => (
                "but on reads and writes with the engine `sync`",
                "leave it out, or set engine = \"sync\" in a stage that reads or writes",
            ),
            Self::Rate => ("without `rate`", "leave it out, or set a rate"),
            Self::Think => ("without `think`", "leave it out, or set think"),
        })
    }
}
