//! The clock that stamps operations: two readings per operation make every latency, so a reading
//! must be cheap and its unit must be known well.
//!
//! Where the kernel itself trusts the processor's time-stamp counter (its clock source is `tsc`),
//! the counter is read directly and calibrated against `CLOCK_MONOTONIC`: once on a short baseline
//! when the daemon starts, and again over the whole time since at each arming. Elsewhere
//! `clock_gettime` is read. The loop is generic over [`Clock`], picked once by a match on
//! [`StampKind`].

use std::{fs, hint::black_box};

use iofleet_shared::clock::monotonic_ns;
use rustix::thread::{ClockId, clock_nanosleep_absolute};
use rustix::time::Timespec;

/// Binary places of the multiplier that turns stamp units into ns.
const SHIFT: u32 = 40;
/// One ns per unit.
const UNITY: u64 = 1 << SHIFT;
/// Baseline of the first calibration.
const SHORT_BASELINE_NS: u64 = 5_000_000;
/// Age at which a reference pair gives way to a newer one: a rate measured over weeks is not the
/// rate of today.
const REFERENCE_AGE_NS: u64 = 300_000_000_000;
/// A rate that moved by more than this since the last calibration (in ppm) does not come from the
/// crystal: the machine slept, or was moved to another.
const JUMP_PPM: u64 = 1_000;
/// Attempts at a tight pair of readings.
const PAIR_TRIES: u32 = 32;
/// Where the kernel names its clock source.
const SOURCE_FILE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// A source of stamps.
pub trait Clock: Copy {
    /// The reading now, in stamp units.
    fn now(&self) -> u64;
}

/// The processor's time-stamp counter.
#[derive(Debug, Clone, Copy)]
pub struct Tsc;

/// `clock_gettime(CLOCK_MONOTONIC)`, ns.
#[derive(Debug, Clone, Copy)]
pub struct Gettime;

impl Clock for Tsc {
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn now(&self) -> u64 {
        // SAFETY: RDTSC reads a counter and touches no memory. It is only refused where the
        // process asked for that (PR_SET_TSC), which this one does not.
        unsafe { core::arch::x86_64::_rdtsc() }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn now(&self) -> u64 {
        monotonic_ns()
    }
}

impl Clock for Gettime {
    #[inline(always)]
    fn now(&self) -> u64 {
        monotonic_ns()
    }
}

/// Which clock a [`StampClock`] reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StampKind {
    /// [`Tsc`].
    Tsc,
    /// [`Gettime`].
    Gettime,
}

/// A stamp and the `CLOCK_MONOTONIC` time at the same instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pair {
    stamp: u64,
    ns: u64,
}

/// The stamp clock with its calibration. A copy keeps the calibration that it was made with.
#[derive(Debug, Clone, Copy)]
pub struct StampClock {
    kind: StampKind,
    /// ns per unit, times 2^[`SHIFT`].
    mult: u64,
    /// The pair that conversions start from.
    base: Pair,
    /// The pair that the rate is measured from.
    reference: Pair,
    /// The pair that will take its place.
    successor: Pair,
    cost_ns: u64,
}

impl StampClock {
    /// Picks the clock and calibrates it; takes some 5 ms where that is the time-stamp counter.
    #[must_use]
    pub fn calibrate() -> Self {
        if !(cfg!(target_arch = "x86_64") && kernel_trusts_tsc()) {
            return Self::gettime();
        }
        let first = read_pair();
        sleep_until(first.ns + SHORT_BASELINE_NS);
        let second = read_pair();
        rate(first, second).map_or_else(Self::gettime, |mult| Self {
            kind: StampKind::Tsc,
            mult,
            base: second,
            reference: first,
            successor: second,
            cost_ns: cost_ns(Tsc, mult),
        })
    }

    /// The stamp clock that needs no calibration.
    #[must_use]
    pub fn gettime() -> Self {
        let zero = Pair { stamp: 0, ns: 0 };
        Self {
            kind: StampKind::Gettime,
            mult: UNITY,
            base: zero,
            reference: zero,
            successor: zero,
            cost_ns: cost_ns(Gettime, UNITY),
        }
    }

    /// Calibrates again over the time since the reference pair, and anchors the conversion now.
    /// After a suspend, or when the rate moved in a way no crystal does, it starts over on a short
    /// baseline.
    pub fn refine(&mut self) {
        if self.kind == StampKind::Gettime {
            return;
        }
        let now = read_pair();
        let Some(mult) = rate(self.reference, now).filter(|mult| is_near(*mult, self.mult)) else {
            let cost_ns = self.cost_ns;
            *self = Self { cost_ns, ..Self::calibrate() };
            return;
        };
        (self.mult, self.base) = (mult, now);
        if now.ns - self.successor.ns >= REFERENCE_AGE_NS {
            (self.reference, self.successor) = (self.successor, now);
        }
    }

    /// Which clock is read.
    #[must_use]
    pub fn kind(&self) -> StampKind {
        self.kind
    }

    /// Its name: `tsc` or `clock_gettime`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self.kind {
            StampKind::Tsc => "tsc",
            StampKind::Gettime => "clock_gettime",
        }
    }

    /// Smallest step in ns, rounded up.
    #[must_use]
    pub fn resolution_ns(&self) -> u64 {
        self.mult.div_ceil(UNITY)
    }

    /// Cost of one reading in ns, rounded.
    #[must_use]
    pub fn cost_ns(&self) -> u64 {
        self.cost_ns
    }

    /// A stamp.
    #[must_use]
    pub fn now(&self) -> u64 {
        match self.kind {
            StampKind::Tsc => Tsc.now(),
            StampKind::Gettime => Gettime.now(),
        }
    }

    /// Length of a number of stamp units in ns, rounded down.
    #[inline]
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "2^64 ns are 584 years")]
    pub fn delta_ns(&self, units: u64) -> u64 {
        ((u128::from(units) * u128::from(self.mult)) >> SHIFT) as u64
    }

    /// The fewest stamp units that are at least `ns` long.
    #[must_use]
    pub fn units_of(&self, ns: u64) -> u64 {
        let units = (u128::from(ns) << SHIFT).div_ceil(u128::from(self.mult));
        u64::try_from(units).unwrap_or(u64::MAX)
    }

    /// `CLOCK_MONOTONIC` in ns at a stamp.
    #[must_use]
    pub fn to_ns(&self, stamp: u64) -> u64 {
        match stamp.checked_sub(self.base.stamp) {
            Some(after) => self.base.ns.saturating_add(self.delta_ns(after)),
            None => self.base.ns.saturating_sub(self.delta_ns(self.base.stamp - stamp)),
        }
    }

    /// The stamp at a `CLOCK_MONOTONIC` time.
    #[must_use]
    pub fn from_ns(&self, ns: u64) -> u64 {
        match ns.checked_sub(self.base.ns) {
            Some(after) => self.base.stamp.saturating_add(self.units_of(after)),
            None => self.base.stamp.saturating_sub(self.units_of(self.base.ns - ns)),
        }
    }

    /// A reading, converted, less `CLOCK_MONOTONIC` at the same instant: by how much the
    /// calibration is off by now.
    #[must_use]
    pub fn residual_ns(&self) -> i64 {
        match self.kind {
            StampKind::Gettime => 0,
            StampKind::Tsc => {
                let Pair { stamp, ns } = read_pair();
                self.to_ns(stamp).cast_signed().wrapping_sub(ns.cast_signed())
            }
        }
    }
}

fn kernel_trusts_tsc() -> bool {
    fs::read_to_string(SOURCE_FILE).is_ok_and(|source| source.trim() == "tsc")
}

/// Both clocks at one instant: of several tries the one with the counter's readings closest
/// around the other clock's, since that was not interrupted.
fn read_pair() -> Pair {
    let mut best = (u64::MAX, Pair { stamp: 0, ns: 0 });
    for _ in 0..PAIR_TRIES {
        let before = Tsc.now();
        let ns = monotonic_ns();
        let width = Tsc.now().saturating_sub(before);
        if width < best.0 {
            best = (width, Pair { stamp: before + width / 2, ns });
        }
    }
    best.1
}

/// ns per unit between two pairs; none where the counter did not advance.
fn rate(from: Pair, to: Pair) -> Option<u64> {
    let units = to.stamp.checked_sub(from.stamp).filter(|units| *units > 0)?;
    let ns = to.ns.checked_sub(from.ns)?;
    u64::try_from((u128::from(ns) << SHIFT) / u128::from(units)).ok().filter(|mult| *mult > 0)
}

fn is_near(mult: u64, known: u64) -> bool {
    u128::from(mult.abs_diff(known)) * 1_000_000 <= u128::from(known) * u128::from(JUMP_PPM)
}

/// Mean cost of a reading in the quickest of some batches, rounded.
fn cost_ns(clock: impl Clock, mult: u64) -> u64 {
    const BATCH: u64 = 64;
    let batch = || {
        let begin = clock.now();
        for _ in 0..BATCH {
            black_box(clock.now());
        }
        clock.now().saturating_sub(begin)
    };
    let units = (0..16).map(|_| batch()).min().unwrap_or(0);
    let ns = (u128::from(units) * u128::from(mult)) >> SHIFT;
    u64::try_from((ns + u128::from(BATCH / 2)) / u128::from(BATCH)).unwrap_or(u64::MAX)
}

/// Sleeps to an instant of `CLOCK_MONOTONIC`.
pub fn sleep_until(ns: u64) {
    const NS_PER_S: u64 = 1_000_000_000;
    let until =
        Timespec { tv_sec: (ns / NS_PER_S).cast_signed(), tv_nsec: (ns % NS_PER_S).cast_signed() };
    while clock_nanosleep_absolute(ClockId::Monotonic, &until).is_err_and(|error| {
        // Any other error would not go away by trying again.
        error == rustix::io::Errno::INTR
    }) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A counter of 2.5 GHz (0.4 ns a unit) that read 1000 at 7000 ns.
    fn counter() -> StampClock {
        let base = Pair { stamp: 1_000, ns: 7_000 };
        let mult = rate(base, Pair { stamp: 1_000 + 2_500_000, ns: 7_000 + 1_000_000 }).unwrap();
        StampClock {
            kind: StampKind::Tsc,
            mult,
            base,
            reference: base,
            successor: base,
            cost_ns: 0,
        }
    }

    #[test]
    fn converts_both_ways() {
        let clock = counter();
        // 0.4 is no binary fraction: 2^40 · 0.4 is rounded down, hence the 999.
        assert_eq!(clock.delta_ns(2_500), 999);
        assert_eq!(clock.units_of(1_000), 2_501);
        assert_eq!(clock.to_ns(1_000), 7_000);
        assert_eq!(clock.to_ns(1_000 + 25_001), 7_000 + 10_000);
        assert_eq!(clock.to_ns(500), 7_000 - 199);
        assert_eq!(clock.to_ns(clock.from_ns(123_456_789)), 123_456_789);
        assert_eq!(clock.resolution_ns(), 1);
    }

    #[test]
    fn units_are_the_fewest_that_are_long_enough() {
        let clock = counter();
        for ns in [1, 2, 3, 999, 1_000, 10_000_000, 3_600_000_000_000] {
            assert!(clock.delta_ns(clock.units_of(ns)) >= ns);
            assert!(clock.delta_ns(clock.units_of(ns) - 1) < ns);
        }
    }

    #[test]
    fn a_rate_that_jumps_is_told_from_drift() {
        assert!(is_near(1_000_900, 1_000_000));
        assert!(!is_near(1_001_100, 1_000_000));
        assert!(!is_near(500_000, 1_000_000));
    }

    #[test]
    fn the_real_clock_lies_within_its_own_uncertainty() {
        let mut clock = StampClock::calibrate();
        clock.refine();
        assert!(clock.mult > 0);
        let before = monotonic_ns();
        let between = clock.to_ns(clock.now());
        let after = monotonic_ns();
        // A millisecond is far above what any calibration here may be off.
        assert!(between + 1_000_000 > before && between < after + 1_000_000);
        assert!(clock.residual_ns().abs() < 1_000_000);
    }

    #[test]
    fn gettime_is_its_own_unit() {
        let clock = StampClock::gettime();
        assert_eq!((clock.delta_ns(77), clock.to_ns(77), clock.from_ns(77)), (77, 77, 77));
        assert_eq!((clock.name(), clock.residual_ns()), ("clock_gettime", 0));
    }
}
