//! Starts an acquisition.

use super::{Listed, Settings};
use crate::client::window::acquire as obtain;
use crate::request::Place;
use crate::request::acquire_request::AcquireRequest;
use crate::request::lock_target::LockTarget;
use crate::{FencedGuard, LockError, LockGuard, LockKey, LockManager};
use std::fmt;
use std::future::Future;
use std::pin::Pin;

/// Future of one acquisition: boxed and not generic, so that it adds one pointer to the caller's future.
pub type Acquire = Pin<Box<dyn Future<Output = Result<LockGuard, LockError>> + Send>>;

/// Acquires `key` with `manager`, or with the manager that is installed at the first poll.
///
/// This is not an `async fn`: the key is formatted before the future exists. Otherwise `fmt::Arguments` would be held across an
/// await, and the caller's future would be `!Send`.
#[must_use]
pub fn acquire(manager: Option<&LockManager>, key: fmt::Arguments<'_>, settings: Settings) -> Acquire {
    begin(manager, request(key_of(key), settings))
}

/// Acquires several keys, or paths; see [`acquire`].
#[must_use]
pub fn acquire_all<const N: usize>(manager: Option<&LockManager>, all: [Listed; N], settings: Settings) -> Acquire {
    begin(manager, request(parts_of(all), settings))
}

fn begin(manager: Option<&LockManager>, request: AcquireRequest) -> Acquire {
    let manager = manager.cloned();
    Box::pin(async move {
        let manager = manager.map_or_else(LockManager::current, Ok)?;
        obtain(&manager.local, &request).await.map(LockGuard::new)
    })
}

/// Future of one fenced acquisition.
pub type AcquireFenced = Pin<Box<dyn Future<Output = Result<FencedGuard, LockError>> + Send>>;

/// Acquires a key with `fencing`; see [`acquire`].
#[must_use]
pub fn acquire_fenced(manager: Option<&LockManager>, key: fmt::Arguments<'_>, settings: Settings) -> AcquireFenced {
    begin_fenced(manager, request(key_of(key), settings))
}

/// Acquires several keys, or paths, with `fencing`; see [`acquire_fenced`].
#[must_use]
pub fn acquire_all_fenced<const N: usize>(
    manager: Option<&LockManager>,
    all: [Listed; N],
    settings: Settings,
) -> AcquireFenced {
    begin_fenced(manager, request(parts_of(all), settings))
}

fn begin_fenced(manager: Option<&LockManager>, request: AcquireRequest) -> AcquireFenced {
    let (manager, request) = (manager.cloned(), AcquireRequest { is_fenced: true, ..request });
    Box::pin(async move {
        let manager = manager.map_or_else(LockManager::current, Ok)?;
        obtain(&manager.local, &request).await.and_then(FencedGuard::new)
    })
}

fn key_of(key: fmt::Arguments<'_>) -> LockTarget {
    LockTarget::Key(LockKey::from_template(key.to_string()))
}

fn parts_of<const N: usize>(all: [Listed; N]) -> LockTarget {
    LockTarget::Parts(all.into_iter().map(|listed| listed.0).collect())
}

fn request(what: LockTarget, settings: Settings) -> AcquireRequest {
    AcquireRequest {
        what,
        mode: settings.mode,
        permits: settings.permits,
        ttl: settings.ttl,
        wait: settings.wait,
        hold: settings.hold,
        linger: settings.linger,
        windows: settings.windows,
        is_fenced: false,
        is_reentrant: settings.is_reentrant,
        joins: true,
        has_ordered_lock: settings.has_ordered_lock,
        place: Some(Place::Attribute(settings.site)),
        label: None,
    }
}

#[cfg(test)]
mod tests {
    use super::{key_of, parts_of, request};
    use crate::private::{self, Settings, Site};
    use crate::request::Place;
    use crate::{LockRequest, Mode};

    #[test]
    fn request_of_attribute_keeps_its_site() {
        static SITE: Site = Site::new("order:{id}", "shop::orders", "src/orders.rs", 7);
        let site = &SITE;
        let request = request(key_of(format_args!("order:{}", 12)), Settings::of(site));
        assert!(matches!(request.place, Some(Place::Attribute(found)) if std::ptr::eq(found, site)));
        let shown = format!("{request:?}");
        assert!(shown.contains("\"order:{id}\" in shop::orders at src/orders.rs:7"), "{shown}");
        assert!(!format!("{:?}", LockRequest::new("order:12")).contains("place"));
    }

    #[test]
    fn list_of_keys_has_the_modes_of_the_attribute() {
        static SITE: Site = Site::new("a + b", "shop::config", "src/config.rs", 3);
        let all = [
            private::key(format_args!("a")).shared(),
            private::key(format_args!("b")),
            private::path(format_args!("/T/{}", private::part("x/y").segment())).exclusive(),
        ];
        let parts = request(parts_of(all), Settings::of(&SITE)).names("").unwrap();
        let found: Vec<_> = parts.iter().map(|part| format!("{} {:?}", part.name(), part.class)).collect();
        assert_eq!(found, ["/{T} IntentExclusive", "/{T}/x%2Fy Exclusive", "a Shared", "b Exclusive"]);
    }

    #[test]
    fn request_has_the_mode_of_the_attribute() {
        static SITE: Site = Site::new("config", "shop::config", "src/config.rs", 3);
        let mode = |settings| request(key_of(format_args!("config")), settings).mode;
        assert_eq!(mode(Settings::of(&SITE)), Mode::Exclusive);
        assert_eq!(mode(Settings::of(&SITE).shared()), Mode::Shared);
    }
}
