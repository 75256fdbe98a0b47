//! What the network carried while a point ran.

use serde::{Deserialize, Serialize};

use super::NodeSample;
use crate::figures;

/// A network port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// Whether it carries the target's traffic; others are sampled as well.
    #[serde(default = "carries")]
    pub carries: bool,
    /// Its speed in each direction; null where nobody says.
    pub bits_per_s: Option<u64>,
    /// Who says so.
    pub source: String,
    /// By which rule it was taken: `interfaces`, `route`, `physical`.
    #[serde(default)]
    pub rule: String,
    /// Largest packet in bytes; null where it is unknown.
    #[serde(default)]
    pub mtu: Option<u32>,
    /// The adapter's driver; empty where there is none.
    #[serde(default)]
    pub driver: String,
}

fn carries() -> bool {
    true
}

/// The network's view of a point. Its own fields are of the direction of the payload, and null for
/// a mix of reads and writes, of which `directions` has both.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Limit in the direction of the payload.
    pub limit_bytes_per_s: Option<f64>,
    /// Who says so.
    pub limit_source: Option<String>,
    /// Bytes sent from T0 until the nodes had flushed.
    pub tx_bytes: Option<u64>,
    /// Bytes received in the same time.
    pub rx_bytes: Option<u64>,
    /// `common` / limit.
    pub payload_share: Option<f64>,
    /// Wire bytes in the window, less the idle rate / limit.
    pub wire_share: Option<f64>,
    /// Wire bytes, less the idle rate / payload, over the whole point and its settling.
    pub wire_per_payload: Option<f64>,
    /// Each direction that carries payload.
    #[serde(default)]
    pub directions: Vec<Direction>,
    /// The links over time; empty where they are not known.
    #[serde(default)]
    pub intervals: Vec<WireInterval>,
    /// The storage hosts that were watched.
    #[serde(default)]
    pub observers: Vec<ObserverRecord>,
}

/// A storage host that was watched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ObserverRecord {
    /// Its name.
    pub node: String,
    /// Its links.
    pub links: Vec<Link>,
    /// Why it was not heard to the end; null where it was.
    pub lost: Option<String>,
    /// Its machine between two readings of its counters, from T0 on.
    pub samples: Vec<NodeSample>,
}

/// What the clients' links carried in an interval of the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WireInterval {
    /// Number of the interval.
    pub k: u32,
    /// Bytes sent; null where they are not known, as in an interval that was not sampled to its end.
    pub tx_bytes: Option<u64>,
    /// Bytes received.
    pub rx_bytes: Option<u64>,
}

fn framing_1500() -> f64 {
    figures::framing(figures::MTU_USUAL)
}

/// One direction of the network, as the clients see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Direction {
    /// `tx` or `rx`.
    pub direction: String,
    /// The operations whose payload it carries: `write` or `read`.
    pub op: String,
    /// The least that bounds it.
    pub limit_bytes_per_s: Option<f64>,
    /// Share of a link's label that payload can reach, for the framing of its packets.
    #[serde(default = "framing_1500")]
    pub achievable_share: f64,
    /// Where that lies: `clients`, `fabric`, `storage`.
    pub limit_side: Option<String>,
    /// Who says so.
    pub limit_source: Option<String>,
    /// Payload per second in the common window.
    pub payload_bytes_per_s: Option<f64>,
    /// Wire bytes per second in the common window, less the idle rate.
    pub wire_bytes_per_s: Option<f64>,
    /// Wire bytes per second while the point was armed and before T0; null where that was too short
    /// to tell, and nothing is taken off then.
    pub idle_bytes_per_s: Option<f64>,
    /// Payload per second in the window / limit.
    pub payload_share: Option<f64>,
    /// Wire bytes per second in the window, less the idle rate / limit.
    pub wire_share: Option<f64>,
    /// Wire bytes, less the idle rate / payload, over the whole point and its settling.
    pub wire_per_payload: Option<f64>,
    /// The same up to the last end of a thread, before what is buffered was flushed.
    #[serde(default)]
    pub wire_per_payload_at_end: Option<f64>,
    /// What the clients' own links carry.
    #[serde(default)]
    pub client_limit_bytes_per_s: Option<f64>,
    /// What the storage side's links carry: as the scenario says, or the sum of the observers'.
    #[serde(default)]
    pub storage_limit_bytes_per_s: Option<f64>,
    /// What they carried in the common window, less the idle rate; null without observers.
    #[serde(default)]
    pub storage_wire_bytes_per_s: Option<f64>,
    /// What that is when every byte of payload crosses the clients' links.
    pub expected_wire_per_payload: f64,
}
