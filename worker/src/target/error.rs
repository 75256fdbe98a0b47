//! What can be wrong with a root or a target, in words that say what would be right.

use crate::host::links::NoInterface;
use std::{io, path::PathBuf};

use iofleet_shared::{
    units::format_size,
    wire::{Refusal, RefusalKind},
};
use rustix::io::Errno;

use crate::{host::placement::PlacementError, tree::TreeError};

use crate::host::user;

/// A root that the worker can't start with.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// None was given.
    #[error(
        "no root: name at least one directory that this worker may touch, by --root PATH, \
         IOFLEET_ROOT, or `roots = [\"/mnt/…\"]` in the configuration file"
    )]
    None,
    /// It is not an absolute path without `..`.
    #[error("root {0} must be an absolute path without `..`")]
    NotAbsolute(PathBuf),
    /// It can't be opened.
    #[error("root {path} can't be opened as {}: {source}", user())]
    Open {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Nothing is mounted there.
    #[error(
        "root {path} lies on the same device as its parent directory, so nothing seems to be \
         mounted there, and the worker would fill the local disk: mount the file system, or allow \
         this by `allow_local = true` in the configuration file or --allow-local"
    )]
    Local {
        /// Which.
        path: PathBuf,
    },
}

/// Why a target can't be used as asked.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The scenario names an interface that is not there.
    #[error("fleet.interfaces: {0}")]
    Interface(#[from] NoInterface),
    /// The path is relative or has a NUL.
    #[error("target.path {0:?} must be an absolute path")]
    NotAbsolute(String),
    /// The path goes up.
    #[error("target.path {0} has a `..`: write the path without it")]
    Up(String),
    /// The path lies nowhere that the worker may touch.
    #[error("target.path {path} does not lie under a root of this worker (its roots: {roots})")]
    Outside {
        /// Which.
        path: String,
        /// All roots.
        roots: String,
    },
    /// The root is not as it was when the worker started.
    #[error("{0}")]
    Root(#[from] RootError),
    /// A link on the way.
    #[error("{link} in target.path is a symbolic link, which is not followed: write the real path")]
    Symlink {
        /// Which component.
        link: String,
    },
    /// The parent is not there.
    #[error(
        "{missing} does not exist: only the last component of target.path {path} is created, since \
         an unmounted file system must not fill the root disk; mount it, or create the directory"
    )]
    MissingParent {
        /// The first component that is missing.
        missing: String,
        /// The target.
        path: String,
    },
    /// Something else is in its place.
    #[error("{0} is not a directory")]
    NotDirectory(String),
    /// Mounted read-only.
    #[error("the file system of {path} is read-only")]
    ReadOnly {
        /// Where.
        path: String,
    },
    /// The user may not.
    #[error("can't {call} {path} as {}: permission denied", user())]
    Permission {
        /// What was tried.
        call: &'static str,
        /// On what.
        path: String,
    },
    /// Too few bytes.
    #[error(
        "{path} is too full: the scenario's files take up to {}, and of the {} that are free for \
         {user} {} have to stay free (target.min_free)",
        format_size(*needed), format_size(*free), format_size(*kept)
    )]
    Full {
        /// Where.
        path: String,
        /// What the scenario needs.
        needed: u64,
        /// What is there.
        free: u64,
        /// What has to stay free.
        kept: u64,
        /// For whom.
        user: String,
    },
    /// Too few inodes.
    #[error(
        "{path} has too few free inodes: the scenario makes {needed} files, and of the {free} that \
         are free {kept} have to stay free (target.min_free)"
    )]
    Inodes {
        /// Where.
        path: String,
        /// What the scenario needs.
        needed: u64,
        /// What is there.
        free: u64,
        /// What has to stay free.
        kept: u64,
    },
    /// What is to be read was never written.
    #[error(
        "{path} has a hole at offset {offset}: reading it asks no storage for anything; write the \
         file anew, or let it be with target.allow_holes = true"
    )]
    Hole {
        /// Which file.
        path: String,
        /// Where.
        offset: u64,
    },
    /// A name that is none.
    #[error("{0:?} is not a plain file name")]
    Name(String),
    /// The dataset's directory has no mark.
    #[error(
        "{path} exists and has no mark of iofleet (.iofleet.json), so it is not touched: remove \
         it, or choose another target.path"
    )]
    NoMark {
        /// Which directory.
        path: String,
    },
    /// The dataset is another campaign's.
    #[error("{path} belongs to campaign {owner} and is not touched")]
    Foreign {
        /// Which directory.
        path: String,
        /// Whose it is.
        owner: String,
    },
    /// No direct I/O at all.
    #[error("the file system of {path} has no direct I/O: set direct = false")]
    NoDirect {
        /// Where.
        path: String,
    },
    /// A block that direct I/O can't do.
    #[error(
        "a block of {block} B does not work with direct I/O on {path}: it must be a multiple of \
         {alignment} B there (or set direct = false)"
    )]
    Alignment {
        /// Where.
        path: String,
        /// Which block.
        block: u64,
        /// What it must be a multiple of.
        alignment: u64,
    },
    /// A file that must be new is there.
    #[error("{path} already exists and has {found} B, where a fresh file was to be created")]
    Exists {
        /// Which.
        path: String,
        /// Its length.
        found: u64,
    },
    /// A file that must be there is not, or is too short.
    #[error("{path} has {found} B, where the plan needs {needed} B of it")]
    Short {
        /// Which.
        path: String,
        /// Its length.
        found: u64,
        /// How much of it is needed.
        needed: u64,
    },
    /// Not a regular file.
    #[error("{path} is not a regular file")]
    NotFile {
        /// Which.
        path: String,
    },
    /// A tree can't be removed.
    #[error(transparent)]
    Tree(TreeError),
    /// A block device that the worker was not told that it may use.
    #[error(
        "{path} is a block device that this worker may not use: its administrator must allow it \
         (--allow-device {path}, or `devices` in worker.toml)"
    )]
    DeviceNotAllowed {
        /// Which.
        path: String,
    },
    /// Not a block device.
    #[error("{path} is not a block device (links are not followed)")]
    NotDevice {
        /// Which.
        path: String,
    },
    /// Somebody uses the device.
    #[error("{path} is in use{}", if holders.is_empty() { String::from(" (mounted, or opened exclusively)") } else { format!(" by {holders}") })]
    DeviceBusy {
        /// Which.
        path: String,
        /// Devices that are built on it.
        holders: String,
    },
    /// An engine that can't be had there.
    #[error("engine = \"{engine}\" on {path}: {why}")]
    Engine {
        /// Its name.
        engine: &'static str,
        /// Where.
        path: String,
        /// Why not, and what would be right.
        why: String,
    },
    /// Threads or buffers can't be placed as asked.
    #[error(transparent)]
    Placement(PlacementError),
    /// Anything else that a call says.
    #[error("can't {call} {path}: {source}")]
    Call {
        /// What was tried.
        call: &'static str,
        /// On what.
        path: String,
        /// What it said.
        source: io::Error,
    },
}

impl TargetError {
    /// What a call's errno means.
    pub(super) fn call(call: &'static str, path: String, errno: Errno) -> Self {
        match errno {
            Errno::ACCESS | Errno::PERM => Self::Permission { call, path },
            Errno::ROFS => Self::ReadOnly { path },
            Errno::LOOP => Self::Symlink { link: path },
            Errno::NOTDIR => Self::NotDirectory(path),
            _ => Self::Call { call, path, source: errno.into() },
        }
    }
}

/// As the coordinator hears it.
pub(super) fn refused(error: TargetError) -> Refusal {
    Refusal { kind: RefusalKind::Target, point: None, text: error.to_string() }
}
