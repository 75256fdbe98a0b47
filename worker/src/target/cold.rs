//! Caches of this machine are dropped before files are read.
//!
//! The kernel drops all of them for whoever may ask it to, which root may, or the helper that
//! `deploy/systemd` has for it. For anybody else it drops clean pages of single files, as an advice
//! that it need not follow. What a file system's own processes or its servers hold stays.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

use iofleet_shared::{
    stats::ColdStart,
    work::{Files, WorkerPlan},
};
use rustix::fs::{Advice, fadvise, syncfs};

use super::{Targets, dataset::Dataset, error::TargetError, files};

/// Where the kernel is asked.
const KERNEL: &str = "/proc/sys/vm/drop_caches";
/// Where the helper listens.
const HELPER: &str = "/run/iofleet-drop-caches.sock";
/// How long the helper may take.
const HELPER_WITHIN: Duration = Duration::from_secs(50);
/// What it says.
const DROPPED: &str = "dropped";

/// Drops what can be dropped, and says how.
pub(super) fn drop_caches(
    targets: &Targets,
    dataset: &Dataset,
    plan: &WorkerPlan,
) -> Result<ColdStart, TargetError> {
    // Dirty pages stay: they have to be clean first.
    syncfs(dataset.dir()).map_err(|error| TargetError::call("flush", dataset.shown(), error))?;
    if by_kernel(Path::new(KERNEL)) {
        return Ok(ColdStart::Kernel);
    }
    if by_helper(Path::new(HELPER)) {
        return Ok(ColdStart::Helper);
    }
    for thread in &plan.threads {
        let (Files::Named(parts) | Files::Listed(parts)) = &thread.files else { continue };
        let listed = matches!(thread.files, Files::Listed(_));
        for part in parts {
            let file = files::to_look_at(targets, dataset, &part.file, listed)?;
            fadvise(&file, 0, None, Advice::DontNeed)
                .map_err(|error| TargetError::call("drop pages of", part.file.clone(), error))?;
        }
    }
    Ok(ColdStart::Advice)
}

/// 3: pages, and names with their attributes.
fn by_kernel(path: &Path) -> bool {
    OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file: File| file.write_all(b"3"))
        .is_ok()
}

fn by_helper(path: &Path) -> bool {
    let Ok(mut stream) = UnixStream::connect(path) else { return false };
    let mut said = String::new();
    stream.set_read_timeout(Some(HELPER_WITHIN)).is_ok()
        && stream.read_to_string(&mut said).is_ok()
        && said.trim() == DROPPED
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::net::UnixListener, thread};

    use super::*;

    #[test]
    fn the_kernel_is_told_where_it_may_be() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("drop_caches");
        assert!(!by_kernel(&path));
        fs::write(&path, "0").unwrap();
        assert!(by_kernel(&path));
        assert_eq!(fs::read_to_string(&path).unwrap(), "3");
    }

    #[test]
    fn the_helper_counts_when_it_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("helper");
        assert!(!by_helper(&path));
        let listener = UnixListener::bind(&path).unwrap();
        let answers = thread::spawn(move || {
            for answer in ["dropped\n", "no\n"] {
                listener.accept().unwrap().0.write_all(answer.as_bytes()).unwrap();
            }
        });
        assert!(by_helper(&path));
        assert!(!by_helper(&path));
        answers.join().unwrap();
    }
}
