//! Trees of files below a dataset's directory: their names, their directories, and how they go.
//!
//! `<base>/t00003/d0000/f0000001`, or with directories that all threads share
//! `<base>/d0000/t00003-f0000001`; a file that was renamed an odd number of times ends in `.r`.
//! Directories that mixes of operations make and remove are `m0000000` beside `d0000`. All of it
//! works by directory descriptors, and no link is followed.

use std::{
    ffi::CStr,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use iofleet_shared::work::{Names, OpKind, OpShare, TreePart};
use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};

pub use name::Name;
pub use remove::remove_tree;

use crate::target::seen;
use dirs::{Dirs, HOLD};

mod dirs;
mod name;
mod remove;

/// Directories whose descriptors a tree holds at most, unless [`Tree::hold`] says otherwise.
pub const DIRS_HELD: u32 = 16;
/// Mode of directories, before the umask.
const DIR_MODE: Mode = Mode::from_raw_mode(0o755);

/// Why a tree can't be used or removed.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// A name that is none.
    #[error("{0:?} is not a plain file name")]
    Name(String),
    /// What a call says.
    #[error("can't {call} {path}: {source}")]
    Call {
        /// What was tried.
        call: &'static str,
        /// On what, as seen from the dataset's directory.
        path: String,
        /// What it said.
        source: io::Error,
    },
}

impl TreeError {
    fn call(call: &'static str, path: &str, error: Errno) -> Self {
        Self::Call { call, path: path.to_owned(), source: error.into() }
    }
}

/// A thread's part of a tree, with what it holds open of it.
#[derive(Debug)]
pub struct Tree {
    /// The directory of this thread's directories.
    parent: OwnedFd,
    held: Dirs,
    /// The thread's number, where names carry it.
    thread: Option<u32>,
    dirs: u32,
    files_per_dir: u32,
    renamed: bool,
}

impl Tree {
    /// Makes what the point's operations take for granted and don't do themselves: the tree, the
    /// thread's directory, and the directories of its files, unless making them is what the point
    /// is about. What another thread or worker makes at the same time is taken as it is.
    ///
    /// # Errors
    /// When `part.base` is not a plain name, something can't be made, or a link or a file is in
    /// its place.
    pub fn arm(
        dataset: BorrowedFd<'_>,
        part: &TreePart,
        thread: u32,
        ops: &[OpShare],
    ) -> Result<Self, TreeError> {
        let mut shown = part.base.clone();
        let mut parent = made(dataset, &remove::plain(&part.base)?, &shown)?;
        if !part.shared_dirs {
            let name = Name::of_thread(thread);
            shown = format!("{shown}/{}", name.as_c_str().to_string_lossy());
            parent = made(parent.as_fd(), name.as_c_str(), &shown)?;
        }
        let tree = Self {
            parent,
            held: Dirs::new(part.dirs, DIRS_HELD, dir_name()),
            thread: part.shared_dirs.then_some(thread),
            dirs: part.dirs,
            files_per_dir: part.files_per_dir.max(1),
            renamed: part.renamed,
        };
        let mut name = dir_name();
        for dir in part.existing.dirs..begins(part, ops).dirs {
            name.set(u64::from(dir), false);
            make(tree.parent.as_fd(), name.as_c_str()).map_err(|error| {
                let path = format!("{shown}/{}", name.as_c_str().to_string_lossy());
                TreeError::call("create", &path, error)
            })?;
        }
        if ops.len() > 1 && ops.iter().any(|share| share.op == OpKind::Mkdir) {
            remove::remove_mixed(tree.parent.as_fd(), &tree.mixed_name(), &shown)?;
        }
        Ok(tree)
    }

    /// Holds descriptors of up to `bound` directories (the next lower power of two).
    #[must_use]
    pub fn hold(self, bound: u32) -> Self {
        Self { held: Dirs::new(self.dirs, bound, dir_name()), ..self }
    }

    /// The directory that the thread's directories are in.
    #[inline]
    #[must_use]
    pub fn parent(&self) -> BorrowedFd<'_> {
        self.parent.as_fd()
    }

    /// The directory's descriptor, if it is held.
    #[inline]
    #[must_use]
    pub fn dir(&self, dir: u32) -> Option<BorrowedFd<'_>> {
        self.held.get(dir)
    }

    /// Sees to it that the directory is held.
    ///
    /// # Errors
    /// When it can't be opened.
    #[inline]
    pub fn open_dir(&mut self, dir: u32) -> Result<(), Errno> {
        if self.held.get(dir).is_some() {
            return Ok(());
        }
        self.held.open(self.parent.as_fd(), dir)
    }

    /// Lets go of a directory.
    pub fn forget_dir(&mut self, dir: u32) {
        self.held.forget(dir);
    }

    /// Directories that hold files.
    #[must_use]
    pub fn dirs(&self) -> u32 {
        self.dirs
    }

    /// Files of this thread.
    #[must_use]
    pub fn files(&self) -> u64 {
        u64::from(self.dirs) * u64::from(self.files_per_dir)
    }

    /// The directory that a file is in.
    #[inline]
    #[must_use]
    pub fn dir_of(&self, file: u64) -> u32 {
        u32::try_from(file / u64::from(self.files_per_dir)).unwrap_or(u32::MAX)
    }

    /// Whether files had another name when the point began.
    #[must_use]
    pub fn renamed(&self) -> bool {
        self.renamed
    }

    /// Where names of files are written, which lie in the file's directory.
    #[must_use]
    pub fn file_name(&self) -> Name {
        Name::new(self.thread, b'f', 7)
    }

    /// Where names of directories are written, which lie in [`Tree::parent`].
    #[must_use]
    pub fn dir_name(&self) -> Name {
        dir_name()
    }

    /// Where names of directories of mixes are written, which lie in [`Tree::parent`].
    #[must_use]
    pub fn mixed_name(&self) -> Name {
        Name::new(self.thread, b'm', 7)
    }
}

/// What exists of a part once it is armed.
#[must_use]
pub fn begins(part: &TreePart, ops: &[OpShare]) -> Names {
    let making = matches!(ops, [only] if only.op == OpKind::Mkdir);
    let dirs = if making { part.existing.dirs } else { part.dirs };
    Names { dirs: dirs.min(part.dirs), ..part.existing }
}

fn dir_name() -> Name {
    Name::new(None, b'd', 4)
}

/// Makes a directory, unless it is there.
fn make(parent: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
    match rustix::fs::mkdirat(parent, name, DIR_MODE) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Makes a directory, unless it is there, and opens it.
fn made(parent: BorrowedFd<'_>, name: &CStr, shown: &str) -> Result<OwnedFd, TreeError> {
    make(parent, name).map_err(|error| TreeError::call("create", shown, error))?;
    // One that another client made may stay unseen for a while.
    let opened = seen(|| match rustix::fs::openat(parent, name, HOLD, Mode::empty()) {
        Err(Errno::NOENT) => None,
        result => Some(result),
    });
    opened.unwrap_or(Err(Errno::NOENT)).map_err(|error| TreeError::call("open", shown, error))
}

/// How a thread opens files of a tree besides what the operation asks for.
pub(crate) const FILE: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);

#[cfg(test)]
mod tests;
