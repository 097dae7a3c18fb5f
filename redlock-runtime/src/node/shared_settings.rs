//! The settings on which all processes of the same locks must agree, as one line of text.
//!
//! Each process leaves its line in the data of its servers, and compares it with the lines of other processes (`node::redis::settings`). A
//! line is `n=3 q=2 d=0 restart=abstain ttl=60000 nodes=1f2e3d4c`:
//!
//! 1. `n`, `q`, `d` and `restart` are the number of nodes, the quorum, and the settings `tolerated_data_loss` and `after_restart`.
//! 2. `ttl` is the setting `max_ttl` in milliseconds. It is missing for a single node that is trusted after a restart, where no abstention
//!    depends on it.
//! 3. `nodes` is a digest of the markers in the data of all nodes ([`Marker`]). Addresses would differ for one server. It is missing until
//!    the markers of all nodes are known and have existed for 90 s, and for nodes without a marker.
//!
//! A setting that one of two lines lacks is not compared.
//!
//! [`Marker`]: crate::node::server_identity::Marker

use crate::protocol::quorum::Quorum;
use crate::request::AfterRestart;
use crate::text::excerpt;
use hmac_sha256::Hash as Sha256;
use std::fmt::Write;
use std::time::Duration;

/// The names of the settings in a line, and in messages.
const NAMES: [(&str, &str); 6] = [
    ("n", "number of nodes"),
    ("q", "quorum"),
    ("d", "tolerated_data_loss"),
    ("restart", "after_restart"),
    ("ttl", "max_ttl"),
    ("nodes", "list of nodes"),
];

/// Number of bytes of the digest of the nodes. Too small: different lists look equal. Too large: messages are long.
const DIGEST: usize = 4;

/// The settings of a manager on which other managers must agree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharedSettings {
    pub(crate) quorum: Quorum,
    pub(crate) tolerated_data_loss: usize,
    pub(crate) after_restart: AfterRestart,
    pub(crate) max_ttl: Duration,
}

impl SharedSettings {
    /// Returns the line of these settings. `markers` are the ids of the markers of all nodes, if all are known.
    pub(crate) fn line(&self, markers: Option<Vec<Box<str>>>) -> String {
        let Quorum { nodes, needed } = self.quorum;
        let is_trusted = self.after_restart == AfterRestart::Trust;
        let restart = if is_trusted { "trust" } else { "abstain" };
        let mut line = format!("n={nodes} q={needed} d={} restart={restart}", self.tolerated_data_loss);
        if nodes > 1 || !is_trusted {
            // Writing to memory does not fail.
            let _ = write!(line, " ttl={}", self.max_ttl.as_millis());
        }
        if let Some(mut markers) = markers {
            markers.sort_unstable();
            line.push_str(" nodes=");
            for byte in Sha256::hash(markers.join(" ").as_bytes()).iter().take(DIGEST) {
                let _ = write!(line, "{byte:02x}");
            }
        }
        line
    }
}

/// The settings of other processes, if they differ from those of this process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OtherSettings {
    /// Names of the settings that differ: `quorum, max_ttl`.
    pub(crate) names: Box<str>,
    /// Line of the other processes, from a server: an excerpt without unsafe characters.
    pub(crate) theirs: Box<str>,
    /// Line of this process.
    pub(crate) ours: Box<str>,
}

impl OtherSettings {
    /// Compares the line of other processes, as a server returned it, with the line `ours`. Returns `None` if all settings in both lines
    /// are equal.
    pub(crate) fn compare(theirs: &[u8], ours: &str) -> Option<Self> {
        let theirs = String::from_utf8_lossy(theirs);
        let differs = |name| value(&theirs, name).zip(value(ours, name)).is_some_and(|(theirs, ours)| theirs != ours);
        let names: Vec<_> = NAMES.into_iter().filter(|(name, _)| differs(name)).map(|(_, name)| name).collect();
        let other = || Self { names: names.join(", ").into(), theirs: excerpt(&theirs).into(), ours: ours.into() };
        (!names.is_empty()).then(other)
    }
}

/// Returns the value of a setting in a line.
fn value<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    line.split(' ').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(nodes: usize) -> SharedSettings {
        let after_restart = if nodes == 1 { AfterRestart::Trust } else { AfterRestart::Abstain };
        let max_ttl = Duration::from_secs(60);
        SharedSettings { quorum: Quorum::of(nodes, 0), tolerated_data_loss: 0, after_restart, max_ttl }
    }

    fn markers<const N: usize>(ids: [&str; N]) -> Vec<Box<str>> {
        ids.map(Into::into).into()
    }

    #[test]
    fn settings_line_has_every_known_setting() {
        assert_eq!(settings(1).line(None), "n=1 q=1 d=0 restart=trust");
        assert_eq!(settings(3).line(None), "n=3 q=2 d=0 restart=abstain ttl=60000");
        let careful = SharedSettings { after_restart: AfterRestart::Abstain, ..settings(1) };
        assert_eq!(careful.line(None), "n=1 q=1 d=0 restart=abstain ttl=60000");
        let line = settings(3).line(Some(markers(["a", "b", "c"])));
        assert!(line.starts_with("n=3 q=2 d=0 restart=abstain ttl=60000 nodes=") && line.len() == 52, "{line}");
        assert_eq!(settings(3).line(Some(markers(["c", "a", "b"]))), line, "in any order");
    }

    #[test]
    fn different_settings_are_listed_by_name() {
        let ours = settings(3).line(Some(markers(["a", "b", "c"])));
        let longer = SharedSettings { max_ttl: Duration::from_secs(61), ..settings(3) };
        let forgetful = SharedSettings { tolerated_data_loss: 1, quorum: Quorum::of(3, 1), ..settings(3) };
        let table = [
            (ours.clone(), None),
            (settings(3).line(None), None),
            (settings(3).line(Some(markers(["a", "b", "d"]))), Some("list of nodes")),
            (longer.line(None), Some("max_ttl")),
            (settings(1).line(None), Some("number of nodes, quorum, after_restart")),
            (settings(4).line(None), Some("number of nodes, quorum")),
            (forgetful.line(None), Some("quorum, tolerated_data_loss")),
            (String::new(), None),
            ("something else".to_owned(), None),
        ];
        for (theirs, expected) in table {
            let other = OtherSettings::compare(theirs.as_bytes(), &ours);
            assert_eq!(other.as_ref().map(|other| &*other.names), expected, "{theirs}");
        }
    }

    #[test]
    fn foreign_settings_text_is_escaped_and_shortened() {
        let hostile = [b"n=9\nERROR made up \x1b[2J\xff ".as_slice(), &[b'x'; 1000]].concat();
        let other = OtherSettings::compare(&hostile, &settings(3).line(None)).unwrap();
        assert!(other.theirs.chars().count() < 400 && other.theirs.contains(r"\u000aERROR"), "{other:?}");
        assert!(!other.theirs.contains(['\n', '\u{1b}']), "{other:?}");
    }
}
