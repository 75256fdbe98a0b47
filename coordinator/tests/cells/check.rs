//! What a point of a cell must report, by itself and beside what arrived.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    campaign::LENGTHS,
    observer::Arrival,
    table::{BLOCK_BYTES, Cell, PART_BYTES, THREADS, TREE_FILE_BYTES},
};

/// Faults in words.
#[derive(Debug, Default)]
struct Faults(Vec<String>);

impl Faults {
    fn same<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, found: T, expected: T) {
        if found != expected {
            self.0.push(format!("{what}: {found:?}, and {expected:?} was expected"));
        }
    }

    fn holds(&mut self, what: &str, holds: bool) {
        if !holds {
            self.0.push(what.to_owned());
        }
    }
}

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or(u64::MAX)
}

fn sum(value: &Value, part: &str, key: &str) -> u64 {
    value[part].as_array().unwrap().iter().map(|one| number(one, key)).sum()
}

/// Bytes and operations of a kind.
fn of_kind(point: &Value, op: &str) -> (u64, u64) {
    let kinds = point["by_op"].as_array().unwrap();
    kinds
        .iter()
        .find(|kind| kind["op"] == op)
        .map_or((0, 0), |kind| (number(kind, "bytes"), number(kind, "ops")))
}

/// Whether a point was not begun because the machine was too busy to start it in time.
pub(crate) fn is_late(point: &Value) -> bool {
    let late = ["not ready in time", "no commit came", "the commit came"];
    point["why"].as_str().is_some_and(|why| late.iter().any(|text| why.contains(text)))
}

/// Faults of what a point reports.
pub(crate) fn counts(cell: &Cell, point: &Value) -> Vec<String> {
    let mut faults = Faults::default();
    if point["status"] != "ok" {
        return vec![format!("{}: {}", point["status"], point["why"])];
    }
    let params = &point["params"];
    let fill = point["stage"].as_str().unwrap().starts_with("fill-");
    faults.same("engine", params["engine"].as_str(), Some(&*cell.engine));
    faults.same("layout", params["layout"].as_str(), Some(&*cell.layout));
    faults.same("pattern", params["pattern"] == *cell.pattern || fill, true);
    faults.same("direct", params["direct"].as_bool(), Some(cell.direct));
    let (bytes, ops) = (number(point, "bytes"), number(point, "ops"));
    faults.same("errors", number(point, "errors"), 0);
    faults.same("short transfers", number(point, "short_transfers"), 0);
    faults.same("bytes", bytes, ops * BLOCK_BYTES);
    for part in ["nodes", "threads", "by_op", "intervals"] {
        faults.same(&format!("bytes of {part}"), sum(point, part, "bytes"), bytes);
        faults.same(&format!("ops of {part}"), sum(point, part, "ops"), ops);
    }
    faults.same("latencies", number(&point["latency_ns"]["service"], "count"), ops);
    let threads = point["threads"].as_array().unwrap();
    faults.same("threads", threads.len() as u64, THREADS);
    let (reads, writes) = (of_kind(point, "read"), of_kind(point, "write"));
    match point["op"].as_str().unwrap() {
        "write" => {
            faults.same("operations by size", ops, cell.blocks());
            let all = threads.iter().all(|thread| number(thread, "ops") == ops / THREADS);
            faults.holds("a thread did not do its share", all);
            faults.same("reads of a write stage", reads, (0, 0));
            if fill || !cell.repeats() {
                let touched = point["bytes_touched"].as_u64();
                faults.same("bytes touched", touched, Some(cell.blocks() * BLOCK_BYTES));
            }
        }
        "read" => faults.same("writes of a read stage", writes, (0, 0)),
        "mix" => {
            // Seven standard deviations of a thousand draws.
            let few = ops < 1000;
            let near = reads.1 * 10 > ops * 6 && reads.1 * 10 < ops * 8;
            faults.holds(&format!("{} of {ops} are reads, of 70 %", reads.1), few || near);
        }
        op => faults.0.push(format!("an op that was not asked for: {op}")),
    }
    faults.0
}

/// Faults of what a point reports, beside the transfers that arrived while it ran.
pub(crate) fn arrivals(cell: &Cell, point: &Value, arrivals: &[Arrival]) -> Vec<String> {
    let mut faults = Faults::default();
    if cell.engine == "null" {
        faults.same("transfers of no engine", arrivals.len(), 0);
        return faults.0;
    }
    let file_bytes = match &*cell.layout {
        "tree" => TREE_FILE_BYTES,
        "shared-file" | "shared-strided" => THREADS * PART_BYTES,
        _ => PART_BYTES,
    };
    let outside = arrivals.iter().find(|a| a.offset + a.bytes > file_bytes);
    faults.same("a transfer outside of its file", outside, None);
    let mut blocks: BTreeMap<(bool, u64, u64), u64> = BTreeMap::new();
    for arrival in arrivals {
        for block in
            arrival.offset / BLOCK_BYTES..(arrival.offset + arrival.bytes).div_ceil(BLOCK_BYTES)
        {
            *blocks.entry((arrival.write, arrival.number, block)).or_default() += 1;
        }
    }
    let different = |write| blocks.keys().filter(|key| key.0 == write).count() as u64;
    for (op, write) in [("read", false), ("write", true)] {
        let (bytes, ops) = of_kind(point, op);
        let of_it = || arrivals.iter().filter(|arrival| arrival.write == write);
        let came: u64 = of_it().map(|arrival| arrival.bytes).sum();
        if cell.direct {
            // Each operation arrives by itself, since no block is so large that it is split.
            let grid = |a: &Arrival| a.bytes == BLOCK_BYTES && a.offset.is_multiple_of(BLOCK_BYTES);
            faults.holds(&format!("a {op} off the grid of blocks"), of_it().all(grid));
            faults.same(&format!("{op}s that arrived"), of_it().count() as u64, ops);
        }
        if cell.direct || write && cell.engine != "mmap" {
            faults.same(&format!("bytes of {op}s that arrived"), came, bytes);
        }
        let touched = point["bytes_touched"].as_u64().filter(|_| bytes > 0);
        if let Some(touched) = touched
            && (cell.direct || write)
        {
            faults.same(&format!("blocks of {op}s"), different(write) * BLOCK_BYTES, touched);
        }
    }
    let once = point["op"] == "write" && number(point, "bytes_touched") == number(point, "bytes");
    if once && cell.engine != "mmap" {
        let again = blocks.iter().find(|(key, count)| key.0 && **count != 1);
        faults.same("a block that was written again", again, None);
    }
    faults.0
}

/// Faults of the files that a campaign has left: the last of each layout were written by size.
pub(crate) fn sizes(engine: &str, cells: &[Cell], held: &[(String, u64)]) -> Vec<String> {
    let mut faults = Faults::default();
    for (layout, begin, length) in LENGTHS {
        // What was drawn with repetition leaves gaps, at the end too.
        let mut of_it = cells.iter().filter(|cell| cell.layout.starts_with(layout));
        if of_it.next_back().is_none_or(Cell::repeats) {
            continue;
        }
        let below = |name: &str| name.split_once('/').is_some_and(|(_, n)| n.starts_with(begin));
        let found: Vec<_> = held.iter().filter(|(name, _)| below(name)).collect();
        let none = engine == "null";
        faults.holds(&format!("{engine}: no file {begin}"), none || !found.is_empty());
        for (name, bytes) in found {
            faults.same(
                &format!("{engine}: bytes of {name}"),
                *bytes,
                if none { 0 } else { length },
            );
        }
    }
    faults.0
}
