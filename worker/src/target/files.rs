//! The files of a point: old ones removed, new ones created, each opened once however many threads
//! share it.

use std::{collections::BTreeMap, fs::File, sync::Arc};

use iofleet_shared::{
    clock::monotonic_ns,
    work::{OpKind, WorkerPlan},
};
use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags},
    io::Errno,
};

use super::{
    OpenedFile,
    dataset::{Dataset, is_plain, seen},
    error::TargetError,
};

/// Opens the file of each thread, in the plan's order.
pub(super) fn open(dataset: &Dataset, plan: &WorkerPlan) -> Result<Vec<OpenedFile>, TargetError> {
    for name in &plan.remove {
        remove(dataset, name)?;
    }
    let mut needed: BTreeMap<&str, u64> = BTreeMap::new();
    for thread in &plan.threads {
        let end = thread
            .extents
            .iter()
            .map(|extent| extent.offset + extent.length - extent.length % plan.block_bytes)
            .max();
        let needs = needed.entry(&thread.file).or_default();
        *needs = end.unwrap_or(0).max(*needs);
    }
    let mut opened = BTreeMap::new();
    for (name, end) in needed {
        if !is_plain(name) {
            return Err(TargetError::Name(name.to_owned()));
        }
        let began_ns = monotonic_ns();
        let file = open_one(dataset, plan, name, end)?;
        let open_ns = monotonic_ns().saturating_sub(began_ns);
        opened.insert(name, OpenedFile { file: Arc::new(file), open_ns });
    }
    Ok(plan.threads.iter().filter_map(|thread| opened.get(&*thread.file).cloned()).collect())
}

fn remove(dataset: &Dataset, name: &str) -> Result<(), TargetError> {
    if !is_plain(name) {
        return Err(TargetError::Name(name.to_owned()));
    }
    match rustix::fs::unlinkat(dataset.dir(), name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {
            dataset.forget(name);
            Ok(())
        }
        Err(error) => Err(TargetError::call("remove", dataset.shown_file(name), error)),
    }
}

fn open_one(
    dataset: &Dataset,
    plan: &WorkerPlan,
    name: &str,
    end: u64,
) -> Result<File, TargetError> {
    let mut flags = OFlags::NOFOLLOW | OFlags::CLOEXEC;
    flags |= match plan.op {
        OpKind::Write => OFlags::WRONLY,
        _ => OFlags::RDONLY,
    };
    if plan.direct {
        flags |= OFlags::DIRECT;
    }
    if plan.create {
        return create(dataset, name, flags);
    }
    let file = openat(dataset, name, flags).map_err(|error| failed(dataset, name, error))?;
    // A file that another client wrote may look short for a while.
    let long_enough = seen(|| match length(dataset, name, &file) {
        Ok(found) if found < end => None,
        found => Some(found),
    });
    match long_enough.unwrap_or_else(|| length(dataset, name, &file)) {
        Ok(found) if found < end => {
            Err(TargetError::Short { path: dataset.shown_file(name), found, needed: end })
        }
        Ok(_) => Ok(file),
        Err(error) => Err(error),
    }
}

/// Creates a file, or takes part in a shared one that another worker has just created: that one is
/// empty, since nobody writes before T0.
fn create(dataset: &Dataset, name: &str, flags: OFlags) -> Result<File, TargetError> {
    let mut found = 0;
    let file = seen(|| match openat(dataset, name, flags | OFlags::CREATE | OFlags::EXCL) {
        Ok(file) => {
            dataset.note(name);
            Some(Ok(file))
        }
        Err(Errno::EXIST) => {
            let file = match openat(dataset, name, flags) {
                Ok(file) => file,
                // Removed in between by the worker whose task that is.
                Err(Errno::NOENT) => return None,
                Err(error) => return Some(Err(failed(dataset, name, error))),
            };
            match length(dataset, name, &file) {
                Ok(0) => Some(Ok(file)),
                Ok(bytes) => {
                    found = bytes;
                    None
                }
                Err(error) => Some(Err(error)),
            }
        }
        Err(error) => {
            // Some file systems create the file first and then find that they can't open it so.
            if flags.contains(OFlags::DIRECT) && error == Errno::INVAL {
                let _ = rustix::fs::unlinkat(dataset.dir(), name, AtFlags::empty());
            }
            Some(Err(failed(dataset, name, error)))
        }
    });
    file.unwrap_or_else(|| Err(TargetError::Exists { path: dataset.shown_file(name), found }))
}

fn openat(dataset: &Dataset, name: &str, flags: OFlags) -> Result<File, Errno> {
    rustix::fs::openat(dataset.dir(), name, flags, Mode::from_raw_mode(0o644)).map(File::from)
}

fn failed(dataset: &Dataset, name: &str, error: Errno) -> TargetError {
    TargetError::call("open", dataset.shown_file(name), error)
}

fn length(dataset: &Dataset, name: &str, file: &File) -> Result<u64, TargetError> {
    let stat = rustix::fs::fstat(file).map_err(|error| failed(dataset, name, error))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(TargetError::NotFile { path: dataset.shown_file(name) });
    }
    Ok(u64::try_from(stat.st_size).unwrap_or(0))
}
