//! Orders in Redis. The commands are deliberately not atomic: only the lock around them prevents a double payment.

use crate::error::ApiError;
use redis::aio::ConnectionManager;
use redis::{AsyncCommands, RedisResult};
use serde::Serialize;
use std::time::Duration;

#[derive(Clone)]
pub(crate) struct Orders {
    redis: ConnectionManager,
    payment_time: Duration,
}

#[derive(Serialize)]
pub(crate) struct Order {
    pub(crate) id: u64,
    /// Amount in cents.
    pub(crate) amount: u64,
    pub(crate) status: Status,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    Open,
    Captured,
}

impl Orders {
    pub(crate) async fn connect(payment_time: Duration) -> RedisResult<Self> {
        Ok(Self { redis: redlock_examples::data_store().await?, payment_time })
    }

    /// Connects to the orders on the server at `url`.
    #[cfg(test)]
    pub(crate) async fn at(url: &str, payment_time: Duration) -> RedisResult<Self> {
        Ok(Self { redis: redis::Client::open(url)?.get_connection_manager().await?, payment_time })
    }

    pub(crate) async fn create(&self, amount: u64) -> RedisResult<Order> {
        let id = self.redis.clone().incr("orders:last", 1).await?;
        let order = Order { id, amount, status: Status::Open };
        self.save(&order).await?;
        Ok(order)
    }

    pub(crate) async fn find(&self, id: u64) -> Result<Order, ApiError> {
        let fields = self.redis.clone().hmget(name(id), &["amount", "captured"]).await?;
        let (Some(amount), Some(captured)) = fields else {
            return Err(ApiError::NoSuchOrder(id));
        };
        let status = if captured { Status::Captured } else { Status::Open };
        Ok(Order { id, amount, status })
    }

    pub(crate) async fn save(&self, order: &Order) -> RedisResult<()> {
        let captured = matches!(order.status, Status::Captured);
        let fields = [("amount", order.amount), ("captured", u64::from(captured))];
        self.redis.clone().hset_multiple(name(order.id), &fields).await
    }

    /// Simulates a request to the bank, which takes `payment_time`. The simulated bank charges once for each request.
    ///
    /// A real bank gets an idempotency key with the request. The lock excludes concurrent callers, but it cannot
    /// complete the work of a process that dies between the payment and [`save`](Self::save).
    pub(crate) async fn charge(&self, order: &Order) -> RedisResult<()> {
        tokio::time::sleep(self.payment_time).await;
        self.redis.clone().rpush(format!("bank:charges:{}", order.id), order.amount).await
    }
}

fn name(id: u64) -> String {
    format!("orders:{id}")
}
