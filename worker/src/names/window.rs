//! Which of a thread's names exist.

/// A window of numbers below a limit, which goes round.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    /// The oldest, below `limit`.
    first: u64,
    live: u64,
    limit: u64,
}

impl Window {
    /// Numbers from `gone` to below `made`, both taken modulo `limit`.
    pub(super) fn new(gone: u64, made: u64, limit: u64) -> Self {
        let first = gone.checked_rem(limit).unwrap_or(0);
        Self { first, live: made.saturating_sub(gone).min(limit), limit }
    }

    /// How many there are.
    #[inline]
    pub(super) fn live(&self) -> u64 {
        self.live
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.live == self.limit
    }

    /// The number of one by its age, from 0 for the oldest.
    #[inline]
    pub(super) fn number(&self, place: u64) -> u64 {
        let number = self.first + place;
        if number >= self.limit { number - self.limit } else { number }
    }

    /// One more; none if all are there.
    #[inline]
    pub(super) fn make(&mut self) -> Option<u64> {
        if self.is_full() {
            return None;
        }
        self.live += 1;
        Some(self.number(self.live - 1))
    }

    /// The oldest goes; none if there is none.
    #[inline]
    pub(super) fn take(&mut self) -> Option<u64> {
        self.live = self.live.checked_sub(1)?;
        let number = self.first;
        self.first = if number + 1 == self.limit { 0 } else { number + 1 };
        Some(number)
    }

    /// The oldest one's number, and the first after the window; that is beyond the limit where the
    /// window goes round.
    pub(super) fn ends(&self) -> (u64, u64) {
        (self.first, self.first + self.live)
    }
}

/// Which files have been renamed an odd number of times.
#[derive(Debug)]
pub(super) struct Renamed {
    /// Files are made so, and all were so in the beginning.
    fresh: bool,
    /// A bit of each file that differs from that; none where nothing is renamed.
    differs: Vec<u64>,
}

impl Renamed {
    /// Room for that many files, 0 if none will be renamed.
    pub(super) fn new(fresh: bool, files: u64) -> Self {
        let words = usize::try_from(files.div_ceil(64)).unwrap_or(0);
        Self { fresh, differs: vec![0; words] }
    }

    pub(super) fn fresh(&self) -> bool {
        self.fresh
    }

    #[inline]
    pub(super) fn get(&self, number: u64) -> bool {
        let (word, bit) = place(number);
        self.fresh ^ self.differs.get(word).is_some_and(|bits| bits >> bit & 1 == 1)
    }

    #[inline]
    pub(super) fn toggle(&mut self, number: u64) {
        let (word, bit) = place(number);
        if let Some(bits) = self.differs.get_mut(word) {
            *bits ^= 1 << bit;
        }
    }

    /// All files that exist are so now.
    pub(super) fn settle(&mut self, renamed: bool) {
        self.fresh = renamed;
        self.differs.fill(0);
    }

    /// The file is made anew.
    #[inline]
    pub(super) fn made(&mut self, number: u64) {
        let (word, bit) = place(number);
        if let Some(bits) = self.differs.get_mut(word) {
            *bits &= !(1 << bit);
        }
    }
}

#[inline]
fn place(number: u64) -> (usize, u64) {
    (usize::try_from(number / 64).unwrap_or(usize::MAX), number % 64)
}
