//! The options of the attribute as data.

use super::duration::Time;
use proc_macro2::Ident;
use syn::ext::IdentExt;
use syn::{Expr, LitStr, Path};

/// Options of an attribute.
#[derive(Default)]
pub(crate) struct Options {
    /// Value of `key` or `path`.
    pub(crate) key: Option<KeyTemplates>,
    pub(crate) mode: Mode,
    /// Maximum number of holders.
    pub(crate) permits: Option<Expr>,
    pub(crate) ttl: Option<Time>,
    pub(crate) wait: Option<Waiting>,
    pub(crate) manager: Option<Expr>,
    pub(crate) guard: Option<Ident>,
    /// `true` for `fencing`: the guard has a fencing token.
    pub(crate) is_fenced: bool,
    pub(crate) nested: Nested,
    pub(crate) order: Order,
    pub(crate) on_contended: Option<Contended>,
    pub(crate) on_error: Option<Expr>,
    pub(crate) on_lost: Lost,
    pub(crate) release: Release,
    pub(crate) krate: Option<Path>,
    pub(crate) renew: Option<bool>,
    pub(crate) max_hold: Option<Time>,
    pub(crate) min_hold: Option<Time>,
    pub(crate) linger: Option<Time>,
    pub(crate) once_per: Option<Time>,
    pub(crate) window_start: Option<Time>,
    pub(crate) on_failure: Failed,
    /// Word of another library for an order of waiting calls, if the user wrote one.
    pub(crate) fair: Option<Ident>,
    /// `true` if the attribute has a key, or an option that was meant as one. The key is then not reported as missing.
    pub(crate) has_key: bool,
    /// `true` if these are the defaults of a block, and not the options of a function.
    pub(crate) is_for_many: bool,
    /// `attribute = locked` in defaults: the name of the functions' attribute.
    pub(crate) attribute: Option<Ident>,
    /// Names of known options as written, including those with unreadable values.
    pub(super) names: Vec<Ident>,
    /// Names in the position of an option, known or unknown.
    pub(crate) written: Vec<Ident>,
    /// Names of the options from a surrounding block.
    pub(super) defaults: Vec<Ident>,
}

/// `"order:{id}"`, or several templates, with their named parts such as `id = order.id`.
pub(crate) struct KeyTemplates {
    pub(crate) first: KeyTemplate,
    /// Further templates of a list.
    pub(crate) others: Vec<KeyTemplate>,
    pub(crate) named: Vec<(Ident, Expr)>,
    /// `constant`: the key is intended to be the same for all calls.
    pub(crate) constant: Option<Ident>,
}

/// Template: `"order:{id}"`, `"/{tenant}"`, or `shared("config")` in a list.
pub(crate) struct KeyTemplate {
    pub(crate) literal: LitStr,
    pub(crate) is_path: bool,
    /// Mode of this key, if it differs from that of the request.
    pub(crate) mode: Option<Mode>,
}

impl KeyTemplates {
    pub(crate) fn all(&self) -> impl Iterator<Item = &KeyTemplate> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Returns `true` if there is exactly one key, and no path.
    pub(crate) fn is_one_key(&self) -> bool {
        self.others.is_empty() && !self.first.is_path
    }
}

/// Mode of a lock: exclusive or shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    #[default]
    Exclusive,
    Shared,
}

impl Mode {
    /// Returns the word in the attribute.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Exclusive => "exclusive",
            Self::Shared => "shared",
        }
    }
}

/// Limit of the wait.
pub(crate) enum Waiting {
    None,
    Forever,
    For(Time),
}

impl Waiting {
    pub(crate) const fn time(&self) -> Option<&Time> {
        match self {
            Self::For(time) => Some(time),
            Self::None | Self::Forever => None,
        }
    }
}

/// Output of a call that did not acquire the lock because another call holds it.
pub(crate) enum Contended {
    /// The value for a skipped call.
    Skip,
    Handler(Expr),
}

/// Behaviour of the body when its lock is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Lost {
    #[default]
    Cancel,
    Continue,
}

/// Use of the window when its body fails: it is kept, or returned to other calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Failed {
    #[default]
    Keep,
    Reopen,
}

/// Behaviour of a nested call with the same key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Nested {
    #[default]
    Refused,
    /// `reentrant`
    Enters,
}

/// Check of the order in which locks are acquired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Order {
    #[default]
    Checked,
    Unchecked,
}

/// Time of the release: in the background, or before the call returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Release {
    #[default]
    Background,
    Confirmed,
}

impl Options {
    /// Returns `true` if only a lock for the duration of the body is required. One call of the runtime then does
    /// everything.
    pub(crate) fn is_ordinary(&self) -> bool {
        let has_own_outcome = self.on_contended.is_some() || self.on_error.is_some();
        let has_own_end =
            self.on_lost != Lost::Cancel || self.release != Release::Background || self.returns_window_on_failure();
        self.guard.is_none() && !has_own_outcome && !has_own_end
    }

    /// Returns `true` if all keys are shared.
    pub(crate) fn is_shared(&self) -> bool {
        let is_shared = |mode: Option<Mode>| mode.unwrap_or(self.mode) == Mode::Shared;
        self.key.as_ref().map_or(is_shared(None), |key| key.all().all(|template| is_shared(template.mode)))
    }

    /// Returns `true` if a failed body returns its window. A default of a block may also apply to functions without
    /// windows, where it has no effect.
    pub(crate) fn returns_window_on_failure(&self) -> bool {
        self.once_per.is_some() && self.on_failure == Failed::Reopen
    }

    /// Returns `true` if the call may enter the lock of its caller. A default of a block has no effect on functions
    /// with windows.
    pub(crate) fn is_reentrant(&self) -> bool {
        self.nested == Nested::Enters && self.once_per.is_none()
    }

    /// Returns the name of an option, valid or not, from the function or a surrounding block.
    pub(crate) fn name(&self, option: &str) -> Option<&Ident> {
        self.own_name(option).or_else(|| self.defaults.iter().rev().find(|name| name.unraw() == option))
    }

    /// Returns the name of an option in the attribute itself.
    pub(crate) fn own_name(&self, option: &str) -> Option<&Ident> {
        self.names.iter().find(|name| name.unraw() == option)
    }

    /// Returns `true` if the attribute contains no option, valid or not.
    pub(crate) fn is_empty(&self) -> bool {
        self.written.is_empty()
    }

    /// Returns `true` if an option comes from a surrounding block.
    pub(crate) fn is_default(&self, name: &Ident) -> bool {
        self.own_name(&name.unraw().to_string()).is_none()
    }

    /// Turns the options so far into defaults, which the next options may replace. Their mistakes are reported
    /// elsewhere.
    pub(super) fn turn_into_defaults(&mut self) {
        self.defaults.append(&mut self.names);
        (self.fair, self.has_key) = (None, false);
        // An editor looks for the names in the attribute itself.
        self.written.clear();
        // Options of a single function are not defaults.
        (self.key, self.guard, self.is_fenced) = (None, None, false);
    }
}
