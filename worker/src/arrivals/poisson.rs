//! Arrivals of a Poisson process: independent exponential gaps, worked out from the seed without
//! anything that threads would have to share.
//!
//! Time is cut into bins of [`MEAN`] arrivals on average. How many a bin holds is drawn from the
//! Poisson distribution by a hash of the bin's number, independently of the other bins. Given how
//! many there are, they lie in the bin uniformly and independently of each other. Of `n` such
//! arrivals the binomial distribution of `n` fair coins says how many lie in the left half, which
//! is the number of ones in `n` random bits. So the half that holds the arrival of a rank is found,
//! its half in turn, and so on down to a few arrivals, whose places are drawn and put in order.
//! This is the process itself, not an approximation of it.

use crate::pattern::mix64;

pub(super) const NS_PER_1000_S: u128 = 1_000_000_000_000;

/// Arrivals of a bin on average. The more a bin holds, the cheaper it is to walk over bins and the
/// dearer to find an arrival in one.
const MEAN: u8 = 32;
/// Greatest number of arrivals in a bin, 17 standard deviations above the mean.
const COUNT_MAX: usize = 128;
/// As many arrivals as this, or fewer, are drawn and put in order.
const LEAF: usize = 4;
/// Halvings at most; never reached, since half of five arrivals or more would have to be empty some
/// forty times.
const DEPTH_MAX: u32 = 48;
/// The increment of `splitmix64`.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The process and what is needed to draw from it.
#[derive(Debug)]
pub(super) struct Poisson {
    /// Length of a bin; 0 where nothing arrives.
    bin_ns: u64,
    /// The rest of its length in 2^-64 ns: after 10^12 bins the rounding of it is 10^-7 ns.
    bin_fraction: u64,
    seed: u64,
    counts: Counts,
}

/// A bin, as far as a thread walked.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bin {
    index: u64,
    /// Number of its first arrival.
    first: u64,
    count: u64,
    begin_ns: u64,
    /// 0 in the default alone, which is no bin yet, and where there are no arrivals.
    span_ns: u64,
    key: u64,
}

impl Poisson {
    pub(super) fn new(per_1000_s: u64, seed: u64) -> Self {
        let (rate, arrivals) = (u128::from(per_1000_s), u128::from(MEAN) * NS_PER_1000_S);
        let whole = arrivals.checked_div(rate).unwrap_or(0);
        let rest = (arrivals - whole * rate) << 64;
        Self {
            bin_ns: narrow(whole),
            bin_fraction: rest.checked_div(rate).map_or(0, narrow),
            seed: mix64(seed ^ 0x0a44_17a1_0000_0000),
            counts: Counts::new(),
        }
    }

    /// ns from T0 to the arrival of a number.
    #[inline]
    pub(super) fn at_ns(&self, bin: &mut Bin, number: u64) -> u64 {
        if self.bin_ns == 0 {
            return u64::MAX;
        }
        if number.wrapping_sub(bin.first) >= bin.count {
            self.walk_to_number(bin, number);
        }
        bin.at_ns(fraction(bin.key, bin.count, number - bin.first))
    }

    /// How many arrivals lie before `ns` after T0.
    pub(super) fn before(&self, bin: &mut Bin, ns: u64) -> u64 {
        if self.bin_ns == 0 {
            return 0;
        }
        self.walk_to_time(bin, ns);
        bin.first + bin.before(ns)
    }

    #[cold]
    fn walk_to_number(&self, bin: &mut Bin, number: u64) {
        if number < bin.first || bin.span_ns == 0 {
            self.enter(bin, 0, 0);
        }
        let Bin { mut index, mut first, mut count, .. } = *bin;
        while number - first >= count {
            (index, first) = (index + 1, first + count);
            count = self.counts.draw(self.key(index));
        }
        self.enter(bin, index, first);
    }

    fn walk_to_time(&self, bin: &mut Bin, ns: u64) {
        if ns < bin.begin_ns || bin.span_ns == 0 {
            self.enter(bin, 0, 0);
        }
        if ns - bin.begin_ns < bin.span_ns {
            return;
        }
        let Bin { mut index, mut first, mut count, .. } = *bin;
        while self.begin_ns(index + 1) <= ns {
            (index, first) = (index + 1, first + count);
            count = self.counts.draw(self.key(index));
        }
        self.enter(bin, index, first);
    }

    fn enter(&self, bin: &mut Bin, index: u64, first: u64) {
        let key = self.key(index);
        let begin_ns = self.begin_ns(index);
        let span_ns = self.begin_ns(index + 1) - begin_ns;
        *bin = Bin { index, first, count: self.counts.draw(key), begin_ns, span_ns, key };
    }

    #[inline]
    fn begin_ns(&self, index: u64) -> u64 {
        let index = u128::from(index);
        narrow(index * u128::from(self.bin_ns) + ((index * u128::from(self.bin_fraction)) >> 64))
    }

    #[inline]
    fn key(&self, index: u64) -> u64 {
        mix64(self.seed.wrapping_add(index.wrapping_mul(GOLDEN)))
    }
}

impl Bin {
    /// ns from T0 to a place in the bin, in 2^-64 of its length; ascends.
    #[inline]
    fn at_ns(&self, fraction: u64) -> u64 {
        let into = (u128::from(fraction) * u128::from(self.span_ns)) >> 64;
        self.begin_ns.saturating_add(narrow(into))
    }

    /// How many of its arrivals lie before `ns`: in halvings as [`fraction`] makes them.
    fn before(&self, ns: u64) -> u64 {
        let (mut node, mut depth, mut low, mut count, mut sum) = (1, 0, 0, self.count, 0);
        while count > LEAF as u64 && depth < DEPTH_MAX {
            let left = ones(self.key, node, count);
            depth += 1;
            let middle = low | (1 << (64 - depth));
            node *= 2;
            if self.at_ns(middle) < ns {
                (low, sum, count, node) = (middle, sum + left, count - left, node + 1);
            } else {
                count = left;
            }
        }
        let places = leaf(self.key, node, count);
        let before = places
            .iter()
            .zip(0..count)
            .filter(|(place, _)| self.at_ns(low | (**place >> depth)) < ns);
        sum + before.count() as u64
    }
}

/// Where in a bin the arrival of a rank (below `count`) lies, in 2^-64 of the bin; ascends.
#[inline]
fn fraction(key: u64, mut count: u64, mut rank: u64) -> u64 {
    let (mut node, mut depth, mut low) = (1_u64, 0, 0);
    while count > LEAF as u64 && depth < DEPTH_MAX {
        let left = ones(key, node, count);
        depth += 1;
        node *= 2;
        if rank < left {
            count = left;
        } else {
            (rank, count, node) = (rank - left, count - left, node + 1);
            low |= 1 << (64 - depth);
        }
    }
    let [a, b, c, d] = leaf(key, node, count);
    let place = match rank {
        0 => a,
        1 => b,
        2 => c,
        _ => d,
    };
    low | (place >> depth)
}

/// Places of a few arrivals in order; those beyond `count` come last.
#[inline]
fn leaf(key: u64, node: u64, count: u64) -> [u64; LEAF] {
    let mut places = [u64::MAX; LEAF];
    for (place, part) in places.iter_mut().zip(0..count) {
        *place = word(key, node, part);
    }
    let [a, b, c, d] = places;
    let (a, b, c, d) = (a.min(b), a.max(b), c.min(d), c.max(d));
    let (a, c, b, d) = (a.min(c), a.max(c), b.min(d), b.max(d));
    [a, b.min(c), b.max(c), d]
}

/// Ones among `count` random bits, at least one.
#[inline]
fn ones(key: u64, node: u64, count: u64) -> u64 {
    let (mut sum, mut rest, mut part) = (0, count, 0);
    while rest > 64 {
        sum += word(key, node, part).count_ones();
        (rest, part) = (rest - 64, part + 1);
    }
    sum += (word(key, node, part) >> (64 - rest)).count_ones();
    u64::from(sum)
}

/// Random bits of a node of the halvings, in up to 16 parts; `key` is the bin's.
#[inline]
fn word(key: u64, node: u64, part: u64) -> u64 {
    mix64(key.wrapping_add(((node << 4) | part).wrapping_mul(GOLDEN)))
}

/// 2^64 times the probability of at most so many arrivals in a bin, and where the search for a draw
/// begins, by the draw's first byte.
#[derive(Debug)]
struct Counts {
    at_most: Box<[u64]>,
    begin: Box<[u16]>,
}

impl Counts {
    fn new() -> Self {
        // Only products and quotients that every machine rounds the same way.
        let mean = f64::from(MEAN);
        let mut weights = vec![1.0_f64; COUNT_MAX + 1];
        let middle = usize::from(MEAN);
        for count in middle..COUNT_MAX {
            weights[count + 1] = weights[count] * mean / (count + 1) as f64;
        }
        for count in (0..middle).rev() {
            weights[count] = weights[count + 1] * (count + 1) as f64 / mean;
        }
        let all: f64 = weights.iter().sum();
        let mut sum = 0.0;
        let at_most: Box<[u64]> = weights
            .iter()
            .map(|weight| {
                sum += weight;
                scaled(sum / all)
            })
            .collect();
        let begin = (0..256_u64)
            .map(|byte| at_most.partition_point(|at_most| *at_most <= byte << 56))
            .map(|count| u16::try_from(count).unwrap_or(u16::MAX))
            .collect();
        Self { at_most, begin }
    }

    #[inline]
    fn draw(&self, random: u64) -> u64 {
        let mut count = usize::from(self.begin[(random >> 56) as usize]);
        while count < COUNT_MAX && self.at_most[count] <= random {
            count += 1;
        }
        count as u64
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a probability: 2^64 itself becomes the greatest number"
)]
fn scaled(probability: f64) -> u64 {
    (probability * 18_446_744_073_709_551_616.0) as u64
}

/// The greatest number stands for all above it: 584 years.
#[inline]
pub(super) fn narrow(wide: u128) -> u64 {
    u64::try_from(wide).unwrap_or(u64::MAX)
}
