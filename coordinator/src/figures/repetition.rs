//! What repeated points say together: mean, standard deviation, confidence.

/// Student's t, 97.5 % quantile, for 1 to 30 degrees of freedom.
const T_975: [f64; 30] = [
    12.706_204_736_432_1,
    4.302_652_729_911_28,
    3.182_446_305_284_26,
    2.776_445_105_197_79,
    2.570_581_835_636_2,
    2.446_911_848_791_96,
    2.364_624_251_592_78,
    2.306_004_135_033_37,
    2.262_157_162_740_99,
    2.228_138_851_964_94,
    2.200_985_160_082_95,
    2.178_812_829_663_42,
    2.160_368_656_461_01,
    2.144_786_687_916_93,
    2.131_449_545_559_32,
    2.119_905_299_221_01,
    2.109_815_577_833_18,
    2.100_922_040_240_96,
    2.093_024_054_408_26,
    2.085_963_447_265_84,
    2.079_613_844_727_66,
    2.073_873_067_904_02,
    2.068_657_610_419_05,
    2.063_898_561_628_02,
    2.059_538_552_753_29,
    2.055_529_438_642_87,
    2.051_830_516_480_28,
    2.048_407_141_795_24,
    2.045_229_642_132_7,
    2.042_272_456_301_24,
];
/// The normal distribution's 97.5 % quantile.
const Z_975: f64 = 1.959_963_984_540_05;

/// Statistics over the repetitions of one measured combination.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Repetition {
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation, with n − 1; none for a single value.
    pub stddev: Option<f64>,
    /// Half of the width of the mean's 95 % confidence interval (Student t): mean ± this. None for
    /// a single value.
    pub ci95: Option<f64>,
}

/// Statistics of values; none where there are none.
#[must_use]
pub fn repetition(values: &[f64]) -> Option<Repetition> {
    if values.is_empty() {
        return None;
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    let stddev = (values.len() > 1).then(|| (squares / (count - 1.0)).sqrt());
    Some(Repetition {
        mean,
        stddev,
        ci95: stddev.map(|stddev| t_975(values.len() - 1) * stddev / count.sqrt()),
    })
}

/// Student's t, 97.5 % quantile: by table, and beyond it by the first terms of its expansion about
/// the normal distribution's (off by less than 10⁻⁶ there).
fn t_975(freedom: usize) -> f64 {
    freedom.checked_sub(1).and_then(|place| T_975.get(place).copied()).unwrap_or_else(|| {
        let (z, n) = (Z_975, freedom.max(1) as f64);
        let z3 = z.powi(3);
        let z5 = z.powi(5);
        let z7 = z.powi(7);
        z + (z3 + z) / (4.0 * n)
            + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * n * n)
            + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * n.powi(3))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_values_by_hand() {
        // Mean 12, squares 16 + 4 + 0 + 4 + 16 = 40, stddev √10, t(4) = 2.776445.
        let five = repetition(&[8.0, 10.0, 12.0, 14.0, 16.0]).unwrap();
        assert_eq!(five.mean, 12.0);
        assert!((five.stddev.unwrap() - 10_f64.sqrt()).abs() < 1e-12);
        assert!((five.ci95.unwrap() - 2.776_445_105 * 2_f64.sqrt()).abs() < 1e-8);
    }

    #[test]
    fn a_single_value_has_no_spread_and_none_has_nothing() {
        let one = repetition(&[7.0]).unwrap();
        assert_eq!((one.mean, one.stddev, one.ci95), (7.0, None, None));
        assert_eq!(repetition(&[]), None);
    }

    #[test]
    fn the_expansion_meets_the_table_and_known_values() {
        assert!((t_975(31) - 2.039_513).abs() < 2e-6);
        assert!((t_975(60) - 2.000_298).abs() < 1e-6);
        assert!((t_975(1_000) - 1.962_339).abs() < 1e-6);
        assert!(T_975.windows(2).all(|pair| pair[0] > pair[1]) && t_975(31) < t_975(30));
    }
}
