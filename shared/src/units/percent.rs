//! Shares of a whole.

use std::{fmt, str::FromStr};

use super::{Kind, Unit, UnitError, pad};

/// A share in whole millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Percent(u64);

impl Percent {
    /// From millionths of the whole.
    #[must_use]
    pub const fn from_millionths(millionths: u64) -> Self {
        Self(millionths)
    }

    /// In millionths of the whole.
    #[must_use]
    pub fn millionths(self) -> u64 {
        self.0
    }
}

impl FromStr for Percent {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        KIND.parse(text).map(Self)
    }
}

/// The exact share; it parses back to the same.
impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, parts) = (self.0 / PERCENT, self.0 % PERCENT);
        let decimals = format!("{parts:04}");
        let decimals = decimals.trim_end_matches('0');
        let point = if decimals.is_empty() { "" } else { "." };
        pad(f, &format!("{whole}{point}{decimals} %"))
    }
}

/// Millionths in one percent.
const PERCENT: u64 = 10_000;

static KIND: Kind = Kind {
    what: "percentage",
    example: "5 %",
    base: "millionths",
    units: &[Unit {
        name: "%",
        factor: PERCENT,
        meaning: "percent",
        aliases: &["percent", "pct", "p"],
    }],
};
