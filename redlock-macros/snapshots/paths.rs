async fn rename(tenant: u64, from: &str, to: &str) -> Result<(), Error> {
    let __acquire = {
        static __REDLOCK_SITE: ::redlock_runtime::__private::Site = ::redlock_runtime::__private::Site::new(
            "\"/{tenant}/{from}\" + \"/{tenant}/{to}\"",
            ::redlock_runtime::__private::module_path!(),
            ::redlock_runtime::__private::file!(),
            ::redlock_runtime::__private::line!(),
        );
        let __settings = ::redlock_runtime::__private::Settings::of(&__REDLOCK_SITE);
        let __all = [
            {
                let tenant: &::redlock_runtime::__private::u64 = &tenant;
                let from = ::redlock_runtime::__private::part(&*from).segment();
                ::redlock_runtime::__private::path(
                    ::core::format_args!("/{tenant}/{from}"),
                )
            },
            {
                let tenant: &::redlock_runtime::__private::u64 = &tenant;
                let to = ::redlock_runtime::__private::part(&*to).segment();
                ::redlock_runtime::__private::path(
                    ::core::format_args!("/{tenant}/{to}"),
                )
            },
        ];
        let __acquire = ::redlock_runtime::__private::acquire_all(
            ::redlock_runtime::__private::None,
            __all,
            __settings,
        );
        __acquire
    };
    return ::redlock_runtime::__private::locked(
            __acquire,
            async move {
                let _ = (&to, &from, &tenant);
                if let ::redlock_runtime::__private::Some(__output) = ::redlock_runtime::__private::None::<
                    Result<(), Error>,
                > {
                    return __output;
                }
                move_all(tenant, from, to).await
            },
            <Result<
                (),
                Error,
            > as ::redlock_runtime::__private::FromLockError>::from_lock_error,
        )
        .await;
}
