//! Where threads and buffers are while they run, as the kernel shows it; and what becomes of a
//! mapping whose file is cut off.

use std::{fs, path::Path};

use crate::{
    observer::Observer,
    support::{Daemon, Run, Scratch, finish, on, run, skip, start, stderr, text, wait_for_points},
};

/// The list of CPUs that each I/O thread may use.
fn cpus_of_io_threads(pid: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().map(|task| task.unwrap().path());
    tasks
        .filter(|task| fs::read_to_string(task.join("comm")).unwrap().starts_with("io-"))
        .map(|task| {
            let status = fs::read_to_string(task.join("status")).unwrap();
            let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
            cpus.unwrap().trim().to_owned()
        })
        .collect()
}

/// Pages of 4 KiB in mappings that are bound to node 0.
fn bound_pages(pid: u32) -> u64 {
    let maps = fs::read_to_string(format!("/proc/{pid}/numa_maps")).unwrap();
    maps.lines()
        .filter(|line| line.split_whitespace().nth(1) == Some("bind:0"))
        .filter_map(|line| line.split_whitespace().find_map(|word| word.strip_prefix("N0=")))
        .map(|pages| pages.parse::<u64>().unwrap())
        .sum()
}

/// Looks at a worker whose two threads wait in their final fsync.
fn held(keys_of: &str, look: impl FnOnce(u32)) {
    let scratch = Scratch::in_memory();
    let mount = scratch.folder("mount");
    let Ok(observer) = Observer::mount(&mount) else { return skip("no FUSE here") };
    observer.hold_fsync();
    let keys = scratch.keys("keys");
    let daemon = Daemon::start(&scratch, &mount, &keys);
    let file = scratch.write(
        "placed.toml",
        &format!(
            "[workload]\nthreads = 2\nfile_size = \"2 MiB\"\nblock = \"1 MiB\"\n{keys_of}\n\
             [[stage]]\nop = \"write\"\n"
        ),
    );
    let more = [file.to_str().unwrap()];
    let running = start(&scratch, &on(&daemon.address, &keys, &mount.join("t"), &more));
    let waits = observer.wait_for_fsyncs(2);
    if waits {
        look(daemon.pid());
    }
    observer.release_fsync();
    let run = finish(running);
    assert!(waits && run.code() == 0, "{}", text(&run.output));
}

#[test]
fn threads_run_on_the_cores_that_were_asked_for() {
    if !Path::new("/sys/devices/system/cpu/cpu1").exists() {
        return skip("one core only");
    }
    held("cores = \"1\"", |pid| assert_eq!(cpus_of_io_threads(pid), ["1", "1"]));
    held("cores = \"0-1\"", |pid| {
        let mut cpus = cpus_of_io_threads(pid);
        cpus.sort();
        assert_eq!(cpus, ["0", "1"]);
    });
}

#[test]
fn threads_and_buffers_are_on_the_node_that_was_asked_for() {
    if !Path::new("/proc/self/numa_maps").exists() {
        return skip("a kernel without NUMA");
    }
    let node = fs::read_to_string("/sys/devices/system/node/node0/cpulist").unwrap();
    held("numa_nodes = \"0\"", |pid| {
        assert_eq!(cpus_of_io_threads(pid), [node.trim(), node.trim()]);
        // A buffer of 1 MiB for each thread.
        let pages = bound_pages(pid);
        assert!(pages >= 2 * 256, "{pages} pages are bound");
    });
    held("", |pid| assert_eq!(bound_pages(pid), 0, "the test sees what is not bound"));
}

#[test]
fn places_that_are_not_there_are_refused_by_name() {
    let scratch = Scratch::in_memory();
    let target = scratch.folder("target");
    for (flag, words) in [("--cores", "core 4095"), ("--numa-nodes", "node 4095")] {
        let path = target.to_str().unwrap();
        let size = ["--local", "2", "--threads", "2", "--file-size", "1 MiB", "--direct", "false"];
        let run = run(&scratch, &[&size[..], &["--path", path, flag, "4095"]].concat());
        assert_eq!(run.code(), 4, "{}", text(&run.output));
        assert!(stderr(&run.output).contains(words), "{}", text(&run.output));
        assert_eq!(fs::read_dir(&target).unwrap().count(), 0, "before any I/O");
    }
}

/// A file of a mapping loses its pages under the running thread: an error of that operation, and no
/// more; the process that had it goes on.
#[test]
fn a_file_cut_off_under_its_mapping_is_an_error_that_is_counted() {
    let scratch = Scratch::in_memory();
    let root = scratch.folder("root");
    let keys = scratch.keys("keys");
    let mut daemon = Daemon::start(&scratch, &root, &keys);
    for op in ["read", "write"] {
        let file = scratch.write(
            "mapped.toml",
            &format!(
                "[workload]\nfile_size = \"1 MiB\"\nblock = \"64 KiB\"\nengine = \"mmap\"\n\
                 [[stage]]\nop = \"write\"\n[[stage]]\nop = \"{op}\"\nduration = \"1500 ms\"\n{}",
                if op == "write" { "fresh = false\n" } else { "" }
            ),
        );
        let more = [file.to_str().unwrap()];
        let target = root.join(op);
        let running = start(&scratch, &on(&daemon.address, &keys, &target, &more));
        wait_for_points(&running.1, 1);
        cut_off(daemon.pid());
        let Run { output, json } = finish(running);
        let code = output.status.code().unwrap();
        assert!([5, 6].contains(&code), "{}", text(&output));
        let point = &json.unwrap()["points"][1];
        assert!(point["ops"].as_u64().unwrap() > 0, "it was cut off before it began: {point}");
        assert!(point["errors"].as_u64().unwrap() > 0, "{point}");
        let kind = &point["error_kinds"][0];
        assert!(kind["call"].as_str().unwrap().contains("SIGBUS"), "{kind}");
        assert_eq!((&kind["op"], &kind["file"]), (&op.into(), &"t00000".into()), "{kind}");
        assert!(daemon.child.try_wait().unwrap().is_none(), "the worker is dead");
    }
    // The same process works on.
    let sizes = ["--file-size", "1 MiB", "--block", "64 KiB", "--engine", "mmap"];
    let run = run(&scratch, &on(&daemon.address, &keys, &root.join("next"), &sizes));
    assert_eq!(run.code(), 0, "{}", text(&run.output));
}

/// Cuts off the file that the worker has mapped, once a thread has taken CPU time on it.
fn cut_off(pid: u32) {
    let end = iofleet_shared::clock::monotonic_ns() + 20_000_000_000;
    while iofleet_shared::clock::monotonic_ns() < end {
        std::thread::yield_now();
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
        let mapped = maps.lines().find_map(|line| line.split_once(" /").map(|(_, path)| path));
        let mapped = maps
            .lines()
            .filter_map(|line| line.split_whitespace().last())
            .find(|path| path.ends_with("/t00000"))
            .or_else(|| mapped.filter(|path| path.ends_with("/t00000")));
        let Some(path) = mapped else { continue };
        if io_thread_ticks(pid) < 10 {
            continue;
        }
        fs::OpenOptions::new().write(true).open(path).unwrap().set_len(0).unwrap();
        return;
    }
    panic!("nothing was mapped");
}

/// Hundredths of a second that the busiest I/O thread has run for.
fn io_thread_ticks(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().filter_map(Result::ok);
    let ticks = tasks.filter_map(|task| {
        let stat = fs::read_to_string(task.path().join("stat")).ok()?;
        let (name, rest) = stat.rsplit_once(") ")?;
        // Behind the name come the state and ten numbers, then user and system time.
        let fields: Vec<&str> = rest.split(' ').collect();
        let time = |at: usize| fields.get(at)?.parse::<u64>().ok();
        name.contains("(io-").then(|| Some(time(11)? + time(12)?))?
    });
    ticks.max().unwrap_or(0)
}
