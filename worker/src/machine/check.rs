//! Whether a plan makes sense. The codec has checked its shape, not its meaning, and no number of a
//! peer may divide by zero, overflow or exhaust the worker.

use iofleet_shared::{
    limits::{BLOCK_BYTES_MAX, EXTENTS_PER_THREAD_MAX, INTERVAL_NS_MIN, THREADS_MAX},
    work::{Amount, ThreadPlan, WorkerPlan},
};

/// Longest time that a plan may name, in ns: about 146 years.
const TIME_NS_MAX: u64 = 1 << 62;

/// Says what is wrong with a plan.
///
/// # Errors
/// The first flaw, in words.
pub(super) fn plan(plan: &WorkerPlan) -> Result<(), String> {
    let WorkerPlan { block_bytes, ramp_ns, interval_ns, threads, .. } = plan;
    if threads.is_empty() || threads.len() as u64 > u64::from(THREADS_MAX) {
        return Err(format!("{} threads, where 1 to {THREADS_MAX} can be", threads.len()));
    }
    if *block_bytes == 0 || *block_bytes > BLOCK_BYTES_MAX {
        return Err(format!("a block of {block_bytes} B, where 1 to {BLOCK_BYTES_MAX} can be"));
    }
    if *interval_ns < INTERVAL_NS_MIN || *interval_ns > TIME_NS_MAX {
        return Err(format!("an interval of {interval_ns} ns, below {INTERVAL_NS_MIN}"));
    }
    let duration_ns = match plan.amount {
        Amount::Share => 0,
        Amount::Time { duration_ns: 0, .. } => return Err("a duration of 0".to_owned()),
        Amount::Time { duration_ns, .. } => duration_ns,
    };
    if ramp_ns.checked_add(duration_ns).is_none_or(|end| end > TIME_NS_MAX) {
        return Err(format!("a warm-up of {ramp_ns} ns and a duration of {duration_ns} ns"));
    }
    if !ramp_ns.is_multiple_of(*interval_ns) {
        return Err(format!(
            "a warm-up of {ramp_ns} ns, which is not a whole number of intervals of {interval_ns} ns"
        ));
    }
    threads.iter().try_for_each(|thread| check_thread(thread, *block_bytes, plan.amount))
}

fn check_thread(thread: &ThreadPlan, block_bytes: u64, amount: Amount) -> Result<(), String> {
    let number = thread.thread;
    let extents = &thread.extents;
    if extents.is_empty() || extents.len() > EXTENTS_PER_THREAD_MAX {
        return Err(format!("thread {number} has {} extents", extents.len()));
    }
    let mut free_from = 0;
    for extent in extents {
        let end = extent.offset.checked_add(extent.length);
        let fits = end.filter(|end| *end <= i64::MAX as u64 && extent.offset >= free_from);
        let Some(end) = fits else {
            return Err(format!(
                "thread {number} has an extent of {} B at {}, which overlaps or overflows",
                extent.length, extent.offset
            ));
        };
        free_from = end;
    }
    let blocks = thread.blocks(block_bytes);
    if blocks == 0 {
        return Err(format!("thread {number} has no whole block"));
    }
    if amount == Amount::Share && thread.operations > blocks {
        return Err(format!(
            "thread {number} has {} operations for {blocks} blocks",
            thread.operations
        ));
    }
    Ok(())
}
