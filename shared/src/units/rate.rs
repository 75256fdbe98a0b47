//! Bits or bytes per second. Kept in bits per second, since links are sold in bits.

use std::{fmt, str::FromStr};

use super::{Kind, Unit, UnitError, pad};

/// A rate in whole bits per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// From bits per second.
    #[must_use]
    pub const fn from_bits_per_s(bits: u64) -> Self {
        Self(bits)
    }

    /// In bits per second.
    #[must_use]
    pub fn bits_per_s(self) -> u64 {
        self.0
    }

    /// In bytes per second, for figures.
    #[must_use]
    pub fn bytes_per_s(self) -> f64 {
        self.0 as f64 / 8.0
    }

    /// Legal units, in the order in which people are told.
    pub fn units() -> impl Iterator<Item = &'static str> {
        KIND.units.iter().map(|unit| unit.name)
    }
}

impl FromStr for Rate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        KIND.parse(text).map(Self)
    }
}

/// A short exact form, in bits where that is short; it parses back to the same rate.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bits, _) = KIND.units.split_at(BIT_UNITS);
        let in_bits = KIND.shortest(self.0, bits);
        if in_bits.len() <= SHORT {
            return pad(f, &in_bits);
        }
        pad(f, &KIND.shortest(self.0, KIND.units))
    }
}

/// How many of the units count bits.
const BIT_UNITS: usize = 4;
/// A form in bits up to this length (`400 Gbit/s`, `12.5 Mbit/s`) is left in bits.
const SHORT: usize = 12;

static KIND: Kind = Kind {
    what: "rate",
    example: "100 Gbit/s",
    base: "bits per second",
    units: &[
        unit("bit/s", 1, "bits", &["bit", "bps", "b/s", "bits/s"]),
        unit("kbit/s", 1_000, "bits", &["kbit", "kbps", "kb/s", "kbits/s"]),
        unit("Mbit/s", 1_000_000, "bits", &["mbit", "mbps", "mb/s", "mbits/s"]),
        unit("Gbit/s", 1_000_000_000, "bits", &["gbit", "gbps", "gb/s", "gbits/s"]),
        unit("B/s", 8, "bytes", &["b", "byte/s", "bytes/s"]),
        unit("kB/s", 8_000, "bytes", &["kb", "kbyte/s"]),
        unit("MB/s", 8_000_000, "bytes", &["mb", "mbyte/s"]),
        unit("GB/s", 8_000_000_000, "bytes", &["gb", "gbyte/s"]),
        unit("KiB/s", 8 << 10, "bytes, 1024", &["kib", "kb/s"]),
        unit("MiB/s", 8 << 20, "bytes, 1024²", &["mib", "mb/s"]),
        unit("GiB/s", 8 << 30, "bytes, 1024³", &["gib", "gb/s"]),
    ],
};

const fn unit(
    name: &'static str,
    factor: u64,
    meaning: &'static str,
    aliases: &'static [&'static str],
) -> Unit {
    Unit { name, factor, meaning, aliases }
}
