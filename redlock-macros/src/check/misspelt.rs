//! Misspelt words in place of a value: `wait = forevr`, `on_contended = skipp`, `ttl = none`.
//!
//! A single lower-case word is an argument, a function, or a misspelt word. A function with a name similar to one of
//! the words can be written as a path, as in `on_contended = self::skipp`.

use crate::analyze::bindings::Binding;
use crate::errors::{self, Errors};
use crate::options::{Contended, Options, Time, Waiting};
use proc_macro2::Ident;
use syn::ext::IdentExt;
use syn::{Expr, ExprPath};

/// Words of other libraries for an unlimited wait, and for no wait.
const WAITS: &[(&str, &str)] = &[
    ("none", "none"),
    ("no", "none"),
    ("zero", "none"),
    ("nowait", "none"),
    ("null", "none"),
    ("nil", "none"),
    ("forever", "forever"),
    ("ever", "forever"),
    ("always", "forever"),
    ("infinite", "forever"),
    ("infinity", "forever"),
    ("unlimited", "forever"),
];

/// Checks every option whose value may be a name.
pub(super) fn check(options: &Options, bindings: &[Binding], errors: &mut Errors) {
    let is_new = |word: &&Ident| !bindings.iter().any(|binding| word.unraw() == binding.name);
    if let Some(Waiting::For(time)) = &options.wait
        && let Some(word) = word_of_time(time).filter(is_new)
        && let Some((_, meant)) = nearest(word, WAITS)
    {
        errors.at(word.span(), unknown("wait", word, meant));
    }
    if let Some(Contended::Handler(Expr::Path(path))) = &options.on_contended
        && let Some(word) = word(path).filter(is_new)
        && let Some(meant) = ["skip", "error"].into_iter().find(|meant| errors::is_slip(&word.to_string(), meant))
    {
        errors.at(word.span(), unknown("on_contended", word, meant));
    }
    let times = [
        ("ttl", &options.ttl),
        ("max_hold", &options.max_hold),
        ("min_hold", &options.min_hold),
        ("linger", &options.linger),
        ("once_per", &options.once_per),
        ("window_start", &options.window_start),
    ];
    for (option, time) in times {
        if let Some(word) = time.as_ref().and_then(word_of_time).filter(is_new)
            && nearest(word, WAITS).is_some()
        {
            errors.at(word.span(), unsupported_word_message(option, word));
        }
    }
}

fn unknown(option: &str, word: &Ident, meant: &str) -> String {
    format!("unknown word `{word}`: did you mean `{option} = {meant}`?")
}

/// Returns the message for a duration that is a word for none or forever.
fn unsupported_word_message(option: &str, word: &Ident) -> String {
    if option == "ttl" {
        return format!(
            "`ttl` cannot be `{word}`, because it sets how long the key remains after a crash: write `ttl = 30`, or \
             remove it to use the default of the manager"
        );
    }
    // `linger = 0` overrides the manager, or the defaults of a block.
    let example = if option == "linger" { "0" } else { "\"5m\"" };
    format!("`{option}` cannot be `{word}`, because it is a duration: write `{option} = {example}`, or remove it")
}

fn word_of_time(time: &Time) -> Option<&Ident> {
    match time {
        Time::Path(path) => word(path),
        Time::Literal(_) | Time::Expression(_) => None,
    }
}

/// Returns the only name of a path. Constants, which are in capitals, do not count.
fn word(path: &ExprPath) -> Option<&Ident> {
    path.path.get_ident().filter(|word| {
        let text = word.to_string();
        text == "None" || !text.contains(char::is_uppercase)
    })
}

fn nearest(word: &Ident, words: &'static [(&str, &str)]) -> Option<&'static (&'static str, &'static str)> {
    let meant = errors::nearest(&word.to_string(), words.iter().map(|(word, _)| *word))?;
    words.iter().find(|(word, _)| *word == meant)
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::analyze::bindings;
    use crate::errors::Errors;
    use crate::options;

    #[test]
    fn misspelt_words_get_a_suggestion() {
        let table = [
            ("wait = forevr", Some("did you mean `wait = forever`?")),
            ("wait = infinite", Some("did you mean `wait = forever`?")),
            ("wait = nowait", Some("did you mean `wait = none`?")),
            ("wait = limit", None),
            ("wait = id", None),
            ("wait = self::forevr", None),
            ("wait = FOREVR", None),
            ("on_contended = skipp", Some("did you mean `on_contended = skip`?")),
            ("on_contended = eror", Some("did you mean `on_contended = error`?")),
            ("on_contended = busy", None),
            ("on_contended = self::skipp", None),
            ("ttl = none", Some("write `ttl = 30`, or remove it to use the default of the manager")),
            ("ttl = None", Some("write `ttl = 30`")),
            ("ttl = lease", None),
            ("max_hold = forever", Some("because it is a duration: write")),
            ("once_per = none", Some("because it is a duration: write")),
        ];
        let signature = syn::parse_str("async fn f(id: u64, limit: Duration)").unwrap();
        for (tokens, expected) in table {
            let mut errors = Errors::default();
            let options = options::read(tokens.parse().unwrap(), &mut errors);
            check(&options, &bindings::from_arguments(&signature), &mut errors);
            let found = errors.messages();
            assert_eq!(found.len(), usize::from(expected.is_some()), "{tokens}: {found:?}");
            assert!(
                found.iter().zip(expected).all(|(found, expected)| found.contains(expected)),
                "{tokens}: {found:?}"
            );
        }
    }
}
