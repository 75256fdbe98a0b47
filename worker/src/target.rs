//! The target: the only code of the worker that names a path.
//!
//! All of it works by directory descriptors below the worker's roots, follows no link, and stays
//! inside datasets, which are directories that iofleet made and marked. What this worker made is
//! kept in a journal in memory, and only that is removed. Every function may block for as long as
//! the mount does: callers run them on helper threads.

use std::{
    collections::BTreeMap,
    fs::File,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use iofleet_shared::{
    clock::monotonic_ns,
    facts::{DirectAlignment, TargetFacts},
    stats::{ColdStart, HoleCheck},
    wire::{Refusal, RefusalKind, Removal},
    work::{DatasetDir, TargetSpec, WorkerPlan},
};
use rustix::fs::StatVfs;

use crate::host::{
    Host,
    links::{self, SYSFS},
    user,
};

pub use error::{RootError, TargetError};
pub(crate) use files::option_flags;
pub use roots::check_roots;

pub(crate) use dataset::{is_plain, seen};
pub use files::Opener;

use dataset::Dataset;
use error::refused;
use roots::Roots;

mod cold;
mod dataset;
mod devices;
mod direct;
mod error;
mod files;
mod holes;
mod limits;
mod probe;
mod roots;

/// What one I/O thread has of its files.
#[derive(Debug)]
pub struct OpenedFiles {
    /// Files that are open, or the directory to open them in.
    pub hold: Hold,
    /// How long open (or create) took.
    pub open_ns: u64,
    /// Descriptors that the thread may hold open at a time of files that it opens itself.
    pub descriptors: u32,
}

/// See [`OpenedFiles`].
#[derive(Debug)]
pub enum Hold {
    /// Open with the plan's flags.
    Files(Vec<Arc<File>>),
    /// The dataset's directory, in which the thread has its tree.
    Tree(OwnedFd),
}

/// The roots of a worker, and what it made below them.
#[derive(Debug)]
pub struct Targets {
    roots: Roots,
    /// Block devices that may be used.
    devices: Vec<PathBuf>,
    host: Host,
    datasets: Mutex<BTreeMap<PathBuf, Arc<Dataset>>>,
}

impl Targets {
    /// Takes the roots, which must be there.
    ///
    /// # Errors
    /// When a root is not absolute, can't be opened, or lies on the same device as its parent
    /// directory without `allow_local`.
    pub fn new(
        roots: &[PathBuf],
        devices: Vec<PathBuf>,
        allow_local: bool,
        host: Host,
    ) -> Result<Self, RootError> {
        let roots = Roots::new(roots, allow_local)?;
        Ok(Self { roots, devices, host, datasets: Mutex::default() })
    }

    /// Finds out whether a campaign could run here, and makes its dataset's directory.
    ///
    /// # Errors
    /// What stands in the way, in words.
    pub fn inspect(&self, spec: &TargetSpec) -> Result<TargetFacts, Refusal> {
        limits::check(spec, &self.host).map_err(|text| Refusal {
            kind: RefusalKind::Limit,
            point: None,
            text,
        })?;
        self.inspect_target(spec).map_err(refused)
    }

    /// Makes ready for the threads of a plan to open their files.
    ///
    /// # Errors
    /// What stands in the way of all of them, in words.
    pub fn opener(self: &Arc<Self>, plan: &Arc<WorkerPlan>) -> Result<Opener, Refusal> {
        let dataset = self.dataset(&plan.dir).map_err(refused)?;
        let descriptors = limits::descriptors_of_thread(plan, &self.host);
        Opener::ready(self, dataset, plan, descriptors).map_err(refused)
    }

    /// Drops this machine's caches of what a plan reads, as far as it may.
    ///
    /// # Errors
    /// When files can't be flushed, or opened.
    pub fn drop_caches(&self, plan: &WorkerPlan) -> Result<ColdStart, Refusal> {
        let dataset = self.dataset(&plan.dir).map_err(refused)?;
        cold::drop_caches(self, &dataset, plan).map_err(refused)
    }

    /// Looks for holes where a plan's threads are to read; none where it reads nothing that was there
    /// before.
    ///
    /// # Errors
    /// The first hole, where holes are not allowed, and what stands in the way of looking.
    pub fn look_for_holes(&self, plan: &WorkerPlan) -> Result<Option<HoleCheck>, Refusal> {
        let dataset = self.dataset(&plan.dir).map_err(refused)?;
        holes::look(self, &dataset, plan).map_err(refused)
    }

    /// Alignment of buffers in memory that the dataset's file system wants, as far as an inspection
    /// found out; otherwise 1.
    #[must_use]
    pub fn memory_alignment(&self, dir: &DatasetDir) -> usize {
        let dataset = Dataset::path(dir).and_then(|path| self.journal().get(&path).cloned());
        dataset.map_or(1, |dataset| dataset.memory_alignment())
    }

    /// Flushes the dataset's file system; returns how long that took in ns.
    ///
    /// # Errors
    /// What `syncfs` says, and when the dataset can't be opened.
    pub fn sync_fs(&self, dir: &DatasetDir) -> Result<u64, Refusal> {
        let dataset = self.dataset(dir).map_err(refused)?;
        let began_ns = monotonic_ns();
        rustix::fs::syncfs(dataset.dir())
            .map_err(|error| refused(TargetError::call("flush", dataset.shown(), error)))?;
        Ok(monotonic_ns().saturating_sub(began_ns))
    }

    /// What is wrong with the free space of the dataset's file system, in words; none if as much is
    /// free as has to stay free.
    ///
    /// # Errors
    /// When the dataset can't be opened, or its file system does not say.
    pub fn too_full(
        &self,
        dir: &DatasetDir,
        min_free_milli: u32,
    ) -> Result<Option<String>, Refusal> {
        let dataset = self.dataset(dir).map_err(refused)?;
        let space = rustix::fs::fstatvfs(dataset.dir())
            .map_err(|error| refused(TargetError::call("stat", dataset.shown(), error)))?;
        let Space { free, kept, free_inodes, kept_inodes } = Space::of(&space, min_free_milli);
        if free < kept {
            return Ok(Some(format!(
                "{free} bytes are free at {}, and target.min_free keeps {kept}: writing was stopped",
                dir.path
            )));
        }
        let inodes = free_inodes.filter(|free| *free < kept_inodes);
        Ok(inodes.map(|free| {
            format!(
                "{free} inodes are free at {}, and target.min_free keeps {kept_inodes}: writing was \
                 stopped",
                dir.path
            )
        }))
    }

    /// Removes all that this worker made, or with `keep` forgets it and says where it is.
    pub fn clean(&self, keep: bool) -> Removal {
        let datasets = std::mem::take(&mut *self.journal());
        let mut all = Removal::default();
        for (path, dataset) in datasets {
            if keep {
                all.left.push(format!("{}: kept", path.display()));
                continue;
            }
            let Removal { files, left } = dataset.remove();
            all.files += files;
            all.left.extend(left);
        }
        all
    }

    /// The directories of all datasets in the journal.
    #[must_use]
    pub fn paths(&self) -> Vec<PathBuf> {
        self.journal().keys().cloned().collect()
    }

    fn inspect_target(&self, spec: &TargetSpec) -> Result<TargetFacts, TargetError> {
        let place = self.roots.find(&spec.dir.path)?;
        let space = place.stat_vfs()?;
        check_space(spec, &space)?;
        let dataset = self.dataset(&spec.dir)?;
        dataset.allow_holes(spec.allow_holes);
        let mut alignment = None;
        if spec.direct {
            let found = direct::alignment(&dataset, &spec.direct_blocks)?;
            dataset.set_memory_alignment(found.memory);
            alignment = Some(found);
        }
        probe::engines(&dataset, spec)?;
        probe::placements(spec, alignment)?;
        probe::others(self, spec)?;
        self.facts(&dataset, &space, alignment, &spec.interfaces)
    }

    fn facts(
        &self,
        dataset: &Dataset,
        space: &StatVfs,
        alignment: Option<DirectAlignment>,
        interfaces: &[String],
    ) -> Result<TargetFacts, TargetError> {
        let mount = self.host.mount_id(dataset.dir().as_fd()).and_then(|id| self.host.mount(id));
        let (fs_type, mount_source, mount_options) =
            mount.map(|mount| (mount.fs_type, mount.source, mount.options)).unwrap_or_default();
        let network = links::find(Path::new(SYSFS), &fs_type, &mount_source, interfaces)?;
        Ok(TargetFacts {
            fs_type,
            mount_source,
            mount_options,
            free_bytes: space.f_bavail.saturating_mul(space.f_frsize),
            total_bytes: space.f_blocks.saturating_mul(space.f_frsize),
            free_inodes: (space.f_files > 0).then_some(space.f_favail),
            alignment,
            network,
            token: dataset.token().to_owned(),
        })
    }

    /// The dataset, from the journal or made now.
    fn dataset(&self, dir: &DatasetDir) -> Result<Arc<Dataset>, TargetError> {
        let path = Dataset::path(dir).ok_or_else(|| TargetError::Name(dir.name.clone()))?;
        if let Some(dataset) = self.journal().get(&path) {
            dataset.check_campaign(&dir.campaign)?;
            return Ok(Arc::clone(dataset));
        }
        let place = self.roots.find(&dir.path)?;
        let dataset = Arc::new(Dataset::make(place, dir)?);
        self.journal().insert(path, Arc::clone(&dataset));
        Ok(dataset)
    }

    fn journal(&self) -> std::sync::MutexGuard<'_, BTreeMap<PathBuf, Arc<Dataset>>> {
        self.datasets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn check_space(spec: &TargetSpec, space: &StatVfs) -> Result<(), TargetError> {
    let path = || spec.dir.path.clone();
    if !spec.writes {
        return Ok(());
    }
    if space.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY) {
        return Err(TargetError::ReadOnly { path: path() });
    }
    let Space { free, kept, free_inodes, kept_inodes } = Space::of(space, spec.min_free_milli);
    if free < spec.bytes.saturating_add(kept) {
        let needed = spec.bytes;
        return Err(TargetError::Full { path: path(), needed, free, kept, user: user() });
    }
    if let Some(free) = free_inodes
        && free < spec.files.saturating_add(kept_inodes)
    {
        let (needed, kept) = (spec.files, kept_inodes);
        return Err(TargetError::Inodes { path: path(), needed, free, kept });
    }
    Ok(())
}

/// What is free of a file system, and what has to stay free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Space {
    free: u64,
    kept: u64,
    /// None where the file system does not count them.
    free_inodes: Option<u64>,
    kept_inodes: u64,
}

impl Space {
    fn of(space: &StatVfs, min_free_milli: u32) -> Self {
        let share = |of: u64| {
            let share = u128::from(of) * u128::from(min_free_milli) / 1000;
            u64::try_from(share).unwrap_or(u64::MAX)
        };
        Self {
            free: space.f_bavail.saturating_mul(space.f_frsize),
            kept: share(space.f_blocks.saturating_mul(space.f_frsize)),
            free_inodes: (space.f_files > 0).then_some(space.f_favail),
            kept_inodes: share(space.f_files),
        }
    }
}

#[cfg(test)]
mod tests;
