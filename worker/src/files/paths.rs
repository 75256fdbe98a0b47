//! The names of a thread's files, and how they are opened without following links.

use std::{
    ffi::CStr,
    os::fd::{BorrowedFd, OwnedFd},
};

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};

use crate::{
    engine::Call,
    tree::{FILE, Name, Tree},
};

const MODE: Mode = Mode::from_raw_mode(0o644);

/// Where a thread's files are, by number from 0.
#[derive(Debug)]
pub struct Paths(Kind);

#[derive(Debug)]
enum Kind {
    Tree {
        tree: Tree,
        name: Name,
    },
    /// Of a directory.
    #[cfg(test)]
    Named {
        dir: OwnedFd,
        names: Vec<std::ffi::CString>,
    },
}

impl Paths {
    /// The files of a tree.
    #[must_use]
    pub fn tree(tree: Tree) -> Self {
        let name = tree.file_name();
        Self(Kind::Tree { tree, name })
    }

    /// Files of these names in a directory.
    #[cfg(test)]
    pub(super) fn named(dir: OwnedFd, names: Vec<std::ffi::CString>) -> Self {
        Self(Kind::Named { dir, names })
    }

    /// How many files there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        match &self.0 {
            Kind::Tree { tree, .. } => tree.files(),
            #[cfg(test)]
            Kind::Named { names, .. } => names.len() as u64,
        }
    }

    /// Opens a file.
    pub(super) fn open(&mut self, file: u32, flags: OFlags) -> Result<OwnedFd, (Call, Errno)> {
        let flags = flags | FILE;
        let call = if flags.contains(OFlags::CREATE) { Call::Create } else { Call::Open };
        match &mut self.0 {
            Kind::Tree { tree, name } => {
                let dir = tree.dir_of(u64::from(file));
                tree.open_dir(dir).map_err(|error| (Call::OpenDir, error))?;
                let dir = tree.dir(dir).ok_or((Call::OpenDir, Errno::BADF))?;
                name.set(u64::from(file), tree.renamed());
                openat(dir, name.as_c_str(), flags).map_err(|error| (call, error))
            }
            #[cfg(test)]
            Kind::Named { dir, names } => {
                use std::os::fd::AsFd;
                openat(dir.as_fd(), &names[file as usize], flags).map_err(|error| (call, error))
            }
        }
    }
}

fn openat(dir: BorrowedFd<'_>, name: &CStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    loop {
        match rustix::fs::openat(dir, name, flags, MODE) {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}
