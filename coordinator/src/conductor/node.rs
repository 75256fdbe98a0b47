//! What the conductor knows of one worker.

use iofleet_shared::{
    facts::{HostFacts, TargetFacts},
    limits::{SILENT_AFTER, as_ns},
    wire::Removal,
};

use crate::barrier::ClockEstimate;

/// Pings of a burst to a worker of which nothing is known: enough that one of them meets no queue.
pub(super) const FIRST_BURST: u32 = 8;
/// Pings of a burst before a point, beside the samples at hand.
pub(super) const POINT_BURST: u32 = 4;
/// Pings of a burst after a point.
pub(super) const LAST_BURST: u32 = 2;

/// One worker of the roster.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) connection: Connection,
    pub(super) host: Option<HostFacts>,
    pub(super) target: Option<TargetFacts>,
    pub(super) clock: ClockEstimate,
    /// When anything of it was last heard.
    pub(super) heard_ns: u64,
    /// Its silence was named.
    pub(super) silence_named: bool,
    /// Age of an operation that was named, to name it again only when it has doubled.
    pub(super) stuck_named_ns: u64,
    /// Pings that are still to be sent in quick succession.
    pub(super) burst: u32,
    /// Number of the next datagram to it.
    pub(super) sequence: u64,
    /// Why it takes no part any more.
    pub(super) lost: Option<String>,
    pub(super) released: Option<Removal>,
}

/// The state of its connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Connection {
    Connecting,
    Up,
    /// It ended, or never came up, for this reason.
    Down(String),
}

impl Node {
    pub(super) fn new(name: String, now_ns: u64) -> Self {
        Self {
            name,
            connection: Connection::Connecting,
            host: None,
            target: None,
            clock: ClockEstimate::default(),
            heard_ns: now_ns,
            silence_named: false,
            stuck_named_ns: 0,
            burst: 0,
            sequence: 0,
            lost: None,
            released: None,
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.connection == Connection::Up
    }

    /// It took the campaign's claim, and its connection is up.
    pub(super) fn is_held(&self) -> bool {
        self.is_up() && self.host.is_some()
    }

    /// Takes part in the points to come.
    pub(super) fn lives(&self) -> bool {
        self.is_up() && self.lost.is_none()
    }

    pub(super) fn is_silent(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.heard_ns) >= as_ns(SILENT_AFTER)
    }

    pub(super) fn start_burst(&mut self, pings: u32) {
        self.burst = pings;
    }

    pub(super) fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }
}
