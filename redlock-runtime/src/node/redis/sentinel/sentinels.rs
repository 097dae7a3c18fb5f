//! The Sentinels of one master: which of them are asked, and which of their answers counts.
//!
//! A Sentinel that lies could send the login of the server to any address. Therefore the *voters* come from the URL:
//!
//! 1. If the URL names several Sentinels, these are the voters, and no answer adds another. A master counts when more than half
//!    of the voters name it with the same configuration epoch.
//! 2. If the URL names one Sentinel, that one is trusted: it lists the other voters, and its word counts alone while
//!    there is no majority.
//! 3. While there is neither, the last master that counted does so again if at least one voter still names it. The login is
//!    known there already.

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

/// How long the other Sentinels are waited for when more than half have answered. Smaller, the old word of one that is cut off
/// counts while the others are slow; larger, one that is gone delays each connection for longer.
const PATIENCE: Duration = Duration::from_millis(250);

/// The part of the time for a connection that the Sentinels have. Smaller, those that are far away are not waited for; larger,
/// nothing is left for the server.
const ASKING_PER_CONNECTION: f64 = 0.5;

/// The Sentinels of one master. They are reached with one login, and with TLS if the master is.
pub(crate) struct Sentinels(Arc<Inner>);

struct Inner {
    /// What they call the master.
    service: Box<str>,
    /// One of them.
    first: Endpoint,
    /// Sentinels in the URL.
    named: BTreeSet<MemberAddress>,
    /// Facts from their answers.
    learnt: Mutex<Learnt>,
    /// Told when somebody should look where the master is.
    wanted: Notify,
}

/// Facts from the answers of Sentinels.
#[derive(Default)]
struct Learnt {
    /// Sentinels that the only one in the URL has listed; empty if the URL names several.
    others: BTreeSet<MemberAddress>,
    /// The last master that counted.
    master: Option<Located>,
}

impl Sentinels {
    pub(super) fn new(service: &str, first: Endpoint, named: Vec<MemberAddress>) -> Self {
        let (learnt, wanted, named) = (Mutex::default(), Notify::new(), named.into_iter().collect());
        Self(Arc::new(Inner { service: service.into(), first, named, learnt, wanted }))
    }

    /// What they call the master.
    pub(super) fn service(&self) -> &str {
        &self.0.service
    }

    /// One of them.
    #[cfg(test)]
    pub(super) fn first(&self) -> &Endpoint {
        &self.0.first
    }

    /// The voters.
    pub(super) fn addresses(&self) -> BTreeSet<MemberAddress> {
        self.0.addresses()
    }

    pub(super) fn at(&self, address: &MemberAddress) -> Endpoint {
        self.0.at(address)
    }

    /// Somebody should look where the master is.
    pub(super) fn want_look(&self) {
        self.0.wanted.notify_one();
    }

    /// Ready when somebody should.
    pub(super) async fn wanted(&self) {
        self.0.wanted.notified().await;
    }

    /// Returns where the master is right now. All voters are asked at the same time.
    ///
    /// # Errors
    /// [`NodeError::Unsupported`] if they know no such master, or are no Sentinels. [`NodeError::Unreachable`] if too few of them name
    /// the same master. Otherwise the reason why the last one did not answer.
    pub(super) async fn ask(&self) -> Result<Located, NodeError> {
        let (mut asked, addresses) = (JoinSet::new(), self.addresses());
        for address in addresses.clone() {
            let inner = Arc::clone(&self.0);
            asked.spawn(async move {
                let view = inner.ask_one(&inner.at(&address)).await;
                (address, view)
            });
        }
        let (mut views, mut failure) = (BTreeMap::new(), NodeError::Unreachable("no Sentinel has answered".into()));
        let mut until = Instant::now() + self.0.limit();
        while let Ok(Some(answer)) = timeout_at(until, asked.join_next()).await {
            match answer {
                Ok((address, Ok(view))) => {
                    views.insert(address, view);
                    // The nearest alone may be the one that is cut off.
                    if 2 * views.len() > addresses.len() {
                        until = until.min(Instant::now() + PATIENCE);
                    }
                }
                // What is wrong for good says more than that another one cannot be reached.
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
        // They may have named another one while the connection was made.
        self.want_look();
    }
}

impl Inner {
    fn learnt(&self) -> MutexGuard<'_, Learnt> {
        self.learnt.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn addresses(&self) -> BTreeSet<MemberAddress> {
        self.learnt().others.iter().chain(&self.named).cloned().collect()
    }

    /// Returns the master that counts by these answers of the `voters`, and remembers it.
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

    async fn ask_one(&self, sentinel: &Endpoint) -> Result<View, NodeError> {
        let progress = Progress::default();
        // Before the limit for all of them, so that its error is heard.
        let limit = self.limit().mul_f64(0.9);
        let asked = progress.limited(limit, self.question(sentinel, &progress)).await;
        asked.map_err(|error| match error {
            NodeError::Unreachable(reason) => {
                NodeError::Unreachable(format!("the Sentinel at {}: {reason}", sentinel.label()).into())
            }
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

/// The reason why no master counts although Sentinels have answered.
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

    /// The master that counts, and how many voters there are afterwards.
    fn learn(sentinels: &Sentinels, said: &[(&str, u64, &str, &[&str])]) -> (Option<Box<str>>, usize) {
        let located = sentinels.0.learn(&views(said), sentinels.addresses().len());
        (located.map(|located| located.at.host), sentinels.addresses().len())
    }

    #[test]
    fn sentinel_that_lists_others_gives_itself_no_majority() {
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
    fn last_master_counts_while_one_sentinel_still_names_it() {
        let several = sentinels(&["s1", "s2", "s3"]);
        assert_eq!(learn(&several, &[("s1", 4, "now", &[])]), (None, 3), "it has not counted yet");
        assert_eq!(learn(&several, &[("s1", 4, "now", &[]), ("s3", 4, "now", &[])]), (Some("now".into()), 3));
        assert_eq!(learn(&several, &[("s1", 4, "now", &[])]), (Some("now".into()), 3));
        assert_eq!(learn(&several, &[("s1", 9, "lie", &[])]), (None, 3));
    }
}
