//! Targets in temporary directories.

use std::{
    fs,
    os::unix::fs::{MetadataExt, symlink},
    path::Path,
};

use iofleet_shared::work::{Fsync, OpKind};
use tempfile::TempDir;

use super::*;
use crate::fixture;

/// A root in a temporary directory, and the worker's view of it.
struct Fixture {
    dir: TempDir,
    targets: Arc<Targets>,
}

/// Opens the files of all threads, here.
fn open_all(targets: &Arc<Targets>, plan: &WorkerPlan) -> Result<Vec<OpenedFiles>, Refusal> {
    let opener = targets.opener(&Arc::new(plan.clone()))?;
    (0..plan.threads.len()).map(|at| opener.open(at)).collect()
}

impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let roots = [dir.path().to_owned()];
        let targets = Targets::new(&roots, vec![], true, Host::default()).unwrap();
        Self { dir, targets: Arc::new(targets) }
    }

    fn by_steps() -> Self {
        let mut fixture = Self::new();
        Arc::get_mut(&mut fixture.targets).unwrap().roots.by_steps = true;
        fixture
    }

    fn spec(&self, below: &str) -> TargetSpec {
        fixture::target_spec(self.dataset(below))
    }

    fn dataset(&self, below: &str) -> DatasetDir {
        DatasetDir {
            path: self.dir.path().join(below).display().to_string(),
            name: "d1".to_owned(),
            campaign: "c1".to_owned(),
        }
    }

    fn refusal(&self, below: &str) -> String {
        self.targets.inspect(&self.spec(below)).unwrap_err().text
    }

    fn plan(&self, op: OpKind, create: bool, files: &[(&str, u64)]) -> WorkerPlan {
        let thread = |(number, (file, length)): (u32, &(&str, u64))| {
            fixture::thread(number, &[op], fixture::named(file, *length), length / 4096)
        };
        let threads = (0..).zip(files).map(thread).collect();
        WorkerPlan { fsync: Fsync::None, create, ..fixture::plan(self.dataset("t"), threads) }
    }

    fn exists(&self, below: &str) -> bool {
        self.dir.path().join(below).exists()
    }
}

#[test]
fn a_target_is_made_marked_and_removed() {
    let fixture = Fixture::new();
    let facts = fixture.targets.inspect(&fixture.spec("t")).unwrap();
    assert!(facts.free_bytes > 0 && facts.total_bytes >= facts.free_bytes);
    assert!(!facts.fs_type.is_empty());
    assert_eq!(facts.alignment, None);
    let mark = fs::read_to_string(fixture.dir.path().join("t/iofleet-d1/.iofleet.json")).unwrap();
    assert!(mark.contains("\"tool\":\"iofleet\"") && mark.contains("\"campaign\":\"c1\""));
    assert_eq!(fixture.targets.clean(false), Removal::default());
    assert!(!fixture.exists("t"));
    assert!(fixture.dir.path().exists());
}

#[test]
fn a_target_that_was_there_stays() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.dir.path().join("t")).unwrap();
    fixture.targets.inspect(&fixture.spec("t")).unwrap();
    fixture.targets.clean(false);
    assert!(fixture.exists("t") && !fixture.exists("t/iofleet-d1"));
}

#[test]
fn the_root_itself_is_a_target() {
    let fixture = Fixture::new();
    fixture.targets.inspect(&fixture.spec("")).unwrap();
    assert!(fixture.exists("iofleet-d1"));
    fixture.targets.clean(false);
    assert!(!fixture.exists("iofleet-d1"));
}

#[test]
fn paths_outside_the_roots_are_refused() {
    for fixture in [Fixture::new(), Fixture::by_steps()] {
        let mut spec = fixture.spec("t");
        spec.dir.path = "/elsewhere/t".to_owned();
        let text = fixture.targets.inspect(&spec).unwrap_err().text;
        let root = fixture.dir.path().display().to_string();
        assert!(text.contains("/elsewhere/t") && text.contains(&root), "{text}");
        // A root's name as a prefix of another name is no way in.
        spec.dir.path = format!("{root}-not/t");
        let text = fixture.targets.inspect(&spec).unwrap_err().text;
        assert!(text.contains("does not lie under a root"), "{text}");
        spec.dir.path = "t".to_owned();
        let text = fixture.targets.inspect(&spec).unwrap_err().text;
        assert!(text.contains("absolute"), "{text}");
        assert!(fixture.refusal("../t").contains("`..`"));
        assert!(fixture.refusal("a/../t").contains("`..`"));
    }
}

#[test]
fn links_are_named_and_not_followed() {
    for fixture in [Fixture::new(), Fixture::by_steps()] {
        let outside = tempfile::tempdir().unwrap();
        fs::create_dir(outside.path().join("sub")).unwrap();
        let link = fixture.dir.path().join("link");
        symlink(outside.path(), &link).unwrap();
        for below in ["link", "link/sub", "link/sub/t"] {
            let text = fixture.refusal(below);
            let named = format!("{} in target.path is a symbolic link", link.display());
            assert!(text.contains(&named), "{below}: {text}");
        }
        // A link that stays inside is one as well.
        fs::create_dir(fixture.dir.path().join("real")).unwrap();
        symlink("real", fixture.dir.path().join("inner")).unwrap();
        assert!(fixture.refusal("inner/t").contains("inner in target.path is a symbolic link"));
        assert_eq!(fs::read_dir(outside.path().join("sub")).unwrap().count(), 0);
    }
}

#[test]
fn a_link_in_the_datasets_place_is_refused() {
    let fixture = Fixture::new();
    let outside = tempfile::tempdir().unwrap();
    fs::create_dir(fixture.dir.path().join("t")).unwrap();
    symlink(outside.path(), fixture.dir.path().join("t/iofleet-d1")).unwrap();
    let text = fixture.refusal("t");
    assert!(text.contains("iofleet-d1 in target.path is a symbolic link"), "{text}");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn only_the_last_component_is_created() {
    for fixture in [Fixture::new(), Fixture::by_steps()] {
        let text = fixture.refusal("a/b/t");
        let missing = fixture.dir.path().join("a");
        assert!(text.starts_with(&format!("{} does not exist", missing.display())), "{text}");
        assert!(text.contains("unmounted file system"), "{text}");
        assert!(!fixture.exists("a"));
    }
}

#[test]
fn a_file_in_the_way_is_named() {
    for fixture in [Fixture::new(), Fixture::by_steps()] {
        fs::write(fixture.dir.path().join("f"), "x").unwrap();
        let file = fixture.dir.path().join("f").display().to_string();
        assert_eq!(fixture.refusal("f"), format!("{file} is not a directory"));
        assert_eq!(fixture.refusal("f/t"), format!("{file} is not a directory"));
    }
}

#[test]
fn directories_of_others_are_not_touched() {
    let fixture = Fixture::new();
    let dataset = fixture.dir.path().join("t/iofleet-d1");
    fs::create_dir_all(&dataset).unwrap();
    fs::write(dataset.join("precious"), "x").unwrap();
    let text = fixture.refusal("t");
    assert!(text.contains("has no mark of iofleet"), "{text}");
    let mark = r#"{"tool":"iofleet","campaign":"other","created_by":"h"}"#;
    fs::write(dataset.join(dataset::MARK), mark).unwrap();
    let text = fixture.refusal("t");
    assert!(text.contains("belongs to campaign other"), "{text}");
    fixture.targets.clean(false);
    assert!(dataset.join("precious").exists());
}

#[test]
fn names_that_leave_the_dataset_are_refused() {
    let fixture = Fixture::new();
    for name in ["../x", "a/b", "..", "", ".iofleet.json", "a\0b"] {
        let plan = fixture.plan(OpKind::Write, true, &[(name, 4096)]);
        let text = open_all(&fixture.targets, &plan).unwrap_err().text;
        assert!(text.contains("is not a plain file name"), "{name:?}: {text}");
        let mut plan = fixture.plan(OpKind::Write, true, &[("f", 4096)]);
        plan.remove = vec![name.to_owned()];
        assert!(open_all(&fixture.targets, &plan).is_err(), "{name:?}");
        plan.remove.clear();
        plan.dir.name = name.to_owned();
        assert!(open_all(&fixture.targets, &plan).is_err(), "{name:?}");
    }
}

#[test]
fn two_workers_share_a_dataset_and_the_last_one_removes_it() {
    let first = Fixture::new();
    let roots = [first.dir.path().to_owned()];
    let second = Arc::new(Targets::new(&roots, vec![], true, Host::default()).unwrap());
    first.targets.inspect(&first.spec("t")).unwrap();
    second.inspect(&first.spec("t")).unwrap();
    // Both take part in one shared file, each opens it once for its two threads.
    let plan = first.plan(OpKind::Write, true, &[("shared", 4096), ("shared", 8192)]);
    let files = open_all(&first.targets, &plan).unwrap();
    let held = |opened: &OpenedFiles| match &opened.hold {
        Hold::Files(files) => Arc::clone(&files[0]),
        Hold::Tree(_) => panic!("no tree was asked for"),
    };
    let inode = |file: &File| file.metadata().unwrap().ino();
    let (one, other) = (held(&files[0]), held(&files[1]));
    assert!(!Arc::ptr_eq(&one, &other) && inode(&one) == inode(&other));
    open_all(&second, &plan).unwrap();
    open_all(&second, &first.plan(OpKind::Write, true, &[("own", 4096)])).unwrap();
    // The first made the shared file; what the second made keeps the directories.
    assert_eq!(first.targets.clean(false), Removal { files: 1, left: vec![] });
    assert!(first.exists("t/iofleet-d1/own") && !first.exists("t/iofleet-d1/shared"));
    assert_eq!(second.clean(false), Removal { files: 1, left: vec![] });
    assert!(!first.exists("t"));
}

#[test]
fn fresh_files_replace_stale_ones() {
    let fixture = Fixture::new();
    let mut plan = fixture.plan(OpKind::Write, true, &[("f0", 4096), ("f1", 4096)]);
    open_all(&fixture.targets, &plan).unwrap();
    let f0 = fixture.dir.path().join("t/iofleet-d1/f0");
    fs::write(&f0, "stale").unwrap();
    plan.remove = vec!["f0".to_owned(), "f1".to_owned(), "never".to_owned()];
    let files = open_all(&fixture.targets, &plan).unwrap();
    assert_eq!(files.len(), 2);
    assert_eq!(fs::metadata(&f0).unwrap().len(), 0);
    assert_eq!(fixture.targets.clean(false).files, 2);
}

#[test]
fn a_file_with_content_is_not_taken_for_fresh() {
    let fixture = Fixture::new();
    let plan = fixture.plan(OpKind::Write, true, &[("f0", 4096)]);
    open_all(&fixture.targets, &plan).unwrap();
    fs::write(fixture.dir.path().join("t/iofleet-d1/f0"), "stale").unwrap();
    let text = open_all(&fixture.targets, &plan).unwrap_err().text;
    assert!(text.contains("f0 already exists and has 5 B"), "{text}");
}

#[test]
fn reads_need_files_that_are_long_enough() {
    let fixture = Fixture::new();
    open_all(&fixture.targets, &fixture.plan(OpKind::Write, true, &[("f0", 4096)])).unwrap();
    let f0 = fixture.dir.path().join("t/iofleet-d1/f0");
    fs::write(&f0, vec![0; 8192]).unwrap();
    open_all(&fixture.targets, &fixture.plan(OpKind::Read, false, &[("f0", 8192)])).unwrap();
    // A rest shorter than a block is not read.
    open_all(&fixture.targets, &fixture.plan(OpKind::Read, false, &[("f0", 8193)])).unwrap();
    let short = open_all(&fixture.targets, &fixture.plan(OpKind::Read, false, &[("f0", 12288)]));
    let text = short.unwrap_err().text;
    assert!(text.contains("f0 has 8192 B, where the plan needs 12288 B"), "{text}");
    let missing = open_all(&fixture.targets, &fixture.plan(OpKind::Read, false, &[("f9", 4096)]));
    assert!(missing.unwrap_err().text.contains("f9"));
}

#[test]
fn kept_files_are_named() {
    let fixture = Fixture::new();
    open_all(&fixture.targets, &fixture.plan(OpKind::Write, true, &[("f0", 4096)])).unwrap();
    let Removal { files, left } = fixture.targets.clean(true);
    let path = fixture.dir.path().join("t/iofleet-d1");
    assert_eq!((files, left), (0, vec![format!("{}: kept", path.display())]));
    assert!(fixture.exists("t/iofleet-d1/f0"));
    assert!(fixture.targets.paths().is_empty());
}

#[test]
fn every_dataset_is_removed_and_then_their_target() {
    let fixture = Fixture::new();
    open_all(&fixture.targets, &fixture.plan(OpKind::Write, true, &[("f0", 4096)])).unwrap();
    let mut other = fixture.plan(OpKind::Write, true, &[("f0", 4096)]);
    other.dir.name = "d2".to_owned();
    open_all(&fixture.targets, &other).unwrap();
    assert!(fixture.exists("t/iofleet-d1/f0") && fixture.exists("t/iofleet-d2/f0"));
    assert_eq!(fixture.targets.clean(false).files, 2);
    assert!(!fixture.exists("t"));
}

#[test]
fn too_little_space_says_how_much() {
    let fixture = Fixture::new();
    let mut spec = fixture.spec("t");
    spec.bytes = u64::MAX;
    let text = fixture.targets.inspect(&spec).unwrap_err().text;
    assert!(text.contains("too full") && text.contains("18446744.1 TB"), "{text}");
    assert!(!fixture.exists("t"));
}

#[test]
fn limits_of_the_machine_are_named() {
    let fixture = Fixture::new();
    let mut spec = fixture.spec("t");
    spec.buffer_bytes = 1 << 60;
    let refusal = fixture.targets.inspect(&spec).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::Limit);
    assert!(refusal.text.contains("of memory are available"), "{}", refusal.text);
    spec = fixture.spec("t");
    spec.threads = u32::MAX;
    let refusal = fixture.targets.inspect(&spec).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::Limit);
    assert!(refusal.text.contains("LimitNOFILE="), "{}", refusal.text);
}

#[test]
fn roots_that_can_not_be_used() {
    let new = |root: &str, local| {
        Targets::new(&[root.into()], vec![], local, Host::default())
            .map(|_| ())
            .map_err(|e| e.to_string())
    };
    assert!(new("/no/such/root", true).unwrap_err().contains("/no/such/root can't be opened"));
    assert!(new("relative", true).unwrap_err().contains("absolute"));
    assert!(new("/tmp/../tmp", true).unwrap_err().contains("`..`"));
    let text = new("/", false).unwrap_err();
    assert!(text.contains("allow_local = true") && text.contains("--allow-local"), "{text}");
    // /proc is a mount of its own on every Linux.
    assert_eq!(new("/proc", false), Ok(()));
    assert!(Targets::new(&[], vec![], true, Host::default()).is_err());
}

#[test]
fn a_read_only_file_system_is_named() {
    let targets = Targets::new(&["/proc".into()], vec![], false, Host::default()).unwrap();
    let fixture = Fixture::new();
    let mut spec = fixture.spec("t");
    spec.bytes = 0;
    spec.files = 0;
    spec.dir.path = "/proc/iofleet".to_owned();
    // Nothing can be made in /proc, by whatever error that says so.
    assert!(targets.inspect(&spec).is_err());
    assert!(!Path::new("/proc/iofleet").exists());
}

#[test]
fn direct_io_is_asked_for_or_tried() {
    // A directory of the build's own lies on a disk's file system more often than /tmp does.
    let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let roots = [dir.path().to_owned()];
    let targets = Targets::new(&roots, vec![], true, Host::default()).unwrap();
    let fixture = Fixture { dir, targets: Arc::new(targets) };
    let mut spec = fixture.spec("t");
    spec.direct = true;
    spec.direct_blocks = vec![4096, 1 << 20];
    let facts = match fixture.targets.inspect(&spec) {
        Ok(facts) => facts,
        Err(refusal) => {
            assert!(refusal.text.contains("set direct = false"), "{}", refusal.text);
            return;
        }
    };
    let alignment = facts.alignment.unwrap();
    assert!(alignment.offset.is_power_of_two() && alignment.memory.is_power_of_two());
    let asked = fixture.targets.memory_alignment(&spec.dir);
    assert_eq!(asked, alignment.memory as usize);
    // Only the mark is left: the scratch file is gone.
    let dataset = fixture.dir.path().join("t/iofleet-d1");
    assert_eq!(fs::read_dir(dataset).unwrap().count(), 1);
    if alignment.offset > 1 {
        spec.direct_blocks = vec![u64::from(alignment.offset) + 1];
        let text = fixture.targets.inspect(&spec).unwrap_err().text;
        let odd = format!("a block of {} B", alignment.offset + 1);
        let right = format!("a multiple of {} B", alignment.offset);
        assert!(text.contains(&odd) && text.contains(&right), "{text}");
    }
}

/// A hole punched behind the manifest's back is found, and named with its offset; with `allow_holes`
/// it is counted, and of a plan that writes nothing is asked.
#[test]
fn a_hole_in_what_was_written_is_found() {
    use rustix::fs::{FallocateFlags, fallocate};
    const LENGTH: u64 = 256 << 10;
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let targets = Targets::new(&[dir.path().to_owned()], vec![], true, Host::default()).unwrap();
    let fixture = Fixture { dir, targets: Arc::new(targets) };
    let files = [("f0", LENGTH), ("f1", LENGTH)];
    let look = |op| fixture.targets.look_for_holes(&fixture.plan(op, false, &files));
    fixture.targets.inspect(&fixture.spec("t")).unwrap();
    let at = |name: &str| fixture.dir.path().join("t/iofleet-d1").join(name);
    for (name, length) in files {
        fs::write(at(name), vec![1; usize::try_from(length).unwrap()]).unwrap();
    }
    assert_eq!(look(OpKind::Read), Ok(Some(HoleCheck::default())));
    let file = fs::OpenOptions::new().write(true).open(at("f1")).unwrap();
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(&file, flags, 64 << 10, 64 << 10).unwrap();
    let text = look(OpKind::Read).unwrap_err().text;
    assert!(text.contains("f1 has a hole at offset 65536"), "{text}");
    assert_eq!(look(OpKind::Write), Ok(None));
    let allowing = TargetSpec { allow_holes: true, ..fixture.spec("t") };
    fixture.targets.inspect(&allowing).unwrap();
    let found = look(OpKind::Read).unwrap().unwrap();
    assert_eq!((found.blind, found.files), (false, 1));
    assert!(found.first.unwrap().ends_with("f1 at offset 65536"));
}
