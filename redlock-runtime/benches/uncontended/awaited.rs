//! Lower bound for a client on tokio: the task that wants the lock writes and reads the bytes of a pair on tokio's
//! sockets.
//!
//! It makes no decisions, and has no other task, timer or queue. Our client differs from it by everything that our
//! client does. It differs from [`crate::bare`] by the cost of asynchronous waiting.

use crate::bare::{RELEASE, TOKEN};
use crate::contestants::{Contestant, Pair};
use crate::wire::{Wire, command, lines};
use redlock_tests::Nodes;
use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use tokio::net::TcpStream;
use tokio::sync::Mutex;

/// Sockets of tokio, one for each node.
pub(crate) struct Awaited {
    nodes: Mutex<Vec<Socket>>,
    digest: String,
}

struct Socket {
    stream: TcpStream,
    /// Number of reply lines that were not read yet.
    owed: usize,
}

impl Awaited {
    pub(crate) async fn connect(nodes: &Nodes) -> Self {
        let mut wires: Vec<_> = nodes.urls().iter().map(|url| Wire::connect(url)).collect();
        let digest = wires.iter_mut().map(|wire| wire.load(RELEASE)).last().expect("there is a node");
        let nodes: Vec<_> = wires.into_iter().map(Socket::new).collect();
        for node in &nodes {
            node.stream.writable().await.expect("it is up");
        }
        Self { nodes: Mutex::new(nodes), digest }
    }

    async fn pair_now(&self, key: &str) {
        let queue = format!("{{{key}}}:q");
        let take = command(&["SET", key, TOKEN, "NX", "PX", "30000"]);
        let release = command(&["EVALSHA", &self.digest, "2", key, &queue, TOKEN, "1000"]);
        let mut nodes = self.nodes.lock().await;
        let quorum = nodes.len() / 2 + 1;
        nodes.iter_mut().for_each(|socket| socket.send(&take));
        poll_fn(|context| {
            let settled = nodes.iter_mut().filter_map(|socket| socket.poll_settled(context).is_ready().then_some(()));
            if settled.count() >= quorum { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        nodes.iter_mut().for_each(|socket| socket.send(&release));
    }
}

impl Socket {
    fn new(wire: Wire) -> Self {
        wire.socket.set_nonblocking(true).expect("a socket");
        Self { stream: TcpStream::from_std(wire.socket).expect("a socket"), owed: 0 }
    }

    fn send(&mut self, command: &[u8]) {
        let written = self.stream.try_write(command).expect("it is up");
        assert_eq!(written, command.len(), "a socket has room for a pair");
        self.owed += 1;
    }

    /// Reads until no reply is outstanding.
    fn poll_settled(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut read = [0; 256];
        while self.owed > 0 {
            ready!(self.stream.poll_read_ready(context)).expect("it is up");
            // If the data has not arrived yet, the next iteration waits for it.
            if let Ok(length) = self.stream.try_read(&mut read) {
                self.owed -= lines(&read[..length]);
            }
        }
        Poll::Ready(())
    }
}

impl Contestant for Awaited {
    fn name(&self) -> &'static str {
        "the same bytes on tokio's sockets"
    }

    fn pair<'a>(&'a self, key: &'a str) -> Pair<'a> {
        Box::pin(async move {
            self.pair_now(key).await;
            true
        })
    }

    fn most_tasks(&self) -> usize {
        1
    }
}
