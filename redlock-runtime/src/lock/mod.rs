//! Names of locks and owners: the key, the mode and the token.
//!
//! These are plain values that can be created, compared and written. Their validation runs when a lock is requested. The module
//! `request` contains the options of a request.

pub(crate) mod beside;
pub(crate) mod class;
pub(crate) mod invalid_key;
pub(crate) mod key;
pub(crate) mod mode;
pub(crate) mod namespace;
pub(crate) mod owner_token;
pub(crate) mod part;
pub(crate) mod parts;
pub(crate) mod path;
pub(crate) mod reserved;
pub(crate) mod slot;

pub use self::invalid_key::InvalidKey;
pub use self::key::LockKey;
pub use self::mode::Mode;
pub use self::owner_token::{InvalidToken, OwnerToken};
pub use self::path::LockPath;
