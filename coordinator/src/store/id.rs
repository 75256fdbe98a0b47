//! Names of campaigns: they sort by time, and people can say them.

use std::time::SystemTime;

use jiff::Timestamp;

/// A new campaign's name like `20261201-153012-4f7a`: the time in UTC to the second, then the low
/// 16 bits of `random`, which keep apart those of one second.
///
/// A wall clock outside of the years -9999 to 9999 counts as 1970.
#[must_use]
pub fn campaign_id(wall: SystemTime, random: u32) -> String {
    let time = Timestamp::try_from(wall).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{}-{:04x}", time.strftime("%Y%m%d-%H%M%S"), random & 0xffff)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: u64, random: u32) -> String {
        campaign_id(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds), random)
    }

    #[test]
    fn utc_and_four_digits() {
        assert_eq!(at(1_796_139_012, 0xabcd_4f7a), "20261201-153012-4f7a");
        assert_eq!(at(0, 3), "19700101-000000-0003");
    }

    #[test]
    fn sorts_by_time() {
        assert!(at(1_796_139_012, 0xffff) < at(1_796_139_013, 0));
    }
}
