//! Overall response time: one number for the response of a system over its whole range of loads.

/// A load and the response to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadPoint {
    /// Operations per second that completed.
    pub achieved_per_s: f64,
    /// Mean response time in ns.
    pub response_ns: f64,
}

/// The area under mean response over achieved rate, over the highest such rate, in ns. Between two
/// points the response is taken to be linear, and below the first one flat. The points are those
/// that were not overloaded, in any order. None for fewer than two, or where nothing was achieved.
#[must_use]
pub fn ort(points: &[LoadPoint]) -> Option<f64> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|one, other| one.achieved_per_s.total_cmp(&other.achieved_per_s));
    let (first, last) = (sorted.first()?, sorted.last()?);
    if sorted.len() < 2 || last.achieved_per_s <= 0.0 {
        return None;
    }
    let trapezoids = sorted.windows(2).map(|pair| {
        let [low, high] = pair else { return 0.0 };
        let width = high.achieved_per_s - low.achieved_per_s;
        width * f64::midpoint(low.response_ns, high.response_ns)
    });
    let area = first.achieved_per_s * first.response_ns + trapezoids.sum::<f64>();
    Some(area / last.achieved_per_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(points: &[(f64, f64)]) -> Option<f64> {
        let point = |(achieved_per_s, response_ns): &(f64, f64)| LoadPoint {
            achieved_per_s: *achieved_per_s,
            response_ns: *response_ns,
        };
        ort(&points.iter().map(point).collect::<Vec<_>>())
    }

    #[test]
    fn area_over_the_highest_rate_by_hand() {
        // [0, 100] flat at 2: 200. [100, 300] from 2 to 4: 600. [300, 400] from 4 to 12: 800.
        let expected = Some((200.0 + 600.0 + 800.0) / 400.0);
        assert_eq!(of(&[(100.0, 2.0), (300.0, 4.0), (400.0, 12.0)]), expected);
        assert_eq!(of(&[(400.0, 12.0), (100.0, 2.0), (300.0, 4.0)]), expected);
        // A system that always answers alike.
        assert_eq!(of(&[(10.0, 7.0), (90.0, 7.0)]), Some(7.0));
    }

    #[test]
    fn one_load_is_no_curve() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[(100.0, 2.0)]), None);
        assert_eq!(of(&[(0.0, 2.0), (0.0, 3.0)]), None);
    }
}
