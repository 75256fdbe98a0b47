//! How a rate grows with the number of threads: the Universal Scalability Law (N. J. Gunther, *Guerrilla
//! Capacity Planning*, 2007, chapter 4), and the knee of a ramp.
//!
//! X(N) = λ N / (1 + σ (N − 1) + κ N (N − 1)), where λ is the rate of one thread, σ ≥ 0 the share of
//! contention and κ ≥ 0 that of coherency. N/X is linear in 1, N − 1 and N (N − 1), so that least
//! squares of relative residuals have an exact solution.

/// Points below which there is no fit.
pub const POINTS_MIN: usize = 6;
/// Coefficient of determination below which a fit tells nothing.
pub const R2_MIN: f64 = 0.95;
/// Share of the plateau from which a point is at the knee.
pub const KNEE_SHARE: f64 = 0.95;

/// A point of a ramp: threads, and the rate per second.
pub type Loaded = (f64, f64);

/// A fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// Rate of one thread, per second.
    pub lambda: f64,
    /// Contention σ.
    pub contention: f64,
    /// Coherency κ.
    pub coherency: f64,
    /// Coefficient of determination of the rates.
    pub r2: f64,
    /// Rate over the fitted one less 1, point by point.
    pub residuals: Vec<f64>,
}

impl Fit {
    /// The fitted rate with so many threads.
    #[must_use]
    pub fn rate(&self, threads: f64) -> f64 {
        let loss = self.contention * (threads - 1.0) + self.coherency * threads * (threads - 1.0);
        self.lambda * threads / (1.0 + loss)
    }

    /// The number of threads beyond which the rate falls; none where it never does.
    #[must_use]
    pub fn peak(&self) -> Option<f64> {
        (self.coherency > 0.0 && self.contention < 1.0)
            .then(|| ((1.0 - self.contention) / self.coherency).sqrt().max(1.0))
    }
}

/// The fit of a ramp; none where there are too few points, a rate is not above 0, or it explains too
/// little.
#[must_use]
pub fn fit(points: &[Loaded]) -> Option<Fit> {
    if points.len() < POINTS_MIN || points.iter().any(|(n, x)| *n < 1.0 || *x <= 0.0) {
        return None;
    }
    // Of the terms that must not be below 0, the best choice of those that are not 0.
    let choices = [[true, true], [true, false], [false, true], [false, false]];
    let solved = choices.iter().filter_map(|terms| {
        let [a, b, c] = solve(points, *terms)?;
        (a > 0.0 && b >= 0.0 && c >= 0.0).then(|| fitted(points, 1.0 / a, b / a, c / a))
    });
    let error = |fit: &Fit| fit.residuals.iter().map(|residual| residual * residual).sum::<f64>();
    let best = solved.min_by(|a, b| error(a).total_cmp(&error(b)))?;
    (best.r2 >= R2_MIN).then_some(best)
}

fn fitted(points: &[Loaded], lambda: f64, contention: f64, coherency: f64) -> Fit {
    let mut fit = Fit { lambda, contention, coherency, r2: 0.0, residuals: Vec::new() };
    let count: f64 = points.iter().map(|_| 1.0).sum();
    let mean = points.iter().map(|(_, x)| x).sum::<f64>() / count;
    let square = |value: f64| value * value;
    let around = points.iter().map(|(_, x)| square(x - mean)).sum::<f64>();
    let left = points.iter().map(|(n, x)| square(x - fit.rate(*n))).sum::<f64>();
    fit.residuals = points.iter().map(|(n, x)| x / fit.rate(*n) - 1.0).collect();
    fit.r2 = if around > 0.0 { 1.0 - left / around } else { 0.0 };
    fit
}

/// Normal equations of N/X = a + b (N − 1) + c N (N − 1), each point weighted by X/N, in the terms
/// that are wanted.
fn solve(points: &[Loaded], terms: [bool; 2]) -> Option<[f64; 3]> {
    let mut normal = [[0.0; 4]; 3];
    for (n, x) in points {
        let weight = x / n;
        let wanted = |is: bool, value: f64| if is { value * weight } else { 0.0 };
        let row = [weight, wanted(terms[0], n - 1.0), wanted(terms[1], n * (n - 1.0)), 1.0];
        for i in 0..3 {
            for j in 0..4 {
                normal[i][j] += row[i] * row[j];
            }
        }
    }
    for (term, is) in [(1, terms[0]), (2, terms[1])] {
        if !is {
            normal[term][term] = 1.0;
        }
    }
    eliminate(normal)
}

/// Gauss with pivots.
fn eliminate(mut rows: [[f64; 4]; 3]) -> Option<[f64; 3]> {
    for at in 0..3 {
        let pivot = (at..3).max_by(|a, b| rows[*a][at].abs().total_cmp(&rows[*b][at].abs()))?;
        rows.swap(at, pivot);
        let head = rows[at];
        if head[at].abs() < f64::MIN_POSITIVE {
            return None;
        }
        for row in rows.iter_mut().skip(at + 1) {
            let factor = row[at] / head[at];
            for (value, of_head) in row.iter_mut().zip(head) {
                *value -= factor * of_head;
            }
        }
    }
    let mut solution = [0.0; 3];
    for at in (0..3).rev() {
        let known: f64 = (at + 1..3).map(|other| rows[at][other] * solution[other]).sum();
        solution[at] = (rows[at][3] - known) / rows[at][at];
    }
    solution.iter().all(|value| value.is_finite()).then_some(solution)
}

/// Least number of threads with [`KNEE_SHARE`] of the greatest rate; none of fewer than two points.
#[must_use]
pub fn knee(points: &[Loaded]) -> Option<f64> {
    let greatest = points.iter().map(|(_, x)| *x).max_by(f64::total_cmp)?;
    let near = points.iter().filter(|(_, x)| *x >= KNEE_SHARE * greatest).map(|(n, _)| *n);
    near.min_by(f64::total_cmp).filter(|_| points.len() > 1 && greatest > 0.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RAMP: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

    fn law(lambda: f64, contention: f64, coherency: f64) -> Fit {
        Fit { lambda, contention, coherency, r2: 1.0, residuals: Vec::new() }
    }

    fn close(found: f64, known: f64, share: f64) -> bool {
        (found - known).abs() <= share * known
    }

    /// Known terms come back within 5 % from points that are off by 1 % at most, by any fixed noise.
    #[test]
    fn known_terms_are_recovered_from_noisy_points() {
        let known = law(50e6, 0.04, 0.000_4);
        let mut state = 1_u64;
        for _ in 0..200 {
            let points: Vec<Loaded> = RAMP
                .iter()
                .map(|n| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let unit = f64::from(u32::try_from(state >> 32).unwrap()) / f64::from(u32::MAX);
                    (*n, known.rate(*n) * (1.0 + 0.02 * (unit - 0.5)))
                })
                .collect();
            let found = fit(&points).unwrap();
            assert!(close(found.contention, known.contention, 0.05), "{found:?}");
            assert!(close(found.coherency, known.coherency, 0.05), "{found:?}");
            assert!(close(found.lambda, known.lambda, 0.02) && found.r2 > 0.99, "{found:?}");
            assert!(found.residuals.iter().all(|residual| residual.abs() < 0.03));
        }
    }

    /// 10, 19 and so on by hand: σ = 1/19 and κ = 0 give 10 N / (1 + (N − 1)/19).
    #[test]
    fn the_peak_is_where_the_law_has_it() {
        assert_eq!(law(1.0, 0.0, 0.000_1).peak(), Some(100.0));
        assert_eq!(law(1.0, 0.1, 0.0).peak(), None);
        assert!(close(law(10.0, 1.0 / 19.0, 0.0).rate(20.0), 100.0, 1e-12));
    }

    /// Linear up to 8 threads and flat from there: no law of contention looks like that.
    #[test]
    fn a_capped_curve_has_no_fit() {
        let points: Vec<Loaded> = RAMP.iter().map(|n| (*n, n.min(8.0))).collect();
        assert_eq!(fit(&points), None);
        assert_eq!(knee(&points), Some(8.0));
    }

    #[test]
    fn five_points_or_a_rate_of_nothing_have_no_fit() {
        let points: Vec<Loaded> =
            RAMP.iter().map(|n| (*n, law(1.0, 0.1, 0.001).rate(*n))).collect();
        assert!(fit(&points).is_some());
        assert_eq!(fit(&points[..5]), None);
        let mut zero = points;
        zero[3].1 = 0.0;
        assert_eq!(fit(&zero), None);
    }

    #[test]
    fn the_knee_is_the_first_point_near_the_greatest() {
        assert_eq!(knee(&[(1.0, 10.0), (2.0, 19.0), (4.0, 19.5), (8.0, 20.0)]), Some(2.0));
        assert_eq!(knee(&[(1.0, 10.0), (2.0, 18.9), (4.0, 20.0)]), Some(4.0));
        assert_eq!(knee(&[(4.0, 20.0)]), None);
        assert_eq!(knee(&[]), None);
    }

    proptest! {
        /// No terms below 0, whatever the points.
        #[test]
        fn terms_are_never_below_0(rates in prop::collection::vec(1.0_f64..1e12, 6..9)) {
            let points: Vec<Loaded> = RAMP.iter().copied().zip(rates).collect();
            if let Some(fit) = fit(&points) {
                prop_assert!(fit.lambda > 0.0 && fit.contention >= 0.0 && fit.coherency >= 0.0);
                prop_assert!(fit.r2 >= R2_MIN);
            }
        }
    }
}
