//! All annotated functions of a program.

use crate::error::SourceLine;
use crate::request::site::Site;
use std::collections::BTreeMap;
use std::fmt;

/// An annotated function, as [`sites`] lists it.
#[derive(Clone, Copy)]
pub struct ListedSite {
    site: &'static Site,
    /// The name of the function, which tells the functions apart that one call of a macro has made.
    function: &'static str,
    options: &'static str,
}

inventory::collect!(ListedSite);

impl ListedSite {
    /// What the attribute knows about itself.
    #[doc(hidden)]
    #[must_use]
    pub const fn new(site: &'static Site, function: &'static str, options: &'static str) -> Self {
        Self { site, function, options }
    }

    /// Everything that the attribute has said about the function.
    fn said(&self) -> (&'static str, SourceLine, &'static str, &'static str, &'static str) {
        (self.template(), self.line(), self.module(), self.function, self.options)
    }

    /// The key as it was written, with its placeholders.
    #[must_use]
    pub const fn template(&self) -> &'static str {
        self.site.template()
    }

    /// What the attribute says, in the words of the source.
    #[must_use]
    pub const fn options(&self) -> &'static str {
        self.options
    }

    /// The module of the function.
    #[must_use]
    pub const fn module(&self) -> &'static str {
        self.site.module()
    }

    /// Where the attribute stands.
    #[must_use]
    pub const fn line(&self) -> SourceLine {
        self.site.line()
    }
}

impl fmt::Debug for ListedSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.site.fmt(f)
    }
}

/// All functions of this program with `#[distributed_lock]`, by template and line.
///
/// A function that another attribute copies, as `#[axum::debug_handler]` does, is listed once. The list has the functions of all
/// linked crates, even those without a caller. It has no functions that a `cfg` leaves out, and no calls that are written by hand.
///
/// # Examples
/// Two functions with one template have one lock. Where that is not meant, a test finds it:
/// ```standalone_crate
/// use redlock_runtime::admin::sites;
/// use redlock_runtime::{LockError, distributed_lock};
///
/// #[distributed_lock(key = "order:{id}", ttl = 30)]
/// async fn capture(id: u64) -> Result<(), LockError> {
///     Ok(())
/// }
///
/// // Copied, and the key was forgotten.
/// #[distributed_lock(key = "order:{id}")]
/// async fn refresh_stock(id: u64) -> Result<(), LockError> {
///     Ok(())
/// }
///
/// let all = sites();
/// let duplicates = all.duplicates();
/// assert_eq!(duplicates.len(), 1, "{duplicates:?}");
/// assert_eq!((duplicates[0].len(), duplicates[0][0].template()), (2, "order:{id}"));
/// assert_eq!(duplicates[0][0].options(), "key = \"order:{id}\", ttl = 30");
/// ```
#[must_use]
pub fn sites() -> ListedSites {
    let mut all: Vec<_> = inventory::iter::<ListedSite>.into_iter().copied().collect();
    all.sort_by_key(ListedSite::said);
    // An attribute below, such as `#[axum::debug_handler]`, copies the code of the function into others.
    all.dedup_by_key(|site| site.said());
    ListedSites(all)
}

/// The annotated functions of a program, made by [`sites`].
#[derive(Clone, Debug)]
pub struct ListedSites(Vec<ListedSite>);

impl ListedSites {
    /// All of them, by template and line.
    pub fn iter(&self) -> impl Iterator<Item = &ListedSite> {
        self.0.iter()
    }

    /// Those whose template another one has as well, for each such template. They exclude each other if their arguments are
    /// equal, which is what some of them are for: a test leaves out those that it knows.
    #[must_use]
    pub fn duplicates(&self) -> Vec<Vec<ListedSite>> {
        let mut by_template = BTreeMap::<_, Vec<_>>::new();
        for site in &self.0 {
            by_template.entry(site.template()).or_default().push(*site);
        }
        by_template.into_values().filter(|sites| sites.len() > 1).collect()
    }
}
