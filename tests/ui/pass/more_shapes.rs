#![deny(warnings, missing_docs)]
#![allow(dead_code, unreachable_pub, reason = "also a module of the attribute tests")]
#![warn(clippy::all, clippy::pedantic, clippy::nursery)]
//! All options at once, more receivers, parts of every kind, bodies with blocks of their own.

use redlock_runtime::{LockError, LockGuard, distributed_lock};
use std::borrow::Cow;
use std::fmt::{Debug, Display};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

/// A constant of a template.
pub const REGION: &str = "eu";

/// A type of keys.
#[derive(Debug)]
pub struct Id(u64);

impl Display for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl Id {
    /// A constant of a template.
    pub const NAME: &'static str = "id";

    /// All options at once.
    ///
    /// # Errors
    /// The lock.
    #[distributed_lock(
        key("{REGION}/{id}/{other:08x}/{Self::NAME}/{tags[0]}", other = self.0 + 1),
        ttl = 30,
        wait = 5s,
        renew = false,
        guard = lock,
        on_contended = skip,
        on_lost = continue,
        release = confirmed
    )]
    pub async fn everything(&self, id: u64, tags: &[String]) -> Result<Option<usize>, LockError> {
        let guard: &LockGuard = lock;
        Ok(guard.is_held().then_some(tags.len() + usize::try_from(id).unwrap_or(0)))
    }

    /// Receivers.
    ///
    /// # Errors
    /// The lock.
    #[distributed_lock(key = "{self.0}")]
    pub async fn pinned(self: Pin<&mut Self>) -> Result<u64, LockError> {
        Ok(self.0)
    }

    /// # Errors
    /// The lock.
    #[distributed_lock(key = "{self.0}")]
    pub async fn boxed(self: Box<Self>) -> Result<Box<Self>, LockError> {
        Ok(self)
    }

    /// # Errors
    /// The lock.
    #[allow(clippy::future_not_send, reason = "as a plain function with an await in it")]
    #[distributed_lock(key = "{self.0}")]
    pub async fn counted(self: Rc<Self>) -> Result<Rc<Self>, LockError> {
        Ok(self)
    }

    /// # Errors
    /// The lock.
    #[distributed_lock(key = "{self.0}")]
    pub async fn shared(self: &Arc<Self>) -> Result<&Self, LockError> {
        Ok(self)
    }
}

/// Parts of every kind.
///
/// # Errors
/// The lock.
#[allow(clippy::many_single_char_names)]
#[distributed_lock(key = "{a}/{b}/{c}/{d}/{e}/{f}/{g}")]
pub async fn parts<T: Display + Sync + ?Sized>(
    a: &T,
    b: Cow<'_, str>,
    c: Arc<str>,
    d: &&Id,
    e: char,
    f: Box<dyn Display + Send + Sync>,
    g: impl Display + Send + Sync,
) -> Result<String, LockError> {
    Ok(format!("{a}{b}{c}{d}{e}{f}{g}"))
}

/// Higher-ranked bounds, defaults, anonymous lifetimes.
///
/// # Errors
/// The lock.
#[distributed_lock(key = "order:{id}")]
pub async fn callback<'a, F, R>(id: u64, values: &'a [u8], callback: F) -> Result<R, LockError>
where
    F: for<'b> Fn(&'b [u8]) -> R + Send,
    R: Debug + 'a,
{
    let _ = id;
    Ok(callback(values))
}

/// Async closures and blocks inside.
///
/// # Errors
/// The lock.
#[distributed_lock(key = "order:{id}")]
pub async fn inside(id: u64) -> Result<u64, LockError> {
    let add = async |other: u64| Ok::<_, LockError>(id + other);
    let block = async { Ok::<_, LockError>(add(1).await? + 1) };
    let found = 'found: {
        if id == 0 {
            break 'found 0;
        }
        block.await?
    };
    Ok(found)
}

/// A trait with explicit bounds.
pub trait Job {
    /// Runs.
    fn run(&self, id: u64) -> impl Future<Output = Result<(), LockError>> + Send;
}

impl Job for Id {
    #[distributed_lock(key = "{self.0}:{id}")]
    async fn run(&self, id: u64) -> Result<(), LockError> {
        let _ = id;
        tokio::task::yield_now().await;
        Ok(())
    }
}

/// Attributes on arguments.
///
/// # Errors
/// The lock.
#[cfg_attr(not(miri), distributed_lock(key = "conditional:{id}"))]
pub async fn conditional(#[cfg(not(miri))] id: u64, #[cfg(miri)] id: String) -> Result<u64, LockError> {
    inside(id).await
}
