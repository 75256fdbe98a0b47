//! Datasets: directories that iofleet made and marked, and the journal of what this worker made in
//! each.
//!
//! The workers of a fleet make the same directories of a shared file system at the same time.
//! Whoever's `mkdir` succeeds writes the mark; the others wait for it to appear. A target directory
//! that had to be made gets the same mark, so that the last worker to leave can remove it, whoever
//! made it.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    io::{Read, Write},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use iofleet_shared::{clock::monotonic_ns, wire::Removal, work::DatasetDir};
use rustix::{
    fs::{AtFlags, Dir, Mode, OFlags},
    io::Errno,
};
use serde::{Deserialize, Serialize};

use super::{error::TargetError, roots::Place};
use crate::host::random;
use crate::tree::remove_tree;

/// Name of the mark in a directory that iofleet made.
pub(super) const MARK: &str = ".iofleet.json";
/// How long what another client did may stay unseen.
const SEEN_WITHIN: Duration = Duration::from_millis(if cfg!(test) { 60 } else { 3_000 });
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// A mark is never longer.
const MARK_BYTES_MAX: u64 = 4096;
const NAME_BYTES_MAX: usize = 200;
const HOLD: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A dataset's directory as this worker holds it.
#[derive(Debug)]
pub(super) struct Dataset {
    path: PathBuf,
    name: String,
    campaign: String,
    dir: OwnedFd,
    /// `target.path`, which holds the dataset.
    target: OwnedFd,
    /// What holds `target.path`, and its name there.
    place: Place,
    files: Mutex<BTreeSet<String>>,
    /// Trees that its threads have, or had, a part of.
    trees: Mutex<BTreeSet<String>>,
    memory_alignment: AtomicUsize,
    allows_holes: AtomicBool,
    tells_holes: OnceLock<bool>,
    token: String,
}

/// What a mark says.
#[derive(Debug, Serialize, Deserialize)]
struct Mark {
    tool: String,
    campaign: String,
    created_by: String,
    /// Drawn by who made it.
    #[serde(default)]
    token: String,
}

impl Dataset {
    /// Where a dataset is; none if its name is not a plain one.
    pub(super) fn path(dir: &DatasetDir) -> Option<PathBuf> {
        let name = directory_name(dir)?;
        Some(Path::new(&dir.path).join(name))
    }

    /// Makes the dataset's directory, or finds that another worker of the campaign made it.
    pub(super) fn make(place: Place, dir: &DatasetDir) -> Result<Self, TargetError> {
        let name = directory_name(dir).ok_or_else(|| TargetError::Name(dir.name.clone()))?;
        let target = open_target(&place, &dir.campaign)?;
        let path = Path::new(&dir.path).join(&name);
        let shown = path.display().to_string();
        let made = make_dir(target.as_fd(), OsStr::new(&name), &shown)?;
        let dir_fd = hold(target.as_fd(), OsStr::new(&name), &shown)?;
        let mut dataset = Self {
            path,
            name,
            campaign: dir.campaign.clone(),
            dir: dir_fd,
            target,
            place,
            files: Mutex::default(),
            trees: Mutex::default(),
            memory_alignment: AtomicUsize::new(1),
            allows_holes: AtomicBool::new(false),
            tells_holes: OnceLock::new(),
            token: String::new(),
        };
        if made {
            match write_mark(dataset.dir.as_fd(), &dataset.campaign, &shown) {
                Ok(token) => dataset.token = token,
                Err(error) => {
                    dataset.remove_directories();
                    return Err(error);
                }
            }
        } else {
            dataset.token = dataset.wait_for_mark()?;
        }
        Ok(dataset)
    }

    pub(super) fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// The directory's path for people.
    pub(super) fn shown(&self) -> String {
        self.path.display().to_string()
    }

    /// A file's path for people.
    pub(super) fn shown_file(&self, name: &str) -> String {
        self.path.join(name).display().to_string()
    }

    pub(super) fn memory_alignment(&self) -> usize {
        self.memory_alignment.load(Ordering::Relaxed)
    }

    pub(super) fn set_memory_alignment(&self, alignment: u32) {
        self.memory_alignment.store((alignment as usize).max(1), Ordering::Relaxed);
    }

    pub(super) fn allow_holes(&self, allow: bool) {
        self.allows_holes.store(allow, Ordering::Relaxed);
    }

    pub(super) fn allows_holes(&self) -> bool {
        self.allows_holes.load(Ordering::Relaxed)
    }

    /// Whether its file system was seen to report a hole; it is tried once.
    pub(super) fn tells_holes(&self, probe: impl FnOnce() -> bool) -> bool {
        *self.tells_holes.get_or_init(probe)
    }

    /// What its mark says.
    pub(super) fn token(&self) -> &str {
        &self.token
    }

    pub(super) fn check_campaign(&self, campaign: &str) -> Result<(), TargetError> {
        if self.campaign == campaign {
            return Ok(());
        }
        Err(TargetError::Foreign { path: self.shown(), owner: self.campaign.clone() })
    }

    /// This worker made that file.
    pub(super) fn note(&self, name: &str) {
        self.files().insert(name.to_owned());
    }

    /// A tree may be there because of this worker.
    pub(super) fn note_tree(&self, base: &str) {
        self.trees().insert(base.to_owned());
    }

    /// That file or tree is gone.
    pub(super) fn forget(&self, name: &str) {
        self.files().remove(name);
        self.trees().remove(name);
    }

    /// Removes the files that this worker made, and the directories if nothing else is in them.
    pub(super) fn remove(&self) -> Removal {
        let mut removal = Removal::default();
        for name in std::mem::take(&mut *self.files()) {
            match rustix::fs::unlinkat(&self.dir, &name, AtFlags::empty()) {
                Ok(()) => removal.files += 1,
                Err(Errno::NOENT) => {}
                Err(error) => removal.left.push(format!("{}: {error}", self.shown_file(&name))),
            }
        }
        for base in std::mem::take(&mut *self.trees()) {
            match remove_tree(self.dir.as_fd(), &base) {
                Ok(files) => removal.files += files,
                Err(error) => removal.left.push(format!("{}: {error}", self.shown_file(&base))),
            }
        }
        self.remove_directories();
        removal
    }

    fn remove_directories(&self) {
        if !self.is_ours(self.dir.as_fd()) || !only_mark_in(self.dir.as_fd()) {
            return;
        }
        // The workers of a fleet leave at the same time: each of these may have been done already.
        let _ = rustix::fs::unlinkat(&self.dir, MARK, AtFlags::empty());
        let _ = rustix::fs::unlinkat(&self.target, &*self.name, AtFlags::REMOVEDIR);
        let target = self.target.as_fd();
        if read_mark(target).is_some_and(|mark| self.matches(&mark)) && only_mark_in(target) {
            let _ = rustix::fs::unlinkat(target, MARK, AtFlags::empty());
            let Place { parent, last, .. } = &self.place;
            let _ = rustix::fs::unlinkat(parent, last, AtFlags::REMOVEDIR);
        }
    }

    /// A directory without a mark is one that lost it to another worker that is leaving, or one
    /// whose mark could not be written.
    fn is_ours(&self, dir: BorrowedFd<'_>) -> bool {
        read_mark(dir).is_none_or(|mark| self.matches(&mark))
    }

    fn matches(&self, mark: &Mark) -> bool {
        mark.tool == "iofleet" && mark.campaign == self.campaign
    }

    fn wait_for_mark(&self) -> Result<String, TargetError> {
        let found = seen(|| read_mark(self.dir.as_fd()));
        match found {
            Some(mark) if self.matches(&mark) => Ok(mark.token),
            Some(mark) if mark.tool == "iofleet" => {
                Err(TargetError::Foreign { path: self.shown(), owner: mark.campaign })
            }
            Some(_) | None => Err(TargetError::NoMark { path: self.shown() }),
        }
    }

    fn trees(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.trees.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn files(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a name is one component and nothing special.
pub(crate) fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && !name.contains(['/', '\0'])
        && ![".", "..", MARK].contains(&name)
}

/// Asks again and again until there is an answer, for as long as another client's doings may stay
/// unseen.
pub(crate) fn seen<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let began_ns = monotonic_ns();
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if u128::from(monotonic_ns() - began_ns) >= SEEN_WITHIN.as_nanos() {
            return None;
        }
        thread::sleep(LOOK_EVERY);
    }
}

fn directory_name(dir: &DatasetDir) -> Option<String> {
    is_plain(&dir.name).then(|| format!("iofleet-{}", dir.name))
}

/// Opens `target.path`, and makes it first where it is missing.
fn open_target(place: &Place, campaign: &str) -> Result<OwnedFd, TargetError> {
    if let Some(dir) = &place.dir {
        return hold(dir.as_fd(), OsStr::new("."), &place.path);
    }
    let parent = place.parent.as_fd();
    let made = make_dir(parent, &place.last, &place.path)?;
    let target = hold(parent, &place.last, &place.path)?;
    if made && let Err(error) = write_mark(target.as_fd(), campaign, &place.path) {
        let _ = rustix::fs::unlinkat(&target, MARK, AtFlags::empty());
        let _ = rustix::fs::unlinkat(parent, &place.last, AtFlags::REMOVEDIR);
        return Err(error);
    }
    Ok(target)
}

fn make_dir(parent: BorrowedFd<'_>, name: &OsStr, shown: &str) -> Result<bool, TargetError> {
    match rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o755)) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        Err(error) => Err(TargetError::call("create", shown.to_owned(), error)),
    }
}

fn hold(parent: BorrowedFd<'_>, name: &OsStr, shown: &str) -> Result<OwnedFd, TargetError> {
    rustix::fs::openat(parent, name, HOLD, Mode::empty()).map_err(|error| {
        // A directory without following links: a link gives one error or the other, by kernel.
        let stat = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW);
        let link = stat.is_ok_and(|stat| {
            rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Symlink
        });
        let errno = if link { Errno::LOOP } else { error };
        TargetError::call("open", shown.to_owned(), errno)
    })
}

/// Writes a mark with a new token, which it returns.
fn write_mark(dir: BorrowedFd<'_>, campaign: &str, shown: &str) -> Result<String, TargetError> {
    let mark = Mark {
        tool: "iofleet".to_owned(),
        campaign: campaign.to_owned(),
        created_by: sysinfo::System::host_name().unwrap_or_default(),
        token: format!("{:016x}", random()),
    };
    let failed =
        |source| TargetError::Call { call: "write the mark of", path: shown.to_owned(), source };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(dir, MARK, flags, Mode::from_raw_mode(0o644))
        .map_err(|error| failed(error.into()))?;
    let text = serde_json::to_vec(&mark).map_err(|error| failed(error.into()))?;
    std::fs::File::from(fd).write_all(&text).map_err(failed)?;
    Ok(mark.token)
}

/// The mark; none as long as it is not there as a whole.
fn read_mark(dir: BorrowedFd<'_>) -> Option<Mark> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let fd = rustix::fs::openat(dir, MARK, flags, Mode::empty()).ok()?;
    let mut text = Vec::new();
    std::fs::File::from(fd).take(MARK_BYTES_MAX).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

fn only_mark_in(dir: BorrowedFd<'_>) -> bool {
    let Ok(entries) = Dir::read_from(dir) else {
        return false;
    };
    entries.into_iter().all(|entry| {
        entry.is_ok_and(|entry| {
            let name = entry.file_name().to_bytes();
            [b".".as_slice(), b"..", MARK.as_bytes()].contains(&name)
        })
    })
}
