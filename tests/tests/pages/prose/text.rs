//! Sentences of a file: Markdown, or the comments of Rust, Lua and shell files.

/// A sentence with the line at which its paragraph begins.
pub(super) struct Sentence {
    pub(super) line: usize,
    pub(super) text: String,
}

impl Sentence {
    /// Returns its words in lower case, without punctuation.
    pub(super) fn words(&self) -> Vec<String> {
        let plain = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        self.text.split_whitespace().map(plain).filter(|word| !word.is_empty()).collect()
    }
}

/// Kind of a file, which decides the prose in a line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Markdown,
    /// Comments begin with one of these markers.
    Code(&'static [&'static str]),
}

impl Kind {
    /// Returns the kind of a file, by its extension.
    pub(super) fn of(name: &str) -> Option<Self> {
        match name.rsplit('.').next()? {
            "md" => Some(Self::Markdown),
            "rs" => Some(Self::Code(&["///", "//!", "//"])),
            "lua" => Some(Self::Code(&["--"])),
            "sh" => Some(Self::Code(&["#"])),
            _ => None,
        }
    }

    /// Returns the prose of a line, or `None` for code.
    fn prose(self, line: &str) -> Option<&str> {
        let line = line.trim();
        let Self::Code(markers) = self else { return Some(line) };
        if line.starts_with("#!") || line.starts_with("#[") {
            return None;
        }
        markers.iter().find_map(|marker| line.strip_prefix(marker)).map(str::trim)
    }
}

/// Returns all sentences of four words and more. A cell of a table is a paragraph.
pub(super) fn sentences(text: &str, kind: Kind) -> Vec<Sentence> {
    let mut found = Vec::new();
    let mut paragraph = (0, String::new());
    let mut is_code = false;
    let mut end = |paragraph: &mut (usize, String)| {
        let (line, text) = std::mem::take(paragraph);
        found.extend(split(&text).into_iter().map(|text| Sentence { line, text }));
    };
    for (number, line) in (1..).zip(text.lines()) {
        let Some(prose) = kind.prose(line) else {
            end(&mut paragraph);
            is_code = false;
            continue;
        };
        if prose.starts_with("```") {
            is_code = !is_code;
            end(&mut paragraph);
        } else if is_code || prose.is_empty() || prose.starts_with(['#', '<']) {
            end(&mut paragraph);
        } else if prose.starts_with('|') {
            end(&mut paragraph);
            for cell in prose.trim_matches('|').split(" | ") {
                end(&mut (number, cell.trim().to_owned()));
            }
        } else {
            let item = prose.strip_prefix("- ").or_else(|| prose.strip_prefix("* ")).or_else(|| numbered(prose));
            if item.is_some() {
                end(&mut paragraph);
            }
            if paragraph.1.is_empty() {
                paragraph.0 = number;
            } else {
                paragraph.1.push(' ');
            }
            paragraph.1.push_str(item.unwrap_or(prose));
        }
    }
    end(&mut paragraph);
    found
}

/// Returns the text of an item of a numbered list.
fn numbered(line: &str) -> Option<&str> {
    let (number, text) = line.split_once(". ")?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(text)
}

/// Returns the sentences of a paragraph, with code and the targets of links replaced.
fn split(paragraph: &str) -> Vec<String> {
    let words: Vec<_> = without_code(paragraph).split_whitespace().map(str::to_owned).collect();
    let mut sentences = vec![Vec::new()];
    for (at, word) in words.iter().enumerate() {
        sentences.last_mut().unwrap().push(word.clone());
        let ends = word.ends_with(['.', '!', '?', ':', ';']);
        let begins = words.get(at + 1).is_some_and(|next| next.starts_with(|c: char| c.is_uppercase() || c == '"'));
        if ends && begins {
            sentences.push(Vec::new());
        }
    }
    sentences.into_iter().filter(|words| words.len() >= 4).map(|words| words.join(" ")).collect()
}

/// Returns the paragraph with `X` in the place of code, and without the targets of links.
fn without_code(paragraph: &str) -> String {
    let mut plain = String::new();
    for (at, part) in paragraph.split('`').enumerate() {
        plain.push_str(if at % 2 == 0 { part } else { "X" });
    }
    let mut text = String::new();
    let mut rest = plain.as_str();
    while let Some((before, after)) = rest.split_once("](") {
        text.push_str(before);
        text.push(']');
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    text.push_str(rest);
    text.replace(['[', ']'], "")
}

/// Returns the first lines of the docs of Rust items, with their numbers.
pub(super) fn heads(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = (1..).zip(text.lines().map(str::trim));
    let before = std::iter::once("").chain(text.lines().map(str::trim));
    lines.zip(before).filter_map(|((number, line), before)| {
        let is_first = !before.starts_with("///");
        line.strip_prefix("/// ").filter(|_| is_first).map(|head| (number, head))
    })
}

#[test]
fn sentences_are_found_in_pages_and_comments() {
    let lines = |text, kind| {
        let found = sentences(text, kind);
        found.into_iter().map(|sentence| (sentence.line, sentence.text)).collect::<Vec<_>>()
    };
    let page = "# A heading of four words\nOne line of text. And [a link](x.md) with `code in it`.\n\n```\nlet this be no prose\n```\n- an item of some words\n  that goes on here\n| a cell with four words | short |\n";
    assert_eq!(
        lines(page, Kind::Markdown),
        [
            (2, "One line of text.".to_owned()),
            (2, "And a link with X.".to_owned()),
            (7, "an item of some words that goes on here".to_owned()),
            (9, "a cell with four words".to_owned()),
        ]
    );
    let code = "//! The head of the file.\nlet x = 1; // not a comment of its own\n/// The doc of an item.\n#[test]\nfn f() {}\n";
    assert_eq!(
        lines(code, Kind::Code(&["///", "//!", "//"])),
        [(1, "The head of the file.".to_owned()), (3, "The doc of an item.".to_owned())]
    );
    assert_eq!(heads(code).collect::<Vec<_>>(), [(3, "The doc of an item.")]);
}
