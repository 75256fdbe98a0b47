//! Keys of `[fleet]` and `[target]`, for the table.

use super::{Key, KeyId, Kind, Place, key};

pub(super) const WORKERS: Key = key(
    KeyId::Workers,
    "workers",
    Place::Fleet,
    Kind::Hosts,
    "The nodes, in the order in which threads are dealt to them.",
)
.otherwise("`--workers` or `--local`");

pub(super) const NETWORK_LIMIT: Key = key(
    KeyId::NetworkLimit,
    "network_limit",
    Place::Fleet,
    Kind::Rate,
    "What the network between clients and storage carries in one direction.",
)
.flagged();

pub(super) const LINK_SPEED: Key = key(
    KeyId::LinkSpeed,
    "link_speed",
    Place::Fleet,
    Kind::Speeds,
    "Speed of each client's link in each direction, in place of what the kernel says; the sum over \
     the network hosts bounds the fleet.",
)
.flagged();

pub(super) const STORAGE_LIMIT: Key = key(
    KeyId::StorageLimit,
    "storage_limit",
    Place::Fleet,
    Kind::Rate,
    "What the storage side's links carry in one direction.",
)
.flagged();

pub(super) const EXPECTED_WIRE: Key = key(
    KeyId::ExpectedWire,
    "expected_wire_per_payload",
    Place::Fleet,
    Kind::Decimal(1, 100_000),
    "Bytes that the clients' links send for one byte of payload written: 2 where clients write \
         two copies, 1.25 where they write 4 + 1 pieces.",
)
.or("1")
.flagged();

pub(super) const INTERFACES: Key = key(
    KeyId::Interfaces,
    "interfaces",
    Place::Fleet,
    Kind::Text,
    "The clients' network interfaces that carry the target's traffic, by commas: `ib0`, \
         `eth0,eth1`, `mlx5_0/1`.",
)
.otherwise("the way to the server that the mount names, else all physical ports")
.flagged();

pub(super) const OBSERVERS: Key = key(
    KeyId::Observers,
    "observers",
    Place::Fleet,
    Kind::Hosts,
    "Storage hosts that run a worker too: their links and CPUs are sampled, and they do no I/O.",
)
.flagged();

pub(super) const PATH: Key = key(
    KeyId::Path,
    "path",
    Place::Target,
    Kind::Path,
    "Directory on the file system under test; its last component is made, its parent must be \
         there.",
)
.otherwise("needed, but for a fresh directory with `--local`")
.flagged();

pub(super) const KEEP: Key =
    key(KeyId::Keep, "keep", Place::Target, Kind::Flag, "Leave the files when the campaign ends.")
        .or("false")
        .flagged();

pub(super) const MIN_FREE: Key = key(
    KeyId::MinFree,
    "min_free",
    Place::Target,
    Kind::Percent,
    "Share of the file system's bytes and inodes that stays free, before and while writing.",
)
.or("10 %")
.flagged();

pub(super) const ALLOW_HOLES: Key = key(
    KeyId::AllowHoles,
    "allow_holes",
    Place::Target,
    Kind::Flag,
    "Read files although they have holes, which no storage answers for; such points are marked.",
)
.or("false")
.flagged();

pub(super) const TARGET_FILES: Key = key(
    KeyId::TargetFiles,
    "files",
    Place::Target,
    Kind::Paths,
    "Files that are there before, below a root of the workers, for layout = \"file-list\".",
)
.flagged();

pub(super) const TARGET_DEVICES: Key = key(
    KeyId::TargetDevices,
    "devices",
    Place::Target,
    Kind::Paths,
    "Block devices that the workers were allowed to use, for layout = \"device\".",
)
.flagged();

pub(super) const DESTROYS_DATA: Key = key(
    KeyId::DestroysData,
    "destroys_data",
    Place::Target,
    Kind::Flag,
    "Consent that what listed files and devices hold is overwritten; needed to write to them.",
)
.or("false");
