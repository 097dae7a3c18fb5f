//! Answers of several nodes at once.

use crate::client::timers::timeout;
use crate::node::BoxFuture;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

/// Returns the answers of the `asked` nodes, in their order. It returns when the answers are enough, when all have
/// arrived, and after `patience` at the latest.
pub(crate) async fn gather<T>(
    mut asked: Vec<BoxFuture<'_, T>>,
    patience: Duration,
    are_enough: impl Fn(&[Option<T>]) -> bool,
) -> Vec<Option<T>> {
    let mut answers: Vec<_> = asked.iter().map(|_| None).collect();
    let enough = poll_fn(|cx| {
        for (asked, answer) in asked.iter_mut().zip(&mut answers).filter(|(_, answer)| answer.is_none()) {
            if let Poll::Ready(here) = asked.as_mut().poll(cx) {
                *answer = Some(here);
            }
        }
        if answers.iter().all(Option::is_some) || are_enough(&answers) { Poll::Ready(()) } else { Poll::Pending }
    });
    // A node without an answer at that time counts as silent.
    let _ = timeout(patience, enough).await;
    answers
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};
    use tokio::time::{Instant, sleep};

    #[tokio::test(start_paused = true)]
    async fn gather_stops_waiting_for_slow_nodes_once_it_has_enough_answers() {
        let (slow, patience) = (Duration::from_millis(20), Duration::from_millis(50));
        let table = [(1, 0, [true, false, false]), (2, 20, [true, true, false]), (3, 50, [true, true, false])];
        for (needed, waited, expected) in table {
            let asked: Vec<BoxFuture<'_, ()>> = vec![Box::pin(ready(())), Box::pin(sleep(slow)), Box::pin(pending())];
            let begun = Instant::now();
            let answers = gather(asked, patience, |answers| answers.iter().flatten().count() >= needed).await;
            assert_eq!(answers.iter().map(Option::is_some).collect::<Vec<_>>(), expected, "{needed}");
            assert_eq!(begun.elapsed().as_millis(), waited, "{needed}");
        }
    }
}
