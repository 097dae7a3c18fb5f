//! A master that Sentinels watch over: they say where it is, and which replica has taken its place.
//!
//! Whenever a connection is made, all Sentinels that are known are asked which server is the master ([`Sentinels::master`]),
//! and the newest answer counts ([`view`]): a Sentinel that is cut off from the others goes on naming the one before. While a
//! connection stands, their messages say that there is another master ([`watch`]), and the connection to the one before
//! ends, even if that does not.

mod url;
mod view;
mod watch;

pub(super) use self::watch::watch;

use self::view::{View, newest};
use super::cluster::address::MemberAddress;
use super::connect::connect_plainly;
use super::endpoint::Endpoint;
use super::prepare;
use crate::error::{LockError, NodeError};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

pub(crate) use self::url::is_watched;

/// How long the other Sentinels are waited for when one has answered. Smaller, the old word of one that is cut off counts
/// while the others are slow; larger, one that is gone delays each connection for longer.
const PATIENCE: Duration = Duration::from_millis(250);

/// The part of the time for a connection that the Sentinels have. Smaller, those that are far away are not waited for; larger,
/// nothing is left for the server.
const ASKING_PER_CONNECTION: f64 = 0.5;

/// What is wrong with servers that are no Sentinels.
const NO_SENTINEL: &str =
    "is to be named by a Sentinel, and what answers is none: write redis:// in place of redis+sentinel://";

/// The Sentinels of one master. They are reached with one login, and with TLS if the master is.
pub(crate) struct Sentinels {
    /// What they call the master.
    service: Box<str>,
    /// One of them.
    first: Endpoint,
    /// Those in the URL.
    named: Box<[MemberAddress]>,
    known: Mutex<Known>,
    /// Told when there are others than before.
    changed: Notify,
}

/// What the Sentinels have said.
#[derive(Default)]
struct Known {
    /// The others that one of them knows.
    others: BTreeSet<MemberAddress>,
    /// The master that a connection was last made to, or is being made.
    master: Option<MemberAddress>,
}

impl Sentinels {
    fn new(service: &str, first: Endpoint, named: Vec<MemberAddress>) -> Self {
        let (known, changed) = (Mutex::default(), Notify::new());
        Self { service: service.into(), first, named: named.into(), known, changed }
    }

    /// The node whose URL names Sentinels, and is taken apart by [`url`].
    ///
    /// # Errors
    /// [`LockError::Configuration`] saying which node's URL is wrong, and what to write.
    pub(crate) fn endpoint(config: &super::NodeConfig, position: usize) -> Result<Endpoint, LockError> {
        url::endpoint(config, position)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of them that are known.
    fn addresses(&self) -> BTreeSet<MemberAddress> {
        self.known().others.iter().chain(&self.named).cloned().collect()
    }

    fn at(&self, address: &MemberAddress) -> Endpoint {
        self.first.elsewhere(&address.host, address.port)
    }

    /// Where the master is right now. A connection is made to it next.
    ///
    /// # Errors
    /// [`NodeError::Unfit`] when the Sentinels know no such master, or are none; why the last one did not answer.
    pub(super) async fn master(self: &Arc<Self>) -> Result<MemberAddress, NodeError> {
        let master = self.ask().await?;
        self.known().master = Some(master.clone());
        Ok(master)
    }

    /// The master, if it is another one than that of the last connection.
    async fn other_master(self: &Arc<Self>) -> Option<MemberAddress> {
        let master = self.ask().await.ok()?;
        let known = self.known();
        known.master.as_ref().is_some_and(|before| *before != master).then_some(master)
    }

    /// Asks all of them at the same time.
    async fn ask(self: &Arc<Self>) -> Result<MemberAddress, NodeError> {
        let mut asked = JoinSet::new();
        for address in self.addresses() {
            let sentinels = Arc::clone(self);
            asked.spawn(async move { sentinels.ask_one(&sentinels.at(&address)).await });
        }
        let (mut views, mut failure) = (Vec::new(), NodeError::Disconnected);
        let mut until = Instant::now() + self.limit();
        while let Ok(Some(answer)) = timeout_at(until, asked.join_next()).await {
            match answer.unwrap_or(Err(NodeError::Disconnected)) {
                Ok(view) => {
                    views.push(view);
                    until = until.min(Instant::now() + PATIENCE);
                }
                // What is wrong for good says more than that another one cannot be reached.
                Err(error) if failure.is_transient() => failure = error,
                Err(_) => {}
            }
        }
        let view = newest(views).ok_or(failure)?;
        self.learn(view.sentinels);
        Ok(view.master)
    }

    async fn ask_one(&self, sentinel: &Endpoint) -> Result<View, NodeError> {
        let asked = timeout(self.limit(), self.question(sentinel)).await;
        let late = |_| Err(NodeError::Unreachable(format!("no answer of the Sentinel at {}", sentinel.label()).into()));
        asked.unwrap_or_else(late).map_err(|error| match error {
            NodeError::Unreachable(reason) => {
                NodeError::Unreachable(format!("the Sentinel at {}: {reason}", sentinel.label()).into())
            }
            error => error,
        })
    }

    async fn question(&self, sentinel: &Endpoint) -> Result<View, NodeError> {
        let mut connection = connect_plainly(sentinel).await?;
        let answers = prepare::ask(&mut connection, &View::questions(&self.service)).await?;
        View::parse(answers, &self.service, sentinel.host().unwrap_or_default())
    }

    fn limit(&self) -> Duration {
        self.first.connect_timeout().mul_f64(ASKING_PER_CONNECTION)
    }

    /// One of them knows these others.
    fn learn(&self, others: BTreeSet<MemberAddress>) {
        let mut known = self.known();
        if known.others != others {
            known.others = others;
            drop(known);
            self.changed.notify_one();
        }
    }
}
