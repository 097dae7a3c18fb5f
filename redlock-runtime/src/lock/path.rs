//! Paths in a tree. A lock of a path also locks everything below it.
//!
//! 1. In Redis, the path `/A/C/D` has the name `/{A}/C/D`. Its first segment, the *tree*, is the hash tag. So all names of a tree are in
//!    one slot of a cluster, and different trees are distributed.
//! 2. A request for a path also requests intention locks of its parents, `/{A}` and `/{A}/C`. So two requests for paths conflict on a
//!    name exactly if the paths are equal, or one is above the other.
//! 3. In a segment, `%`, `{` and `}` are percent-encoded, so that only the tree is a hash tag. In a segment that is a value, `/` is
//!    encoded as well. A name is never shortened by a digest, because the name of a parent must be a prefix of it.

use crate::lock::class::Class;
use crate::lock::invalid_key::{InvalidKey, Reason, Segment};
use crate::lock::part::Part;
use crate::lock::{LockKey, Mode};
use crate::text::quoted_excerpt;
use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::iter::once;
use std::str::FromStr;
use std::sync::Arc;

/// Path in a tree, such as `/acme/reports/2024`, for [`LockRequest::path`](crate::LockRequest::path).
///
/// In a text, `/` separates the segments. [`of`](Self::of) and [`join`](Self::join) make a path of values and encode a `/` in a value:
/// use them for values that come from a client. Creating a path never fails. The path is validated when it is locked;
/// [`check`](Self::check) validates it without a lock.
///
/// # Examples
/// ```
/// use redlock_runtime::LockPath;
///
/// let (tenant, file) = ("acme", "in/out");
/// assert_eq!(LockPath::from("/acme/reports").as_str(), "/acme/reports");
/// assert_eq!(LockPath::of([tenant, file]).as_str(), "/acme/in%2Fout");
/// assert_eq!(LockPath::from("/acme").join(file), LockPath::of([tenant, file]));
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LockPath {
    /// With every segment encoded.
    text: Arc<str>,
}

impl LockPath {
    /// Maximum number of segments: 16. A request for a path has one name per segment at each node.
    pub const MAX_SEGMENTS: usize = 16;

    /// Creates the path with these segments.
    pub fn of<S: AsRef<str>>(segments: impl IntoIterator<Item = S>) -> Self {
        let text = segments.into_iter().fold(String::new(), |mut text, segment| {
            text.push('/');
            text.push_str(&encoded_value(segment.as_ref()));
            text
        });
        Self::encoded(text)
    }

    /// Returns the path of `segment` below this path.
    #[must_use]
    pub fn join(&self, segment: impl AsRef<str>) -> Self {
        Self { text: [&self.text, "/", &encoded_value(segment.as_ref())].concat().into() }
    }

    /// Creates a path of a text with encoded segments.
    pub(crate) fn encoded(text: String) -> Self {
        Self { text: text.into() }
    }

    /// Parses the text of a path. `None` if a character is not encoded that must be: the names of its parents would be wrong.
    pub(crate) fn read_encoded(text: &str) -> Option<Self> {
        let is_code = |rest: &str| rest.get(..2).is_some_and(|code| code.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let is_encoded = !text.contains(['{', '}']) && text.split('%').skip(1).all(is_code);
        is_encoded.then(|| Self::encoded(text.to_owned()))
    }

    /// Returns the path with this name in Redis. `None` if the key is not a path.
    pub(crate) fn of_name(name: &LockKey) -> Option<Self> {
        let name = name.is_place().then(|| name.as_str())?;
        let (tree, rest) = name.strip_prefix("/{")?.split_once('}')?;
        Some(Self::encoded(["/", tree, rest].concat()))
    }

    /// Returns the path with encoded segments.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Validates the path without a lock. Use it to reject a value from a client early. Each call validates its path as well, and
    /// returns [`LockError::InvalidKey`](crate::LockError::InvalidKey).
    ///
    /// # Errors
    /// [`InvalidKey`] if the path does not begin with `/` or is only `/`, if a segment is empty, `.` or `..`, if there are more than
    /// [`MAX_SEGMENTS`](Self::MAX_SEGMENTS) segments, or if the name in Redis has more than 1024 bytes.
    ///
    /// # Examples
    /// ```
    /// use redlock_runtime::LockPath;
    ///
    /// /// `dir` can have several segments, and `tenant` is one segment.
    /// fn place(tenant: &str, dir: &str) -> Result<LockPath, String> {
    ///     LockPath::of([tenant]).check().map_err(|invalid| format!("the tenant {}", invalid.reason()))?;
    ///     let place = LockPath::from(format!("{}/{dir}", LockPath::of([tenant])));
    ///     place.check().map_err(|invalid| format!("the folder {}", invalid.reason()))?;
    ///     Ok(place)
    /// }
    /// assert_eq!(place("acme", "a/b").unwrap(), LockPath::from("/acme/a/b"));
    /// assert_eq!(place("", "a/b").unwrap_err(), "the tenant has no segment");
    /// assert_eq!(place("acme", "../b").unwrap_err(), "the folder has the segment `.` or `..`");
    /// ```
    pub fn check(&self) -> Result<(), InvalidKey> {
        let text = self.as_str();
        // The length is checked first, because the text can come from a client. In Redis, the tree has two braces more.
        let (length, most) = (text.len() + "{}".len(), LockKey::MAX_LEN);
        if length > most {
            let message =
                format!("a path is {length} bytes long in Redis and at most {most} are allowed: lock a parent path");
            return Err(InvalidKey::new(Reason::TooLong, message));
        }
        let Some(below_root) = text.strip_prefix('/') else {
            let (text, better) = (quoted_excerpt(text), quoted_excerpt(&["/", text].concat()));
            let message = format!("the path {text} does not begin with `/`: write {better}");
            return Err(InvalidKey::new(Reason::NoSlash, message));
        };
        if below_root.is_empty() {
            let message = "the path \"/\" is the root, which cannot be locked: add a segment, as in \"/acme\"";
            return Err(InvalidKey::new(Reason::Root, message).in_segment(Segment { index: 0, count: 1 }));
        }
        self.check_segments(below_root)
    }

    /// # Errors
    /// [`InvalidKey`] for a wrong segment, or too many segments.
    fn check_segments(&self, below_root: &str) -> Result<(), InvalidKey> {
        let (text, most) = (|| quoted_excerpt(self.as_str()), Self::MAX_SEGMENTS);
        let count = below_root.split('/').count();
        let place = |is_wrong: fn(&str) -> bool| {
            let index = below_root.split('/').position(is_wrong)?;
            Some(Segment { index, count })
        };
        if let Some(place) = place(str::is_empty) {
            let message =
                format!("the path {} has an empty segment: each needs a name, as in \"/acme/reports\"", text());
            return Err(InvalidKey::new(Reason::EmptySegment, message).in_segment(place));
        }
        if let Some(place) = place(is_dots) {
            let dots = below_root.split('/').nth(place.index).unwrap_or_default();
            let message =
                format!("the path {} has the segment {dots:?}, which is not allowed: resolve the path first", text());
            return Err(InvalidKey::new(Reason::Dots, message).in_segment(place));
        }
        if count > most {
            let message = format!("a path has {count} segments and at most {most} are allowed: lock a parent path");
            return Err(InvalidKey::new(Reason::TooManySegments, message));
        }
        Ok(())
    }

    /// Returns the names that a request for the path needs: the parents with an intention lock, and the path itself.
    pub(crate) fn parts(&self, mode: Mode) -> impl Iterator<Item = Part> + use<> {
        let (leaf, class) = (self.leaf(), Class::of(mode));
        let above: Vec<_> = leaf
            .match_indices('/')
            // The first slash is in front of the tree.
            .skip(1)
            .filter_map(|(end, _)| Some(Part::new(LockKey::of_place(leaf.get(..end)?), class.intent())))
            .collect();
        above.into_iter().chain(once(Part::new(LockKey::of_place(leaf), class)))
    }

    /// Returns the name of the path itself, as a key.
    #[cfg(feature = "testing")]
    pub(crate) fn name(&self) -> LockKey {
        LockKey::of_place(self.leaf())
    }

    /// Returns the name of the path itself.
    fn leaf(&self) -> String {
        let below_root = self.text.strip_prefix('/').unwrap_or(&self.text);
        match below_root.split_once('/') {
            Some((tree, rest)) => ["/{", tree, "}/", rest].concat(),
            None => ["/{", below_root, "}"].concat(),
        }
    }
}

fn is_dots(segment: &str) -> bool {
    matches!(segment, "." | "..")
}

/// Returns the percent-encoding of a character that must be encoded in a segment.
pub(crate) const fn code(c: char) -> Option<&'static str> {
    match c {
        '%' => Some("%25"),
        '/' => Some("%2F"),
        '{' => Some("%7B"),
        '}' => Some("%7D"),
        _ => None,
    }
}

/// Encodes the segments of a path.
fn encoded_text(text: &str) -> Cow<'_, str> {
    if !text.contains(|c| c != '/' && code(c).is_some()) {
        return text.into();
    }
    encode(text, |c| c != '/').into()
}

/// Encodes a value as one segment. The values `.` and `..` are encoded, so that they are ordinary names.
fn encoded_value(value: &str) -> Cow<'_, str> {
    if is_dots(value) {
        return value.replace('.', "%2E").into();
    }
    if !value.contains(|c| code(c).is_some()) {
        return value.into();
    }
    encode(value, |_| true).into()
}

fn encode(text: &str, is_encoded: impl Fn(char) -> bool) -> String {
    text.chars().fold(String::with_capacity(text.len() + 8), |mut encoded, c| {
        match code(c).filter(|_| is_encoded(c)) {
            Some(code) => encoded.push_str(code),
            None => encoded.push(c),
        }
        encoded
    })
}

impl From<&str> for LockPath {
    fn from(text: &str) -> Self {
        Self { text: encoded_text(text).into() }
    }
}

impl From<String> for LockPath {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl From<&String> for LockPath {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

impl AsRef<str> for LockPath {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl FromStr for LockPath {
    type Err = Infallible;

    fn from_str(path: &str) -> Result<Self, Infallible> {
        Ok(path.into())
    }
}

impl fmt::Display for LockPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for LockPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LockPath({:?})", self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::parts::Parts;
    use crate::lock::slot::slot_of;
    use fastrand::Rng;
    use std::collections::HashSet;

    /// Segments that would be something else if they were not encoded.
    const HOSTILE: [&str; 22] = [
        "A", "AX", "a", "%", "%2F", "%25", "%7B", "{", "}", "{A}", "}/{", "/", "/A", "A/", "A/C", "..", ".", " ", "\n",
        "é\0", "}:q", "*",
    ];

    const MODES: [Mode; 2] = [Mode::Exclusive, Mode::Shared];

    fn parts(segments: &[&str], mode: Mode) -> Vec<Part> {
        LockPath::of(segments).parts(mode).collect()
    }

    fn names(path: &LockPath) -> Vec<String> {
        path.parts(Mode::Exclusive).map(|part| part.name().to_owned()).collect()
    }

    /// Returns all paths of one segment and of two.
    fn hostile_paths() -> Vec<Vec<&'static str>> {
        let of_two = HOSTILE.iter().flat_map(|tree| HOSTILE.map(|leaf| vec![*tree, leaf]));
        HOSTILE.iter().map(|tree| vec![*tree]).chain(of_two).collect()
    }

    #[test]
    fn path_has_a_name_and_class_per_ancestor() {
        assert_eq!(names(&"/A/C/D".into()), ["/{A}", "/{A}/C", "/{A}/C/D"]);
        assert_eq!(names(&"/A".into()), ["/{A}"]);
        let classes = |mode| LockPath::from("/A/C").parts(mode).map(|part| part.class).collect::<Vec<_>>();
        assert_eq!(classes(Mode::Exclusive), [Class::IntentExclusive, Class::Exclusive]);
        assert_eq!(classes(Mode::Shared), [Class::IntentShared, Class::Shared]);
    }

    #[test]
    fn path_segments_are_percent_encoded() {
        let table = [
            (LockPath::from("/A/{b}/5%"), "/A/%7Bb%7D/5%25"),
            (LockPath::from("/A/%2F"), "/A/%252F"),
            (LockPath::of(["A", "x/y"]), "/A/x%2Fy"),
            (LockPath::of(["..", "."]), "/%2E%2E/%2E"),
            (LockPath::of(["...", ".x"]), "/.../.x"),
            (LockPath::from("/A").join("/"), "/A/%2F"),
        ];
        for (path, expected) in table {
            assert_eq!(path.as_str(), expected);
            assert_eq!(path.check(), Ok(()));
        }
    }

    #[test]
    fn paths_conflict_only_if_one_is_an_ancestor_of_the_other() {
        let paths: Vec<_> =
            hostile_paths().into_iter().map(|path| (MODES.map(|mode| parts(&path, mode)), path)).collect();
        let mut conflicts = 0;
        for ((ours, our_path), (theirs, their_path)) in paths.iter().flat_map(|a| paths.iter().map(move |b| (a, b))) {
            let is_related = our_path.starts_with(their_path) || their_path.starts_with(our_path);
            for (one, other) in [(0, 0), (0, 1), (1, 1)] {
                let expected = is_related && (one, other) != (1, 1);
                let found = ours[one].iter().any(|part| theirs[other].iter().any(|their| part.conflicts_with(their)));
                assert_eq!(found, expected, "{our_path:?} {their_path:?} {:?}", (MODES[one], MODES[other]));
                conflicts += usize::from(found);
            }
        }
        assert!(conflicts > 1000, "{conflicts}");
    }

    #[test]
    fn sets_of_paths_conflict_if_two_of_their_paths_do() {
        let mut random = Rng::with_seed(12);
        let paths = hostile_paths();
        let mut too_strict = 0;
        for _ in 0..20_000 {
            let mut set = || -> Vec<(&Vec<&str>, Mode)> {
                (0..random.usize(1..4)).map(|_| (&paths[random.usize(..60)], MODES[random.usize(..2)])).collect()
            };
            let (ours, theirs) = (set(), set());
            let all = |set: &[(&Vec<&str>, Mode)]| Parts::of(set.iter().flat_map(|(path, mode)| parts(path, *mode)));
            let found = all(&ours).unwrap().conflict_with(&all(&theirs).unwrap()).is_some();
            let expected = ours.iter().any(|(path, mode)| {
                theirs.iter().any(|(other, other_mode)| {
                    let is_related = path.starts_with(other) || other.starts_with(path);
                    is_related && !(mode.is_shared() && other_mode.is_shared())
                })
            });
            assert!(found || !expected, "{ours:?} {theirs:?}");
            too_strict += usize::from(found && !expected);
        }
        // A share of a place above what the same request has alone.
        assert!(too_strict < 500, "{too_strict}");
    }

    #[test]
    fn path_names_are_unique_and_in_the_slot_of_their_tree() {
        let mut seen = HashSet::new();
        for segments in hostile_paths() {
            let path = LockPath::of(&segments);
            assert_eq!(path.check(), Ok(()), "{segments:?}");
            assert!(
                path.parts(Mode::Shared).last().is_some_and(|leaf| LockPath::of_name(&leaf.key) == Some(path.clone()))
            );
            let names = names(&path);
            assert!(seen.insert(names.last().cloned()), "{segments:?}");
            assert!(names.iter().all(|name| LockKey::from(name.as_str()).fault().is_none()), "{names:?}");
            for namespace in ["", "shop:", "{a}:", "a{b:"] {
                let slots: HashSet<_> = names.iter().map(|name| slot_of(&[namespace, name].concat())).collect();
                assert_eq!(slots.len(), 1, "{namespace} {names:?}");
            }
        }
    }

    #[test]
    fn invalid_paths_are_rejected_with_a_reason() {
        let deep = "/a".repeat(17);
        let long = format!("/{}/b", "a".repeat(1024));
        let table = [
            ("A/C", "write \"/A/C\""),
            ("", "does not begin with `/`"),
            ("/", "which cannot be locked"),
            ("/A/", "an empty segment"),
            ("//A", "an empty segment"),
            ("/A//C", "an empty segment"),
            ("/A/./C", "\".\""),
            ("/A/..", "\"..\""),
            (&deep, "17 segments"),
            (&long, "1029 bytes"),
        ];
        for (text, expected) in table {
            let fault = LockPath::from(text).check().unwrap_err().to_string();
            assert!(fault.contains(expected), "{text}: {fault}");
        }
        assert_eq!(LockPath::from("/a".repeat(16)).check(), Ok(()));
        assert_eq!(LockPath::of(["a"; 0]).check(), LockPath::from("").check());
        // The length comes first: nothing else is looked at, and the message does not show the text.
        for text in ["/a//".repeat(250_000), "a".repeat(1_000_000), format!("/{}", "../".repeat(300_000))] {
            let invalid = LockPath::from(text).check().unwrap_err();
            assert!(invalid.reason() == "is too long" && invalid.to_string().len() < 200, "{invalid}");
        }
        let quoted = LockPath::from(format!("/{}/..", "ü".repeat(400))).check().unwrap_err().to_string();
        assert!(quoted.contains("ü\".. (104 more characters) has the segment"), "{quoted}");
        assert!(LockPath::of(["A", ""]).check().is_err());
    }
}
