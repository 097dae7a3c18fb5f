//! Texts that a terminal only shows: keys and names come from whoever may choose them.

/// The same text without what a terminal would obey, or show in another order than it stands: that is written as JSON writes
/// it. Line ends stay.
pub(crate) fn plain(text: &str) -> String {
    escaped(text, |character| character == '\n')
}

/// The same in one line.
pub(crate) fn line(text: &str) -> String {
    escaped(text, |_| false)
}

fn escaped(text: &str, stays: impl Fn(char) -> bool) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        if stays(character) || !is_obeyed(character) {
            plain.push(character);
        } else {
            // As JSON writes it: what does not fit into four digits, in two halves.
            let halves =
                character.encode_utf16(&mut [0; 2]).iter().map(|half| format!("\\u{half:04x}")).collect::<Vec<_>>();
            plain.push_str(&halves.concat());
        }
    }
    plain
}

/// Control characters, those of the second half of Latin-1 as well, line separators, marks that change the direction, and what is
/// not shown at all, by which two keys would look alike.
fn is_obeyed(character: char) -> bool {
    let is_unseen = matches!(
        character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}'
    );
    character.is_control() || is_unseen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_that_a_terminal_obeys() {
        let table = [
            ("order:7 für Zoë", "order:7 für Zoë", "order:7 für Zoë"),
            ("a\nb", "a\nb", "a\\u000ab"),
            ("\u{1b}[2J\r\t", "\\u001b[2J\\u000d\\u0009", "\\u001b[2J\\u000d\\u0009"),
            ("\u{9b}2J\u{7f}", "\\u009b2J\\u007f", "\\u009b2J\\u007f"),
            ("a\u{202e}b\u{2028}", "a\\u202eb\\u2028", "a\\u202eb\\u2028"),
            ("a\u{200b}\u{feff}\u{e0041}", "a\\u200b\\ufeff\\udb40\\udc41", "a\\u200b\\ufeff\\udb40\\udc41"),
        ];
        for (text, expected, in_one_line) in table {
            assert_eq!((&*plain(text), &*line(text)), (expected, in_one_line), "{text:?}");
        }
    }
}
