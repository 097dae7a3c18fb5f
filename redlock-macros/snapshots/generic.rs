async fn nightly<T: Job>(
    jobs: &[T],
    limit: Duration,
) -> Result<impl Iterator<Item = T>, Error> {
    let __acquire = {
        static __REDLOCK_SITE: crate::locks::__private::Site = crate::locks::__private::Site::new(
            "nightly",
            crate::locks::__private::module_path!(),
            crate::locks::__private::file!(),
            crate::locks::__private::line!(),
        );
        let __settings = crate::locks::__private::Settings::of(&__REDLOCK_SITE)
            .ttl({
                const __REDLOCK_TTL: crate::locks::__private::Duration = crate::locks::__private::checked_ttl(
                    LEASE,
                );
                __REDLOCK_TTL
            })
            .wait(limit);
        let __acquire = crate::locks::__private::acquire(
            crate::locks::__private::None,
            ::core::format_args!("nightly"),
            __settings,
        );
        __acquire
    };
    return crate::locks::__private::locked(
            __acquire,
            async move {
                let _ = (&limit, &jobs);
                if let crate::locks::__private::Some(__output) = crate::locks::__private::None::<
                    Result<_, Error>,
                > {
                    return __output;
                }
                run(jobs)
            },
            <Result<_, Error> as crate::locks::__private::FromLockError>::from_lock_error,
        )
        .await;
}
