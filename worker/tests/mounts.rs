//! Targets on mounts of the test's own: too small, read-only, gone. The test runs itself again in
//! namespaces in which it may mount.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "what the tests share fails and speaks like a test"
)]

use std::{
    path::Path,
    process::{Command, Output},
};

use iofleet_shared::{
    wire::Refusal,
    work::{DatasetDir, TargetSpec},
};
use iofleet_worker::{host::Host, target::Targets};

const INSIDE: &str = "IOFLEET_TEST_INSIDE";

#[test]
fn mounts_that_can_not_be_used_are_refused() {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    let probe = Command::new("unshare").args(["-Urm", "true"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        assert!(std::env::var_os("CI").is_none(), "no user namespaces, and CI must have them");
        println!("SKIP no user namespaces");
        return;
    }
    let output = Command::new("unshare")
        .arg("-Urm")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "mounts_that_can_not_be_used_are_refused", "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let Output { status, stdout, stderr } = output;
    let said = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success() && said.contains("all was checked"), "{said}");
}

fn inside() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("mnt");
    std::fs::create_dir(&root).unwrap();
    // Before the mount, the directory is what an unmounted file system looks like.
    let unmounted = new(&root).unwrap_err();
    assert!(unmounted.contains("nothing seems to be mounted there"), "{unmounted}");
    mount(&["-t", "tmpfs", "-o", "size=1m,nr_inodes=20", "none"], &root);
    let targets = new(&root).unwrap();
    let facts = targets.inspect(&spec(&root, 500_000, 2)).unwrap();
    assert_eq!((&*facts.fs_type, facts.total_bytes), ("tmpfs", 1 << 20));
    assert!(facts.free_inodes.is_some_and(|free| free < 20));
    assert!(facts.mount_options.contains("size=1024k"), "{}", facts.mount_options);
    targets.clean(false);
    let full = refusal(&targets, &spec(&root, 2 << 20, 2));
    assert!(full.contains("too full") && full.contains("2 MiB"), "{full}");
    let inodes = refusal(&targets, &spec(&root, 1000, 1000));
    assert!(inodes.contains("too few free inodes") && inodes.contains("1000"), "{inodes}");
    reserve(&targets, &root);
    mount(&["-o", "remount,ro", "none"], &root);
    let read_only = refusal(&targets, &spec(&root, 1000, 2));
    assert!(read_only.ends_with("is read-only"), "{read_only}");
    // An idle worker keeps no mount busy, and notices when it is gone.
    let umount = Command::new("umount").arg(&root).output().unwrap();
    assert!(umount.status.success(), "{umount:?}");
    let gone = refusal(&targets, &spec(&root, 1000, 2));
    assert!(gone.contains("nothing seems to be mounted there"), "{gone}");
    assert_eq!(std::fs::read_dir(&root).unwrap().count(), 0);
    println!("all was checked");
}

/// A tenth of 1 MiB stays free: 950,000 bytes are too many although they are free.
fn reserve(targets: &Targets, root: &Path) {
    let keeping = |bytes, files| TargetSpec { min_free_milli: 100, ..spec(root, bytes, files) };
    targets.inspect(&spec(root, 950_000, 2)).unwrap();
    targets.clean(false);
    let full = refusal(targets, &keeping(950_000, 2));
    assert!(full.contains("104857 B have to stay free") && full.contains("min_free"), "{full}");
    assert_eq!(std::fs::read_dir(root).unwrap().count(), 0, "nothing was written");
    let inodes = refusal(targets, &keeping(1_000, 18));
    assert!(inodes.contains("2 have to stay free"), "{inodes}");
    let fits = keeping(500_000, 2);
    targets.inspect(&fits).unwrap();
    // Nine tenths are written by somebody else.
    assert_eq!(targets.too_full(&fits.dir, 100), Ok(None));
    std::fs::write(root.join("other"), vec![1; 960_000]).unwrap();
    let why = targets.too_full(&fits.dir, 100).unwrap().unwrap();
    assert!(why.contains("target.min_free keeps 104857"), "{why}");
    assert_eq!(targets.too_full(&fits.dir, 0), Ok(None));
    std::fs::remove_file(root.join("other")).unwrap();
    targets.clean(false);
}

fn new(root: &Path) -> Result<Targets, String> {
    Targets::new(&[root.to_owned()], vec![], false, Host::default())
        .map_err(|error| error.to_string())
}

fn refusal(targets: &Targets, spec: &TargetSpec) -> String {
    let Refusal { text, .. } = targets.inspect(spec).unwrap_err();
    text
}

fn mount(arguments: &[&str], at: &Path) {
    let output = Command::new("mount").args(arguments).arg(at).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn spec(root: &Path, bytes: u64, files: u64) -> TargetSpec {
    TargetSpec {
        dir: DatasetDir {
            path: root.join("t").display().to_string(),
            name: "d".to_owned(),
            campaign: "c".to_owned(),
        },
        direct: false,
        engines: vec![],
        direct_blocks: vec![],
        writes: true,
        listed: vec![],
        devices: vec![],
        destroys_data: false,
        bytes,
        files,
        min_free_milli: 0,
        allow_holes: false,
        threads: 1,
        buffer_bytes: 4096,
        placements: vec![],
        interfaces: vec![],
    }
}
