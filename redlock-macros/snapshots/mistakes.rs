::core::compile_error! {
    "unknown option `tll`: did you mean `ttl`?"
}
::core::compile_error! {
    "`capture` is not async, so it cannot wait for a lock: write `async fn capture`"
}
fn capture(order_id: u64) -> Result<u64, Error> {
    {
        #[diagnostic::on_unimplemented(
            message = "`ordr_id` is not an argument of `capture`, which has `order_id`: did you mean `{{order_id}}`?",
            label = "this names nothing"
        )]
        trait Argument {}
        struct Unknown<T>(T);
        impl<T: Argument> ::core::fmt::Display for Unknown<T> {
            fn fmt(&self, _: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::result::Result::Ok(())
            }
        }
        let ordr_id = Unknown(());
        let _ = ::core::format_args!("order:{ordr_id}");
    }
    let _ = &order_id;
    charge(order_id)
}
