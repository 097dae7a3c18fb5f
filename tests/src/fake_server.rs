//! A fake server that answers every command with the same bytes.

use crate::port;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A server on loopback that answers every command with the same bytes, for example a hostile error. Runs on the tokio runtime it
/// was started on, until it is dropped.
#[derive(Debug)]
pub struct FakeServer {
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl FakeServer {
    /// Starts a server that sends `answer`, which is RESP, for each command.
    pub async fn answering(answer: impl Into<Arc<[u8]>>) -> Self {
        let listener = TcpListener::bind(port::loopback(0)).await.expect("a free port on loopback");
        let address = listener.local_addr().expect("the listener has an address");
        let answer = answer.into();
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(serve(client, Arc::clone(&answer)));
            }
        });
        Self { address, accepting }
    }

    /// Where clients connect.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(mut client: TcpStream, answer: Arc<[u8]>) {
    let (requests, mut answers) = client.split();
    let mut requests = BufReader::new(requests);
    while skip_command(&mut requests).await.is_some() {
        if answers.write_all(&answer).await.is_err() {
            return;
        }
    }
}

/// Reads an array of bulk strings. `None` if the client has closed the connection.
async fn skip_command(requests: &mut (impl AsyncBufReadExt + Unpin)) -> Option<()> {
    for _ in 0..length(requests, '*').await? {
        let argument = length(requests, '$').await?;
        requests.read_exact(&mut vec![0; argument + "\r\n".len()]).await.ok()?;
    }
    Some(())
}

async fn length(requests: &mut (impl AsyncBufReadExt + Unpin), kind: char) -> Option<usize> {
    let mut line = String::new();
    requests.read_line(&mut line).await.ok()?;
    line.trim_end().strip_prefix(kind)?.parse().ok()
}
