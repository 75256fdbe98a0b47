//! Operations on names, against the tree that they leave.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::support::{
    Daemon, Scratch, finish, on, run, skip, start, text, wait_for_points, worker_binary,
};

/// What there is below a folder, but for marks.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tree {
    /// Directories whose names begin with `d`.
    dirs: u64,
    files: u64,
    /// Files whose names say that they were renamed.
    renamed: u64,
    bytes: u64,
}

fn tree(at: &Path) -> Tree {
    let mut found = Tree::default();
    let mut folders = vec![at.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            if entry.file_type().unwrap().is_dir() {
                found.dirs += u64::from(name.starts_with('d'));
                folders.push(entry.path());
            } else if !name.starts_with('.') {
                found.files += 1;
                found.renamed += u64::from(name.ends_with(".r"));
                found.bytes += entry.metadata().unwrap().len();
            }
        }
    }
    found
}

fn stages(names: &[&str]) -> String {
    names.iter().map(|name| format!("[[stage]]\nop = \"{name}\"\n")).collect()
}

/// Operations of a point, which all have a latency.
fn ops(point: &Value, op: &str) -> u64 {
    assert_eq!((&point["status"], point["errors"].as_u64()), (&Value::from("ok"), Some(0)));
    let kind = point["by_op"].as_array().unwrap().iter().find(|kind| kind["op"] == op).unwrap();
    let service = &kind["latency_ns"]["service"];
    assert_eq!(service["count"], kind["ops"], "{op}");
    assert!(kind["ops"] == 0 || service["min"].as_u64().unwrap() > 0, "{op}: {service}");
    kind["ops"].as_u64().unwrap()
}

/// Two threads with 3 directories and 5 files in each: what stands after each stage.
#[test]
fn each_stage_leaves_the_tree_that_it_says() {
    const ORDER: [&str; 8] =
        ["mkdir", "create", "stat", "open", "readdir", "rename", "unlink", "rmdir"];
    const COUNTS: [u64; 8] = [6, 30, 30, 30, 6, 30, 30, 6];
    let full = |renamed| Tree { dirs: 6, files: 30, renamed, bytes: 0 };
    let dirs = |dirs| Tree { dirs, ..Tree::default() };
    let trees = [dirs(6), full(0), full(0), full(0), full(0), full(30), dirs(6), dirs(0)];
    for (last, right) in trees.iter().enumerate() {
        let scratch = Scratch::in_memory();
        let target = scratch.folder("target");
        let text_of = format!(
            "[workload]\nlayout = \"tree\"\nthreads = 2\ndirs = 3\nfiles = 5\n{}",
            stages(&ORDER[..=last])
        );
        let file = scratch.write("names.toml", &text_of);
        let path = target.to_str().unwrap();
        let run =
            run(&scratch, &[file.to_str().unwrap(), "--local", "2", "--path", path, "--keep"]);
        assert_eq!(run.code(), 0, "{}", text(&run.output));
        assert_eq!(tree(&target), *right, "after {}", ORDER[last]);
        for (point, (op, count)) in run.points().iter().zip(ORDER.iter().zip(COUNTS)) {
            assert_eq!(ops(point, op), count, "{op}");
        }
    }
}

/// Files that are there in the end are those that were made less those that went, but for the last
/// operation of each thread: drawn when the time was over, it is done without being counted, so that
/// what is there is known.
#[test]
fn a_mix_of_names_accounts_for_every_file() {
    let scratch = Scratch::in_memory();
    let target = scratch.folder("target");
    let file = scratch.write(
        "mix.toml",
        "[workload]\nlayout = \"tree\"\nthreads = 2\ndirs = 4\nfiles = 100000\n\
         [[stage]]\nop = \"mix\"\nmix = \"create 30, stat 50, unlink 20\"\nduration = \"1 s\"\n",
    );
    let path = target.to_str().unwrap();
    let run = run(&scratch, &[file.to_str().unwrap(), "--local", "2", "--path", path, "--keep"]);
    assert_eq!(run.code(), 0, "{}", text(&run.output));
    let point = &run.points()[0];
    let [created, looked, removed] = ["create", "stat", "unlink"].map(|op| ops(point, op));
    let there = tree(&target).files;
    assert!(there.abs_diff(created - removed) <= 2, "{there}, {created} made, {removed} removed");
    let all = (created + looked + removed) as f64;
    assert!(all > 1_000.0, "{all} operations in a second");
    for (op, count, share) in
        [("create", created, 0.3), ("stat", looked, 0.5), ("unlink", removed, 0.2)]
    {
        let off = (count as f64 - all * share) / (all * share * (1.0 - share)).sqrt();
        // Where nothing is there yet, a file is made in place of what was drawn: a few times.
        assert!(off.abs() < 5.0, "{op}: {count} of {all}, off by {off} sigma");
    }
}

/// A worker that may hold 256 descriptors.
fn few_descriptors(scratch: &Scratch, root: &Path) -> (Daemon, PathBuf) {
    let keys = scratch.keys("keys");
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 256; exec \"$0\" \"$@\""]).arg(worker_binary());
    let daemon = Daemon::start_by(command, scratch, root, &keys);
    let limits = fs::read_to_string(format!("/proc/{}/limits", daemon.pid())).unwrap();
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    assert_eq!(limit.split_whitespace().collect::<Vec<_>>(), ["256", "256", "files"]);
    (daemon, keys)
}

/// A file system in memory of the test's own, so that nobody else takes inodes of it.
struct Memory(PathBuf);

impl Memory {
    /// Mounts it; none where that is not allowed.
    fn mount(at: PathBuf) -> Option<Self> {
        let kind = ["-t", "tmpfs", "-o", "nr_inodes=2m", "iofleet-test"];
        let mounted = Command::new("mount").args(kind).arg(&at).status();
        mounted.is_ok_and(|status| status.success()).then_some(Self(at))
    }

    /// Inodes that are taken.
    fn taken(&self) -> u64 {
        let stat = rustix::fs::statvfs(&self.0).unwrap();
        stat.f_files - stat.f_ffree
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn a_million_names_need_few_descriptors() {
    const NAMES: u64 = 1_000_000;
    let scratch = Scratch::in_memory();
    let target = scratch.folder("target");
    let Some(memory) = Memory::mount(target.clone()) else { return skip("tmpfs can't be mounted") };
    let (daemon, keys) = few_descriptors(&scratch, &target);
    let text_of = format!(
        "[workload]\nlayout = \"tree\"\nthreads = 2\ndirs = 500\nfiles = 1000\n{}",
        stages(&["create", "stat", "unlink"])
    );
    let file = scratch.write("million.toml", &text_of);
    let more = [file.to_str().unwrap(), "--keep"];
    let running = start(&scratch, &on(&daemon.address, &keys, &target.join("t"), &more));
    // All of them are there until the stage after the next.
    wait_for_points(&running.1, 1);
    let there = memory.taken();
    let run = finish(running);
    assert_eq!(run.code(), 0, "{}", text(&run.output));
    for (point, op) in run.points().iter().zip(["create", "stat", "unlink"]) {
        assert_eq!(ops(point, op), NAMES);
    }
    // And 1000 directories, with a few above them.
    assert!((NAMES + 1_000..NAMES + 1_020).contains(&there), "{there} inodes were taken");
    assert_eq!(tree(&target), Tree { dirs: 1_000, ..Tree::default() });
}

#[test]
fn many_small_files_need_few_descriptors() {
    let scratch = Scratch::in_memory();
    let target = scratch.folder("target");
    let (daemon, keys) = few_descriptors(&scratch, &target);
    let file = scratch.write(
        "small.toml",
        "[workload]\nlayout = \"tree\"\nthreads = 2\ndirs = 100\nfiles = 100\n\
         file_size = \"4 KiB\"\nblock = \"4 KiB\"\ndirect = false\nverify = \"all\"\n\
         [[stage]]\nop = \"write\"\n[[stage]]\nop = \"read\"\n",
    );
    let more = [file.to_str().unwrap(), "--keep"];
    let run = run(&scratch, &on(&daemon.address, &keys, &target.join("t"), &more));
    assert_eq!(run.code(), 0, "{}", text(&run.output));
    assert_eq!((ops(&run.points()[0], "write"), ops(&run.points()[1], "read")), (20_000, 20_000));
    let right = Tree { dirs: 200, files: 20_000, renamed: 0, bytes: 20_000 * 4_096 };
    assert_eq!(tree(&target), right);
    assert_eq!(run.points()[0]["files"]["count"], 20_000, "opened and closed");
}
