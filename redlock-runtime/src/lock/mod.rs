//! What a lock and its owner are called.
//!
//! Plain values that can be made, compared and written: the key, the mode and the token. What can be wrong with them is found where
//! a lock is requested; what a lock is asked for stands in `request`.

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
