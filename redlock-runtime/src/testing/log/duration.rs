//! Durations in the syntax of the attribute.

use std::time::Duration;

/// Parses `30`, `30s`, `500ms` or `"1m30s"`. `None` for anything else.
pub(super) fn read(text: &str) -> Option<Duration> {
    let text = text.trim_matches('"').replace('_', "");
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let (mut rest, mut sum) = (text.as_str(), Duration::ZERO);
    while !rest.is_empty() {
        let (number, unit) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let (unit, next) = unit.split_at(unit.find(|c: char| c.is_ascii_digit()).unwrap_or(unit.len()));
        let millis = match unit {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        sum += Duration::from_millis(number.parse::<u64>().ok()?.checked_mul(millis)?);
        rest = next;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_durations_are_parsed_like_in_the_attribute() {
        let table = [
            ("30", Some(30_000)),
            ("30s", Some(30_000)),
            ("\"1m30s\"", Some(90_000)),
            ("500ms", Some(500)),
            ("1_000ms", Some(1000)),
            ("2h", Some(7_200_000)),
            ("1d", Some(86_400_000)),
            ("TTL", None),
            ("30x", None),
            ("s", None),
        ];
        for (text, millis) in table {
            assert_eq!(read(text), millis.map(Duration::from_millis), "{text}");
        }
    }
}
