//! The channels of a server on which managers are woken.

use crate::error::NodeError;
use crate::protocol::wakeup::CHANNEL;
use std::borrow::Cow;

/// One channel for each manager, at one server.
///
/// A cluster passes on to all its members what is published at one of them, and a manager listens at each, because only who
/// listens at the member that publishes counts as a receiver. So the names of the channels of a member say whose they are: else
/// each wake-up would be read once from every member, and which of the copies is the first one, nobody could say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Channels {
    /// What their names begin with; the id of the manager follows.
    prefix: Cow<'static, str>,
    /// The id of the member; empty where they are those of a server.
    member: Box<str>,
}

impl Channels {
    /// Those of a server that is a node by itself.
    pub(super) fn of_server() -> Self {
        Self { prefix: Cow::Borrowed(CHANNEL), member: "".into() }
    }

    /// Those of the member of a cluster that is called `id` there.
    ///
    /// # Errors
    /// [`NodeError::Unintelligible`] when that is no id: it becomes a part of the scripts.
    pub(super) fn of_member(id: &str) -> Result<Self, NodeError> {
        if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) {
            return Err(NodeError::Unintelligible("no id to CLUSTER MYID".into()));
        }
        Ok(Self { prefix: [CHANNEL, id, ":"].concat().into(), member: id.into() })
    }

    /// Whether they are of a member, and nobody else brings what is published on them.
    pub(super) fn are_own(&self) -> bool {
        !self.member.is_empty()
    }

    /// Whether they may be those of the member called `id`, if that is known.
    pub(super) fn are_of(&self, id: &str) -> bool {
        !self.are_own() || id.is_empty() || *self.member == *id
    }

    /// That of a manager, whose id is this text.
    pub(super) fn of(&self, manager: &str) -> String {
        [&self.prefix, manager].concat()
    }

    /// The `source` of a script that publishes on those of a server, made to publish on these.
    pub(super) fn in_script(&self, source: &'static str) -> Cow<'static, str> {
        let quoted = format!("'{CHANNEL}'");
        if self.prefix == CHANNEL || !source.contains(&quoted) {
            return Cow::Borrowed(source);
        }
        source.replace(&quoted, &format!("'{}'", self.prefix)).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_of_a_member_say_whose_they_are() {
        let table = [
            (Channels::of_server(), "redlock:m7", "publish('redlock:' .. id)"),
            (Channels::of_member("0af3").unwrap(), "redlock:0af3:m7", "publish('redlock:0af3:' .. id)"),
        ];
        for (channels, channel, script) in table {
            assert_eq!(channels.of("m7"), channel);
            assert_eq!(channels.in_script("publish('redlock:' .. id)"), script);
            assert!(matches!(channels.in_script("nothing"), Cow::Borrowed("nothing")));
        }
    }

    #[test]
    fn a_member_that_was_reset_has_others() {
        let ours = Channels::of_member("0af3").unwrap();
        assert!(ours.are_own() && ours.are_of("0af3") && ours.are_of("") && !ours.are_of("0af4"));
        let of_all = Channels::of_server();
        assert!(!of_all.are_own() && of_all.are_of("0af3"));
    }

    #[test]
    fn what_is_no_id_does_not_become_a_part_of_a_script() {
        for id in ["", "a'b", "a b", "a:b", "a\\b"] {
            assert!(matches!(Channels::of_member(id), Err(NodeError::Unintelligible(_))), "{id:?}");
        }
    }
}
