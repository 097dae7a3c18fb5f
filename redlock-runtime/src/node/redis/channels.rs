//! The channels of a server on which managers are notified.

use crate::error::NodeError;
use crate::protocol::wakeup::{CHANNEL, channel};
use std::borrow::Cow;

/// Names of the channels at one server: one channel for each manager of one namespace.
///
/// 1. The names begin with `redlock:`, the namespace and a colon: `redlock:shop:` for the namespace `shop`, and `redlock::` without one. A
///    user with the pattern `&redlock:shop:*` can therefore reach no manager of another namespace.
/// 2. A cluster forwards each message to all members. A manager subscribes at each member, because only subscribers at the publishing
///    member are included in its number of receivers. The names at a member therefore contain the id of this member. Otherwise a manager
///    would receive each message once from every member, in no particular order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Channels {
    /// Start of the names; the id of the manager follows.
    prefix: Box<str>,
    /// Id of the member. Empty at a server that is not a member.
    member: Box<str>,
    /// Prefix of the keys in the namespace.
    namespace: Box<str>,
    /// `true` if scripts subtract pattern subscribers from the receivers of a message.
    have_patterns: bool,
}

/// Expression in the scripts that is false, and becomes true in those for [`Channels::with_patterns`].
pub(super) const NO_PATTERNS: &str = "not 'patterns'";

impl Channels {
    /// Returns the channels at a single server that is a node, for the namespace with this prefix.
    pub(super) fn of_server(namespace: &str) -> Self {
        Self { prefix: prefix(namespace).into(), member: "".into(), namespace: namespace.into(), have_patterns: false }
    }

    /// Returns the channels at the member of a cluster with this `id`, for the namespace with this prefix.
    ///
    /// # Errors
    /// [`NodeError::UnexpectedReply`] for a text that is not an id: it becomes a part of the scripts.
    pub(super) fn of_member(namespace: &str, id: &str) -> Result<Self, NodeError> {
        if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) {
            return Err(NodeError::UnexpectedReply("no id to CLUSTER MYID".into()));
        }
        let prefix = [&prefix(namespace), id, ":"].concat().into();
        Ok(Self { prefix, member: id.into(), namespace: namespace.into(), have_patterns: false })
    }

    /// Returns these channels for a server where clients subscribe to patterns that match them.
    pub(super) fn with_patterns(&self) -> Self {
        Self { have_patterns: true, ..self.clone() }
    }

    /// Returns the prefix of the keys in their namespace.
    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns `true` if they belong to a member, and no other member delivers their messages.
    pub(super) fn are_own(&self) -> bool {
        !self.member.is_empty()
    }

    /// Returns `true` if they may belong to the member with this `id`, if its id is known.
    pub(super) fn may_belong_to(&self, id: &str) -> bool {
        !self.are_own() || id.is_empty() || *self.member == *id
    }

    /// Returns the channel of the manager with this id.
    pub(super) fn of(&self, manager: &str) -> String {
        [&self.prefix, manager].concat()
    }

    /// Returns the `source` of a script, changed to publish on these channels instead of channels without a namespace. The prefix needs no
    /// quoting in Lua: see [`namespace::prefix`](crate::lock::namespace::prefix).
    pub(super) fn in_script(&self, source: &'static str) -> Cow<'static, str> {
        let quoted = format!("'{}'", channel(""));
        if !source.contains(&quoted) || *self.prefix == *channel("") && !self.have_patterns {
            return Cow::Borrowed(source);
        }
        let source = source.replace(&quoted, &format!("'{}'", self.prefix));
        if self.have_patterns { source.replace(NO_PATTERNS, "true").into() } else { source.into() }
    }
}

/// Returns the start of the names of all channels of the namespace with this prefix.
fn prefix(namespace: &str) -> String {
    let separator = if namespace.is_empty() { ":" } else { "" };
    [CHANNEL, namespace, separator].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channel_names_contain_namespace_and_member() {
        let member = |namespace| Channels::of_member(namespace, "0af3").unwrap();
        let table = [
            (Channels::of_server(""), "redlock::m7", "publish('redlock::' .. id)"),
            (Channels::of_server("shop:"), "redlock:shop:m7", "publish('redlock:shop:' .. id)"),
            (member(""), "redlock::0af3:m7", "publish('redlock::0af3:' .. id)"),
            (member("shop:"), "redlock:shop:0af3:m7", "publish('redlock:shop:0af3:' .. id)"),
        ];
        for (channels, channel, script) in table {
            assert_eq!(channels.of("m7"), channel);
            assert_eq!(channels.in_script("publish('redlock::' .. id)"), script);
            assert!(matches!(channels.in_script("nothing"), Cow::Borrowed("nothing")));
        }
    }

    #[test]
    fn publish_scripts_subtract_pattern_subscribers_only_if_configured() {
        let source = "publish('redlock::' .. id, not 'patterns')";
        let shop = Channels::of_server("shop:");
        assert_eq!(Channels::of_server("").with_patterns().in_script(source), "publish('redlock::' .. id, true)");
        assert_eq!(shop.with_patterns().in_script(source), "publish('redlock:shop:' .. id, true)");
        assert_eq!(shop.in_script(source), "publish('redlock:shop:' .. id, not 'patterns')");
    }

    #[test]
    fn reset_cluster_member_has_new_channels() {
        let ours = Channels::of_member("", "0af3").unwrap();
        assert!(ours.are_own() && ours.may_belong_to("0af3") && ours.may_belong_to("") && !ours.may_belong_to("0af4"));
        let of_all = Channels::of_server("");
        assert!(!of_all.are_own() && of_all.may_belong_to("0af3"));
    }

    #[test]
    fn invalid_member_id_is_not_inserted_into_a_script() {
        for id in ["", "a'b", "a b", "a:b", "a\\b"] {
            assert!(matches!(Channels::of_member("", id), Err(NodeError::UnexpectedReply(_))), "{id:?}");
        }
    }
}
