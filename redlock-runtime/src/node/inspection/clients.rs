//! Connected processes of a server, from the names in `CLIENT LIST`.

use crate::text::excerpt;
use std::collections::{HashMap, HashSet};

/// Prefix of the names of our connections. The id of the manager follows.
const NAME: &str = "redlock-";

/// Returns the name of a connection: `redlock-<id>;order-service;host7;1234`. It has no spaces or other characters that a server refuses in
/// names, see `manager::label`.
pub(crate) fn client_name(manager: &str, label: &str) -> String {
    if label.is_empty() { [NAME, manager].concat() } else { [NAME, manager, ";", label].concat() }
}

/// Connected process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Client {
    pub(super) label: Option<Box<str>>,
    pub(super) address: Box<str>,
}

/// Connected processes by manager id.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    named: HashMap<Box<str>, Client>,
    /// Managers that subscribe to their channel, even if their connections have no name.
    listening: HashSet<String>,
}

impl Clients {
    /// Parses a `CLIENT LIST`. Any client may choose the name of a manager, so no lock depends on this.
    pub(crate) fn parse(list: &str) -> Self {
        Self { named: list.lines().filter_map(client).collect(), listening: HashSet::new() }
    }

    /// Sets the managers that subscribe to their channel.
    pub(crate) fn listening(self, managers: impl Iterator<Item = String>) -> Self {
        Self { listening: managers.collect(), ..self }
    }

    /// Returns `true` if the manager is connected, by name or by its channel.
    pub(super) fn is_connected(&self, manager: &str) -> bool {
        self.named.contains_key(manager) || self.listening.contains(manager)
    }

    pub(super) fn find(&self, manager: &str) -> Option<&Client> {
        self.named.get(manager)
    }
}

/// Returns the manager and its process from one line.
fn client(line: &str) -> Option<(Box<str>, Client)> {
    let field = |name: &str| line.split(' ').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
    let name = field("name")?.strip_prefix(NAME)?;
    let (manager, label) =
        name.split_once(';').map_or((name, None), |(manager, label)| (manager, Some(excerpt(label).into())));
    Some((manager.into(), Client { label, address: excerpt(field("addr").unwrap_or_default()).into() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn managers_are_found_in_the_client_list_by_name() {
        let list = "id=3 addr=10.0.0.9:51234 laddr=10.0.0.1:6379 fd=8 name=redlock-0198ab;shop;host7;12 age=1 cmd=ping\n\
                    id=4 addr=/run/redis.sock:0 fd=9 name=redlock-0198cd db=0\n\
                    id=5 addr=10.0.0.9:51236 fd=10 name= db=0 user=name=redlock-0198ef\n\
                    \n\
                    id=6 fd=11 name=redlock-0198ab2;\n";
        let clients = Clients::parse(list);
        let client =
            |label: Option<&str>, address: &str| Client { label: label.map(Into::into), address: address.into() };
        let table = [
            ("0198ab", Some(client(Some("shop;host7;12"), "10.0.0.9:51234"))),
            ("0198cd", Some(client(None, "/run/redis.sock:0"))),
            ("0198ab2", Some(client(Some(""), ""))),
            ("0198ef", None),
            ("", None),
        ];
        for (manager, expected) in table {
            assert_eq!(clients.find(manager), expected.as_ref(), "{manager}");
        }
    }

    #[test]
    fn client_name_round_trips_through_the_list() {
        for (label, expected) in [("shop;host7;12", Some("shop;host7;12")), ("", None)] {
            let clients = Clients::parse(&format!("id=1 addr=a:1 name={} db=0", client_name("0198ab", label)));
            assert_eq!(clients.find("0198ab").and_then(|client| client.label.as_deref()), expected);
        }
    }
}
