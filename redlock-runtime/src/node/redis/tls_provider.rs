//! Selection of the cryptography provider for TLS: the provider that the program already has for rustls.
//!
//! rustls takes a provider from its features, which all crates of a program share. If two of them are enabled, `ClientConfig::builder()`
//! panics in all code that has not installed a provider. This crate therefore enables no feature for the whole program, installs no
//! provider, and never leaves the choice to rustls.

use std::sync::Arc;
use tokio_rustls::rustls::crypto::CryptoProvider;

/// Returns the provider that the program has installed, or else any provider with which rustls was built.
pub(super) fn find() -> Option<Arc<CryptoProvider>> {
    CryptoProvider::get_default().cloned().or_else(|| built_in::aws_lc_rs().or_else(built_in::ring).map(Arc::new))
}

/// The providers with which rustls was built.
///
/// A crate does not see the features of another one, but it sees its modules: rustls has the module `crypto::ring` if it was built with
/// that provider. In the functions below, a glob import brings this module into scope and hides the outer module of the same name. If
/// rustls lacks it, the outer module is found, which has no provider.
#[allow(
    clippy::useless_conversion,
    clippy::wildcard_imports,
    dead_code,
    unused_imports,
    reason = "one of the two modules is never used, and which one depends on other crates"
)]
mod built_in {
    use tokio_rustls::rustls::crypto::CryptoProvider;

    mod aws_lc_rs {
        pub(super) const fn default_provider() -> Option<super::CryptoProvider> {
            None
        }
    }

    mod ring {
        pub(super) const fn default_provider() -> Option<super::CryptoProvider> {
            None
        }
    }

    pub(super) fn aws_lc_rs() -> Option<CryptoProvider> {
        use tokio_rustls::rustls::crypto::*;
        aws_lc_rs::default_provider().into()
    }

    pub(super) fn ring() -> Option<CryptoProvider> {
        use tokio_rustls::rustls::crypto::*;
        ring::default_provider().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_rustls_providers_are_found_but_not_installed() {
        assert!(cfg!(not(feature = "tls-aws-lc-rs")) || built_in::aws_lc_rs().is_some());
        assert!(cfg!(not(feature = "tls-ring")) || built_in::ring().is_some());
        assert_eq!(find().is_some(), built_in::aws_lc_rs().is_some() || built_in::ring().is_some());
        assert!(CryptoProvider::get_default().is_none(), "that is for the program to decide");
    }
}
