//! Messages of the service, and the generated client and server.

use prost::Message;

/// Request to sell or take back one seat of a show.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Sale {
    #[prost(string, tag = "1")]
    pub(crate) show: String,
    #[prost(uint32, tag = "2")]
    pub(crate) seat: u32,
    #[prost(string, tag = "3")]
    pub(crate) name: String,
}

/// Owner of a seat after the call. The name is empty if the seat is free.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Ticket {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
}

#[allow(clippy::pedantic, missing_docs, unreachable_pub, reason = "written by build.rs")]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/shop.BoxOffice.rs"));
}

pub(crate) use self::generated::box_office_client::BoxOfficeClient;
pub(crate) use self::generated::box_office_server::{BoxOffice, BoxOfficeServer};
