//! The cells of one engine in one place as one campaign, with what the place saw of it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, UNIX_EPOCH},
};

use iofleet_shared::clock::{monotonic_ns, wall};
use serde_json::Value;

use crate::{
    check,
    observer::{Arrival, Observer},
    support::{Daemon, Run, Scratch, on, run, text, worker_binary},
    table::{Cell, PART_BYTES, THREADS, TREE_FILE_BYTES, common, legal},
};

/// Layouts that need no device.
pub(crate) const ON_FILES: [&str; 5] =
    ["file-per-thread", "shared-file", "shared-strided", "tree", "file-list"];
/// Nothing arrives so shortly before a common start, and starts are told in whole ms.
const BEFORE_START_NS: i128 = 2_000_000;
/// Readings of two clocks of which one at least is not put off in between.
const READINGS: u32 = 64;
/// How often a cell is tried.
const TRIES: u32 = 3;

/// What became of a campaign.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) cells: usize,
    pub(crate) faults: Vec<String>,
    /// Cells that the machine was too busy to start in time.
    late: Vec<Cell>,
}

/// Runs the cells, and those of them again that could not be started in time.
fn until_in_time(cells: Vec<Cell>, run: impl Fn(&[Cell]) -> Outcome) -> Outcome {
    let mut outcome = run(&cells);
    for _ in 0..TRIES - 1 {
        if outcome.late.is_empty() {
            break;
        }
        let late = std::mem::take(&mut outcome.late);
        let again = run(&late);
        outcome.faults.extend(again.faults);
        outcome.late = again.late;
    }
    outcome.cells = cells.len();
    let never = outcome.late.iter().map(|cell| format!("never started in time: {cell:?}"));
    outcome.faults.extend(never);
    outcome
}

/// On a file system that is mounted at `root`.
pub(crate) fn on_files(kind: &str, root: &Path, engine: &str) -> Outcome {
    until_in_time(legal(engine, &ON_FILES), |cells| {
        let scratch = Scratch::new();
        let place = root.join(engine);
        let run = local(&scratch, &place, engine, cells);
        let mut outcome = judged(&format!("{kind} {engine}"), cells, &run, |_| None);
        if outcome.late.is_empty() {
            let faults = check::sizes(engine, cells, &kept(&place.join("target")));
            outcome.faults.extend(faults.iter().map(|fault| format!("{kind} {fault}")));
        }
        let _ = fs::remove_dir_all(&place);
        outcome
    })
}

/// On the file system that counts; none where there is no FUSE.
pub(crate) fn observed(engine: &str) -> Option<Outcome> {
    Observer::mount_cached(&Scratch::in_memory().folder("tried")).ok()?;
    Some(until_in_time(legal(engine, &ON_FILES), |cells| {
        let scratch = Scratch::in_memory();
        let mount = scratch.folder("mount");
        let observer = Observer::mount_cached(&mount).unwrap();
        let run = local(&scratch, &mount.join("place"), engine, cells);
        let arrivals = observer.take_arrivals();
        let starts: Vec<i128> = run.points().iter().map(start_ns).collect();
        let seen = |at: usize| {
            // Between two points there may be an attempt that was taken back.
            let until = starts[at].saturating_add(length_ns(&run.points()[at]));
            let from = arrivals.partition_point(|arrival| i128::from(arrival.at_ns) < starts[at]);
            let end = arrivals.partition_point(|arrival| i128::from(arrival.at_ns) < until);
            Some(&arrivals[from..end.max(from)])
        };
        judged(&format!("observed {engine}"), cells, &run, seen)
    }))
}

/// On a device, by a worker that is a process of its own: it opens the device exclusively.
pub(crate) fn on_device(device: &str, engine: &str) -> Outcome {
    let scratch = Scratch::new();
    let (root, keys) = (scratch.folder("root"), scratch.keys("keys"));
    let mut command = Command::new(worker_binary());
    command.args(["--allow-device", device]).stderr(Stdio::null());
    let daemon = Daemon::start_by(command, &scratch, &root, &keys);
    until_in_time(legal(engine, &["device"]), |cells| {
        let listed = format!("devices = [\"{device}\"]\ndestroys_data = true\n");
        let file = scratch.write("cells.toml", &scenario(engine, cells, &listed));
        let more = [file.to_str().unwrap()];
        let run = run(&scratch, &on(&daemon.address, &keys, &root.join("target"), &more));
        judged(&format!("device {engine}"), cells, &run, |_| None)
    })
}

/// A campaign of a local fleet over all layouts of files, in a folder that it makes.
fn local(scratch: &Scratch, place: &Path, engine: &str, cells: &[Cell]) -> Run {
    fs::create_dir_all(place).unwrap();
    let list: Vec<PathBuf> =
        (0..THREADS).map(|number| place.join(format!("list-{number}"))).collect();
    for path in &list {
        fs::write(path, vec![0x5a; usize::try_from(PART_BYTES).unwrap()]).unwrap();
    }
    let mut listed = "keep = true\n".to_owned();
    if cells.iter().any(|cell| cell.layout == "file-list") {
        listed.push_str(&format!("files = {list:?}\ndestroys_data = true\n"));
    }
    let file = scratch.write("cells.toml", &scenario(engine, cells, &listed));
    let target = place.join("target");
    let (file, target) = (file.to_str().unwrap(), target.to_str().unwrap());
    run(scratch, &[file, "--local", &THREADS.to_string(), "--path", target])
}

fn scenario(engine: &str, cells: &[Cell], target: &str) -> String {
    let stages: String = cells.iter().map(Cell::stages).collect();
    format!("[target]\n{target}{}{stages}", common(engine))
}

/// All faults of a campaign: `seen` are the transfers of a point by its place, where they are known.
fn judged<'a>(
    name: &str,
    cells: &[Cell],
    run: &Run,
    seen: impl Fn(usize) -> Option<&'a [Arrival]>,
) -> Outcome {
    let mut outcome = Outcome { cells: cells.len(), ..Outcome::default() };
    let Some(json) = &run.json else {
        outcome.faults.push(format!("{name}: {}", text(&run.output)));
        return outcome;
    };
    let mut rest = json["points"].as_array().unwrap().as_slice();
    let mut at = 0;
    for cell in cells {
        let count = cell.stages().matches("[[stage]]").count();
        let Some((points, others)) = rest.split_at_checked(count) else {
            outcome.faults.push(format!("{name}: the campaign ended early: {}", text(&run.output)));
            break;
        };
        rest = others;
        let places = at..at + count;
        at += count;
        if points.iter().any(check::is_late) {
            outcome.late.push(cell.clone());
            continue;
        }
        for (at, point) in places.zip(points) {
            let mut faults = check::counts(cell, point);
            if let Some(arrivals) = seen(at) {
                faults.extend(check::arrivals(cell, point, arrivals));
            }
            let stage = point["stage"].as_str().unwrap();
            outcome.faults.extend(faults.iter().map(|fault| format!("{name} {stage}: {fault}")));
        }
    }
    if run.code() != 0 && outcome.faults.is_empty() && outcome.late.is_empty() {
        outcome.faults.push(format!("{name}: {}", text(&run.output)));
    }
    outcome
}

/// CLOCK_MONOTONIC of this machine shortly before a point's common start.
pub(crate) fn start_ns(point: &Value) -> i128 {
    let Some(t0) = point["t0"].as_str() else { return i128::MAX };
    let t0: jiff::Timestamp = t0.parse().unwrap();
    t0.as_nanosecond() + monotonic_less_wall_ns() - BEFORE_START_NS
}

/// The least of many differences: a thread may be put off between two readings.
fn monotonic_less_wall_ns() -> i128 {
    let difference = |_| {
        let wall_ns = wall().duration_since(UNIX_EPOCH).unwrap().as_nanos().cast_signed();
        i128::from(monotonic_ns()) - wall_ns
    };
    (0..READINGS).map(difference).min().unwrap()
}

/// How long after that all of its transfers have arrived.
pub(crate) fn length_ns(point: &Value) -> i128 {
    let ends = point["threads"].as_array().unwrap().iter().filter_map(|one| one["end_s"].as_f64());
    let length = Duration::from_secs_f64(ends.fold(0.0, f64::max));
    length.as_nanos().cast_signed() + 2 * BEFORE_START_NS
}

/// Files below the dataset's directory with their lengths.
fn kept(target: &Path) -> Vec<(String, u64)> {
    let (mut folders, mut held) = (vec![target.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let (path, facts) = (entry.path(), entry.metadata().unwrap());
            if facts.is_dir() {
                folders.push(path);
            } else if !entry.file_name().to_str().unwrap().starts_with('.') {
                let below = path.strip_prefix(target).unwrap();
                held.push((below.to_str().unwrap().to_owned(), facts.len()));
            }
        }
    }
    held
}

/// Layouts by the beginning of their words, the beginning of their files' names below the dataset's
/// directory, and the length of each.
pub(crate) const LENGTHS: [(&str, &str, u64); 3] = [
    ("file-per", "t0", PART_BYTES),
    ("shared", "shared-", THREADS * PART_BYTES),
    ("tree", "tree-", TREE_FILE_BYTES),
];
