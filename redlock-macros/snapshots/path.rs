async fn read(tenant: &str, file: File, major: u32, minor: &str) -> Result<Data, Error> {
    let __acquire = {
        static __REDLOCK_SITE: ::redlock_runtime::__private::Site = ::redlock_runtime::__private::Site::new(
            "/{tenant}/5%/{dir:/}/v{major}-{minor}",
            ::redlock_runtime::__private::module_path!(),
            ::redlock_runtime::__private::file!(),
            ::redlock_runtime::__private::line!(),
        );
        let __settings = ::redlock_runtime::__private::Settings::of(&__REDLOCK_SITE)
            .shared();
        let __named0 = &(file.folder());
        let __all = [
            ::redlock_runtime::__private::path(
                ::core::format_args!(
                    "/{__part0}/5%25/{__part1}/v{__part2}-{__part3}", __part0 =
                    ::redlock_runtime::__private::part(& * tenant).segment(), __part1 =
                    ::redlock_runtime::__private::part(& (* __named0)).subpath(), __part2
                    = ::redlock_runtime::__private::part(& major).in_segment(& ['-']),
                    __part3 = ::redlock_runtime::__private::part(& * minor).in_segment(&
                    [])
                ),
            ),
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
                let _ = (&minor, &major, &file, &tenant);
                if let ::redlock_runtime::__private::Some(__output) = ::redlock_runtime::__private::None::<
                    Result<Data, Error>,
                > {
                    return __output;
                }
                load(file).await
            },
            <Result<
                Data,
                Error,
            > as ::redlock_runtime::__private::FromLockError>::from_lock_error,
        )
        .await;
}
