//! Waiting for a state that only polling can observe.

use std::fmt::Debug;
use std::time::Duration;

/// Interval between two probes. It is shorter than every lease in the tests, and long enough to leave the processor to the servers.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Calls `probe` until it returns `Ok`, and returns that value.
///
/// `Err` contains the observed state, for the message. The probe is usually an `async ||` closure.
///
/// # Panics
/// After `deadline`, with `what` and the last state, even if a single probe takes longer than the deadline.
///
/// # Examples
/// ```no_run
/// # async fn example(node: redlock_tests::RedisServer) {
/// use redlock_tests::{PATIENCE, eventually};
///
/// let token = eventually(PATIENCE, "the key is taken", async || {
///     node.inspect().get("order:1").await.ok_or("no key")
/// })
/// .await;
/// # drop(token);
/// # }
/// ```
pub async fn eventually<T, S, F>(deadline: Duration, what: &str, mut probe: impl FnMut() -> F) -> T
where
    S: Debug,
    F: Future<Output = Result<T, S>>,
{
    let mut seen = None;
    let asking = async {
        loop {
            match probe().await {
                Ok(value) => return value,
                Err(state) => seen = Some(state),
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    let outcome = tokio::time::timeout(deadline, asking).await;
    outcome.unwrap_or_else(|_| match seen {
        Some(state) => panic!("not within {deadline:?}: {what}; last seen: {state:?}"),
        None => panic!("not within {deadline:?}: {what}; the first probe never answered"),
    })
}

/// Calls `probe` until it returns `expected`.
///
/// # Panics
/// After `deadline`, with `what`, the last answer and the expected one.
pub async fn eventually_eq<T, F>(deadline: Duration, what: &str, expected: T, mut probe: impl FnMut() -> F)
where
    T: Debug + PartialEq,
    F: Future<Output = T>,
{
    let what = format!("{what} (expected {expected:?})");
    let expected = &expected;
    eventually(deadline, &what, || {
        let answer = probe();
        async move {
            let actual = answer.await;
            if &actual == expected { Ok(()) } else { Err(actual) }
        }
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const SOON: Duration = Duration::from_millis(30);

    #[tokio::test]
    async fn returns_the_first_ok() {
        let asked = Cell::new(0);
        let value = eventually(SOON * 100, "three questions", async || {
            asked.set(asked.get() + 1);
            if asked.get() == 3 { Ok(asked.get()) } else { Err(asked.get()) }
        })
        .await;
        assert_eq!(value, 3);
    }

    #[tokio::test]
    #[should_panic(expected = "not within 30ms: the answer is 2 (expected 2); last seen: 1")]
    async fn reports_the_last_state() {
        eventually_eq(SOON, "the answer is 2", 2, async || 1).await;
    }

    #[tokio::test]
    #[should_panic(expected = "the first probe never answered")]
    async fn hanging_probe_times_out() {
        eventually_eq(SOON, "an answer", 2, std::future::pending::<i32>).await;
    }
}
