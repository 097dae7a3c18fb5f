//! Formats tokens as a programmer writes them: without the spaces that a printer puts between all tokens.

use quote::ToTokens;

/// Printed sequences of tokens, and the text that replaces them.
const TIDY: [(&str, &str); 21] = [
    (" :: ", "::"),
    (":: ", "::"),
    (" ::", "::"),
    (" <", "<"),
    ("< ", "<"),
    (" >", ">"),
    (" (", "("),
    ("( ", "("),
    (" )", ")"),
    (" [", "["),
    ("[ ", "["),
    (" ]", "]"),
    (" ,", ","),
    (" :", ":"),
    (" ;", ";"),
    ("& ", "&"),
    ("? ", "?"),
    ("* ", "*"),
    ("# ", "#"),
    (",)", ")"),
    (",>", ">"),
];

/// Exceptions that need a space.
const SPACED: [(&str, &str); 4] = [("->(", "-> ("), ("->[", "-> ["), ("&mut[", "&mut ["), ("dyn(", "dyn (")];

pub(super) fn words(tokens: impl ToTokens) -> String {
    let printed = tokens.to_token_stream().to_string().replace('\n', " ");
    let tidy = TIDY.iter().fold(printed, |text, (from, to)| text.replace(from, to));
    SPACED.iter().fold(tidy, |text, (from, to)| text.replace(from, to))
}
