//! Operations on names: empty files are created, asked for and removed.

use std::{
    ffi::CStr,
    fs::{self, File},
    io,
    os::fd::OwnedFd,
    path::Path,
    sync::Arc,
};

use iofleet_shared::work::{Files, Names, OpKind, OpShare, ThreadPlan, TreePart};
use iofleet_worker::target::Hold;
use rustix::fs::{AtFlags, Mode, OFlags, openat, statat, unlinkat};

use crate::{
    Fallible,
    bare::{self, Body, Ready},
    crew,
    usage::Round,
};

/// What is done one after the other.
const OPS: [(OpKind, Call); 3] = [
    (OpKind::Create, |dir, name| openat(dir, name, CREATE, Mode::from_raw_mode(0o644)).map(drop)),
    (OpKind::Stat, |dir, name| statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).map(|_| ())),
    (OpKind::Unlink, |dir, name| unlinkat(dir, name, AtFlags::empty())),
];
type Call = fn(&OwnedFd, &CStr) -> rustix::io::Result<()>;
/// How the worker opens files of a tree.
const FILE: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);
const CREATE: OFlags = FILE.union(OFlags::WRONLY).union(OFlags::CREATE).union(OFlags::EXCL);

/// How many files of how many threads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tree {
    pub(crate) threads: u32,
    /// Directories of each thread.
    pub(crate) dirs: u32,
    pub(crate) files_per_dir: u32,
}

impl Tree {
    fn files_per_thread(self) -> u64 {
        u64::from(self.dirs) * u64::from(self.files_per_dir)
    }

    pub(crate) fn files(self) -> u64 {
        u64::from(self.threads) * self.files_per_thread()
    }

    /// A crew for each kind of operation, below `dir`.
    pub(crate) fn by_crews(self, dir: &Path) -> Fallible<Vec<Round>> {
        let top = dir.join("iofleet-generator-crew");
        fs::create_dir(&top)?;
        let rounds = OPS.map(|(op, _)| self.by_crew(&top, op)).into_iter().collect();
        fs::remove_dir_all(&top)?;
        rounds
    }

    fn by_crew(self, top: &Path, op: OpKind) -> Fallible<Round> {
        let made = if op == OpKind::Create { 0 } else { self.files_per_thread() };
        let dirs = if op == OpKind::Create { 0 } else { self.dirs };
        let part = TreePart {
            base: "tree".to_owned(),
            shared_dirs: false,
            dirs: self.dirs,
            files_per_dir: self.files_per_dir,
            sizes: vec![],
            sizes_seed: 1,
            existing: Names { dirs, files: made, gone: 0 },
            renamed: false,
        };
        let thread = |thread| ThreadPlan {
            thread,
            ops: vec![OpShare { op, weight: 1 }],
            files: Files::Tree(part.clone()),
            operations: self.files_per_thread(),
            seed: u64::from(thread) + 1,
        };
        let plan = crew::plan((0..self.threads).map(thread).collect());
        let top = top.to_owned();
        let hold = move || Ok(Hold::Tree(OwnedFd::from(File::open(&top)?)));
        crew::run(plan, hold, self.files())
    }

    /// The same calls in bare loops.
    pub(crate) fn by_bare_loops(self, dir: &Path) -> Fallible<Vec<Round>> {
        let top = dir.join("iofleet-generator-bare");
        for thread in 0..self.threads {
            for at in 0..self.dirs {
                fs::create_dir_all(top.join(format!("t{thread:05}/d{at:04}")))?;
            }
        }
        let one = |(_, call)| bare::run(self.threads, self.files(), &self.bare_loop(&top, call));
        let rounds = OPS.map(one).into_iter().collect();
        fs::remove_dir_all(&top)?;
        rounds
    }

    fn bare_loop(self, top: &Path, call: Call) -> Body {
        let top = top.to_owned();
        Arc::new(move |thread| {
            let open = |at| {
                let path = top.join(format!("t{thread:05}/d{at:04}"));
                File::open(path).map(OwnedFd::from)
            };
            let dirs: Vec<OwnedFd> = (0..self.dirs).map(open).collect::<io::Result<_>>()?;
            let files_per_dir = self.files_per_dir;
            let ready: Ready = Box::new(move || {
                let mut name = *b"f0000000\0";
                for dir in &dirs {
                    for _ in 0..files_per_dir {
                        let c_str = CStr::from_bytes_with_nul(&name).map_err(io::Error::other)?;
                        call(dir, c_str)?;
                        count_up(&mut name[1..8]);
                    }
                }
                Ok(())
            });
            Ok(ready)
        })
    }
}

/// The next decimal number.
fn count_up(digits: &mut [u8]) {
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return;
        }
        *digit = b'0';
    }
}
