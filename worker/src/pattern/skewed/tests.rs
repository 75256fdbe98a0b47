//! The distributions against their formulas.

use iofleet_shared::work::Extent;

use super::*;

const DRAWS: u32 = 200_000;

fn one(blocks: u64) -> Arc<Blocks> {
    Arc::new(Blocks::new(&[Extent { offset: 0, length: blocks }], 1))
}

/// How often each of `n` numbers came in [`DRAWS`] draws.
fn counts(n: u64, mut draw: impl FnMut() -> u64) -> Vec<f64> {
    let mut counts = vec![0.0; usize::try_from(n).unwrap()];
    (0..DRAWS).for_each(|_| counts[usize::try_from(draw()).unwrap()] += 1.0);
    counts
}

/// Chi-square of counts against probabilities.
fn chi2(counts: &[f64], shares: &[f64]) -> f64 {
    let of = |(count, share): (&f64, &f64)| {
        let expected = share * f64::from(DRAWS);
        (count - expected).powi(2) / expected
    };
    counts.iter().zip(shares).map(of).sum()
}

fn descending(mut counts: Vec<f64>) -> Vec<f64> {
    counts.sort_by(|a, b| b.total_cmp(a));
    counts
}

#[test]
fn ranks_of_zipf_follow_its_formula() {
    for theta_milli in [200, 990, 1_000, 1_200, 3_000] {
        let mut zipf = Zipf::new(one(50), theta_milli, 4);
        let weights: Vec<f64> =
            (1..=50).map(|k| f64::from(k).powf(-f64::from(theta_milli) / 1_000.0)).collect();
        let sum: f64 = weights.iter().sum();
        let shares: Vec<f64> = weights.iter().map(|weight| weight / sum).collect();
        let chi2 = chi2(&counts(50, || zipf.rank()), &shares);
        // 49 degrees of freedom: above 85.4 once in a thousand seeds, and this seed is fixed.
        assert!(chi2 < 85.4, "theta {theta_milli}/1000: {chi2}");
    }
}

#[test]
fn first_ranks_of_a_large_zipf_have_their_shares() {
    // The sum of 1/k^0.99 up to n = 2^40 is n^0.01 / 0.01 + zeta(0.99) = 131.9508 - 99.4235, with
    // zeta(0.99) = -1 / 0.01 + 0.577216 - 0.0728158 · 0.01 (Stieltjes).
    let mut zipf = Zipf::new(one(1 << 40), 990, 9);
    let mut first = [0.0_f64; 3];
    for _ in 0..DRAWS {
        if let Some(count) = first.get_mut(usize::try_from(zipf.rank()).unwrap()) {
            *count += 1.0;
        }
    }
    for (k, count) in (1..).zip(first) {
        let share = f64::from(k).powf(-0.99) / 32.527_3;
        let (mean, draws) = (share * f64::from(DRAWS), f64::from(DRAWS));
        let z = (count - mean) / (draws * share * (1.0 - share)).sqrt();
        assert!(z.abs() < 4.0, "rank {k}: {count} of {mean}");
    }
}

#[test]
fn popular_blocks_are_scattered_and_stay_the_same() {
    let mut zipf = Zipf::new(one(1_000), 1_200, 4);
    let counts = counts(1_000, || zipf.draw());
    let mut hottest: Vec<usize> = (0..1_000).collect();
    hottest.sort_by(|a, b| counts[*b].total_cmp(&counts[*a]));
    let expected: Vec<usize> =
        (0..3).map(|rank| usize::try_from(zipf.scatter.of(rank)).unwrap()).collect();
    assert_eq!(hottest[..3], expected);
    assert!(hottest[..3].windows(2).all(|pair| pair[0].abs_diff(pair[1]) > 1), "{hottest:?}");
}

#[test]
fn pareto_is_eighty_twenty_at_each_scale() {
    let mut pareto = Pareto::new(one(1_000), 800, 7);
    let by_rank = counts(1_000, || pareto.rank());
    let share = |blocks: usize| by_rank[..blocks].iter().sum::<f64>() / f64::from(DRAWS);
    // 0.8 of draws on 0.2 of the blocks, 0.8² on 0.2², 0.8³ on 0.2³.
    for (blocks, expected) in [(200, 0.8), (40, 0.64), (8, 0.512)] {
        assert!((share(blocks) - expected).abs() < 0.005, "{blocks}: {}", share(blocks));
    }
    let mut pareto = Pareto::new(one(1_000), 800, 7);
    let scattered = counts(1_000, || pareto.draw());
    assert_ne!(scattered, by_rank);
    assert_eq!(descending(scattered), descending(by_rank));
    let mut uniform = Pareto::new(one(50), 500, 7);
    let chi2 = chi2(&counts(50, || uniform.rank()), &[0.02; 50]);
    assert!(chi2 < 85.4, "{chi2}");
}

#[test]
fn a_hot_spot_has_its_mean_and_deviation() {
    let mut normal = Normal::new(one(10_000), 100, 3);
    let draws = f64::from(DRAWS);
    let drawn: Vec<f64> =
        (0..DRAWS).map(|_| f64::from(u32::try_from(normal.draw()).unwrap()) + 0.5).collect();
    let mean = drawn.iter().sum::<f64>() / draws;
    let deviation = (drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws).sqrt();
    // Standard errors: 1000/√200000 = 2.2 and 1000/√400000 = 1.6.
    assert!((mean - 5_000.0).abs() < 9.0, "{mean}");
    assert!((deviation - 1_000.0).abs() < 7.0, "{deviation}");
    let within = drawn.iter().filter(|x| (*x - 5_000.0).abs() < 1_000.0).count();
    assert!((f64::from(u32::try_from(within).unwrap()) / draws - 0.682_7).abs() < 0.005);
    // The normal law's values at -1, -0.6, -0.2, 0.2, 0.6, 1: five cells of a range cut off at one
    // deviation.
    let mut wide = Normal::new(one(5), 500, 3);
    let cells = [0.115_598, 0.146_487, 0.158_519, 0.146_487, 0.115_598];
    let shares = cells.map(|cell: f64| cell / 0.682_689);
    let chi2 = chi2(&counts(5, || wide.draw()), &shares);
    // 4 degrees of freedom: above 18.5 once in a thousand seeds, and this seed is fixed.
    assert!(chi2 < 18.5, "{chi2}");
    let mut one_block = Normal::new(one(1), 0, 3);
    assert_eq!(one_block.draw(), 0);
}
