//! Names in a tree, written digit by digit into memory that is taken once.

use std::ffi::CStr;

/// A thread of ten digits, its dash and letter, twenty digits, the suffix and the NUL fit.
const BYTES: usize = 40;
/// Digits of any number.
const DIGITS_MAX: usize = 20;
const SUFFIX: &[u8; 2] = b".r";

/// A name that is written again for each number: `f0000001`, `t00003-f0000001.r`, `d0000`…
#[derive(Debug, Clone)]
pub struct Name {
    bytes: [u8; BYTES],
    /// Where the digits begin.
    digits_at: usize,
    /// Digits at least.
    width: usize,
    /// The least number that has more digits than `width`.
    wide: u64,
}

impl Name {
    /// Names of `letter` and at least `width` digits; behind a thread's number where one is given.
    pub(super) fn new(thread: Option<u32>, letter: u8, width: usize) -> Self {
        let wide = 10_u64.saturating_pow(u32::try_from(width).unwrap_or(u32::MAX));
        let mut name = Self { bytes: [0; BYTES], digits_at: 1, width, wide };
        if let Some(thread) = thread {
            let end = Self::of_thread(thread).copied_to(&mut name.bytes);
            name.bytes[end] = b'-';
            name.digits_at = end + 2;
        }
        name.bytes[name.digits_at - 1] = letter;
        name.set(0, false);
        name
    }

    /// The name of a thread's directory: `t00003`.
    pub(super) fn of_thread(thread: u32) -> Self {
        let mut name = Self::new(None, b't', 5);
        name.set(u64::from(thread), false);
        name
    }

    /// Writes a number, and the suffix of a renamed file.
    #[inline]
    pub fn set(&mut self, number: u64, renamed: bool) {
        let mut count = self.width;
        let mut bound = self.wide;
        while number >= bound && count < DIGITS_MAX {
            count += 1;
            bound = bound.saturating_mul(10);
        }
        let end = self.digits_at + count;
        let mut rest = number;
        for digit in self.bytes[self.digits_at..end].iter_mut().rev() {
            *digit = b'0' + u8::try_from(rest % 10).unwrap_or(0);
            rest /= 10;
        }
        let suffix = if renamed { *SUFFIX } else { [0, 0] };
        self.bytes[end..end + 2].copy_from_slice(&suffix);
        self.bytes[end + 2] = 0;
    }

    /// The name as calls take it.
    #[inline]
    #[must_use]
    pub fn as_c_str(&self) -> &CStr {
        // There is always a NUL: the last byte is never written.
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }

    /// What stands before the digits.
    pub(super) fn prefix(&self) -> &[u8] {
        &self.bytes[..self.digits_at]
    }

    /// Copies the name without its NUL; returns where it ends.
    fn copied_to(&self, bytes: &mut [u8; BYTES]) -> usize {
        let name = self.as_c_str().to_bytes();
        bytes[..name.len()].copy_from_slice(name);
        name.len()
    }
}

/// Whether a name is one that a tree can hold.
pub(super) fn is_of_tree(name: &[u8]) -> bool {
    let digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let name = match name.strip_prefix(b"t") {
        Some(rest) => match rest.iter().position(|byte| *byte == b'-') {
            Some(dash) if digits(&rest[..dash]) => &rest[dash + 1..],
            Some(_) => return false,
            None => return digits(rest),
        },
        None => name,
    };
    match name.split_first() {
        Some((b'f', rest)) => digits(rest.strip_suffix(SUFFIX).unwrap_or(rest)),
        Some((b'd' | b'm', rest)) => digits(rest),
        Some(_) | None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(name: &Name) -> &str {
        name.as_c_str().to_str().unwrap()
    }

    #[test]
    fn names_are_written_as_laid_out() {
        let mut own = Name::new(None, b'f', 7);
        own.set(12, true);
        assert_eq!(text(&own), "f0000012.r");
        own.set(12_345_678, true);
        assert_eq!(text(&own), "f12345678.r");
        own.set(9_999_999, false);
        assert_eq!(text(&own), "f9999999");
        let mut shared = Name::new(Some(3), b'f', 7);
        shared.set(1, false);
        assert_eq!(text(&shared), "t00003-f0000001");
        assert_eq!(shared.prefix(), b"t00003-f");
        let mut longest = Name::new(Some(u32::MAX), b'f', 7);
        longest.set(u64::MAX, true);
        assert_eq!(text(&longest), "t4294967295-f18446744073709551615.r");
        assert_eq!(text(&Name::of_thread(123_456)), "t123456");
        assert_eq!(text(&Name::new(None, b'd', 4)), "d0000");
    }

    #[test]
    fn other_names_are_not_of_a_tree() {
        for name in ["t00003", "d0000", "f0000001", "f1.r", "t00003-f0000001.r", "m1", "t1-m1"] {
            assert!(is_of_tree(name.as_bytes()), "{name}");
        }
        for name in ["", "t", "x1", "f", "f.r", "d1.r", "t1-", "t-f1", "t1-t1", ".nfs01", "f1.rr"] {
            assert!(!is_of_tree(name.as_bytes()), "{name}");
        }
    }
}
