//! Expands key templates. The macro must not panic, and must generate valid Rust.
#![no_main]

use proc_macro2::{Literal, TokenStream};

const ITEM: &str =
    "async fn f(&self, id: u64, order: &Order, Path((a, b)): Path<(u8, u8)>) -> Result<u8, Error> { work(id).await }";

libfuzzer_sys::fuzz_target!(|text: &str| {
    let mut options: TokenStream = "key =".parse().expect("tokens");
    options.extend([proc_macro2::TokenTree::from(Literal::string(text))]);
    for written in redlock_macros::expanded(options, ITEM.parse().expect("an item")) {
        let text = written.to_string();
        assert!(syn::parse2::<syn::File>(written).is_ok(), "{text}");
    }
});
