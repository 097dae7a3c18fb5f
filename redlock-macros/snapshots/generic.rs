async fn nightly<T: Job>(
    jobs: &[T],
    limit: Duration,
) -> Result<impl Iterator<Item = T>, Error> {
    let __acquire = {
        let __settings = crate::locks::__private::Settings {
            ttl: crate::locks::__private::Some({
                const __REDLOCK_TTL: crate::locks::__private::Duration = crate::locks::__private::checked_ttl(
                    LEASE,
                );
                __REDLOCK_TTL
            }),
            wait: crate::locks::__private::Some(crate::locks::__private::wait(limit)),
        };
        let __acquire = crate::locks::__private::acquire(
            crate::locks::__private::None,
            crate::locks::__private::format_args!("nightly"),
            __settings,
        );
        __acquire
    };
    let __outcome = '__call: {
        let __guard = match __acquire.await {
            crate::locks::__private::Ok(__guard) => __guard,
            crate::locks::__private::Err(__error) => {
                let __outcome = crate::locks::__private::Err(__error);
                break '__call __outcome;
            }
        };
        let __outcome = crate::locks::__private::hold(
                &__guard,
                async move {
                    let _ = (&limit, &jobs);
                    if let crate::locks::__private::Some(__output) = crate::locks::__private::None::<
                        Result<_, Error>,
                    > {
                        return __output;
                    }
                    run(jobs)
                },
            )
            .await;
        __outcome
    };
    match __outcome {
        crate::locks::__private::Ok(__output) => __output,
        crate::locks::__private::Err(__error) => {
            crate::locks::__private::from_lock_error::<Result<_, Error>>(__error)
        }
    }
}
