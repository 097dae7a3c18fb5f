//! One direction of one connection: copies bytes from one socket to the other, according to the present order.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::traffic::Meter;

/// Treatment of the bytes of one direction.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Flow {
    /// Deliver at once.
    #[default]
    Pass,
    /// Deliver each byte this long after its arrival.
    Delay(Duration),
    /// Drop everything, including the end of the stream: the other side notices nothing.
    Drop,
    /// Keep until the next order.
    Hold,
}

impl Flow {
    fn latency(self) -> Duration {
        match self {
            Self::Delay(latency) => latency,
            Self::Pass | Self::Drop | Self::Hold => Duration::ZERO,
        }
    }
}

/// Bytes that arrived together. Empty at the end of the stream.
struct Chunk {
    due: Instant,
    bytes: Vec<u8>,
}

/// Moves bytes until `from` has ended and all bytes are delivered or dropped.
///
/// Reading continues under every order, so that a delay adds latency and does not reduce throughput.
/// From the first change of `forgotten` on, the connection drops everything.
pub(super) async fn relay(
    from: ReadHalf<'_>,
    to: WriteHalf<'_>,
    (orders, forgotten): (watch::Receiver<Flow>, &watch::Receiver<()>),
    meter: Meter<'_>,
) -> std::io::Result<()> {
    let (queue, pending) = mpsc::unbounded_channel();
    tokio::try_join!(receive(from, queue, orders.clone(), meter), deliver(pending, to, (orders, forgotten), meter))?;
    Ok(())
}

async fn receive(
    mut from: ReadHalf<'_>,
    queue: mpsc::UnboundedSender<Chunk>,
    orders: watch::Receiver<Flow>,
    meter: Meter<'_>,
) -> std::io::Result<()> {
    loop {
        let mut bytes = Vec::with_capacity(16 * 1024);
        let count = from.read_buf(&mut bytes).await?;
        let due = Instant::now() + orders.borrow().latency();
        meter.received(count);
        if queue.send(Chunk { due, bytes }).is_err() || count == 0 {
            return Ok(());
        }
    }
}

async fn deliver(
    mut pending: mpsc::UnboundedReceiver<Chunk>,
    mut to: WriteHalf<'_>,
    (mut orders, forgotten): (watch::Receiver<Flow>, &watch::Receiver<()>),
    meter: Meter<'_>,
) -> std::io::Result<()> {
    while let Some(Chunk { due, bytes }) = pending.recv().await {
        sleep_until(due).await;
        // Cannot fail: every connection keeps the sender of its orders alive.
        let Ok(flow) = orders.wait_for(|flow| *flow != Flow::Hold).await.map(|flow| *flow) else {
            return Ok(());
        };
        // This is the only code that reads the receiver, so it never misses a change.
        if flow == Flow::Drop || forgotten.has_changed().unwrap_or(false) {
            meter.dropped(bytes.len());
        } else if bytes.is_empty() {
            to.shutdown().await?;
        } else {
            to.write_all(&bytes).await?;
            meter.forwarded(bytes.len());
        }
    }
    Ok(())
}
