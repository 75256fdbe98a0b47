//! Limits of the machine that a campaign could run into: descriptors, threads, memory.

use std::{fs, path::Path};

use iofleet_shared::{
    units::format_size,
    work::{TargetSpec, WorkerPlan},
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::host::{Host, Memory};

/// Descriptors and threads that the daemon itself may come to need.
const OWN: u64 = 64;

/// Descriptors that a thread needs at least: a directory, a file, an engine's own.
const OF_THREAD_MIN: u64 = 3;
/// Descriptors that a thread has use for at most, of files and directories that it opens itself.
const OF_THREAD_MAX: u64 = 300;

/// Descriptors that a thread of a plan may hold of files and directories that it opens itself.
pub(super) fn descriptors_of_thread(plan: &WorkerPlan, host: &Host) -> u32 {
    let threads = (plan.threads.len() as u64).max(1);
    let limit = raised(Resource::Nofile).unwrap_or(u64::MAX);
    let left = limit.saturating_sub(host.open_descriptors() + OWN) / threads;
    let own = left.saturating_sub(OF_THREAD_MIN).clamp(1, OF_THREAD_MAX);
    u32::try_from(own).unwrap_or(1)
}

/// Says which limit is too low, and how to raise it.
pub(super) fn check(spec: &TargetSpec, host: &Host) -> Result<(), String> {
    let threads = u64::from(spec.threads);
    // A thread with very many files holds some of them at a time.
    let listed = (spec.listed.len() + spec.devices.len()) as u64;
    let descriptors = host.open_descriptors() + threads * OF_THREAD_MIN + listed + OWN;
    if let Some(limit) = raised(Resource::Nofile).filter(|limit| *limit < descriptors) {
        return Err(format!(
            "{threads} threads need {descriptors} open files and the worker may have {limit}: \
             raise its hard limit (LimitNOFILE= of the unit, or ulimit -Hn)"
        ));
    }
    let tasks = threads + OWN;
    let root = rustix::process::geteuid().is_root();
    if let Some(limit) = raised(Resource::Nproc).filter(|limit| !root && *limit < tasks) {
        return Err(format!(
            "{threads} threads need {tasks} tasks and the worker's user may have {limit}: raise \
             its hard limit (LimitNPROC= of the unit, or ulimit -Hu)"
        ));
    }
    if let Some(limit) = control_group_tasks().filter(|limit| *limit < tasks) {
        return Err(format!(
            "{threads} threads need {tasks} tasks and the worker's control group may have \
             {limit}: raise TasksMax= of the unit"
        ));
    }
    let available = Memory::now().available_bytes;
    if available < spec.buffer_bytes {
        return Err(format!(
            "the buffers of {threads} threads take {} and {} of memory are available: use fewer \
             threads on this node or a smaller block",
            format_size(spec.buffer_bytes),
            format_size(available)
        ));
    }
    Ok(())
}

/// The soft limit after it was raised to the hard one; none where there is none.
fn raised(resource: Resource) -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(resource);
    if current != maximum {
        // Refused only where another thread changed it in between; the old value counts then.
        let _ = setrlimit(resource, Rlimit { current: maximum, maximum });
    }
    getrlimit(resource).current
}

/// Tasks that the control group still has room for; none where nothing bounds them.
fn control_group_tasks() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let dir = Path::new("/sys/fs/cgroup").join(group);
    let number = |name| fs::read_to_string(dir.join(name)).ok()?.trim().parse::<u64>().ok();
    Some(number("pids.max")?.saturating_sub(number("pids.current")?))
}
