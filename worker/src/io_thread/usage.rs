//! CPU time of the calling thread.

use std::io;

use iofleet_shared::stats::CpuTime;

/// What the thread has spent so far; zeros where the kernel does not say.
pub(super) fn now() -> CpuTime {
    ask().unwrap_or_default()
}

/// What it has spent since `before`.
pub(super) fn since(before: CpuTime) -> CpuTime {
    let CpuTime { user_ns, system_ns } = now();
    CpuTime {
        user_ns: user_ns.saturating_sub(before.user_ns),
        system_ns: system_ns.saturating_sub(before.system_ns),
    }
}

fn ask() -> io::Result<CpuTime> {
    // SAFETY: all zeros is a value of this plain struct, and the call writes nothing else.
    let (result, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage), usage)
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(CpuTime { user_ns: ns(usage.ru_utime), system_ns: ns(usage.ru_stime) })
}

fn ns(time: libc::timeval) -> u64 {
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    part(time.tv_sec) * 1_000_000_000 + part(time.tv_usec) * 1_000
}
