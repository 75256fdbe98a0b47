//! Whether a plan makes sense. The codec has checked its shape, not its meaning, and no number of a
//! peer may divide by zero, overflow or exhaust the worker.

use iofleet_shared::{
    limits::{
        ARRIVALS_PER_1000_S_MAX, BLOCK_BYTES_MAX, DEPTH_MAX, EXTENTS_PER_THREAD_MAX,
        FILES_PER_THREAD_MAX, INTERVAL_NS_MIN, THREADS_MAX,
    },
    work::{
        Amount, EngineKind, FilePart, Files, Load, OpKind, OpShare, Pattern, ThreadPlan, TreePart,
        WorkerPlan,
    },
};

/// Longest time that a plan may name, in ns: about 146 years.
const TIME_NS_MAX: u64 = 1 << 62;

/// Says what is wrong with a plan.
///
/// # Errors
/// The first flaw, in words.
pub(super) fn plan(plan: &WorkerPlan) -> Result<(), String> {
    let WorkerPlan { ramp_ns, interval_ns, threads, .. } = plan;
    if threads.is_empty() || threads.len() as u64 > u64::from(THREADS_MAX) {
        return Err(format!("{} threads, where 1 to {THREADS_MAX} can be", threads.len()));
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
    check_blocks(plan)?;
    check_engine(plan)?;
    check_pattern(&plan.pattern)?;
    check_load(plan)?;
    let block_bytes = plan.block_bytes();
    threads.iter().try_for_each(|thread| check_thread(thread, block_bytes, plan.amount))
}

fn check_blocks(plan: &WorkerPlan) -> Result<(), String> {
    let moves_data = plan.ops().iter().any(|op| op.moves_data());
    if !moves_data {
        return Ok(());
    }
    let (least, most) = (plan.block_bytes(), plan.block_bytes_max());
    if least == 0 || most > BLOCK_BYTES_MAX {
        return Err(format!("a block of {least} B, where 1 to {BLOCK_BYTES_MAX} can be"));
    }
    let odd = plan.blocks.iter().find(|block| block.bytes % least != 0 || block.weight == 0);
    odd.map_or(Ok(()), |block| {
        Err(format!(
            "a block of {} B that is no multiple of {least}, or has no weight",
            block.bytes
        ))
    })
}

fn check_engine(plan: &WorkerPlan) -> Result<(), String> {
    let depth = plan.engine.depth;
    let has_queue = matches!(plan.engine.kind, EngineKind::IoUring | EngineKind::Libaio);
    let most = if has_queue { DEPTH_MAX } else { 1 };
    if depth == 0 || depth > most {
        return Err(format!("a depth of {depth}, where 1 to {most} can be"));
    }
    Ok(())
}

fn check_pattern(pattern: &Pattern) -> Result<(), String> {
    let good = match *pattern {
        Pattern::Sequential | Pattern::Backward | Pattern::Random | Pattern::RandomOnce => true,
        Pattern::Strided { step } => step >= 2,
        Pattern::Zipf { theta_milli } => theta_milli > 0,
        Pattern::Pareto { h_milli } => (501..1_000).contains(&h_milli),
        Pattern::Normal { deviation_milli } => (1..=1_000).contains(&deviation_milli),
    };
    if good { Ok(()) } else { Err(format!("a pattern that is none: {pattern:?}")) }
}

fn check_load(plan: &WorkerPlan) -> Result<(), String> {
    match plan.load {
        Load::Open(arrivals) if arrivals.per_1000_s > ARRIVALS_PER_1000_S_MAX => Err(format!(
            "{} arrivals in 1000 s, above {ARRIVALS_PER_1000_S_MAX}",
            arrivals.per_1000_s
        )),
        Load::Closed { burst: 0, .. } => Err("a burst of 0 operations".to_owned()),
        Load::Open(_) | Load::Closed { .. } => Ok(()),
    }
}

fn check_thread(thread: &ThreadPlan, block_bytes: u64, amount: Amount) -> Result<(), String> {
    let number = thread.thread;
    if thread.ops.is_empty() || thread.ops.iter().any(|share| share.weight == 0) {
        return Err(format!("thread {number} has no operation, or one without weight"));
    }
    let moves_data = thread.ops.iter().any(|share| share.op.moves_data());
    let leaves = |op| matches!(op, OpKind::Stat | OpKind::Open | OpKind::Readdir);
    let unfit = |share: &&OpShare| !share.op.moves_data() && !leaves(share.op);
    if let Some(share) = thread.ops.iter().find(unfit).filter(|_| moves_data) {
        return Err(format!("thread {number} mixes {} with operations on data", share.op.name()));
    }
    let parts = match &thread.files {
        Files::Tree(tree) => return check_tree(number, tree),
        Files::Named(parts) | Files::Listed(parts) | Files::Devices(parts) => parts,
    };
    if !moves_data {
        return Err(format!("thread {number} works on names and has no tree"));
    }
    let mut blocks = 0_u64;
    for part in parts {
        check_part(number, part, block_bytes)?;
        blocks = blocks.saturating_add(part.blocks(block_bytes));
    }
    let extents: usize = parts.iter().map(|part| part.extents.len()).sum();
    if extents == 0 || extents > EXTENTS_PER_THREAD_MAX.max(parts.len()) {
        return Err(format!("thread {number} has {extents} extents"));
    }
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

fn check_part(number: u32, part: &FilePart, block_bytes: u64) -> Result<(), String> {
    if part.stride_bytes != 0 && part.stride_bytes < block_bytes {
        return Err(format!("thread {number} has a stride of {} B", part.stride_bytes));
    }
    let mut free_from = 0;
    for extent in &part.extents {
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
    Ok(())
}

fn check_tree(number: u32, tree: &TreePart) -> Result<(), String> {
    let files = tree.files();
    if tree.dirs == 0 || tree.files_per_dir == 0 || files > FILES_PER_THREAD_MAX {
        return Err(format!(
            "thread {number} has {files} files in {} directories, where 1 to \
             {FILES_PER_THREAD_MAX} can be",
            tree.dirs
        ));
    }
    let largest = tree.sizes.iter().map(|size| size.bytes).max().unwrap_or(0);
    if tree.sizes.iter().any(|size| size.weight == 0) || largest > i64::MAX as u64 {
        return Err(format!("thread {number} has files of {largest} B, or a size without weight"));
    }
    Ok(())
}
