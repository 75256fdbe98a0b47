//! Figures for people: rounded, with the unit spelled out. What must parse back is shown by the
//! types' `Display` instead.

use super::Size;

/// Bytes per second as people read them: `45.10 GB/s`, and GiB/s where `binary`.
#[must_use]
pub fn format_rate(bytes_per_s: f64, binary: bool) -> String {
    if binary {
        scaled(bytes_per_s, 1024.0, &["B/s", "KiB/s", "MiB/s", "GiB/s"])
    } else {
        scaled(bytes_per_s, 1000.0, &["B/s", "kB/s", "MB/s", "GB/s"])
    }
}

/// Operations per second as people read them: `43,010 ops/s`.
#[must_use]
pub fn format_ops(ops_per_s: f64) -> String {
    if !ops_per_s.is_finite() {
        return NOT_A_FIGURE.to_owned();
    }
    if ops_per_s.abs() < 99.95 {
        return format!("{ops_per_s:.1} ops/s");
    }
    format!("{} ops/s", grouped(&format!("{ops_per_s:.0}")))
}

/// A count with its thousands apart: `1,048,576`.
#[must_use]
pub fn format_count(count: u64) -> String {
    grouped(&count.to_string())
}

/// A latency or a length of time: `850 ns`, `1.27 ms`, `12.3 s`, `2 min 05 s`, `3 h 20 min`.
#[must_use]
pub fn format_duration_ns(ns: u64) -> String {
    let seconds = ns.saturating_add(NS_PER_S / 2) / NS_PER_S;
    if seconds >= 3600 {
        let minutes = ns.saturating_add(30 * NS_PER_S) / (60 * NS_PER_S);
        return format!("{} h {:02} min", minutes / 60, minutes % 60);
    }
    if seconds >= 60 {
        return format!("{} min {:02} s", seconds / 60, seconds % 60);
    }
    if ns < 1000 {
        return format!("{ns} ns");
    }
    let mut value = ns as f64 / 1000.0;
    let mut unit = "us";
    for next in ["ms", "s"] {
        if value < 999.5 {
            break;
        }
        value /= 1000.0;
        unit = next;
    }
    let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.decimals$} {unit}")
}

/// A number of bytes: the exact form where that is short (`16 GiB`), else rounded (`17.18 GB`).
#[must_use]
pub fn format_size(bytes: u64) -> String {
    let exact = Size::from_bytes(bytes).to_string();
    if exact.len() <= EXACT_UP_TO {
        return exact;
    }
    scaled(bytes as f64, 1000.0, &["B", "kB", "MB", "GB", "TB"])
}

const NS_PER_S: u64 = 1_000_000_000;
/// Length up to which an exact size is shown as it is.
const EXACT_UP_TO: usize = 9;
const NOT_A_FIGURE: &str = "–";

/// Two decimals below 100, one above, none for the base unit.
fn scaled(mut value: f64, step: f64, units: &[&str]) -> String {
    if !value.is_finite() {
        return NOT_A_FIGURE.to_owned();
    }
    let mut place = 0;
    // What would be rounded up to a full step belongs to the next unit.
    while place + 1 < units.len() && value.abs() >= step - 0.05 {
        value /= step;
        place += 1;
    }
    let decimals = match place {
        0 => 0,
        _ if value.abs() < 99.995 => 2,
        _ => 1,
    };
    format!("{value:.decimals$} {}", units[place])
}

fn grouped(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_change_their_unit_where_they_round_up() {
        let cases = [
            (0.0, "0 B/s"),
            (999.0, "999 B/s"),
            (45_100_000_000.0, "45.10 GB/s"),
            (451_000_000_000.0, "451.0 GB/s"),
            (1_250_000_000_000.0, "1250.0 GB/s"),
            (99_240_000.0, "99.24 MB/s"),
            (999_960_000.0, "1.00 GB/s"),
            (1_500.0, "1.50 kB/s"),
            (f64::NAN, "–"),
        ];
        for (rate, expected) in cases {
            assert_eq!(format_rate(rate, false), expected);
        }
        assert_eq!(format_rate(2_147_483_648.0, true), "2.00 GiB/s");
        assert_eq!(format_rate(1_023_990.0, true), "1000.0 KiB/s");
    }

    #[test]
    fn latencies_keep_three_digits() {
        let cases = [
            (0, "0 ns"),
            (850, "850 ns"),
            (1_270_000, "1.27 ms"),
            (12_345_000, "12.3 ms"),
            (123_456_000, "123 ms"),
            (999_600, "1.00 ms"),
            (1_000_000_000, "1.00 s"),
            (12_340_000_000, "12.3 s"),
            (59_700_000_000, "1 min 00 s"),
            (125_000_000_000, "2 min 05 s"),
            (3_599_600_000_000, "1 h 00 min"),
            (12_000_000_000_000, "3 h 20 min"),
        ];
        for (ns, expected) in cases {
            assert_eq!(format_duration_ns(ns), expected);
        }
    }

    #[test]
    fn counts_and_sizes_are_readable() {
        assert_eq!(format_ops(43_010.4), "43,010 ops/s");
        assert_eq!(format_ops(12.34), "12.3 ops/s");
        assert_eq!(format_ops(99.96), "100 ops/s");
        assert_eq!(format_count(1_048_576), "1,048,576");
        assert_eq!(format_count(512), "512");
        assert_eq!(format_size(64 << 30), "64 GiB");
        assert_eq!(format_size(17_179_869_185), "17.18 GB");
    }
}
