async fn transfer(&self, from: &str, to: &str) -> Result<(), Error> {
    let __acquire = {
        static __REDLOCK_SITE: ::redlock_runtime::__private::Site = ::redlock_runtime::__private::Site::new(
            "\"account:{from}\" + \"limits:{self.tenant}\" + \"rate\"",
            ::redlock_runtime::__private::module_path!(),
            ::redlock_runtime::__private::file!(),
            ::redlock_runtime::__private::line!(),
        );
        let __manager: &::redlock_runtime::__private::LockManager = &(self.locks);
        let __settings = ::redlock_runtime::__private::Settings::of(&__REDLOCK_SITE)
            .ttl_millis(10000u64);
        let __all = [
            {
                let from = ::redlock_runtime::__private::part(&*from).escaped('%');
                ::redlock_runtime::__private::key(::core::format_args!("account:{from}"))
            },
            ::redlock_runtime::__private::key(
                    ::core::format_args!(
                        "limits:{__part0}", __part0 =
                        ::redlock_runtime::__private::part(& self.tenant).escaped('%')
                    ),
                )
                .shared(),
            ::redlock_runtime::__private::key(::core::format_args!("rate")),
        ];
        let __acquire = ::redlock_runtime::__private::acquire_all(
            ::redlock_runtime::__private::Some(__manager),
            __all,
            __settings,
        );
        __acquire
    };
    return ::redlock_runtime::__private::locked(
            __acquire,
            async move {
                let _ = (&to, &from, &self);
                if let ::redlock_runtime::__private::Some(__output) = ::redlock_runtime::__private::None::<
                    Result<(), Error>,
                > {
                    return __output;
                }
                self.bank.transfer(from, to).await
            },
            <Result<
                (),
                Error,
            > as ::redlock_runtime::__private::FromLockError>::from_lock_error,
        )
        .await;
}
