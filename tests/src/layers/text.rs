//! Splits a source file into words and signs, and removes test-only code.

/// Splits a text into words without `r#`, `::`, and other signs one by one. Skips comments, lifetimes and the contents of literals.
pub(super) fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        rest = match first {
            _ if first.is_whitespace() => rest.trim_start(),
            '/' if rest.starts_with("//") => rest.split_once('\n').map_or("", |(_, after)| after),
            '/' if rest.starts_with("/*") => after_comment(rest),
            '"' => after_string(rest),
            '\'' => after_quote(rest),
            _ if is_in_word(first) => match after_literal(rest) {
                Some(after) => after,
                None => push_word(rest.strip_prefix("r#").unwrap_or(rest), &mut tokens),
            },
            _ => {
                let length = if rest.starts_with("::") { 2 } else { first.len_utf8() };
                let (sign, after) = rest.split_at(length);
                tokens.push(sign);
                after
            }
        };
    }
    tokens
}

fn is_in_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn push_word<'a>(text: &'a str, tokens: &mut Vec<&'a str>) -> &'a str {
    let (word, after) = text.split_at(text.find(|c| !is_in_word(c)).unwrap_or(text.len()));
    tokens.push(word);
    after
}

/// Returns the text behind a literal that begins with letters, as in `r#"a"#`, `b'x'` and `c"a"`.
fn after_literal(text: &str) -> Option<&str> {
    let after = text.trim_start_matches(['b', 'c', 'r']);
    let prefix = text.strip_suffix(after).filter(|prefix| prefix.len() <= 2)?;
    if prefix.ends_with('r') {
        let quoted = after.trim_start_matches('#');
        let end = format!("\"{}", after.strip_suffix(quoted)?);
        return Some(quoted.strip_prefix('"')?.split_once(&end).map_or("", |(_, after)| after));
    }
    match after.chars().next()? {
        '"' => Some(after_string(after)),
        '\'' if prefix == "b" => Some(after_quote(after)),
        _ => None,
    }
}

fn after_string(text: &str) -> &str {
    let mut is_escaped = false;
    let closes = |(at, c): (usize, char)| {
        let ends = at > 0 && c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends.then_some(at + 1)
    };
    text.char_indices().find_map(closes).and_then(|end| text.get(end..)).unwrap_or("")
}

/// Returns the text behind the literal `'a'`, or behind the lifetime `'a`.
fn after_quote(text: &str) -> &str {
    let inside = text.strip_prefix('\'').unwrap_or(text);
    if let Some(escape) = inside.strip_prefix('\\') {
        let mut chars = escape.chars();
        // An escaped character may itself be a quote.
        chars.next();
        return chars.as_str().split_once('\'').map_or("", |(_, after)| after);
    }
    let mut chars = inside.chars();
    chars.next();
    match chars.as_str().strip_prefix('\'') {
        Some(after) => after,
        None => inside.trim_start_matches(is_in_word),
    }
}

/// Returns the text behind a comment. Comments nest.
fn after_comment(text: &str) -> &str {
    let mut depth = 0_usize;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (length, change) = match () {
            () if rest.starts_with("/*") => (2, 1),
            () if rest.starts_with("*/") => (2, -1),
            () => (first.len_utf8(), 0),
        };
        rest = rest.get(length..).unwrap_or("");
        depth = depth.saturating_add_signed(change);
        if depth == 0 {
            return rest;
        }
    }
    rest
}

/// Returns the tokens of a build without tests. Removes every item below `#[cfg(test)]`, `#[cfg(fuzzing)]` or `#[test]`.
pub(super) fn without_tests<'a>(tokens: &[&'a str]) -> Vec<&'a str> {
    let mut kept = Vec::new();
    let mut rest = tokens;
    while let [first, after @ ..] = rest {
        rest = match attribute(rest) {
            Some(attribute) if attribute.is_for_tests && attribute.is_inner => return Vec::new(),
            Some(attribute) if attribute.is_for_tests => after_item(attribute.after),
            Some(attribute) => attribute.after,
            None => {
                kept.push(*first);
                after
            }
        };
    }
    kept
}

struct Attribute<'t, 'a> {
    is_for_tests: bool,
    /// `true` for `#![..]`, which applies to the whole file.
    is_inner: bool,
    after: &'t [&'a str],
}

fn attribute<'t, 'a>(tokens: &'t [&'a str]) -> Option<Attribute<'t, 'a>> {
    let (is_inner, group) = match tokens {
        ["#", "!", "[", ..] => (true, tokens.get(2..)?),
        ["#", "[", ..] => (false, tokens.get(1..)?),
        _ => return None,
    };
    let (inside, after) = group_at_start(group)?;
    let is_for_tests = match inside {
        ["test"] => true,
        ["cfg", predicate @ ..] => group_at_start(predicate).is_some_and(|(predicate, _)| needs_tests(predicate)),
        _ => false,
    };
    Some(Attribute { is_for_tests, is_inner, after })
}

/// Returns `true` if a `cfg` condition can only hold in a build of tests or fuzz targets.
fn needs_tests(predicate: &[&str]) -> bool {
    let parts = |list| group_at_start(list).map(|(inside, _)| split_at_commas(inside)).unwrap_or_default();
    match predicate {
        ["test" | "fuzzing"] => true,
        ["all", list @ ..] => parts(list).into_iter().any(needs_tests),
        ["any", list @ ..] => parts(list).into_iter().all(needs_tests),
        _ => false,
    }
}

fn split_at_commas<'t, 'a>(tokens: &'t [&'a str]) -> Vec<&'t [&'a str]> {
    let mut depth = 0_usize;
    let is_comma = |token: &&str| {
        depth = depth.saturating_add_signed(change_of_depth(token));
        *token == "," && depth == 0
    };
    tokens.split(is_comma).filter(|part| !part.is_empty()).collect()
}

/// Splits `tokens`, which begin with a bracket, into the contents of the brackets and the tokens behind them.
pub(super) fn group_at_start<'t, 'a>(tokens: &'t [&'a str]) -> Option<(&'t [&'a str], &'t [&'a str])> {
    let mut depth = 0_usize;
    let closes = |token: &&str| {
        depth = depth.saturating_add_signed(change_of_depth(token));
        depth == 0
    };
    let end = tokens.iter().position(closes)?;
    Some((tokens.get(1..end)?, tokens.get(end + 1..)?))
}

fn change_of_depth(token: &str) -> isize {
    match token {
        "(" | "[" | "{" => 1,
        ")" | "]" | "}" => -1,
        _ => 0,
    }
}

/// Items that end with a semicolon even if a brace closes before it.
const UP_TO_A_SEMICOLON: &[&str] = &["const", "let", "static", "type", "use"];

/// Items that end with their braces or with a semicolon, and never with a comma.
const UP_TO_A_BRACE: &[&str] =
    &["async", "enum", "extern", "fn", "impl", "macro_rules", "mod", "struct", "trait", "union", "unsafe"];

/// Returns the tokens behind the item, field, match arm or statement at the start of `tokens`.
fn after_item<'t, 'a>(tokens: &'t [&'a str]) -> &'t [&'a str] {
    if let Some(attribute) = attribute(tokens) {
        return after_item(attribute.after);
    }
    let tokens = after_visibility(tokens);
    let starts_with = |words: &[&str]| tokens.first().is_some_and(|first| words.contains(first));
    let is_function = matches!(tokens, ["const", "async" | "extern" | "fn" | "unsafe", ..]);
    let needs_semicolon = starts_with(UP_TO_A_SEMICOLON) && !is_function;
    let may_end_with_comma = !needs_semicolon && !is_function && !starts_with(UP_TO_A_BRACE);
    let mut rest = tokens;
    let mut angles = 0_usize;
    let mut before = "";
    while let [first, after @ ..] = rest {
        match *first {
            // The surrounding group ends before the item does.
            ")" | "]" | "}" => return rest,
            ";" => return after,
            "," if may_end_with_comma && angles == 0 => return after,
            "<" => angles += 1,
            ">" if before != "-" && before != "=" => angles = angles.saturating_sub(1),
            _ => {}
        }
        before = first;
        let Some((_, after_group)) = group_at_start(rest).filter(|_| change_of_depth(first) > 0) else {
            rest = after;
            continue;
        };
        rest = after_group;
        let goes_on = matches!(rest, ["," | "=" | "." | "?" | "else", ..]);
        if *first == "{" && !needs_semicolon && !(may_end_with_comma && goes_on) {
            return rest;
        }
    }
    rest
}

fn after_visibility<'t, 'a>(tokens: &'t [&'a str]) -> &'t [&'a str] {
    let ["pub", after @ ..] = tokens else { return tokens };
    match group_at_start(after).filter(|_| after.first() == Some(&"(")) {
        Some((_, after)) => after,
        None => after,
    }
}
