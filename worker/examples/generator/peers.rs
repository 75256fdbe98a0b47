//! `fio` at the same work, where it is installed.

use std::{fs, path::Path, process::Command};

use serde_json::Value;

use crate::{Fallible, names::Tree, usage::Round};

/// Whether there is one that is wanted.
pub(crate) fn has_fio() -> bool {
    let unwanted = std::env::var("IOFLEET_PEERS").is_ok_and(|value| value == "no");
    !unwanted && Command::new("fio").arg("--version").output().is_ok_and(|out| out.status.success())
}

/// Its I/O on a file: `arguments` beside those that all have in common.
pub(crate) fn on_file(
    path: &Path,
    threads: u32,
    bytes: u64,
    bytes_each: u64,
    arguments: &[&str],
) -> Fallible<Round> {
    let mut all = vec![
        format!("--filename={}", path.display()),
        format!("--numjobs={threads}"),
        format!("--size={bytes}"),
        format!("--io_size={bytes_each}"),
    ];
    all.extend(arguments.iter().map(|&argument| argument.to_owned()));
    run(&all)
}

/// Its engines for names, each in a directory of its own below `dir`: it makes the files that it
/// asks for or removes beforehand, all in one directory.
pub(crate) fn on_names(dir: &Path, tree: Tree) -> Fallible<Vec<Round>> {
    let top = dir.join("iofleet-generator-fio");
    let rounds = ["filecreate", "filestat", "filedelete"].map(|engine| {
        fs::create_dir_all(&top)?;
        let round = run(&[
            format!("--directory={}", top.display()),
            format!("--numjobs={}", tree.threads),
            format!("--nrfiles={}", tree.dirs * tree.files_per_dir),
            format!("--ioengine={engine}"),
            "--filesize=4k".to_owned(),
            "--openfiles=1".to_owned(),
            // In turn it looks through all of its files for each.
            "--file_service_type=sequential".to_owned(),
            "--fallocate=none".to_owned(),
            format!("--create_on_open={}", u32::from(engine == "filecreate")),
        ]);
        fs::remove_dir_all(&top)?;
        round
    });
    rounds.into_iter().collect()
}

fn run(arguments: &[String]) -> Fallible<Round> {
    let common = [
        "--name=iofleet-generator",
        "--thread",
        "--group_reporting",
        "--invalidate=0",
        "--output-format=json",
    ];
    let output = Command::new("fio").args(common).args(arguments).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("fio {arguments:?}: {said}").into());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    // Remarks may stand before it.
    let json: Value = serde_json::from_str(text.find('{').map_or("", |at| &text[at..]))?;
    let job = &json["jobs"][0];
    let number = |value: &Value| value.as_f64().ok_or("fio's report lacks a number");
    let (mut operations, mut rate) = (0.0, 0.0);
    for kind in ["read", "write"] {
        operations += number(&job[kind]["total_ios"])?;
        rate += number(&job[kind]["iops"])?;
    }
    // Shares of the sum of its threads' times, in percent of ms.
    let time = number(&job["job_runtime"])? * 1e6 / 100.0 / operations;
    let (user, system) = (number(&job["usr_cpu"])? * time, number(&job["sys_cpu"])? * time);
    Ok(Round { user, cpu: user + system, wall: 1e9 / rate })
}
