//! What a campaign's engines, placements, listed files and devices need, asked for before any I/O:
//! what can't be had is refused by name.

use std::{os::fd::AsFd, path::Path, ptr};

use iofleet_shared::{
    facts::DirectAlignment,
    work::{EngineKind, EngineSpec, TargetSpec},
};
use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, accessat, ftruncate, statat},
    mm::{MapFlags, ProtFlags, mmap, munmap},
};

use super::{Targets, dataset::Dataset, devices, error::TargetError};
use crate::{
    engine::{libaio, uring},
    host::{
        placement::{self, Buffers},
        random,
    },
};

/// Bytes of the mapping that is tried.
const MAPPED: usize = 4_096;

/// Each engine that stages use, on the target.
pub(super) fn engines(dataset: &Dataset, spec: &TargetSpec) -> Result<(), TargetError> {
    spec.engines.iter().try_for_each(|engine| one(dataset, engine))
}

fn one(dataset: &Dataset, engine: &EngineSpec) -> Result<(), TargetError> {
    let refused = |engine, why: String| TargetError::Engine { engine, path: dataset.shown(), why };
    match engine.kind {
        EngineKind::Sync | EngineKind::Null => Ok(()),
        EngineKind::IoUring => {
            uring::probe(engine).map_err(|error| refused("io_uring", error.to_string()))
        }
        EngineKind::Libaio => {
            libaio::probe(engine.depth).map_err(|error| refused("libaio", error.to_string()))
        }
        EngineKind::Mmap => mapping(dataset).map_err(|error| {
            let why = format!(
                "the file system makes no shared mapping ({error}); take engine = \"sync\""
            );
            refused("mmap", why)
        }),
    }
}

/// Maps a scratch file as the engine does.
fn mapping(dataset: &Dataset) -> std::io::Result<()> {
    let name = format!(".iofleet-probe-{:016x}", random());
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::CREATE | OFlags::EXCL;
    let file = rustix::fs::openat(dataset.dir(), &name, flags, Mode::from_raw_mode(0o600))?;
    if rustix::fs::unlinkat(dataset.dir(), &name, AtFlags::empty()).is_err() {
        // It is removed with the rest at the end.
        dataset.note(&name);
    }
    ftruncate(&file, MAPPED as u64)?;
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new shared mapping at an address of the kernel's choice touches nothing, and it is
    // given back whole without a look at it.
    unsafe {
        let start = mmap(ptr::null_mut(), MAPPED, access, MapFlags::SHARED, file.as_fd(), 0)?;
        munmap(start, MAPPED)?;
    }
    Ok(())
}

/// Each placement that points ask for, with the buffers of the largest one.
pub(super) fn placements(
    spec: &TargetSpec,
    alignment: Option<DirectAlignment>,
) -> Result<(), TargetError> {
    let depth = spec.engines.iter().map(|engine| engine.depth).max().unwrap_or(1).max(1);
    let slots = u64::from(spec.threads.max(1)) * u64::from(depth);
    let buffers = Buffers {
        threads: spec.threads,
        per_thread: depth,
        bytes: (spec.buffer_bytes / slots).max(1),
        alignment: alignment.map_or(1, |found| u64::from(found.memory)),
    };
    let sysfs = Path::new(placement::SYSFS);
    spec.placements.iter().try_for_each(|wanted| {
        placement::check(wanted, &buffers, sysfs).map_err(TargetError::Placement)
    })
}

/// Files that must be there before, and devices.
pub(super) fn others(targets: &Targets, spec: &TargetSpec) -> Result<(), TargetError> {
    for path in &spec.listed {
        let (dir, name) = targets.roots.holder(path)?;
        let stat = statat(&dir, &name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|error| TargetError::call("find", path.clone(), error))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(TargetError::NotFile { path: path.clone() });
        }
        let access = if spec.destroys_data {
            rustix::fs::Access::READ_OK | rustix::fs::Access::WRITE_OK
        } else {
            rustix::fs::Access::READ_OK
        };
        accessat(&dir, &name, access, AtFlags::empty())
            .map_err(|error| TargetError::call("use", path.clone(), error))?;
    }
    spec.devices.iter().try_for_each(|path| devices::inspect(targets, path, &spec.direct_blocks))
}
