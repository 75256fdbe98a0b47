//! Free space that has to stay free: before a campaign, and while it writes.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Duration,
};

use crate::support::{Daemon, Scratch, finish, on, run, skip, start, text};

/// A file system in memory of 64 MiB.
struct Small(PathBuf);

impl Small {
    fn mount(at: PathBuf) -> Option<Self> {
        let kind = ["-t", "tmpfs", "-o", "size=64m", "iofleet-test"];
        let mounted = Command::new("mount").args(kind).arg(&at).status();
        mounted.is_ok_and(|status| status.success()).then_some(Self(at))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

fn blocks_in(dir: &Path) -> u64 {
    let stat = rustix::fs::statvfs(dir).unwrap();
    stat.f_blocks - stat.f_bfree
}

/// 60 MiB would fit, but a tenth of 64 MiB stays free.
#[test]
fn what_would_leave_too_little_is_refused_before_a_byte() {
    let scratch = Scratch::in_memory();
    let Some(small) = Small::mount(scratch.folder("small")) else { return skip("no tmpfs") };
    let keys = scratch.keys("keys");
    let daemon = Daemon::start(&scratch, &small.0, &keys);
    let before = blocks_in(&small.0);
    let load = ["--threads", "2", "--file-size", "30 MiB", "--block", "1 MiB"];
    let refused = run(&scratch, &on(&daemon.address, &keys, &small.0.join("t"), &load));
    assert_eq!(refused.code(), 4, "{}", text(&refused.output));
    assert!(text(&refused.output).contains("have to stay free"), "{}", text(&refused.output));
    assert_eq!(blocks_in(&small.0), before);
    assert_eq!(fs::read_dir(&small.0).unwrap().count(), 0);
    let all = [&load[..], &["--min-free", "0 %", "--duration", "1 s"]].concat();
    let taken = run(&scratch, &on(&daemon.address, &keys, &small.0.join("t"), &all));
    assert_eq!(taken.code(), 0, "{}", text(&taken.output));
}

/// Somebody else fills the file system while the first point writes.
#[test]
fn writing_ends_when_too_little_is_left() {
    let scratch = Scratch::in_memory();
    let Some(small) = Small::mount(scratch.folder("small")) else { return skip("no tmpfs") };
    let keys = scratch.keys("keys");
    let daemon = Daemon::start(&scratch, &small.0, &keys);
    let load = ["--threads", "1", "--file-size", "8 MiB", "--block", "64 KiB", "--duration", "5 s"];
    let running = start(&scratch, &on(&daemon.address, &keys, &small.0.join("t"), &load));
    let written = || blocks_in(&small.0) * 4096 >= 8 << 20;
    let waited = (0..2_000).find(|_| {
        thread::sleep(Duration::from_millis(10));
        written()
    });
    let waited = waited.is_some();
    fs::write(small.0.join("other"), vec![1; 51 << 20]).unwrap();
    let ended = finish(running);
    assert!(waited, "{}", text(&ended.output));
    assert_eq!(ended.code(), 5, "{}", text(&ended.output));
    let write = &ended.points()[0];
    assert_eq!(write["status"], "partial");
    assert!(write["why"].as_str().unwrap().contains("target.min_free keeps"), "{}", write["why"]);
    assert!(write["bytes"].as_u64().unwrap() > 0, "what was measured stands");
}
