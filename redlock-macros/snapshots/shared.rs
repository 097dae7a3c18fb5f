async fn read(name: &str) -> Result<String, Error> {
    let __acquire = {
        static __REDLOCK_SITE: ::redlock_runtime::__private::Site = ::redlock_runtime::__private::Site::new(
            "config",
            ::redlock_runtime::__private::module_path!(),
            ::redlock_runtime::__private::file!(),
            ::redlock_runtime::__private::line!(),
        );
        let __settings = ::redlock_runtime::__private::Settings::of(&__REDLOCK_SITE)
            .shared()
            .ttl_millis(10000u64);
        let __acquire = ::redlock_runtime::__private::acquire(
            ::redlock_runtime::__private::None,
            ::core::format_args!("config"),
            __settings,
        );
        __acquire
    };
    return ::redlock_runtime::__private::locked(
            __acquire,
            async move {
                let _ = (&name,);
                if let ::redlock_runtime::__private::Some(__output) = ::redlock_runtime::__private::None::<
                    Result<String, Error>,
                > {
                    return __output;
                }
                load(name).await
            },
            <Result<
                String,
                Error,
            > as ::redlock_runtime::__private::FromLockError>::from_lock_error,
        )
        .await;
}
