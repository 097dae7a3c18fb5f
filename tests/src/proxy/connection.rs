//! Connections of one proxy, and their end.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::flow::{Flow, relay};
use super::traffic::{Meter, Traffic};

/// State that the proxy shares with its connections.
#[derive(Debug)]
pub(super) struct Shared {
    /// Address to which new connections lead.
    pub(super) target: watch::Sender<SocketAddr>,
    pub(super) requests: watch::Sender<Flow>,
    pub(super) replies: watch::Sender<Flow>,
    pub(super) traffic: watch::Sender<Traffic>,
    cuts: watch::Sender<()>,
    pub(super) forgets: watch::Sender<()>,
    connections: Mutex<Vec<JoinHandle<()>>>,
}

impl Shared {
    pub(super) fn new(target: SocketAddr) -> Self {
        Self {
            target: watch::Sender::new(target),
            requests: watch::Sender::default(),
            replies: watch::Sender::default(),
            traffic: watch::Sender::default(),
            cuts: watch::Sender::default(),
            forgets: watch::Sender::default(),
            connections: Mutex::default(),
        }
    }

    pub(super) async fn accept(self: Arc<Self>, listener: TcpListener) {
        loop {
            // The kernel's limits refused this client, or it is gone already. The next client may be luckier.
            if let Ok((client, _)) = listener.accept().await {
                self.open(client);
            }
        }
    }

    fn open(self: &Arc<Self>, client: TcpStream) {
        // Holds the lock while it starts the task: a cut either sees this connection, or precedes it.
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        connections.retain(|connection| !connection.is_finished());
        let (cut, forgotten) = (self.cuts.subscribe(), self.forgets.subscribe());
        let live = Live::new(Arc::clone(self));
        connections.push(tokio::spawn(async move { live.serve(client, cut, forgotten).await }));
    }

    /// Tells all connections to reset. Returns their tasks, so that the caller can await them.
    pub(super) fn cut(&self) -> Vec<JoinHandle<()>> {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        self.cuts.send_replace(());
        std::mem::take(&mut connections)
    }
}

/// Counts one connection as live while it exists.
struct Live(Arc<Shared>);

impl Live {
    fn new(shared: Arc<Shared>) -> Self {
        shared.traffic.send_modify(|traffic| {
            traffic.accepted += 1;
            traffic.live += 1;
        });
        Self(shared)
    }

    async fn serve(self, mut client: TcpStream, mut cut: watch::Receiver<()>, forgotten: watch::Receiver<()>) {
        let target = *self.0.target.borrow();
        let Ok(mut server) = TcpStream::connect(target).await else {
            return reset(&client);
        };
        let is_orderly = tokio::select! {
            relayed = self.relay(&mut client, &mut server, &forgotten) => relayed.is_ok(),
            _ = cut.changed() => false,
        };
        if !is_orderly {
            reset(&client);
            reset(&server);
        }
        // Drops the sockets first: after the counter has decreased, the connection must be gone.
        drop((client, server));
        drop(self);
    }

    async fn relay(
        &self,
        client: &mut TcpStream,
        server: &mut TcpStream,
        forgotten: &watch::Receiver<()>,
    ) -> std::io::Result<()> {
        // The proxy must not add latency by itself.
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let ((from_client, to_client), (from_server, to_server)) = (client.split(), server.split());
        let (requests, replies) = (self.0.requests.subscribe(), self.0.replies.subscribe());
        let traffic = &self.0.traffic;
        tokio::try_join!(
            relay(from_client, to_server, (requests, forgotten), Meter::requests(traffic)),
            relay(from_server, to_client, (replies, forgotten), Meter::replies(traffic)),
        )?;
        Ok(())
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.0.traffic.send_modify(|traffic| traffic.live -= 1);
    }
}

/// Makes closing the socket send RST, as the kernel of a crashed peer would.
fn reset(socket: &TcpStream) {
    // If the option fails, the socket closes normally: the peer sees the end of the stream instead.
    let _ = socket.set_zero_linger();
}
