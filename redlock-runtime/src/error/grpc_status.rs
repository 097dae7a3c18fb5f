//! A lock error as the status of a tonic service.
//!
//! When to try again is a `google.rpc.RetryInfo` in the details of the status, as clients of every language look for it. It
//! is four messages of one or two fields each, which are written here by hand: a crate that knows them all brings a
//! protobuf library and its macros into every build.

use super::lock_error::LockError;
use super::outward::{Outward, seconds_to_retry};
use std::sync::Arc;
use tonic::{Code, Status};

/// With the feature `tonic`, a method of a service that returns `Result<_, Status>` can carry every lock error.
///
/// | error | code |
/// |---|---|
/// | [`Contended`](LockError::Contended), [`TimedOut`](LockError::TimedOut) | `ABORTED` |
/// | [`WindowTaken`](LockError::WindowTaken) | `ALREADY_EXISTS` |
/// | [`InvalidKey`](LockError::InvalidKey) | `INVALID_ARGUMENT` |
/// | [`NoQuorum`](LockError::NoQuorum), [`Closed`](LockError::Closed) | `UNAVAILABLE` |
/// | all others | `INTERNAL` |
///
/// The details hold a `google.rpc.RetryInfo` where it is known when to try again ([`LockError::retry_after`]), in whole
/// seconds, and one of 2 s for any other [`NoQuorum`](LockError::NoQuorum). The message is fit for strangers: it names neither key nor node. What the service is to blame for goes to the log
/// instead, as an event of the level *error*; and the error is the [`source`](std::error::Error::source) of the status,
/// which stays in the process.
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
        let outward = Outward::of(&error);
        let (code, message) = (code(outward), outward.message());
        let mut status = match seconds_to_retry(&error, outward) {
            Some(seconds) => Self::with_details(code, message, retry_details(code, message, seconds).into()),
            None => Self::new(code, message),
        };
        status.set_source(Arc::new(error));
        status
    }
}

const fn code(outward: Outward) -> Code {
    match outward {
        Outward::Busy => Code::Aborted,
        Outward::Done => Code::AlreadyExists,
        Outward::Invalid => Code::InvalidArgument,
        Outward::Unavailable => Code::Unavailable,
        Outward::Interrupted | Outward::Broken => Code::Internal,
    }
}

/// A `google.rpc.Status` with `code` and `message` once more, and a `google.rpc.RetryInfo` as its one detail.
///
/// Source: `google/rpc/status.proto`, `google/rpc/error_details.proto`, and the encoding of Protocol Buffers.
fn retry_details(code: Code, message: &str, seconds: u64) -> Vec<u8> {
    let delay = number(1, seconds);
    let retry_info = bytes(1, &delay);
    let any = [bytes(1, b"type.googleapis.com/google.rpc.RetryInfo"), bytes(2, &retry_info)].concat();
    [number(1, code as u64), bytes(2, message.as_bytes()), bytes(3, &any)].concat()
}

/// A field that is a number.
fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

/// A field that is text or another message.
fn bytes(field: u64, value: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

/// Seven bits in each byte, the lowest first, and the highest bit set in all but the last.
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
    use super::super::outward::tests::{assert_fit_for_strangers, every_kind};
    use super::*;
    use std::error::Error;

    #[test]
    fn each_error_has_its_status() {
        for (error, outward, seconds) in every_kind() {
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
            assert_eq!((status.code(), code(outward)), (documented, documented), "{text}");
            assert_eq!(status.details().is_empty(), seconds.is_none(), "{text}");
            assert_eq!(status.source().map(ToString::to_string), Some(text));
            assert!(!status.message().is_empty() && status.metadata().is_empty());
            assert_fit_for_strangers(status.message());
        }
    }

    /// What a protobuf library writes; `examples/grpc_service` reads the details with one.
    #[test]
    fn the_details_are_those_of_the_protocol() {
        let mut expected = b"\x08\x0a\x12\x04busy\x1a\x31\x0a\x28type.googleapis.com/google.rpc.RetryInfo".to_vec();
        expected.extend(b"\x12\x05\x0a\x03\x08\xac\x02");
        assert_eq!(retry_details(Code::Aborted, "busy", 300), expected);
    }

    #[test]
    fn numbers_have_as_many_bytes_as_they_need() {
        let table: [(u64, &[u8]); 5] =
            [(0, &[0]), (127, &[0x7f]), (128, &[0x80, 1]), (300, &[0xac, 2]), (1 << 14, &[0x80, 0x80, 1])];
        for (value, expected) in table {
            assert_eq!(varint(value), expected, "{value}");
        }
        assert_eq!(varint(u64::MAX).len(), 10);
    }
}
