//! Lower bound for any client: one thread writes and reads the bytes of a pair on blocking sockets.
//!
//! It makes no decisions, and waits for a fixed majority of the nodes instead of the first replies. Its time is that of
//! the kernel and the servers, so no client can be faster with these commands.

use crate::contestants::{Contestant, Pair};
use crate::wire::{Wire, command};
use redlock_tests::Nodes;
use std::sync::{Mutex, PoisonError};

pub(crate) const RELEASE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end";
/// Token of the same length as ours.
pub(crate) const TOKEN: &str = "0123456789abcdef-0123456789abcdefghijklm-0123456789abcdefghi";

/// Blocking sockets, one for each node.
pub(crate) struct Bare {
    nodes: Mutex<Vec<Wire>>,
    digest: String,
}

impl Bare {
    pub(crate) fn connect(nodes: &Nodes) -> Self {
        let mut wires: Vec<_> = nodes.urls().iter().map(|url| Wire::connect(url)).collect();
        let digests = wires.iter_mut().map(|wire| wire.load(RELEASE));
        let digest = digests.last().expect("there is a node");
        Self { nodes: Mutex::new(wires), digest }
    }

    fn pair_now(&self, key: &str) {
        let queue = format!("{{{key}}}:q");
        let take = command(&["SET", key, TOKEN, "NX", "PX", "30000"]);
        let release = command(&["EVALSHA", &self.digest, "2", key, &queue, TOKEN, "1000"]);
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let quorum = nodes.len() / 2 + 1;
        nodes.iter_mut().for_each(|wire| wire.send(&take));
        nodes.iter_mut().take(quorum).for_each(Wire::settle);
        nodes.iter_mut().for_each(|wire| wire.send(&release));
        // Rotate the nodes, so that the replies of all of them are read.
        nodes.rotate_left(1);
    }
}

impl Contestant for Bare {
    fn name(&self) -> &'static str {
        "the same bytes on bare sockets"
    }

    fn pair<'a>(&'a self, key: &'a str) -> Pair<'a> {
        Box::pin(async move {
            self.pair_now(key);
            true
        })
    }

    fn most_tasks(&self) -> usize {
        1
    }
}
