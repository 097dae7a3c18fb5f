//! Faults of a server: its connections break, it hangs, is slow, refuses commands, or restarts without its data.

use super::wire::{Lost, Peer, Wire};
use super::{Inner, Server};
use crate::error::NodeError;
use crate::protocol::node_state::NodeState;
use fastrand::Rng;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

impl Server {
    /// Returns all managers that are not cut off.
    pub(super) fn ends(&self) -> Vec<Arc<dyn Peer>> {
        self.inner().wires.values().filter(|wire| !wire.is_cut).filter_map(|wire| wire.end.upgrade()).collect()
    }

    /// Cuts all connections.
    pub(in crate::testing) fn cut(&self) {
        let mut inner = self.inner();
        inner.is_down = true;
        let lost = inner.wires.values_mut().map(Wire::empty).collect();
        drop(inner);
        Self::notify_disconnect(&self.ends(), lost);
    }

    /// Cuts the connection of the manager with that channel. Returns `false` if there is none.
    pub(in crate::testing) fn cut_off(&self, channel: &str) -> bool {
        let mut inner = self.inner();
        let Some(wire) = inner.wires.values_mut().find(|wire| wire.channel == channel) else { return false };
        if mem::replace(&mut wire.is_cut, true) {
            return true;
        }
        let (end, lost) = (wire.end.upgrade(), wire.empty());
        drop(inner);
        Self::notify_disconnect(end.as_slice(), vec![lost]);
        true
    }

    /// Reconnects the manager with that channel. Returns `false` if there is none.
    pub(in crate::testing) fn reconnect_manager(&self, channel: &str) -> bool {
        let mut inner = self.inner();
        let is_down = inner.is_down;
        let Some(wire) = inner.wires.values_mut().find(|wire| wire.channel == channel) else { return false };
        let Some(end) = wire.end.upgrade().filter(|_| wire.is_cut) else { return true };
        if is_down {
            wire.is_cut = false;
            return true;
        }
        drop(inner);
        end.meets(self.identity());
        for wire in self.inner().wires.values_mut().filter(|wire| wire.channel == channel) {
            wire.is_cut = false;
            wire.connections += 1;
        }
        end.connected();
        true
    }

    /// Returns the channels of all managers, in the order of their connections.
    pub(in crate::testing) fn channels(&self) -> Vec<String> {
        self.inner().wires.values().map(|wire| wire.channel.clone()).collect()
    }

    fn notify_disconnect(ends: &[Arc<dyn Peer>], lost: Vec<Lost>) {
        // Managers see the broken connection before their commands fail.
        for end in ends {
            end.disconnected();
        }
        for (requests, parcels) in lost {
            let asked = requests.into_iter().map(|(_, request)| request.recipient());
            let told = parcels.into_iter().map(|(_, parcel)| parcel.recipient());
            for recipient in asked.chain(told).flatten() {
                recipient.answer(Err(NodeError::Disconnected));
            }
        }
    }

    /// Reconnects all managers.
    pub(in crate::testing) fn reconnect(&self) {
        let ends = self.ends();
        for end in &ends {
            end.meets(self.identity());
        }
        let mut inner = self.inner();
        inner.is_down = false;
        inner.connections += 1;
        drop(inner);
        for end in &ends {
            end.connected();
        }
    }

    /// Ends all faults.
    pub(in crate::testing) fn recover(&self) {
        let mut inner = self.inner();
        let was_down = inner.is_down;
        (inner.is_frozen, inner.delay, inner.refusal) = (false, Duration::ZERO, None);
        inner.wires.values().for_each(Wire::wake);
        drop(inner);
        if was_down {
            self.reconnect();
        }
    }

    pub(in crate::testing) fn freeze(&self) {
        self.inner().is_frozen = true;
    }

    pub(in crate::testing) fn slow(&self, delay: Duration) {
        self.inner().delay = delay;
    }

    pub(in crate::testing) fn refuse(&self, answer: &str) {
        self.inner().refusal = Some(answer.into());
    }

    /// Sets the random numbers for the delays of messages.
    pub(in crate::testing) fn jitter(&self, random: Option<Rng>) {
        self.inner().jitter = random;
    }

    /// Restarts the server without its data.
    pub(in crate::testing) fn forget(&self) {
        let was_down = self.inner().is_down;
        self.cut();
        let mut inner = self.inner();
        (inner.is_frozen, inner.delay, inner.refusal) = (false, Duration::ZERO, None);
        inner.state = NodeState::default();
        inner.starts += 1;
        inner.started_at = self.clock.now();
        drop(inner);
        if !was_down {
            self.reconnect();
        }
    }
}

impl Inner {
    /// Returns the reason for a missing connection.
    pub(super) fn trouble(&self, wire: usize) -> Option<NodeError> {
        if self.is_down {
            return Some(down());
        }
        self.wires.get(&wire).filter(|wire| wire.is_cut).map(|_| cut_off())
    }

    /// Returns the error of a manager that gets no answer.
    pub(super) fn silence(&self, wire: usize) -> Option<NodeError> {
        let refusal = || self.refusal.clone().map(|answer| NodeError::Refused(answer.into()));
        self.trouble(wire).or_else(|| if self.is_frozen { Some(NodeError::NoReply) } else { refusal() })
    }
}

/// Error of a server that the test has stopped.
fn down() -> NodeError {
    NodeError::Unreachable("the test has taken it down".into())
}

/// Error of a manager that the test has cut off.
fn cut_off() -> NodeError {
    NodeError::Unreachable("the test has cut the manager off".into())
}
