//! Words that name something only as raw identifiers.

/// The keywords of all editions. A word too many does no harm, because a raw identifier may name any word; a word that
/// is missing would make generated code that does not compile.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else", "enum",
    "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod", "move",
    "mut", "override", "priv", "pub", "ref", "return", "static", "struct", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Whether a name must be written as a raw identifier. Without `self`, `Self`, `crate` and `super`, which are never
/// raw.
pub(crate) fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}
