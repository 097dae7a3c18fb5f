//! Confirmation of a lease by replicas, before any caller relies on it.
//!
//! Scripts cannot wait for replicas. A `WAIT` is therefore sent after each batch that makes a lease. The server answers it when enough
//! replicas have all writes of this connection. If too few replicas confirm in time, the lease is invalid: the replies that prove it become
//! errors, and the caller releases the key.
//!
//! This makes the loss of a lock in a failover less likely, but not impossible: a replica without confirmation may be promoted.

use super::question::{Confirmation, Outgoing, ReplyKind};
use crate::error::NodeError;
use crate::node::environment::Replicas;
use crate::protocol::command::{Answer, Reply};
use crate::text::excerpt;
use redis::{Cmd, Value};

/// Returns `true` if the reply to `outgoing` may prove a lease.
pub(super) const fn concerns(outgoing: &Outgoing) -> bool {
    match outgoing {
        Outgoing::Worded(_, ReplyKind::Question(question)) => question.command.verb.ttl().is_some(),
        Outgoing::Worded(..) => false,
        Outgoing::Extension(_) => true,
    }
}

/// Builds the command that waits for the replicas.
pub(super) fn wait(replicas: Replicas) -> Cmd {
    let mut wait = Cmd::new();
    // Zero would wait without end.
    wait.arg("WAIT").arg(replicas.wanted.get()).arg(replicas.patience.as_millis().max(1).to_string());
    wait
}

/// Reads the reply to this command.
pub(super) fn read(replicas: Replicas, answer: Result<Value, NodeError>) -> Confirmation {
    // Not the error of a command that was not executed: the write remains.
    match answer.map_err(|error| NodeError::UnexpectedReply(error.to_string().into()))? {
        Value::Int(acked) if acked >= i64::from(replicas.wanted.get()) => Ok(()),
        Value::Int(acked) => {
            Err(NodeError::NotReplicated { acked: u32::try_from(acked).unwrap_or(0), wanted: replicas.wanted.get() })
        }
        other => Err(NodeError::UnexpectedReply(excerpt(format_args!("{other:?} to WAIT")).into())),
    }
}

/// Converts `answer` according to the confirmation.
pub(super) fn confirmed(answer: Answer, confirmation: Option<Confirmation>) -> Answer {
    match (&answer, confirmation) {
        (
            Ok(Reply::Granted { .. } | Reply::Entered { .. } | Reply::Extended { .. } | Reply::Found { .. }),
            Some(Err(error)),
        ) => Err(error),
        _ => answer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU32;
    use std::time::Duration;

    const TWO: Replicas = Replicas { wanted: NonZeroU32::new(2).unwrap(), patience: Duration::from_millis(25) };

    #[test]
    fn lease_needs_the_configured_number_of_replica_acks() {
        let few = |acked| Err(NodeError::NotReplicated { acked, wanted: 2 });
        let table =
            [(Value::Int(2), Ok(())), (Value::Int(3), Ok(())), (Value::Int(1), few(1)), (Value::Int(0), few(0))];
        for (answer, expected) in table {
            assert_eq!(read(TWO, Ok(answer.clone())), expected, "{answer:?}");
        }
        assert!(matches!(read(TWO, Ok(Value::Nil)), Err(NodeError::UnexpectedReply(_))));
        let refused = read(TWO, Err(NodeError::Refused("NOPERM".into())));
        assert!(refused.unwrap_err().may_have_been_executed());
    }

    #[test]
    fn only_lease_proofs_need_replica_confirmation() {
        let few = || Some(Err(NodeError::NotReplicated { acked: 0, wanted: 2 }));
        let proofs = [
            Reply::Granted { smaller: false, number: None },
            Reply::Extended { waiters: 0, number: None },
            Reply::Found { waiters: 0, left: Duration::from_secs(1) },
        ];
        for reply in proofs {
            assert!(confirmed(Ok(reply.clone()), few()).is_err(), "{reply:?}");
            assert_eq!(confirmed(Ok(reply.clone()), Some(Ok(()))), Ok(reply.clone()));
            assert_eq!(confirmed(Ok(reply.clone()), None), Ok(reply.clone()));
        }
        for reply in [Reply::Kept, Reply::Taken, Reply::Released, Reply::NotOwner] {
            assert_eq!(confirmed(Ok(reply.clone()), few()), Ok(reply.clone()));
        }
        assert_eq!(confirmed(Err(NodeError::Disconnected), few()), Err(NodeError::Disconnected));
    }

    #[test]
    fn replica_wait_has_a_timeout() {
        let brief = Replicas { patience: Duration::ZERO, ..TWO };
        let sent = |replicas| String::from_utf8(wait(replicas).get_packed_command()).unwrap();
        assert_eq!(sent(brief), "*3\r\n$4\r\nWAIT\r\n$1\r\n2\r\n$1\r\n1\r\n");
        assert!(sent(TWO).ends_with("$2\r\n25\r\n"));
    }
}
