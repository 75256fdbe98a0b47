//! Arrivals with even gaps.

use super::poisson::{NS_PER_1000_S, narrow};

/// The arrival of number `i` comes at `phase + i · 10^12 / per_1000_s`, rounded half up: from the
/// number, not from the arrival before, so that nothing adds up over days.
#[derive(Debug, Clone, Copy)]
pub(super) struct Even {
    per_1000_s: u64,
    phase_ns: u64,
}

impl Even {
    pub(super) fn new(per_1000_s: u64, phase_ns: u64) -> Self {
        Self { per_1000_s, phase_ns }
    }

    #[inline]
    pub(super) fn at_ns(&self, number: u64) -> u64 {
        let rate = u128::from(self.per_1000_s);
        let scaled = u128::from(number) * NS_PER_1000_S + rate / 2;
        scaled.checked_div(rate).map_or(u64::MAX, narrow).saturating_add(self.phase_ns)
    }

    /// The least number whose arrival does not lie before `ns`.
    pub(super) fn before(&self, ns: u64) -> u64 {
        let Some(after) = ns.checked_sub(self.phase_ns).filter(|after| *after > 0) else {
            return 0;
        };
        let rate = u128::from(self.per_1000_s);
        narrow((u128::from(after) * rate).saturating_sub(rate / 2).div_ceil(NS_PER_1000_S))
    }
}
