//! Short texts of durations.

use std::time::Duration;

/// Returns a short text: `12.3s`, `4m 12s`, `3h 20m`.
pub(crate) fn age(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{:.1}s", time.as_secs_f64()),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_printed_with_at_most_two_units() {
        let table = [(0, "0.0s"), (12_345, "12.3s"), (60_000, "1m 00s"), (252_000, "4m 12s"), (12_000_000, "3h 20m")];
        for (millis, expected) in table {
            assert_eq!(age(Duration::from_millis(millis)), expected);
        }
    }
}
