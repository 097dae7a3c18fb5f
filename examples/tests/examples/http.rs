//! Minimal HTTP client.

use redlock_tests::PATIENCE;
use serde_json::Value;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Response of the service. A body that is not JSON is stored as a JSON string.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<u64>,
    pub(crate) body: Value,
}

/// Sends a request and returns the open connection. Dropping the connection simulates a client that disconnects.
pub(crate) async fn send(address: SocketAddr, method: &str, path: &str, body: &str) -> TcpStream {
    send_as(None, address, method, path, body).await
}

/// Sends a request with an optional bearer token.
pub(crate) async fn send_as(
    token: Option<&str>,
    address: SocketAddr,
    method: &str,
    path: &str,
    body: &str,
) -> TcpStream {
    let authorization = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{authorization}\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// Reads the response to its end.
pub(crate) async fn receive(mut stream: TcpStream) -> Reply {
    let mut text = String::new();
    let reading = timeout(PATIENCE, stream.read_to_string(&mut text)).await;
    reading.expect("the service answers").unwrap();
    parse(&text).unwrap_or_else(|| panic!("no answer of ours: {text:?}"))
}

fn parse(text: &str) -> Option<Reply> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    let retry_after = head.lines().find_map(|line| line.strip_prefix("retry-after: ")?.parse().ok());
    let body = serde_json::from_str(body).unwrap_or_else(|_| Value::String(body.to_owned()));
    Some(Reply { status, retry_after, body })
}
