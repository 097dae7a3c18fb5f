//! The Sentinels of one master, and the choice of the master from their answers.
//!
//! A malicious Sentinel could send the login of the server to any address. Therefore the *voters* come from the URL:
//!
//! 1. If the URL names several Sentinels, these are the voters, and no answer adds another. A master is accepted when more than half of the
//!    voters name it with the same configuration epoch.
//! 2. If the URL names one Sentinel, this one is trusted. It lists the other voters, and its answer is accepted while there is no majority.
//! 3. In all other cases, the last accepted master is accepted again if at least one voter still names it. It has received the login
//!    already.

use super::view::{View, agreed};
use crate::error::NodeError;
use crate::node::BoxFuture;
use crate::node::redis::cluster::address::MemberAddress;
use crate::node::redis::connect::connect_plainly;
use crate::node::redis::endpoint::{Announcer, Endpoint, Locate, Located};
use crate::node::redis::prepare;
use crate::node::redis::progress::{Progress, Step};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

/// Time limit for the other Sentinels after more than half have answered. Too small: the old answer of an isolated Sentinel is used while
/// the others are slow. Too large: a dead Sentinel delays each connection for longer.
const PATIENCE: Duration = Duration::from_millis(250);

/// Share of the time for a connection that the Sentinels have. Too small: distant Sentinels time out. Too large: no time is left for the
/// server.
const ASKING_PER_CONNECTION: f64 = 0.5;

/// The Sentinels of one master. They are reached with one login, and with TLS if the master uses it.
pub(crate) struct Sentinels(Arc<Inner>);

struct Inner {
    /// Name of the master at the Sentinels.
    service: Box<str>,
    /// One of them.
    first: Endpoint,
    /// Sentinels in the URL.
    named: BTreeSet<MemberAddress>,
    /// Facts from their answers.
    learnt: Mutex<Learnt>,
    /// Notified when the master should be looked up again.
    wanted: Notify,
}

/// Facts from the answers of Sentinels.
#[derive(Default)]
struct Learnt {
    /// Sentinels that the only one in the URL has listed; empty if the URL names several.
    others: BTreeSet<MemberAddress>,
    /// The last accepted master.
    master: Option<Located>,
}

impl Sentinels {
    pub(super) fn new(service: &str, first: Endpoint, named: Vec<MemberAddress>) -> Self {
        let (learnt, wanted, named) = (Mutex::default(), Notify::new(), named.into_iter().collect());
        Self(Arc::new(Inner { service: service.into(), first, named, learnt, wanted }))
    }

    /// Returns the name of the master at the Sentinels.
    pub(super) fn service(&self) -> &str {
        &self.0.service
    }

    /// Returns one of the Sentinels.
    #[cfg(test)]
    pub(super) fn first(&self) -> &Endpoint {
        &self.0.first
    }

    /// Returns the voters.
    pub(super) fn addresses(&self) -> BTreeSet<MemberAddress> {
        self.0.addresses()
    }

    pub(super) fn at(&self, address: &MemberAddress) -> Endpoint {
        self.0.at(address)
    }

    /// Requests a look-up of the master.
    pub(super) fn request_master_lookup(&self) {
        self.0.wanted.notify_one();
    }

    /// Waits for a request to look the master up.
    pub(super) async fn wanted(&self) {
        self.0.wanted.notified().await;
    }

    /// Returns the current location of the master. All voters are queried at the same time.
    ///
    /// # Errors
    /// [`NodeError::Unsupported`] if they know no such master, or are not Sentinels. [`NodeError::Unreachable`] if too few of them name the
    /// same master. Otherwise the reason why the last one did not answer.
    pub(super) async fn ask(&self) -> Result<Located, NodeError> {
        let (mut asked, addresses) = (JoinSet::new(), self.addresses());
        for address in addresses.clone() {
            let inner = Arc::clone(&self.0);
            asked.spawn(async move {
                let view = inner.query_sentinel(&inner.at(&address)).await;
                (address, view)
            });
        }
        let (mut views, mut failure) = (BTreeMap::new(), NodeError::Unreachable("no Sentinel has answered".into()));
        let mut until = Instant::now() + self.0.limit();
        while let Ok(Some(answer)) = timeout_at(until, asked.join_next()).await {
            match answer {
                Ok((address, Ok(view))) => {
                    views.insert(address, view);
                    // The nearest Sentinel may be isolated from the others.
                    if 2 * views.len() > addresses.len() {
                        until = until.min(Instant::now() + PATIENCE);
                    }
                }
                // A permanent fault is more informative than an unreachable Sentinel.
                Ok((_, Err(error))) if failure.is_transient() => failure = error,
                _ => {}
            }
        }
        self.0.learn(&views, addresses.len()).ok_or_else(|| match failure {
            // A mistake in the settings, or no answer at all.
            failure if views.is_empty() || !failure.is_transient() => failure,
            _ => NodeError::Unreachable(disagreement(views.len(), addresses.len()).into()),
        })
    }
}

impl Clone for Sentinels {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl Locate for Sentinels {
    fn locate(&self) -> BoxFuture<'_, Result<Located, NodeError>> {
        Box::pin(self.ask())
    }

    fn connected(&self) {
        // They may have named another master while the connection was made.
        self.request_master_lookup();
    }
}

impl Inner {
    fn learnt(&self) -> MutexGuard<'_, Learnt> {
        self.learnt.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn addresses(&self) -> BTreeSet<MemberAddress> {
        self.learnt().others.iter().chain(&self.named).cloned().collect()
    }

    /// Returns the master that is accepted after these answers of the `voters`, and remembers it.
    fn learn(&self, views: &BTreeMap<MemberAddress, View>, voters: usize) -> Option<Located> {
        let mut learnt = self.learnt();
        let is_only = self.named.len() == 1;
        let trusted = self.named.first().filter(|_| is_only).and_then(|only| views.get(only));
        if let Some(view) = trusted {
            learnt.others.clone_from(&view.sentinels);
        }
        let counting = agreed(views.values(), voters).or_else(|| trusted.map(View::located));
        if counting.is_some() {
            learnt.master.clone_from(&counting);
            return counting;
        }
        learnt.master.clone().filter(|last| views.values().any(|view| view.master == last.at))
    }

    fn at(&self, address: &MemberAddress) -> Endpoint {
        if self.named.contains(address) {
            self.first.elsewhere(&address.host, address.port)
        } else {
            self.first.announced(Announcer::Sentinel, address)
        }
    }

    async fn query_sentinel(&self, sentinel: &Endpoint) -> Result<View, NodeError> {
        let progress = Progress::default();
        // Earlier than the limit for all of them, so that its error is seen.
        let limit = self.limit().mul_f64(0.9);
        let asked = progress.limited(limit, self.question(sentinel, &progress)).await;
        asked.map_err(|error| match error {
            NodeError::Unreachable(reason) => {
                NodeError::Unreachable(format!("the Sentinel at {}: {reason}", sentinel.label()).into())
            }
            NodeError::Refused(reply) if is_refused_login(&reply) => NodeError::Refused(
                reply.with_step(format!("login at the Sentinel {}", progress.at()), LOGIN_OF_SENTINELS),
            ),
            error => sentinel.told(error, &progress.at()),
        })
    }

    async fn question(&self, sentinel: &Endpoint, progress: &Progress) -> Result<View, NodeError> {
        let mut connection = connect_plainly(sentinel, progress).await?;
        progress.goes_on(Step::Preparation);
        let answers = prepare::ask(&mut connection, &View::questions(&self.service)).await?;
        View::parse(answers, &self.service, sentinel.host().unwrap_or_default())
    }

    fn limit(&self) -> Duration {
        self.first.connect_timeout().mul_f64(ASKING_PER_CONNECTION)
    }
}

/// Remedy for a refused login. Sentinels do not use the login in the URL, which is that of the master.
const LOGIN_OF_SENTINELS: &str = "set the login of the Sentinels by `sentinel_credentials`, or in the URL by `sentinel_user` and \
                                  `sentinel_password_file`";

/// Returns `true` if a Sentinel wants another login.
fn is_refused_login(reply: &str) -> bool {
    ["NOAUTH", "WRONGPASS"].iter().any(|code| reply.starts_with(code))
}

/// Returns the reason why no master is accepted although Sentinels have answered.
fn disagreement(answers: usize, voters: usize) -> String {
    let needed = voters / 2 + 1;
    format!("{answers} of {voters} Sentinels answered, and fewer than {needed} name the same master")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(host: &str) -> MemberAddress {
        MemberAddress { host: host.into(), port: 1 }
    }

    fn sentinels(named: &[&str]) -> Sentinels {
        let first = Endpoint::parse("redis://s1", 1).unwrap();
        Sentinels::new("orders", first, named.iter().map(|host| at(host)).collect())
    }

    fn views(said: &[(&str, u64, &str, &[&str])]) -> BTreeMap<MemberAddress, View> {
        let view = |(host, epoch, master, others): &(&str, u64, &str, &[&str])| {
            let sentinels = others.iter().map(|other| at(other)).collect();
            (at(host), View { epoch: *epoch, master: at(master), since: None, sentinels })
        };
        said.iter().map(view).collect()
    }

    /// Returns the accepted master, and the number of voters afterwards.
    fn learn(sentinels: &Sentinels, said: &[(&str, u64, &str, &[&str])]) -> (Option<Box<str>>, usize) {
        let located = sentinels.0.learn(&views(said), sentinels.addresses().len());
        (located.map(|located| located.at.host), sentinels.addresses().len())
    }

    #[test]
    fn sentinel_cannot_gain_a_majority_by_listing_others() {
        let several = sentinels(&["s1", "s2", "s3"]);
        let forged: &[&str] = &["f1", "f2", "f3", "f4"];
        let said: [(_, _, _, &[&str]); 3] =
            [("s1", 9, "lie", forged), ("s2", 4, "now", &["s1", "s3"]), ("s3", 4, "now", &["s1", "s2"])];
        assert_eq!(learn(&several, &said), (Some("now".into()), 3));
        assert_eq!(learn(&several, &said[..1]), (None, 3));
    }

    #[test]
    fn only_sentinel_of_the_url_is_trusted_and_lists_the_others() {
        let one = sentinels(&["s1"]);
        let others: &[&str] = &["s2", "s3"];
        assert_eq!(learn(&one, &[("s1", 4, "now", others)]), (Some("now".into()), 3));
        assert_eq!(learn(&one, &[("s1", 4, "now", others), ("s2", 9, "lie", &["f"])]), (Some("now".into()), 3));
        let newer = [("s1", 4, "now", others), ("s2", 5, "next", &[][..]), ("s3", 5, "next", &[])];
        assert_eq!(learn(&one, &newer), (Some("next".into()), 3), "it is cut off");
        assert_eq!(learn(&one, &newer[1..]), (Some("next".into()), 3), "it is gone");
        assert_eq!(learn(&one, &[("s2", 9, "lie", &["f"])]), (None, 3), "another one alone");
    }

    #[test]
    fn last_known_master_is_used_while_one_sentinel_names_it() {
        let several = sentinels(&["s1", "s2", "s3"]);
        assert_eq!(learn(&several, &[("s1", 4, "now", &[])]), (None, 3), "it has not counted yet");
        assert_eq!(learn(&several, &[("s1", 4, "now", &[]), ("s3", 4, "now", &[])]), (Some("now".into()), 3));
        assert_eq!(learn(&several, &[("s1", 4, "now", &[])]), (Some("now".into()), 3));
        assert_eq!(learn(&several, &[("s1", 9, "lie", &[])]), (None, 3));
    }
}
