//! Packs a script: converts the readable text to the shorter text for the server, without comments and with short names.
//!
//! All scripts together are sent to a server that has none of them, so their size matters after a failover with many processes.

/// Symbols beside which Lua needs no space. Dots and minus signs are not among them: `1 ..` is not `1..`, and two minus signs begin a
/// comment.
const SYMBOLS: [char; 11] = ['=', ',', '(', ')', '{', '}', '<', '>', '~', '+', '*'];

/// The two functions of Redis. A long script names each of them once, which is also faster.
const FUNCTIONS: [(&str, &str); 2] = [("redis.call(", "call("), ("redis.pcall(", "pcall(")];
const NAMES: &str = "local call,pcall=redis.call,redis.pcall\n";

/// The longest names that the scripts use often, and their short forms. No script has a name of one capital letter.
const SHORT_NAMES: [(&str, &str); 20] = [
    ("budget", "A"),
    ("count_gone", "B"),
    ("earliest", "C"),
    ("first_against", "D"),
    ("has_passed", "E"),
    ("has_several", "F"),
    ("is_before", "G"),
    ("is_free", "H"),
    ("is_leaving", "I"),
    ("is_marked", "J"),
    ("is_taken_from", "K"),
    ("is_token", "L"),
    ("kept_out", "M"),
    ("largest", "N"),
    ("looked_at", "O"),
    ("manager_of", "P"),
    ("set_expiry", "Q"),
    ("share_of", "R"),
    ("strike_gone", "S"),
    ("take_all", "T"),
];

/// Minimum number of calls for which naming the functions makes a script shorter.
const MANY_CALLS: usize = 8;

/// Returns `parts` without comments, indentation, and meaningless spaces and line breaks, and with short names.
pub(super) fn packed(parts: &str) -> String {
    let is_code = |line: &&str| !line.starts_with("--") && !line.is_empty();
    let mut source = String::with_capacity(parts.len());
    for line in parts.lines().map(str::trim).filter(is_code) {
        push_packed(&mut source, line);
        if !source.ends_with(SYMBOLS) {
            source.push('\n');
        }
    }
    let source = with_short_names(&source);
    if FUNCTIONS.iter().map(|(function, _)| source.matches(function).count()).sum::<usize>() < MANY_CALLS {
        return source;
    }
    let named = FUNCTIONS.iter().fold(source, |source, (function, name)| source.replace(function, name));
    [NAMES, &named].concat()
}

/// Replaces the long names outside of texts.
fn with_short_names(source: &str) -> String {
    // The texts are the parts behind an odd number of quotes.
    let parts = source.split('\'').enumerate();
    let parts: Vec<_> = parts.map(|(at, part)| if at % 2 == 0 { renamed(part) } else { part.to_owned() }).collect();
    parts.join("'")
}

fn renamed(code: &str) -> String {
    let is_end_of_name = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    let mut renamed = String::with_capacity(code.len());
    for piece in code.split_inclusive(is_end_of_name) {
        let name = piece.trim_end_matches(is_end_of_name);
        let short = SHORT_NAMES.iter().find(|(long, _)| *long == name).map_or(name, |(_, short)| short);
        renamed.push_str(short);
        renamed.push_str(piece.get(name.len()..).unwrap_or_default());
    }
    renamed
}

/// Adds `line` without the spaces beside symbols. Texts keep theirs.
fn push_packed(source: &mut String, line: &str) {
    let (mut is_text, mut chars) = (false, line.chars().peekable());
    while let Some(c) = chars.next() {
        is_text ^= c == '\'';
        let mut is_beside = || source.ends_with(SYMBOLS) || chars.peek().is_some_and(|next| SYMBOLS.contains(next));
        let is_needed = c != ' ' || is_text || !is_beside();
        if is_needed {
            source.push(c);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_and_line_breaks_beside_symbols_are_removed() {
        let table = [
            ("  local a, b = f(1, 'x = y, z')", "local a,b=f(1,'x = y, z')"),
            ("if a ~= b and c < (d + 1) then", "if a~=b and c<(d+1)then\n"),
            ("return 1 .. ' (' .. -a - -1", "return 1 .. ' (' .. -a - -1\n"),
            ("f()\n-- A comment.\n\nreturn a\nend", "f()return a\nend\n"),
        ];
        for (line, expected) in table {
            assert_eq!(packed(line), expected);
        }
    }

    #[test]
    fn long_names_outside_of_texts_are_shortened() {
        let line = "if is_before(a, my_is_before.is_free) then say('is_before is_free', is_free)";
        assert_eq!(packed(line), "if G(a,my_is_before.H)then say('is_before is_free',H)");
    }

    #[test]
    fn redis_functions_get_short_names_if_called_often() {
        let short = "redis.call('GET',x)redis.pcall('DEL',x)";
        assert_eq!(packed(short), short);
        let long = packed(&short.repeat(4));
        assert_eq!(long, [NAMES, &"call('GET',x)pcall('DEL',x)".repeat(4)].concat());
    }
}
