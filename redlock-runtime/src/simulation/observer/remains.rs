//! Nothing is left at the servers when all is over.

use super::Observer;
use crate::lock::OwnerToken;
use crate::simulation::actor::key;
use crate::simulation::records::Promise;

impl Observer {
    /// What stands under a key, and in its admission lock.
    fn at_the_servers(&self, index: usize) -> Vec<(usize, OwnerToken, bool)> {
        [key(index), key(index).admission()].iter().flat_map(|name| self.network.leftovers(name)).collect()
    }

    /// Looks whether anything is left at the servers, when all is over. Returns the keys that are haunted: there a
    /// command was executed after the release of its token, because the connection that brought it had ended before.
    /// Nobody hears of that until the next one waits there.
    pub(in crate::simulation) fn leftovers(&self) -> Vec<usize> {
        let mut haunted = Vec::new();
        for index in self.profile.names() {
            for (server, token, is_ghost) in self.at_the_servers(index) {
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

    /// Looks whether anything is left of a token that no call ever had the lock by, when all calls are over: only what was
    /// used may be kept for a next call.
    pub(in crate::simulation) fn unused(&self) {
        for index in self.profile.names() {
            for (server, token, is_ghost) in self.at_the_servers(index) {
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

    /// Looks whether anything is left by whomever, when even the queues have expired.
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
