//! Limits on the data from a server: the length of one reply, and the bytes read at a time.
//!
//! 1. The bytes since the last complete reply are counted. A reply longer than [`LONGEST_ANSWER`] breaks the connection, before memory is
//!    spent on it.
//! 2. After [`AT_A_TIME`] bytes in a row, the reader yields to other tasks.
//!
//! The first bytes are kept: they show if the server uses the Redis protocol.

use super::stream::Stream;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Maximum length of a reply in bytes. The longest legitimate one is the reply to `INFO`, with some 10 KB, and 64 short ones can be
/// complete together. Too small: a server with a long `INFO` is unusable. Too large: a hostile or confused server costs more memory.
const LONGEST_ANSWER: usize = 1024 * 1024;
/// Maximum number of bytes read in a row. Too small: more turns of the scheduler under load. Too large: a flood on one connection delays
/// the others.
const AT_A_TIME: usize = 16 * 1024;
/// Maximum number of bytes that are kept from the first read. Too small: another protocol is not recognised. Too large: memory for each
/// connection.
const MOST_FIRST: usize = 32;

/// Received bytes of a connection since its last complete reply.
#[derive(Debug)]
pub(super) struct Received {
    bytes: AtomicUsize,
    longest: AtomicUsize,
    first: OnceLock<Box<[u8]>>,
    /// Number of all bytes so far, which wraps around.
    total: AtomicUsize,
}

impl Default for Received {
    fn default() -> Self {
        let longest = AtomicUsize::new(LONGEST_ANSWER);
        Self { bytes: AtomicUsize::new(0), longest, first: OnceLock::new(), total: AtomicUsize::new(0) }
    }
}

impl Received {
    /// Records that a reply or a push message is complete.
    pub(super) fn on_complete(&self) {
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// Allows replies of up to `longest` bytes, on a connection that is made for one of them.
    pub(super) fn allow(&self, longest: usize) {
        self.longest.store(longest, Ordering::Relaxed);
    }

    /// Returns the first received bytes, 32 at most.
    pub(super) fn first(&self) -> &[u8] {
        self.first.get().map(|first| &**first).unwrap_or_default()
    }

    /// Returns the number of bytes so far. Two equal numbers mean that the server was silent in between.
    pub(super) fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }

    /// Adds received `bytes`.
    ///
    /// # Errors
    /// If they exceed the maximum length of a reply.
    pub(super) fn add(&self, bytes: usize) -> io::Result<()> {
        let received = self.bytes.load(Ordering::Relaxed).saturating_add(bytes);
        self.bytes.store(received, Ordering::Relaxed);
        // Only the task that drives the connection writes this value.
        self.total.store(self.total().wrapping_add(bytes), Ordering::Relaxed);
        self.check()
    }

    /// Returns an error if the connection was cut because of a reply that was too long. The client crate does not keep the errors of
    /// streams, so this check is needed.
    pub(super) fn check(&self) -> io::Result<()> {
        let longest = self.longest.load(Ordering::Relaxed);
        if self.bytes.load(Ordering::Relaxed) <= longest {
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!(
                "the server has sent more than {} MB as one answer or message: check that it is a Redis server",
                longest / LONGEST_ANSWER
            ),
        ))
    }
}

/// A stream that fails after too many bytes.
pub(super) struct Bounded<S> {
    stream: S,
    received: Arc<Received>,
    /// Number of bytes read in a row.
    in_a_row: usize,
    has_begun: bool,
}

impl<S> Bounded<S> {
    pub(super) const fn new(stream: S, received: Arc<Received>) -> Self {
        Self { stream, received, in_a_row: 0, has_begun: false }
    }
}

impl<S: Stream> AsyncRead for Bounded<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.in_a_row >= AT_A_TIME {
            self.in_a_row = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let Poll::Ready(read) = Pin::new(&mut self.stream).poll_read(cx, buffer) else {
            self.in_a_row = 0;
            return Poll::Pending;
        };
        let bytes = buffer.filled().len().saturating_sub(before);
        self.in_a_row += bytes;
        if !self.has_begun && bytes > 0 {
            self.has_begun = true;
            let read = buffer.filled().get(before..).unwrap_or_default();
            // It is set only here.
            let _ = self.received.first.set(read.iter().take(MOST_FIRST).copied().collect());
        }
        Poll::Ready(read.and_then(|()| self.received.add(bytes)))
    }
}

impl<S: Stream> AsyncWrite for Bounded<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{Future, poll_fn};
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    /// Returns both ends of a stream.
    fn pair(received: Arc<Received>) -> (Bounded<impl Stream>, impl Stream) {
        let (ours, theirs) = duplex(4 * LONGEST_ANSWER);
        (Bounded::new(ours, received), theirs)
    }

    async fn send(server: &mut (impl Stream + ?Sized), bytes: usize) {
        server.write_all(&vec![b'x'; bytes]).await.unwrap();
    }

    #[tokio::test]
    async fn single_reply_is_bounded_and_total_of_replies_is_not() {
        let received = Arc::<Received>::default();
        let (mut stream, mut server) = pair(Arc::clone(&received));
        for _ in 0..3 {
            send(&mut server, LONGEST_ANSWER).await;
            stream.read_exact(&mut vec![0; LONGEST_ANSWER]).await.unwrap();
            received.check().unwrap();
            received.on_complete();
        }
        send(&mut server, LONGEST_ANSWER + 1).await;
        let error = stream.read_exact(&mut vec![0; LONGEST_ANSWER + 1]).await.unwrap_err();
        assert!(error.to_string().contains("1 MB") && received.check().is_err(), "{error}");
    }

    #[tokio::test]
    async fn reading_a_flood_of_replies_yields_to_other_tasks() {
        let (mut stream, mut server) = pair(Arc::default());
        send(&mut server, 3 * AT_A_TIME).await;
        let mut turns = 0;
        let mut reading = Box::pin(async {
            let mut chunk = [0; 1024];
            for _ in 0..3 * AT_A_TIME / chunk.len() {
                stream.read_exact(&mut chunk).await?;
            }
            io::Result::Ok(())
        });
        poll_fn(|cx| {
            turns += 1;
            reading.as_mut().poll(cx)
        })
        .await
        .unwrap();
        assert!(turns >= 3, "{turns} turns");
    }
}
