//! Removing a tree, with few descriptors and in constant memory however many files it has.

use std::{
    ffi::{CStr, CString},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, RawDir, SeekFrom},
    io::Errno,
};

use super::{
    TreeError,
    name::{Name, is_of_tree},
};
use crate::target::is_plain;

const LIST: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const LIST_BYTES: usize = 32 * 1024;
/// Directories inside each other: base, thread, directory.
const LEVELS: u32 = 3;
/// Listings in a row of nothing but what others have removed in the meantime.
const IDLE_PASSES: u32 = 100;

/// Removes the tree `base` of the dataset: what has a name of the layout, and directories that are
/// empty then. Links are not followed. Several workers may do it at the same time. Returns the
/// number of files that this call removed; 0 if there is no such tree.
///
/// # Errors
/// The first thing that could not be removed; the rest was tried nevertheless.
pub fn remove_tree(dataset: BorrowedFd<'_>, base: &str) -> Result<u64, TreeError> {
    let name = plain(base)?;
    let mut removal = Removal { files: 0, failed: None };
    removal.directory(dataset, &name, base, 1);
    removal.failed.map_or(Ok(removal.files), Err)
}

/// Removes the empty directories below `parent` that mixes of operations left.
pub(super) fn remove_mixed(
    parent: BorrowedFd<'_>,
    mixed: &Name,
    shown: &str,
) -> Result<(), TreeError> {
    let list = open_list(parent, c".").map_err(|error| TreeError::call("list", shown, error))?;
    let mut failed = None;
    sweep(list.as_fd(), |name, _| {
        let of_mix = |digits: &[u8]| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        if !name.to_bytes().strip_prefix(mixed.prefix()).is_some_and(of_mix) {
            return Swept::Left;
        }
        match rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) {
            Ok(()) => Swept::Removed,
            Err(Errno::NOENT) => Swept::Gone,
            Err(error) => {
                failed.get_or_insert_with(|| TreeError::call("remove", &below(shown, name), error));
                Swept::Left
            }
        }
    })
    .map_err(|error| TreeError::call("list", shown, error))?;
    failed.map_or(Ok(()), Err)
}

/// A plain name as calls take it.
pub(super) fn plain(base: &str) -> Result<CString, TreeError> {
    let name = || TreeError::Name(base.to_owned());
    if is_plain(base) { CString::new(base).map_err(|_| name()) } else { Err(name()) }
}

struct Removal {
    files: u64,
    failed: Option<TreeError>,
}

impl Removal {
    /// Removes the directory `name` of `parent` with what is in it.
    fn directory(&mut self, parent: BorrowedFd<'_>, name: &CStr, shown: &str, level: u32) -> Swept {
        match open_list(parent, name) {
            Ok(list) => {
                let swept = sweep(list.as_fd(), |name, kind| {
                    if is_of_tree(name.to_bytes()) {
                        self.entry(list.as_fd(), name, kind, shown, level)
                    } else {
                        Swept::Left
                    }
                });
                if let Err(error) = swept {
                    return self.left("list", shown.to_owned(), error);
                }
            }
            Err(Errno::NOENT) => return Swept::Gone,
            Err(error) => return self.left("open", shown.to_owned(), error),
        }
        match rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) {
            Ok(()) => Swept::Removed,
            Err(Errno::NOENT) => Swept::Gone,
            Err(error) => self.left("remove", shown.to_owned(), error),
        }
    }

    fn entry(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &CStr,
        kind: FileType,
        shown: &str,
        level: u32,
    ) -> Swept {
        let kind = if kind == FileType::Unknown {
            let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
            stat.map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
        } else {
            kind
        };
        if kind == FileType::Directory {
            let shown = below(shown, name);
            return if level < LEVELS {
                self.directory(dir, name, &shown, level + 1)
            } else {
                self.left("remove", shown, Errno::ISDIR)
            };
        }
        match rustix::fs::unlinkat(dir, name, AtFlags::empty()) {
            Ok(()) => {
                self.files += 1;
                Swept::Removed
            }
            Err(Errno::NOENT) => Swept::Gone,
            Err(error) => self.left("remove", below(shown, name), error),
        }
    }

    fn left(&mut self, call: &'static str, shown: String, error: Errno) -> Swept {
        self.failed.get_or_insert_with(|| TreeError::call(call, &shown, error));
        Swept::Left
    }
}

/// What became of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Swept {
    Removed,
    /// Somebody else was faster.
    Gone,
    Left,
}

/// Shows each entry of a directory, and all again until nothing more goes: what is removed during a
/// listing makes some file systems skip others.
fn sweep(
    list: BorrowedFd<'_>,
    mut each: impl FnMut(&CStr, FileType) -> Swept,
) -> Result<(), Errno> {
    let mut buffer = vec![MaybeUninit::uninit(); LIST_BYTES];
    let mut idle = 0;
    loop {
        let (mut removed, mut gone) = (false, false);
        let mut entries = RawDir::new(list, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(Errno::INTR) => continue,
                // What a directory that was removed meanwhile says.
                Err(Errno::NOENT) => return Ok(()),
                Err(error) => return Err(error),
            };
            if matches!(entry.file_name().to_bytes(), b"." | b"..") {
                continue;
            }
            match each(entry.file_name(), entry.file_type()) {
                Swept::Removed => removed = true,
                Swept::Gone => gone = true,
                Swept::Left => {}
            }
        }
        idle = if removed { 0 } else { idle + 1 };
        if !removed && (!gone || idle >= IDLE_PASSES) {
            return Ok(());
        }
        rustix::fs::seek(list, SeekFrom::Start(0))?;
    }
}

fn open_list(parent: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(parent, name, LIST, Mode::empty())
}

fn below(shown: &str, name: &CStr) -> String {
    format!("{shown}/{}", name.to_string_lossy())
}
