//! Time of this process, and what it is per operation.

use std::{io, time::Duration};

use rustix::time::{ClockId, clock_gettime};

/// Time of one round, in ns per operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Round {
    /// By the kernel's ticks: right only in the sum over many rounds.
    pub(crate) user: f64,
    pub(crate) cpu: f64,
    pub(crate) wall: f64,
}

/// CPU time of this process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    user: Duration,
    /// User and system, exact.
    cpu: Duration,
}

impl Usage {
    pub(crate) fn now() -> io::Result<Self> {
        // SAFETY: all zeros is a value of this plain struct, and the call writes nothing else.
        let (result, usage) = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            (libc::getrusage(libc::RUSAGE_SELF, &raw mut usage), usage)
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let cpu = Duration::try_from(cpu).map_err(io::Error::other)?;
        Ok(Self { user: duration(usage.ru_utime), cpu })
    }

    pub(crate) fn since(self, before: Self) -> Self {
        Self { user: self.user.saturating_sub(before.user), cpu: self.cpu - before.cpu }
    }

    pub(crate) fn per(self, operations: u64, wall_ns: u64) -> Round {
        let per = |ns: Duration| ns.as_secs_f64() / Duration::from_nanos(operations).as_secs_f64();
        Round { user: per(self.user), cpu: per(self.cpu), wall: per(Duration::from_nanos(wall_ns)) }
    }
}

fn duration(time: libc::timeval) -> Duration {
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    Duration::from_secs(part(time.tv_sec)) + Duration::from_micros(part(time.tv_usec))
}
