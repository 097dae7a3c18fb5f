fn capture<'life0, 'async_trait>(
    &'life0 self,
    __arg1: Path<u64>,
) -> Pin<Box<dyn Future<Output = Result<u64, Error>> + Send + 'async_trait>>
where
    'life0: 'async_trait,
    Self: 'async_trait,
{
    Box::pin(async move {
        if let Some(__ret) = None::<Result<u64, Error>> {
            #[allow(unreachable_code)] return __ret;
        }
        let __self = self;
        let Path(id) = {
            let __arg1 = __arg1;
            __arg1
        };
        let __ret: Result<u64, Error> = {
            let __acquire = {
                static __REDLOCK_SITE: ::redlock_runtime::__private::Site = ::redlock_runtime::__private::Site::new(
                    "{self.tenant}:{id}",
                    ::redlock_runtime::__private::module_path!(),
                    ::redlock_runtime::__private::file!(),
                    ::redlock_runtime::__private::line!(),
                );
                let __manager: &::redlock_runtime::__private::LockManager = &(__self
                    .locks);
                let __settings = ::redlock_runtime::__private::Settings::of(
                    &__REDLOCK_SITE,
                );
                let __acquire = ::redlock_runtime::__private::acquire(
                    ::redlock_runtime::__private::Some(__manager),
                    ::core::format_args!(
                        "{__part0}:{__part1}", __part0 =
                        ::redlock_runtime::__private::part(& __self.tenant).escaped(':'),
                        __part1 = ::redlock_runtime::__private::part(& id).escaped('%')
                    ),
                    __settings,
                );
                __acquire
            };
            ::redlock_runtime::__private::locked(
                    __acquire,
                    async move {
                        let _ = (&id, &__self);
                        if let ::redlock_runtime::__private::Some(__output) = ::redlock_runtime::__private::None::<
                            Result<u64, Error>,
                        > {
                            return __output;
                        }
                        return { __self.provider.charge(id).await };
                    },
                    <Result<
                        u64,
                        Error,
                    > as ::redlock_runtime::__private::FromLockError>::from_lock_error,
                )
                .await
        };
        #[allow(unreachable_code)] __ret
    })
}
