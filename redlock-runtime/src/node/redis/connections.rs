//! The connections of one node: which there are, and whether wake-ups come on them.

use super::cluster::redirection::Redirect;
use super::live_connection::LiveConnection;
use super::progress::Progress;
use crate::error::NodeError;
use crate::node::environment::Environment;
use crate::node::server_facts::ServerFacts;
use crate::node::status::Status;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// What the tasks of the connections write and the callers read.
pub(super) struct Connections {
    pub(super) environment: Environment,
    pub(super) server: Arc<ServerFacts>,
    state: RwLock<CommandConnection>,
    /// The step that the connection for commands has reached, while it is being made.
    pub(super) progress: Progress,
    /// How many connections there have been, those for wake-ups included.
    epoch: AtomicU64,
    /// Whether wake-ups are wanted; it never becomes `false` again.
    is_wanted: AtomicBool,
    /// Whether the connection for wake-ups stands, where there is one.
    is_subscribed: AtomicBool,
    /// Wake-ups use a separate connection although the server speaks RESP3. Once set, this stays `true`.
    listens_apart: AtomicBool,
    /// Number of servers that were left because the name of the node led to another one.
    left: AtomicU64,
    /// Held by the task that checks a silent connection of the node: one check at a time.
    pub(super) checking: Arc<tokio::sync::Mutex<()>>,
    /// Where commands go that a member of a cluster sends elsewhere.
    redirect: Option<Arc<dyn Redirect>>,
}

/// The connection for commands, which carries wake-ups as well where the server speaks RESP3.
enum CommandConnection {
    Starting,
    Up(Arc<LiveConnection>),
    Down(NodeError),
}

impl Connections {
    /// To a server that is a node.
    pub(super) fn new(address: &str, environment: Environment) -> Self {
        let server = ServerFacts::new(address, Arc::clone(&environment.servers));
        Self::to(server, environment, None)
    }

    /// To a member of the cluster that is the node called `cluster`.
    pub(super) fn of_member(
        address: &str,
        environment: Environment,
        (cluster, redirect): (&str, Arc<dyn Redirect>),
    ) -> Self {
        let server = ServerFacts::of_member(address, cluster, Arc::clone(&environment.servers));
        Self::to(server, environment, Some(redirect))
    }

    fn to(server: ServerFacts, environment: Environment, redirect: Option<Arc<dyn Redirect>>) -> Self {
        Self {
            server: Arc::new(server),
            redirect,
            environment,
            state: RwLock::new(CommandConnection::Starting),
            progress: Progress::default(),
            epoch: AtomicU64::new(0),
            is_wanted: AtomicBool::new(false),
            is_subscribed: AtomicBool::new(false),
            listens_apart: AtomicBool::new(false),
            left: AtomicU64::new(0),
            checking: Arc::default(),
        }
    }

    /// The connection for commands.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn live(&self) -> Result<Arc<LiveConnection>, NodeError> {
        match &*self.state() {
            CommandConnection::Starting => Err(self.progress.under_way()),
            CommandConnection::Up(live) => Ok(Arc::clone(live)),
            CommandConnection::Down(error) => Err(error.clone()),
        }
    }

    /// The callers get a connection. If wake-ups are wanted, it is subscribed before anybody can send on it.
    pub(super) fn up(&self, live: Arc<LiveConnection>) {
        if let Some(redirect) = &self.redirect {
            live.redirect_with(redirect);
        }
        self.change(|state| {
            if self.is_wanted.load(Ordering::Acquire) {
                live.listen();
            }
            self.epoch.fetch_add(1, Ordering::AcqRel);
            *state = CommandConnection::Up(live);
        });
        (self.environment.connected)();
    }

    /// The callers have no connection any more, for the reason that `error` says.
    pub(super) fn down(&self, error: NodeError) {
        self.change(|state| *state = CommandConnection::Down(error));
    }

    /// The connection `live` has ended, for the reason that `error` says. Who reports it late must not take the next one
    /// away, which nothing would ever mend.
    pub(super) fn ended(&self, live: &Arc<LiveConnection>, error: NodeError) {
        self.change(|state| {
            if matches!(state, CommandConnection::Up(present) if Arc::ptr_eq(present, live)) {
                *state = CommandConnection::Down(error);
            }
        });
    }

    /// The connection for wake-ups stands, or does not any more.
    pub(super) fn subscribed(&self, is_subscribed: bool) {
        self.is_subscribed.store(is_subscribed, Ordering::Release);
        if is_subscribed {
            self.epoch.fetch_add(1, Ordering::AcqRel);
        }
        self.environment.changed.notify_waiters();
    }

    /// The name of the node leads to another server. The connection for wake-ups still leads to the one before.
    pub(super) fn left(&self) {
        self.left.fetch_add(1, Ordering::AcqRel);
        self.environment.changed.notify_waiters();
    }

    /// Returns the number of servers that were left.
    pub(super) fn times_left(&self) -> u64 {
        self.left.load(Ordering::Acquire)
    }

    /// Wants wake-ups, on the present connection and on all that follow.
    pub(super) fn listen(&self) {
        // Before the look at the present connection: so one that is made at the same time either is seen here or sees
        // this.
        let was_wanted = self.is_wanted.swap(true, Ordering::AcqRel);
        if let Ok(live) = self.live() {
            live.listen();
        }
        if !was_wanted {
            self.environment.changed.notify_waiters();
        }
    }

    /// Uses a separate connection for wake-ups from the next connection on. Called after a message that was too long has cut the connection
    /// for commands: the next such message then delays no command.
    pub(super) fn listen_apart(&self) {
        self.listens_apart.store(true, Ordering::Release);
    }

    /// Returns `true` if wake-ups have a connection of their own at every server.
    pub(super) fn listens_apart(&self) -> bool {
        self.listens_apart.load(Ordering::Acquire)
    }

    /// Whether wake-ups arrive.
    pub(super) fn is_listening(&self) -> bool {
        match &*self.state() {
            CommandConnection::Up(live) if live.has_pushes() => live.is_listening(),
            CommandConnection::Up(_) => self.is_subscribed.load(Ordering::Acquire),
            CommandConnection::Starting | CommandConnection::Down(_) => false,
        }
    }

    /// Whether wake-ups are wanted and need a connection of their own.
    pub(super) fn needs_subscriber(&self) -> bool {
        let is_wanted = self.is_wanted.load(Ordering::Acquire);
        is_wanted && matches!(&*self.state(), CommandConnection::Up(live) if !live.has_pushes())
    }

    /// Changes the connection for commands, and tells all who wait for a change.
    fn change(&self, change: impl FnOnce(&mut CommandConnection)) {
        change(&mut self.state.write().unwrap_or_else(PoisonError::into_inner));
        self.environment.changed.notify_waiters();
    }

    /// The status to show to callers.
    pub(super) fn status(&self) -> Status {
        match &*self.state() {
            CommandConnection::Starting => Status::Starting(self.progress.under_way()),
            CommandConnection::Up(_) => Status::Up,
            CommandConnection::Down(error) => Status::Down(error.clone()),
        }
    }

    /// The number of connections so far.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// The connection for commands, or why there is none.
    fn state(&self) -> RwLockReadGuard<'_, CommandConnection> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::owner_token::ManagerId;
    use crate::node::abstention::Abstention;
    use crate::node::redis::channels::Channels;
    use crate::node::redis::script::Scripts;
    use crate::time::clock::Clock;
    use std::convert::Infallible;

    /// The connections of a node that has had two.
    fn twice_connected() -> (Connections, [Arc<LiveConnection>; 2]) {
        let environment = Environment::of_lone_node(ManagerId::numbered(7), Clock::Boot);
        let connections = Connections::new("server:6379", environment);
        let live = [(); 2].map(|()| {
            let Ok(scripts) = Scripts::loaded(Channels::of_server(""), || Ok::<_, Infallible>(String::new()));
            let (server, environment) = (Arc::clone(&connections.server), connections.environment.clone());
            Arc::new(LiveConnection::new(scripts, true, Abstention::default(), server, environment))
        });
        for live in &live {
            connections.up(Arc::clone(live));
        }
        (connections, live)
    }

    #[test]
    fn a_connection_that_is_reported_late_does_not_take_the_next_one_away() {
        let (connections, [before, present]) = twice_connected();
        connections.ended(&before, NodeError::Disconnected);
        assert!(Arc::ptr_eq(&connections.live().unwrap(), &present));
        connections.ended(&present, NodeError::Disconnected);
        assert!(matches!(connections.status(), Status::Down(NodeError::Disconnected)));
    }
}
