//! Bad input: what it gets, with its exit code, before any I/O.

use std::{fs, os::unix::fs::symlink};

use crate::support::{Daemon, Scratch, iofleet, run, stderr, text};

/// Runs with these arguments on a local worker and asserts the code and words of the refusal.
fn refused(scratch: &Scratch, arguments: &[&str], code: i32, words: &[&str]) {
    let run = run(scratch, arguments);
    assert_eq!(run.code(), code, "{arguments:?}\n{}", text(&run.output));
    // Long messages are wrapped and framed for people.
    let said: String = stderr(&run.output)
        .replace(['│', '·', '╭', '╰', '─'], " ")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    for word in words {
        assert!(said.contains(word), "{arguments:?}: no {word:?} in:\n{}", text(&run.output));
    }
}

fn local<'a>(path: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [
        &[
            "--local",
            "1",
            "--path",
            path,
            "--file-size",
            "1 MiB",
            "--threads",
            "1",
            "--direct",
            "false",
        ],
        more,
    ]
    .concat()
}

#[test]
fn bare_commands_say_what_to_do() {
    let bare = iofleet().output().unwrap();
    assert_eq!(bare.status.code(), Some(2));
    assert!(stderr(&bare).contains("iofleet run --local 4"), "{}", text(&bare));
    let scratch = Scratch::new();
    refused(&scratch, &[], 2, &["--workers", "--local 4"]);
}

#[test]
fn values_that_mean_nothing_are_refused() {
    let scratch = Scratch::new();
    let target = scratch.folder("target");
    let path = target.to_str().unwrap();
    for (more, code, words) in [
        (vec!["--threads", "0"], 3, vec!["threads", "0", "65536"]),
        (vec!["--block", "4q"], 3, vec!["4q", "block"]),
        (vec!["--block", "1 KB"], 3, vec!["kB", "KiB"]),
        (vec!["--block", "300 KiB"], 3, vec!["file_size", "multiple", "300 KiB"]),
        (vec!["--duration", "5"], 3, vec!["duration", "unit"]),
        (vec!["--set", "workload.blok=1 MiB"], 3, vec!["blok", "block"]),
        (vec!["--engine", "uring"], 3, vec!["engine", "sync"]),
    ] {
        refused(&scratch, &local(path, &more), code, &words);
    }
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0, "before any I/O");
}

#[test]
fn faults_of_a_file_point_at_file_line_and_key() {
    let scratch = Scratch::new();
    let file = scratch
        .write("bad.toml", "name = \"x\"\n[workload]\nfile_size = \"1 MiB\"\nblok = \"4 KiB\"\n");
    refused(
        &scratch,
        &["--local", "1", file.to_str().unwrap()],
        3,
        &["bad.toml:4", "blok", "block"],
    );
    let by_size = scratch.write("size.toml", "[workload]\nfile_size = \"1 MiB\"\nramp = \"1 s\"\n");
    refused(
        &scratch,
        &["--local", "1", by_size.to_str().unwrap()],
        3,
        &["size.toml:3", "ramp", "duration"],
    );
    let binary = scratch.path("binary.toml");
    fs::write(&binary, [0xff, 0xfe, 0x00]).unwrap();
    refused(&scratch, &["--local", "1", binary.to_str().unwrap()], 3, &["binary.toml", "text"]);
    refused(&scratch, &["--local", "1", "/no/such.toml"], 3, &["/no/such.toml", "no such file"]);
}

#[test]
fn paths_that_are_not_ours_are_refused() {
    let scratch = Scratch::new();
    let root = scratch.folder("root");
    let outside = scratch.folder("outside");
    symlink(&outside, root.join("link")).unwrap();
    let keys = scratch.keys("keys");
    let daemon = Daemon::start(&scratch, &root, &keys);
    for (path, words) in [
        (outside.to_str().unwrap().to_owned(), vec!["root"]),
        (format!("{}/../outside", root.display()), vec![".."]),
        (format!("{}/link", root.display()), vec!["symbolic link"]),
        (format!("{}/link/deep", root.display()), vec!["symbolic link"]),
        (format!("{}/no/parent", root.display()), vec!["does not exist"]),
    ] {
        let arguments = [
            "--workers",
            &daemon.address,
            "--keys",
            keys.to_str().unwrap(),
            "--path",
            &path,
            "--threads",
            "1",
            "--file-size",
            "1 MiB",
            "--direct",
            "false",
        ];
        let code = if path.contains("..") { None } else { Some(4) };
        let run = run(&scratch, &arguments);
        if let Some(code) = code {
            assert_eq!(run.code(), code, "{path}\n{}", text(&run.output));
        }
        assert!([3, 4].contains(&run.code()), "{path}\n{}", text(&run.output));
        for word in words {
            assert!(stderr(&run.output).contains(word), "{path}: {word}\n{}", text(&run.output));
        }
    }
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    assert_eq!(fs::read_dir(&root).unwrap().count(), 1, "nothing but the link");
}

#[test]
fn peers_that_do_not_belong_are_told_so() {
    let scratch = Scratch::new();
    let root = scratch.folder("root");
    let (keys, foreign) = (scratch.keys("keys"), scratch.keys("foreign"));
    let daemon = Daemon::start(&scratch, &root, &keys);
    let target = root.join("t");
    let with = |dir: &str| {
        [
            "--workers",
            &daemon.address,
            "--path",
            target.to_str().unwrap(),
            "--threads",
            "1",
            "--file-size",
            "1 MiB",
            "--direct",
            "false",
            "--keys",
            dir,
        ]
        .map(str::to_owned)
    };
    let check = |dir: &std::path::Path, code: i32, words: &[&str]| {
        let arguments = with(dir.to_str().unwrap());
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        refused(&scratch, &arguments, code, words);
    };
    check(&foreign, 4, &["authority"]);
    check(&scratch.path("none"), 1, &["iofleet keys init"]);
    // A worker's key in the place of the coordinator's.
    let posing = scratch.folder("posing");
    fs::copy(keys.join("authority.pem"), posing.join("authority.pem")).unwrap();
    fs::copy(keys.join("worker.pem"), posing.join("coordinator.pem")).unwrap();
    fs::copy(keys.join("worker.key"), posing.join("coordinator.key")).unwrap();
    check(&posing, 1, &["coordinator", "worker"]);
    assert_eq!(fs::read_dir(&root).unwrap().count(), 0, "nobody got anything");
}

#[test]
fn what_cannot_be_reached_or_written_is_named() {
    let scratch = Scratch::new();
    let keys = scratch.keys("keys");
    let keys = keys.to_str().unwrap();
    let nobody = [
        "--workers",
        "127.0.0.1:9",
        "--keys",
        keys,
        "--path",
        "/mnt/x",
        "--threads",
        "1",
        "--file-size",
        "1 MiB",
    ];
    refused(&scratch, &nobody, 4, &["127.0.0.1", "9", "iofleet-worker"]);
    let target = scratch.folder("target");
    let path = target.to_str().unwrap();
    for (flag, file) in [("--json", "/no/such/folder/x.json"), ("--store", "/proc/x.sqlite")] {
        let output = iofleet().arg("run").args(local(path, &[flag, file])).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        assert!(stderr(&output).contains(file), "{}", text(&output));
    }
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0, "before any I/O");
}

/// A result takes the place of nothing but a result, and one that can't be shown is a fault.
#[test]
fn results_destroy_nothing_and_are_not_lost_silently() {
    let scratch = Scratch::new();
    let store = scratch.path("store.sqlite");
    let arguments = ["run", "--local", "1", "--threads", "1", "--duration", "50 ms"];
    let run = |json: &str| {
        iofleet()
            .args(arguments)
            .args(["--json", json, "--store"])
            .arg(&store)
            .current_dir(scratch.folder("work"))
            .output()
            .unwrap()
    };
    assert!(run(scratch.path("result.json").to_str().unwrap()).status.success());
    let before = fs::read(&store).unwrap();
    let output = run(store.to_str().unwrap());
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(stderr(&output).contains("no result of iofleet"), "{}", text(&output));
    assert_eq!(fs::read(&store).unwrap(), before);
    let full = iofleet()
        .args(arguments)
        .args(["--json", "-", "--store"])
        .arg(&store)
        .current_dir(scratch.folder("work"))
        .stdout(fs::OpenOptions::new().write(true).open("/dev/full").unwrap())
        .output()
        .unwrap();
    assert_eq!(full.status.code(), Some(1), "{}", text(&full));
    assert!(stderr(&full).contains("standard output"), "{}", text(&full));
}

#[test]
fn a_full_or_read_only_target_is_refused_before_any_io() {
    let scratch = Scratch::new();
    let target = scratch.folder("target");
    let size = [
        "--local",
        "1",
        "--path",
        target.to_str().unwrap(),
        "--file-size",
        "8192 TiB",
        "--threads",
        "1",
    ];
    refused(&scratch, &size, 4, &["free"]);
    refused(&scratch, &local("/proc/iofleet", &[]), 4, &["/proc"]);
}
