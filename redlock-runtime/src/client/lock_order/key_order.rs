//! Comparison of two keys, in the two ways in which programs sort keys.

use std::cmp::Ordering;

/// Returns the order by letters and the order by the numbers in the text. `order:9` comes after `order:10` by letters,
/// and before it by numbers. A program that sorts in one of the two ways has a consistent order.
pub(super) fn compare_by_text_and_number(one: &str, other: &str) -> [Ordering; 2] {
    [one.cmp(other), by_numbers(one, other)]
}

/// Returns `true` if two keys differ only in the numbers in them.
pub(super) fn differ_in_numbers_only(one: &str, other: &str) -> bool {
    let letters = |key: &'_ str| key.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    letters(one) == letters(other)
}

fn by_numbers(one: &str, other: &str) -> Ordering {
    let (mut ours, mut theirs) = (one, other);
    loop {
        let (number, other_number) = (digits(ours), digits(theirs));
        if !number.is_empty() && !other_number.is_empty() {
            let [a, b] = [number, other_number].map(|digits| digits.trim_start_matches('0'));
            let order = a.len().cmp(&b.len()).then_with(|| a.cmp(b));
            if order.is_ne() {
                return order;
            }
            (ours, theirs) = (rest(ours, number.len()), rest(theirs, other_number.len()));
            continue;
        }
        match (ours.chars().next(), theirs.chars().next()) {
            (Some(a), Some(b)) if a == b => {
                (ours, theirs) = (rest(ours, a.len_utf8()), rest(theirs, b.len_utf8()));
            }
            (a, b) => return a.cmp(&b).then_with(|| one.cmp(other)),
        }
    }
}

/// Returns the digits at the beginning of a text.
fn digits(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

fn rest(text: &str, start: usize) -> &str {
    text.get(start..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::compare_by_text_and_number;
    use std::cmp::Ordering::{Equal, Greater, Less};

    #[test]
    fn keys_are_compared_by_letters_and_by_numbers() {
        let table = [
            ("a", "b", [Less, Less]),
            ("order:9", "order:10", [Greater, Less]),
            ("order:9:b", "order:9:a", [Greater, Greater]),
            ("order:007", "order:7", [Less, Less]),
            ("a1b2", "a1b10", [Greater, Less]),
            ("a", "a1", [Less, Less]),
            ("é1", "é1", [Equal, Equal]),
            ("99999999999999999999999", "100000000000000000000000", [Greater, Less]),
        ];
        for (one, other, expected) in table {
            assert_eq!(compare_by_text_and_number(one, other), expected, "{one} {other}");
            assert_eq!(
                compare_by_text_and_number(other, one),
                expected.map(std::cmp::Ordering::reverse),
                "{other} {one}"
            );
        }
    }
}
