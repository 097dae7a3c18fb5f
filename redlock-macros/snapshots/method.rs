async fn capture(
    &mut self,
    Path(id): Path<u64>,
    order: Order,
) -> Result<&mut Receipt, PayError> {
    let __acquire = {
        static __REDLOCK_SITE: ::redlock_runtime::__private::Site = ::redlock_runtime::__private::Site::new(
            "{self.tenant}/{order.lines.0}:{id}/{self.tenant}",
            ::redlock_runtime::__private::module_path!(),
            ::redlock_runtime::__private::file!(),
            ::redlock_runtime::__private::line!(),
        );
        let __manager: &::redlock_runtime::__private::LockManager = &(self.locks);
        let __settings = ::redlock_runtime::__private::Settings::of(&__REDLOCK_SITE)
            .ttl(const { ::redlock_runtime::__private::checked_ttl(Self::LEASE) })
            .wait_millis(0);
        let __acquire = ::redlock_runtime::__private::acquire(
            ::redlock_runtime::__private::Some(__manager),
            ::core::format_args!(
                "{__part0}/{__part1}:{__part2}/{__part0}", __part0 =
                ::redlock_runtime::__private::part(& self.tenant).escaped('/'), __part1 =
                ::redlock_runtime::__private::part(& order.lines.0).escaped(':'), __part2
                = ::redlock_runtime::__private::part(& id).escaped('/')
            ),
            __settings,
        );
        __acquire
    };
    return ::redlock_runtime::__private::locked(
            __acquire,
            async move {
                let _ = (&order, &id, &self);
                if let ::redlock_runtime::__private::Some(__output) = ::redlock_runtime::__private::None::<
                    Result<&mut Receipt, PayError>,
                > {
                    return __output;
                }
                self.receipts.insert(order)
            },
            <Result<
                &mut Receipt,
                PayError,
            > as ::redlock_runtime::__private::FromLockError>::from_lock_error,
        )
        .await;
}
