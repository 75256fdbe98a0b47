//! CPU time of I/O threads.

use iofleet_shared::stats::CpuTime;

use super::*;
use crate::record::Cpu;

/// Thread t has 3 (t + 1) ms of its own and (t + 1) ms in the kernel.
fn spent(outcome: &mut PointOutcome) {
    let reports = outcome.nodes.values_mut().filter_map(|node| node.report.as_mut());
    for (thread, count) in reports.flat_map(|report| &mut report.threads).zip(1..) {
        thread.cpu = CpuTime { user_ns: 3 * count * MS, system_ns: count * MS };
    }
}

#[test]
fn cpu_time_is_shared_out_over_operations_of_all_phases() {
    let record = assembled(&two_nodes(), |_, outcome| spent(outcome));
    // Threads of 2, 3 and 2 operations.
    let cpu = Cpu {
        user_ns_per_op: Some(18e6 / 7.0),
        system_ns_per_op: Some(6e6 / 7.0),
        user_ns: 18 * MS,
        system_ns: 6 * MS,
    };
    assert_eq!(record.cpu, Some(cpu));
    let nodes = |record: &PointRecord| -> Vec<_> {
        record.nodes.iter().map(|node| (node.cpu_ns, node.cpu_system_ns)).collect()
    };
    assert_eq!(nodes(&record), [(Some(12 * MS), Some(3 * MS)), (Some(12 * MS), Some(3 * MS))]);
    // The same with a warm-up that holds the first operation of each thread, and with a failed one.
    let mut script = two_nodes();
    script[0][0][1].bytes = None;
    let record = assembled(&script, |plan, outcome| {
        plan.spec.params.ramp_ns = 200 * MS;
        plan.spec.params.duration_ns = Some(200 * MS);
        (plan.bytes, plan.ops) = (None, None);
        *outcome = fixture::outcome(plan, &script);
        spent(outcome);
    });
    assert_eq!((record.ops + record.errors, record.cpu), (5, Some(cpu)));
}

#[test]
fn cpu_time_that_is_not_known_is_null() {
    assert_eq!(assembled(&two_nodes(), |_, _| ()).cpu, None);
    let record = assembled(&two_nodes(), |_, outcome| {
        spent(outcome);
        thread(outcome, 1).end = ThreadEnd::Stuck;
    });
    assert_eq!(record.cpu, None);
    assert_eq!((record.nodes[0].cpu_ns, record.nodes[1].cpu_ns), (Some(12 * MS), None));
    let record = assembled(&two_nodes(), |_, outcome| {
        spent(outcome);
        lose(outcome, 1, "silent for 15 s");
    });
    // Of the node that reported: threads of 2 and 3 operations.
    let cpu = record.cpu.unwrap();
    assert_eq!((cpu.user_ns_per_op, cpu.user_ns), (Some(9e6 / 5.0), 9 * MS));
    assert_eq!(record.nodes[1].cpu_ns, None);
}
