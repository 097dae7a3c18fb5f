//! Requests for several keys and for places in a tree, and options that they exclude.

use crate::error::LockError;
use crate::lock::InvalidKey;
use crate::lock::Mode;
use crate::lock::invalid_key::Reason;
use crate::lock::parts::Parts;
use crate::request::acquire_request::AcquireRequest;
use crate::request::invalid_placeholder::blamed;
use crate::request::lock_target::LockTarget;
use crate::request::{LockPart, Place};
use std::time::Duration;

/// Maximum number of keys and paths in one request. Each is a name at every node, in every command about the lock.
const MOST_PARTS: usize = 16;

/// Maximum number of names in one request, including the ancestors of its paths. Too large: one command keeps a server busy, and
/// other clients wait. Too small: deep paths cannot be locked together.
const MOST_NAMES: usize = 64;

impl AcquireRequest {
    /// Returns the requested names below `namespace`.
    ///
    /// # Errors
    /// [`LockError::InvalidKey`] for an invalid key or path; [`LockError::Configuration`] for options that exclude each other.
    pub(crate) fn parts(&self, namespace: &str) -> Result<Parts, LockError> {
        if let LockTarget::Parts(parts) = &self.what {
            self.check_parts(parts)?;
        }
        let parts = self.valid_names(namespace).map_err(|invalid| self.with_placeholder(invalid))?;
        self.check_mode(parts.mode())?;
        Ok(parts)
    }

    /// Returns the names, and checks each of them.
    ///
    /// # Errors
    /// [`InvalidKey`] for a name that cannot be locked.
    fn valid_names(&self, namespace: &str) -> Result<Parts, InvalidKey> {
        let parts = self.names(namespace)?;
        let invalid = parts.iter().find_map(|part| part.key.fault());
        invalid.map_or(Ok(parts), Err)
    }

    /// Adds the placeholder of the attribute whose value is invalid.
    fn with_placeholder(&self, invalid: InvalidKey) -> InvalidKey {
        let place = match &self.what {
            LockTarget::Key(_) => Some((0, 1)),
            LockTarget::Parts(parts) => parts.iter().position(LockPart::is_invalid).map(|nth| (nth, parts.len())),
        };
        match place.zip(self.place.and_then(Place::template)) {
            Some((place, template)) => blamed(invalid, template, place),
            None => invalid,
        }
    }

    /// Returns the requested names below `namespace`.
    ///
    /// # Errors
    /// [`InvalidKey`] if there are no names or too many, a key is too long, or a path is invalid.
    pub(crate) fn names(&self, namespace: &str) -> Result<Parts, InvalidKey> {
        match &self.what {
            LockTarget::Key(key) => {
                key.check_length()?;
                Ok(Parts::single(key.clone().below(namespace), self.mode))
            }
            LockTarget::Parts(parts) => all_of(parts, self.mode, namespace),
        }
    }

    /// Checks the options of a request for several keys, or for a path.
    ///
    /// # Errors
    /// [`LockError::Configuration`] for an option that works with one key only.
    fn check_parts(&self, parts: &[LockPart]) -> Result<(), LockError> {
        let what = if parts.iter().all(LockPart::is_key) { "several keys" } else { "a path" };
        let refused = if self.windows.is_some() {
            format!("once_per works with one key, and not with {what}: leave out one of the two")
        } else if self.linger.is_some_and(|linger| linger > Duration::ZERO) {
            format!("linger works with one key, and not with {what}: leave out one of the two")
        } else if parts.iter().any(LockPart::is_permit) {
            "Mode::Permit cannot be the mode of one part of a request: permits need a request for one key".to_owned()
        } else {
            return Ok(());
        };
        Err(LockError::configuration(refused))
    }
}

/// Merges the names of all parts.
///
/// # Errors
/// [`InvalidKey`] for too few parts, or too many.
fn all_of(parts: &[LockPart], mode: Mode, namespace: &str) -> Result<Parts, InvalidKey> {
    let count = parts.len();
    if count > MOST_PARTS {
        let message = format!(
            "a request for {count} keys and paths is too large: at most {MOST_PARTS} are allowed; lock a common parent"
        );
        return Err(InvalidKey::new(Reason::TooManyParts, message));
    }
    let mut names = Vec::new();
    for part in parts {
        names.extend(part.parts(mode)?.into_iter().map(|part| part.below(namespace)));
    }
    let Some(all) = Parts::of(names) else {
        return Err(InvalidKey::new(Reason::Empty, "a request without a key locks nothing: name at least one key"));
    };
    if all.len() > MOST_NAMES {
        let message = format!(
            "a request has {} names, including the parents of its paths, and at most {MOST_NAMES} are allowed: lock a \
             common parent path",
            all.len()
        );
        return Err(InvalidKey::new(Reason::TooManyParts, message));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LockRequest;
    use crate::lock::LockPath;
    use crate::lock::class::Class;

    fn names(request: &LockRequest) -> Vec<(String, Class)> {
        let LockTarget::Parts(parts) = &request.inner.what else { panic!("{request:?}") };
        let all = all_of(parts, request.inner.mode, "shop:").unwrap();
        all.iter().map(|part| (part.name().to_owned(), part.class)).collect()
    }

    #[test]
    fn request_mode_applies_to_parts_without_a_mode() {
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
    fn invalid_combinations_of_keys_are_refused() {
        let many = |count: usize| LockRequest::all((0..count).map(|n| format!("k{n}")));
        let deep = |count: usize| LockRequest::all((0..count).map(|n| LockPath::from(format!("/{n}/b/c/d/e/f/g/h/i"))));
        let table = [
            (many(0), "without a key"),
            (many(17), "a request for 17 keys"),
            (deep(8), "has 72 names"),
            (LockRequest::path("a"), "does not begin with `/`"),
            (LockRequest::all(["a", ""]), "the key is empty"),
            (LockRequest::all([LockPart::key("a"), LockPart::path("/b//c")]), "an empty segment"),
            (LockRequest::all(["a"]).linger(Duration::from_secs(1)), "linger"),
            (LockRequest::path("/a").once_per(Duration::from_secs(1)), "once_per"),
        ];
        for (request, expected) in table {
            let error = request.inner.parts("").unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert_eq!(names(&many(16)).len(), 16);
        assert_eq!(names(&deep(7)).len(), 63);
    }

    #[test]
    fn fencing_is_refused_if_all_parts_are_shared() {
        let fenced = |request: LockRequest| request.fencing().inner.parts("").unwrap_err().to_string();
        let parts = || [LockPart::shared("a"), "b".into()];
        assert!(fenced(LockRequest::all(parts()).mode(Mode::Shared)).contains("fencing"));
        assert!(fenced(LockRequest::path("/a").mode(Mode::Shared)).contains("fencing"));
        let mixed = LockRequest::all(parts()).fencing();
        assert_eq!(mixed.inner.parts("").unwrap().mode(), Mode::Exclusive);
    }

    #[test]
    fn single_key_in_any_form_is_equal_to_that_key() {
        let key = LockRequest::new("a").inner.parts("shop:").unwrap();
        for request in [LockRequest::all(["a"]), LockRequest::all(["a", "a"]), LockRequest::all([LockPart::key("a")])] {
            assert_eq!(request.inner.parts("shop:").unwrap(), key);
        }
        let both = LockRequest::all([LockPart::shared("a"), "a".into()]).inner.parts("shop:").unwrap();
        assert_eq!((both.is_single(), both.mode()), (true, Mode::Exclusive));
    }
}
