//! Ends and edges, with real processes: a killed worker, a full target, I/O errors, a hung mount,
//! interrupts, a worker that is taken.

use std::{fs, path::Path, process::Command};

use iofleet_shared::clock::monotonic_ns;

use crate::{
    observer::{Fault, Observer},
    support::{
        Daemon, Run, Scratch, by_size, finish, host_list, on, run, skip, start, stderr, text,
        wait_for_points,
    },
};

fn interrupt(pid: u32) {
    assert!(Command::new("kill").args(["-s", "INT", &pid.to_string()]).status().unwrap().success());
}

/// Blocks of 64 KiB for so long on files of 1 MiB.
fn load(threads: &'static str, duration: &'static str) -> [&'static str; 8] {
    ["--threads", threads, "--file-size", "1 MiB", "--block", "64 KiB", "--duration", duration]
}

fn assert_empty(dir: &Path) {
    let left: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.is_empty(), "left on the target: {left:?}");
}

#[test]
fn a_killed_worker_is_named_and_the_others_figures_stand() {
    let scratch = Scratch::in_memory();
    let mount = scratch.folder("mount");
    let Ok(observer) = Observer::mount(&mount) else { return skip("no FUSE here") };
    let keys = scratch.keys("keys");
    let mut daemons: Vec<Daemon> = (0..3).map(|_| Daemon::start(&scratch, &mount, &keys)).collect();
    let running =
        start(&scratch, &on(&host_list(&daemons), &keys, &mount.join("t"), &load("3", "3 s")));
    assert!(observer.wait_for_arrivals(30), "no I/O");
    daemons[1].kill();
    let Run { output, json } = finish(running);
    let json = json.unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", text(&output));
    let dead = &json["nodes"][1]["node"];
    assert!(stderr(&output).contains(dead.as_str().unwrap()), "{}", text(&output));
    let write = &json["points"][0];
    assert_eq!(write["status"], "partial");
    assert_eq!(write["nodes"][1]["status"], "lost");
    let others: u64 = [0, 2].map(|i| write["nodes"][i]["bytes"].as_u64().unwrap()).iter().sum();
    assert!(others > 0);
    assert_eq!(write["bytes"].as_u64().unwrap(), others);
    // What the file system saw of the two that lived, in the first point.
    assert!(write["bandwidth"]["common"].as_f64().unwrap() > 0.0);
    let read = &json["points"][1];
    assert_eq!(read["status"], "partial", "later points run without it and say so");
    assert!(read["bytes"].as_u64().unwrap() > 0);
}

#[test]
fn a_full_target_keeps_the_figures_up_to_then() {
    let scratch = Scratch::in_memory();
    let mount = scratch.folder("mount");
    let Ok(observer) = Observer::mount(&mount) else { return skip("no FUSE here") };
    observer.set_fault(Some(Fault::Fail { after_bytes: 5 << 20, errno: libc::ENOSPC }));
    let run = run(
        &scratch,
        &[
            &by_size(&scratch, "8 MiB", "64 KiB"),
            "--local",
            "2",
            "--path",
            mount.join("t").to_str().unwrap(),
            "--threads",
            "2",
        ],
    );
    assert_eq!(run.code(), 5, "{}", text(&run.output));
    let write = &run.points()[0];
    assert_eq!(write["status"], "partial");
    let arrived: u64 = observer
        .arrivals()
        .iter()
        .filter(|a| a.write && a.file.starts_with('t'))
        .map(|a| a.bytes)
        .sum();
    assert_eq!(write["bytes"].as_u64().unwrap(), arrived);
    assert_eq!(write["errors"].as_u64().unwrap(), 2);
    assert_eq!(write["error_kinds"][0]["errno"], libc::ENOSPC);
    assert!(text(&run.output).contains("No space left on device"), "{}", text(&run.output));
    // The read by size would need what was not written.
    assert_eq!(run.points()[1]["status"], "skipped");
}

#[test]
fn errors_are_counted_and_the_rest_goes_on() {
    let scratch = Scratch::in_memory();
    let mount = scratch.folder("mount");
    let Ok(observer) = Observer::mount(&mount) else { return skip("no FUSE here") };
    observer.set_fault(Some(Fault::FailOne { after_bytes: 1 << 20, errno: libc::EIO }));
    let run = run(
        &scratch,
        &[&["--local", "1", "--path", mount.join("t").to_str().unwrap()], &load("2", "500 ms")[..]]
            .concat(),
    );
    assert_eq!(run.code(), 6, "{}", text(&run.output));
    let write = &run.points()[0];
    assert_eq!(write["status"], "ok");
    assert_eq!(write["errors"], 1);
    assert!(write["marks"].as_array().unwrap().iter().any(|mark| mark["code"] == "errors"));
}

#[test]
fn an_operation_that_never_returns_is_given_up() {
    let scratch = Scratch::in_memory();
    let mount = scratch.folder("mount");
    let Ok(observer) = Observer::mount(&mount) else { return skip("no FUSE here") };
    observer.set_fault(Some(Fault::Hang { after_bytes: 2 << 20 }));
    let keys = scratch.keys("keys");
    let daemon = Daemon::start(&scratch, &mount, &keys);
    let running = start(
        &scratch,
        &on(
            &daemon.address,
            &keys,
            &mount.join("t"),
            &[
                "--threads",
                "2",
                "--file-size",
                "1 MiB",
                "--block",
                "64 KiB",
                "--duration",
                "1 s",
                "--stuck-after",
                "1 s",
            ],
        ),
    );
    // Where operations hang, removal would too.
    wait_for_points(&running.1, 2);
    observer.let_go();
    let run = finish(running);
    assert_eq!(run.code(), 5, "{}", text(&run.output));
    let write = &run.points()[0];
    assert_eq!(write["status"], "partial");
    assert_eq!(write["unfinished"]["count"], 2);
    let arrived: u64 = observer.arrivals().iter().map(|arrival| arrival.bytes).sum();
    assert_eq!(write["bytes"].as_u64().unwrap(), arrived);
}

#[test]
fn an_interrupt_stores_what_there_is_and_cleans_up() {
    let scratch = Scratch::in_memory();
    let mount = scratch.folder("mount");
    let Ok(observer) = Observer::mount(&mount) else { return skip("no FUSE here") };
    let running = start(
        &scratch,
        &[&["--local", "2", "--path", mount.join("t").to_str().unwrap()], &load("2", "1 min")[..]]
            .concat(),
    );
    assert!(observer.wait_for_arrivals(50), "no I/O");
    interrupt(running.0.id());
    let run = finish(running);
    assert_eq!(run.code(), 7, "{}", text(&run.output));
    assert_eq!(run.json()["campaign"]["status"], "interrupted");
    let arrived: u64 = observer.arrivals().iter().map(|arrival| arrival.bytes).sum();
    assert_eq!(run.points()[0]["bytes"].as_u64().unwrap(), arrived);
    assert!(observer.names().is_empty(), "{:?}", observer.names());
}

#[test]
fn a_stopped_worker_removes_what_it_made() {
    let scratch = Scratch::in_memory();
    let mount = scratch.folder("mount");
    let Ok(observer) = Observer::mount(&mount) else { return skip("no FUSE here") };
    let keys = scratch.keys("keys");
    let mut daemon = Daemon::start(&scratch, &mount, &keys);
    let running =
        start(&scratch, &on(&daemon.address, &keys, &mount.join("t"), &load("2", "1 min")));
    assert!(observer.wait_for_arrivals(50), "no I/O");
    daemon.signal("TERM");
    assert!(daemon.child.wait().unwrap().success());
    let run = finish(running);
    assert_eq!(run.code(), 5, "{}", text(&run.output));
    assert!(observer.names().is_empty(), "{:?}", observer.names());
}

#[test]
fn a_second_coordinator_is_told_who_holds_the_worker() {
    let scratch = Scratch::in_memory();
    let mount = scratch.folder("mount");
    let Ok(observer) = Observer::mount(&mount) else { return skip("no FUSE here") };
    let keys = scratch.keys("keys");
    let daemon = Daemon::start(&scratch, &mount, &keys);
    let target = mount.join("t");
    let arguments = [
        "--workers",
        &daemon.address,
        "--keys",
        keys.to_str().unwrap(),
        "--path",
        target.to_str().unwrap(),
        "--threads",
        "1",
        "--file-size",
        "1 MiB",
        "--block",
        "64 KiB",
        "--duration",
        "1 min",
    ];
    let first = start(&scratch, &arguments);
    assert!(observer.wait_for_arrivals(10), "no I/O");
    let second = run(&scratch, &arguments);
    assert_eq!(second.code(), 4, "{}", text(&second.output));
    let pid = first.0.id().to_string();
    assert!(stderr(&second.output).contains(&pid), "{}", text(&second.output));
    interrupt(first.0.id());
    assert_eq!(finish(first).code(), 7);
}

#[test]
fn a_killed_coordinator_lets_the_next_one_in() {
    let scratch = Scratch::in_memory();
    let target = scratch.folder("target");
    let keys = scratch.keys("keys");
    let daemon = Daemon::start(&scratch, &target, &keys);
    let arguments = |duration: &'static str| {
        [
            "--workers",
            &daemon.address,
            "--keys",
            keys.to_str().unwrap(),
            "--path",
            target.to_str().unwrap(),
            "--threads",
            "1",
            "--file-size",
            "1 MiB",
            "--duration",
            duration,
            "--direct",
            "false",
            "--fsync",
            "none",
        ]
        .map(str::to_owned)
    };
    let long = arguments("2 s");
    let long: Vec<&str> = long.iter().map(String::as_str).collect();
    let (mut child, _) = start(&scratch, &long);
    // Files on the target tell that the point is under way.
    let end_ns = monotonic_ns() + 60_000_000_000;
    while fs::read_dir(&target).unwrap().count() == 0 && monotonic_ns() < end_ns {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let short = arguments("100 ms");
    let short: Vec<&str> = short.iter().map(String::as_str).collect();
    let mut last = run(&scratch, &short);
    let end_ns = monotonic_ns() + 60_000_000_000;
    while last.code() == 4 && monotonic_ns() < end_ns {
        assert!(stderr(&last.output).contains("held"), "{}", text(&last.output));
        last = run(&scratch, &short);
    }
    assert_eq!(last.code(), 0, "{}", text(&last.output));
    assert_empty(&target);
}
