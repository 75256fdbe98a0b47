//! Roots, and the way from a root to a target.
//!
//! A root is opened anew for each campaign rather than held: so the daemon keeps no file system
//! from being unmounted, and one that was unmounted in the meantime is noticed.

use std::{
    ffi::{OsStr, OsString},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, StatVfs},
    io::Errno,
};

use super::error::{RootError, TargetError};

const WAY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The directories below which a worker may work.
#[derive(Debug)]
pub(super) struct Roots {
    paths: Vec<PathBuf>,
    allow_local: bool,
    /// Never ask for `openat2`, as on kernels before 5.6 and in sandboxes that forbid it.
    pub(super) by_steps: bool,
}

/// Where a target is, or would be.
#[derive(Debug)]
pub(super) struct Place {
    /// The target as written.
    pub(super) path: String,
    /// The directory that holds the target's last component.
    pub(super) parent: OwnedFd,
    /// That component; `.` for a target that is a root.
    pub(super) last: OsString,
    /// The target itself; none if it does not exist yet.
    pub(super) dir: Option<OwnedFd>,
}

impl Roots {
    pub(super) fn new(paths: &[PathBuf], allow_local: bool) -> Result<Self, RootError> {
        check_roots(paths)?;
        for path in paths {
            open_root(path, allow_local)?;
        }
        Ok(Self { paths: paths.to_vec(), allow_local, by_steps: false })
    }

    /// Goes from the root that a file lies under to the directory that holds it, and says its name
    /// there.
    pub(super) fn holder(&self, file: &str) -> Result<(OwnedFd, OsString), TargetError> {
        let (root, rest) = self.inside(file)?;
        let mut parts: Vec<&OsStr> = rest.components().map(|part| part.as_os_str()).collect();
        let Some(last) = parts.pop() else {
            return Err(TargetError::NotFile { path: file.to_owned() });
        };
        let fd = open_root(root, self.allow_local)?;
        let walk = Walk { root, target: file, by_steps: self.by_steps };
        Ok((walk.to(fd, &parts)?, last.to_owned()))
    }

    /// Goes from the root that `target` lies under to the target.
    pub(super) fn find(&self, target: &str) -> Result<Place, TargetError> {
        let (root, rest) = self.inside(target)?;
        let fd = open_root(root, self.allow_local)?;
        let mut parts: Vec<&OsStr> = rest.components().map(|part| part.as_os_str()).collect();
        let Some(last) = parts.pop() else {
            let dir = fd.try_clone().map_err(|source| TargetError::Call {
                call: "open",
                path: target.to_owned(),
                source,
            })?;
            let (path, last) = (target.to_owned(), OsString::from("."));
            return Ok(Place { path, parent: fd, last, dir: Some(dir) });
        };
        let walk = Walk { root, target, by_steps: self.by_steps };
        let parent = walk.to(fd, &parts)?;
        let dir = walk.step(parent.as_fd(), &root.join(rest), last)?;
        Ok(Place { path: target.to_owned(), parent, last: last.to_owned(), dir })
    }

    /// The root that a path lies under, and the way from there.
    fn inside<'a>(&'a self, target: &'a str) -> Result<(&'a Path, &'a Path), TargetError> {
        let path = Path::new(target);
        if !path.is_absolute() || target.contains('\0') {
            return Err(TargetError::NotAbsolute(target.to_owned()));
        }
        if path.components().any(|part| part == Component::ParentDir) {
            return Err(TargetError::Up(target.to_owned()));
        }
        let inside = self
            .paths
            .iter()
            .filter_map(|root| Some((root.as_path(), path.strip_prefix(root).ok()?)))
            .min_by_key(|(_, rest)| rest.components().count());
        let Some(inside) = inside else {
            let roots: Vec<_> = self.paths.iter().map(|root| root.display().to_string()).collect();
            return Err(TargetError::Outside { path: target.to_owned(), roots: roots.join(", ") });
        };
        Ok(inside)
    }
}

impl Place {
    /// Space on the file system that the target lies on or would lie on.
    pub(super) fn stat_vfs(&self) -> Result<StatVfs, TargetError> {
        let fd = self.dir.as_ref().unwrap_or(&self.parent);
        rustix::fs::fstatvfs(fd)
            .map_err(|error| TargetError::call("ask for the space of", self.path.clone(), error))
    }
}

/// Whether roots are named as they must be, whatever lies there.
///
/// # Errors
/// When there is none, and on the first that is not an absolute path without `..`.
pub fn check_roots(paths: &[PathBuf]) -> Result<(), RootError> {
    if paths.is_empty() {
        return Err(RootError::None);
    }
    let good = |path: &PathBuf| {
        path.is_absolute() && path.components().all(|part| part != Component::ParentDir)
    };
    match paths.iter().find(|path| !good(path)) {
        Some(path) => Err(RootError::NotAbsolute(path.clone())),
        None => Ok(()),
    }
}

/// A way from a root to a target.
struct Walk<'a> {
    root: &'a Path,
    target: &'a str,
    by_steps: bool,
}

impl Walk<'_> {
    fn to(&self, root: OwnedFd, parts: &[&OsStr]) -> Result<OwnedFd, TargetError> {
        if parts.is_empty() {
            return Ok(root);
        }
        if !self.by_steps {
            let resolve =
                ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            let rest: PathBuf = parts.iter().collect();
            // Whatever fails here is tried by steps: they work on every kernel, and name the
            // component that is in the way.
            if let Ok(fd) = rustix::fs::openat2(&root, &rest, WAY, Mode::empty(), resolve) {
                return Ok(fd);
            }
        }
        let mut here = root;
        let mut path = self.root.to_owned();
        for part in parts {
            path.push(part);
            here = self.step(here.as_fd(), &path, part)?.ok_or_else(|| {
                TargetError::MissingParent {
                    missing: path.display().to_string(),
                    path: self.target.to_owned(),
                }
            })?;
        }
        Ok(here)
    }

    /// One component further, which is a plain name; none if it does not exist.
    fn step(
        &self,
        dir: BorrowedFd<'_>,
        path: &Path,
        name: &OsStr,
    ) -> Result<Option<OwnedFd>, TargetError> {
        let shown = || path.display().to_string();
        match rustix::fs::openat(dir, name, WAY | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(fd) => Ok(Some(fd)),
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::NOTDIR | Errno::LOOP) => {
                let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
                let kind = stat.map(|stat| FileType::from_raw_mode(stat.st_mode));
                Err(match kind {
                    Ok(FileType::Symlink) => TargetError::Symlink { link: shown() },
                    _ => TargetError::NotDirectory(shown()),
                })
            }
            Err(error) => Err(TargetError::call("open", shown(), error)),
        }
    }
}

fn open_root(path: &Path, allow_local: bool) -> Result<OwnedFd, RootError> {
    let failed = |errno: Errno| RootError::Open { path: path.to_owned(), source: errno.into() };
    let root = rustix::fs::open(path, WAY, Mode::empty()).map_err(failed)?;
    if !allow_local {
        let device = rustix::fs::fstat(&root).map_err(failed)?.st_dev;
        let above = rustix::fs::statat(&root, "..", AtFlags::empty()).map_err(failed)?.st_dev;
        if device == above {
            return Err(RootError::Local { path: path.to_owned() });
        }
    }
    Ok(root)
}
