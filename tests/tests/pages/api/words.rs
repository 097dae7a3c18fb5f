//! Source as one writes it: without the spaces that stand between all tokens.

use quote::ToTokens;

/// What to write in place of what the tokens of a signature are printed as, one after the other.
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

/// Where a space belongs all the same.
const SPACED: [(&str, &str); 4] = [("->(", "-> ("), ("->[", "-> ["), ("&mut[", "&mut ["), ("dyn(", "dyn (")];

pub(super) fn words(tokens: impl ToTokens) -> String {
    let printed = tokens.to_token_stream().to_string().replace('\n', " ");
    let tidy = TIDY.iter().fold(printed, |text, (from, to)| text.replace(from, to));
    SPACED.iter().fold(tidy, |text, (from, to)| text.replace(from, to))
}
