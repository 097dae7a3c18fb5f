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

#[cfg(test)]
mod tests {
    use super::*;
    use redlock_runtime::testing::{self, TestServers};
    use tonic::Code;

    /// The handlers use the installed manager, as under tonic, where they run in tasks of their own.
    #[tokio::test]
    async fn a_seat_that_somebody_else_buys_is_not_sold() {
        let servers = TestServers::new(1);
        let _installed = testing::install(&servers.manager());
        // Nobody asks for the seats before the lock is there.
        let redis = redis::Client::open("redis://127.0.0.1:1").unwrap();
        let config = redis::aio::ConnectionManagerConfig::new().set_number_of_retries(0);
        let redis = ConnectionManager::new_lazy_with_config(redis, config).unwrap();
        let seats = Seats { redis, payment_time: Duration::ZERO };
        servers.hold("seat:7:12").await;
        let sale = Sale { show: "7".into(), seat: 12, name: "Ann".into() };
        let refused = tokio::spawn(async move { seats.sell(Request::new(sale)).await }).await.unwrap().unwrap_err();
        assert_eq!(refused.code(), Code::Aborted, "{refused}");
        assert_eq!(servers.log().failed(), ["seat:7:12"]);
    }
}
