#![deny(warnings, missing_docs)]
#![allow(dead_code, unreachable_pub, reason = "also a module of other crates")]
#![warn(clippy::all, clippy::pedantic, clippy::nursery)]
//! The stock of a warehouse as a tonic service, in the form in which `tonic-build` writes its trait.

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

/// Why a call is refused.
#[derive(Debug)]
#[non_exhaustive]
pub enum StockError {
    /// Not enough is left.
    Exhausted,
    /// The lock.
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

/// `Status` and `LockError` are both other crates'.
fn refuse<T>(error: LockError) -> Result<T, Status> {
    Err(StockError::from(error).into())
}

/// An article at its place.
#[derive(Clone, Debug)]
pub struct Article {
    /// The warehouse.
    pub place: String,
    /// Its number there.
    pub number: u32,
    /// How many.
    pub count: u64,
}

impl Article {
    fn name(&self) -> String {
        format!("{}/{}", self.place, self.number)
    }
}

/// What a server sends bit by bit.
pub type Stocks = Pin<Box<dyn Stream<Item = Result<u64, Status>> + Send>>;

/// The service.
#[tonic::async_trait]
pub trait Warehouse: Send + Sync + 'static {
    /// What [`watch`](Self::watch) sends.
    type WatchStream: Stream<Item = Result<u64, Status>> + Send + 'static;

    /// Puts articles in; answers how many there are.
    async fn store(&self, request: Request<Article>) -> Result<Response<u64>, Status>;

    /// Takes articles out; answers how many are left.
    async fn take(&self, request: Request<Article>) -> Result<Response<u64>, Status>;

    /// The stock while articles come in.
    async fn watch(&self, request: Request<Article>) -> Result<Response<Self::WatchStream>, Status>;

    /// Counts all articles of a place, unless somebody does.
    async fn count(&self, request: Request<String>) -> Result<(), Status>;

    /// What every service has.
    #[distributed_lock(key = "health", wait = none, on_error = refuse)]
    async fn health(&self, _request: Request<()>) -> Result<Response<()>, Status> {
        Ok(Response::new(()))
    }
}

/// The service on a store.
#[derive(Clone, Debug)]
pub struct Shelves {
    /// The locks.
    pub locks: Arc<LockManager>,
    /// The stock.
    pub stock: Store,
    /// How long a call waits for the one before.
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
    /// Inside of the service, errors are the service's own.
    #[distributed_lock(key = "out:{place}:{number:04}", manager = self.locks, ttl = self.patience * 2, wait = self.patience)]
    async fn take_out(&self, Article { place, number, count }: Article) -> Result<u64, StockError> {
        let name = format!("{place}/{number}");
        if self.stock.read(&name) < count {
            return Err(StockError::Exhausted);
        }
        Ok(self.stock.update(&name, |stock| stock - count).await)
    }

    /// A unary call as `tonic-build` makes it: a future in a box.
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
