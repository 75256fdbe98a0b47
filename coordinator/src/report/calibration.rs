//! What the generator itself can do, by node, engine and threads: a calibration's table.

use comfy_table::{CellAlignment, Table, presets};
use iofleet_shared::units::{format_count, format_duration_ns, format_size};

use super::{or_nothing, trusted};
use crate::record::{CampaignRecord, PointNode, PointRecord};

/// Name of the stage that only makes files.
const PREPARE: &str = "prepare";
/// Name of the stage that is the ceiling.
const CEILING: &str = "null";

/// A row for each node, stage and number of threads, and a sentence on each node's ceiling. Rates
/// and CPU times are the node's own, p50 and p99 those of the whole point.
#[must_use]
pub fn calibration(campaign: &CampaignRecord) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header([
        "node", "stage", "engine", "block", "threads", "depth", "ops/s", "ns/op", "user", "system",
        "p50", "p99", "clock",
    ]);
    for column in table.column_iter_mut().skip(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for point in campaign.points.iter().filter(|point| point.stage != PREPARE) {
        for node in &point.nodes {
            table.add_row(row(campaign, point, node));
        }
    }
    let mut text = String::new();
    for line in table.lines() {
        text.push_str(line.trim());
        text.push('\n');
    }
    text.push_str(
        "ns/op: time of one thread for one operation; user, system: CPU time of it, in ns, of I/O \
         threads alone;\np50, p99: service time in the fleet; clock: one reading, two for each \
         operation.\n",
    );
    for node in &campaign.nodes {
        text.push_str(&ceiling(campaign, &node.node, node.clock.cost_ns));
    }
    text
}

fn row(campaign: &CampaignRecord, point: &PointRecord, node: &PointNode) -> Vec<String> {
    let service = point.latency_ns.service.as_ref().filter(|_| trusted(point));
    let per_op = |ns: Option<u64>| ns.and_then(|ns| of_each(ns, operations(point, node)));
    let user = node.cpu_ns.zip(node.cpu_system_ns).map(|(all, system)| all.saturating_sub(system));
    let known = campaign.nodes.iter().find(|known| known.node == node.node);
    let time = |ns: Option<u64>| or_nothing(ns.map(format_duration_ns));
    vec![
        node.node.clone(),
        point.stage.clone(),
        point.params.engine.clone(),
        format_size(point.params.block_bytes),
        threads(point, node).to_string(),
        point.params.depth.to_string(),
        or_nothing(rate(point, node).map(whole)),
        or_nothing(thread_ns(point, node).map(tenths)),
        or_nothing(per_op(user).map(tenths)),
        or_nothing(per_op(node.cpu_system_ns).map(tenths)),
        time(service.and_then(|service| service.p50)),
        time(service.and_then(|service| service.p99)),
        or_nothing(known.map(|known| format!("{} ns", known.clock.cost_ns))),
    ]
}

/// The ceiling of a node with its fewest threads and at its best, and what an operation costs there.
fn ceiling(campaign: &CampaignRecord, name: &str, clock_ns: u64) -> String {
    let parts = campaign.points.iter().filter(|point| point.stage == CEILING);
    let parts = parts.flat_map(|point| {
        let own = point.nodes.iter().find(|node| node.node == name)?;
        Some((threads(point, own), rate(point, own)?, thread_ns(point, own)?))
    });
    let parts: Vec<(usize, f64, f64)> = parts.collect();
    let few = parts.iter().min_by_key(|(threads, ..)| *threads);
    let best = parts.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let Some(((few, _, ns), (threads, best, _))) = few.zip(best) else {
        return format!("{name}: no ceiling, for nothing was measured with the engine null.\n");
    };
    let beyond = ns - 2.0 * float(clock_ns);
    format!(
        "{name}: the generator's ceiling (null) is {} ops/s with {}; with {} an operation takes {} \
         ns, {} ns of it beyond its two clock readings.\n",
        whole(*best),
        thread_word(*threads),
        thread_word(*few),
        tenths(*ns),
        tenths(beyond),
    )
}

fn thread_word(threads: usize) -> String {
    super::plural(threads as u64, "thread")
}

/// Threads of the node in the point.
fn threads(point: &PointRecord, node: &PointNode) -> usize {
    point.threads.iter().filter(|thread| thread.node == node.node).count()
}

/// Operations per second of the node: in the common window.
fn rate(point: &PointRecord, node: &PointNode) -> Option<f64> {
    node.iops.filter(|rate| trusted(point) && *rate > 0.0)
}

/// Time of one thread for one operation, in ns.
fn thread_ns(point: &PointRecord, node: &PointNode) -> Option<f64> {
    rate(point, node).map(|rate| float(threads(point, node) as u64) * 1e9 / rate)
}

/// Operations that the node's CPU time is of: with those of the warm-up, of which only the fleet's
/// number is known, shared out as the measured ones are.
fn operations(point: &PointRecord, node: &PointNode) -> Option<f64> {
    let cpu = point.cpu.as_ref().filter(|_| trusted(point))?;
    let per_op = cpu.user_ns_per_op? + cpu.system_ns_per_op?;
    let all = float(cpu.user_ns.saturating_add(cpu.system_ns)) / per_op;
    (point.ops > 0).then(|| all * float(node.ops) / float(point.ops))
}

fn of_each(ns: u64, operations: Option<f64>) -> Option<f64> {
    operations.filter(|operations| *operations > 0.0).map(|operations| float(ns) / operations)
}

fn tenths(value: f64) -> String {
    format!("{value:.1}")
}

/// A count with its digits in groups.
fn whole(value: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate of operations is positive and far below 2^64; a cast saturates"
    )]
    format_count(value.round() as u64)
}

#[expect(clippy::cast_precision_loss, reason = "53 bits of a time or a count are enough")]
fn float(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{NodeStatus, PointThread, example};

    #[test]
    fn rows_and_ceiling_by_hand() {
        let mut campaign = example::campaign();
        let mut point = example::full(0);
        (point.stage, point.params.engine) = (CEILING.to_owned(), CEILING.to_owned());
        (point.ops, point.params.depth) = (1_000, 1);
        let thread = point.threads[0].clone();
        point.threads = vec![thread.clone(), PointThread { thread: 1, ..thread }];
        // 1200 operations with the warm-up: 100 ns each outside of the kernel, 25 ns inside.
        let cpu = point.cpu.as_mut().unwrap();
        (cpu.user_ns, cpu.system_ns) = (120_000, 30_000);
        (cpu.user_ns_per_op, cpu.system_ns_per_op) = (Some(100.0), Some(25.0));
        let node = &mut point.nodes[0];
        (node.ops, node.iops, node.status) = (1_000, Some(20e6), NodeStatus::Ok);
        (node.cpu_ns, node.cpu_system_ns) = (Some(150_000), Some(30_000));
        let mut prepare = point.clone();
        prepare.stage = PREPARE.to_owned();
        let mut failed = point.clone();
        failed.status = crate::record::PointStatus::Failed;
        campaign.points = vec![prepare, point, failed];
        let text = calibration(&campaign);
        let rows: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        let expected =
            "client01 null null 1 MiB 2 1 20,000,000 100.0 100.0 25.0 250 us 900 us 8 ns";
        assert_eq!(rows[1].join(" "), expected, "{text}");
        assert_eq!(rows[2].join(" "), "client01 null null 1 MiB 2 1 – – – – – – 8 ns", "{text}");
        assert!(
            text.ends_with(
                "client01: the generator's ceiling (null) is 20,000,000 ops/s with 2 threads; with \
                 2 threads an operation takes 100.0 ns, 84.0 ns of it beyond its two clock \
                 readings.\n"
            ),
            "{text}"
        );
        campaign.points.clear();
        assert!(calibration(&campaign).contains("client01: no ceiling"));
    }
}
