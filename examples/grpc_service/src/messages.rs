//! What client and server say to each other.

use prost::Message;

/// A seat of a show, and for whom.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Sale {
    #[prost(string, tag = "1")]
    pub(crate) show: String,
    #[prost(uint32, tag = "2")]
    pub(crate) seat: u32,
    #[prost(string, tag = "3")]
    pub(crate) name: String,
}

/// Whose the seat is now; nobody's if the name is empty.
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
