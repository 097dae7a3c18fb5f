//! What the annotated function is: which form it has, what its arguments are called and where they go, where its body
//! stands, and what each placeholder of its key means.
//!
//! Here belongs whatever is found out about the function from its tokens. A rule that refuses a function or an option
//! does not belong here but in `check`; what is generated for the answers belongs in `expand`.

pub(crate) mod async_trait;
pub(crate) mod bindings;
pub(crate) mod block;
pub(crate) mod captures;
pub(crate) mod form;
pub(crate) mod future;
pub(crate) mod identity;
pub(crate) mod item;
pub(crate) mod key;
pub(crate) mod lints;
pub(crate) mod mentions;
pub(crate) mod output;
mod words;
