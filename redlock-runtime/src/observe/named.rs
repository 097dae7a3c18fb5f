//! Lock as it is named in spans and events.

use super::RedactedKey;
use crate::lock::Mode;
use std::fmt;

/// Lock as it is named in spans and events, with its call site.
#[derive(Clone, Copy)]
pub(crate) struct Named<'a> {
    pub(crate) key: RedactedKey<'a>,
    /// Key of the attribute with its placeholders, or the label of a request.
    pub(crate) template: Option<&'static str>,
    /// Mode of the request. Spans and events omit it for an exclusive lock.
    pub(crate) mode: Mode,
    pub(crate) file: &'static str,
    pub(crate) line: u32,
}

impl<'a> Named<'a> {
    /// Returns the key. A redacted key is replaced by its template, or by a hash if it has no template.
    pub(super) const fn key(self) -> KeyText<'a> {
        KeyText(self)
    }

    /// Returns `shared` or `permit`, and `None` for an exclusive lock.
    pub(super) const fn mode(self) -> Option<&'static str> {
        match self.mode {
            Mode::Exclusive => None,
            Mode::Shared => Some("shared"),
            Mode::Permit => Some("permit"),
        }
    }

    /// Returns the source line.
    pub(super) const fn site(self) -> SiteText<'a> {
        SiteText(self)
    }
}

/// Writes the key, or its replacement.
pub(super) struct KeyText<'a>(Named<'a>);

impl fmt::Display for KeyText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Named { key, template, .. } = self.0;
        match template.filter(|_| key.is_redacted()) {
            Some(template) => f.write_str(template),
            None => key.fmt(f),
        }
    }
}

/// Writes a source line: `src/orders.rs:7`.
pub(super) struct SiteText<'a>(Named<'a>);

impl fmt::Display for SiteText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.0.file, self.0.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::LockKey;
    use crate::observe::Redaction;

    #[test]
    fn redacted_key_is_its_template_or_a_hash() {
        let key = LockKey::from("order:4711");
        let told = |key: &LockKey, redaction, template| {
            let (key, mode) = (RedactedKey::new(key, redaction), Mode::Exclusive);
            Named { key, template, mode, file: "a.rs", line: 7 }.key().to_string()
        };
        assert_eq!(told(&key, Redaction::None, Some("order:{id}")), "order:4711");
        assert_eq!(told(&key, Redaction::Hash, Some("order:{id}")), "order:{id}");
        let hash = told(&key, Redaction::Hash, None);
        assert!(!hash.contains("4711") && hash == told(&key, Redaction::Hash, None), "{hash}");
        assert_ne!(hash, told(&"order:4712".into(), Redaction::Hash, None));
    }
}
