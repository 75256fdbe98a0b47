//! The phases of a worker, as one table that both sides use.
//!
//! ```text
//!            Claim          Arm            Armed         Start          Commit          T0
//!     Idle ────────▶ Claimed ────▶ Arming ──────▶ Armed ──────▶ Ready ────────▶ Waiting ────▶ Running
//!       ▲               ▲            │ Failed       │ Stop        │ T0 or Stop     │ Stop        │ Ended
//!       │ Cleaned       ├────────────┴──────────────┴─────────────┴────────────────┘             ▼
//!    Cleaning ◀─────────┤ Delivered ◀──────────────────────────────────────────────────────  Draining
//!              Release  │
//! ```
//!
//! `Release` (the coordinator's goodbye, or the end of its lease) leads to `Cleaning` from every
//! phase but `Idle`; a point that still runs is stopped on the way. `Stop` while running is not an
//! edge: the threads are told, and the point ends by `Ended`.

use std::fmt;

use rkyv::{Archive, Deserialize, Serialize};

/// Where a worker is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Archive, Serialize, Deserialize,
)]
pub enum Phase {
    /// No coordinator holds it.
    Idle,
    /// Held, no point.
    Claimed,
    /// Opening files, allocating buffers, starting threads.
    Arming,
    /// All threads are parked.
    Armed,
    /// It knows T0 and waits for the commit.
    Ready,
    /// Committed; T0 is still to come.
    Waiting,
    /// I/O.
    Running,
    /// The threads have ended (or were given up); results are on their way.
    Draining,
    /// Removing what it made.
    Cleaning,
}

/// What moves a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trigger {
    /// A coordinator takes it.
    Claim,
    /// A plan came.
    Arm,
    /// All of the crew is parked.
    Armed,
    /// Arming failed.
    Failed,
    /// T0 came.
    Start,
    /// The commit came.
    Commit,
    /// T0 is now.
    T0,
    /// All threads have ended or were given up.
    Ended,
    /// The coordinator has everything of the point.
    Delivered,
    /// The coordinator ended the point.
    Stop,
    /// The coordinator said goodbye, or its lease ended.
    Release,
    /// Nothing of it is left.
    Cleaned,
}

/// A trigger that does not fit the phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{trigger:?} does not fit a worker that is {phase}")]
pub struct InvalidTransition {
    /// Where the worker was.
    pub phase: Phase,
    /// What came.
    pub trigger: Trigger,
}

impl Phase {
    /// All phases.
    pub const ALL: [Self; 9] = [
        Self::Idle,
        Self::Claimed,
        Self::Arming,
        Self::Armed,
        Self::Ready,
        Self::Waiting,
        Self::Running,
        Self::Draining,
        Self::Cleaning,
    ];

    /// The phase that `trigger` leads to.
    ///
    /// # Errors
    /// When the table has no such edge; the phase stays.
    pub fn after(self, trigger: Trigger) -> Result<Self, InvalidTransition> {
        use Phase::{Armed, Arming, Claimed, Cleaning, Draining, Idle, Ready, Running, Waiting};
        let next = match (self, trigger) {
            (Idle, Trigger::Claim)
            | (Arming, Trigger::Failed)
            | (Ready, Trigger::T0)
            | (Arming | Armed | Ready | Waiting, Trigger::Stop)
            | (Draining, Trigger::Delivered) => Claimed,
            (Claimed, Trigger::Arm) => Arming,
            (Arming, Trigger::Armed) => Armed,
            (Armed, Trigger::Start) => Ready,
            (Ready, Trigger::Commit) => Waiting,
            (Waiting, Trigger::T0) => Running,
            (Running, Trigger::Ended) => Draining,
            (Running, Trigger::Stop) => Running,
            (Claimed | Arming | Armed | Ready | Waiting | Running | Draining, Trigger::Release) => {
                Cleaning
            }
            (Cleaning, Trigger::Cleaned) => Idle,
            _ => return Err(InvalidTransition { phase: self, trigger }),
        };
        Ok(next)
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "idle",
            Self::Claimed => "claimed",
            Self::Arming => "arming",
            Self::Armed => "armed",
            Self::Ready => "ready",
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Draining => "draining",
            Self::Cleaning => "cleaning",
        })
    }
}

impl Trigger {
    /// All triggers.
    pub const ALL: [Self; 12] = [
        Self::Claim,
        Self::Arm,
        Self::Armed,
        Self::Failed,
        Self::Start,
        Self::Commit,
        Self::T0,
        Self::Ended,
        Self::Delivered,
        Self::Stop,
        Self::Release,
        Self::Cleaned,
    ];
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    /// The whole table, so that a changed edge is seen in review.
    #[test]
    fn every_phase_by_trigger() {
        let mut table = String::new();
        for phase in Phase::ALL {
            for trigger in Trigger::ALL {
                if let Ok(next) = phase.after(trigger) {
                    writeln!(table, "{phase} {trigger:?} {next}").unwrap();
                }
            }
        }
        let expected = "\
idle Claim claimed
claimed Arm arming
claimed Release cleaning
arming Armed armed
arming Failed claimed
arming Stop claimed
arming Release cleaning
armed Start ready
armed Stop claimed
armed Release cleaning
ready Commit waiting
ready T0 claimed
ready Stop claimed
ready Release cleaning
waiting T0 running
waiting Stop claimed
waiting Release cleaning
running Ended draining
running Stop running
running Release cleaning
draining Delivered claimed
draining Release cleaning
cleaning Cleaned idle
";
        assert_eq!(table, expected);
    }
}
