//! The connections of one node, and their state: status, epoch and subscription.

use super::cluster::redirection::Redirect;
use super::live_connection::LiveConnection;
use super::progress::Progress;
use crate::error::NodeError;
use crate::node::environment::Environment;
use crate::node::server_facts::ServerFacts;
use crate::node::status::Status;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// State that the tasks of the connections write and the callers read.
pub(super) struct Connections {
    pub(super) environment: Environment,
    pub(super) server: Arc<ServerFacts>,
    state: RwLock<CommandConnection>,
    /// The step that the connection for commands has reached, while it is being made.
    pub(super) progress: Progress,
    /// Number of connections so far, including those for wake-ups.
    epoch: AtomicU64,
    /// `true` if wake-ups are wanted; it never becomes `false` again.
    is_wanted: AtomicBool,
    /// `true` if the connection for wake-ups is established, where there is one.
    is_subscribed: AtomicBool,
    /// Wake-ups use a separate connection although the server speaks RESP3. Once set, this stays `true`.
    listens_apart: AtomicBool,
    /// Number of servers that were left because the name of the node led to another one.
    left: AtomicU64,
    /// Held by the task that checks a silent connection of the node: one check at a time.
    pub(super) checking: Arc<tokio::sync::Mutex<()>>,
    /// Forwarder for the commands that a member of a cluster redirects.
    redirect: Option<Arc<dyn Redirect>>,
}

/// The connection for commands, which also delivers wake-ups if the server supports RESP3.
enum CommandConnection {
    Starting,
    Up(Arc<LiveConnection>),
    Down(NodeError),
}

impl Connections {
    /// Creates the connections to a server that is a node.
    pub(super) fn new(address: &str, environment: Environment) -> Self {
        let server = ServerFacts::new(address, Arc::clone(&environment.servers));
        Self::to(server, environment, None)
    }

    /// Creates the connections to a member of the cluster that is the node called `cluster`.
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

    /// Returns the connection for commands.
    ///
    /// # Errors
    /// The reason why there is none.
    pub(super) fn live(&self) -> Result<Arc<LiveConnection>, NodeError> {
        match &*self.state() {
            CommandConnection::Starting => Err(self.progress.under_way()),
            CommandConnection::Up(live) => Ok(Arc::clone(live)),
            CommandConnection::Down(error) => Err(error.clone()),
        }
    }

    /// Gives a connection to the callers. If wake-ups are wanted, it is subscribed before any caller can send on it.
    pub(super) fn up(&self, live: Arc<LiveConnection>) {
        if let Some(redirect) = &self.redirect {
            live.set_redirect(redirect);
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

    /// Removes the connection from the callers, because of `error`.
    pub(super) fn down(&self, error: NodeError) {
        self.change(|state| *state = CommandConnection::Down(error));
    }

    /// Records that the connection `live` has ended because of `error`. A late report must not remove the next connection: it would never
    /// come back.
    pub(super) fn ended(&self, live: &Arc<LiveConnection>, error: NodeError) {
        self.change(|state| {
            if matches!(state, CommandConnection::Up(present) if Arc::ptr_eq(present, live)) {
                *state = CommandConnection::Down(error);
            }
        });
    }

    /// Records the state of the connection for wake-ups.
    pub(super) fn subscribed(&self, is_subscribed: bool) {
        self.is_subscribed.store(is_subscribed, Ordering::Release);
        if is_subscribed {
            self.epoch.fetch_add(1, Ordering::AcqRel);
        }
        self.environment.changed.notify_waiters();
    }

    /// Records that the name of the node leads to another server. The connection for wake-ups still leads to the previous one.
    pub(super) fn left(&self) {
        self.left.fetch_add(1, Ordering::AcqRel);
        self.environment.changed.notify_waiters();
    }

    /// Returns the number of servers that were left.
    pub(super) fn times_left(&self) -> u64 {
        self.left.load(Ordering::Acquire)
    }

    /// Requests wake-ups, on the present connection and on all later ones.
    pub(super) fn listen(&self) {
        // Before the present connection is read: a connection that is made at the same time is either seen here, or sees this.
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
    pub(super) fn use_separate_listener(&self) {
        self.listens_apart.store(true, Ordering::Release);
    }

    /// Returns `true` if wake-ups have a separate connection at every server.
    pub(super) fn listens_apart(&self) -> bool {
        self.listens_apart.load(Ordering::Acquire)
    }

    /// Returns `true` if wake-ups arrive.
    pub(super) fn is_listening(&self) -> bool {
        match &*self.state() {
            CommandConnection::Up(live) if live.has_pushes() => live.is_listening(),
            CommandConnection::Up(_) => self.is_subscribed.load(Ordering::Acquire),
            CommandConnection::Starting | CommandConnection::Down(_) => false,
        }
    }

    /// Returns `true` if wake-ups are wanted and need a separate connection.
    pub(super) fn needs_subscriber(&self) -> bool {
        let is_wanted = self.is_wanted.load(Ordering::Acquire);
        is_wanted && matches!(&*self.state(), CommandConnection::Up(live) if !live.has_pushes())
    }

    /// Changes the connection for commands, and notifies all tasks that wait for a change.
    fn change(&self, change: impl FnOnce(&mut CommandConnection)) {
        change(&mut self.state.write().unwrap_or_else(PoisonError::into_inner));
        self.environment.changed.notify_waiters();
    }

    /// Returns the status to show to callers.
    pub(super) fn status(&self) -> Status {
        match &*self.state() {
            CommandConnection::Starting => Status::Starting(self.progress.under_way()),
            CommandConnection::Up(_) => Status::Up,
            CommandConnection::Down(error) => Status::Down(error.clone()),
        }
    }

    /// Returns the number of connections so far.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Returns the state of the connection for commands.
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

    /// Returns the connections of a node after its second connection.
    fn twice_connected() -> (Connections, [Arc<LiveConnection>; 2]) {
        let environment = Environment::for_single_node(ManagerId::numbered(7), Clock::Boot);
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
    fn late_disconnect_report_does_not_end_the_next_connection() {
        let (connections, [before, present]) = twice_connected();
        connections.ended(&before, NodeError::Disconnected);
        assert!(Arc::ptr_eq(&connections.live().unwrap(), &present));
        connections.ended(&present, NodeError::Disconnected);
        assert!(matches!(connections.status(), Status::Down(NodeError::Disconnected)));
    }
}
