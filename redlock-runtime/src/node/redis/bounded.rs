//! Bounds what a server may send: one answer, and how much is read at a time.
//!
//! 1. All bytes are counted that have come since the last answer was complete. A longer answer than [`LONGEST_ANSWER`] breaks
//!    the connection, before memory is spent on it.
//! 2. After [`AT_A_TIME`] bytes in a row, whoever reads lets other tasks go on.
//!
//! The first bytes are kept: they show whether the server speaks the Redis protocol.

use super::stream::Stream;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The longest answer in bytes. The longest sensible one is that to `INFO`, of some 10 KB, and 64 short ones can be complete
/// together. Smaller, a server that says much of itself would be of no use; larger, one that is hostile or confused costs
/// more memory.
const LONGEST_ANSWER: usize = 1024 * 1024;
/// How much is read in a row, in bytes. Smaller, more turns of the scheduler under load; larger, a flood on one connection
/// keeps the others waiting.
const AT_A_TIME: usize = 16 * 1024;
/// Most bytes that are kept of the first read. Too small: another protocol is not recognised. Too large: memory for each connection.
const MOST_FIRST: usize = 32;

/// What came on a connection since its last complete answer.
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
    /// An answer is complete, or something that was said unasked.
    pub(super) fn is_complete(&self) {
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// Answers of up to `longest` bytes may come, on a connection that is made for one of them.
    pub(super) fn allow(&self, longest: usize) {
        self.longest.store(longest, Ordering::Relaxed);
    }

    /// Returns the first bytes that have come, 32 at most.
    pub(super) fn first(&self) -> &[u8] {
        self.first.get().map(|first| &**first).unwrap_or_default()
    }

    /// Returns the number of bytes so far. Two equal numbers mean that the server was silent in between.
    pub(super) fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }

    /// So many bytes have come.
    ///
    /// # Errors
    /// When they are more than an answer may have.
    fn add(&self, bytes: usize) -> io::Result<()> {
        let received = self.bytes.load(Ordering::Relaxed).saturating_add(bytes);
        self.bytes.store(received, Ordering::Relaxed);
        // The task that drives the connection is the only one that writes this.
        self.total.store(self.total().wrapping_add(bytes), Ordering::Relaxed);
        self.check()
    }

    /// Says whether the connection was cut because of an answer that was too long. It needs to be asked because the client
    /// crate keeps no errors of streams.
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

/// A stream that ends with an error when it brings too much.
pub(super) struct Bounded<S> {
    stream: S,
    received: Arc<Received>,
    /// How many bytes were read in a row.
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
            // It is set here alone.
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

    /// Both ends of a stream.
    fn pair(received: Arc<Received>) -> (Bounded<impl Stream>, impl Stream) {
        let (ours, theirs) = duplex(4 * LONGEST_ANSWER);
        (Bounded::new(ours, received), theirs)
    }

    async fn send(server: &mut (impl Stream + ?Sized), bytes: usize) {
        server.write_all(&vec![b'x'; bytes]).await.unwrap();
    }

    #[tokio::test]
    async fn one_answer_is_bounded_and_many_are_not() {
        let received = Arc::<Received>::default();
        let (mut stream, mut server) = pair(Arc::clone(&received));
        for _ in 0..3 {
            send(&mut server, LONGEST_ANSWER).await;
            stream.read_exact(&mut vec![0; LONGEST_ANSWER]).await.unwrap();
            received.check().unwrap();
            received.is_complete();
        }
        send(&mut server, LONGEST_ANSWER + 1).await;
        let error = stream.read_exact(&mut vec![0; LONGEST_ANSWER + 1]).await.unwrap_err();
        assert!(error.to_string().contains("1 MB") && received.check().is_err(), "{error}");
    }

    #[tokio::test]
    async fn whoever_reads_a_flood_lets_others_go_on() {
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
