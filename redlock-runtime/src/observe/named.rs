//! A lock as it is called in what is told.

use super::ToldKey;
use crate::lock::Mode;
use std::fmt;

/// A lock as it is called in what is told, and where it was asked for.
#[derive(Clone, Copy)]
pub(crate) struct Named<'a> {
    pub(crate) key: ToldKey<'a>,
    /// The key as it was written, with its placeholders, or the label of a call by hand.
    pub(crate) template: Option<&'static str>,
    /// As what it is asked for. What is told of a lock for one call alone does not say so.
    pub(crate) mode: Mode,
    pub(crate) file: &'static str,
    pub(crate) line: u32,
}

impl<'a> Named<'a> {
    /// The key. Where keys are not to be told it is the template, or a hash if there is none.
    pub(super) const fn key(self) -> KeyText<'a> {
        KeyText(self)
    }

    /// `shared` or `permit`, if the lock is.
    pub(super) const fn mode(self) -> Option<&'static str> {
        match self.mode {
            Mode::Exclusive => None,
            Mode::Shared => Some("shared"),
            Mode::Permit => Some("permit"),
        }
    }

    /// The line of the source.
    pub(super) const fn site(self) -> SiteText<'a> {
        SiteText(self)
    }
}

/// Writes the key, or what is told in its place.
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

/// Writes `src/orders.rs:7`.
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
    fn a_redacted_key_is_its_template_or_a_hash() {
        let key = LockKey::from("order:4711");
        let told = |key: &LockKey, redaction, template| {
            let (key, mode) = (ToldKey::new(key, redaction), Mode::Exclusive);
            Named { key, template, mode, file: "a.rs", line: 7 }.key().to_string()
        };
        assert_eq!(told(&key, Redaction::None, Some("order:{id}")), "order:4711");
        assert_eq!(told(&key, Redaction::Hash, Some("order:{id}")), "order:{id}");
        let hash = told(&key, Redaction::Hash, None);
        assert!(!hash.contains("4711") && hash == told(&key, Redaction::Hash, None), "{hash}");
        assert_ne!(hash, told(&"order:4712".into(), Redaction::Hash, None));
    }
}
