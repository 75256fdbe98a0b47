//! The order of blocks, as the file system that counts sees it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    campaign::{length_ns, start_ns},
    observer::{Arrival, Observer},
    support::{Scratch, run, skip, text},
    table::BLOCK_BYTES,
};

/// The blocks of each point of a scenario of one thread, in the order in which they arrived.
fn blocks_of(scenario: &str) -> Option<Vec<(Value, Vec<u64>)>> {
    let scratch = Scratch::in_memory();
    let mount = scratch.folder("mount");
    let observer = Observer::mount_cached(&mount).ok()?;
    let file = scratch.write("orders.toml", scenario);
    let target = mount.join("target");
    let run = run(
        &scratch,
        &[file.to_str().unwrap(), "--local", "1", "--path", target.to_str().unwrap()],
    );
    assert_eq!(run.code(), 0, "{}", text(&run.output));
    let arrivals = observer.take_arrivals();
    let starts: Vec<i128> = run.points().iter().map(start_ns).collect();
    let of = |at: usize| {
        let until = starts[at] + length_ns(&run.points()[at]);
        let within = |arrival: &&Arrival| (starts[at]..until).contains(&i128::from(arrival.at_ns));
        arrivals.iter().filter(within).map(|arrival| arrival.offset / BLOCK_BYTES).collect()
    };
    let points = run.points().iter().cloned().enumerate();
    Some(points.map(|(at, point)| (point, of(at))).collect())
}

#[test]
fn random_once_takes_each_block_once() {
    let counts = [1_u64, 2, 3, 5, 64, 257, 1000];
    let sizes: Vec<String> = counts.iter().map(|n| format!("\"{} B\"", n * BLOCK_BYTES)).collect();
    let scenario = format!(
        "[workload]\nblock = \"{BLOCK_BYTES} B\"\npattern = \"random-once\"\n[sweep]\n\
         file_size = [{}]\nseed = [1, 2, 3, 9223372036854775807]\n\
         [[stage]]\nop = \"write\"\n[[stage]]\nop = \"read\"\n",
        sizes.join(", ")
    );
    let Some(points) = blocks_of(&scenario) else { return skip("no FUSE here") };
    assert_eq!(points.len(), counts.len() * 4 * 2);
    let mut orders: BTreeMap<u64, Vec<Vec<u64>>> = BTreeMap::new();
    for (point, blocks) in points {
        let count = point["ops"].as_u64().unwrap();
        let mut sorted = blocks.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..count).collect::<Vec<_>>(), "{}", point["params"]);
        orders.entry(count).or_default().push(blocks);
    }
    assert_eq!(orders.keys().copied().collect::<Vec<_>>(), counts);
    for (count, mut orders) in orders.into_iter().filter(|(count, _)| *count >= 64) {
        assert_eq!(orders.len(), 8);
        orders.sort_unstable();
        orders.dedup();
        assert_eq!(orders.len(), 8, "two points take {count} blocks in the same order");
        assert!(!orders.contains(&(0..count).collect()), "{count} blocks are not shuffled");
    }
}

#[test]
fn ordered_patterns_arrive_in_their_order() {
    const COUNT: u64 = 10;
    let stage = |op: &str, pattern: &str, more: &str| {
        format!(
            "[[stage]]\nname = \"{op}-{pattern}\"\nop = \"{op}\"\npattern = \"{pattern}\"\n{more}"
        )
    };
    let stages: String = [("sequential", ""), ("backward", ""), ("strided", "step = 4\n")]
        .iter()
        .flat_map(|(pattern, more)| [stage("write", pattern, more), stage("read", pattern, more)])
        .collect();
    let scenario = format!(
        "[workload]\nfile_size = \"{} B\"\nblock = \"{BLOCK_BYTES} B\"\n{stages}",
        COUNT * BLOCK_BYTES
    );
    let Some(points) = blocks_of(&scenario) else { return skip("no FUSE here") };
    assert_eq!(points.len(), 6);
    for (point, blocks) in points {
        let expected: Vec<u64> = match point["params"]["pattern"].as_str().unwrap() {
            "sequential" => (0..COUNT).collect(),
            "backward" => (0..COUNT).rev().collect(),
            _ => vec![0, 4, 8, 1, 5, 9, 2, 6, 3, 7],
        };
        assert_eq!(blocks, expected, "{}", point["stage"]);
    }
}
