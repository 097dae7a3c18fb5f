//! The Sentinels of one master: which there are, and what they say.

use super::view::{View, newest};
use crate::error::NodeError;
use crate::node::BoxFuture;
use crate::node::redis::cluster::address::MemberAddress;
use crate::node::redis::connect::connect_plainly;
use crate::node::redis::endpoint::{Endpoint, Locate, Located};
use crate::node::redis::prepare;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

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
    /// Those in the URL.
    named: Box<[MemberAddress]>,
    /// Those that answered, and all that they know.
    others: Mutex<BTreeSet<MemberAddress>>,
    /// Told when somebody should look where the master is.
    wanted: Notify,
}

impl Sentinels {
    pub(super) fn new(service: &str, first: Endpoint, named: Vec<MemberAddress>) -> Self {
        let (others, wanted) = (Mutex::default(), Notify::new());
        Self(Arc::new(Inner { service: service.into(), first, named: named.into(), others, wanted }))
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

    /// All of them that are known.
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

    /// Where the master is right now. All are asked at the same time.
    ///
    /// # Errors
    /// [`NodeError::Unfit`] when they know no such master, or are none; why the last one did not answer.
    pub(super) async fn ask(&self) -> Result<Located, NodeError> {
        let (mut asked, addresses) = (JoinSet::new(), self.addresses());
        for address in addresses.clone() {
            let inner = Arc::clone(&self.0);
            asked.spawn(async move {
                let view = inner.ask_one(&inner.at(&address)).await;
                (address, view)
            });
        }
        let (mut views, mut heard, mut failure) = (Vec::new(), BTreeSet::new(), NodeError::Disconnected);
        let mut until = Instant::now() + self.0.limit();
        while let Ok(Some(answer)) = timeout_at(until, asked.join_next()).await {
            match answer {
                Ok((address, Ok(view))) => {
                    heard.insert(address);
                    views.push(view);
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
        heard.extend(views.iter().flat_map(|view| view.sentinels.iter().cloned()));
        let located = newest(&views).ok_or(failure)?;
        *self.0.others() = heard;
        Ok(located)
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
    fn others(&self) -> MutexGuard<'_, BTreeSet<MemberAddress>> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn addresses(&self) -> BTreeSet<MemberAddress> {
        self.others().iter().chain(&self.named).cloned().collect()
    }

    fn at(&self, address: &MemberAddress) -> Endpoint {
        self.first.elsewhere(&address.host, address.port)
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
}
