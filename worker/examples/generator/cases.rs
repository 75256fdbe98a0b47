//! The cases.

use std::{
    fs,
    path::{Path, PathBuf},
};

use iofleet_shared::work::{EngineKind, OpKind, Pattern};
use iofleet_worker::payload::Buffer;

use crate::{Fallible, Round, bare, crew::Task};

const MIB: u64 = 1 << 20;
/// Of the file that small blocks are read from.
const SMALL_FILE: u64 = 16 * MIB;
/// Of the file that large blocks are moved in.
const LARGE_FILE: u64 = 64 * MIB;

type Contestant = (&'static str, Box<dyn Fn() -> Fallible<Round>>);

/// A case: contestants that do the same, the last one a crew of the worker.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) title: String,
    pub(crate) bound: &'static str,
    pub(crate) contestants: Vec<Contestant>,
}

/// All of them, on files in `dir`, which they make.
pub(crate) fn all(dir: &Path) -> Fallible<Vec<Case>> {
    let path = dir.join("iofleet-generator");
    let content = Buffer::seeded(usize::try_from(LARGE_FILE)?, 1, 1)?;
    fs::write(&path, content.bytes())?;
    Ok(vec![
        null(&path),
        sync_reads(&path, "sync-1", 1, 400_000),
        sync_reads(&path, "sync-2", 2, 300_000),
        sync_reads(&path, "sync-256", 256, 3_000),
        large_reads(&path),
        large_writes(&path),
    ])
}

fn task(op: OpKind, pattern: Pattern, block: u64, threads: u32, operations: u64) -> Task {
    Task {
        op,
        engine: EngineKind::Sync,
        depth: 1,
        pattern,
        block,
        bytes: if block < MIB { SMALL_FILE } else { LARGE_FILE },
        direct: false,
        threads,
        operations,
    }
}

fn contestant(name: &'static str, run: impl Fn() -> Fallible<Round> + 'static) -> Contestant {
    (name, Box::new(run))
}

fn bare_loop(name: &'static str, threads: u32, operations: u64, body: bare::Body) -> Contestant {
    contestant(name, move || bare::run(threads, u64::from(threads) * operations, &body))
}

fn crew(task: Task, path: PathBuf) -> Contestant {
    contestant("iofleet", move || task.run(&path))
}

fn null(path: &Path) -> Case {
    let operations = 20_000_000;
    let mut task = task(OpKind::Read, Pattern::Random, 4_096, 1, operations);
    task.engine = EngineKind::Null;
    // By size a thread does its blocks once: enough of them.
    task.bytes = operations * 4_096;
    Case {
        name: "null",
        title: "the engine that does nothing, 4 KiB random, 1 thread".to_owned(),
        bound: "at most 12 ns beyond its two clock readings",
        contestants: vec![
            bare_loop("two clock readings", 1, operations, bare::clock_readings(operations)),
            crew(task, path.to_owned()),
        ],
    }
}

fn sync_reads(path: &Path, name: &'static str, threads: u32, operations: u64) -> Case {
    let task = task(OpKind::Read, Pattern::Random, 4_096, threads, operations);
    let bare = |clocked| bare::random_reads(path, 4_096, SMALL_FILE, operations, clocked);
    Case {
        name,
        title: format!("4 KiB random sync reads, {threads} threads"),
        bound: "user at most 100 ns; rate at least 0.98 of the bare loop's, 0.97 with 256 threads",
        contestants: vec![
            bare_loop("bare", threads, operations, bare(false)),
            bare_loop("bare, 2 clock readings", threads, operations, bare(true)),
            crew(task, path.to_owned()),
        ],
    }
}

fn large_reads(path: &Path) -> Case {
    let operations = 2_000;
    let task = task(OpKind::Read, Pattern::Sequential, MIB, 2, operations);
    Case {
        name: "large-reads",
        title: "1 MiB sequential reads, 2 threads".to_owned(),
        bound: "rate at least 0.98 of the bare loop's",
        contestants: vec![
            bare_loop(
                "bare",
                2,
                operations,
                bare::sequential_reads(path, 1 << 20, LARGE_FILE, operations),
            ),
            crew(task, path.to_owned()),
        ],
    }
}

fn large_writes(path: &Path) -> Case {
    let operations = 1_000;
    let task = task(OpKind::Write, Pattern::Sequential, MIB, 2, operations);
    Case {
        name: "large-writes",
        title: "1 MiB sequential writes of fresh incompressible data, 2 threads".to_owned(),
        bound: "user at most 40,000 ns",
        contestants: vec![
            bare_loop(
                "bare, the same block again",
                2,
                operations,
                bare::sequential_writes(path, 1 << 20, LARGE_FILE, operations),
            ),
            crew(task, path.to_owned()),
        ],
    }
}
