fn capture(&self, id: u64) -> BoxFuture<'_, Result<u64, Error>> {
    let __acquire = {
        static __REDLOCK_SITE: ::redlock_runtime::__private::Site = ::redlock_runtime::__private::Site::new(
            "order:{id}",
            ::redlock_runtime::__private::module_path!(),
            ::redlock_runtime::__private::file!(),
            ::redlock_runtime::__private::line!(),
        );
        let __settings = ::redlock_runtime::__private::Settings::of(&__REDLOCK_SITE);
        let id: &::redlock_runtime::__private::u64 = &id;
        let __acquire = ::redlock_runtime::__private::acquire(
            ::redlock_runtime::__private::None,
            ::core::format_args!("order:{id}"),
            __settings,
        );
        __acquire
    };
    let __future: BoxFuture<'_, Result<u64, Error>> = { self.provider.charge(id) };
    return ::redlock_runtime::__private::Box::pin(async move {
        return ::redlock_runtime::__private::locked(
                __acquire,
                __future,
                <Result<
                    u64,
                    Error,
                > as ::redlock_runtime::__private::FromLockError>::from_lock_error,
            )
            .await
    });
}
