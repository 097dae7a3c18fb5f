//! What a Sentinel says of a master.

use crate::error::NodeError;
use crate::node::redis::answer::refused;
use crate::node::redis::cluster::address::MemberAddress;
use crate::node::redis::endpoint::Located;
use redis::{FromRedisValue, Pipeline, Value};
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// What is wrong with servers that are no Sentinels.
const NO_SENTINEL: &str =
    "is to be named by a Sentinel, and what answers is none: write redis:// in place of redis+sentinel://";

/// What one of them says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct View {
    /// The number of the configuration, which each failover raises. Zero if it does not say.
    pub(super) epoch: u64,
    pub(super) master: MemberAddress,
    /// For how long it has known that one as the master, if it says so.
    pub(super) since: Option<Duration>,
    /// The others that it knows.
    pub(super) sentinels: BTreeSet<MemberAddress>,
}

/// The master of the newest configuration, and for how long one of those that know it has known it: whoever has not heard of a
/// failover names the master before it.
pub(super) fn newest(views: &[View]) -> Option<Located> {
    let newest = views.iter().max_by_key(|view| view.epoch)?;
    let same = views.iter().filter(|view| (view.epoch, &view.master) == (newest.epoch, &newest.master));
    let since = same.filter_map(|view| view.since).max();
    Some(Located { at: newest.master.clone(), since, epoch: newest.epoch })
}

impl View {
    /// What is asked, in the order in which [`parse`](Self::parse) takes the answers.
    pub(super) fn questions(service: &str) -> Pipeline {
        let mut questions = Pipeline::new();
        // While a failover is under way, this alone knows already who will be the master.
        for question in ["GET-MASTER-ADDR-BY-NAME", "MASTER", "SENTINELS"] {
            questions.cmd("SENTINEL").arg(question).arg(service);
        }
        questions
    }

    /// Reads the `answers` of a Sentinel at `host`.
    ///
    /// # Errors
    /// [`NodeError::Unfit`] when it knows no such master or is no Sentinel, and its refusal otherwise.
    pub(super) fn parse(answers: Vec<Value>, service: &str, host: &str) -> Result<Self, NodeError> {
        let mut answers = answers.into_iter();
        let master =
            answers.next().unwrap_or(Value::Nil).extract_error().map_err(|error| explained(refused(&error)))?;
        let Some((address, port)) = read::<Option<(String, u16)>>(master).flatten() else {
            let unknown = format!(
                "is to be named by a Sentinel that watches no master called {service:?}: write its name behind the address, as \
                 in redis+sentinel://host:26379/mymaster"
            );
            return Err(NodeError::Unfit(unknown.into()));
        };
        let permitted = |answer: Option<Value>| answer?.extract_error().ok();
        let state: HashMap<String, String> = permitted(answers.next()).and_then(read).unwrap_or_default();
        let others: Vec<HashMap<String, String>> = permitted(answers.next()).and_then(read).unwrap_or_default();
        Ok(Self {
            epoch: state.get("config-epoch").and_then(|epoch| epoch.parse().ok()).unwrap_or(0),
            master: MemberAddress::new(&address, port, host),
            since: since(&state, &address, port),
            sentinels: others.iter().filter_map(|other| place(other, host)).collect(),
        })
    }
}

/// For how long the master at that address has been one. While a failover is under way, the state is that of the one before.
fn since(state: &HashMap<String, String>, address: &str, port: u16) -> Option<Duration> {
    let is_of_it = state.get("ip")? == address && state.get("port")?.parse() == Ok(port);
    let time = state.get("role-reported-time")?.parse().map(Duration::from_millis).ok()?;
    Some(if is_of_it { time } else { Duration::ZERO })
}

fn read<T: FromRedisValue>(answer: Value) -> Option<T> {
    redis::from_redis_value(answer).ok()
}

/// Where another Sentinel is, by its properties.
fn place(other: &HashMap<String, String>, host: &str) -> Option<MemberAddress> {
    Some(MemberAddress::new(other.get("ip")?, other.get("port")?.parse().ok()?, host))
}

/// A server that is no Sentinel says so in words of its own.
fn explained(error: NodeError) -> NodeError {
    match &error {
        NodeError::Refused(answer) if answer.contains("unknown command") => NodeError::Unfit(NO_SENTINEL.into()),
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
    fn a_sentinel_names_the_master_and_the_others() {
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
    fn what_is_wrong_for_good_is_explained() {
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
    fn the_newest_configuration_counts() {
        let second = Duration::from_secs(1);
        let view = |epoch, master, seconds: u32| View {
            epoch,
            master: at(master),
            since: Some(seconds * second),
            sentinels: BTreeSet::new(),
        };
        let views = vec![view(3, "before:1", 90), view(4, "now:1", 2), view(4, "now:1", 3), view(3, "before:1", 80)];
        let located = |at, since, epoch| Located { at, since: Some(since), epoch };
        let now = located(at("now:1"), 3 * second, 4);
        assert_eq!(newest(&views), Some(now.clone()));
        let before = newest(&views[..1]).unwrap();
        assert!(
            before.is_replaced_by(&now) && !now.is_replaced_by(&before),
            "who has heard of a failover goes not back"
        );
        assert!(
            !now.is_replaced_by(&located(at("now:1"), second, 5)) && now.is_replaced_by(&located(at("x:1"), second, 4))
        );
        assert_eq!(newest(&[]), None);
    }
}
