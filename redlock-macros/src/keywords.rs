//! Keywords, which can be names only as raw identifiers.

/// Keywords of all editions. An extra word does no harm, because any word can be a raw identifier. A missing word would
/// result in generated code that does not compile.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else", "enum",
    "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod", "move",
    "mut", "override", "priv", "pub", "ref", "return", "static", "struct", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Returns `true` if a name must be a raw identifier. `self`, `Self`, `crate` and `super` are not included, because
/// they cannot be raw.
pub(crate) fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}
