//! Seeds in the environment, which replace the seeds of a test.

use std::ops::RangeInclusive;

/// Variable with one seed, or with a range of seeds.
pub(super) const VARIABLE: &str = "REDLOCK_SEED";

/// Returns the seeds in the environment, if the variable is set.
///
/// # Panics
/// If the text is neither a number nor a range.
#[track_caller]
pub(super) fn from_environment() -> Option<RangeInclusive<u64>> {
    let text = std::env::var(VARIABLE).ok()?;
    match read(&text) {
        Some(seeds) => Some(seeds),
        None => panic!("{VARIABLE}={text} names no seed: write one, as in 41, or several, as in 0..100000"),
    }
}

/// Parses `41`, `0..1000` or `0..=999`. `None` for anything else, and for a range without a seed.
fn read(text: &str) -> Option<RangeInclusive<u64>> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let Some((first, end)) = text.split_once("..") else {
        return number(text).map(|seed| seed..=seed);
    };
    let last = match end.strip_prefix('=') {
        Some(last) => number(last)?,
        None => number(end)?.checked_sub(1)?,
    };
    Some(number(first)?..=last).filter(|seeds| !seeds.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_parsed_as_numbers_or_rust_ranges() {
        let table = [
            ("41", Some(41..=41)),
            (" 41 ", Some(41..=41)),
            ("0..3", Some(0..=2)),
            ("5..=7", Some(5..=7)),
            ("18446744073709551615", Some(u64::MAX..=u64::MAX)),
            ("3..3", None),
            ("0..0", None),
            ("7..=5", None),
            ("..5", None),
            ("5..", None),
            ("-1", None),
            ("", None),
            ("all", None),
        ];
        for (text, expected) in table {
            assert_eq!(read(text), expected, "{text}");
        }
    }
}
