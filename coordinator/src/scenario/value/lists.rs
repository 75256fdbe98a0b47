//! Values that are lists, and numbers with a fraction: as text, and as what they mean.

use std::collections::BTreeSet;

use iofleet_shared::{
    units::{Rate, Size},
    work::{OpKind, OpShare, SizeShare},
};

use super::{OfferedRate, nearest};

/// Greatest weight in a mix.
const WEIGHT_MAX: u32 = 1_000_000;
/// Most parts of a mix.
const PARTS_MAX: usize = 64;
/// Cores and NUMA nodes have numbers below this.
const NUMBER_MAX: u32 = 65_535;
/// Operations in 1000 s: a million millions in a second.
const PER_1000_S_MAX: u64 = 1_000_000_000_000_000;

/// A number of 1/1000 as people write it: `1200` is `1.2`.
pub(in super::super) fn milli(value: u32) -> String {
    let (whole, rest) = (value / 1000, value % 1000);
    if rest == 0 {
        return whole.to_string();
    }
    format!("{whole}.{}", format!("{rest:03}").trim_end_matches('0'))
}

/// 1/1000 of a decimal number; none when it is no number from 0 up, or too large.
pub(super) fn decimal(text: &str) -> Result<Option<u32>, String> {
    let text = text.trim();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return Ok(None);
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 3 {
        return Err(format!("`{text}` has more than three digits behind the point"));
    }
    let rest: u32 = format!("{fraction:0<3}").parse().unwrap_or(0);
    let whole: Option<u32> = whole.parse().ok();
    Ok(whole.and_then(|whole| whole.checked_mul(1000)?.checked_add(rest)))
}

/// A size, or sizes with weights: `4 KiB 70, 64 KiB 30`.
pub(super) fn sizes(text: &str) -> Result<Vec<SizeShare>, String> {
    let parts: Vec<&str> = text.split(',').collect();
    let mut sizes: Vec<SizeShare> = Vec::new();
    for part in &parts {
        let (size, weight) = weighted(part)?;
        let bytes = size.parse::<Size>().map_err(|error| error.to_string())?.bytes();
        if parts.len() > 1 && weight.is_none() {
            return Err(format!(
                "`{}` has no weight: write a mix as `4 KiB 70, 64 KiB 30`",
                part.trim()
            ));
        }
        if parts.len() == 1 && weight.is_some() {
            return Err(format!("`{}`: one size needs no weight", part.trim()));
        }
        if sizes.iter().any(|known| known.bytes == bytes) {
            return Err(format!("{} stands twice in the mix", Size::from_bytes(bytes)));
        }
        sizes.push(SizeShare { bytes, weight: weight.unwrap_or(1) });
    }
    if sizes.len() > PARTS_MAX {
        return Err(format!("a mix of more than {PARTS_MAX} sizes"));
    }
    sizes.sort_by_key(|share| share.bytes);
    Ok(sizes)
}

/// Kinds of operation with weights: `read 70, write 30`.
pub(super) fn mix(text: &str) -> Result<Vec<OpShare>, String> {
    let mut shares: Vec<OpShare> = Vec::new();
    for part in text.split(',') {
        let (word, weight) = weighted(part)?;
        let Some(op) = OpKind::ALL.into_iter().find(|op| op.name() == word) else {
            let words = || OpKind::ALL.into_iter().map(OpKind::name);
            let hint = nearest(word, words()).map_or_else(
                || format!("legal are {}", words().collect::<Vec<_>>().join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            return Err(format!("`{word}` is not a kind of operation; {hint}"));
        };
        let Some(weight) = weight else {
            return Err(format!("`{word}` has no weight: write a mix as `read 70, write 30`"));
        };
        if shares.iter().any(|known| known.op == op) {
            return Err(format!("`{word}` stands twice in the mix"));
        }
        shares.push(OpShare { op, weight });
    }
    if shares.len() < 2 {
        return Err(
            "a mix has two kinds of operation at least, as in `read 70, write 30`; for one \
                    set op alone"
                .to_owned(),
        );
    }
    shares.sort_by_key(|share| share.op);
    Ok(shares)
}

/// What is weighted, and its weight if there is one.
fn weighted(part: &str) -> Result<(&str, Option<u32>), String> {
    let part = part.trim();
    let Some((what, last)) = part.rsplit_once(char::is_whitespace) else {
        return Ok((part, None));
    };
    if !last.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok((part, None));
    }
    let weight = last.parse().ok().filter(|weight| (1..=WEIGHT_MAX).contains(weight));
    let weight =
        weight.ok_or_else(|| format!("`{last}` is not a weight from 1 to {WEIGHT_MAX}"))?;
    Ok((what.trim_end(), Some(weight)))
}

/// A rate of operations or bytes; none when it is 0 or too large.
pub(super) fn offered(text: &str) -> Result<Option<OfferedRate>, String> {
    let text = text.trim();
    if let Some(number) = text.strip_suffix("op/s") {
        let number = number.trim_end();
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.len() > 3 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(format!("`{text}` is not a whole number of operations in 1000 s"));
        }
        let parsed: Option<u64> = format!("{whole}{fraction:0<3}").parse().ok();
        let parsed = parsed.filter(|_| whole.bytes().all(|byte| byte.is_ascii_digit()));
        return Ok(parsed
            .filter(|rate| (1..=PER_1000_S_MAX).contains(rate))
            .map(OfferedRate::Operations));
    }
    let rate: Rate =
        text.parse().map_err(|error| format!("{error}; or operations, as in `5000 op/s`"))?;
    let in_bounds = (1..=1 << 53).contains(&rate.bits_per_s());
    Ok(in_bounds.then_some(OfferedRate::Bytes(rate)))
}

/// Numbers and ranges, sorted; none when that is not what it is.
pub(super) fn numbers(text: &str) -> Option<Vec<u32>> {
    let number = |text: &str| text.trim().parse::<u32>().ok().filter(|n| *n <= NUMBER_MAX);
    let mut all = BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return None;
        }
        all.extend(first..=last);
    }
    Some(all.into_iter().collect())
}

pub(super) fn show_sizes(sizes: &[SizeShare]) -> String {
    if let [one] = sizes {
        return Size::from_bytes(one.bytes).to_string();
    }
    let parts: Vec<String> = sizes
        .iter()
        .map(|share| format!("{} {}", Size::from_bytes(share.bytes), share.weight))
        .collect();
    parts.join(", ")
}

pub(super) fn show_mix(shares: &[OpShare]) -> String {
    let parts: Vec<String> =
        shares.iter().map(|share| format!("{} {}", share.op.name(), share.weight)).collect();
    parts.join(", ")
}

pub(super) fn show_offered(rate: OfferedRate) -> String {
    match rate {
        OfferedRate::Operations(per_1000_s) => {
            let (whole, rest) = (per_1000_s / 1000, per_1000_s % 1000);
            let fraction = format!(".{rest:03}");
            let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
            format!("{whole}{fraction} op/s")
        }
        OfferedRate::Bytes(rate) => rate.to_string(),
    }
}

pub(super) fn show_numbers(numbers: &[u32]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let runs = numbers.chunk_by(|a, b| *b == a.saturating_add(1));
    for run in runs {
        match run {
            [] => {}
            [one] => parts.push(one.to_string()),
            [first, .., last] => parts.push(format!("{first}-{last}")),
        }
    }
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn mixes_of_sizes_and_kinds() {
        let size = |bytes, weight| SizeShare { bytes, weight };
        assert_eq!(sizes("4 KiB"), Ok(vec![size(4096, 1)]));
        assert_eq!(sizes("4KiB 70,64 KiB  30"), Ok(vec![size(4096, 70), size(65536, 30)]));
        assert_eq!(
            sizes("4 KiB, 64 KiB 30").unwrap_err(),
            "`4 KiB` has no weight: write a mix as `4 KiB 70, 64 KiB 30`"
        );
        assert_eq!(sizes("4 KiB 70").unwrap_err(), "`4 KiB 70`: one size needs no weight");
        assert_eq!(sizes("4 KiB 1, 4096 B 2").unwrap_err(), "4 KiB stands twice in the mix");
        assert_eq!(sizes("4 KiB 0, 1 B 1").unwrap_err(), "`0` is not a weight from 1 to 1000000");
        let share = |op, weight| OpShare { op, weight };
        assert_eq!(
            mix("write 30, read 70"),
            Ok(vec![share(OpKind::Write, 30), share(OpKind::Read, 70)])
        );
        assert_eq!(
            mix("reed 1, write 1").unwrap_err(),
            "`reed` is not a kind of operation; did you mean `read`?"
        );
        assert!(mix("read 70").unwrap_err().contains("two kinds"));
        assert!(mix("read 70, read 30").unwrap_err().contains("stands twice"));
        assert!(mix("read, write").unwrap_err().starts_with("`read` has no weight"));
    }

    #[test]
    fn rates_of_operations_and_bytes() {
        assert_eq!(offered("5000 op/s"), Ok(Some(OfferedRate::Operations(5_000_000))));
        assert_eq!(offered("0.25op/s"), Ok(Some(OfferedRate::Operations(250))));
        assert_eq!(offered("0 op/s"), Ok(None));
        assert_eq!(offered("x op/s"), Ok(None));
        assert!(offered("0.0001 op/s").is_err());
        let bytes = OfferedRate::Bytes(Rate::from_bits_per_s(1_600_000_000));
        assert_eq!(offered("200 MB/s"), Ok(Some(bytes)));
        assert!(offered("5000").unwrap_err().ends_with("or operations, as in `5000 op/s`"));
        assert_eq!(show_offered(OfferedRate::Operations(250)), "0.25 op/s");
    }

    #[test]
    fn lists_of_cores() {
        assert_eq!(numbers("8, 0-2"), Some(vec![0, 1, 2, 8]));
        assert_eq!(show_numbers(&[0, 1, 2, 8]), "0-2,8");
        assert_eq!(numbers("3-1"), None);
        assert_eq!(numbers("1,"), None);
        assert_eq!(numbers("70000"), None);
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_again(
            value in 0_u32..2_000_000, rate in 1_u64..10_000_000,
            list in proptest::collection::btree_set(0_u32..200, 1..20),
        ) {
            prop_assert_eq!(decimal(&milli(value)), Ok(Some(value)));
            let rate = OfferedRate::Operations(rate);
            prop_assert_eq!(offered(&show_offered(rate)), Ok(Some(rate)));
            let list: Vec<u32> = list.into_iter().collect();
            prop_assert_eq!(numbers(&show_numbers(&list)), Some(list));
        }
    }
}
