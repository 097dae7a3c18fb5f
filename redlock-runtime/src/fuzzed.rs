//! Entry points of the fuzz targets in `fuzz/`. Compiled for the fuzz targets and for the tests, which run the initial seeds.
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

/// Password that no message may contain.
const PASSWORD: &str = "s3cr3t";

/// Parses the URL of a node. Its password must not appear in any message.
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

/// Compares the parts of an accepted URL with the result of the client crate.
pub fn url_parts(text: &str) {
    wire::url_parts(text);
}

/// Returns `true` if the password is in its place in the URL, and nowhere else.
fn has_password(url: &str) -> bool {
    // The text of a path, as in `unix:/run/redis://`, is not a scheme.
    let is_scheme =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    let Some((_, rest)) = url.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_there = authority.split_once(':').is_some_and(|(_, rest)| rest.starts_with(&format!("{PASSWORD}@")));
    is_there && url.matches(PASSWORD).count() == 1
}

/// Decodes the reply of a server to a command, from the bytes of its connection.
pub fn answer(verb: u8, bytes: &[u8]) {
    wire::answer(verb, bytes);
}

/// Decodes a message that any client may have published on the channel of a manager.
pub fn wakeup(payload: &[u8]) {
    wire::wakeup(payload);
}

/// Parses a detached lock and a token. Parsing reverses formatting.
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

/// In-memory node next to a real server.
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

    /// Initial inputs of the fuzzer of one target.
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
    fn fuzz_seeds_are_parsed_as_intended() {
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
    fn fuzz_seeds_for_nodes_get_equal_replies() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let server = runtime.block_on(RedisServer::start());
        let mut nodes = Nodes::start(&server.url());
        for seed in seeds("nodes") {
            nodes.run(&seed);
        }
    }
}
