//! A web service whose handlers take locks: start it twice, and no order is paid twice.
//!
//! ```text
//! REDLOCK_NODES=redis://127.0.0.1:6379 cargo run -p redlock-examples --bin order_service -- --port 3001
//! REDLOCK_NODES=redis://127.0.0.1:6379 cargo run -p redlock-examples --bin order_service -- --port 3002
//!
//! curl -i 127.0.0.1:3001/orders -H 'content-type: application/json' -d '{"amount": 1999}'
//! curl -i -X POST 127.0.0.1:3002/orders/1/capture
//! ```
//!
//! With `--pages 4001`, <http://127.0.0.1:4001/locks> shows the locks of that process, and `/metrics` their numbers for Prometheus. These
//! pages have a listener of their own, which clients cannot reach. With `API_TOKEN=secret`, clients must send
//! `authorization: Bearer secret`.
//!
//! `PAYMENT_MS` is how long a payment takes (200): with 5000, there is time to try a second call by hand.

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
    // The orders are on the same server; the namespace keeps the locks away from them.
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

    // Every request is answered; the releases of the last ones may still be on their way.
    if !locks.shutdown().await {
        eprintln!("order_service: some locks could not be given back and are left to expire");
    }
    println!("order_service: stopped");
    Ok(())
}

/// What the locks depend on, while somebody who looks at the log can still do something about it.
async fn log_nodes(locks: &LockManager) {
    let report = locks.check().await;
    for node in &report.nodes {
        eprintln!("order_service: node {node}");
    }
    for warning in report.warnings() {
        eprintln!("order_service: warning: {warning}");
    }
}

/// Ports of the listeners. Any free port for 0.
struct Ports {
    clients: u16,
    /// `None` serves no pages.
    pages: Option<u16>,
}

/// `--port 3001 --pages 4001`. Without `--port`, clients are served at 3000.
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
