//! The tonic service answers calls concurrently, as far as its locks allow.

use crate::rpc::{Article, Shelves, Warehouse};
use crate::store::Store;
use redlock_runtime::LockManager;
use std::sync::Arc;
use std::time::Duration;
use tonic::codegen::tokio_stream::StreamExt;
use tonic::{Code, Request};

fn shelves() -> Shelves {
    let locks = Arc::new(LockManager::in_memory());
    Shelves { locks, stock: Store::default(), patience: Duration::from_secs(1) }
}

fn article(number: u32, count: u64) -> Article {
    Article { place: "east".to_owned(), number, count }
}

#[tokio::test(start_paused = true)]
async fn concurrent_stores_lose_no_update() {
    let shelves = shelves();
    let put = |number, count| shelves.store(Request::new(article(number, count)));
    let (first, second) = tokio::join!(put(1, 2), put(1, 3));
    assert_eq!((first.unwrap().into_inner(), second.unwrap().into_inner()), (2, 5));
    let one = article(1, 1);
    let (first, second) = tokio::join!(put(1, 1), shelves.replace(&one));
    assert_eq!((first.unwrap().into_inner(), second.unwrap()), (6, 1));
    assert_eq!(shelves.stock.peak(), 1);
    let (first, second) = tokio::join!(put(1, 1), put(2, 1));
    assert_eq!((first.unwrap().into_inner(), second.unwrap().into_inner()), (2, 1));
    assert_eq!(shelves.stock.peak(), 2);
}

#[tokio::test(start_paused = true)]
async fn second_concurrent_take_is_refused() {
    let shelves = shelves();
    shelves.replace(&article(1, 5)).await.unwrap();
    let take = || shelves.take(Request::new(article(1, 3)));
    let (first, second) = tokio::join!(take(), take());
    assert_eq!(first.unwrap().into_inner(), 2);
    assert_eq!(second.unwrap_err().code(), Code::ResourceExhausted, "the handler of a contended call");
    assert_eq!(take().await.unwrap_err().code(), Code::FailedPrecondition, "the body's own error");
    let _guard = shelves.locks.acquire("out:east:0001").await.unwrap();
    assert_eq!(take().await.unwrap_err().code(), Code::Aborted, "the lock further inside");
}

#[tokio::test(start_paused = true)]
async fn stream_is_created_under_the_lock() {
    let shelves = shelves();
    let watch = || async {
        let stocks = shelves.watch(Request::new(article(1, 2))).await.unwrap().into_inner();
        stocks.map(Result::unwrap).collect::<Vec<_>>().await
    };
    let (first, second) = tokio::join!(watch(), watch());
    assert_eq!((first, second), (vec![0, 1, 2], vec![2, 3, 4]));
    assert_eq!(shelves.stock.peak(), 1);
}

#[tokio::test(start_paused = true)]
async fn concurrent_counts_of_one_place_run_once() {
    let shelves = shelves();
    let count = |place: &str| shelves.count(Request::new(place.to_owned()));
    let (first, second, other) = tokio::join!(count("east"), count("east"), count("west"));
    assert!(first.is_ok() && second.is_ok() && other.is_ok());
    assert_eq!((shelves.stock.read("east"), shelves.stock.read("west"), shelves.stock.peak()), (1, 1, 2));
}

#[tokio::test]
async fn lock_errors_map_to_status_codes() {
    let shelves = shelves();
    assert_eq!(shelves.health(Request::new(())).await.unwrap_err().code(), Code::Unavailable, "not installed");
    shelves.locks.scope(shelves.health(Request::new(()))).await.unwrap();
    shelves.locks.shutdown().await;
    assert_eq!(shelves.store(Request::new(article(1, 1))).await.unwrap_err().code(), Code::Unavailable);
    assert_eq!(shelves.count(Request::new("east".to_owned())).await.unwrap_err().code(), Code::Unavailable);
}
