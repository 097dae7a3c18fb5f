//! Constructors of errors: every variant has a constructor that returns it.

use redlock_runtime::testing::errors;
use redlock_runtime::{LockError, LossCause, NodeError};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Returns the number of the variant. A new variant does not compile here, and needs a constructor.
fn kind(error: &LockError) -> usize {
    match error {
        LockError::Contended { .. } => 0,
        LockError::TimedOut { .. } => 1,
        LockError::WindowTaken { .. } => 2,
        LockError::NoQuorum { .. } => 3,
        LockError::Refused { .. } => 4,
        LockError::Lost { .. } => 5,
        LockError::WouldDeadlock { .. } => 6,
        LockError::InvalidKey { .. } => 7,
        LockError::Configuration { .. } => 8,
        LockError::NotInstalled => 9,
        LockError::Closed => 10,
        other => panic!("there is no constructor for {other:?}"),
    }
}

#[test]
fn every_error_can_be_constructed() {
    let all = [
        errors::contended("order:7", Some(SECOND)),
        errors::timed_out("order:7", SECOND, None),
        errors::window_taken("order:7", 19_843, SECOND),
        errors::no_quorum("order:7"),
        errors::refused("order:7", "NOPERM this user has no permissions"),
        errors::lost("order:7", SECOND, LossCause::Taken),
        errors::would_deadlock("order:7"),
        errors::invalid_key("order_id"),
        errors::configuration("the ttl is too long"),
        errors::not_installed(),
        errors::closed(),
    ];
    for (number, error) in all.iter().enumerate() {
        assert_eq!(kind(error), number, "{error}");
        assert_eq!(error.key().map(redlock_runtime::LockKey::as_str), (number < 7).then_some("order:7"), "{error}");
    }
    assert_eq!(
        all.map(|error| error.is_transient()),
        [true, true, true, true, false, false, false, false, false, false, false]
    );
}

#[test]
fn constructed_errors_keep_their_data() {
    assert_eq!(errors::contended("order:7", Some(SECOND)).retry_after(), Some(SECOND));
    let token = errors::token();
    for error in [errors::contended("order:7", None), errors::timed_out("order:7", SECOND, None)] {
        assert_eq!(errors::with_holder(error, token).holder(), Some(&token));
    }
    let rest = [("a:1", NodeError::RecentlyRestarted(SECOND)), ("b:1", NodeError::Disconnected)];
    let error = errors::no_quorum_of(None, 3, rest);
    assert_eq!((error.key(), error.retry_after()), (None, Some(SECOND)));
    let causes = errors::not_renewed([("a:1", NodeError::Disconnected)]);
    let lost = errors::lost("order:7", SECOND, causes).to_string();
    assert!(lost.contains("a:1: the connection broke"), "{lost}");
    let order = errors::wrong_order("a", "b").to_string();
    assert!(order.contains("in the opposite order") && order.contains("errors.rs"), "{order}");
    let invalid = errors::invalid_key("order_id").to_string();
    assert!(invalid.contains("is empty") && invalid.contains("`{order_id}`"), "{invalid}");
    let many = errors::refused_of(Some("order:7".into()), 1, [("a:1", NodeError::Replica)]).to_string();
    assert!(many.contains("is a replica"), "{many}");
}
