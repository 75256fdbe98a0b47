//! The messages between a coordinator and a worker.
//!
//! One bidirectional control stream carries [`Hello`] each way, then [`Command`]s to the worker and
//! [`Notice`]s back. A unidirectional stream of the worker's per point carries numbered
//! [`Delivery`]s. Datagrams ([`Datagram`]) carry clock pings and heartbeats.
//!
//! Bodies are rkyv archives behind a hand-coded header (`codec`): archive validation checks shape,
//! not meaning, so magic, version, kind and length stand outside of it.

use rkyv::{Archive, Deserialize, Serialize};

use crate::{
    clock::ClockMap,
    facts::{HostFacts, NetworkFacts, TargetFacts},
    ids::PointId,
    lifecycle::Phase,
    stats::{HostSample, NodeInterval, PointReport, Tick},
    work::{OpKind, TargetSpec, WorkerPlan},
};

pub use codec::{Body, CodecError, HEADER_BYTES, Header};
pub use hello::{HELLO_BYTES, Hello, HelloError};

mod codec;
mod hello;

/// Protocol versions, oldest first. The number is what the header carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u16)]
pub enum WireVersion {
    /// The first.
    V1 = 1,
    /// Kinds of operation beside reads and writes, queues, mixes, files by tree and list.
    V2 = 2,
    /// Links, and samples of a machine's counters.
    V3 = 3,
}

impl WireVersion {
    /// The oldest that this build speaks.
    pub const OLDEST: Self = Self::V3;
    /// The one that this build speaks by preference.
    pub const CURRENT: Self = Self::V3;
}

/// Coordinator to worker, on the control stream.
#[derive(Debug, Clone, PartialEq, Archive, Serialize, Deserialize)]
pub enum Command {
    /// Take the worker for a campaign. Answer: `Claimed` or `Refused`.
    Claim {
        /// Campaign id.
        campaign: String,
        /// Who asks, as people know it: `user@host, pid 12`.
        holder: String,
        /// The worker's name in the fleet.
        node: String,
    },
    /// Say what of the target can be known before any I/O. Answer: `Inspected` or `Refused`.
    Inspect(Box<TargetSpec>),
    /// Prepare a point. Answer: `Armed` or `Refused`.
    Arm(Box<WorkerPlan>),
    /// T0 in fleet time and the frozen map. Answer: `Ready` or `Refused`.
    Start {
        /// Which point.
        point: PointId,
        /// Fleet instant.
        t0_fleet_ns: u64,
        /// How the worker's clock reads then.
        map: ClockMap,
    },
    /// Start at T0. No answer.
    Commit {
        /// Which point.
        point: PointId,
    },
    /// End the point: a parked crew is dismissed (answer `NotStarted`), a running one ends its
    /// operations in flight and reports as always.
    Stop {
        /// Which point.
        point: PointId,
    },
    /// Every delivery of the point up to and with this number has been taken.
    Acknowledge {
        /// Which point.
        point: PointId,
        /// Greatest number without a gap before it.
        through: u64,
    },
    /// Sample the machine's counters until released. Answer: `Observing` or `Refused`, and then
    /// `Observed` again and again.
    Observe {
        /// From one sample to the next, ns.
        interval_ns: u64,
        /// Interfaces whose links count; empty: all physical ones.
        interfaces: Vec<String>,
    },
    /// Be ready to receive from other nodes, memory to memory. Answer: `NetListening` or `Refused`.
    NetListen {
        /// What senders have to show.
        token: [u8; 16],
    },
    /// Send to other nodes, and measure what they send. Answer: `NetMeasured` or `Refused`.
    NetRun(NetOrder),
    /// Goodbye. `keep`: leave files where they are. Answer: `Released`, after which the coordinator
    /// closes the connection.
    Release {
        /// Leave the files.
        keep: bool,
    },
}

/// Worker to coordinator, on the control stream.
#[derive(Debug, Clone, PartialEq, Archive, Serialize, Deserialize)]
pub enum Notice {
    /// The worker is held by this coordinator.
    Claimed(HostFacts),
    /// The target can be used.
    Inspected(TargetFacts),
    /// All threads of the point are parked, files open, buffers touched.
    Armed {
        /// Which point.
        point: PointId,
        /// How long that took.
        took_ns: u64,
    },
    /// T0 is known and lies ahead.
    Ready {
        /// Which point.
        point: PointId,
        /// T0 on the worker's monotonic clock.
        t0_worker_ns: u64,
        /// How far ahead it was when it was taken.
        ahead_ns: u64,
    },
    /// The point did not start here: no commit in time, T0 past, or stopped before T0.
    NotStarted {
        /// Which point.
        point: PointId,
        /// Why.
        why: String,
    },
    /// The worker can't do what the last command asked.
    Refused(Refusal),
    /// It samples these.
    Observing(NetworkFacts),
    /// What it sampled; `at_ns` is on the worker's monotonic clock.
    Observed(Vec<HostSample>),
    /// It receives from who shows the token.
    NetListening {
        /// TCP port.
        port: u16,
    },
    /// What it received while it measured.
    NetMeasured {
        /// Length of the time, ns.
        elapsed_ns: u64,
        /// By sender.
        received: Vec<NetReceived>,
    },
    /// The last word on this connection.
    Released(Removal),
}

/// What a node does in a measurement of the network.
#[derive(Debug, Clone, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct NetOrder {
    /// Its number among the nodes.
    pub me: u32,
    /// The token that it shows.
    pub token: [u8; 16],
    /// To whom it sends.
    pub flows: Vec<NetFlow>,
    /// Time before what is received counts, ns.
    pub warm_ns: u64,
    /// Time for which it counts, ns.
    pub window_ns: u64,
}

/// Where a node sends to.
#[derive(Debug, Clone, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct NetFlow {
    /// IP address.
    pub address: String,
    /// TCP port.
    pub port: u16,
    /// TCP streams.
    pub streams: u32,
}

/// What came from a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct NetReceived {
    /// Number of the sender.
    pub from: u32,
    /// Payload of TCP, bytes.
    pub bytes: u64,
}

/// What removal did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Archive, Serialize, Deserialize)]
pub struct Removal {
    /// Files removed.
    pub files: u64,
    /// Paths that are left, with the reason.
    pub left: Vec<String>,
}

/// What kind of thing stands in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Archive, Serialize, Deserialize)]
pub enum RefusalKind {
    /// Another coordinator holds the worker.
    Busy,
    /// The target can't be used as asked (roots, parent, space, alignment, read-only…).
    Target,
    /// A limit of the machine (descriptors, memory, processes).
    Limit,
    /// The command does not fit the worker's phase.
    Phase,
    /// A fault of the worker.
    Internal,
}

/// A worker's no, in words for people.
#[derive(Debug, Clone, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct Refusal {
    /// Kind.
    pub kind: RefusalKind,
    /// The point, when it is about one.
    pub point: Option<PointId>,
    /// What is wrong, where, and what would be right. Without the node's name, so that the same
    /// text of many nodes is one message.
    pub text: String,
}

/// One numbered frame of a point's delivery stream.
#[derive(Debug, Clone, PartialEq, Archive, Serialize, Deserialize)]
pub struct Delivery {
    /// Which point.
    pub point: PointId,
    /// 0, 1, 2… without a gap.
    pub number: u64,
    /// What.
    pub content: Content,
}

/// What a delivery holds.
#[derive(Debug, Clone, PartialEq, Archive, Serialize, Deserialize)]
pub enum Content {
    /// A final interval of one kind of operation; of each kind they come in order of k, none left
    /// out.
    Interval(NodeInterval),
    /// Part of the spread series.
    Ticks {
        /// Of which kind of operation.
        op: OpKind,
        /// Number of the first tick.
        first: u64,
        /// The ticks.
        ticks: Vec<Tick>,
    },
    /// Part of what the machine's counters said in the course of the point, in order of time.
    Samples(Vec<HostSample>),
    /// The last delivery of a point.
    Report(PointReport),
}

/// Unreliable messages, both ways.
#[derive(Debug, Clone, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub enum Datagram {
    /// Clock ping of the coordinator.
    Ping {
        /// Number.
        sequence: u64,
        /// Fleet clock when it was sent.
        sent_ns: u64,
    },
    /// The worker's answer.
    Pong {
        /// Number of the ping.
        sequence: u64,
        /// The ping's own stamp.
        sent_ns: u64,
        /// Worker clock when the ping came.
        received_ns: u64,
        /// Worker clock when the answer left.
        answered_ns: u64,
    },
    /// Coordinator to worker: I live.
    Alive {
        /// Number.
        sequence: u64,
    },
    /// Worker to coordinator: I live, and this is how it stands.
    Beat(Beat),
}

/// A worker's heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub struct Beat {
    /// Number.
    pub sequence: u64,
    /// The daemon's incarnation.
    pub incarnation: u64,
    /// Its phase.
    pub phase: Phase,
    /// I/O threads that still run.
    pub threads: u32,
    /// Payload so far in the running point, provisional.
    pub bytes: u64,
    /// Age of the oldest operation in flight, 0 if there is none.
    pub oldest_ns: u64,
}
