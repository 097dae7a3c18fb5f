//! The embedded node: the commands of a Redis node on a map in memory, in virtual time when tokio's clock is paused.

use crate::clock::{Clock, Instant};
use crate::node::{Command, Reply, Verb};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many locks may lie expired before they are looked for.
const SWEEP_FROM: usize = 1024;

#[derive(Debug)]
pub(crate) struct MemoryNode {
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    held: HashMap<Arc<str>, Holder>,
    /// The number of entries at which expired ones are removed: twice what was left the last time.
    sweep_at: usize,
}

#[derive(Debug)]
struct Holder {
    token: Arc<str>,
    expires: Instant,
}

impl MemoryNode {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, state: Mutex::new(State { held: HashMap::new(), sweep_at: SWEEP_FROM }) }
    }

    pub(crate) fn execute(&self, command: &Command) -> Reply {
        let now = self.clock.now();
        let (key, token) = (command.key(), command.token());
        let mut state = self.state();
        match command.verb {
            Verb::SetNx { ttl } => {
                if state.owner(key, now).is_some() {
                    return Reply::Held;
                }
                state.sweep(now);
                state.held.insert(key.into(), Holder { token: token.into(), expires: now.after(ttl) });
                Reply::Granted
            }
            Verb::Extend { ttl } => match state.owner(key, now) {
                Some(holder) if *holder.token == *token => {
                    holder.expires = now.after(ttl);
                    Reply::Extended
                }
                _ => Reply::NotOwner,
            },
            Verb::Release => match state.owner(key, now) {
                Some(holder) if *holder.token == *token => {
                    state.held.remove(key);
                    Reply::Released
                }
                _ => Reply::NotOwner,
            },
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under this mutex.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn owner(&mut self, key: &str, now: Instant) -> Option<&mut Holder> {
        self.held.get_mut(key).filter(|holder| now < holder.expires)
    }

    fn sweep(&mut self, now: Instant) {
        if self.held.len() >= self.sweep_at {
            self.held.retain(|_, holder| now < holder.expires);
            self.sweep_at = SWEEP_FROM.max(self.held.len() * 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Subject;
    use crate::token::{ManagerId, OwnerToken};
    use std::time::Duration;

    fn command(verb: Verb, key: &str, token: OwnerToken) -> Command {
        Command { verb, subject: Arc::new(Subject { key: key.into(), token }) }
    }

    #[tokio::test(start_paused = true)]
    async fn abandoned_locks_do_not_pile_up() {
        let node = MemoryNode::new(Clock::tokio());
        let token = OwnerToken::new(ManagerId::random());
        for i in 0..10 * SWEEP_FROM {
            node.execute(&command(Verb::SetNx { ttl: Duration::from_millis(10) }, &i.to_string(), token));
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert!(node.state().held.len() <= SWEEP_FROM);
    }
}
