//! List of the annotated functions of a program.

use crate::error::SourceLine;
use crate::request::site::Site;
use std::collections::BTreeMap;
use std::fmt;

/// Annotated function, as [`sites`] lists it.
#[derive(Clone, Copy)]
pub struct ListedSite {
    site: &'static Site,
    /// Name of the function. It distinguishes functions that one macro call has generated.
    function: &'static str,
    options: &'static str,
}

inventory::collect!(ListedSite);

impl ListedSite {
    /// Creates an entry. Generated code calls it.
    #[doc(hidden)]
    #[must_use]
    pub const fn new(site: &'static Site, function: &'static str, options: &'static str) -> Self {
        Self { site, function, options }
    }

    /// Returns all fields, to compare and sort entries.
    fn said(&self) -> (&'static str, SourceLine, &'static str, &'static str, &'static str) {
        (self.template(), self.line(), self.module(), self.function, self.options)
    }

    /// Returns the key of the attribute, with its placeholders.
    #[must_use]
    pub const fn template(&self) -> &'static str {
        self.site.template()
    }

    /// Returns the options of the attribute, as they are written in the source.
    #[must_use]
    pub const fn options(&self) -> &'static str {
        self.options
    }

    /// Returns the module of the function.
    #[must_use]
    pub const fn module(&self) -> &'static str {
        self.site.module()
    }

    /// Returns the source line of the attribute.
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

/// Returns all functions of this program with `#[distributed_lock]`, sorted by template and line.
///
/// The list includes the functions of all linked crates, even functions without a caller. A function that another attribute copies, as
/// `#[axum::debug_handler]` does, is listed once. Functions that a `cfg` removes are not listed, and neither are calls without the
/// attribute.
///
/// # Examples
/// Two functions with the same template use the same lock. A test can check that this is intended:
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

/// Annotated functions of a program, as [`sites`] returns them.
#[derive(Clone, Debug)]
pub struct ListedSites(Vec<ListedSite>);

impl ListedSites {
    /// Returns all functions, sorted by template and line.
    pub fn iter(&self) -> impl Iterator<Item = &ListedSite> {
        self.0.iter()
    }

    /// Returns the functions that share their template with another function, one group for each template.
    ///
    /// Such functions exclude each other if their arguments are equal. If that is intended, a test should skip them.
    #[must_use]
    pub fn duplicates(&self) -> Vec<Vec<ListedSite>> {
        let mut by_template = BTreeMap::<_, Vec<_>>::new();
        for site in &self.0 {
            by_template.entry(site.template()).or_default().push(*site);
        }
        by_template.into_values().filter(|sites| sites.len() > 1).collect()
    }
}
