//! A lock error as the status of a tonic service.
//!
//! The details of the status contain a `google.rpc.RetryInfo`, which clients of every language understand. Its four messages have
//! one or two fields each, so this module encodes them itself. A protobuf crate would add its macros to every build.

use super::lock_error::LockError;
use super::public_error::{PublicError, seconds_to_retry};
use std::sync::Arc;
use tonic::{Code, Status};

/// Conversion for methods that return `Result<_, Status>`. Needs the feature `tonic`.
///
/// | error | code |
/// |---|---|
/// | [`Contended`](LockError::Contended), [`TimedOut`](LockError::TimedOut), [`TooManyWaiting`](LockError::TooManyWaiting) | `ABORTED` |
/// | [`WindowTaken`](LockError::WindowTaken) | `ALREADY_EXISTS` |
/// | [`InvalidKey`](LockError::InvalidKey) | `INVALID_ARGUMENT` |
/// | [`NoQuorum`](LockError::NoQuorum), [`Closed`](LockError::Closed) | `UNAVAILABLE` |
/// | all others | `INTERNAL` |
///
/// - The details contain a `google.rpc.RetryInfo` in whole seconds if the time of a retry is known ([`LockError::retry_after`]). It
///   is at most 5 s for `ABORTED`, and 2 s for a [`NoQuorum`](LockError::NoQuorum) without a known time. `ALREADY_EXISTS` has none.
/// - The message contains no key and no node address, so it can be sent to any client.
/// - All errors are logged by the event `request_failed`, except `ABORTED` and `ALREADY_EXISTS`.
/// - The error is the [`source`](std::error::Error::source) of the status. It is not sent to the client.
///
/// # Examples
/// ```
/// use redlock_runtime::distributed_lock;
/// use tonic::{Request, Response, Status};
///
/// #[distributed_lock(key("seat:{seat}", seat = request.get_ref()), wait = "2s")]
/// async fn reserve(request: Request<u32>) -> Result<Response<()>, Status> {
///     Ok(Response::new(()))
/// }
/// ```
impl From<LockError> for Status {
    fn from(error: LockError) -> Self {
        let public_error = PublicError::of(&error);
        let (code, message) = (code(public_error), public_error.message());
        let mut status = match seconds_to_retry(&error, public_error) {
            Some(seconds) => Self::with_details(code, message, retry_details(code, message, seconds).into()),
            None => Self::new(code, message),
        };
        status.set_source(Arc::new(error));
        status
    }
}

const fn code(public_error: PublicError) -> Code {
    match public_error {
        PublicError::Busy => Code::Aborted,
        PublicError::Done => Code::AlreadyExists,
        PublicError::Invalid => Code::InvalidArgument,
        PublicError::Unavailable => Code::Unavailable,
        PublicError::Interrupted | PublicError::Broken => Code::Internal,
    }
}

/// Encoded `google.rpc.Status` with `code`, `message`, and a `google.rpc.RetryInfo` as its only detail.
///
/// Source: `google/rpc/status.proto`, `google/rpc/error_details.proto`, and the encoding of Protocol Buffers.
fn retry_details(code: Code, message: &str, seconds: u64) -> Vec<u8> {
    let delay = number(1, seconds);
    let retry_info = bytes(1, &delay);
    let any = [bytes(1, b"type.googleapis.com/google.rpc.RetryInfo"), bytes(2, &retry_info)].concat();
    [number(1, code as u64), bytes(2, message.as_bytes()), bytes(3, &any)].concat()
}

/// Encoded field with a number.
fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

/// Encoded field with text or with another message.
fn bytes(field: u64, value: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

/// Encoded number: seven bits per byte, lowest bits first. The highest bit is set in all bytes but the last.
fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            out.push(low);
            return out;
        }
        out.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::super::public_error::tests::{assert_no_internals, every_kind};
    use super::*;
    use std::error::Error;

    #[test]
    fn each_error_has_its_status() {
        for (error, public_error, seconds) in every_kind() {
            let (text, documented) = (
                error.to_string(),
                match &error {
                    LockError::Contended { .. } | LockError::TimedOut { .. } | LockError::TooManyWaiting { .. } => {
                        Code::Aborted
                    }
                    LockError::WindowTaken { .. } => Code::AlreadyExists,
                    LockError::InvalidKey { .. } => Code::InvalidArgument,
                    LockError::NoQuorum { .. } | LockError::Closed => Code::Unavailable,
                    _ => Code::Internal,
                },
            );
            let status = Status::from(error);
            assert_eq!((status.code(), code(public_error)), (documented, documented), "{text}");
            assert_eq!(status.details().is_empty(), seconds.is_none(), "{text}");
            assert_eq!(status.source().map(ToString::to_string), Some(text));
            assert!(!status.message().is_empty() && status.metadata().is_empty());
            assert_no_internals(status.message());
        }
    }

    /// The expected bytes are those of a protobuf library. A test of `examples/grpc_service` decodes the details with such a
    /// library.
    #[test]
    fn retry_details_are_encoded_as_protobuf() {
        let mut expected = b"\x08\x0a\x12\x04busy\x1a\x31\x0a\x28type.googleapis.com/google.rpc.RetryInfo".to_vec();
        expected.extend(b"\x12\x05\x0a\x03\x08\xac\x02");
        assert_eq!(retry_details(Code::Aborted, "busy", 300), expected);
    }

    #[test]
    fn varint_uses_the_minimal_number_of_bytes() {
        let table: [(u64, &[u8]); 5] =
            [(0, &[0]), (127, &[0x7f]), (128, &[0x80, 1]), (300, &[0xac, 2]), (1 << 14, &[0x80, 0x80, 1])];
        for (value, expected) in table {
            assert_eq!(varint(value), expected, "{value}");
        }
        assert_eq!(varint(u64::MAX).len(), 10);
    }
}
