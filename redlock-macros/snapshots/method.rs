async fn capture(
    &mut self,
    Path(id): Path<u64>,
    order: Order,
) -> Result<&mut Receipt, PayError> {
    let __acquire = {
        let __manager: &::redlock_runtime::__private::LockManager = &(self.locks);
        let __settings = ::redlock_runtime::__private::Settings {
            ttl: ::redlock_runtime::__private::Some(const {
                ::redlock_runtime::__private::checked_ttl(Self::LEASE)
            }),
            wait: ::redlock_runtime::__private::Some(
                ::redlock_runtime::__private::Wait::None,
            ),
        };
        let __acquire = ::redlock_runtime::__private::acquire(
            ::redlock_runtime::__private::Some(__manager),
            ::redlock_runtime::__private::format_args!(
                "{__part0}/{__part1}:{__part2}/{__part0}", __part0 =
                ::redlock_runtime::__private::part(& self.tenant).escaped(& ['/']),
                __part1 = ::redlock_runtime::__private::part(& order.lines.0).escaped(&
                [':']), __part2 = ::redlock_runtime::__private::part(& id).escaped(&
                ['/'])
            ),
            __settings,
        );
        __acquire
    };
    let __outcome = '__call: {
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
                    let _ = (&order, &id, &self);
                    if let ::redlock_runtime::__private::Some(__output) = ::redlock_runtime::__private::None::<
                        Result<&mut Receipt, PayError>,
                    > {
                        return __output;
                    }
                    self.receipts.insert(order)
                },
            )
            .await;
        __outcome
    };
    match __outcome {
        ::redlock_runtime::__private::Ok(__output) => __output,
        ::redlock_runtime::__private::Err(__error) => {
            ::redlock_runtime::__private::from_lock_error::<
                Result<&mut Receipt, PayError>,
            >(__error)
        }
    }
}
