//! A master that Sentinels watch over: they say where it is, and which replica has taken its place.
//!
//! Whenever a connection is made, the Sentinels are asked which server is the master ([`sentinels`]), and the configuration
//! that more than half of them report counts ([`view`]): one that is cut off from the others still names the old master, and
//! one that lies could name any address. While a
//! connection stands, their messages say that there is another master ([`watch`]), and the connection to the one before
//! ends, even if that does not.

mod sentinels;
mod url;
mod view;
mod watch;

pub(crate) use self::sentinels::Sentinels;
pub(crate) use self::url::{endpoint, is_watched};
pub(super) use self::watch::watch;
