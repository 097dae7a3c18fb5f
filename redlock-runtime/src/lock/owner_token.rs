//! Owner tokens.

use crate::time::token_clock::TokenTime;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use uuid::fmt::Hyphenated;
use uuid::{Builder, Uuid, Variant, Version};

/// Names one manager of one process, by 23 hexadecimal digits: those of the time at which it began, one of a version, and ten that
/// differ.
///
/// By the version, nodes tell managers that are told of claims together with their times from older ones, which have version 7
/// and could not read that.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ManagerId {
    text: [u8; Self::LEN],
}

impl ManagerId {
    const LEN: usize = 23;

    pub(crate) fn random() -> Self {
        // What is below the 48 bits of the time counts the ids of one millisecond in this process, but for the last 32 bits, which
        // are chance.
        let uuid = Uuid::now_v7().as_u128();
        Self::new(uuid >> 80, CLAIMS_VERSION, uuid)
    }

    /// The same one at every run.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn numbered(number: u128) -> Self {
        Self::new(0, CLAIMS_VERSION, number)
    }

    /// One of an earlier version, which is not told of the times of claims.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn of_old(number: u128) -> Self {
        Self::new(0, b'7', number)
    }

    /// With the last 40 bits of `number`.
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

    /// Where the version stands, counted from 0.
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
    // In place: a token is made, copied and written for every acquisition.
    text: [u8; Self::LEN],
}

// What servers allocate for a token: 80 bytes for a sorted set that has one member, and 64 for a key. Such a set is a list as long as its
// members have 64 bytes at the most, with 6 bytes before and one behind, and the text and the score with their lengths at both ends; a
// key has 3 bytes before it and one behind.
const _: () = {
    let (text, score) = (1 + OwnerToken::LEN + 1, 1 + 8 + 1);
    assert!(6 + text + score < 80 && 3 + OwnerToken::LEN < 64);
};

impl OwnerToken {
    pub(crate) const LEN: usize = Hyphenated::LENGTH + 1 + ManagerId::LEN;
    /// The length of what stands before the at sign, which is unique by itself.
    pub(crate) const ATTEMPT_LEN: usize = Hyphenated::LENGTH;
    /// Where the part stands that chance decides, after the time.
    const CHANCE: std::ops::Range<usize> = "tttttttt-tttt-7ccc-".len().."tttttttt-tttt-7ccc-vvvv-vvvv".len();
    /// Where the version of the manager's id stands, counted from 0.
    pub(crate) const VERSION: usize = Self::ATTEMPT_LEN + 1 + ManagerId::VERSION;
    /// The length of the text that holds the time.
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

    /// A token of the same manager that takes this one's place in the order.
    pub(crate) fn again(&self) -> Self {
        self.with_attempt(uuid(self.time()))
    }

    /// The same as a token that [asks](Self::asks).
    pub(crate) fn asking(&self) -> Self {
        self.with_attempt(with_chance(self.time(), ASKS))
    }

    /// Whether its call does not wait for a body to end, and only wants to know whether one runs.
    ///
    /// That stands in the token, because whoever has the lock is told nothing else of those who want it.
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

    /// The token that stands in Redis as `text`, unless something else does.
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

    /// The id of the manager, as text.
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

    /// Whether its manager is told of claims together with their times.
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

/// The version of the ids of managers that are told of claims together with their times, as it stands in a token.
pub(crate) const CLAIMS_VERSION: u8 = b'8';

/// The time at the start of a token's text, of which this is the part that holds it.
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

/// The counter of the time is `rand_a`. What follows tells apart the tokens of one time: it need not be secret, since who
/// can write to Redis needs no token, but it must not repeat itself, even where the program seeds its random numbers.
fn uuid(time: TokenTime) -> Uuid {
    // Chance has the lowest bit left out, so that no token asks by accident.
    with_chance(time, fastrand::u32(..) & !1)
}

/// What stands in the place of chance in a token that asks, and how that looks behind the variant of the UUID.
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

// In upper case, the order of the bytes would not be that of the times.
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
    fn a_token_is_a_uuid_with_the_time_and_names_its_manager() {
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
    fn managers_of_one_moment_differ_and_tell_when_they_began() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        let managers: HashSet<_> = (0..10_000).map(|_| ManagerId::random().to_string()).collect();
        assert_eq!(managers.len(), 10_000);
        let began = |id: &String| u128::from_str_radix(&id[..ManagerId::VERSION], 16).unwrap();
        assert!(managers.iter().all(|id| (now..now + 60_000).contains(&began(id))), "{managers:?}");
    }

    #[test]
    fn managers_are_told_from_older_ones() {
        let of = |manager| OwnerToken::new(manager, TokenTime::new(1, 2));
        let managers = [ManagerId::random(), ManagerId::numbered(u128::MAX), ManagerId::of_old(u128::MAX)];
        assert_eq!(managers.map(|manager| of(manager).reads_claims()), [true, true, false]);
        assert!(of(ManagerId::random()).again().reads_claims());
    }

    #[test]
    fn a_token_again_has_the_time_and_the_manager_and_is_another() {
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
    fn a_token_that_asks_can_be_told_from_all_others_and_is_unique() {
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
