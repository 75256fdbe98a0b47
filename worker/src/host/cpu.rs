//! CPU time of the whole machine, and of its CPUs, from `/proc/stat`. Pure.

use std::collections::BTreeMap;

use iofleet_shared::stats::CpuCounters;

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
        Self::of(line)
    }

    fn of(line: &str) -> Option<Self> {
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

/// All CPUs together, since boot.
#[must_use]
pub fn counters(stat: &str) -> Option<CpuCounters> {
    let ns_per_tick = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields = line.split_ascii_whitespace().take(8).map(str::parse::<u64>);
    let fields: Vec<u64> = fields.collect::<Result<_, _>>().ok()?;
    let at = |field: usize| fields.get(field).copied().map(|ticks| ticks * ns_per_tick);
    Some(CpuCounters {
        user_ns: at(0)? + at(1)?,
        system_ns: at(2)?,
        softirq_ns: at(5)? + at(6)?,
        iowait_ns: at(4)?,
        idle_ns: at(3)?,
        steal_ns: at(7).unwrap_or(0),
    })
}

/// Times of each CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cores(BTreeMap<u32, CpuTimes>);

impl Cores {
    /// Reads the text of `/proc/stat`.
    #[must_use]
    pub fn parse(stat: &str) -> Self {
        let core = |line: &str| {
            let (number, fields) = line.strip_prefix("cpu")?.split_once(' ')?;
            Some((number.parse().ok()?, CpuTimes::of(fields)?))
        };
        Self(stat.lines().filter_map(core).collect())
    }

    /// Greatest share in 1/1000 in which one of them was busy; none where no tick has passed.
    #[must_use]
    pub fn busiest_since(&self, earlier: &Self) -> Option<u32> {
        let share = |(core, now): (&u32, &CpuTimes)| now.share_since(*earlier.0.get(core)?);
        let shares = self.0.iter().filter_map(share);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share is between 0 and 1"
        )]
        let milli = shares.map(|share| (share * 1000.0).round() as u32);
        milli.max()
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

    const CORES: &str = "cpu  1 1 1 1 1 1 1 1 0 0\ncpu0 100 0 0 100 0 0 0 0 0 0\n\
                         cpu1 100 0 0 100 0 0 0 0 0 0\nintr 5\n";
    const LATER: &str = "cpu  1 1 1 1 1 1 1 1 0 0\ncpu0 110 0 0 190 0 0 0 0 0 0\n\
                         cpu1 140 0 55 105 0 0 0 0 0 0\nintr 5\n";

    /// CPU 0 was busy for 10 of 100 ticks, CPU 1 for 95.
    #[test]
    fn the_busiest_core_is_the_greatest_share() {
        let (before, after) = (Cores::parse(CORES), Cores::parse(LATER));
        assert_eq!(after.busiest_since(&before), Some(950));
        assert_eq!(after.busiest_since(&after), None);
        assert_eq!(after.busiest_since(&Cores::parse("")), None);
    }

    #[test]
    fn counters_by_hand() {
        let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second();
        let expected = CpuCounters {
            user_ns: 110 * tick,
            system_ns: 50 * tick,
            softirq_ns: 10 * tick,
            iowait_ns: 40 * tick,
            idle_ns: 800 * tick,
            steal_ns: 10 * tick,
        };
        assert_eq!(counters(BEFORE), Some(expected));
        assert_eq!(counters("cpu 1 2 x"), None);
    }
}
