//! What the attribute says, as data.

use super::duration::Time;
use proc_macro2::Ident;
use syn::ext::IdentExt;
use syn::{Expr, LitStr, Path};

/// What the attribute says.
#[derive(Default)]
pub(crate) struct Options {
    /// What `key` or `path` says.
    pub(crate) key: Option<KeyTemplates>,
    pub(crate) mode: Mode,
    /// How many may have the lock at a time.
    pub(crate) permits: Option<Expr>,
    pub(crate) ttl: Option<Time>,
    pub(crate) wait: Option<Waiting>,
    pub(crate) manager: Option<Expr>,
    pub(crate) guard: Option<Ident>,
    /// `fencing`: the lock comes with a fencing token.
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
    /// What another library calls an order among waiting calls, where the user wrote such a word.
    pub(crate) fair: Option<Ident>,
    /// Whether the attribute has a key, or something that was meant as one: then no key is reported as missing.
    pub(crate) has_key: bool,
    /// Whether these are the defaults of a block, and not the options of a function.
    pub(crate) is_for_many: bool,
    /// `attribute = locked`, in defaults: how the attribute of the functions is called.
    pub(crate) attribute: Option<Ident>,
    /// The names of the options that exist, as they were written, also of those whose values could not be read.
    pub(super) names: Vec<Ident>,
    /// The names that stand in the place of an option, whether there is such an option or not.
    pub(crate) written: Vec<Ident>,
    /// The names of the options that come from a block around the function.
    pub(super) defaults: Vec<Ident>,
}

/// `"order:{id}"` or several of them, and the named parts beside, such as `id = order.id`.
pub(crate) struct KeyTemplates {
    pub(crate) first: KeyTemplate,
    /// Those behind it in a list.
    pub(crate) others: Vec<KeyTemplate>,
    pub(crate) named: Vec<(Ident, Expr)>,
    /// `constant`: the user says that all calls are meant to have this key.
    pub(crate) constant: Option<Ident>,
}

/// `"order:{id}"`, `"/{tenant}"`, or `shared("config")` in a list.
pub(crate) struct KeyTemplate {
    pub(crate) literal: LitStr,
    pub(crate) is_path: bool,
    /// If it is not that of all.
    pub(crate) mode: Option<Mode>,
}

impl KeyTemplates {
    pub(crate) fn all(&self) -> impl Iterator<Item = &KeyTemplate> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Whether it is one key and no path.
    pub(crate) fn is_one_key(&self) -> bool {
        self.others.is_empty() && !self.first.is_path
    }
}

/// Whether the lock is for one call alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    #[default]
    Exclusive,
    Shared,
}

impl Mode {
    /// As it is written.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Exclusive => "exclusive",
            Self::Shared => "shared",
        }
    }
}

/// How long to wait.
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

/// What a call gives that did not obtain the lock because another holds it.
pub(crate) enum Contended {
    /// The value that says that nothing was done.
    Skip,
    Handler(Expr),
}

/// What becomes of the body when the lease has run out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Lost {
    #[default]
    Cancel,
    Continue,
}

/// What becomes of the window when the body has failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Failed {
    #[default]
    Keep,
    GiveBack,
}

/// What becomes of a call in the body of another with the same key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Nested {
    #[default]
    Refused,
    /// `reentrant`
    Enters,
}

/// Whether the manager looks at the order in which locks are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Order {
    #[default]
    Checked,
    Unchecked,
}

/// Whether the call waits for the answer to its release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Release {
    #[default]
    Background,
    Confirmed,
}

impl Options {
    /// Whether nothing is asked for but a lock that is held while the body runs: then one call does all of it.
    pub(crate) fn is_ordinary(&self) -> bool {
        let has_own_outcome = self.on_contended.is_some() || self.on_error.is_some();
        let has_own_end =
            self.on_lost != Lost::Cancel || self.release != Release::Background || self.gives_windows_back();
        self.guard.is_none() && !has_own_outcome && !has_own_end
    }

    /// Whether others may share all that is locked.
    pub(crate) fn is_shared(&self) -> bool {
        let is_shared = |mode: Option<Mode>| mode.unwrap_or(self.mode) == Mode::Shared;
        self.key.as_ref().map_or(is_shared(None), |key| key.all().all(|template| is_shared(template.mode)))
    }

    /// Whether a body that fails gives its window back. A default of a block may say so for functions without windows.
    pub(crate) fn gives_windows_back(&self) -> bool {
        self.once_per.is_some() && self.on_failure == Failed::GiveBack
    }

    /// Whether the call may enter the lock of its caller. As a default of a block, it says nothing for functions with windows.
    pub(crate) fn enters_its_own(&self) -> bool {
        self.nested == Nested::Enters && self.once_per.is_none()
    }

    /// The name of an option that was given, rightly or wrongly, by the function or by a block around it.
    pub(crate) fn name(&self, option: &str) -> Option<&Ident> {
        self.own_name(option).or_else(|| self.defaults.iter().rev().find(|name| name.unraw() == option))
    }

    /// The name of an option that the attribute itself gives.
    pub(crate) fn own_name(&self, option: &str) -> Option<&Ident> {
        self.names.iter().find(|name| name.unraw() == option)
    }

    /// Whether nothing was given, rightly or wrongly.
    pub(crate) fn is_empty(&self) -> bool {
        self.written.is_empty()
    }

    /// Whether an option comes from a block around the function.
    pub(crate) fn is_default(&self, name: &Ident) -> bool {
        self.own_name(&name.unraw().to_string()).is_none()
    }

    /// Makes what was read so far something that the next options may replace. What is wrong with it was told elsewhere.
    pub(super) fn become_defaults(&mut self) {
        self.defaults.append(&mut self.names);
        (self.fair, self.has_key) = (None, false);
        // An editor looks for what is written in the attribute itself.
        self.written.clear();
        // What belongs to one function is no default.
        (self.key, self.guard, self.is_fenced) = (None, None, false);
    }
}
