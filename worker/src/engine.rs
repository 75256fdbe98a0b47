//! The mechanisms that do an operation: what an I/O thread calls between its two stamps.
//!
//! A closed set, picked once per point by a match; the loops are generic over [`Engine`] (one
//! operation at a time) and [`Queue`] (several in flight). An engine owns the thread's buffers and
//! its hold of the files, and counts nothing: what happened comes back with each transfer.

use std::time::Duration;

use iofleet_shared::{stats::FileTimes, work::OpKind};

pub use both::Both;
pub use error::EngineError;
pub use libaio::Libaio;
pub use mmap::Mmap;
pub use names::Namespace;
pub use null::Null;
pub use slots::QueueSetup;
pub use sync::{Special, Sync};
pub use uring::Uring;

mod both;
#[cfg(test)]
pub(crate) mod denied;
mod error;
pub mod libaio;
mod mmap;
mod names;
mod null;
#[cfg(test)]
mod queue_tests;
#[cfg(test)]
pub(crate) mod scripted;
mod slots;
mod sync;
pub mod uring;

/// One operation's outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// Times that the kernel moved less than was asked for and the rest was asked for again.
    pub shorts: u32,
    /// Bytes moved, which is the whole block; or why not.
    pub result: Result<u64, Failure>,
}

/// Why an operation failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// The call that failed.
    pub call: Call,
    /// Its errno; 0 where the call itself reported no error.
    pub errno: i32,
}

/// The calls that can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// `pread`.
    Read,
    /// `pwrite`.
    Write,
    /// `fsync`.
    Fsync,
    /// `flock`.
    Flock,
    /// `pread` returned nothing inside the range: the file ends too early.
    ShortRead,
    /// `pwrite` wrote nothing and reported no error.
    ShortWrite,
    /// A load from a mapping beyond the end of the file, or of a page that could not be read.
    MapRead,
    /// A store to a mapping beyond the end of the file, or to a page that could not be read or for
    /// which there is no space.
    MapWrite,
    /// `msync`.
    Msync,
    /// `mkdir`.
    Mkdir,
    /// `open` that creates.
    Create,
    /// `stat`.
    Stat,
    /// `open`.
    Open,
    /// `open` of a directory.
    OpenDir,
    /// `getdents`.
    Readdir,
    /// `rename`.
    Rename,
    /// `unlink`.
    Unlink,
    /// `rmdir`.
    Rmdir,
    /// `close`.
    Close,
    /// One of the kinds that came after the table of failures was full.
    Other,
}

impl Call {
    /// As people know it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "pread",
            Self::Write => "pwrite",
            Self::Fsync => "fsync",
            Self::Flock => "flock",
            Self::ShortRead => "short read",
            Self::ShortWrite => "short write",
            Self::MapRead => "mmap load (SIGBUS: beyond the end of the file, or page not readable)",
            Self::MapWrite => "mmap store (SIGBUS: beyond the end of the file, or no space for it)",
            Self::Msync => "msync",
            Self::Mkdir => "mkdir",
            Self::Create => "open(O_CREAT)",
            Self::Stat => "stat",
            Self::Open => "open",
            Self::OpenDir => "open(O_DIRECTORY)",
            Self::Readdir => "getdents",
            Self::Rename => "rename",
            Self::Unlink => "unlink",
            Self::Rmdir => "rmdir",
            Self::Close => "close",
            Self::Other => "other",
        }
    }
}

impl Failure {
    /// Whether further operations are bound to fail as well: no space, a stale or read-only file…
    #[must_use]
    pub fn is_fatal(self) -> bool {
        const FATAL: [i32; 10] = [
            libc::ENOSPC,
            libc::EDQUOT,
            libc::EROFS,
            libc::ESTALE,
            libc::ENODEV,
            libc::ENXIO,
            libc::EBADF,
            libc::ENOTCONN,
            libc::ESHUTDOWN,
            libc::EFBIG,
        ];
        // A store without errno says that the file was cut off or has no space: it stays so.
        let lost = self.errno == 0 && self.call == Call::MapWrite;
        lost || FATAL.contains(&self.errno)
    }
}

/// Does operations, one at a time.
pub trait Engine {
    /// The buffer of the next operation: filled before a write, looked at after a read.
    fn buffer(&mut self) -> &mut [u8];

    /// Makes ready for an operation, outside of its service time: opens its file if that is not
    /// open.
    ///
    /// # Errors
    /// When that fails; the operation then counts as failed.
    #[inline]
    fn prepare(&mut self, _request: &Request) -> Result<(), Failure> {
        Ok(())
    }

    /// Does an operation. Called between two stamps.
    fn perform(&mut self, request: &Request) -> Transfer;

    /// Makes what was written durable.
    ///
    /// # Errors
    /// When the file system says that something of it is not.
    fn flush(&mut self) -> Result<(), Failure>;

    /// Lets go of the files; nothing is done after it. May take as long as the file system takes to
    /// close them.
    ///
    /// # Errors
    /// When closing says that something of what was written is not there.
    fn close(&mut self) -> Result<(), Failure>;

    /// From open to close of the files that were opened and closed meanwhile.
    fn file_times(&self) -> FileTimes {
        FileTimes::default()
    }
}

/// The engine of a point's threads, as a value that is matched once.
#[derive(Debug)]
pub enum AnyEngine {
    /// `pread` and `pwrite`.
    Sync(Sync<false>),
    /// The same with what slows it down: flags, locks, fsync with each write.
    SyncSpecial(Sync<true>),
    /// A shared mapping.
    Mmap(Mmap),
    /// Operations on names.
    Names(Box<Namespace>),
    /// Operations on names and on data.
    Both(Box<Both>),
    /// Nothing.
    Null(Null),
    /// `io_uring`.
    Uring(Box<Uring>),
    /// Linux AIO.
    Libaio(Box<Libaio>),
    /// Follows a test's script.
    #[cfg(test)]
    Scripted(scripted::Scripted),
    /// The same with several operations in flight.
    #[cfg(test)]
    ScriptedQueue(scripted::ScriptedQueue),
}

impl AnyEngine {
    /// Fills the buffer of a slot, while arming.
    pub fn prime(&mut self, slot: u32, fill: impl FnOnce(&mut [u8])) {
        match self {
            Self::Sync(engine) => fill(engine.buffer()),
            Self::SyncSpecial(engine) => fill(engine.buffer()),
            Self::Mmap(engine) => fill(engine.buffer()),
            Self::Null(engine) => fill(engine.buffer()),
            Self::Names(_) | Self::Both(_) => {}
            Self::Uring(engine) => fill(engine.buffer(slot)),
            Self::Libaio(engine) => fill(engine.buffer(slot)),
            #[cfg(test)]
            Self::Scripted(_) | Self::ScriptedQueue(_) => {}
        }
    }
}

/// One operation, as drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// What it does.
    pub op: OpKind,
    /// Place of that kind among the kinds of the point.
    pub lane: u32,
    /// Place of its file among the thread's files; of operations on names, of the directory.
    pub file: u32,
    /// Bytes of it; 0 for operations on names.
    pub bytes: u32,
    /// Number of its first block among the thread's blocks; of operations on names, of the name.
    pub number: u64,
    /// Where it begins in its file.
    pub offset: u64,
    /// Blocks of the thread's grid that it covers; 1 for operations on names.
    pub blocks: u32,
}

impl Request {
    /// No operation: what stands in an empty place.
    pub const NOTHING: Self =
        Self { op: OpKind::Read, lane: 0, file: 0, bytes: 0, number: 0, offset: 0, blocks: 0 };
}

/// The outcome of an operation that was in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// Its slot.
    pub slot: u32,
    /// What became of it.
    pub transfer: Transfer,
}

/// Moves blocks, several at a time. A slot is a place for one operation in flight, with a buffer
/// of its own.
pub trait Queue {
    /// Slots: operations in flight at most.
    fn depth(&self) -> u32;

    /// The buffer of a free slot: filled before a write is queued, looked at after a read.
    fn buffer(&mut self, slot: u32) -> &mut [u8];

    /// Puts an operation into a free slot, to be handed to the kernel by the next
    /// [`Queue::submit`]. Makes no system call.
    fn queue(&mut self, slot: u32, request: &Request);

    /// Hands over what was queued, and waits until at least one operation is complete, or at most
    /// about `at_most` where that is given, unless `wait` is false. Puts what is complete into
    /// `done` (which has room for [`Queue::depth`]): a short transfer is continued and reported once
    /// it is whole. What the kernel would not take is reported as failed.
    fn submit(&mut self, wait: bool, at_most: Option<Duration>, done: &mut Vec<Completion>);

    /// Makes what was written durable.
    ///
    /// # Errors
    /// When the file system says that something of it is not.
    fn flush(&mut self) -> Result<(), Failure>;

    /// Lets go of the files. May take as long as the file system takes to close them.
    fn close(&mut self);
}
