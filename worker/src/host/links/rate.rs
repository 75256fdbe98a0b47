//! What an InfiniBand port's text says of its rate. Pure.

/// Data rate in each direction, and who says so, from a text such as `100 Gb/sec (4X EDR)`.
///
/// Up to QDR the text is the signalling rate, of which 8 of 10 bits are data. For FDR it is a
/// rounded signalling rate: 14.0625 Gbit/s a lane, of which 64 of 66 bits are data. FDR10 and
/// whatever came after FDR say their data rate. (InfiniBand Architecture Specification, volume 2.)
pub(super) fn parse(text: &str) -> Option<(u64, String)> {
    let (rate, rest) = text.split_once(" Gb/sec")?;
    let (whole, tenths) = rate.split_once('.').unwrap_or((rate, "0"));
    let said = whole.parse::<u64>().ok()? * 1_000_000_000
        + tenths.get(..1)?.parse::<u64>().ok()? * 100_000_000;
    let inside = rest.trim().trim_start_matches('(').trim_end_matches(')');
    let (lanes, generation) = inside.split_once("X ").or_else(|| inside.split_once('X'))?;
    let lanes: u64 = lanes.parse().ok()?;
    let corrected = match generation.trim() {
        "FDR" => Some(lanes * 14_062_500_000 / 66 * 64),
        "SDR" | "DDR" | "QDR" | "" => Some(said / 10 * 8),
        _ => None,
    };
    let source = match corrected {
        Some(_) => format!("kernel: {text}, less its coding"),
        None => format!("kernel: {text}"),
    };
    Some((corrected.unwrap_or(said), source))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn data_rates_by_generation() {
        let rate = |text: &str| parse(text).map(|(rate, _)| rate);
        assert_eq!(rate("100 Gb/sec (4X EDR)"), Some(100_000_000_000));
        assert_eq!(rate("200 Gb/sec (4X HDR)"), Some(200_000_000_000));
        assert_eq!(rate("40 Gb/sec (4X QDR)"), Some(32_000_000_000));
        assert_eq!(rate("40 Gb/sec (4X FDR10)"), Some(40_000_000_000));
        assert_eq!(rate("2.5 Gb/sec (1X SDR)"), Some(2_000_000_000));
        // 4 x 14.0625 x 64/66 = 54.5454… and not 56.
        assert!(rate("56 Gb/sec (4X FDR)").unwrap().abs_diff(54_545_454_545) < 1_000);
        assert_eq!(rate("10 Gb/sec (4X)"), Some(8_000_000_000));
        for damaged in ["", "fast", "x Gb/sec (4X EDR)", "100 Gb/sec", "100 Gb/sec (EDR)"] {
            assert_eq!(rate(damaged), None, "{damaged}");
        }
    }
}
