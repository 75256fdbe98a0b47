//! The files of a point: old ones removed, new ones created, each opened by every thread for itself,
//! in that thread's own table of descriptors.

use std::{collections::BTreeMap, fs::File, os::fd::AsFd, sync::Arc};

use iofleet_shared::{
    clock::monotonic_ns,
    wire::Refusal,
    work::{Advice, EngineKind, FileOptions, FilePart, Files, OpKind, ThreadPlan, WorkerPlan},
};
use rustix::{
    fs::{
        AtFlags, FallocateFlags, FileType, Mode, OFlags, SeekFrom, fadvise, fallocate, fstat,
        ftruncate, openat as open_at, seek, unlinkat,
    },
    io::Errno,
};

use super::{
    Hold, OpenedFiles, Targets,
    dataset::{Dataset, is_plain, seen},
    devices,
    error::{TargetError, refused},
};
use crate::tree::remove_tree;

/// Opens the files of a plan's threads, each on the thread that will use them; trees are left to the
/// threads themselves.
#[derive(Debug)]
pub struct Opener {
    targets: Arc<Targets>,
    dataset: Arc<Dataset>,
    plan: Arc<WorkerPlan>,
    /// Of a thread, at a time.
    descriptors: u32,
    /// How long each file must be, or will be.
    needed: BTreeMap<String, u64>,
    /// Whoever opens a device exclusively is the only one who can: its threads share it.
    devices: BTreeMap<String, Opened>,
}

impl Opener {
    /// Removes what is stale, and opens devices.
    pub(super) fn ready(
        targets: &Arc<Targets>,
        dataset: Arc<Dataset>,
        plan: &Arc<WorkerPlan>,
        descriptors: u32,
    ) -> Result<Self, TargetError> {
        for name in &plan.remove {
            remove(&dataset, name)?;
        }
        let mut opener = Self {
            targets: Arc::clone(targets),
            dataset,
            plan: Arc::clone(plan),
            descriptors,
            needed: needed(plan),
            devices: BTreeMap::new(),
        };
        for thread in &plan.threads {
            let Files::Devices(parts) = &thread.files else { continue };
            for part in parts {
                if !opener.devices.contains_key(&part.file) {
                    let device = opener.open_part(thread, part)?;
                    opener.devices.insert(part.file.clone(), device);
                }
            }
        }
        Ok(opener)
    }

    /// Opens, or creates, the files of the thread at this place of the plan.
    ///
    /// # Errors
    /// The first file that does not open as the plan says, in words.
    pub fn open(&self, at: usize) -> Result<OpenedFiles, Refusal> {
        self.open_files(&self.plan.threads[at]).map_err(refused)
    }

    fn open_files(&self, thread: &ThreadPlan) -> Result<OpenedFiles, TargetError> {
        let Self { dataset, descriptors, .. } = self;
        let parts = match &thread.files {
            Files::Tree(tree) => {
                dataset.note_tree(&tree.base);
                return tree_of(dataset, *descriptors);
            }
            Files::Named(parts) | Files::Listed(parts) | Files::Devices(parts) => parts,
        };
        let (mut files, mut open_ns) = (Vec::with_capacity(parts.len()), 0);
        for part in parts {
            let one = match self.devices.get(&part.file) {
                Some(device) => device.clone(),
                None => self.open_part(thread, part)?,
            };
            open_ns += one.open_ns;
            files.push(one.file);
        }
        Ok(OpenedFiles { hold: Hold::Files(files), open_ns, descriptors: *descriptors })
    }

    fn open_part(&self, thread: &ThreadPlan, part: &FilePart) -> Result<Opened, TargetError> {
        let Self { targets, dataset, plan, .. } = self;
        let end = self.needed.get(&part.file).copied().unwrap_or(0);
        let began_ns = monotonic_ns();
        let flags = flags_of(plan);
        let file = match &thread.files {
            Files::Listed(_) => listed(targets, &part.file, flags, end)?,
            Files::Devices(_) => devices::open(targets, &part.file, flags, end)?,
            Files::Named(_) | Files::Tree(_) => named(dataset, plan, &part.file, flags, end)?,
        };
        advise(plan, &part.file, &file)?;
        Ok(Opened { file: Arc::new(file), open_ns: monotonic_ns().saturating_sub(began_ns) })
    }
}

fn tree_of(dataset: &Dataset, descriptors: u32) -> Result<OpenedFiles, TargetError> {
    let dir = dataset.dir().as_fd().try_clone_to_owned().map_err(|source| TargetError::Call {
        call: "hold",
        path: dataset.shown(),
        source,
    })?;
    Ok(OpenedFiles { hold: Hold::Tree(dir), open_ns: 0, descriptors })
}

/// A file that is open, and how long that took.
#[derive(Debug, Clone)]
struct Opened {
    file: Arc<File>,
    open_ns: u64,
}

fn needed(plan: &WorkerPlan) -> BTreeMap<String, u64> {
    let mut needed: BTreeMap<String, u64> = BTreeMap::new();
    let block_bytes = plan.block_bytes().max(1);
    for part in plan.threads.iter().flat_map(|thread| thread.parts()) {
        let end = needed.entry(part.file.clone()).or_default();
        *end = part.end(block_bytes).max(*end);
    }
    needed
}

/// Flags that options stand for.
#[must_use]
pub(crate) fn option_flags(options: &FileOptions) -> OFlags {
    let of = |set, flag| if set { flag } else { OFlags::empty() };
    of(options.direct, OFlags::DIRECT)
        | of(options.dsync, OFlags::DSYNC)
        | of(options.append, OFlags::APPEND)
}

fn flags_of(plan: &WorkerPlan) -> OFlags {
    let ops = plan.ops();
    let access = match (ops.contains(&OpKind::Read), ops.contains(&OpKind::Write)) {
        (true, true) => OFlags::RDWR,
        // A shared mapping that is written to must be readable as well.
        (false, true) if plan.engine.kind == EngineKind::Mmap => OFlags::RDWR,
        (false, true) => OFlags::WRONLY,
        (_, false) => OFlags::RDONLY,
    };
    OFlags::NOFOLLOW | OFlags::CLOEXEC | access | option_flags(&plan.options)
}

/// A file that is there, to look at and not to read.
pub(super) fn to_look_at(
    targets: &Targets,
    dataset: &Dataset,
    name: &str,
    is_listed: bool,
) -> Result<File, TargetError> {
    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    if is_listed {
        return listed(targets, name, flags, 0);
    }
    if !is_plain(name) {
        return Err(TargetError::Name(name.to_owned()));
    }
    openat(dataset, name, flags).map_err(|error| failed(dataset, name, error))
}

/// A file of the dataset.
fn named(
    dataset: &Dataset,
    plan: &WorkerPlan,
    name: &str,
    flags: OFlags,
    end: u64,
) -> Result<File, TargetError> {
    if !is_plain(name) {
        return Err(TargetError::Name(name.to_owned()));
    }
    if plan.create {
        let prepared = plan.options.preallocate || plan.engine.kind == EngineKind::Mmap;
        let file = create(dataset, name, flags, prepared)?;
        prepare(dataset, plan, name, &file, end)?;
        return Ok(file);
    }
    let file = openat(dataset, name, flags).map_err(|error| failed(dataset, name, error))?;
    if plan.options.truncate {
        ftruncate(&file, 0).map_err(|error| failed(dataset, name, error))?;
        prepare(dataset, plan, name, &file, end)?;
        return Ok(file);
    }
    if plan.engine.kind == EngineKind::Null {
        // It wrote nothing that could be missed.
        return Ok(file);
    }
    let shown = || dataset.shown_file(name);
    // A file that another client wrote may look short for a while.
    let long_enough = seen(|| match length(&file, shown()) {
        Ok(found) if found < end => None,
        found => Some(found),
    });
    check_length(long_enough.unwrap_or_else(|| length(&file, shown()))?, end, shown)?;
    Ok(file)
}

/// What a new file needs before it is written.
fn prepare(
    dataset: &Dataset,
    plan: &WorkerPlan,
    name: &str,
    file: &File,
    end: u64,
) -> Result<(), TargetError> {
    let shown = || dataset.shown_file(name);
    // Of a file that several threads or nodes prepare each says the same: with its own end one could
    // cut off what another has just added.
    let whole = end.max(plan.file_bytes);
    if plan.options.preallocate {
        fallocate(file, FallocateFlags::empty(), 0, whole.max(1))
            .map_err(|error| TargetError::call("preallocate", shown(), error))?;
    } else if plan.engine.kind == EngineKind::Mmap {
        // A mapping makes no file longer.
        ftruncate(file, whole).map_err(|error| TargetError::call("extend", shown(), error))?;
    }
    Ok(())
}

/// A file that was there before.
fn listed(targets: &Targets, path: &str, flags: OFlags, end: u64) -> Result<File, TargetError> {
    let (dir, name) = targets.roots.holder(path)?;
    let file = open_at(&dir, &name, flags, Mode::empty())
        .map(File::from)
        .map_err(|error| TargetError::call("open", path.to_owned(), error))?;
    check_length(length(&file, path.to_owned())?, end, || path.to_owned())?;
    Ok(file)
}

/// Tells the kernel what to expect.
fn advise(plan: &WorkerPlan, path: &str, file: &File) -> Result<(), TargetError> {
    let Some(advice) = plan.options.advice else {
        return Ok(());
    };
    let told = match advice {
        Advice::Sequential => rustix::fs::Advice::Sequential,
        Advice::Random => rustix::fs::Advice::Random,
        Advice::WillNeed => rustix::fs::Advice::WillNeed,
        Advice::DontNeed => rustix::fs::Advice::DontNeed,
    };
    fadvise(file, 0, None, told)
        .map_err(|error| TargetError::call("advise the kernel on", path.to_owned(), error))
}

/// Removes a file, or a tree.
fn remove(dataset: &Dataset, name: &str) -> Result<(), TargetError> {
    if !is_plain(name) {
        return Err(TargetError::Name(name.to_owned()));
    }
    match unlinkat(dataset.dir(), name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(Errno::ISDIR | Errno::PERM) => {
            remove_tree(dataset.dir().as_fd(), name).map_err(TargetError::Tree)?;
        }
        Err(error) => return Err(TargetError::call("remove", dataset.shown_file(name), error)),
    }
    dataset.forget(name);
    Ok(())
}

/// Creates a file, or opens it if another thread or worker has just made it for the same purpose;
/// `prepared`: it may have a length by then.
fn create(
    dataset: &Dataset,
    name: &str,
    flags: OFlags,
    prepared: bool,
) -> Result<File, TargetError> {
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
            match length(&file, dataset.shown_file(name)) {
                Ok(0) => Some(Ok(file)),
                // Another worker has just prepared it for this point.
                Ok(_) if prepared && holds_nothing(&file) => Some(Ok(file)),
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
                let _ = unlinkat(dataset.dir(), name, AtFlags::empty());
            }
            Some(Err(failed(dataset, name, error)))
        }
    });
    file.unwrap_or_else(|| Err(TargetError::Exists { path: dataset.shown_file(name), found }))
}

/// Whether no byte of a file was ever written, whatever its length, as far as the file system tells.
fn holds_nothing(file: &File) -> bool {
    fstat(file).is_ok_and(|stat| stat.st_blocks == 0)
        || matches!(seek(file, SeekFrom::Data(0)), Err(Errno::NXIO))
}

fn openat(dataset: &Dataset, name: &str, flags: OFlags) -> Result<File, Errno> {
    open_at(dataset.dir(), name, flags, Mode::from_raw_mode(0o644)).map(File::from)
}

fn failed(dataset: &Dataset, name: &str, error: Errno) -> TargetError {
    TargetError::call("open", dataset.shown_file(name), error)
}

fn check_length(found: u64, needed: u64, path: impl Fn() -> String) -> Result<(), TargetError> {
    if found < needed {
        return Err(TargetError::Short { path: path(), found, needed });
    }
    Ok(())
}

fn length(file: &File, path: String) -> Result<u64, TargetError> {
    let stat = fstat(file).map_err(|error| TargetError::call("open", path.clone(), error))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(TargetError::NotFile { path });
    }
    Ok(u64::try_from(stat.st_size).unwrap_or(0))
}
