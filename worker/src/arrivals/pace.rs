//! Pauses of a closed load.

/// A pause after each burst of operations.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    think_ns: u64,
    burst: u32,
    left: u32,
}

impl Pace {
    /// `think_ns` of pause after every `burst` operations (0 counts as 1).
    #[must_use]
    pub fn new(think_ns: u64, burst: u32) -> Self {
        let burst = burst.max(1);
        Self { think_ns, burst, left: burst }
    }

    /// To be told of each completed operation: the time before which none must be issued, in the
    /// unit and from the origin of `completed_at_ns`; none where there is no pause now.
    #[inline]
    pub fn after(&mut self, completed_at_ns: u64) -> Option<u64> {
        if self.think_ns == 0 {
            return None;
        }
        self.left -= 1;
        if self.left > 0 {
            return None;
        }
        self.left = self.burst;
        Some(completed_at_ns.saturating_add(self.think_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses(mut pace: Pace) -> Vec<Option<u64>> {
        (1..=7).map(|time| pace.after(time)).collect()
    }

    #[test]
    fn a_pause_follows_each_burst() {
        let expected = [None, None, Some(103), None, None, Some(106), None];
        assert_eq!(pauses(Pace::new(100, 3)), expected);
        assert_eq!(pauses(Pace::new(10, 1))[..3], [Some(11), Some(12), Some(13)]);
        assert_eq!(pauses(Pace::new(0, 1)), [None; 7]);
    }
}
