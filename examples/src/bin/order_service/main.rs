//! A web service whose handlers take locks. With two instances, each order is still paid only once.
//!
//! ```text
//! REDLOCK_NODES=redis://127.0.0.1:6379 cargo run -p redlock-examples --bin order_service -- --port 3001
//! REDLOCK_NODES=redis://127.0.0.1:6379 cargo run -p redlock-examples --bin order_service -- --port 3002
//!
//! curl -i 127.0.0.1:3001/orders -H 'content-type: application/json' -d '{"amount": 1999}'
//! curl -i -X POST 127.0.0.1:3002/orders/1/capture
//! ```
//!
//! Options and environment variables:
//!
//! - `--pages 4001` serves <http://127.0.0.1:4001/locks>, a page with the locks of the process, and `/metrics` for
//!   Prometheus. The pages have a separate listener that clients cannot reach.
//! - `API_TOKEN=secret` requires clients to send `authorization: Bearer secret`.
//! - `PAYMENT_MS` sets the duration of a payment in milliseconds (default: 200). Set it to 5000 to have time for a
//!   second call while the first one runs.

mod api;
mod error;
mod orders;

use crate::api::{AppState, pages, router};
use crate::orders::Orders;
use redlock_examples::{payment_time, stop_signal};
use redlock_runtime::LockManager;
use std::error::Error;
use std::net::Ipv4Addr;
use std::process::ExitCode;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("order_service: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let ports = ports()?;
    // Orders and locks share a server. The namespace keeps their keys apart.
    let locks = LockManager::builder().nodes_from_env()?.namespace("locks").build()?;
    locks.ready().await?;
    log_nodes(&locks).await;
    let token = std::env::var("API_TOKEN").ok().map(Into::into);
    let state = AppState { locks: locks.clone(), orders: Orders::connect(payment_time()?).await?, token };

    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, ports.clients)).await?;
    println!("order_service: listening on http://{}", listener.local_addr()?);
    let clients = axum::serve(listener, router(state.clone())).with_graceful_shutdown(stop_signal());
    match ports.pages {
        None => clients.await?,
        Some(port) => {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
            println!("order_service: pages on http://{}", listener.local_addr()?);
            let operators = axum::serve(listener, pages(state)).with_graceful_shutdown(stop_signal());
            tokio::try_join!(clients.into_future(), operators.into_future())?;
        }
    }

    // Every request is answered now. `shutdown` waits until the servers have answered all releases.
    if !locks.shutdown().await {
        eprintln!("order_service: Redis did not answer all releases; these locks expire within their ttl");
    }
    println!("order_service: stopped");
    Ok(())
}

/// Logs the state of the nodes and all configuration warnings at startup, while the operator is likely to read the log.
async fn log_nodes(locks: &LockManager) {
    let report = locks.check().await;
    for node in &report.nodes {
        eprintln!("order_service: node {node}");
    }
    for warning in report.warnings() {
        eprintln!("order_service: warning: {warning}");
    }
}

/// Ports of the listeners. Port 0 selects any free port.
struct Ports {
    clients: u16,
    /// Port of the pages. With `None`, no pages are served.
    pages: Option<u16>,
}

/// Parses `--port 3001 --pages 4001`. The default port for clients is 3000.
fn ports() -> Result<Ports, Box<dyn Error>> {
    let mut ports = Ports { clients: 3000, pages: None };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or(USAGE)?;
        let port = value.parse().map_err(|error| format!("{name} {value}: {error}"))?;
        match name.as_str() {
            "--port" => ports.clients = port,
            "--pages" => ports.pages = Some(port),
            _ => return Err(USAGE.into()),
        }
    }
    Ok(ports)
}

const USAGE: &str = "usage: order_service [--port PORT] [--pages PORT]";
