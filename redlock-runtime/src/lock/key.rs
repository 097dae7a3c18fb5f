//! Lock keys.

use crate::lock::beside::admission_name;
use crate::lock::invalid_key::{InvalidKey, Reason};
use crate::lock::reserved::{is_reserved, unreserved};
use crate::text::{excerpt, quoted_excerpt};
use hmac_sha256::Hash as Sha256;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::convert::Infallible;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

/// Name of a lock. In Redis, the lock is stored under this name, after the namespace of the manager.
///
/// Any text from 1 to [`LockKey::MAX_LEN`] bytes is a valid key, except the names of internal keys:
///
/// - `{order:7}:q`, `{order:7}:t` and `{order:7}:f`, and each of them followed by `:` and more text;
/// - texts that begin with `redlock:f:`, with and without a namespace.
///
/// Creating a key never fails. The key is validated when a lock is acquired; [`check`](Self::check) validates it without a lock. A
/// key does not contain the namespace, which belongs to the manager.
///
/// # Examples
/// ```
/// use redlock_runtime::LockKey;
///
/// assert_eq!(LockKey::from("order:7").as_str(), "order:7");
/// ```
#[derive(Clone)]
pub struct LockKey {
    /// Name in Redis: the namespace, then the key.
    name: Arc<str>,
    /// Start of the key in `name`.
    start: u32,
    kind: Kind,
}

/// Meaning of the text of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Key,
    /// Name of a path.
    Place,
    /// Display text of several keys, which cannot be locked.
    Several,
}

impl LockKey {
    /// Maximum length of a key in bytes: 1024. Each waiting caller repeats the key in its commands, so use an id or a digest of a
    /// longer text.
    pub const MAX_LEN: usize = 1024;

    /// Maximum length of a key that a template makes without a digest, in bytes: 512.
    ///
    /// A longer text becomes its first 512 bytes (a few less if a character would be cut), a `#`, and the SHA-256 of the whole text in
    /// 64 hexadecimal digits. So long arguments of a template are not an error at run time. Keys made without a template are never
    /// changed.
    pub const MAX_TEMPLATE_LEN: usize = 512;

    /// Creates the key for the text of a template. A long text is shortened.
    ///
    /// A text that is a reserved name is changed, because the author of a template does not know its arguments.
    ///
    /// Different texts give different keys. A shortened key is longer than every unshortened key, so these two never collide. Two shortened
    /// keys differ in their digests.
    pub(crate) fn from_template(text: String) -> Self {
        let text = match unreserved(&text) {
            Cow::Owned(other) => other,
            Cow::Borrowed(_) => text,
        };
        if text.len() <= Self::MAX_TEMPLATE_LEN {
            return text.into();
        }
        let digest = Sha256::hash(text.as_bytes());
        let mut key = text;
        let end = (0..=Self::MAX_TEMPLATE_LEN).rev().find(|at| key.is_char_boundary(*at));
        key.truncate(end.unwrap_or_default());
        key.push('#');
        key.extend(
            digest
                .iter()
                .flat_map(|byte| [byte >> 4, byte & 0xF])
                .filter_map(|digit| char::from_digit(digit.into(), 16)),
        );
        key.into()
    }

    /// Creates the display text of several keys, for messages about a request for all of them.
    pub(crate) fn of_several<'k>(keys: impl Iterator<Item = &'k Self>) -> Self {
        let quoted: Vec<_> = keys.map(Self::quoted).collect();
        Self { name: quoted.join(" + ").into(), start: 0, kind: Kind::Several }
    }

    /// Creates the key for the name of a path.
    pub(crate) fn of_place(name: impl Into<Self>) -> Self {
        Self { kind: Kind::Place, ..name.into() }
    }

    /// Returns `true` if the key is the name of a path.
    pub(crate) const fn is_place(&self) -> bool {
        matches!(self.kind, Kind::Place)
    }

    /// Returns `true` if the key is the display text of several keys.
    pub(crate) const fn is_several(&self) -> bool {
        matches!(self.kind, Kind::Several)
    }

    /// Returns the key for a message, in quotation marks and on one line: `"a"`, or `"a" + "b"` for several keys.
    pub(crate) fn quoted(&self) -> String {
        if self.is_several() { self.as_str().to_owned() } else { format!("{:?}", self.as_str()) }
    }

    /// Validates the key without a lock. Use it to reject a value from a client early. Each call validates its key as well, and
    /// returns [`LockError::InvalidKey`](crate::LockError::InvalidKey).
    ///
    /// # Errors
    /// [`InvalidKey`] if the key is empty, longer than [`MAX_LEN`](Self::MAX_LEN), or reserved for a manager without a namespace. In
    /// the namespace `redlock`, keys that begin with `f:` are reserved as well; only a call reports this.
    ///
    /// # Examples
    /// ```
    /// use redlock_runtime::LockKey;
    ///
    /// let key = |id: &str| LockKey::from(id);
    /// assert!(key("order:7").check().is_ok());
    /// assert_eq!(key("").check().unwrap_err().reason(), "is empty");
    /// assert_eq!(key(&"7".repeat(2000)).check().unwrap_err().reason(), "is too long");
    /// ```
    pub fn check(&self) -> Result<(), InvalidKey> {
        self.fault().map_or(Ok(()), Err)
    }

    /// Returns the key without the namespace. In an error about several keys, returns all of them, such as `"a" + "b"`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.name.get(self.start as usize..).unwrap_or_default()
    }

    /// Returns the name in Redis.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the namespace in front of the key, which is empty in a manager without a namespace. `None` for several keys.
    pub(crate) fn namespace(&self) -> Option<&str> {
        if self.is_several() { None } else { self.name.get(..self.start as usize) }
    }

    pub(crate) fn shared_name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    /// Returns the key in `namespace`, which is empty or ends with its separator.
    pub(crate) fn below(self, namespace: &str) -> Self {
        if namespace.is_empty() && self.start == 0 {
            return self;
        }
        let start = u32::try_from(namespace.len()).unwrap_or(u32::MAX);
        Self { name: [namespace, self.as_str()].concat().into(), start, ..self }
    }

    /// Interprets the key as a name in Redis, and removes `namespace` from it. `namespace` is empty or ends with its separator.
    pub(crate) fn within(self, namespace: &str) -> Self {
        let is_below = self.start == 0 && self.name.starts_with(namespace);
        let start = u32::try_from(namespace.len()).unwrap_or(u32::MAX);
        Self { start: if is_below { start } else { self.start }, ..self }
    }
}

impl LockKey {
    /// Returns the key of the admission lock, for a key with permits. It has no namespace, because its name differs from all other locks.
    pub(crate) fn admission(&self) -> Self {
        admission_name(&self.name).into()
    }

    /// Returns the key of the window with the number `index`, in the same namespace.
    pub(crate) fn in_window(&self, index: i64) -> Self {
        Self { name: format!("{}@{index}", self.name).into(), ..*self }
    }

    /// Checks only the length. Does not copy or read the text, so a very long key costs nothing.
    ///
    /// # Errors
    /// [`Reason::TooLong`].
    pub(crate) fn check_length(&self) -> Result<(), InvalidKey> {
        match self.as_str().len() {
            length if length > Self::MAX_LEN && !self.is_several() => Err(Self::too_long(length)),
            _ => Ok(()),
        }
    }

    fn too_long(length: usize) -> InvalidKey {
        let message = format!(
            "the key is {length} bytes long and at most {} are allowed: use an id, or a digest of the long value",
            Self::MAX_LEN
        );
        InvalidKey::new(Reason::TooLong, message)
    }

    /// Returns the fault, if any: the key is empty, too long or reserved.
    pub(crate) fn fault(&self) -> Option<InvalidKey> {
        let (reason, message) = match self.as_str().len() {
            _ if self.is_several() => (
                Reason::Several,
                format!("{} is the display text of several keys: pass each key to `LockRequest::all`", excerpt(self)),
            ),
            0 => (Reason::Empty, "the key is empty: a lock needs a name, as in \"order:7\"".to_owned()),
            length if length > Self::MAX_LEN => return Some(Self::too_long(length)),
            _ if is_reserved(&self.name) => (
                Reason::Reserved,
                format!(
                    "{} is reserved for internal keys: use another key, or a namespace",
                    quoted_excerpt(&self.name)
                ),
            ),
            _ => return None,
        };
        Some(InvalidKey::new(reason, message))
    }
}

impl From<&str> for LockKey {
    fn from(key: &str) -> Self {
        Self { name: key.into(), start: 0, kind: Kind::Key }
    }
}

impl From<String> for LockKey {
    fn from(key: String) -> Self {
        Self { name: key.into(), start: 0, kind: Kind::Key }
    }
}

impl From<&String> for LockKey {
    fn from(key: &String) -> Self {
        key.as_str().into()
    }
}

impl PartialEq for LockKey {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str() && self.is_several() == other.is_several()
    }
}

impl Eq for LockKey {}

impl Hash for LockKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl Ord for LockKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str()).then(self.is_several().cmp(&other.is_several()))
    }
}

impl PartialOrd for LockKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl AsRef<str> for LockKey {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl FromStr for LockKey {
    type Err = Infallible;

    fn from_str(key: &str) -> Result<Self, Infallible> {
        Ok(key.into())
    }
}

impl fmt::Display for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LockKey({})", self.quoted())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespace_changes_the_stored_name_but_not_the_key() {
        let key = LockKey::from("order:7").below("shop:");
        assert_eq!((key.name(), key.as_str()), ("shop:order:7", "order:7"));
        assert_eq!(key, LockKey::from("order:7"));
        assert_eq!(LockKey::from("a").below("").name(), "a");
    }

    #[test]
    fn key_takes_the_namespace_of_the_current_manager() {
        let key = LockKey::from("order:7").below("shop:");
        assert_eq!(key.clone().below("").name(), "order:7");
        assert_eq!(key.clone().below("shop:").name(), "shop:order:7");
        assert_eq!(key.below("bank:").name(), "bank:order:7");
    }

    #[test]
    fn side_key_names_are_rejected_as_lock_keys() {
        let registers = ["redlock:f:{9}", "shop:redlock:f:{9}"];
        for name in ["{order:7}:q", "{order:7}:f", "{7}:q:order:{7}"].into_iter().chain(registers) {
            assert!(LockKey::from(name).fault().is_some_and(|fault| fault.to_string().contains(name)), "{name}");
            let is_register = name == registers[0];
            assert_eq!(
                LockKey::from(name).below("locks:").fault().is_some(),
                is_register,
                "{name} has another name there"
            );
            let from_template = LockKey::from_template(name.to_owned());
            assert!(from_template.fault().is_none() && from_template.as_str() != name);
        }
        assert!(LockKey::from("f:{9}").below("redlock:").fault().is_some());
        assert_eq!(LockKey::from("order:{7}").fault(), None);
    }

    #[test]
    fn combined_key_of_several_keys_is_not_a_valid_key() {
        let several = LockKey::of_several([LockKey::from("a").below("shop:"), "\"b\n".into()].iter());
        assert_eq!(several.as_str(), r#""a" + "\"b\n""#);
        assert_eq!(
            (several.quoted().as_str(), format!("{several:?}")),
            (several.as_str(), format!("LockKey({several})"))
        );
        assert_ne!(several, LockKey::from(several.as_str()), "which is a key like any other");
        assert!(several.clone().fault().is_some_and(|fault| fault.to_string().contains("LockRequest::all")));
        assert_eq!(several.clone().below("shop:"), several);
    }

    #[test]
    fn keys_are_bounded() {
        assert!(LockKey::from("").fault().is_some());
        assert_eq!(LockKey::from("k".repeat(LockKey::MAX_LEN)).below("ns:").fault(), None);
        let fault = LockKey::from("k".repeat(10 * 1024)).check().unwrap_err().to_string();
        assert!(fault.contains("10240 bytes"), "{fault}");
    }

    #[test]
    fn long_template_text_is_shortened_with_a_digest() {
        let longest = "k".repeat(LockKey::MAX_TEMPLATE_LEN);
        assert_eq!(LockKey::from_template(longest.clone()).as_str(), longest);
        let shortened = LockKey::from_template(longest.clone() + "k");
        // `printf 'k%.0s' {1..513} | sha256sum`
        let digest = "45a7c7ef95c3417e800362f5672aba16da807261fe7121f3a81b0a0fb6b9a05c";
        assert_eq!(shortened.as_str(), format!("{longest}#{digest}"));
        assert_eq!(shortened.fault(), None);
    }

    #[test]
    fn shortened_keys_are_unique() {
        let long = |tail: &str| LockKey::from_template("k".repeat(600) + tail);
        assert_ne!(long("a"), long("b"));
        // The shortened text itself is longer than what stays as it is.
        let of_shortened = LockKey::from_template(long("a").as_str().to_owned());
        assert_ne!(of_shortened, long("a"));
        let of_wide_characters = LockKey::from_template("名".repeat(171));
        assert!(of_wide_characters.as_str().starts_with(&("名".repeat(170) + "#")));
        assert!(of_wide_characters.as_str().len() > LockKey::MAX_TEMPLATE_LEN);
    }
}
