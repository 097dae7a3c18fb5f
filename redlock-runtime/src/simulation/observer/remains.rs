//! Checks that nothing is left at the servers at the end of a run.

use super::Observer;
use crate::lock::OwnerToken;
use crate::simulation::actor::key;
use crate::simulation::records::Promise;

impl Observer {
    /// Returns the tokens at the servers under a key, and under its admission lock.
    fn tokens_at_servers(&self, index: usize) -> Vec<(usize, OwnerToken, bool)> {
        [key(index), key(index).admission()].iter().flat_map(|name| self.network.leftovers(name)).collect()
    }

    /// Checks that no token of a live manager is left at the servers at the end of a run. Returns the haunted keys.
    ///
    /// A key is haunted if a server executed a command after the release of its token. The connection of that command
    /// had already ended, so the token is not noticed before the next call waits there.
    pub(in crate::simulation) fn leftovers(&self) -> Vec<usize> {
        let mut haunted = Vec::new();
        for index in self.profile.names() {
            for (server, token, is_ghost) in self.tokens_at_servers(index) {
                let records = self.records();
                if records.detached.contains(&token) || self.stand_ins(&records.holders).contains(&token) {
                    continue;
                }
                drop(records);
                if is_ghost {
                    haunted.push(index);
                    continue;
                }
                let name = self.network.trace.name(token);
                self.broken(Promise::Clean, format!("{name} still stands under {} at node {}", key(index), server + 1));
            }
        }
        haunted.dedup();
        haunted
    }

    /// Checks, after all calls, that no token is left that has never held the lock. Only a lock that was used may be
    /// retained for a later call.
    pub(in crate::simulation) fn unused(&self) {
        for index in self.profile.names() {
            for (server, token, is_ghost) in self.tokens_at_servers(index) {
                let records = self.records();
                let is_known = records.entered_tokens.contains(&token) || records.detached.contains(&token);
                let is_meant = is_ghost || is_known || self.stand_ins(&records.holders).contains(&token);
                drop(records);
                if !is_meant {
                    let name = self.network.trace.name(token);
                    let text = format!("nobody ever used {name}, and it stands at node {}", server + 1);
                    self.broken(Promise::Clean, text);
                }
            }
        }
    }

    /// Checks that no token at all is left after the queues have expired.
    pub(in crate::simulation) fn remains(&self) {
        for index in self.profile.names() {
            let under = [key(index), key(index).admission()];
            if let Some((server, _)) = under.iter().flat_map(|name| self.network.remains(name)).next() {
                self.broken(
                    Promise::Clean,
                    format!("something still stands under {} at node {}", key(index), server + 1),
                );
            }
        }
    }
}
