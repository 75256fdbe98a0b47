//! The mechanisms that move one block: what an I/O thread calls between its two stamps.
//!
//! A closed set, picked once per point by a match; the loop is generic over [`Engine`]. An engine
//! owns the thread's buffer and its hold of the file, and counts nothing: what happened comes back
//! with each transfer.

pub use sync::{SyncRead, SyncWrite};

#[cfg(test)]
pub(crate) mod scripted;
mod sync;

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
