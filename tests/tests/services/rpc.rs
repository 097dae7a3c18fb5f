#![deny(warnings, missing_docs)]
#![allow(dead_code, unreachable_pub, reason = "also a module of other crates")]
#![warn(clippy::all, clippy::pedantic, clippy::nursery)]
//! The stock of a warehouse as a tonic service, with a trait in the form that `tonic-build` writes.

use super::prelude::*;
use super::store::Store;
use redlock_runtime::{LockError, LockManager, distributed_lock};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tonic::codegen::tokio_stream::{self, Stream};
use tonic::{Request, Response, Status};
use tracing::instrument;

/// Reason for a refused call.
#[derive(Debug)]
#[non_exhaustive]
pub enum StockError {
    /// Not enough is left.
    Exhausted,
    /// The lock could not be acquired, or was lost.
    Lock(LockError),
}

impl From<LockError> for StockError {
    fn from(error: LockError) -> Self {
        Self::Lock(error)
    }
}

impl From<StockError> for Status {
    fn from(error: StockError) -> Self {
        match error {
            StockError::Exhausted => Self::failed_precondition("not enough in stock"),
            StockError::Lock(error) if error.is_contended() => Self::aborted(error.to_string()),
            StockError::Lock(error) => Self::unavailable(error.to_string()),
        }
    }
}

/// Converts the error. `Status` and `LockError` belong to other crates, so a `From` is impossible here.
fn refuse<T>(error: LockError) -> Result<T, Status> {
    Err(StockError::from(error).into())
}

/// An article at its place.
#[derive(Clone, Debug)]
pub struct Article {
    /// Warehouse.
    pub place: String,
    /// Number of the article in the warehouse.
    pub number: u32,
    /// Number of pieces.
    pub count: u64,
}

impl Article {
    fn name(&self) -> String {
        format!("{}/{}", self.place, self.number)
    }
}

/// Stream of responses.
pub type Stocks = Pin<Box<dyn Stream<Item = Result<u64, Status>> + Send>>;

/// The service.
#[tonic::async_trait]
pub trait Warehouse: Send + Sync + 'static {
    /// Stream of [`watch`](Self::watch).
    type WatchStream: Stream<Item = Result<u64, Status>> + Send + 'static;

    /// Adds articles. Returns the new stock.
    async fn store(&self, request: Request<Article>) -> Result<Response<u64>, Status>;

    /// Removes articles. Returns the remaining stock.
    async fn take(&self, request: Request<Article>) -> Result<Response<u64>, Status>;

    /// Streams the stock while articles arrive.
    async fn watch(&self, request: Request<Article>) -> Result<Response<Self::WatchStream>, Status>;

    /// Counts all articles of a place, unless another call is counting them.
    async fn count(&self, request: Request<String>) -> Result<(), Status>;

    /// Reports the health of the service.
    #[distributed_lock(key = "health", wait = none, on_error = refuse)]
    async fn health(&self, _request: Request<()>) -> Result<Response<()>, Status> {
        Ok(Response::new(()))
    }
}

/// The service on a store.
#[derive(Clone, Debug)]
pub struct Shelves {
    /// Lock manager.
    pub locks: Arc<LockManager>,
    /// Stock.
    pub stock: Store,
    /// Longest wait of a call for the previous one.
    pub patience: Duration,
}

#[tonic::async_trait]
impl Warehouse for Shelves {
    type WatchStream = Stocks;

    #[instrument(skip_all, fields(place = %request.get_ref().place))]
    #[distributed_lock(
        key("{article.place}/{article.number}", article = request.get_ref()),
        manager = self.locks,
        wait = self.patience,
        on_error = refuse
    )]
    async fn store(&self, request: Request<Article>) -> Result<Response<u64>, Status> {
        let article = request.into_inner();
        let stock = self.stock.update(&article.name(), |stock| stock + article.count).await;
        Ok(Response::new(stock))
    }

    #[distributed_lock(
        key("{place}/{number}", place = request.get_ref().place, number = request.get_ref().number),
        manager = self.locks,
        ttl = 10,
        wait = none,
        on_contended = |_| Err(Status::resource_exhausted("somebody else takes")),
        on_error = refuse
    )]
    #[instrument(skip_all, level = "debug")]
    async fn take(&self, request: Request<Article>) -> Result<Response<u64>, Status> {
        Ok(self.take_out(request.into_inner()).await.map(Response::new)?)
    }

    #[distributed_lock(
        key("watch:{name}", name = request.get_ref().name()),
        manager = self.locks,
        guard = lock,
        on_error = |error| Err(StockError::Lock(error).into())
    )]
    async fn watch(&self, request: Request<Article>) -> Result<Response<Stocks>, Status> {
        let name = request.get_ref().name();
        let mut stocks = vec![Ok(self.stock.read(&name))];
        for _ in 0..request.get_ref().count {
            lock.extend().await.map_err(StockError::from)?;
            stocks.push(Ok(self.stock.update(&name, |stock| stock + 1).await));
        }
        Ok(Response::new(Box::pin(tokio_stream::iter(stocks))))
    }

    #[distributed_lock(
        key("count:{place}", place = request.get_ref()),
        manager = self.locks,
        wait = none,
        on_contended = skip,
        on_error = refuse,
        release = confirmed
    )]
    async fn count(&self, request: Request<String>) -> Result<(), Status> {
        self.stock.update(request.get_ref(), |counts| counts + 1).await;
        Ok(())
    }
}

impl Shelves {
    /// Removes articles. Inside the service, errors have the type of the service.
    #[distributed_lock(key = "out:{place}:{number:04}", manager = self.locks, ttl = self.patience * 2, wait = self.patience)]
    async fn take_out(&self, Article { place, number, count }: Article) -> Result<u64, StockError> {
        let name = format!("{place}/{number}");
        if self.stock.read(&name) < count {
            return Err(StockError::Exhausted);
        }
        Ok(self.stock.update(&name, |stock| stock - count).await)
    }

    /// A unary call as `tonic-build` makes it: a boxed future.
    #[distributed_lock(key = "{article.place}/{article.number}", manager = self.locks, on_error = refuse)]
    #[must_use]
    pub fn replace<'a>(
        &'a self,
        article: &'a Article,
    ) -> Pin<Box<dyn Future<Output = Result<u64, Status>> + Send + 'a>> {
        let name = article.name();
        Box::pin(async move { Ok(self.stock.update(&name, |_| article.count).await) })
    }
}
