//! The constants in docs/protocol-rules.md have the values of the sources.

use crate::page::{Page, cells, workspace};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const PAGE: &str = "docs/protocol-rules.md";

/// Definitions of constants by their names. A name can be defined in several files.
type Definitions = BTreeMap<String, Vec<String>>;

/// Adds the constants of the Rust files below `folder`, without those of unit tests.
fn read_constants(folder: &Path, definitions: &mut Definitions) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_constants(&path, definitions);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            for line in code.lines() {
                let Some((_, definition)) = line.split_once("const ").filter(|_| line.ends_with(';')) else { continue };
                let Some((name, value)) = definition.split_once(": ") else { continue };
                let Some((_, value)) = value.split_once(" = ") else { continue };
                definitions.entry(name.to_owned()).or_default().push(value.trim_end_matches(';').to_owned());
            }
        }
    }
}

/// Returns the value of a constant expression: durations in ms, and products and quotients.
fn value(expression: &str, definitions: &Definitions) -> Option<f64> {
    let expression = expression.trim();
    if let Some((left, right)) = expression.rsplit_once(" / ") {
        return Some(value(left, definitions)? / value(right, definitions)?);
    }
    for (constructor, millis) in [("Duration::from_millis(", 1.0), ("Duration::from_secs(", 1000.0)] {
        if let Some(argument) = expression.strip_prefix(constructor).and_then(|rest| rest.strip_suffix(')')) {
            return Some(value(argument, definitions)? * millis);
        }
    }
    if let Some((left, right)) = expression.split_once(" * ") {
        return Some(value(left, definitions)? * value(right, definitions)?);
    }
    let number = expression.replace('_', "");
    number.parse().ok().or_else(|| value(definitions.get(expression)?.first()?, definitions))
}

/// Returns the value of a text such as `30 ms`, `1/20`, `2/3`, `50 000` or `200 ppm`: durations in ms.
fn documented(text: &str) -> Option<f64> {
    let words: Vec<_> = text.split([';', ',', '(']).next()?.split_whitespace().collect();
    let is_number = |word: &&&str| word.starts_with(|c: char| c.is_ascii_digit());
    let number: String = words.iter().take_while(is_number).copied().collect();
    let unit = words.iter().find(|word| !is_number(word)).copied().unwrap_or_default();
    let number = match number.split_once('/') {
        Some((part, whole)) => part.parse::<f64>().ok()? / whole.parse::<f64>().ok()?,
        None => number.parse().ok()?,
    };
    let factor = match unit {
        "s" => 1000.0,
        "d" => 86_400_000.0,
        "ppm" => 1e-6,
        _ => 1.0,
    };
    Some(number * factor)
}

/// Returns `true` if the values are equal, or if the constant is the divisor of the documented fraction.
fn is_same(documented: f64, constant: f64) -> bool {
    let is_close = |one: f64, other: f64| (one - other).abs() <= 1e-9 * one.abs().max(other.abs());
    is_close(documented, constant) || documented < 1.0 && constant > 1.0 && is_close(documented, 1.0 / constant)
}

#[test]
fn constants_have_the_values_of_the_sources() {
    let mut definitions = Definitions::new();
    read_constants(&workspace().join("redlock-runtime/src"), &mut definitions);
    let page = Page::read(PAGE);
    let (_, section) = page.text.split_once("\n## Constants\n").unwrap();
    let named = section
        .lines()
        .filter_map(|line| cells(line).get(1).copied())
        .flat_map(|cell| cell.split('`').skip(1).step_by(2).zip(cell.split('`').skip(2).step_by(2)));
    let constants: Vec<_> =
        named.filter(|(name, _)| name.chars().all(|c| c.is_ascii_uppercase() || c == '_')).collect();
    assert!(constants.len() > 40, "{PAGE} names {} constants", constants.len());
    for (name, text) in constants {
        let known = definitions.get(name).unwrap_or_else(|| panic!("{PAGE}: there is no constant {name}"));
        let documented = documented(text).unwrap_or_else(|| panic!("{PAGE}: {name} has no value: {text:?}"));
        let is_right =
            known.iter().filter_map(|known| value(known, &definitions)).any(|known| is_same(documented, known));
        assert!(is_right, "{PAGE}: {name} is not{text} but {known:?}");
    }
}
