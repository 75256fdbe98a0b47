//! Identifiers that must not be mixed up.

use std::fmt;

use rkyv::{Archive, Deserialize, Serialize};

/// A worker's place in the host list, from 0.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Archive, Serialize, Deserialize,
)]
pub struct NodeIndex(pub u32);

impl NodeIndex {
    /// As an index into per-node tables.
    #[must_use]
    pub fn at(self) -> usize {
        self.0 as usize
    }
}

/// A coordinator's connection to a worker, by the number that the worker gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u64);

/// One try at one point of a campaign.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Archive, Serialize, Deserialize,
)]
pub struct PointId {
    /// The point's place in the plan, from 0.
    pub index: u32,
    /// 0, and 1 for the one retry after a start that not every worker committed to.
    pub attempt: u32,
}

impl fmt::Display for PointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.index)?;
        if self.attempt > 0 {
            write!(f, " (attempt {})", self.attempt + 1)?;
        }
        Ok(())
    }
}
