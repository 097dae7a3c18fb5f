//! A gRPC service whose methods take locks, and its client. With two instances of the service, each seat is still sold
//! only once.
//!
//! ```text
//! REDLOCK_NODES=redis://127.0.0.1:6379 cargo run -p redlock-grpc-service -- serve 50051
//! REDLOCK_NODES=redis://127.0.0.1:6379 cargo run -p redlock-grpc-service -- serve 50052
//!
//! cargo run -p redlock-grpc-service -- sell http://127.0.0.1:50051 hamlet 7 Ann
//! cargo run -p redlock-grpc-service -- sell http://127.0.0.1:50052 hamlet 7 Ben
//! cargo run -p redlock-grpc-service -- take-back http://127.0.0.1:50052 hamlet 7 Ann
//! ```
//!
//! `PAYMENT_MS` sets the duration of a payment in milliseconds (default: 200). Set it to 5000 to have time for a second
//! call while the first one runs.

mod client;
mod messages;
mod seats;

use crate::messages::{BoxOfficeServer, Sale};
use crate::seats::Seats;
use redlock_examples::{data_store, payment_time, stop_signal};
use redlock_runtime::LockManager;
use std::error::Error;
use std::net::Ipv4Addr;
use std::process::ExitCode;
use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

const USAGE: &str = "usage: grpc_service serve PORT | sell URL SHOW SEAT NAME | take-back URL SHOW SEAT NAME";

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("grpc_service: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["serve", port] => serve(number(port)?).await,
        ["sell", url, sale @ ..] => client::sell((*url).to_owned(), read_sale(sale)?).await,
        ["take-back", url, sale @ ..] => client::take_back((*url).to_owned(), read_sale(sale)?).await,
        _ => Err(USAGE.into()),
    }
}

async fn serve(port: u16) -> Result<(), Box<dyn Error>> {
    // Seats and locks share a server. The namespace keeps their keys apart.
    let locks = LockManager::builder().nodes_from_env()?.namespace("locks").build()?;
    locks.install()?;
    locks.ready().await?;
    let seats = Seats { redis: data_store().await?, payment_time: payment_time()? };

    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    println!("grpc_service: listening on http://{}", listener.local_addr()?);
    let (service, incoming) = (BoxOfficeServer::new(seats), TcpIncoming::from(listener));
    Server::builder().serve_with_incoming_shutdown(service, incoming, stop_signal()).await?;

    // Every call is answered now. `shutdown` waits until the servers have answered all releases.
    if !locks.shutdown().await {
        eprintln!("grpc_service: Redis did not answer all releases; these locks expire within their ttl");
    }
    println!("grpc_service: stopped");
    Ok(())
}

fn read_sale(arguments: &[&str]) -> Result<Sale, Box<dyn Error>> {
    let [show, seat, name] = arguments else { return Err(USAGE.into()) };
    Ok(Sale { show: (*show).to_owned(), seat: number(seat)?, name: (*name).to_owned() })
}

fn number<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error| format!("{text}: {error}"))
}
