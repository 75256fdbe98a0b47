//! What operations cost the generator's own threads. Pure.

use iofleet_shared::stats::{CpuTime, HostSample, PointReport, ThreadEnd, ThreadReport};

use super::to_f64;
use crate::{events::NodeOutcome, record::Cpu};

/// Sums over threads. None where they are not known: there is no thread, one never returned and so
/// never said, or the kernel says nothing, for no thread runs in no time.
pub(super) fn cpu<'a>(threads: impl Iterator<Item = &'a ThreadReport>) -> Option<Cpu> {
    let (mut user, mut system, mut ops) = (0_u64, 0_u64, 0_u64);
    for thread in threads {
        if thread.end == ThreadEnd::Stuck {
            return None;
        }
        let CpuTime { user_ns, system_ns } = thread.cpu;
        (user, system) = (user.saturating_add(user_ns), system.saturating_add(system_ns));
        // The time is of the warm-up too, and failed operations take theirs.
        ops += thread.ops() + thread.errors() + thread.ramp_ops() + thread.ramp_errors();
    }
    let per_op = |ns: u64| (ops > 0).then(|| to_f64(ns) / to_f64(ops));
    (user > 0 || system > 0).then(|| Cpu {
        user_ns_per_op: per_op(user),
        system_ns_per_op: per_op(system),
        user_ns: user,
        system_ns: system,
    })
}

/// Share of time in which the busiest CPU of a node was busy: the mean over the intervals from T0 to
/// its last thread's end, each by its length. None where no sample says.
pub(super) fn busiest_core(node: &NodeOutcome, report: &PointReport) -> Option<f64> {
    let end = report.threads.iter().filter_map(|thread| thread.ended_ns).max()?;
    let (mut busy, mut time) = (0.0, 0.0);
    for pair in node.samples.windows(2) {
        let inside = pair[1].at_ns.min(end) - pair[0].at_ns.max(0);
        if let Some(milli) = pair[1].busiest_core_milli.filter(|_| inside > 0) {
            let length = to_f64(inside.unsigned_abs());
            busy += f64::from(milli) / 1000.0 * length;
            time += length;
        }
    }
    (time > 0.0).then(|| busy / time)
}

/// Time that a node's I/O threads were ready to run and did not, over the time in which they had
/// work: from T0 to the last sample. None where the kernel does not count it.
pub(super) fn run_delay(node: &NodeOutcome, report: &PointReport) -> Option<f64> {
    let delay = |sample: &HostSample| sample.run_delay_ns;
    let (first, last) = node.samples.iter().find(|s| s.at_ns >= 0).zip(node.samples.last())?;
    let waited = delay(last)?.checked_sub(delay(first)?)?;
    let time = u64::try_from(last.at_ns - first.at_ns).ok().filter(|time| *time > 0)?;
    let threads = report.threads.len() as u64;
    (threads > 0).then(|| to_f64(waited) / (to_f64(time) * to_f64(threads)))
}
