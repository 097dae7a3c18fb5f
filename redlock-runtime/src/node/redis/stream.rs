//! What bytes can be read from and written to, whatever is below.

use tokio::io::{AsyncRead, AsyncWrite};

pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}
