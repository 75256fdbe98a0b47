//! Descriptors of a thread's files: all of them, or as many as a bound allows of very many files.
//!
//! Everything is taken when the object is made, except the descriptors themselves. A place for a
//! descriptor is found by a table of chains, and given up by a clock hand: a place that was used
//! since the hand last came by is spared once.

use std::{
    fs::File,
    os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd},
    sync::Arc,
};

use rustix::{
    fs::{OFlags, fsync},
    io::Errno,
};

pub use cache::Cache;
pub use paths::Paths;
pub use table::{NoTable, own_table};

use crate::engine::{Call, Failure};

mod cache;
mod paths;
mod table;

/// What is opened how.
#[derive(Debug, Clone, Copy)]
pub struct Opening {
    /// Descriptors held at the same time, at least 1.
    pub capacity: u32,
    /// Access and the like (`RDWR`, `DIRECT`…); links are never followed.
    pub flags: OFlags,
    /// A file is created when it is opened for the first time, and must not exist then.
    pub create: bool,
    /// A file that was written is synced before it is closed.
    pub sync_on_close: bool,
}

/// What was opened and closed on demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Openings {
    /// Files opened.
    pub opens: u64,
    /// Files closed.
    pub closes: u64,
    /// Files of which syncing or closing failed.
    pub failed_closes: u64,
    /// Sum of the times from open to close, of the files closed, in ns.
    pub held_ns: u64,
    /// The longest of them.
    pub held_ns_max: u64,
}

/// The descriptors of a thread's files, by the file's place among them.
#[derive(Debug)]
pub struct Descriptors {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Fixed { files: Vec<Arc<File>>, at: usize },
    Cached(Box<Cache>),
}

impl Descriptors {
    /// Files that are open for as long as they are needed.
    #[must_use]
    pub fn fixed(files: Vec<Arc<File>>) -> Self {
        Self { kind: Kind::Fixed { files, at: 0 } }
    }

    /// Files that are opened when they are needed, and closed for the sake of others.
    #[must_use]
    pub fn cached(paths: Paths, opening: Opening) -> Self {
        Self { kind: Kind::Cached(Box::new(Cache::new(paths, opening))) }
    }

    /// Makes the file ready for [`Descriptors::get`]. Closing another one for its sake may fail,
    /// which does not concern this file: see [`Descriptors::take_failure`].
    ///
    /// # Errors
    /// When the file can't be opened.
    #[inline]
    pub fn prepare(&mut self, file: u32) -> Result<(), Failure> {
        match &mut self.kind {
            Kind::Fixed { at, .. } => {
                *at = file as usize;
                Ok(())
            }
            Kind::Cached(cache) => cache.prepare(file),
        }
    }

    /// The prepared file.
    ///
    /// # Errors
    /// What the last [`Descriptors::prepare`] said, or that there is no such file.
    #[inline]
    pub fn get(&self) -> Result<BorrowedFd<'_>, Failure> {
        match &self.kind {
            Kind::Fixed { files, at } => match files.get(*at) {
                Some(file) => Ok(file.as_fd()),
                None => Err(Failure { call: Call::Open, errno: libc::EBADF }),
            },
            Kind::Cached(cache) => cache.get(),
        }
    }

    /// The prepared file was written.
    #[inline]
    pub fn mark_written(&mut self) {
        match &mut self.kind {
            Kind::Fixed { .. } => {}
            Kind::Cached(cache) => cache.mark_written(),
        }
    }

    /// The first failure to sync or close a file since the last time this was asked.
    #[inline]
    pub fn take_failure(&mut self) -> Option<Failure> {
        match &mut self.kind {
            Kind::Fixed { .. } => None,
            Kind::Cached(cache) => cache.take_failure(),
        }
    }

    /// Syncs the files that are open; of those opened on demand, the ones that were written.
    ///
    /// # Errors
    /// The first failure; the rest was synced nevertheless.
    pub fn flush(&mut self) -> Result<(), Failure> {
        match &mut self.kind {
            Kind::Fixed { files, .. } => {
                let mut result = Ok(());
                for file in files {
                    let synced = sync(file.as_fd());
                    result = result.and(synced);
                }
                result
            }
            Kind::Cached(cache) => cache.flush(),
        }
    }

    /// Lets go of all files, without making anything durable: see [`Descriptors::flush`].
    ///
    /// # Errors
    /// The first failure to sync or close, also of those not yet taken; all are closed
    /// nevertheless.
    pub fn close(&mut self) -> Result<(), Failure> {
        match &mut self.kind {
            Kind::Fixed { files, .. } => {
                files.clear();
                Ok(())
            }
            Kind::Cached(cache) => cache.close(),
        }
    }

    /// What was opened and closed on demand.
    #[must_use]
    pub fn openings(&self) -> Openings {
        match &self.kind {
            Kind::Fixed { .. } => Openings::default(),
            Kind::Cached(cache) => cache.openings(),
        }
    }
}

/// Closes a descriptor, which some file systems use to say that something was not written.
#[inline]
pub(crate) fn close(fd: OwnedFd) -> Result<(), (Call, Errno)> {
    // SAFETY: the descriptor was owned, is given up by `into_raw_fd`, and is used by nobody else.
    let result = unsafe { libc::close(fd.into_raw_fd()) };
    if result == 0 { Ok(()) } else { close_failed() }
}

#[cold]
fn close_failed() -> Result<(), (Call, Errno)> {
    let error = Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO);
    // Interrupted or not, the descriptor is gone, and nothing can be asked of it again.
    if error == Errno::INTR { Ok(()) } else { Err((Call::Close, error)) }
}

fn sync(file: BorrowedFd<'_>) -> Result<(), Failure> {
    loop {
        match fsync(file) {
            Err(Errno::INTR) => {}
            result => {
                return result
                    .map_err(|error| Failure { call: Call::Fsync, errno: error.raw_os_error() });
            }
        }
    }
}

#[cfg(test)]
mod tests;
