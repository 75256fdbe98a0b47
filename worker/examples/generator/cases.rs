//! The cases.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use iofleet_shared::work::{EngineKind, OpKind, OpShare, Pattern};
use iofleet_worker::payload::Buffer;

use crate::{
    Fallible, bare,
    crew::Task,
    names::Tree,
    peers,
    queues::{self, DEPTH},
    usage::Round,
};

const MIB: u64 = 1 << 20;
/// Of the file that small blocks are read from.
const SMALL_FILE: u64 = 16 * MIB;
/// Of the file that large blocks are moved in.
const LARGE_FILE: u64 = 64 * MIB;
/// Of the file that nothing is done to.
const NULL_FILE: u64 = 4_096 * MIB;
/// Rounds that others take part in: they take long to start.
const PEER_ROUNDS: usize = 7;
/// Name of the worker's crews.
pub(crate) const OURS: &str = "iofleet";

/// One that takes part in a case.
pub(crate) struct Contestant {
    pub(crate) name: &'static str,
    /// Rounds that it takes part in at most.
    pub(crate) rounds_max: usize,
    /// A round: of each part.
    pub(crate) run: Box<dyn Fn() -> Fallible<Vec<Round>>>,
}

/// What a crew has to reach.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bound {
    /// ns per operation.
    UserAtMost(f64),
    /// Over the first contestant's.
    RateAtLeast(f64),
    /// Over the first contestant's.
    CpuAtMost(f64),
    /// ns of CPU per operation more than the first contestant.
    BeyondAtMost(f64),
}

/// A case: contestants that do the same, the first one a bare loop.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// What is measured one after the other in a round.
    pub(crate) parts: &'static [&'static str],
    pub(crate) bounds: Vec<Bound>,
    pub(crate) contestants: Vec<Contestant>,
}

/// The files that cases work on, which go in the end.
pub(crate) struct Files {
    dir: PathBuf,
    memory: PathBuf,
    disk: PathBuf,
}

impl Files {
    pub(crate) fn make(dir: &Path, disk: &Path) -> Fallible<Self> {
        let name = format!("iofleet-generator-{}", std::process::id());
        let (memory, disk) = (dir.join(&name), disk.join(format!("{name}-disk")));
        let files = Self { dir: dir.to_owned(), memory, disk };
        let content = Buffer::seeded(usize::try_from(LARGE_FILE)?, 1, 1)?;
        for path in [&files.memory, &files.disk] {
            fs::write(path, content.bytes())?;
            File::open(path)?.sync_all()?;
        }
        Ok(files)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        for path in [&self.memory, &self.disk] {
            // It may be gone already.
            let _ = fs::remove_file(path);
        }
    }
}

/// All of them.
pub(crate) fn all(files: &Files) -> Fallible<Vec<Case>> {
    let Files { dir, memory, disk } = files;
    let mut cases = vec![
        null("null-sequential", Pattern::Sequential, only(OpKind::Read), true),
        null("null-random", Pattern::Random, only(OpKind::Read), true),
        null("null-mix", Pattern::Random, mix(), false),
        sync_reads(memory, "sync-1", 1, 400_000, 0.98),
        sync_reads(memory, "sync-2", 2, 400_000, 0.98),
        sync_reads(memory, "sync-256", 256, 32_000, 0.97),
        queued(disk, "uring-32", EngineKind::IoUring, false, 400_000),
        queued(disk, "uring-direct", EngineKind::IoUring, true, 50_000),
        queued(disk, "libaio-32", EngineKind::Libaio, false, 400_000),
        queued(disk, "libaio-direct", EngineKind::Libaio, true, 50_000),
        large_reads(memory),
        large_writes(memory),
        names(dir),
    ];
    if !peers::has_fio() {
        let is_ours = |contestant: &Contestant| !contestant.name.starts_with("fio");
        cases.iter_mut().for_each(|case| case.contestants.retain(is_ours));
    }
    Ok(cases)
}

/// Operations of one kind.
pub(crate) fn only(op: OpKind) -> Vec<OpShare> {
    vec![OpShare { op, weight: 1 }]
}

/// 70 % reads, 30 % writes.
pub(crate) fn mix() -> Vec<OpShare> {
    vec![OpShare { op: OpKind::Write, weight: 30 }, OpShare { op: OpKind::Read, weight: 70 }]
}

fn task(ops: Vec<OpShare>, pattern: Pattern, block: u64, threads: u32, operations: u64) -> Task {
    Task {
        ops,
        engine: EngineKind::Sync,
        depth: 1,
        pattern,
        block,
        bytes: if block < MIB { SMALL_FILE } else { LARGE_FILE },
        direct: false,
        refresh: true,
        verify: false,
        generation: 1,
        threads,
        operations,
    }
}

fn contestant(name: &'static str, run: impl Fn() -> Fallible<Round> + 'static) -> Contestant {
    Contestant { name, rounds_max: usize::MAX, run: Box::new(move || Ok(vec![run()?])) }
}

fn bare_loop(name: &'static str, threads: u32, operations: u64, body: bare::Body) -> Contestant {
    contestant(name, move || bare::run(threads, u64::from(threads) * operations, &body))
}

fn crew(task: Task, path: &Path) -> Contestant {
    let path = path.to_owned();
    contestant(OURS, move || task.run(&path))
}

/// `fio` at a task.
fn fio(
    name: &'static str,
    path: &Path,
    task: &Task,
    longer: u64,
    arguments: &[&'static str],
) -> Contestant {
    let (path, arguments) = (path.to_owned(), arguments.to_vec());
    let (threads, bytes) = (task.threads, task.bytes);
    // Its times are in ms.
    let bytes_each = task.operations * task.block * longer;
    let run = move || peers::on_file(&path, threads, bytes, bytes_each, &arguments);
    Contestant { rounds_max: PEER_ROUNDS, ..contestant(name, run) }
}

fn null(name: &'static str, pattern: Pattern, ops: Vec<OpShare>, is_bound: bool) -> Case {
    let operations = 10_000_000;
    let mut task = task(ops, pattern, 4_096, 1, operations);
    (task.engine, task.bytes, task.refresh) = (EngineKind::Null, NULL_FILE, false);
    Case {
        name,
        parts: &[""],
        bounds: if is_bound { vec![Bound::BeyondAtMost(12.0)] } else { vec![] },
        contestants: vec![
            bare_loop("two clock readings", 1, operations, bare::clock_readings(operations)),
            crew(task, Path::new("/dev/null")),
        ],
    }
}

fn sync_reads(path: &Path, name: &'static str, threads: u32, ops: u64, rate: f64) -> Case {
    let task = task(only(OpKind::Read), Pattern::Random, 4_096, threads, ops);
    let bare = |clocked| bare::random_reads(path, 4_096, SMALL_FILE, ops, clocked);
    let longer = if threads > 2 { 1 } else { 5 };
    let psync = ["--ioengine=psync", "--rw=randread", "--norandommap", "--bs=4k"];
    let own_table = bare::in_own_table(&bare(false));
    Case {
        name,
        parts: &[""],
        bounds: vec![Bound::UserAtMost(100.0), Bound::RateAtLeast(rate)],
        contestants: vec![
            bare_loop("bare", threads, ops, bare(false)),
            crew(task.clone(), path),
            bare_loop("bare, 2 clock readings", threads, ops, bare(true)),
            bare_loop("bare, own descriptors", threads, ops, own_table),
            fio("fio psync", path, &task, longer, &psync),
        ],
    }
}

fn queued(path: &Path, name: &'static str, engine: EngineKind, direct: bool, ops: u64) -> Case {
    let mut task = task(only(OpKind::Read), Pattern::Random, 4_096, 1, ops);
    (task.engine, task.depth, task.direct) = (engine, DEPTH, direct);
    let uring = engine == EngineKind::IoUring;
    let body = if uring { queues::uring_reads } else { queues::aio_reads };
    let engine = if uring { "--ioengine=io_uring" } else { "--ioengine=libaio" };
    let io = if direct { "--direct=1" } else { "--direct=0" };
    let plain = [engine, io, "--iodepth=32", "--rw=randread", "--norandommap", "--bs=4k"];
    let mut tuned = plain.to_vec();
    tuned.extend(["--iodepth_batch_submit=32", "--iodepth_batch_complete_min=1"]);
    tuned.push("--iodepth_batch_complete_max=32");
    if uring {
        tuned.extend(["--registerfiles=1", "--fixedbufs=1"]);
    }
    Case {
        name,
        parts: &[""],
        bounds: if uring { vec![Bound::CpuAtMost(1.05)] } else { vec![] },
        contestants: vec![
            bare_loop("bare", 1, ops, body(path, SMALL_FILE, ops, direct)),
            crew(task.clone(), path),
            fio("fio", path, &task, 5, &plain),
            fio("fio, tuned", path, &task, 5, &tuned),
        ],
    }
}

fn large_reads(path: &Path) -> Case {
    let ops = 2_000;
    let task = task(only(OpKind::Read), Pattern::Sequential, MIB, 2, ops);
    let psync = ["--ioengine=psync", "--rw=read", "--bs=1m"];
    Case {
        name: "large-reads",
        parts: &[""],
        bounds: vec![Bound::RateAtLeast(0.98)],
        contestants: vec![
            bare_loop("bare", 2, ops, bare::sequential_reads(path, 1 << 20, LARGE_FILE, ops)),
            crew(task.clone(), path),
            fio("fio psync", path, &task, 5, &psync),
        ],
    }
}

fn large_writes(path: &Path) -> Case {
    let ops = 1_000;
    let task = task(only(OpKind::Write), Pattern::Sequential, MIB, 2, ops);
    let bare = bare::sequential_writes(path, 1 << 20, LARGE_FILE, ops);
    let psync = ["--ioengine=psync", "--rw=write", "--bs=1m", "--refill_buffers"];
    Case {
        name: "large-writes",
        parts: &[""],
        bounds: vec![Bound::UserAtMost(40_000.0)],
        contestants: vec![
            bare_loop("bare, the same block again", 2, ops, bare),
            crew(task.clone(), path),
            fio("fio psync, fresh data", path, &task, 2, &psync),
        ],
    }
}

fn names(dir: &Path) -> Case {
    let tree = Tree { threads: 2, dirs: 10, files_per_dir: 5_000 };
    let contestant = |name, rounds_max, run: fn(Tree, &Path) -> Fallible<Vec<Round>>| {
        let dir = dir.to_owned();
        Contestant { name, rounds_max, run: Box::new(move || run(tree, &dir)) }
    };
    Case {
        name: "names-",
        parts: &["create", "stat", "unlink"],
        bounds: vec![Bound::RateAtLeast(0.95)],
        contestants: vec![
            contestant("bare", usize::MAX, Tree::by_bare_loops),
            contestant(OURS, usize::MAX, Tree::by_crews),
            contestant("fio, one directory", PEER_ROUNDS, |tree, dir| peers::on_names(dir, tree)),
        ],
    }
}
