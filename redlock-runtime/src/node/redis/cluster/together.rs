//! Concurrent execution of several futures.

use crate::node::BoxFuture;
use std::future::poll_fn;
use std::task::Poll;

/// Runs all `futures` concurrently, and returns their outputs.
pub(super) async fn all<T>(mut futures: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    let mut outputs: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    poll_fn(|cx| {
        for (future, output) in futures.iter_mut().zip(&mut outputs).filter(|(_, output)| output.is_none()) {
            if let Poll::Ready(ready) = future.as_mut().poll(cx) {
                *output = Some(ready);
            }
        }
        if outputs.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    outputs.into_iter().flatten().collect()
}
