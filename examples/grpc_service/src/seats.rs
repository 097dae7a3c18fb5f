//! Implementation of the service. Each method holds the lock of the seat that it changes.

use crate::messages::{BoxOffice, Sale, Ticket};
use redis::aio::ConnectionManager;
use redis::{AsyncCommands, RedisError};
use redlock_runtime::distributed_lock;
use std::time::Duration;
use tonic::{Request, Response, Status};

/// Owners of the seats, stored in Redis. The commands are deliberately not atomic: only the locks prevent a double
/// sale.
pub(crate) struct Seats {
    pub(crate) redis: ConnectionManager,
    pub(crate) payment_time: Duration,
}

/// Locks through the installed manager, because the attributes do not name one. With the feature `tonic`, `?` converts
/// a lock error into a `Status`.
#[tonic::async_trait]
impl BoxOffice for Seats {
    /// Sells a free seat. If another call holds the lock of the seat, this one fails at once with `Aborted`.
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
            .map_err(|error| unavailable_status(&error))?;
        Ok(Response::new(Ticket { name: sale.name }))
    }

    /// Takes a seat back. Uses the same key as [`sell`](Self::sell), so it waits up to 2 s for a running sale.
    #[distributed_lock(key("seat:{sale.show}:{sale.seat}", sale = request.get_ref()), ttl = 30, wait = 2)]
    async fn take_back(&self, request: Request<Sale>) -> Result<Response<Ticket>, Status> {
        let sale = request.into_inner();
        if self.owner(&sale).await?.as_ref() != Some(&sale.name) {
            return Err(Status::failed_precondition("the seat is somebody else's"));
        }
        self.redis
            .clone()
            .hdel::<_, _, ()>(seats(&sale), sale.seat)
            .await
            .map_err(|error| unavailable_status(&error))?;
        Ok(Response::new(Ticket::default()))
    }
}

impl Seats {
    async fn owner(&self, sale: &Sale) -> Result<Option<String>, Status> {
        self.redis.clone().hget(seats(sale), sale.seat).await.map_err(|error| unavailable_status(&error))
    }
}

fn seats(sale: &Sale) -> String {
    format!("seats:{}", sale.show)
}

/// Logs the cause and returns a status without internal details.
fn unavailable_status(error: &RedisError) -> Status {
    eprintln!("grpc_service: the seats cannot be reached: {error}");
    Status::unavailable("the seats cannot be reached")
}

#[cfg(test)]
mod tests {
    use super::*;
    use redlock_runtime::testing::{self, TestServers};
    use tonic::Code;

    /// tonic runs handlers in spawned tasks. The test does the same, so the handler must find the installed manager.
    #[tokio::test]
    async fn seat_with_a_held_lock_is_not_sold() {
        let servers = TestServers::new(1);
        let _installed = testing::install(&servers.manager());
        // Nothing listens on this port. The handler must fail before it reads the seats.
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
