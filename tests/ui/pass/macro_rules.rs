#![deny(warnings, missing_docs)]
#![allow(dead_code, unreachable_pub, reason = "also a module of the attribute tests")]
#![warn(clippy::all, clippy::pedantic, clippy::nursery)]
//! Functions that come from `macro_rules!`, with every mix of origins of literal and argument.

use redlock_runtime::{LockError, distributed_lock};

macro_rules! all_from_the_caller {
    ($(#[$attribute:meta])* $vis:vis $name:ident, $argument:ident, $type:ty, $key:literal, $ttl:expr, $body:block) => {
        $(#[$attribute])*
        #[distributed_lock(key = $key, ttl = std::time::Duration::from_secs($ttl))]
        $vis async fn $name($argument: $type) -> Result<$type, LockError> $body
    };
}

macro_rules! literal_from_the_macro {
    ($name:ident, $argument:ident) => {
        /// # Errors
        /// The lock.
        #[distributed_lock(key = "order:{id}")]
        pub async fn $name($argument: u64) -> Result<u64, LockError> {
            Ok($argument)
        }
    };
}

macro_rules! argument_from_the_macro {
    ($name:ident, $key:literal) => {
        /// # Errors
        /// The lock.
        #[distributed_lock(key = $key)]
        pub async fn $name(id: u64) -> Result<u64, LockError> {
            Ok(id)
        }
    };
}

macro_rules! all_from_the_macro {
    ($name:ident, $key:expr) => {
        /// # Errors
        /// The lock.
        #[distributed_lock(key = "order:{id}:{order.0}")]
        pub async fn $name(id: u64, order: (u64,)) -> Result<u64, LockError> {
            let _ = $key;
            Ok(id + order.0)
        }

        /// A method.
        #[derive(Debug)]
        pub struct Method(u64);

        impl Method {
            /// # Errors
            /// The lock.
            #[distributed_lock(key = "order:{self.0}", ttl = 30s)]
            pub async fn run(&self) -> Result<u64, LockError> {
                Ok(self.0)
            }
        }
    };
}

all_from_the_caller!(
    /// # Errors
    /// The lock.
    pub first, id, u64, "order:{id}", 1 + 2, { Ok(id) }
);
literal_from_the_macro!(second, id);
argument_from_the_macro!(third, "order:{id}");
all_from_the_macro!(fourth, "order");
