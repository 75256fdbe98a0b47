//! CPU time of the whole machine from the first line of `/proc/stat`. Pure.

/// CPU time since boot, in clock ticks summed over all CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuTimes {
    busy: u64,
    idle: u64,
}

impl CpuTimes {
    /// Reads the text of `/proc/stat`.
    #[must_use]
    pub fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        // user nice system idle iowait irq softirq steal; what follows is inside user and nice.
        let fields: Vec<u64> =
            line.split_ascii_whitespace().take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
        let idle = fields.get(3)? + fields.get(4).copied().unwrap_or(0);
        Some(Self { busy: fields.iter().sum::<u64>() - idle, idle })
    }

    /// Share of the time since `earlier` in which CPUs were busy; none where no tick has passed.
    #[must_use]
    pub fn share_since(self, earlier: Self) -> Option<f64> {
        let busy = self.busy.checked_sub(earlier.busy)?;
        // The kernel's iowait may go back by a little.
        let idle = self.idle.saturating_sub(earlier.idle);
        (busy + idle > 0).then(|| busy as f64 / (busy + idle) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "cpu  100 10 50 800 40 5 5 10 70 3\ncpu0 100 10 50 800 40 5 5 10 70 3\n";
    const AFTER: &str = "cpu  160 10 70 900 50 5 5 20 90 3\n";

    #[test]
    fn share_is_busy_over_all() {
        let before = CpuTimes::parse(BEFORE).unwrap();
        let after = CpuTimes::parse(AFTER).unwrap();
        // Busy: 60 user, 20 system, 10 steal. Idle: 100 idle, 10 iowait.
        assert_eq!(after.share_since(before), Some(90.0 / 200.0));
    }

    #[test]
    fn nothing_passed_is_no_share() {
        let before = CpuTimes::parse(BEFORE).unwrap();
        assert_eq!(before.share_since(before), None);
    }

    #[test]
    fn damaged_text_is_no_time() {
        assert_eq!(CpuTimes::parse(""), None);
        assert_eq!(CpuTimes::parse("cpu 1 2 3"), None);
        assert_eq!(CpuTimes::parse("cpu 1 2 x 4"), None);
    }
}
