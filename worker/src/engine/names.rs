//! Operations on names: one system call each, or the few that belong together, by the descriptor of
//! the directory.
//!
//! A request's `file` is the directory and its `number` the file in the thread's tree; of
//! operations on directories both are the directory's number, and those from the tree's number of
//! directories on are the ones that mixes make and remove (`m0000000`…). `offset` 1 says that the
//! file was renamed.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use iofleet_shared::work::OpKind;
use rustix::{
    fs::{AtFlags, Mode, OFlags, mkdirat, openat, renameat, statat, unlinkat},
    io::Errno,
};

use super::{Call, Engine, Failure, Request, Transfer};
use crate::{
    files::close,
    tree::{FILE, Name, Tree},
};

const LIST_BYTES: usize = 32 * 1024;
const CREATE: OFlags = FILE.union(OFlags::WRONLY).union(OFlags::CREATE).union(OFlags::EXCL);
const READ: OFlags = FILE.union(OFlags::RDONLY);
const LIST: OFlags = READ.union(OFlags::DIRECTORY);
const FILE_MODE: Mode = Mode::from_raw_mode(0o644);
const DIR_MODE: Mode = Mode::from_raw_mode(0o755);

/// Works on the names of a thread's part of a tree.
#[derive(Debug)]
pub struct Namespace {
    /// None once it is closed.
    tree: Option<Tree>,
    /// Directories that hold files.
    dirs: u64,
    /// The prepared operation's name, and what it becomes.
    file: Name,
    other: Name,
    dir: Name,
    mixed: Name,
    /// Why the prepared operation's directory is not held.
    missing: Option<Errno>,
    entries: Vec<u8>,
}

impl Namespace {
    /// Works on `tree`.
    #[must_use]
    pub fn new(tree: Tree) -> Self {
        Self {
            dirs: u64::from(tree.dirs()),
            file: tree.file_name(),
            other: tree.file_name(),
            dir: tree.dir_name(),
            mixed: tree.mixed_name(),
            tree: Some(tree),
            missing: None,
            entries: vec![0; LIST_BYTES],
        }
    }

    /// The name of a directory.
    fn dir_name(&self, number: u64) -> &Name {
        if number < self.dirs { &self.dir } else { &self.mixed }
    }

    fn set_dir(&mut self, number: u64) {
        match number.checked_sub(self.dirs) {
            None => self.dir.set(number, false),
            Some(mixed) => self.mixed.set(mixed, false),
        }
    }

    #[inline]
    fn on_file(&self, tree: &Tree, request: &Request) -> Result<(), Failure> {
        let Some(dir) = tree.dir(request.file) else {
            return Err(failure(Call::OpenDir, self.missing.unwrap_or(Errno::BADF)));
        };
        let name = self.file.as_c_str();
        match request.op {
            OpKind::Create => opened(Call::Create, dir, &self.file, CREATE),
            OpKind::Open => opened(Call::Open, dir, &self.file, READ),
            OpKind::Stat => {
                retried(Call::Stat, || statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)).map(|_| ())
            }
            OpKind::Rename => {
                retried(Call::Rename, || renameat(dir, name, dir, self.other.as_c_str()))
            }
            OpKind::Unlink => retried(Call::Unlink, || unlinkat(dir, name, AtFlags::empty())),
            OpKind::Write | OpKind::Read | OpKind::Mkdir | OpKind::Readdir | OpKind::Rmdir => {
                Err(failure(Call::Other, Errno::INVAL))
            }
        }
    }

    fn list(&mut self, number: u64) -> Result<(), Failure> {
        let Some(tree) = &self.tree else {
            return Err(failure(Call::OpenDir, Errno::BADF));
        };
        let name = self.dir_name(number).as_c_str();
        let dir = retried(Call::OpenDir, || openat(tree.parent(), name, LIST, Mode::empty()))?;
        let listed = retried_to_end(|| entries(dir.as_fd(), &mut self.entries));
        let closed = close(dir);
        listed.and(closed).map_err(|(call, error)| failure(call, error))
    }
}

impl Engine for Namespace {
    #[inline]
    fn prepare(&mut self, request: &Request) -> Result<(), Failure> {
        let Some(tree) = &mut self.tree else {
            return Ok(());
        };
        match request.op {
            OpKind::Create | OpKind::Stat | OpKind::Open | OpKind::Rename | OpKind::Unlink => {
                self.missing = tree.open_dir(request.file).err();
                let renamed = request.offset != 0;
                self.file.set(request.number, renamed);
                if request.op == OpKind::Rename {
                    self.other.set(request.number, !renamed);
                }
            }
            OpKind::Mkdir | OpKind::Readdir => self.set_dir(request.number),
            OpKind::Rmdir => {
                tree.forget_dir(request.file);
                self.set_dir(request.number);
            }
            OpKind::Write | OpKind::Read => {}
        }
        // What fails here is said by the operation.
        Ok(())
    }

    fn buffer(&mut self) -> &mut [u8] {
        &mut []
    }

    #[inline]
    fn perform(&mut self, request: &Request) -> Transfer {
        let Some(tree) = &self.tree else {
            let result = Err(failure(Call::OpenDir, Errno::BADF));
            return Transfer { shorts: 0, result };
        };
        let name = || self.dir_name(request.number).as_c_str();
        let result = match request.op {
            OpKind::Create | OpKind::Stat | OpKind::Open | OpKind::Rename | OpKind::Unlink => {
                self.on_file(tree, request)
            }
            OpKind::Mkdir => retried(Call::Mkdir, || mkdirat(tree.parent(), name(), DIR_MODE)),
            OpKind::Rmdir => {
                retried(Call::Rmdir, || unlinkat(tree.parent(), name(), AtFlags::REMOVEDIR))
            }
            OpKind::Readdir => self.list(request.number),
            OpKind::Write | OpKind::Read => Err(failure(Call::Other, Errno::INVAL)),
        };
        Transfer { shorts: 0, result: result.map(|()| 0) }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn close(&mut self) -> Result<(), Failure> {
        self.tree = None;
        Ok(())
    }
}

/// Opens and closes a file.
#[inline]
fn opened(call: Call, dir: BorrowedFd<'_>, name: &Name, flags: OFlags) -> Result<(), Failure> {
    let file = retried(call, || openat(dir, name.as_c_str(), flags, FILE_MODE))?;
    close(file).map_err(|(call, error)| failure(call, error))
}

/// The next entries of a directory; the number of their bytes, 0 at the end.
fn entries(dir: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: the kernel writes at most `buffer.len()` bytes into the buffer, which is borrowed for
    // the length of the call and for which any bytes are valid.
    let listed = unsafe {
        libc::syscall(libc::SYS_getdents64, dir.as_raw_fd(), buffer.as_mut_ptr(), buffer.len())
    };
    usize::try_from(listed).map_err(|_| last_error())
}

fn retried_to_end(mut next: impl FnMut() -> Result<usize, Errno>) -> Result<(), (Call, Errno)> {
    loop {
        match next() {
            Ok(0) => return Ok(()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err((Call::Readdir, error)),
        }
    }
}

#[inline]
fn retried<T>(call: Call, mut ask: impl FnMut() -> Result<T, Errno>) -> Result<T, Failure> {
    loop {
        match ask() {
            Err(Errno::INTR) => {}
            result => return result.map_err(|error| failure(call, error)),
        }
    }
}

#[cold]
fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

#[cold]
fn failure(call: Call, error: Errno) -> Failure {
    Failure { call, errno: error.raw_os_error() }
}

#[cfg(test)]
mod tests;
