//! One TCP connection to a name that may have several addresses, of which some may be dead.

use super::endpoint::Endpoint;
use super::progress::{Progress, Step};
use crate::error::NodeError;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Delay after which the next address is tried in parallel. Too small: needless connections to slightly slow servers. Too large: an address
/// that drops packets delays every connection for longer.
///
/// Source: RFC 8305, section 5.
const STAGGER: Duration = Duration::from_millis(250);

/// Maximum number of addresses of one name in an error. Too small: the address that fails is missing. Too large: the error is too long to
/// read.
const MOST_SHOWN: usize = 3;

/// Connects to the first address of `host` that answers. The address belongs to `endpoint`.
///
/// # Errors
/// The error of the last address to fail, or of the look-up.
///
/// Source: RFC 8305, "Happy Eyeballs Version 2", without its rules for answers that come one by one.
pub(super) async fn dial(
    host: &str,
    port: u16,
    endpoint: &Endpoint,
    progress: &Progress,
) -> Result<TcpStream, NodeError> {
    let is_name = host.parse::<IpAddr>().is_err();
    if is_name {
        progress.begins(Step::NameLookUp, endpoint, host);
    }
    let found = addresses(host, port).await.map_err(|error| progress.failed(&error))?;
    if found.is_empty() {
        return Err(progress.failed(&io::Error::other(NO_ADDRESS)));
    }
    let address = endpoint.address();
    if is_name {
        progress.begins(Step::Connect, endpoint, format_args!("{address} ({})", listed(&found)));
    } else {
        progress.begins(Step::Connect, endpoint, address);
    }
    first_of(interleaved(found)).await.map_err(|error| progress.failed(&error))
}

/// Connects to the address `at`, which belongs to the name of `endpoint`.
///
/// # Errors
/// If there is no connection.
pub(super) async fn dial_at(at: SocketAddr, endpoint: &Endpoint, progress: &Progress) -> Result<TcpStream, NodeError> {
    progress.begins(Step::Connect, endpoint, at);
    TcpStream::connect(at).await.map_err(|error| progress.failed(&error))
}

const NO_ADDRESS: &str = "the name has no address";

/// Formats the addresses of a name for a message.
fn listed(found: &[SocketAddr]) -> String {
    let shown: Vec<_> = found.iter().take(MOST_SHOWN).map(SocketAddr::to_string).collect();
    let more = found.len().saturating_sub(MOST_SHOWN);
    let shown = shown.join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

/// Returns the addresses of `host`, in the order in which they came.
///
/// # Errors
/// That of the look-up.
pub(super) async fn addresses(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    #[cfg(test)]
    if let Some(found) = made_up::addresses(host).await {
        return found;
    }
    Ok(lookup_host((host, port)).await?.collect())
}

/// Returns the addresses of both families in turns, each in its previous order: if one family does not work, the second attempt uses the
/// other one.
fn interleaved(found: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let is_v6_first = found.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) = found.into_iter().partition(|address| address.is_ipv6() == is_v6_first);
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let mut turns = Vec::new();
    while let (one, other) = (first.next(), second.next())
        && (one.is_some() || other.is_some())
    {
        turns.extend(one.into_iter().chain(other));
    }
    turns
}

async fn first_of(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    // Dropping the set cancels the remaining attempts.
    let (mut tries, mut failure) = (JoinSet::new(), None);
    for address in addresses {
        tries.spawn(TcpStream::connect(address));
        // It also ends, without a stream, when all attempts have failed.
        if let Ok(Some(stream)) = timeout(STAGGER, first_success(&mut tries, &mut failure)).await {
            return Ok(stream);
        }
    }
    let last = first_success(&mut tries, &mut failure).await;
    last.ok_or_else(|| failure.unwrap_or_else(|| io::Error::other(NO_ADDRESS)))
}

/// Returns the first connection of all attempts; `None` when all have failed, the last one with `failure`.
async fn first_success(
    tries: &mut JoinSet<io::Result<TcpStream>>,
    failure: &mut Option<io::Error>,
) -> Option<TcpStream> {
    while let Some(done) = tries.join_next().await {
        match done.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Ok(stream) => return Some(stream),
            Err(error) => *failure = Some(error),
        }
    }
    None
}

/// Names that tests make up.
#[cfg(test)]
pub(crate) mod made_up {
    use super::{SocketAddr, io};
    use std::collections::HashMap;
    use std::sync::{LazyLock, Mutex};

    /// Addresses of a name, or a failure.
    pub(crate) type Answer = Option<Vec<SocketAddr>>;

    /// The answers for a name, in turn, and the number of answers used.
    type Answers = HashMap<String, (Vec<Answer>, usize)>;

    static NAMES: LazyLock<Mutex<Answers>> = LazyLock::new(Mutex::default);

    /// Sets the next answers for the name `host`. The last one is repeated for all further look-ups. Without any, no look-up ends.
    pub(crate) fn lead(host: &str, answers: impl Into<Vec<Answer>>) {
        NAMES.lock().unwrap().insert(host.to_owned(), (answers.into(), 0));
    }

    /// Returns the number of look-ups of `host` since its answers were set.
    pub(crate) fn looks(host: &str) -> usize {
        NAMES.lock().unwrap()[host].1
    }

    /// Returns the next answer for `host`, if it is made up. Without any answer, it never returns.
    pub(super) async fn addresses(host: &str) -> Option<io::Result<Vec<SocketAddr>>> {
        let (answer, has_answers) = {
            let mut names = NAMES.lock().unwrap();
            let (answers, looks) = names.get_mut(host)?;
            let answer = answers.get(*looks).or(answers.last()).cloned().flatten();
            *looks += 1;
            (answer, !answers.is_empty())
        };
        if !has_answers {
            std::future::pending::<()>().await;
        }
        Some(answer.ok_or_else(|| io::Error::other("the name server does not answer")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn address_families_are_interleaved() {
        let table: [(&[&str], &[&str]); 4] = [
            (&[], &[]),
            (&["10.0.0.1:1", "10.0.0.2:1"], &["10.0.0.1:1", "10.0.0.2:1"]),
            (&["[::1]:1", "[::2]:1", "10.0.0.1:1"], &["[::1]:1", "10.0.0.1:1", "[::2]:1"]),
            (&["10.0.0.1:1", "[::1]:1", "[::2]:1", "[::3]:1"], &["10.0.0.1:1", "[::1]:1", "[::2]:1", "[::3]:1"]),
        ];
        for (found, expected) in table {
            assert_eq!(interleaved(addresses(found)), addresses(expected));
        }
    }

    #[tokio::test]
    async fn refusing_address_is_ignored_if_another_one_accepts() {
        let answering = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = first_of(vec![answering, listener.local_addr().unwrap()]).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), listener.local_addr().unwrap());
        assert_eq!(first_of(vec![answering]).await.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        assert!(first_of(vec![]).await.is_err());
    }

    /// Linux drops the first packet of a connection to a socket whose accept queue is full.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn next_address_is_tried_while_an_unresponsive_one_is_pending() {
        let full = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        full.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
        full.listen(0).unwrap();
        let swallowing = full.local_addr().unwrap().as_socket().unwrap();
        let mut filling = Vec::new();
        while let Ok(connected) = timeout(STAGGER, TcpStream::connect(swallowing)).await {
            filling.push(connected.unwrap());
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = first_of(vec![swallowing, listener.local_addr().unwrap()]).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), listener.local_addr().unwrap());
    }
}
