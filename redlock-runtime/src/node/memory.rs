//! The embedded node: the commands of a Redis node on state in memory, in virtual time when tokio's clock is paused.

use crate::protocol::command::{Command, Reply};
use crate::protocol::node_state::State;
use crate::time::clock::Clock;
use std::sync::{Mutex, PoisonError};

#[derive(Debug)]
pub(crate) struct MemoryNode {
    clock: Clock,
    state: Mutex<State>,
}

impl MemoryNode {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, state: Mutex::default() }
    }

    pub(crate) fn execute(&self, command: &Command) -> Reply {
        let now = self.clock.now();
        // No code that can panic runs under this mutex.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody listens: whoever waits for a lock of this process waits in the process. And all tokens have their
        // times from one clock.
        let (reply, _) = state.execute(now, command, &mut |_, _| 0);
        reply
    }
}
