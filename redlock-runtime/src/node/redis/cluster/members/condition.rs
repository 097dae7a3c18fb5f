//! Health of a cluster: status, coverage of the slots, and counters of all members.

use super::{Member, Members};
use crate::error::NodeError;
use crate::node::Node;
use crate::node::redis::cluster::slot_map::{SlotMap, ranges};
use crate::node::status::Status;
use crate::stats::NodeStats;
use std::sync::{Arc, PoisonError};

impl Members {
    /// Returns the status of the cluster: `Up` if every key has a connected member.
    pub(in super::super) fn status(&self) -> Status {
        let (routes, map, trouble) =
            self.read(|state| (Arc::clone(&state.routes), state.map.clone(), state.trouble.clone()));
        let Some(map) = map else { return trouble.map_or_else(|| self.starting(), Status::Down) };
        let status: Vec<_> = routes.members().map(|(_, member)| member.status()).collect();
        let is_down = |status: &Status| matches!(status, Status::Down(_));
        if let Some(starting) = status.iter().find(|status| matches!(status, Status::Starting(_))) {
            return starting.clone();
        }
        let down = status.into_iter().find(is_down);
        down.unwrap_or_else(|| gap(&map).map_or(Status::Up, Status::Down))
    }

    /// Returns the reason why no member serves `slot`.
    pub(in super::super) fn absence(&self, slot: u16) -> Status {
        match self.read(|state| (state.map.is_some(), state.trouble.clone())) {
            (false, None) => self.starting(),
            (false, Some(trouble)) => Status::Down(trouble),
            (true, _) => Status::Down(unserved(&slot.to_string())),
        }
    }

    /// Returns the status before a member has reported the first map.
    fn starting(&self) -> Status {
        Status::Starting(self.progress.under_way())
    }

    /// Returns `true` if the cluster is healthy: it has a map and reports no fault, every slot has a member, and all members are connected.
    pub(in super::super) fn is_healthy(&self) -> bool {
        self.status() == Status::Up && self.read(|state| state.is_well)
    }

    /// Returns the sum of the counters of all members, including those that were disconnected.
    pub(in super::super) fn stats(&self) -> NodeStats {
        let known: Vec<_> = self.read(|state| state.known.values().map(|known| Arc::clone(&known.member)).collect());
        let gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (node, is_up) = (self.seeds.label().into(), self.status() == Status::Up);
        let mut stats = NodeStats { node, is_up, ..gone };
        for member in known {
            stats.add(&member.stats());
        }
        stats
    }

    /// Adds the counters of members that are disconnected.
    pub(super) fn count(&self, gone: &[Member]) {
        let mut stats = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        for member in gone {
            stats.add(&member.stats());
        }
    }
}

/// Returns an error if some slots have no member.
pub(in super::super) fn gap(map: &SlotMap) -> Option<NodeError> {
    let gaps = map.gaps();
    (!gaps.is_empty()).then(|| unserved(&ranges(&gaps)))
}

/// Returns the error that no member serves `slots`.
fn unserved(slots: &str) -> NodeError {
    NodeError::Refused(format!("CLUSTERDOWN no member of the cluster serves the slots {slots}").into())
}
