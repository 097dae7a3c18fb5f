//! Words that stand in the place of a value and are none: `wait = forevr`, `on_contended = skipp`, `ttl = none`.
//!
//! A lower-case word alone is an argument or a function, and else a word that was meant. Who has a function that is
//! called nearly as one of the words can name it by a path, as in `on_contended = self::skipp`.

use crate::analyze::bindings::Binding;
use crate::errors::{self, Errors};
use crate::options::{Contended, Options, Time, Waiting};
use proc_macro2::Ident;
use syn::ext::IdentExt;
use syn::{Expr, ExprPath};

/// What `wait` is called elsewhere when it has no end, and when there is none.
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

/// Applies the rule to every option whose value may be a name.
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
            errors.at(word.span(), has_no_word(option, word));
        }
    }
}

fn unknown(option: &str, word: &Ident, meant: &str) -> String {
    format!("unknown word `{word}`: did you mean `{option} = {meant}`?")
}

/// What to say of a duration that is a word for none or for ever.
fn has_no_word(option: &str, word: &Ident) -> String {
    if option == "ttl" {
        return format!(
            "`ttl` cannot be `{word}`, because its key outlives a crash for that long: write `ttl = 30`, or leave it out \
             for the manager's"
        );
    }
    format!("`{option}` cannot be `{word}`, because it is a duration: leave it out for none")
}

fn word_of_time(time: &Time) -> Option<&Ident> {
    match time {
        Time::Path(path) => word(path),
        Time::Literal(_) | Time::Expression(_) => None,
    }
}

/// The only name of a path; constants, which are written in capitals, are no words.
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
    fn words_that_are_nearly_right() {
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
            ("ttl = none", Some("write `ttl = 30`, or leave it out for the manager's")),
            ("ttl = None", Some("write `ttl = 30`")),
            ("ttl = lease", None),
            ("max_hold = forever", Some("leave it out for none")),
            ("once_per = none", Some("leave it out for none")),
        ];
        let signature = syn::parse_str("async fn f(id: u64, limit: Duration)").unwrap();
        for (tokens, expected) in table {
            let mut errors = Errors::default();
            let options = options::read(tokens.parse().unwrap(), &mut errors);
            check(&options, &bindings::of_arguments(&signature), &mut errors);
            let found = errors.messages();
            assert_eq!(found.len(), usize::from(expected.is_some()), "{tokens}: {found:?}");
            assert!(
                found.iter().zip(expected).all(|(found, expected)| found.contains(expected)),
                "{tokens}: {found:?}"
            );
        }
    }
}
