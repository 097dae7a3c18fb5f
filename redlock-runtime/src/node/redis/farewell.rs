//! What a server says that hangs up on its clients, such as that it has too many of them.

use super::endpoint::Endpoint;
use super::reach::reach;
use super::socket::Socket;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::ready;
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::timeout;

/// How long a server is listened to that has hung up before. Less, and one that is far away is not understood; more, and the
/// next try to connect comes later.
const PATIENCE: Duration = Duration::from_millis(200);
/// The longest answer that is of interest, in bytes.
const LONGEST: usize = 256;

/// The error that the server gives to a client that asks nothing, if it gives one. Whoever asks something may find that the
/// connection is gone before the answer is read.
pub(super) async fn farewell(endpoint: &Endpoint) -> Option<String> {
    let said = async { first_bytes(&mut reach(endpoint).await.ok()?.socket).await.ok() };
    let said = timeout(PATIENCE, said).await.ok()??;
    error_in(&said)
}

/// The error at the beginning of what a server said.
fn error_in(said: &[u8]) -> Option<String> {
    let line = str::from_utf8(said).ok()?.strip_prefix('-')?.lines().next()?;
    Some(line.trim().to_owned())
}

async fn first_bytes(socket: &mut Socket) -> io::Result<Vec<u8>> {
    let mut bytes = [0; LONGEST];
    poll_fn(|cx| {
        let mut buffer = ReadBuf::new(&mut bytes);
        ready!(Pin::new(&mut *socket).poll_read(cx, &mut buffer))?;
        Ok(buffer.filled().to_vec()).into()
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_error_is_a_reason() {
        let table: [(&[u8], Option<&str>); 5] = [
            (b"-ERR max number of clients reached\r\n", Some("ERR max number of clients reached")),
            (b"-DENIED protected", Some("DENIED protected")),
            (b"+OK\r\n", None),
            (b"\xff\x00", None),
            (b"", None),
        ];
        for (said, expected) in table {
            assert_eq!(error_in(said).as_deref(), expected);
        }
    }
}
