//! Runs that go well, held against numbers that are not ours.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Command, Stdio},
};

use iofleet_shared::units;
use serde_json::Value;

use crate::{
    observer::{Arrival, Observer},
    support::{Daemon, Scratch, by_size, finish, host_list, iofleet, on, run, skip, start, text},
};

/// Files of a dataset that was kept, by name.
fn kept_files(target: &Path) -> BTreeMap<String, u64> {
    let datasets: Vec<_> = fs::read_dir(target).unwrap().map(Result::unwrap).collect();
    assert_eq!(datasets.len(), 1, "one dataset");
    fs::read_dir(datasets[0].path())
        .unwrap()
        .map(Result::unwrap)
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().len()))
        .filter(|(name, _)| !name.starts_with('.'))
        .collect()
}

fn sum(points: &[Value], key: &str) -> u64 {
    points.iter().map(|value| value[key].as_u64().unwrap()).sum()
}

#[test]
fn bytes_are_what_the_files_hold() {
    let scratch = Scratch::new();
    let target = scratch.folder("target");
    let path = target.to_str().unwrap();
    let run = run(
        &scratch,
        &[
            &by_size(&scratch, "4 MiB", "256 KiB"),
            "--local",
            "2",
            "--path",
            path,
            "--threads",
            "3",
            "--keep",
        ],
    );
    assert_eq!(run.code(), 0, "{}", text(&run.output));
    let points = run.points();
    assert_eq!(points.len(), 2);
    let files = kept_files(&target);
    assert_eq!(files.len(), 3);
    let held: u64 = files.values().sum();
    assert_eq!(held, 3 * (4 << 20));
    for point in points {
        assert_eq!(point["status"], "ok", "{point}");
        assert_eq!(point["bytes"].as_u64().unwrap(), held);
        assert_eq!(point["ops"].as_u64().unwrap(), 3 * 16);
        assert_eq!(sum(point["nodes"].as_array().unwrap(), "bytes"), held);
        assert_eq!(sum(point["intervals"].as_array().unwrap(), "bytes"), held);
        assert_eq!(sum(point["threads"].as_array().unwrap(), "bytes"), held);
        assert_eq!(point["latency_ns"]["service"]["count"].as_u64().unwrap(), 48);
    }
    // Thread i is on node i mod N.
    let nodes = points[0]["nodes"].as_array().unwrap();
    assert_eq!(nodes[0]["bytes"].as_u64().unwrap(), 2 * (4 << 20));
    assert_eq!(nodes[1]["bytes"].as_u64().unwrap(), 4 << 20);
}

#[test]
fn a_shared_file_is_written_whole() {
    let scratch = Scratch::new();
    let target = scratch.folder("target");
    let run = run(
        &scratch,
        &[
            &by_size(&scratch, "10 MiB", "1 MiB"),
            "--local",
            "2",
            "--path",
            target.to_str().unwrap(),
            "--threads",
            "3",
            "--layout",
            "shared-file",
            "--keep",
            "--pattern",
            "random-once",
        ],
    );
    assert_eq!(run.code(), 0, "{}", text(&run.output));
    assert_eq!(kept_files(&target).values().copied().collect::<Vec<_>>(), [10 << 20]);
    for point in run.points() {
        assert_eq!(point["bytes"].as_u64().unwrap(), 10 << 20);
        assert_eq!(point["bytes_touched"].as_u64().unwrap(), 10 << 20);
    }
}

#[test]
fn nothing_is_left_behind() {
    let scratch = Scratch::new();
    let target = scratch.folder("target");
    let run = run(
        &scratch,
        &[
            "--local",
            "3",
            "--path",
            target.to_str().unwrap(),
            "--threads",
            "1,4",
            "--file-size",
            "1 MiB",
            "--direct",
            "false",
        ],
    );
    assert_eq!(run.code(), 0, "{}", text(&run.output));
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
    // Without a path: a fresh folder of its own, which goes too.
    let output = iofleet()
        .args([
            "run",
            "--local",
            "1",
            "--file-size",
            "1 MiB",
            "--threads",
            "1",
            "--direct",
            "false",
        ])
        .arg("--store")
        .arg(scratch.path("store.sqlite"))
        .current_dir(scratch.folder("work"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert_eq!(fs::read_dir(scratch.path("work")).unwrap().count(), 0);
}

#[test]
fn plan_says_what_the_run_does() {
    let scratch = Scratch::new();
    let scenario = scratch.write(
        "s.toml",
        "[workload]\nfile_size = \"3 MiB\"\nblock = \"64 KiB\"\ndirect = false\n\
         [sweep]\nthreads = [1, 3]\n[[stage]]\nop = \"write\"\n[[stage]]\nop = \"read\"\n",
    );
    let scenario = scenario.to_str().unwrap();
    let plan = iofleet().args(["plan", scenario, "--local", "2"]).output().unwrap();
    assert!(plan.status.success(), "{}", text(&plan));
    let run = run(&scratch, &[scenario, "--local", "2"]);
    assert_eq!(run.code(), 0, "{}", text(&run.output));
    let bytes: u64 = sum(run.points(), "bytes");
    let said = String::from_utf8(plan.stdout).unwrap();
    let written: u64 = (1 + 3) * (3 << 20);
    assert_eq!(bytes, 2 * written);
    let totals = format!(
        "12 MiB ({} bytes) written, 12 MiB ({} bytes) read, {} operations",
        units::format_count(written),
        units::format_count(written),
        units::format_count(sum(run.points(), "ops")),
    );
    assert!(said.contains(&totals), "the plan does not say {totals}:\n{said}");
}

#[test]
fn show_gives_the_same_json() {
    let scratch = Scratch::new();
    let run = run(
        &scratch,
        &["--local", "1", "--threads", "1,2", "--file-size", "1 MiB", "--direct", "false"],
    );
    assert_eq!(run.code(), 0, "{}", text(&run.output));
    let store = scratch.path("store.sqlite");
    let show = iofleet().args(["show", "last", "--json", "--store"]).arg(&store).output().unwrap();
    assert!(show.status.success(), "{}", text(&show));
    let shown: Value = serde_json::from_slice(&show.stdout).unwrap();
    assert_eq!(&shown, run.json());
    let list = iofleet().arg("list").arg("--store").arg(&store).output().unwrap();
    let id = run.json()["campaign"]["id"].as_str().unwrap();
    assert!(String::from_utf8_lossy(&list.stdout).contains(id), "{}", text(&list));
}

#[test]
fn json_to_standard_output_stands_alone() {
    let scratch = Scratch::new();
    let output = iofleet()
        .args([
            "run",
            "--local",
            "1",
            "--threads",
            "1",
            "--file-size",
            "1 MiB",
            "--direct",
            "false",
        ])
        .args(["--json", "-", "--store"])
        .arg(scratch.path("store.sqlite"))
        .current_dir(scratch.folder("work"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["schema"], "iofleet.result/1");
}

/// The schema in docs/ holds for what the command writes, and a plain write point has all figures.
#[test]
fn output_fits_the_schema() {
    let scratch = Scratch::in_memory();
    let target = scratch.folder("target");
    let run = run(
        &scratch,
        &[
            "--local",
            "2",
            "--path",
            target.to_str().unwrap(),
            "--threads",
            "4",
            "--file-size",
            "1 MiB",
            "--block",
            "64 KiB",
            "--duration",
            "500 ms",
            "--direct",
            "false",
            "--set",
            "stage.write.fsync=each",
        ],
    );
    assert_eq!(run.code(), 0, "{}", text(&run.output));
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/result.schema.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let faults: Vec<String> = validator.iter_errors(run.json()).map(|e| e.to_string()).collect();
    assert!(faults.is_empty(), "{faults:?}");
    let point = &run.points()[0];
    for figure in ["common", "span", "thread_sum", "first_done", "last_done"] {
        assert!(point["bandwidth"][figure].as_f64().unwrap() > 0.0, "{figure}");
        assert!(point["iops"][figure].as_f64().unwrap() > 0.0, "{figure}");
    }
    for (key, value) in point.as_object().unwrap() {
        let may_be_null =
            ["verdict", "steady", "syncfs_s", "fsync_s", "why", "files", "offered", "verification"]
                .contains(&key.as_str());
        assert!(may_be_null || !value.is_null(), "{key} is null");
    }
}

fn has_time_namespaces() -> bool {
    let mut tried = Command::new("unshare");
    tried
        .args(["--time", "--monotonic", "5", "--fork", "true"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Four workers with four threads each, their monotonic clocks minutes apart: seen by the file
/// system they write to, their first transfers lie within what the result reports.
#[test]
fn starts_as_the_file_system_sees_them() {
    if !has_time_namespaces() {
        return skip("no time namespaces here");
    }
    let scratch = Scratch::in_memory();
    let mount = scratch.folder("mount");
    let Ok(observer) = Observer::mount(&mount) else { return skip("no FUSE here") };
    let keys = scratch.keys("keys");
    let shifts = [0_i64, 300, -20, 7_200];
    let daemons: Vec<Daemon> = shifts
        .iter()
        .map(|shift| {
            let mut command = Command::new("unshare");
            command.args(["--time", "--monotonic", &shift.to_string(), "--fork", "--kill-child"]);
            command.arg(crate::support::worker_binary());
            Daemon::start_by(command, &scratch, &mount, &keys)
        })
        .collect();
    let run = run(
        &scratch,
        &on(
            &host_list(&daemons),
            &keys,
            &mount.join("t"),
            &[
                "--threads",
                "16",
                "--file-size",
                "1 MiB",
                "--block",
                "4 KiB",
                "--duration",
                "1 s",
                "--set",
                "stage.write.op=write",
            ],
        ),
    );
    assert_eq!(run.code(), 0, "{}", text(&run.output));
    let point = &run.points()[0];
    // The nodes' clocks, as reported, against the shifts that were injected.
    for (node, shift) in run.json()["nodes"].as_array().unwrap().iter().zip(shifts) {
        let offset = node["clock"]["offset_ns"].as_i64().unwrap();
        let uncertainty = node["clock"]["uncertainty_ns"].as_i64().unwrap();
        assert!(uncertainty < 1_000_000, "{node}");
        assert!((offset - shift * 1_000_000_000).abs() <= uncertainty, "{node} against {shift} s");
    }
    let mut firsts: BTreeMap<String, u64> = BTreeMap::new();
    let mut bytes = 0;
    for Arrival { at_ns, file, write, bytes: moved, .. } in observer.arrivals() {
        if write && file.starts_with('t') {
            firsts.entry(file).or_insert(at_ns);
            bytes += moved;
        }
    }
    assert_eq!(firsts.len(), 16);
    assert_eq!(bytes, point["bytes"].as_u64().unwrap());
    let seen = firsts.values().max().unwrap() - firsts.values().min().unwrap();
    let reported = point["start_skew_ns"].as_u64().unwrap();
    println!(
        "first transfers: {seen} ns apart as the file system saw them, {reported} ns as reported"
    );
}

/// Payload is what the kernel counted for each I/O thread. The threads are caught in their fsync,
/// when all of their writes are done.
#[test]
fn bytes_are_the_threads_own_wchar() {
    let scratch = Scratch::in_memory();
    let mount = scratch.folder("mount");
    let Ok(observer) = Observer::mount(&mount) else { return skip("no FUSE here") };
    observer.hold_fsync();
    let keys = scratch.keys("keys");
    let daemon = Daemon::start(&scratch, &mount, &keys);
    let running = start(
        &scratch,
        &on(
            &daemon.address,
            &keys,
            &mount.join("t"),
            &["--threads", "4", "--file-size", "1 MiB", "--block", "4 KiB", "--duration", "300 ms"],
        ),
    );
    assert!(observer.wait_for_fsyncs(4), "no fsync");
    let mut written: Vec<u64> = Vec::new();
    for task in fs::read_dir(format!("/proc/{}/task", daemon.pid())).unwrap() {
        let task = task.unwrap().path();
        if !fs::read_to_string(task.join("comm")).unwrap().starts_with("io-") {
            continue;
        }
        let io = fs::read_to_string(task.join("io")).unwrap();
        let wchar = io.lines().find_map(|line| line.strip_prefix("wchar: ")).unwrap();
        written.push(wchar.parse().unwrap());
    }
    observer.release_fsync();
    let run = finish(running);
    assert_eq!(run.code(), 0, "{}", text(&run.output));
    let threads = run.points()[0]["threads"].as_array().unwrap();
    let mut counted: Vec<u64> =
        threads.iter().map(|thread| thread["bytes"].as_u64().unwrap()).collect();
    counted.sort_unstable();
    written.sort_unstable();
    assert_eq!(counted, written);
}
