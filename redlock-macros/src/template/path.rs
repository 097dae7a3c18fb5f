//! Rules for templates of paths.

use super::{Hole, Mistake, Piece, Reader, Template};
use std::ops::Range;

/// Maximum number of segments in a path of the runtime.
const MOST_SEGMENTS: usize = 16;

/// Characters that are always encoded in a path, also in the text of its template.
const ENCODED: [(char, &str); 3] = [('%', "%25"), ('{', "%7B"), ('}', "%7D")];

/// Parses the template of a path. Returns it with its mistakes.
pub(crate) fn parse_path(text: &str) -> (Template, Vec<Mistake>) {
    let (template, mut mistakes) = Reader::new(text).template();
    if mistakes.is_empty() {
        mistakes.extend(first_mistake_in_segments(&template, text));
        mistakes.extend(template.ambiguous_brace());
    }
    (template, mistakes)
}

/// Text and holes between two `/`.
#[derive(Default)]
struct Segment {
    text: String,
    holes: usize,
    has_subpath: bool,
}

impl Template {
    fn segments(&self) -> Vec<Segment> {
        let mut segments = Vec::new();
        let mut segment = Segment::default();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => {
                    for (nth, part) in text.split('/').enumerate() {
                        if nth > 0 {
                            segments.push(std::mem::take(&mut segment));
                        }
                        segment.text.push_str(part);
                    }
                }
                Piece::Hole(hole) => {
                    segment.holes += 1;
                    segment.has_subpath |= hole.is_subpath;
                }
            }
        }
        segments.push(segment);
        segments
    }

    /// Returns `true` if every occurrence of a value is a whole segment.
    pub(crate) fn is_segment(&self, hole: &Hole) -> bool {
        let text = |at: Option<usize>| at.and_then(|at| self.pieces.get(at));
        self.pieces.iter().enumerate().filter(|(_, piece)| matches!(piece, Piece::Hole(other) if other == hole)).all(
            |(at, _)| {
                let before = matches!(text(at.checked_sub(1)), Some(Piece::Text(text)) if text.ends_with('/'));
                let after = match text(at.checked_add(1)) {
                    None => true,
                    Some(Piece::Text(text)) => text.starts_with('/'),
                    Some(Piece::Hole(_)) => false,
                };
                before && after
            },
        )
    }

    /// Returns `true` if the template of a path needs no encoding and is its own format string.
    pub(crate) fn is_encoded(&self) -> bool {
        self.pieces.iter().all(|piece| match piece {
            Piece::Text(text) => !text.contains(|c| ENCODED.iter().any(|(encoded, _)| *encoded == c)),
            Piece::Hole(hole) => !hole.is_subpath,
        })
    }

    /// Returns the format string of a path: its text is encoded, and each placeholder is called as `name` returns.
    pub(crate) fn encoded_format(&self, name: impl Fn(&Hole) -> String) -> String {
        let pieces = self.pieces.iter().map(|piece| match piece {
            // The percent sign is replaced first, because the codes contain it.
            Piece::Text(text) => ENCODED.iter().fold(text.clone(), |text, (c, code)| text.replace(*c, code)),
            Piece::Hole(hole) => format!("{{{}{}}}", name(hole), hole.suffix()),
        });
        pieces.collect()
    }

    /// Reports an encoded character directly after a value, which may contain the same character.
    fn ambiguous_brace(&self) -> Option<Mistake> {
        self.pieces.windows(2).zip(self.places.windows(2)).find_map(|(pair, places)| {
            let ([Piece::Hole(hole), Piece::Text(text)], [before, after]) = (pair, places) else { return None };
            let brace = text.chars().next().filter(|c| matches!(c, '{' | '}'))?;
            let message = format!(
                "`{brace}{brace}` cannot directly follow `{{{hole}}}`, because a value may end in an encoded brace: \
                 put another character between them",
                hole = hole.text
            );
            Some(Mistake::new(before.start..after.start + 2, message))
        })
    }
}

/// Returns the first mistake in the segments.
fn first_mistake_in_segments(template: &Template, text: &str) -> Option<Mistake> {
    let segments = template.segments();
    let mistake = |place: Range<usize>, message: String| Some(Mistake::new(place, message));
    if text.is_empty() {
        let message = "the path is empty: write what is locked, as in `path = \"/{tenant}/{folder}\"`";
        return mistake(0..0, message.to_owned());
    }
    if !text.starts_with('/') {
        let first = text.chars().next().map_or(0, char::len_utf8);
        return mistake(0..first, format!("a path must begin with `/`: write `path = \"/{text}\"`"));
    }
    if text == "/" {
        let message =
            "`/` is the root of all paths, which cannot be locked: write a path below it, as in `path = \"/{tenant}\"`";
        return mistake(0..1, message.to_owned());
    }
    if let Some(at) = text.find("//") {
        return mistake(
            at..at + 2,
            "there is no segment between these two `/`: remove one, or write a segment between them".to_owned(),
        );
    }
    if text.ends_with('/') {
        return mistake(text.len() - 1..text.len(), "a path cannot end with `/`: remove the last `/`".to_owned());
    }
    let is_dots = |segment: &&Segment| segment.holes == 0 && matches!(segment.text.as_str(), "." | "..");
    if let Some(dots) = segments.iter().find(is_dots) {
        let at = text.find(&format!("/{}", dots.text)).map_or(0, |at| at + 1);
        let message = format!("`{}` cannot be a segment of a path: write the path that it leads to", dots.text);
        return mistake(at..at + dots.text.len(), message);
    }
    if segments.iter().any(|segment| segment.has_subpath && (segment.holes > 1 || !segment.text.is_empty())) {
        let hole = template.pieces.iter().find_map(|piece| match piece {
            Piece::Hole(hole) if hole.is_subpath => Some(hole),
            _ => None,
        })?;
        let message = format!(
            "`{{{name}:/}}` is replaced by whole segments: put `/` on both sides of it, or write `{{{name}}}` for a \
             part of a segment",
            name = hole.text
        );
        return mistake(template.place(hole), message);
    }
    // The segment before the first `/` is empty.
    let count = segments.len() - 1;
    (count > MOST_SEGMENTS).then(|| {
        let message =
            format!("this path has {count} segments, but at most {MOST_SEGMENTS} are allowed: write a parent path");
        Mistake::new(0..text.len(), message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_path_templates_are_rejected() {
        let deep = "/a".repeat(17);
        let table = [
            ("", "the path is empty"),
            ("a/b", "write `path = \"/a/b\"`"),
            ("{a}", "write `path = \"/{a}\"`"),
            ("/", "the root of all paths"),
            ("/a/", "remove the last `/`"),
            ("/{a}/", "remove the last `/`"),
            ("//a", "between these two `/`"),
            ("/a//{b}", "between these two `/`"),
            ("/a/./b", "`.` cannot be a segment"),
            ("/a/..", "`..` cannot be a segment"),
            ("/a/x{dir:/}", "is replaced by whole segments"),
            ("/a/{b}-{dir:/}", "is replaced by whole segments"),
            ("/{a}{b}", "write `{a}:{b}`"),
            ("/{a}%", "cannot directly follow"),
            ("/{a}{{x", "cannot directly follow"),
            (&deep, "17 segments"),
        ];
        for (text, expected) in table {
            let (_, mistakes) = parse_path(text);
            let [mistake] = mistakes.as_slice() else { panic!("{text}: {mistakes:?}") };
            assert!(mistake.message.contains(expected), "{text}: {mistake:?}");
        }
    }

    #[test]
    fn valid_path_templates_are_accepted() {
        let deep = "/a".repeat(16);
        for text in
            ["/a", "/{a}", "/{a}/b-{c}/d", "/{a}/{dir:/}", "/{a}/{dir:/}/x", "/...", "/a.b/.c", "/{id:08}", &deep]
        {
            let (_, mistakes) = parse_path(text);
            assert!(mistakes.is_empty(), "{text}: {mistakes:?}");
        }
    }

    #[test]
    fn text_is_encoded_and_whole_segments_are_recognized() {
        let (template, mistakes) = parse_path("/{a}/5%/{{x}}/{b}-{c}/{dir:/}");
        assert!(mistakes.is_empty(), "{mistakes:?}");
        let is_segment: Vec<_> = template.distinct_holes().iter().map(|(hole, _)| template.is_segment(hole)).collect();
        assert_eq!(is_segment, [true, false, false, true]);
        assert!(!template.is_encoded());
        let format = template.encoded_format(|hole| hole.text.clone());
        assert_eq!(format, "/{a}/5%25/%7Bx%7D/{b}-{c}/{dir}");
        assert!(parse_path("/{a}/b").0.is_encoded());
    }
}
