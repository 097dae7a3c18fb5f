//! Requests for several keys and for places in a tree, and what does not go with them.

use crate::error::LockError;
use crate::lock::InvalidKey;
use crate::lock::invalid_key::Reason;
use crate::lock::parts::Parts;
use crate::lock::{LockKey, LockPath, Mode};
use crate::request::blame::blamed;
use crate::request::what::What;
use crate::request::{LockPart, LockRequest, Place};
use std::time::Duration;

/// The most keys and paths of one request. Each is a name at every node, in every command about the lock.
const MOST_PARTS: usize = 16;

/// The most names of one request, with what is above its paths. More, and one command keeps a server busy for longer than
/// others should have to wait.
const MOST_NAMES: usize = 64;

impl LockRequest {
    /// A request for several keys, all or none of them, with the manager's defaults. For what belongs together and is locked by
    /// itself elsewhere, such as the two accounts of a transfer.
    ///
    /// The order of the keys says nothing: calls that want the same keys in another order do not wait for each other in a
    /// circle. A call waits until all of its keys are free at once, and holds none of them in the meantime. Equal keys are one;
    /// where one of them is shared and the other is not, the key is exclusive.
    ///
    /// Each part is a key, a [`LockPath`], or a [`LockPart`] with a mode of its own; [`mode`](Self::mode) is that of the others.
    ///
    /// # What is different from one key
    /// - In a cluster, all names of a request must be in one slot: put what they have in common into a hash tag, as in
    ///   `{acme}:from` and `{acme}:to`.
    /// - Each call asks the nodes: there is no handover inside of a process, and nothing to [`linger`](Self::linger).
    /// - There is no [`once_per`](Self::once_per), which numbers the windows of one key.
    /// - A [fencing token](crate::FencingToken) is one for all keys that are not shared, above those of all calls that have had any of
    ///   them alone before. Keys that a call only shares are left out: whoever has one alone after it need not be above. Where
    ///   everything is shared there is none.
    /// - Errors and events show all keys, as in `"a" + "b"`; [`LockGuard::keys`](crate::LockGuard::keys) has each.
    ///
    /// # Errors
    /// When it is acquired: [`LockError::InvalidKey`] for no part, more than 16, or more than 64 names with what is above the
    /// paths, and for a part that is no key or path; [`LockError::Configuration`] for keys in different slots of a cluster, together
    /// with `once_per` or `linger`, and for a fencing token where all are shared.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager, LockPart, LockRequest};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let manager = LockManager::in_memory();
    /// let guard = manager.acquire(LockRequest::all(["account:8", "account:7"])).await?;
    /// assert_eq!(guard.keys().count(), 2);
    /// assert!(manager.try_acquire("account:7").await.unwrap_err().is_contended());
    /// let request = || LockRequest::all([LockPart::shared("config"), "job:7".into()]);
    /// manager.acquire(request()).await?.release().await
    /// # }
    /// ```
    pub fn all<P: Into<LockPart>>(parts: impl IntoIterator<Item = P>) -> Self {
        Self::of(What::Parts(parts.into_iter().map(Into::into).collect()))
    }

    /// A request for a place in a tree and everything below it, with the manager's defaults.
    ///
    /// A path excludes itself, what is above it and what is below it, if one of the two is exclusive; its siblings it does not.
    /// So whoever has `/acme/reports` may move the folder while others write in `/acme/invoices`, and nobody in
    /// `/acme/reports/2024`. The root `/` cannot be locked.
    ///
    /// In Redis, `/acme/reports` is the name `/{acme}/reports`, and so it is called in errors and events. Everything below the
    /// first segment is in one slot of a cluster. A key and a path of the same name in Redis exclude each other, and the key
    /// knows nothing of what is below.
    ///
    /// For several, give [`all`](Self::all) a [`LockPath`] for each.
    ///
    /// # Errors
    /// When it is acquired: [`LockError::InvalidKey`] for what [`LockPath::check`] refuses, such as an empty segment or one that is
    /// `..`; [`LockError::Configuration`] together with `once_per` or `linger`.
    ///
    /// # Examples
    /// ```
    /// # use redlock_runtime::{LockError, LockManager, LockRequest};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let manager = LockManager::in_memory();
    /// let guard = manager.acquire(LockRequest::path("/acme/reports")).await?;
    /// assert_eq!(guard.key().as_str(), "/{acme}/reports");
    /// for path in ["/acme", "/acme/reports/2024"] {
    ///     assert!(manager.try_acquire(LockRequest::path(path)).await.unwrap_err().is_contended());
    /// }
    /// manager.acquire(LockRequest::path("/acme/invoices")).await?;
    /// # Ok(()) }
    /// ```
    pub fn path(path: impl Into<LockPath>) -> Self {
        Self::all([path.into()])
    }

    /// The key, if it is a request for one key and nothing else.
    pub(crate) const fn key(&self) -> Option<&LockKey> {
        match &self.what {
            What::Key(key) => Some(key),
            What::Parts(_) => None,
        }
    }

    /// What the request wants at the nodes, below `namespace`.
    ///
    /// # Errors
    /// [`LockError::InvalidKey`] for what cannot be locked; [`LockError::Configuration`] for options that do not go with it.
    pub(crate) fn parts(&self, namespace: &str) -> Result<Parts, LockError> {
        if let What::Parts(parts) = &self.what {
            self.check_parts(parts)?;
        }
        let parts = self.valid_names(namespace).map_err(|invalid| self.with_placeholder(invalid))?;
        self.check_mode(parts.mode())?;
        Ok(parts)
    }

    /// # Errors
    /// What cannot be locked.
    fn valid_names(&self, namespace: &str) -> Result<Parts, InvalidKey> {
        let parts = self.names(namespace)?;
        let invalid = parts.iter().find_map(|part| part.key.fault());
        invalid.map_or(Ok(parts), Err)
    }

    /// What is wrong, with the placeholder of the attribute whose value makes it so.
    fn with_placeholder(&self, invalid: InvalidKey) -> InvalidKey {
        let place = match &self.what {
            What::Key(_) => Some((0, 1)),
            What::Parts(parts) => parts.iter().position(LockPart::is_invalid).map(|nth| (nth, parts.len())),
        };
        match place.zip(self.place.and_then(Place::template)) {
            Some((place, template)) => blamed(invalid, template, place),
            None => invalid,
        }
    }

    /// The names that it wants, below `namespace`.
    ///
    /// # Errors
    /// For no name, too many of them, a key that is too long, or a path that is none.
    pub(crate) fn names(&self, namespace: &str) -> Result<Parts, InvalidKey> {
        match &self.what {
            What::Key(key) => {
                key.check_length()?;
                Ok(Parts::single(key.clone().below(namespace), self.mode))
            }
            What::Parts(parts) => all_of(parts, self.mode, namespace),
        }
    }

    /// # Errors
    /// [`LockError::Configuration`] for what does not go with several keys, or with a path.
    fn check_parts(&self, parts: &[LockPart]) -> Result<(), LockError> {
        let what = if parts.iter().all(LockPart::is_key) { "several keys" } else { "a path" };
        let refused = if self.windows.is_some() {
            format!("once_per numbers the windows of one key, and {what} are none: leave out one of the two")
        } else if self.linger.is_some_and(|linger| linger > Duration::ZERO) {
            format!("linger leaves one key to the next call of this process, and not {what}: leave out one of the two")
        } else if parts.iter().any(LockPart::is_permit) {
            "Mode::Permit is no mode of one part of a request: permits are of one key".to_owned()
        } else {
            return Ok(());
        };
        Err(LockError::configuration(refused))
    }
}

/// # Errors
/// For too few of them, or too many.
fn all_of(parts: &[LockPart], mode: Mode, namespace: &str) -> Result<Parts, InvalidKey> {
    let count = parts.len();
    if count > MOST_PARTS {
        let message = format!(
            "a request for {count} keys and paths is too large: at most {MOST_PARTS} are allowed; lock what they are parts of"
        );
        return Err(InvalidKey::new(Reason::TooManyParts, message));
    }
    let mut names = Vec::new();
    for part in parts {
        names.extend(part.parts(mode)?.into_iter().map(|part| part.below(namespace)));
    }
    let Some(all) = Parts::of(names) else {
        return Err(InvalidKey::new(Reason::Empty, "a request for no key locks nothing: name one key at least"));
    };
    if all.len() > MOST_NAMES {
        let message = format!(
            "a request has {} names with what is above its paths, and at most {MOST_NAMES} are allowed: lock a place above \
             several of them",
            all.len()
        );
        return Err(InvalidKey::new(Reason::TooManyParts, message));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::class::Class;

    fn names(request: &LockRequest) -> Vec<(String, Class)> {
        let What::Parts(parts) = &request.what else { panic!("{request:?}") };
        let all = all_of(parts, request.mode, "shop:").unwrap();
        all.iter().map(|part| (part.name().to_owned(), part.class)).collect()
    }

    #[test]
    fn the_mode_of_the_request_is_that_of_parts_without_one() {
        let parts = || [LockPart::shared("a"), "b".into(), LockPart::path("/T/x").mode(Mode::Exclusive)];
        assert_eq!(
            names(&LockRequest::all(parts())),
            [
                ("shop:/{T}".to_owned(), Class::IntentExclusive),
                ("shop:/{T}/x".to_owned(), Class::Exclusive),
                ("shop:a".to_owned(), Class::Shared),
                ("shop:b".to_owned(), Class::Exclusive),
            ]
        );
        let shared = names(&LockRequest::all(parts()).mode(Mode::Shared));
        assert_eq!(shared.iter().filter(|(_, class)| *class == Class::Shared).count(), 2);
    }

    #[test]
    fn what_cannot_be_locked_together() {
        let many = |count: usize| LockRequest::all((0..count).map(|n| format!("k{n}")));
        let deep = |count: usize| LockRequest::all((0..count).map(|n| LockPath::from(format!("/{n}/b/c/d/e/f/g/h/i"))));
        let table = [
            (many(0), "no key"),
            (many(17), "a request for 17 keys"),
            (deep(8), "has 72 names"),
            (LockRequest::path("a"), "does not begin with `/`"),
            (LockRequest::all(["a", ""]), "the key is empty"),
            (LockRequest::all([LockPart::key("a"), LockPart::path("/b//c")]), "an empty segment"),
            (LockRequest::all(["a"]).linger(Duration::from_secs(1)), "linger"),
            (LockRequest::path("/a").once_per(Duration::from_secs(1)), "once_per"),
        ];
        for (request, expected) in table {
            let error = request.parts("").unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert_eq!(names(&many(16)).len(), 16);
        assert_eq!(names(&deep(7)).len(), 63);
    }

    #[test]
    fn a_fencing_token_orders_nothing_if_all_parts_are_shared() {
        let fenced =
            |request: LockRequest| LockRequest { is_fenced: true, ..request }.parts("").unwrap_err().to_string();
        let parts = || [LockPart::shared("a"), "b".into()];
        assert!(fenced(LockRequest::all(parts()).mode(Mode::Shared)).contains("fencing"));
        assert!(fenced(LockRequest::path("/a").mode(Mode::Shared)).contains("fencing"));
        let mixed = LockRequest { is_fenced: true, ..LockRequest::all(parts()) };
        assert_eq!(mixed.parts("").unwrap().mode(), Mode::Exclusive);
    }

    #[test]
    fn one_key_in_whatever_form_is_that_key() {
        let key = LockRequest::new("a").parts("shop:").unwrap();
        for request in [LockRequest::all(["a"]), LockRequest::all(["a", "a"]), LockRequest::all([LockPart::key("a")])] {
            assert_eq!(request.parts("shop:").unwrap(), key);
        }
        let both = LockRequest::all([LockPart::shared("a"), "a".into()]).parts("shop:").unwrap();
        assert_eq!((both.is_single(), both.mode()), (true, Mode::Exclusive));
    }
}
