::core::compile_error! {
    "unknown option `tll`: did you mean `ttl`?"
}
::core::compile_error! {
    "`capture` is not async, so it cannot wait for a lock: write `async fn capture`"
}
::core::compile_error! {
    "`ordr_id` is not an argument of `capture`, which has `order_id`: did you mean `{order_id}`?\n    order:{ordr_id}\n          ^^^^^^^^^"
}
fn capture(order_id: u64) -> Result<u64, Error> {
    let _ = &order_id;
    charge(order_id)
}
