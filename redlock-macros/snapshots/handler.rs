async fn nightly(#[cfg(test)] shard: u64) -> bool {
    const _: () = {
        #[deprecated(
            note = "this key contains no argument, so all calls of `nightly` exclude each other: add an argument, as in `key = \"nightly:{shard}\"`, or write `key(\"nightly\", constant)` if this is intended"
        )]
        const fn distributed_lock() {}
        distributed_lock()
    };
    let __acquire = {
        static __REDLOCK_SITE: ::redlock_runtime::__private::Site = ::redlock_runtime::__private::Site::new(
            "nightly",
            ::redlock_runtime::__private::module_path!(),
            ::redlock_runtime::__private::file!(),
            ::redlock_runtime::__private::line!(),
        );
        let __settings = ::redlock_runtime::__private::Settings::of(&__REDLOCK_SITE);
        let __acquire = ::redlock_runtime::__private::acquire(
            ::redlock_runtime::__private::None,
            ::core::format_args!("nightly"),
            __settings,
        );
        __acquire
    };
    let __outcome: ::redlock_runtime::__private::Result<
        bool,
        ::redlock_runtime::__private::LockError,
    > = '__call: {
        let __guard = match __acquire.await {
            ::redlock_runtime::__private::Ok(__guard) => __guard,
            ::redlock_runtime::__private::Err(__error) => {
                let __outcome = ::redlock_runtime::__private::Err(__error);
                break '__call __outcome;
            }
        };
        let __outcome = ::redlock_runtime::__private::hold(
                &__guard,
                async move {
                    let _ = (#[cfg(test)] &shard,);
                    if let ::redlock_runtime::__private::Some(__output) = ::redlock_runtime::__private::None::<
                        bool,
                    > {
                        return __output;
                    }
                    run(shard)
                },
            )
            .await;
        __outcome
    };
    return match __outcome {
        ::redlock_runtime::__private::Ok(__output) => __output,
        ::redlock_runtime::__private::Err(__error) => {
            ::redlock_runtime::__private::handle_lock_error::<
                bool,
            >(|error| error.is_contended(), __error)
        }
    };
}
