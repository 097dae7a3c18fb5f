/// Captures.
pub async fn capture(
    order_id: u64,
    _permit: Permit,
    amount: Money,
    unused: u8,
) -> Result<Receipt, PayError> {
    #![allow(unused_variables)]
    let __acquire = {
        static __REDLOCK_SITE: ::redlock_runtime::__private::Site = ::redlock_runtime::__private::Site::new(
            "order:{order_id}",
            ::redlock_runtime::__private::module_path!(),
            ::redlock_runtime::__private::file!(),
            ::redlock_runtime::__private::line!(),
        );
        let __settings = ::redlock_runtime::__private::Settings::of(&__REDLOCK_SITE)
            .ttl_millis(30000u64)
            .wait_millis(90000u64);
        let order_id: &::redlock_runtime::__private::u64 = &order_id;
        let __acquire = ::redlock_runtime::__private::acquire(
            ::redlock_runtime::__private::None,
            ::core::format_args!("order:{order_id}"),
            __settings,
        );
        __acquire
    };
    let __unused1 = ::redlock_runtime::__private::Box::new(_permit);
    return ::redlock_runtime::__private::locked(
            __acquire,
            async move {
                let _ = (&unused, &amount, &__unused1, &order_id);
                let unused = &unused;
                if let ::redlock_runtime::__private::Some(__output) = ::redlock_runtime::__private::None::<
                    Result<Receipt, PayError>,
                > {
                    return __output;
                }
                provider.charge(order_id, amount).await?
            },
            <Result<
                Receipt,
                PayError,
            > as ::redlock_runtime::__private::FromLockError>::from_lock_error,
        )
        .await;
}
