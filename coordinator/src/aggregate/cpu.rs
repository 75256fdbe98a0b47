//! What operations cost the generator's own threads. Pure.

use iofleet_shared::stats::{CpuTime, ThreadEnd, ThreadReport};

use super::to_f64;
use crate::record::Cpu;

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
