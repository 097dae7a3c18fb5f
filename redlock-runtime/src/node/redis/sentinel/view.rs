//! The view that a Sentinel has of a master.

use crate::error::NodeError;
use crate::node::redis::answer::refused;
use crate::node::redis::cluster::address::MemberAddress;
use crate::node::redis::endpoint::Located;
use redis::{FromRedisValue, Pipeline, Value};
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// Error text for servers that are not Sentinels.
const NO_SENTINEL: &str = "answers, but is not a Sentinel: write redis:// instead of redis+sentinel://";

/// Maximum number of other Sentinels that one Sentinel can add. Too small: Sentinels that could name the master are not queried. Too large:
/// a forged list opens more connections. Redis users run three to seven Sentinels.
const MOST_LISTED: usize = 16;

/// The answers of one Sentinel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct View {
    /// The number of the configuration, which each failover raises. Zero if it is not reported.
    pub(super) epoch: u64,
    pub(super) master: MemberAddress,
    /// Time for which this server has been its master, if it is reported.
    pub(super) since: Option<Duration>,
    /// The other known Sentinels, at most [`MOST_LISTED`].
    pub(super) sentinels: BTreeSet<MemberAddress>,
}

/// Returns the master that more than half of all `voters` name, with the same configuration epoch.
///
/// In a failover, the Sentinels learn the new epoch one after the other. Until more than half of them have it, the majority
/// names the old master, or there is no majority. A minority of Sentinels that lie or are cut off cannot name a master, and
/// cannot make it look as if it had been the master for longer: with `n` voters, up to `(n - 1) / 2` of the reported times are
/// ignored, the longest first.
pub(super) fn agreed<'a>(views: impl IntoIterator<Item = &'a View>, voters: usize) -> Option<Located> {
    let views: Vec<_> = views.into_iter().collect();
    let agreeing =
        |view: &View| views.iter().copied().filter(|other| other.names_same(view)).cloned().collect::<Vec<_>>();
    let majority = views.iter().copied().map(agreeing).find(|agreeing| 2 * agreeing.len() > voters)?;
    let mut times: Vec<_> = majority.iter().filter_map(|view| view.since).collect();
    times.sort_unstable_by(|one, other| other.cmp(one));
    let since = times.get(voters.saturating_sub(1) / 2).or(times.last()).copied();
    majority.first().map(|view| Located { since, ..view.located() })
}

impl View {
    /// Builds the queries, in the order in which [`parse`](Self::parse) reads the replies.
    pub(super) fn questions(service: &str) -> Pipeline {
        let mut questions = Pipeline::new();
        // While a failover is under way, only this query already returns the future master.
        for question in ["GET-MASTER-ADDR-BY-NAME", "MASTER", "SENTINELS"] {
            questions.cmd("SENTINEL").arg(question).arg(service);
        }
        questions
    }

    /// Returns the master according to this Sentinel alone.
    pub(super) fn located(&self) -> Located {
        Located { at: self.master.clone(), since: self.since, epoch: self.epoch }
    }

    /// Returns `true` if both report the same master in the same configuration.
    fn names_same(&self, other: &Self) -> bool {
        (self.epoch, &self.master) == (other.epoch, &other.master)
    }

    /// Reads the `answers` of a Sentinel at `host`.
    ///
    /// # Errors
    /// [`NodeError::Unsupported`] if it knows no such master or is not a Sentinel, and its refusal otherwise.
    pub(super) fn parse(answers: Vec<Value>, service: &str, host: &str) -> Result<Self, NodeError> {
        let mut answers = answers.into_iter();
        let master =
            answers.next().unwrap_or(Value::Nil).extract_error().map_err(|error| explained(refused(&error)))?;
        let Some((address, port)) = read::<Option<(String, u16)>>(master).flatten() else {
            let unknown = format!(
                "is a Sentinel that watches no master called {service:?}: write its name behind the address, as \
                 in redis+sentinel://host:26379/mymaster"
            );
            return Err(NodeError::Unsupported(unknown.into()));
        };
        let permitted = |answer: Option<Value>| answer?.extract_error().ok();
        let state: HashMap<String, String> = permitted(answers.next()).and_then(read).unwrap_or_default();
        let others: Vec<HashMap<String, String>> = permitted(answers.next()).and_then(read).unwrap_or_default();
        Ok(Self {
            epoch: state.get("config-epoch").and_then(|epoch| epoch.parse().ok()).unwrap_or(0),
            master: MemberAddress::new(&address, port, host),
            since: since(&state, &address, port),
            sentinels: others.iter().filter_map(|other| place(other, host)).take(MOST_LISTED).collect(),
        })
    }
}

/// Returns the time for which the server at that address has been the master. While a failover is under way, the state is that of the
/// previous master.
fn since(state: &HashMap<String, String>, address: &str, port: u16) -> Option<Duration> {
    let is_of_it = state.get("ip")? == address && state.get("port")?.parse() == Ok(port);
    let time = state.get("role-reported-time")?.parse().map(Duration::from_millis).ok()?;
    Some(if is_of_it { time } else { Duration::ZERO })
}

fn read<T: FromRedisValue>(answer: Value) -> Option<T> {
    redis::from_redis_value(answer).ok()
}

/// Returns the address of another Sentinel, from its properties.
fn place(other: &HashMap<String, String>, host: &str) -> Option<MemberAddress> {
    Some(MemberAddress::new(other.get("ip")?, other.get("port")?.parse().ok()?, host))
}

/// Replaces the error of a server that is not a Sentinel by a clearer one.
fn explained(error: NodeError) -> NodeError {
    match &error {
        NodeError::Refused(answer) if answer.contains("unknown command") => NodeError::Unsupported(NO_SENTINEL.into()),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redis::{ErrorKind, RedisError, ServerError};

    fn text(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn texts(all: &[&str]) -> Value {
        Value::Array(all.iter().map(|one| text(one)).collect())
    }

    fn at(address: &str) -> MemberAddress {
        MemberAddress::parse(address, "").unwrap()
    }

    #[test]
    fn sentinel_reply_names_the_master_and_other_sentinels() {
        let answers = || {
            vec![
                texts(&["10.0.0.1", "6379"]),
                texts(&["ip", "10.0.0.1", "port", "6379", "config-epoch", "7", "role-reported-time", "1500"]),
                Value::Array(vec![texts(&["ip", "10.0.0.8", "port", "26379"]), texts(&["ip", "10.0.0.9"])]),
            ]
        };
        let view = View::parse(answers(), "orders", "10.0.0.7").unwrap();
        assert_eq!((view.epoch, &view.master), (7, &at("10.0.0.1:6379")));
        assert_eq!(view.since, Some(Duration::from_millis(1500)));
        let mut promoting = answers();
        promoting[0] = texts(&["10.0.0.2", "6379"]);
        assert_eq!(View::parse(promoting, "orders", "h").unwrap().since, Some(Duration::ZERO), "just promoted");
        assert_eq!(view.sentinels, BTreeSet::from([at("10.0.0.8:26379")]));
        let alone = View::parse(answers().into_iter().take(1).collect(), "orders", "10.0.0.7").unwrap();
        assert_eq!((alone.epoch, alone.master, alone.sentinels.len()), (0, view.master, 0), "it may tell no more");
    }

    #[test]
    fn permanent_sentinel_errors_are_explained() {
        let refusal = |text: &'static str| {
            let error: RedisError = (ErrorKind::Server(redis::ServerErrorKind::ResponseError), text).into();
            ServerError::try_from(error).map_or(Value::Nil, Value::ServerError)
        };
        let unknown = View::parse(vec![Value::Nil], "orders", "h").unwrap_err();
        assert!(unknown.to_string().contains("no master called \"orders\""), "{unknown}");
        assert!(!unknown.is_transient());
        let refused = View::parse(vec![refusal("unknown command 'SENTINEL'")], "orders", "h");
        assert!(refused.is_err());
    }

    #[test]
    fn sentinel_reply_adds_a_bounded_number_of_sentinels() {
        let other = |port: u16| texts(&["ip", "10.0.0.8", "port", &port.to_string()]);
        let answers = vec![texts(&["10.0.0.1", "6379"]), texts(&[]), Value::Array((1..=10_000).map(other).collect())];
        assert_eq!(View::parse(answers, "orders", "h").unwrap().sentinels.len(), MOST_LISTED);
    }

    fn view(epoch: u64, master: &str, seconds: u64) -> View {
        let since = Some(Duration::from_secs(seconds));
        View { epoch, master: at(master), since, sentinels: BTreeSet::new() }
    }

    #[test]
    fn majority_of_all_sentinels_names_the_master() {
        type Said = (u64, &'static str);
        const LIE: u64 = 1 << 62;
        let table: [(_, &[Said], usize, Option<Said>); 13] = [
            ("nobody answers", &[], 3, None),
            ("one Sentinel is all there are", &[(4, "now:1")], 1, Some((4, "now:1"))),
            ("one of three answers", &[(4, "now:1")], 3, None),
            ("one of two answers", &[(4, "now:1")], 2, None),
            ("two of three answer", &[(4, "now:1"), (4, "now:1")], 3, Some((4, "now:1"))),
            ("one of three lies", &[(LIE, "lie:1"), (4, "now:1"), (4, "now:1")], 3, Some((4, "now:1"))),
            ("it lies with the same epoch", &[(4, "lie:1"), (4, "now:1"), (4, "now:1")], 3, Some((4, "now:1"))),
            ("it lies, and one is down", &[(LIE, "lie:1"), (4, "now:1")], 3, None),
            ("a failover begins", &[(3, "old:1"), (4, "now:1"), (3, "old:1")], 3, Some((3, "old:1"))),
            ("a failover goes on", &[(3, "old:1"), (4, "now:1"), (4, "now:1")], 3, Some((4, "now:1"))),
            ("a failover while one lies", &[(3, "old:1"), (4, "now:1"), (LIE, "lie:1")], 3, None),
            ("two of five lie", &[(LIE, "l:1"), (4, "n:1"), (LIE, "l:1"), (4, "n:1"), (4, "n:1")], 5, Some((4, "n:1"))),
            ("they may not tell the epoch", &[(0, "now:1"), (0, "now:1")], 3, Some((0, "now:1"))),
        ];
        for (name, said, voters, expected) in table {
            let views: Vec<_> = said.iter().map(|(epoch, master)| view(*epoch, master, 1)).collect();
            let located = agreed(&views, voters).map(|located| (located.epoch, located.at));
            assert_eq!(located, expected.map(|(epoch, master)| (epoch, at(master))), "{name}");
        }
    }

    #[test]
    fn minority_cannot_make_a_master_look_older() {
        let table: [(&[u64], usize, u64); 4] =
            [(&[5], 1, 5), (&[u64::MAX, 5, 4], 3, 5), (&[u64::MAX, 5], 3, 5), (&[9, 9, 5, 4], 5, 5)];
        for (seconds, voters, expected) in table {
            let views: Vec<_> = seconds.iter().map(|seconds| view(4, "now:1", *seconds)).collect();
            let since = agreed(&views, voters).and_then(|located| located.since);
            assert_eq!(since, Some(Duration::from_secs(expected)), "{seconds:?}");
        }
    }

    #[test]
    fn connection_is_not_replaced_for_an_older_sentinel_epoch() {
        let [before, now] = [view(3, "before:1", 90), view(4, "now:1", 3)].map(|view| view.located());
        assert!(before.is_replaced_by(&now) && !now.is_replaced_by(&before));
        assert!(
            !now.is_replaced_by(&view(5, "now:1", 1).located()) && now.is_replaced_by(&view(4, "x:1", 1).located())
        );
    }
}
