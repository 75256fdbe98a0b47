//! Choices by weight.

use super::random::Xoshiro;

/// Picks one of several by weight, each time independently.
#[derive(Debug)]
pub struct Picker {
    random: Xoshiro,
    total: u64,
    /// The sum of the weights up to each but the last.
    sums: Vec<u64>,
}

impl Picker {
    /// Picks that follow from `seed`, each in exact proportion to its weight over the sum of all.
    /// There is at least one weight, and not all are 0.
    #[must_use]
    pub fn new(weights: &[u32], seed: u64) -> Self {
        let mut total = 0;
        let mut sums: Vec<u64> = weights
            .iter()
            .map(|&weight| {
                total += u64::from(weight);
                total
            })
            .collect();
        sums.pop();
        Self { random: Xoshiro::new(seed), total, sums }
    }

    /// The place of the next choice among the weights.
    #[inline]
    pub fn pick(&mut self) -> usize {
        if self.sums.is_empty() {
            return 0;
        }
        let drawn = self.random.below(self.total);
        self.sums.partition_point(|&sum| sum <= drawn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_in_proportion() {
        let weights = [1, 0, 70, 29];
        let mut picker = Picker::new(&weights, 3);
        let mut counts = [0.0_f64; 4];
        (0..100_000).for_each(|_| counts[picker.pick()] += 1.0);
        assert!(counts[1] == 0.0);
        let chi2: f64 = [(0, 1_000.0), (2, 70_000.0), (3, 29_000.0)]
            .map(|(at, expected): (usize, f64)| (counts[at] - expected).powi(2) / expected)
            .iter()
            .sum();
        // 2 degrees of freedom: above 13.8 once in a thousand seeds, and this seed is fixed.
        assert!(chi2 < 13.8, "{chi2}");
        assert_eq!(Picker::new(&[5], 3).pick(), 0);
        assert!((0..100).all(|_| Picker::new(&[u32::MAX; 3], 3).pick() < 3));
    }

    #[test]
    fn choices_are_independent() {
        // Wald and Wolfowitz: the number of runs of equal choices is normally distributed.
        let mut picker = Picker::new(&[7, 3], 11);
        let picks: Vec<usize> = (0..100_000).map(|_| picker.pick()).collect();
        let runs = 1 + picks.windows(2).filter(|pair| pair[0] != pair[1]).count();
        let ones = f64::from(u32::try_from(picks.iter().sum::<usize>()).unwrap());
        let (n, zeros) = (100_000.0, 100_000.0 - ones);
        let mean = 2.0 * ones * zeros / n + 1.0;
        let deviation = ((mean - 1.0) * (mean - 2.0) / (n - 1.0)).sqrt();
        let z = (f64::from(u32::try_from(runs).unwrap()) - mean) / deviation;
        // Beyond 3.29 once in a thousand seeds, and this seed is fixed.
        assert!(z.abs() < 3.29, "{z}");
    }
}
