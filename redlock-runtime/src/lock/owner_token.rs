//! Owner tokens.

use crate::time::token_clock::TokenTime;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use uuid::fmt::Hyphenated;
use uuid::{Builder, Uuid, Variant, Version};

/// Identifies one manager of one process by 23 hexadecimal digits: the start time, one digit for the version, and ten random digits.
///
/// Nodes send claims with their times only to managers of version 8 or newer. Managers of version 7 cannot read the times.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ManagerId {
    text: [u8; Self::LEN],
}

impl ManagerId {
    const LEN: usize = 23;

    pub(crate) fn random() -> Self {
        // The bits below the 48 bits of the time are a counter for the ids of one millisecond in this process. Only the last 32 bits
        // are random.
        let uuid = Uuid::now_v7().as_u128();
        Self::new(uuid >> 80, CLAIMS_VERSION, uuid)
    }

    /// Creates an id that is the same in each run.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn numbered(number: u128) -> Self {
        Self::new(0, CLAIMS_VERSION, number)
    }

    /// Creates an id of version 7, whose manager is not sent the times of claims.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn of_old(number: u128) -> Self {
        Self::new(0, b'7', number)
    }

    /// Creates an id with the last 40 bits of `number`.
    fn new(millis: u128, version: u8, number: u128) -> Self {
        let (mut text, digits) = ([b'0'; Self::LEN], b"0123456789abcdef");
        let number = (millis << 44) | (number & ((1 << 40) - 1));
        for (place, digit) in text.iter_mut().rev().enumerate() {
            let value = (number >> (4 * place)) & 0xf;
            *digit = usize::try_from(value).ok().and_then(|value| digits.get(value)).copied().unwrap_or(b'0');
        }
        if let Some(digit) = text.get_mut(Self::VERSION) {
            *digit = version;
        }
        Self { text }
    }

    fn as_str(&self) -> &str {
        // Hexadecimal digits.
        std::str::from_utf8(&self.text).unwrap_or_default()
    }

    /// Index of the version digit, from 0.
    const VERSION: usize = "mmmmmmmmmmmm".len();
}

impl fmt::Display for ManagerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for ManagerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ManagerId({self})")
    }
}

/// Identifies one attempt to acquire a lock, and then the holder. A token is never used again after the release.
///
/// The text is `<uuidv7>@<manager id>`. It starts with the time, so tokens sort in the order of the attempts. The id of the manager
/// shows which process a token in Redis belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerToken {
    // Stored inline: each acquisition creates, copies and writes a token.
    text: [u8; Self::LEN],
}

// Memory of a token at a server: at most 80 bytes for a sorted set with one member, and at most 64 bytes for a key. Redis stores a sorted
// set as a list while its members have at most 64 bytes. The list has 6 bytes in front and one at the end, and both text and score have
// their length at both ends. A key has 3 bytes in front and one at the end.
const _: () = {
    let (text, score) = (1 + OwnerToken::LEN + 1, 1 + 8 + 1);
    assert!(6 + text + score < 80 && 3 + OwnerToken::LEN < 64);
};

impl OwnerToken {
    pub(crate) const LEN: usize = Hyphenated::LENGTH + 1 + ManagerId::LEN;
    /// Length of the part before the at sign, which is unique without the rest.
    pub(crate) const ATTEMPT_LEN: usize = Hyphenated::LENGTH;
    /// Range of the random part, after the time.
    const CHANCE: std::ops::Range<usize> = "tttttttt-tttt-7ccc-".len().."tttttttt-tttt-7ccc-vvvv-vvvv".len();
    /// Index of the version digit of the manager's id, from 0.
    pub(crate) const VERSION: usize = Self::ATTEMPT_LEN + 1 + ManagerId::VERSION;
    /// Length of the part with the time.
    pub(crate) const TIME_LEN: usize = "tttttttt-tttt-7ccc".len();

    pub(crate) fn new(manager: ManagerId, time: TokenTime) -> Self {
        let mut text = [b'@'; Self::LEN];
        let (attempt, rest) = text.split_at_mut(Hyphenated::LENGTH);
        uuid(time).hyphenated().encode_lower(attempt);
        if let Some((_, id)) = rest.split_first_mut() {
            id.iter_mut().zip(manager.text).for_each(|(to, digit)| *to = digit);
        }
        Self { text }
    }

    /// Returns a new token of the same manager with the same time, and so with the same queue position.
    pub(crate) fn again(&self) -> Self {
        self.with_attempt(uuid(self.time()))
    }

    /// Returns a new token with the same time that [only probes](Self::asks).
    pub(crate) fn asking(&self) -> Self {
        self.with_attempt(with_chance(self.time(), ASKS))
    }

    /// Returns `true` if the call of this token does not wait for a body to end, and only needs to know whether one runs.
    ///
    /// The token contains this fact, because the holder receives only the tokens of the waiters.
    pub(crate) fn asks(&self) -> bool {
        self.as_str().get(Self::CHANCE).is_some_and(|chance| chance == ASKS_TEXT)
    }

    fn with_attempt(&self, uuid: Uuid) -> Self {
        let mut text = self.text;
        if let Some(attempt) = text.first_chunk_mut::<{ Hyphenated::LENGTH }>() {
            uuid.hyphenated().encode_lower(attempt);
        }
        Self { text }
    }

    /// Parses a token that was read from Redis. `None` for any other text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (attempt, manager) = text.split_once('@')?;
        let is_token = is_lower_hex(manager) && manager.len() == ManagerId::LEN && is_uuid_v7(attempt);
        Some(Self { text: text.as_bytes().try_into().ok().filter(|_| is_token)? })
    }

    pub(crate) fn time(&self) -> TokenTime {
        // Every token has a time.
        self.as_str().get(..Self::TIME_LEN).and_then(time).unwrap_or(TokenTime::new(0, 0))
    }

    /// Returns `true` if `manager` has made this token.
    pub(crate) fn is_of(&self, manager: ManagerId) -> bool {
        self.manager() == manager.as_str()
    }

    /// Returns the id of the manager as text.
    pub(crate) fn manager(&self) -> &str {
        self.as_str().get(Hyphenated::LENGTH + 1..).unwrap_or_default()
    }

    /// Returns the time of the request that the token was created for, by a logical clock that can be a little ahead of the time of day.
    ///
    /// Calls of one process that pass a lock to each other share the token of the first of them.
    #[must_use]
    pub fn created_at(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.time().millis())
    }

    /// Returns `true` if its manager is sent claims with their times.
    pub(crate) fn reads_claims(&self) -> bool {
        self.text.get(Self::VERSION) == Some(&CLAIMS_VERSION)
    }

    /// Returns the token as it is stored in Redis.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Hexadecimal digits, hyphens and the at sign.
        std::str::from_utf8(&self.text).unwrap_or_default()
    }
}

/// Version digit of managers that are sent claims with their times.
pub(crate) const CLAIMS_VERSION: u8 = b'8';

/// Parses the time at the start of a token. `prefix`: the part of the text with the time.
pub(crate) fn time(prefix: &str) -> Option<TokenTime> {
    let (high, rest) = prefix.split_once('-')?;
    let (low, counter) = rest.split_once("-7")?;
    let is_well_formed = high.len() == 8 && low.len() == 4 && counter.len() == 3;
    if !is_well_formed || ![high, low, counter].into_iter().all(is_lower_hex) {
        return None;
    }
    let [high, low] = [high, low].map(|digits| u64::from_str_radix(digits, 16));
    Some(TokenTime::new((high.ok()? << 16) | low.ok()?, u16::from_str_radix(counter, 16).ok()?))
}

/// Creates the UUID of a token. The counter of the time is `rand_a`.
///
/// The rest distinguishes tokens of one time. It need not be secret, because a client that can write to Redis needs no token. It must not
/// repeat, even if the program seeds its random numbers.
fn uuid(time: TokenTime) -> Uuid {
    // The lowest random bit is 0, so that no token probes by accident.
    with_chance(time, fastrand::u32(..) & !1)
}

/// Value of the random part of a token that only probes, and its text after the variant of the UUID.
const ASKS: u32 = u32::MAX;
const ASKS_TEXT: &str = "bfff-ffff";

fn with_chance(time: TokenTime, chance: u32) -> Uuid {
    static TOKENS: AtomicU32 = AtomicU32::new(0);
    let unique = (u64::from(chance) << 32) | u64::from(TOKENS.fetch_add(1, Ordering::Relaxed));
    let bits = (u128::from(time.millis()) << 80) | (u128::from(time.counter()) << 64) | u128::from(unique);
    Builder::from_u128(bits).with_version(Version::SortRand).with_variant(Variant::RFC4122).into_uuid()
}

fn is_uuid_v7(text: &str) -> bool {
    let is_in_order = |text: &str| text.bytes().all(|byte| byte == b'-' || is_lower_hex_digit(byte));
    text.len() == Hyphenated::LENGTH
        && is_in_order(text)
        && Uuid::try_parse(text).is_ok_and(|uuid| uuid.get_version_num() == 7)
}

fn is_lower_hex(text: &str) -> bool {
    text.bytes().all(is_lower_hex_digit)
}

// With upper case, the order of the bytes would differ from the order of the times.
const fn is_lower_hex_digit(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

impl AsRef<str> for OwnerToken {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl FromStr for OwnerToken {
    type Err = InvalidToken;

    fn from_str(text: &str) -> Result<Self, InvalidToken> {
        Self::parse(text).ok_or(InvalidToken)
    }
}

/// Error for a text that is not an [`OwnerToken`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidToken;

impl fmt::Display for InvalidToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this is not an owner token: copy the text that `redlock inspect` shows")
    }
}

impl std::error::Error for InvalidToken {}

impl fmt::Display for OwnerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for OwnerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnerToken({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::clock::Clock;
    use crate::time::token_clock::TokenClock;
    use std::collections::HashSet;

    #[test]
    fn tokens_are_unique_and_sort_by_time() {
        let (manager, clock) = (ManagerId::random(), TokenClock::new(Clock::Boot));
        let tokens: Vec<_> = (0..10_000).map(|_| OwnerToken::new(manager, clock.next())).collect();
        assert!(tokens.is_sorted_by(|a, b| a < b && a.as_str() < b.as_str()), "byte order is the order of creation");
    }

    #[test]
    fn token_is_a_uuid_with_time_and_manager_id() {
        let (manager, time) = (ManagerId::random(), TokenTime::new(0x0123_4567_89ab, 0xcde));
        let token = OwnerToken::new(manager, time);
        assert!(token.as_str().starts_with("01234567-89ab-7cde-"), "{token}");
        let (attempt, id) = token.as_str().split_once('@').unwrap();
        let attempt = Uuid::try_parse(attempt).unwrap();
        assert_eq!((attempt.get_version_num(), attempt.get_variant()), (7, Variant::RFC4122));
        assert_eq!((id, token.manager()), (manager.to_string().as_str(), id));
        assert_eq!(token.time(), time);
        assert_eq!(token.created_at().duration_since(UNIX_EPOCH).unwrap().as_millis(), 0x0123_4567_89ab);
    }

    #[test]
    fn manager_ids_are_unique_and_contain_the_start_time() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        let managers: HashSet<_> = (0..10_000).map(|_| ManagerId::random().to_string()).collect();
        assert_eq!(managers.len(), 10_000);
        let began = |id: &String| u128::from_str_radix(&id[..ManagerId::VERSION], 16).unwrap();
        assert!(managers.iter().all(|id| (now..now + 60_000).contains(&began(id))), "{managers:?}");
    }

    #[test]
    fn manager_ids_of_old_versions_are_recognized() {
        let of = |manager| OwnerToken::new(manager, TokenTime::new(1, 2));
        let managers = [ManagerId::random(), ManagerId::numbered(u128::MAX), ManagerId::of_old(u128::MAX)];
        assert_eq!(managers.map(|manager| of(manager).reads_claims()), [true, true, false]);
        assert!(of(ManagerId::random()).again().reads_claims());
    }

    #[test]
    fn successor_token_keeps_time_and_manager_but_differs() {
        let token = OwnerToken::new(ManagerId::random(), TokenTime::new(1 << 40, 7));
        let again = (0..1000).map(|_| {
            fastrand::seed(7);
            token.again()
        });
        let again: HashSet<_> = again.chain([token]).collect();
        assert_eq!(again.len(), 1001);
        assert!(again.iter().all(|other| other.time() == token.time() && other.manager() == token.manager()));
    }

    #[test]
    fn probing_token_is_recognizable_and_unique() {
        let token = OwnerToken::new(ManagerId::random(), TokenTime::new(1 << 40, 7));
        let asking: HashSet<_> = (0..1000).map(|_| token.asking()).collect();
        assert_eq!(asking.len(), 1000);
        for asking in asking {
            assert!(asking.asks() && OwnerToken::parse(asking.as_str()) == Some(asking));
            assert!(asking.time() == token.time() && asking.manager() == token.manager());
        }
        let nearest = token.with_attempt(with_chance(token.time(), ASKS & !1));
        assert!(!nearest.asks() && !token.asks(), "{nearest}");
    }

    #[test]
    fn only_tokens_are_parsed() {
        let token = OwnerToken::new(ManagerId::random(), TokenTime::new(0xabc_def0_1234, 0xfff));
        assert_eq!(OwnerToken::parse(token.as_str()), Some(token));
        let text = token.as_str();
        let wrong = [
            String::new(),
            "holder-of-another-library".into(),
            text[..Hyphenated::LENGTH].into(),
            format!("{text}0"),
            text.to_uppercase(),
            text.replace('@', "-"),
            text.replacen('-', "0", 1),
            text.replacen("-7", "-4", 1),
            format!("{}@{}", token.manager(), &text[..Hyphenated::LENGTH]),
        ];
        for text in wrong {
            assert_eq!(OwnerToken::parse(&text), None, "{text}");
        }
    }

    #[test]
    fn only_times_are_parsed() {
        assert_eq!(time("01234567-89ab-7cde"), Some(TokenTime::new(0x0123_4567_89ab, 0xcde)));
        for wrong in ["", "-", "01234567-89ab-4cde", "01234567-89AB-7cde", "+1234567-89ab-7cde", "0-0-70"] {
            assert_eq!(time(wrong), None, "{wrong}");
        }
    }
}
