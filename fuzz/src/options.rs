//! Expands options of the attribute for functions of several forms. The macro must not panic, and must generate valid
//! Rust.
#![no_main]

use proc_macro2::TokenStream;

const ITEMS: [&str; 5] = [
    "async fn f(id: u64, order: &Order) -> Result<u8, Error> { work(id).await }",
    "pub async fn f(&self, id: String) { self.work(id).await; }",
    "fn f(id: u32) -> impl Future<Output = Result<(), LockError>> + Send { async move { Ok(()) } }",
    "async fn f<T: Key, const N: usize>(Path(id): Path<T>, _: [u8; N]) -> T where T: Clone { id }",
    "fn f() {}",
];

const BLOCK: &str =
    "impl Orders { async fn one(&self, id: u64) {} #[distributed_lock(key = \"{id}\")] async fn two(id: u64) {} }";

fn check_rust(tokens: TokenStream) {
    let text = tokens.to_string();
    assert!(syn::parse2::<syn::File>(tokens).is_ok(), "{text}");
}

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(options) = text.parse::<TokenStream>() else { return };
    for item in ITEMS {
        for written in redlock_macros::expanded(options.clone(), item.parse().expect("an item")) {
            check_rust(written);
        }
    }
    check_rust(redlock_macros::expanded_defaults(&options, BLOCK.parse().expect("a block")));
});
