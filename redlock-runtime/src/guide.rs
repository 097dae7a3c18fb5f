#![doc = include_str!("../docs/guide/index.md")]

/// A module for each part of the guide, and in it one for each page of `docs/guide/<part>`, in reading order.
macro_rules! guide {
    ($($(#[doc = $about:literal])+ $part:ident: $($page:ident)+;)+) => {$(
        $(#[doc = $about])+
        pub mod $part {$(
            #[doc = include_str!(concat!("../docs/guide/", stringify!($part), "/", stringify!($page), ".md"))]
            pub mod $page {}
        )+}
    )+};
}

guide! {
    /// First steps: a locked function, the facts to know before the first deployment, and the choice of a lock.
    start: quick_start essentials which_lock;
    /// Complete programs for common tasks.
    recipes: axum tonic actix authorization scheduled_job leader_election transfer sql_transaction configuration
        semaphore rate_limit folders blocking_code queue_worker fencing fencing_postgres fencing_redis fencing_http
        testing;
    /// Servers, settings, failures and monitoring.
    production: topology single_server several_servers sentinel cluster managed server_settings start_and_stop durations failures
        monitoring security;
    /// Errors, messages, keys, limits, background.
    reference: errors keys limits how_it_works verification versions migrating;
}
