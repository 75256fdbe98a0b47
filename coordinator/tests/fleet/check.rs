//! `iofleet check` on a fleet of which four workers are not as they should be.

use std::{
    net::Ipv4Addr,
    path::Path,
    process::{Command, Output},
    thread,
};

use iofleet_shared::{
    transport::{self, Identity, Role},
    wire::{HELLO_BYTES, Hello},
};
use serde_json::Value;

use crate::support::{Daemon, Scratch, iofleet, on, run, skip, text, worker_binary};

/// A worker of another protocol: it says its hello, and nothing else is ever heard of it.
fn of_another_protocol(keys: &Path) -> String {
    let identity = Identity::load(keys, Role::Worker).unwrap();
    let (tell, address) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let endpoint = transport::listen((Ipv4Addr::LOCALHOST, 0).into(), &identity).unwrap();
            tell.send(endpoint.local_addr().unwrap().to_string()).unwrap();
            let connection = endpoint.accept().await.unwrap().await.unwrap();
            let (mut send, mut receive) = connection.accept_bi().await.unwrap();
            let mut hello = [0; HELLO_BYTES];
            receive.read_exact(&mut hello).await.unwrap();
            let ours = Hello { oldest: 77, newest: 78, build: "9.9.9".to_owned() };
            send.write_all(&ours.encode()).await.unwrap();
            connection.closed().await;
        });
    });
    address.recv().unwrap()
}

/// A worker in whose mount namespace another file system lies at the root.
fn with_mount(scratch: &Scratch, root: &Path, keys: &Path, size: &str) -> Daemon {
    let mut command = Command::new("unshare");
    let script = format!(
        "mount -t tmpfs -o size={size} other-{size} {} && exec \"$0\" \"$@\"",
        root.display()
    );
    command.args(["--mount", "--propagation", "private", "sh", "-c", &script]);
    command.arg(worker_binary());
    Daemon::start_by(command, scratch, root, keys)
}

fn may_mount() -> bool {
    let tried =
        Command::new("unshare").args(["--mount", "mount", "-t", "tmpfs", "x", "/mnt"]).output();
    tried.is_ok_and(|Output { status, .. }| status.success())
}

fn check(workers: &[&str], keys: &Path, root: &Path, scenario: &Path, more: &[&str]) -> Output {
    iofleet()
        .arg("check")
        .arg(scenario)
        .args(["--workers", &workers.join(","), "--path"])
        .arg(root.join("t"))
        .arg("--keys")
        .arg(keys)
        .args(more)
        .output()
        .unwrap()
}

#[test]
fn four_workers_that_are_not_right_are_four_findings() {
    if !may_mount() {
        return skip("no mount namespaces here");
    }
    let scratch = Scratch::in_memory();
    let root = scratch.folder("root");
    let keys = scratch.keys("keys");
    let good: Vec<Daemon> = (0..2).map(|_| Daemon::start(&scratch, &root, &keys)).collect();
    let stranger = of_another_protocol(&keys);
    let other = with_mount(&scratch, &root, &keys, "900m");
    let full = with_mount(&scratch, &root, &keys, "8m");
    let mut few = Command::new("sh");
    few.args(["-c", "ulimit -n 64; exec \"$0\" \"$@\""]).arg(worker_binary());
    let few = Daemon::start_by(few, &scratch, &root, &keys);
    let scenario = scratch.write(
        "s.toml",
        "[workload]\nthreads = 600\nfile_size = \"64 KiB\"\nblock = \"64 KiB\"\ndirect = false\n",
    );
    let fine = [&*good[0].address, &*good[1].address];
    let ready = check(&fine, &keys, &root, &scenario, &[]);
    assert_eq!(ready.status.code(), Some(0), "{}", text(&ready));
    assert!(text(&ready).contains("Ready: 2 nodes could begin."));
    let workers = [fine[0], fine[1], &*stranger, &*other.address, &*full.address, &*few.address];
    let found = check(&workers, &keys, &root, &scenario, &["--json"]);
    assert_eq!(found.status.code(), Some(4), "{}", text(&found));
    let document: Value = serde_json::from_slice(&found.stdout).unwrap();
    let findings = document["findings"].as_array().unwrap();
    let of = |finding: &Value| {
        let nodes = finding["nodes"].as_array().unwrap().len();
        let help = !finding["help"].as_str().unwrap().is_empty();
        (nodes, help, finding["what"].as_str().unwrap().to_owned())
    };
    let findings: Vec<_> = findings.iter().map(of).collect();
    assert_eq!(findings.len(), 4, "{findings:?}");
    let words = ["speaks protocol 77 to 78", "too full", "open files", "tmpfs from other-900m"];
    for ((nodes, help, what), words) in findings.iter().zip(words) {
        assert!(*nodes == 1 && *help && what.contains(words), "{words}: {findings:?}");
    }
    let left = std::fs::read_dir(&root).unwrap().count();
    assert_eq!(left, 0, "check leaves nothing");
}

/// One node has another disk where the others have the file system under test: no byte is written.
#[test]
fn another_disk_in_place_of_the_file_system_is_refused() {
    if !may_mount() {
        return skip("no mount namespaces here");
    }
    let scratch = Scratch::in_memory();
    let root = scratch.folder("root");
    let keys = scratch.keys("keys");
    let good: Vec<Daemon> = (0..2).map(|_| Daemon::start(&scratch, &root, &keys)).collect();
    let other = with_mount(&scratch, &root, &keys, "64m");
    let workers = [&*good[0].address, &*good[1].address, &*other.address].join(",");
    let load = ["--threads", "3", "--file-size", "64 KiB", "--block", "64 KiB"];
    let refused = run(&scratch, &on(&workers, &keys, &root.join("t"), &load));
    assert_eq!(refused.code(), 4, "{}", text(&refused.output));
    let said = text(&refused.output);
    assert!(said.contains(&*other.address) || said.contains("not the one of the other nodes"));
    assert!(said.contains("tmpfs from other-64m"), "{said}");
    let inside = |pid: u32| {
        let mounted = format!("/proc/{pid}/root{}", root.display());
        std::fs::read_dir(mounted).unwrap().count()
    };
    assert_eq!((inside(good[0].pid()), inside(other.pid())), (0, 0), "nothing was written or left");
}
