//! The service. Its methods hold the lock of the seat that they change.

use crate::messages::{BoxOffice, Sale, Ticket};
use redis::aio::ConnectionManager;
use redis::{AsyncCommands, RedisError};
use redlock_runtime::distributed_lock;
use std::time::Duration;
use tonic::{Request, Response, Status};

/// Who has which seat, in Redis. Nothing here is atomic on purpose: only the locks keep a seat from being sold twice.
pub(crate) struct Seats {
    pub(crate) redis: ConnectionManager,
    pub(crate) payment_time: Duration,
}

/// A lock error becomes a `Status` by itself, with the feature `tonic`. The manager is the one that `main` has installed.
#[tonic::async_trait]
impl BoxOffice for Seats {
    /// Of several calls, one sells the seat; the others are told at once to come back later.
    #[distributed_lock(key("seat:{sale.show}:{sale.seat}", sale = request.get_ref()), ttl = 30, wait = none)]
    async fn sell(&self, request: Request<Sale>) -> Result<Response<Ticket>, Status> {
        let sale = request.into_inner();
        if self.owner(&sale).await?.is_some() {
            return Err(Status::failed_precondition("the seat is sold"));
        }
        tokio::time::sleep(self.payment_time).await;
        self.redis
            .clone()
            .hset::<_, _, _, ()>(seats(&sale), sale.seat, &sale.name)
            .await
            .map_err(|error| out_of_reach(&error))?;
        Ok(Response::new(Ticket { name: sale.name }))
    }

    /// Has the same key as [`sell`](Self::sell), and waits for a sale that is at work.
    #[distributed_lock(key("seat:{sale.show}:{sale.seat}", sale = request.get_ref()), ttl = 30, wait = 2)]
    async fn take_back(&self, request: Request<Sale>) -> Result<Response<Ticket>, Status> {
        let sale = request.into_inner();
        if self.owner(&sale).await?.as_ref() != Some(&sale.name) {
            return Err(Status::failed_precondition("the seat is somebody else's"));
        }
        self.redis.clone().hdel::<_, _, ()>(seats(&sale), sale.seat).await.map_err(|error| out_of_reach(&error))?;
        Ok(Response::new(Ticket::default()))
    }
}

impl Seats {
    async fn owner(&self, sale: &Sale) -> Result<Option<String>, Status> {
        self.redis.clone().hget(seats(sale), sale.seat).await.map_err(|error| out_of_reach(&error))
    }
}

fn seats(sale: &Sale) -> String {
    format!("seats:{}", sale.show)
}

/// What went wrong inside is for the log.
fn out_of_reach(error: &RedisError) -> Status {
    eprintln!("grpc_service: the seats cannot be reached: {error}");
    Status::unavailable("the seats cannot be reached")
}
