//! The mechanisms that move one block: what an I/O thread calls between its two stamps.
//!
//! A closed set, picked once per point by a match; the loop is generic over [`Engine`]. An engine
//! owns the thread's buffer and its hold of the file, and counts nothing: what happened comes back
//! with each transfer.

use std::time::Duration;

use iofleet_shared::work::OpKind;

pub use error::EngineError;
pub use libaio::Libaio;
pub use slots::QueueSetup;
pub use sync::{SyncRead, SyncWrite};
pub use uring::Uring;

#[cfg(test)]
pub(crate) mod denied;
mod error;
pub mod libaio;
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
    /// `pread` returned nothing inside the range: the file ends too early.
    ShortRead,
    /// `pwrite` wrote nothing and reported no error.
    ShortWrite,
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
            Self::ShortRead => "short read",
            Self::ShortWrite => "short write",
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
        FATAL.contains(&self.errno)
    }
}

/// Moves blocks, one at a time.
pub trait Engine {
    /// Moves the block at `offset`.
    fn transfer(&mut self, offset: u64) -> Transfer;

    /// Makes what was written durable.
    ///
    /// # Errors
    /// When the file system says that something of it is not.
    fn flush(&mut self) -> Result<(), Failure>;

    /// Lets go of the file; nothing is transferred after it. May take as long as the file system
    /// takes to close a file.
    fn close(&mut self);
}

/// The engine of a point's threads, as a value that is matched once.
#[derive(Debug)]
pub enum AnyEngine {
    /// `pread`.
    SyncRead(SyncRead),
    /// `pwrite`.
    SyncWrite(SyncWrite<false>),
    /// `pwrite`, then `fsync`.
    SyncWriteEach(SyncWrite<true>),
    /// Follows a test's script.
    #[cfg(test)]
    Scripted(scripted::Scripted),
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
