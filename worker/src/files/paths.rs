//! The names of a thread's files, and how they are opened without following links.

use std::{
    ffi::{CStr, CString},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    fs::{Mode, OFlags, ResolveFlags},
    io::Errno,
};

use crate::{
    engine::Call,
    tree::{FILE, Name, Tree, TreeError},
};

const WAY: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const BENEATH: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);
const MODE: Mode = Mode::from_raw_mode(0o644);
/// Of one component, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// Where a thread's files are, by number from 0.
#[derive(Debug)]
pub struct Paths(Kind);

#[derive(Debug)]
enum Kind {
    Tree { tree: Tree, name: Name },
    Listed { root: OwnedFd, paths: Vec<CString>, by_steps: bool },
}

impl Paths {
    /// The files of a tree.
    #[must_use]
    pub fn tree(tree: Tree) -> Self {
        let name = tree.file_name();
        Self(Kind::Tree { tree, name })
    }

    /// Files by their paths below `root`, a directory. `openat2` is used where the kernel has it.
    ///
    /// # Errors
    /// On the first path that is not a relative one of plain components.
    pub fn listed(root: OwnedFd, paths: Vec<CString>) -> Result<Self, TreeError> {
        let plain =
            |part: &[u8]| !matches!(part, b"" | b"." | b"..") && part.len() <= NAME_BYTES_MAX;
        let good = |path: &&CString| path.as_bytes().split(|byte| *byte == b'/').all(plain);
        if let Some(path) = paths.iter().find(|path| !good(path)) {
            return Err(TreeError::Name(path.to_string_lossy().into_owned()));
        }
        let by_steps = rustix::fs::openat2(&root, c".", WAY, Mode::empty(), BENEATH).is_err();
        Ok(Self(Kind::Listed { root, paths, by_steps }))
    }

    /// As on kernels before 5.6 and in sandboxes that forbid `openat2`.
    #[cfg(test)]
    pub(super) fn by_steps(mut self) -> Self {
        if let Kind::Listed { by_steps, .. } = &mut self.0 {
            *by_steps = true;
        }
        self
    }

    /// How many files there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        match &self.0 {
            Kind::Tree { tree, .. } => tree.files(),
            Kind::Listed { paths, .. } => paths.len() as u64,
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
            Kind::Listed { root, paths, by_steps } => {
                let Some(path) = paths.get(file as usize) else {
                    return Err((call, Errno::NOENT));
                };
                let opened = if *by_steps {
                    step_by_step(root.as_fd(), path, flags)
                } else {
                    beneath(root.as_fd(), path, flags)
                };
                opened.map_err(|error| (call, error))
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

fn beneath(root: BorrowedFd<'_>, path: &CStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    // This call, unlike the others, refuses a mode that is not used.
    let mode = if flags.contains(OFlags::CREATE) { MODE } else { Mode::empty() };
    loop {
        match rustix::fs::openat2(root, path, flags, mode, BENEATH) {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// The same on any kernel: component by component.
fn step_by_step(root: BorrowedFd<'_>, path: &CStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut rest = path.to_bytes_with_nul();
    let mut here: Option<OwnedFd> = None;
    let mut part = [0; NAME_BYTES_MAX + 1];
    while let Some(slash) = rest.iter().position(|byte| *byte == b'/') {
        let (name, behind) = (&rest[..slash], &rest[slash + 1..]);
        part.get_mut(..slash).ok_or(Errno::NAMETOOLONG)?.copy_from_slice(name);
        *part.get_mut(slash).ok_or(Errno::NAMETOOLONG)? = 0;
        let name = CStr::from_bytes_until_nul(&part).map_err(|_| Errno::NAMETOOLONG)?;
        let dir = here.as_ref().map_or(root, AsFd::as_fd);
        here = Some(openat(dir, name, WAY)?);
        rest = behind;
    }
    let name = CStr::from_bytes_with_nul(rest).map_err(|_| Errno::INVAL)?;
    openat(here.as_ref().map_or(root, AsFd::as_fd), name, flags)
}
