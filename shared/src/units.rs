//! Sizes, rates and times as people write them, and figures as people read them.
//!
//! Every quantity carries a unit, in exact case, with an optional blank before it. A wrong unit is
//! refused with the nearest legal form, because `Mb` for `MB` is a factor of eight and nobody sees
//! it in a result. Parsing is exact: decimal fractions are fine as long as the whole is a whole
//! number of bytes, bits per second or nanoseconds.

use std::fmt;

pub use people::{format_count, format_duration_ns, format_ops, format_rate, format_size};
pub use rate::Rate;
pub use size::Size;
pub use time::Time;

mod people;
mod rate;
mod size;
mod time;

/// A quantity that can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// A number alone.
    #[error("`{text}`: a {what} needs a unit, as in `{example}`")]
    NoUnit {
        /// What was written.
        text: String,
        /// Kind of quantity.
        what: &'static str,
        /// A legal one.
        example: &'static str,
    },
    /// Nothing that begins with a number.
    #[error("`{text}` is not a {what}: write a number and a unit, as in `{example}`")]
    NoNumber {
        /// What was written.
        text: String,
        /// Kind of quantity.
        what: &'static str,
        /// A legal one.
        example: &'static str,
    },
    /// A unit that does not exist for this kind of quantity.
    #[error("`{text}`: `{unit}` is not a unit of a {what}; {hint}")]
    Unit {
        /// What was written.
        text: String,
        /// Its unit.
        unit: String,
        /// Kind of quantity.
        what: &'static str,
        /// The nearest legal forms, or all of them.
        hint: String,
    },
    /// A fraction of what can't be split.
    #[error("`{text}` is not a whole number of {base}")]
    Fraction {
        /// What was written.
        text: String,
        /// What it is counted in.
        base: &'static str,
    },
    /// More than 64 bits hold.
    #[error("`{text}` is too large for a {what}: at most 2^64 {base}")]
    TooLarge {
        /// What was written.
        text: String,
        /// Kind of quantity.
        what: &'static str,
        /// What it is counted in.
        base: &'static str,
    },
}

/// One legal unit of a kind of quantity.
#[derive(Debug)]
struct Unit {
    name: &'static str,
    /// In base units.
    factor: u64,
    /// Said in brackets where two units are easily confused.
    meaning: &'static str,
    /// Lower-case spellings of people who may have meant it.
    aliases: &'static [&'static str],
}

/// A kind of quantity: its words and its units, the base unit first.
#[derive(Debug)]
struct Kind {
    what: &'static str,
    example: &'static str,
    base: &'static str,
    units: &'static [Unit],
}

impl Kind {
    /// The whole number of base units that a text means.
    fn parse(&self, written: &str) -> Result<u64, UnitError> {
        let text = written.trim();
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, rest) = text.split_at(end);
        let unit = rest.trim_start();
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        if whole.is_empty()
            || fraction.is_empty()
            || fraction.contains('.')
            || unit.starts_with([',', '_', '\'', '+', '-'])
        {
            let (what, example) = (self.what, self.example);
            return Err(UnitError::NoNumber { text: written.to_owned(), what, example });
        }
        if unit.is_empty() {
            let (what, example) = (self.what, self.example);
            return Err(UnitError::NoUnit { text: text.to_owned(), what, example });
        }
        let Some(unit) = self.units.iter().find(|legal| legal.name == unit) else {
            return Err(self.wrong_unit(text, unit));
        };
        self.scale(text, whole, fraction.trim_end_matches('0'), unit.factor)
    }

    fn scale(
        &self,
        text: &str,
        whole: &str,
        fraction: &str,
        factor: u64,
    ) -> Result<u64, UnitError> {
        let too_large =
            || UnitError::TooLarge { text: text.to_owned(), what: self.what, base: self.base };
        let broken = || UnitError::Fraction { text: text.to_owned(), base: self.base };
        let factor = u128::from(factor);
        let whole: u128 = whole.parse().map_err(|_| too_large())?;
        let mut total = whole.checked_mul(factor).ok_or_else(too_large)?;
        if !fraction.is_empty() {
            // No factor has more than 15 decimal digits, so a longer fraction is never whole.
            let digits = u32::try_from(fraction.len()).map_err(|_| broken())?;
            let parts: u128 = fraction.parse().map_err(|_| broken())?;
            let scale = 10_u128.checked_pow(digits).ok_or_else(broken)?;
            let product = parts.checked_mul(factor).ok_or_else(broken)?;
            if product % scale != 0 {
                return Err(broken());
            }
            total = total.checked_add(product / scale).ok_or_else(too_large)?;
        }
        u64::try_from(total).map_err(|_| too_large())
    }

    fn wrong_unit(&self, text: &str, unit: &str) -> UnitError {
        let lower = unit.to_lowercase();
        let near: Vec<String> = self
            .units
            .iter()
            .filter(|legal| {
                legal.name.to_lowercase() == lower || legal.aliases.contains(&lower.as_str())
            })
            .map(|legal| format!("{} ({})", legal.name, legal.meaning))
            .collect();
        let hint = if near.is_empty() {
            let all: Vec<&str> = self.units.iter().map(|legal| legal.name).collect();
            format!("legal are {}", all.join(", "))
        } else {
            format!("did you mean {}?", near.join(" or "))
        };
        UnitError::Unit { text: text.to_owned(), unit: unit.to_owned(), what: self.what, hint }
    }

    /// The shortest exact form, with at most three decimals; of two as short, the larger unit.
    fn shortest(&self, value: u64, units: &[Unit]) -> String {
        units
            .iter()
            .filter_map(|unit| exact(value, unit))
            .reduce(|best, next| if next.len() <= best.len() { next } else { best })
            .unwrap_or_else(|| format!("{value} {}", self.units[0].name))
    }
}

/// A value in a unit, when three decimals hold all of it and it is at least one.
fn exact(value: u64, unit: &Unit) -> Option<String> {
    if value < unit.factor {
        return None;
    }
    let (whole, rest) = (value / unit.factor, u128::from(value % unit.factor));
    let thousandths = rest * 1000;
    let factor = u128::from(unit.factor);
    if !thousandths.is_multiple_of(factor) {
        return None;
    }
    let decimals = format!("{:03}", thousandths / factor);
    let decimals = decimals.trim_end_matches('0');
    let point = if decimals.is_empty() { "" } else { "." };
    Some(format!("{whole}{point}{decimals} {}", unit.name))
}

/// Shared by the types' `Display`, so that widths in a format string are kept.
fn pad(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.pad(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn size_error(text: &str) -> String {
        text.parse::<Size>().unwrap_err().to_string()
    }

    #[test]
    fn wrong_sizes_name_the_right_form() {
        let cases = [
            ("4 KB", "`4 KB`: `KB` is not a unit of a size; did you mean kB (1000) or KiB (1024)?"),
            ("4K", "`4K`: `K` is not a unit of a size; did you mean kB (1000) or KiB (1024)?"),
            ("4Mb", "`4Mb`: `Mb` is not a unit of a size; did you mean MB (1000²) or MiB (1024²)?"),
            ("4 gib", "`4 gib`: `gib` is not a unit of a size; did you mean GiB (1024³)?"),
            (
                "4q",
                "`4q`: `q` is not a unit of a size; legal are B, kB, MB, GB, TB, KiB, MiB, GiB, TiB",
            ),
            ("4096", "`4096`: a size needs a unit, as in `4 KiB`"),
            ("0", "`0`: a size needs a unit, as in `4 KiB`"),
            ("", "`` is not a size: write a number and a unit, as in `4 KiB`"),
            ("-1 B", "`-1 B` is not a size: write a number and a unit, as in `4 KiB`"),
            ("1,5 GB", "`1,5 GB` is not a size: write a number and a unit, as in `4 KiB`"),
            ("1.2.3 GB", "`1.2.3 GB` is not a size: write a number and a unit, as in `4 KiB`"),
            (".5 GB", "`.5 GB` is not a size: write a number and a unit, as in `4 KiB`"),
            ("5. GB", "`5. GB` is not a size: write a number and a unit, as in `4 KiB`"),
            ("0.5 B", "`0.5 B` is not a whole number of bytes"),
            ("1.0001 kB", "`1.0001 kB` is not a whole number of bytes"),
            ("16777216 TiB", "`16777216 TiB` is too large for a size: at most 2^64 bytes"),
        ];
        for (text, expected) in cases {
            assert_eq!(size_error(text), expected);
        }
    }

    #[test]
    fn so_do_wrong_rates_and_times() {
        let rate = |text: &str| text.parse::<Rate>().unwrap_err().to_string();
        assert_eq!(
            rate("400 Gb/s"),
            "`400 Gb/s`: `Gb/s` is not a unit of a rate; did you mean Gbit/s (bits) or GB/s (bytes) \
             or GiB/s (bytes, 1024³)?"
        );
        assert_eq!(
            rate("400 Gbit"),
            "`400 Gbit`: `Gbit` is not a unit of a rate; did you mean Gbit/s (bits)?"
        );
        let time = |text: &str| text.parse::<Time>().unwrap_err().to_string();
        assert_eq!(
            time("5 m"),
            "`5 m`: `m` is not a unit of a time; did you mean ms (milliseconds) or min (minutes)?"
        );
        assert_eq!(time("10"), "`10`: a time needs a unit, as in `10 s`");
    }

    #[test]
    fn legal_forms_are_exact() {
        let sizes = [
            ("0 B", 0),
            ("1B", 1),
            ("1 kB", 1_000),
            ("1 KiB", 1_024),
            ("1.5 KiB", 1_536),
            ("0.001 kB", 1),
            ("  2\tMiB ", 2 << 20),
            ("16 GiB", 16 << 30),
            ("1 TB", 1_000_000_000_000),
            ("15.5 TiB", (31 << 40) / 2),
            ("18446744073709551615 B", u64::MAX),
            ("1.50000000000000000000000 kB", 1_500),
        ];
        for (text, bytes) in sizes {
            assert_eq!(text.parse::<Size>().map(Size::bytes), Ok(bytes), "{text}");
        }
        let bits = |text: &str| text.parse::<Rate>().map(Rate::bits_per_s);
        assert_eq!(bits("400 Gbit/s"), Ok(400_000_000_000));
        assert_eq!(bits("1 MiB/s"), Ok(8 << 20));
        assert_eq!(bits("12.5 GB/s"), Ok(100_000_000_000));
        let ns = |text: &str| text.parse::<Time>().map(Time::ns);
        assert_eq!(ns("10ms"), Ok(10_000_000));
        assert_eq!(ns("1.5 min"), Ok(90_000_000_000));
        assert_eq!(ns("1 h"), Ok(3_600_000_000_000));
    }

    #[test]
    fn the_short_form_is_what_people_write() {
        let size = |bytes: u64| Size::from_bytes(bytes).to_string();
        assert_eq!(size(0), "0 B");
        assert_eq!(size(512), "512 B");
        assert_eq!(size(1 << 20), "1 MiB");
        assert_eq!(size(1_536 << 10), "1.5 MiB");
        assert_eq!(size(16 << 30), "16 GiB");
        assert_eq!(size(2_000_000_000), "2 GB");
        assert_eq!(size(1_000_001), "1000001 B");
        let time = |ns: u64| Time::from_ns(ns).to_string();
        assert_eq!(time(1_000_000_000), "1 s");
        assert_eq!(time(90_000_000_000), "90 s");
        assert_eq!(time(200_000_000), "200 ms");
        assert_eq!(Rate::from_bits_per_s(400_000_000_000).to_string(), "400 Gbit/s");
        assert_eq!(Rate::from_bits_per_s(8 << 30).to_string(), "1 GiB/s");
    }

    proptest! {
        #[test]
        fn what_is_shown_parses_back(value: u64, shift in 0_u32..64, unit in 0_usize..9) {
            let small = value >> shift;
            // Values near the units, too: there the short forms are.
            let near = (value % 100_000).saturating_mul(SIZE_FACTORS[unit]);
            for value in [small, near] {
                prop_assert_eq!(Size::from_bytes(value).to_string().parse(), Ok(Size::from_bytes(value)));
                prop_assert_eq!(Time::from_ns(value).to_string().parse(), Ok(Time::from_ns(value)));
                let rate = Rate::from_bits_per_s(value);
                prop_assert_eq!(rate.to_string().parse(), Ok(rate));
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,40}", number in "[0-9.]{0,60}", unit in "[a-zA-Z/% ]{0,6}") {
            let _ = text.parse::<Size>();
            let _ = format!("{number}{unit}").parse::<Rate>();
            let _ = format!("{number} GiB").parse::<Size>();
        }
    }

    const SIZE_FACTORS: [u64; 9] =
        [1, 1_000, 1_000_000, 1_000_000_000, 1_000_000_000_000, 1 << 10, 1 << 20, 1 << 30, 1 << 40];
}
