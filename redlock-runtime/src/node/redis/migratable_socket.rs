//! A socket that can move from one runtime to another.
//!
//! The runtime with which a tokio socket is registered wakes its tasks. If another runtime drives the connection, the socket must be
//! registered there. The task that hands a connection over therefore sets its new [`DriverSlot`]. The next task that reads or writes
//! registers the socket with its own runtime.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;

/// The runtime that drives a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Driver {
    /// The runtime of the library's thread, on which every connection is made.
    Background,
    /// The runtime that the manager was built on.
    Host,
}

/// The side that a socket belongs to. Only the task that drives the connection may change it.
#[derive(Debug, Default)]
pub(super) struct DriverSlot(AtomicBool);

impl DriverSlot {
    pub(super) fn side(&self) -> Driver {
        // Only the task that drives the connection reads and writes this value, under a mutex.
        if self.0.load(Ordering::Relaxed) { Driver::Host } else { Driver::Background }
    }

    pub(super) fn change(&self, side: Driver) {
        self.0.store(side == Driver::Host, Ordering::Relaxed);
    }
}

pub(super) enum Transport {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

impl Transport {
    /// Returns the transport, registered with the runtime of the present task.
    fn registered_here(self) -> io::Result<Self> {
        Ok(match self {
            Self::Tcp(stream) => Self::Tcp(TcpStream::from_std(stream.into_std()?)?),
            #[cfg(unix)]
            Self::Unix(stream) => Self::Unix(UnixStream::from_std(stream.into_std()?)?),
        })
    }
}

/// A socket with the place that it belongs to.
pub(super) struct MigratableSocket {
    /// `None` after a failed move, which breaks the connection.
    transport: Option<Transport>,
    /// The side at which the socket is registered.
    side: Driver,
    place: Arc<DriverSlot>,
}

impl MigratableSocket {
    /// Wraps a socket that was made on the library's thread.
    pub(super) const fn new(transport: Transport, place: Arc<DriverSlot>) -> Self {
        Self { transport: Some(transport), side: Driver::Background, place }
    }

    /// Returns the socket, registered at its current place.
    fn settled(&mut self) -> io::Result<&mut Transport> {
        let side = self.place.side();
        if self.side != side {
            self.transport = self.transport.take().map(Transport::registered_here).transpose()?;
            self.side = side;
        }
        self.transport.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

/// Calls a method of either kind of stream.
macro_rules! poll {
    ($self:ident.$method:ident($($argument:expr),*)) => {
        match $self.settled()? {
            Transport::Tcp(stream) => Pin::new(stream).$method($($argument),*),
            #[cfg(unix)]
            Transport::Unix(stream) => Pin::new(stream).$method($($argument),*),
        }
    };
}

impl AsyncRead for MigratableSocket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        poll!(self.poll_read(cx, buffer))
    }
}

impl AsyncWrite for MigratableSocket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        poll!(self.poll_write(cx, bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        poll!(self.poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        poll!(self.poll_shutdown(cx))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::runtime::{Builder, Runtime};

    fn runtime() -> Runtime {
        Builder::new_current_thread().enable_all().build().unwrap()
    }

    /// Writes one byte and waits for its echo, on `runtime`.
    fn echo(runtime: &Runtime, socket: &mut MigratableSocket) {
        runtime.block_on(async {
            let echoed = async {
                socket.write_all(b"x").await.unwrap();
                socket.read_exact(&mut [0]).await.unwrap();
            };
            tokio::time::timeout(Duration::from_secs(20), echoed).await.expect("the echo wakes the task");
        });
    }

    #[test]
    fn socket_migrates_between_runtimes_even_after_one_has_ended() {
        let (server, background, host) = (runtime(), runtime(), runtime());
        let listener = server.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let _server = std::thread::spawn(move || {
            server.block_on(async {
                let (mut peer, _) = listener.accept().await.unwrap();
                let (mut read, mut write) = peer.split();
                tokio::io::copy(&mut read, &mut write).await
            })
        });
        let place = Arc::<DriverSlot>::default();
        let transport = Transport::Tcp(background.block_on(TcpStream::connect(address)).unwrap());
        let mut socket = MigratableSocket::new(transport, Arc::clone(&place));
        for _ in 0..3 {
            for (side, runtime) in [(Driver::Background, &background), (Driver::Host, &host)] {
                place.change(side);
                echo(runtime, &mut socket);
                echo(runtime, &mut socket);
            }
        }
        drop(host);
        place.change(Driver::Background);
        echo(&background, &mut socket);
    }
}
