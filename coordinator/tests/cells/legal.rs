//! Every legal cell runs: on ext4, on XFS with sectors of 4 KiB, on the file system that counts,
//! and on a loop device.

use std::{collections::VecDeque, path::PathBuf, sync::Mutex};

use crate::{
    campaign::{Outcome, observed, on_device, on_files},
    disks::{Disk, Mounted},
    support::{Scratch, skip},
    table::cells,
};

/// Campaigns at the same time: they are bound by the lengths of their stages.
const AT_ONCE: usize = 4;

#[derive(Debug)]
enum Job {
    Files { kind: &'static str, root: PathBuf, engine: String },
    Observed { engine: String },
    Device { device: String, engine: String },
}

impl Job {
    fn run(&self) -> Option<Outcome> {
        match self {
            Self::Files { kind, root, engine } => Some(on_files(kind, root, engine)),
            Self::Observed { engine } => observed(engine),
            Self::Device { device, engine } => Some(on_device(device, engine)),
        }
    }
}

fn engines() -> Vec<String> {
    let mut engines: Vec<String> = cells().into_iter().map(|cell| cell.engine).collect();
    engines.dedup();
    engines
}

#[test]
fn every_legal_cell_runs() {
    let scratch = Scratch::new();
    let (mut mounts, mut disks) = (Vec::new(), Vec::new());
    let mut jobs: VecDeque<Job> = VecDeque::new();
    for kind in ["ext4", "xfs"] {
        match Mounted::new(kind, &scratch.folder(kind)) {
            Ok(mounted) => {
                let root = mounted.at.clone();
                jobs.extend(engines().into_iter().map(|engine| Job::Files {
                    kind,
                    root: root.clone(),
                    engine,
                }));
                mounts.push(mounted);
            }
            Err(why) => skip(&format!("{kind}: {why}")),
        }
    }
    jobs.extend(engines().into_iter().map(|engine| Job::Observed { engine }));
    for engine in engines() {
        match Disk::new(&scratch.path(&format!("{engine}.img")), 4096) {
            Ok(disk) => {
                jobs.push_back(Job::Device { device: disk.text().to_owned(), engine });
                disks.push(disk);
            }
            Err(why) => skip(&format!("device: {why}")),
        }
    }
    let (jobs, outcomes) = (Mutex::new(jobs), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(job) = { jobs.lock().unwrap().pop_front() } {
                    let outcome = job.run();
                    outcomes.lock().unwrap().push((job, outcome));
                }
            });
        }
    });
    let (mut ran, mut faults) = (0, Vec::new());
    for (job, outcome) in outcomes.into_inner().unwrap() {
        let Some(outcome) = outcome else {
            skip("no FUSE here");
            continue;
        };
        println!("{} cells: {job:?}", outcome.cells);
        ran += outcome.cells;
        faults.extend(outcome.faults);
    }
    println!("{ran} cells ran");
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}
