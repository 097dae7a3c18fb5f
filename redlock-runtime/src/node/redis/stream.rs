//! A stream of bytes in both directions, over any transport.

use tokio::io::{AsyncRead, AsyncWrite};

pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}
