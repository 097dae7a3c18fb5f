//! Client of the service: one call per run.

use crate::messages::{BoxOfficeClient, Sale};
use std::error::Error;
use tonic::{Request, Status};
use tonic_types::StatusExt;

pub(crate) async fn sell(address: String, sale: Sale) -> Result<(), Box<dyn Error>> {
    let (show, seat) = (sale.show.clone(), sale.seat);
    let ticket =
        BoxOfficeClient::connect(address).await?.sell(Request::new(sale)).await.map_err(|status| in_words(&status))?;
    println!("{show}, seat {seat}: sold to {}", ticket.into_inner().name);
    Ok(())
}

pub(crate) async fn take_back(address: String, sale: Sale) -> Result<(), Box<dyn Error>> {
    let (show, seat) = (sale.show.clone(), sale.seat);
    BoxOfficeClient::connect(address).await?.take_back(Request::new(sale)).await.map_err(|status| in_words(&status))?;
    println!("{show}, seat {seat}: free");
    Ok(())
}

/// Formats an error status, with the retry delay if the status details contain one.
fn in_words(status: &Status) -> String {
    let answer = format!("{:?}: {}", status.code(), status.message());
    match status.get_details_retry_info().and_then(|info| info.retry_delay) {
        Some(delay) => format!("{answer} (in about {delay:?})"),
        None => answer,
    }
}
