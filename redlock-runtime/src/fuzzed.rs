//! What the fuzz targets call (`fuzz/`). Only they are built with this module, and the tests, which give it what fuzzers begin with.
#![allow(
    missing_debug_implementations,
    missing_docs,
    clippy::must_use_candidate,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a panic is what a fuzzer finds"
)]

use crate::DetachedLock;
use crate::lock::{LockKey, OwnerToken};
use crate::manager::label_of;
use crate::node::differential::Compared;
use crate::node::redis::{NodeConfig, fuzzed as wire};

/// A password that no message may repeat.
const PASSWORD: &str = "s3cr3t";

/// The URL of a node is taken apart, and its password is told to nobody.
pub fn url(text: &str) {
    let node = NodeConfig::new(text);
    let told = match label_of(&node) {
        Ok(label) => label,
        Err(error) => format!("{error} {error:?}"),
    };
    if has_password(text) {
        assert!(!told.contains(PASSWORD), "{told}");
        assert!(!format!("{node:?}").contains(PASSWORD), "{node:?}");
    }
}

/// A URL that is accepted is read as the client crate reads it.
pub fn url_parts(text: &str) {
    wire::url_parts(text);
}

/// Whether the password stands where a URL has it, and nowhere else.
fn has_password(url: &str) -> bool {
    // A path, as in `unix:/run/redis://`, is no scheme.
    let is_scheme =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    let Some((_, rest)) = url.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_there = authority.split_once(':').is_some_and(|(_, rest)| rest.starts_with(&format!("{PASSWORD}@")));
    is_there && url.matches(PASSWORD).count() == 1
}

/// What a server has answered to a command, as bytes from its connection.
pub fn answer(verb: u8, bytes: &[u8]) {
    wire::answer(verb, bytes);
}

/// What somebody has published on the channel of a manager.
pub fn wakeup(payload: &[u8]) {
    wire::wakeup(payload);
}

/// A lock that was sent along with a job, and a token: what is read is what was written.
pub fn detached(text: &str) {
    if let Ok(lock) = text.parse::<DetachedLock>() {
        assert_eq!(lock.to_string().parse::<DetachedLock>().unwrap(), lock);
    }
    if let Some(token) = OwnerToken::parse(text) {
        assert_eq!(token.as_str(), text);
        let _ = (token.time(), token.created_at(), token.reads_claims());
    }
    let _ = LockKey::from(text).check();
}

/// The node in memory and a server.
pub struct Nodes(Compared);

impl Nodes {
    pub fn start(url: &str) -> Self {
        Self(Compared::start(url))
    }

    pub fn run(&mut self, bytes: &[u8]) {
        self.0.run(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::command::Wakeup;
    use redlock_tests::RedisServer;
    use std::fs;
    use std::path::Path;

    /// What the fuzzer of a target begins with.
    fn seeds(target: &str) -> Vec<Vec<u8>> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds").join(target);
        let seeds: Vec<_> = fs::read_dir(folder).unwrap().map(|file| fs::read(file.unwrap().path()).unwrap()).collect();
        assert!(!seeds.is_empty(), "{target}");
        seeds
    }

    fn texts(target: &str) -> Vec<String> {
        seeds(target).into_iter().map(|seed| String::from_utf8(seed).unwrap()).collect()
    }

    #[test]
    fn what_fuzzers_begin_with_is_read_as_it_was_meant() {
        for text in texts("urls") {
            url(&text);
            url_parts(&text);
        }
        for text in texts("detached") {
            assert!(text.parse::<DetachedLock>().is_ok() || OwnerToken::parse(&text).is_some(), "{text}");
            detached(&text);
        }
        for text in texts("wakeups") {
            assert!(Wakeup::parse(&text).is_some(), "{text}");
            wakeup(text.as_bytes());
        }
        for seed in seeds("answers") {
            answer(seed[0], &seed[1..]);
        }
    }

    #[test]
    fn what_the_fuzzer_of_nodes_begins_with_is_answered_alike() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let server = runtime.block_on(RedisServer::start());
        let mut nodes = Nodes::start(&server.url());
        for seed in seeds("nodes") {
            nodes.run(&seed);
        }
    }
}
