//! A table of descriptors of a thread's own.
//!
//! Threads of a process share its table, and so the kernel counts a reference to the open file up
//! and down with each call: two atomic operations, some 30 ns of a small read. Of a table that one
//! thread alone uses it knows that nobody closes the file meanwhile, and leaves that out. It is what
//! a process of one thread always has.

use rustix::{
    io::Errno,
    thread::{UnshareFlags, unshare_unsafe},
};

/// The system refused it. The thread goes on with the table that it shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the system does not let I/O threads have their own table of descriptors ({0}; containers need \
     the system call unshare): each operation also counts references to its file"
)]
pub struct NoTable(Errno);

/// Gives the calling thread a table of its own: a copy of the one that it shared.
///
/// What is opened from then on is this thread's alone, and has to be closed by it. What it had
/// before stays open here until it ends, at the same numbers, so that a signal handler that runs on
/// it finds what it writes to; but ownership of that stays with the other table.
///
/// # Errors
/// When the system refuses.
pub fn own_table() -> Result<(), NoTable> {
    // SAFETY: the caller opens the descriptors that it owns after this call and closes them on this
    // thread; those of others it only borrows, from owners that keep them open meanwhile.
    unsafe { unshare_unsafe(UnshareFlags::FILES) }.map_err(NoTable)
}
