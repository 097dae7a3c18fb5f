//! Snapshots of the generated code, for one function of each form. `UPDATE_EXPECT=1 cargo test -p redlock-macros`
//! updates the files.

use crate::{distributed_lock_defaults_tokens, distributed_lock_tokens};
use expect_test::{ExpectFile, expect_file};
use proc_macro2::TokenStream;

#[expect(clippy::needless_pass_by_value, reason = "what the macro of the other crate makes")]
fn check(options: &str, item: &str, expected: ExpectFile) {
    let tokens = distributed_lock_tokens(options.parse().unwrap(), item.parse().unwrap(), false);
    expected.assert_eq(&pretty(tokens));
}

fn pretty(tokens: TokenStream) -> String {
    prettyplease::unparse(&syn::parse2(tokens).unwrap())
}

#[test]
fn function() {
    check(
        r#"key = "order:{order_id}", ttl = 30, wait = "1m30s""#,
        "/// Captures.
        pub async fn capture(order_id: u64, _permit: Permit, amount: Money, unused: u8) -> Result<Receipt, PayError> {
            #![allow(unused_variables)]
            provider.charge(order_id, amount).await?
        }",
        expect_file!["../snapshots/function.rs"],
    );
}

#[test]
fn method() {
    check(
        r#"key = "{self.tenant}/{order.lines.0}:{id}/{self.tenant}", manager = self.locks, ttl = Self::LEASE, wait = none"#,
        "async fn capture(&mut self, Path(id): Path<u64>, order: Order) -> Result<&mut Receipt, PayError> {
            self.receipts.insert(order)
        }",
        expect_file!["../snapshots/method.rs"],
    );
}

#[test]
fn generic() {
    check(
        r#"key = "nightly", ttl = LEASE, wait = limit, crate = crate::locks"#,
        "async fn nightly<T: Job>(jobs: &[T], limit: Duration) -> Result<impl Iterator<Item = T>, Error> {
            run(jobs)
        }",
        expect_file!["../snapshots/generic.rs"],
    );
}

#[test]
fn shared() {
    check(
        r#"key = "config", mode = shared, ttl = 10"#,
        "async fn read(name: &str) -> Result<String, Error> { load(name).await }",
        expect_file!["../snapshots/shared.rs"],
    );
}

#[test]
fn several_keys() {
    check(
        r#"key = ["account:{from}", shared("limits:{self.tenant}"), "rate"], manager = self.locks, ttl = 10"#,
        "async fn transfer(&self, from: &str, to: &str) -> Result<(), Error> { self.bank.transfer(from, to).await }",
        expect_file!["../snapshots/several_keys.rs"],
    );
}

#[test]
fn path() {
    check(
        r#"path("/{tenant}/5%/{dir:/}/v{major}-{minor}", dir = file.folder()), mode = shared"#,
        "async fn read(tenant: &str, file: File, major: u32, minor: &str) -> Result<Data, Error> { load(file).await }",
        expect_file!["../snapshots/path.rs"],
    );
}

#[test]
fn paths() {
    check(
        r#"path = ["/{tenant}/{from}", "/{tenant}/{to}"]"#,
        "async fn rename(tenant: u64, from: &str, to: &str) -> Result<(), Error> { move_all(tenant, from, to).await }",
        expect_file!["../snapshots/paths.rs"],
    );
}

#[test]
fn handler() {
    check(
        r#"key = "nightly", on_error = |error| error.is_contended()"#,
        "async fn nightly(#[cfg(test)] shard: u64) -> bool { run(shard) }",
        expect_file!["../snapshots/handler.rs"],
    );
}

#[test]
fn async_trait() {
    check(
        r#"key = "{self.tenant}:{id}", manager = self.locks"#,
        "fn capture<'life0, 'async_trait>(&'life0 self, __arg1: Path<u64>)
            -> Pin<Box<dyn Future<Output = Result<u64, Error>> + Send + 'async_trait>>
        where
            'life0: 'async_trait,
            Self: 'async_trait,
        {
            Box::pin(async move {
                if let Some(__ret) = None::<Result<u64, Error>> {
                    #[allow(unreachable_code)]
                    return __ret;
                }
                let __self = self;
                let Path(id) = { let __arg1 = __arg1; __arg1 };
                let __ret: Result<u64, Error> = { __self.provider.charge(id).await };
                #[allow(unreachable_code)]
                __ret
            })
        }",
        expect_file!["../snapshots/async_trait.rs"],
    );
}

#[test]
fn returned_block() {
    check(
        r#"key = "order:{id}""#,
        "fn capture(&self, id: u64) -> impl Future<Output = Result<u64, Error>> + 'static {
            let provider = self.provider.clone();
            async move { provider.charge(id).await }
        }",
        expect_file!["../snapshots/returned_block.rs"],
    );
}

#[test]
fn returned_future() {
    check(
        r#"key = "order:{id}""#,
        "fn capture(&self, id: u64) -> BoxFuture<'_, Result<u64, Error>> { self.provider.charge(id) }",
        expect_file!["../snapshots/returned_future.rs"],
    );
}

#[test]
fn defaults() {
    let item = r#"impl Shop {
        #[distributed_lock(key = "order:{id}")]
        async fn capture(&self, id: u64) -> Result<(), Error> { Ok(()) }
        #[cfg_attr(feature = "locks", locks::distributed_lock(key = "report", ttl = 60,))]
        async fn report(&self) -> Result<(), Error> { Ok(()) }
        fn plain(&self) {}
    }"#;
    let tokens =
        distributed_lock_defaults_tokens(&"manager = self.locks, ttl = 10".parse().unwrap(), item.parse().unwrap());
    expect_file!["../snapshots/defaults.rs"].assert_eq(&pretty(tokens));
}

#[test]
fn mistakes() {
    check(
        r#"key = "order:{ordr_id}", tll = 30"#,
        "fn capture(order_id: u64) -> Result<u64, Error> { charge(order_id) }",
        expect_file!["../snapshots/mistakes.rs"],
    );
}

/// `#[tokio::test]` is removed in a build without tests, so no compile-fail case can show it.
#[test]
fn test_attribute_above() {
    let item = "#[::core::prelude::v1::test] fn nightly() -> Result<(), Error> { \
                let body = async { Ok(()) }; runtime.block_on(body) }";
    let tokens = distributed_lock_tokens(r#"key = "nightly""#.parse().unwrap(), item.parse().unwrap(), false);
    let text = tokens.to_string();
    assert!(text.contains("has made it a blocking function") && text.contains("fn nightly"), "{text}");
}

/// An editor finds the argument inside the string. The compiler gets the escaped part instead.
#[test]
fn editor_code_mentions_the_argument_itself() {
    for (for_editor, expected) in [(true, false), (false, true)] {
        let item = "async fn capture(order_id: u64) -> Result<(), Error> { Ok(()) }";
        let tokens =
            distributed_lock_tokens(r#"key = "order:{order_id}""#.parse().unwrap(), item.parse().unwrap(), for_editor);
        assert_eq!(tokens.to_string().contains("let order_id"), expected);
    }
}

/// To complete a name, an editor compares the tokens before the key, with an unknown name in it and without.
#[test]
fn key_keeps_its_position_during_typing() {
    let before_key = |key: &str| {
        let item = "async fn capture(&self, order_id: u64) -> Result<(), Error> { Ok(()) }";
        let options = format!("ttl = 30, key = {key}").parse().unwrap();
        let text = distributed_lock_tokens(options, item.parse().unwrap(), true).to_string();
        text.split_once(key).unwrap().0.to_owned()
    };
    let whole = before_key(r#""order:{order_id}""#);
    for typed in [r#""order:{order_idx}""#, r#""order:{}""#, r#""order:{ord""#] {
        assert_eq!(before_key(typed), whole, "{typed}");
    }
    assert!(whole.ends_with("format_args ! ("), "{whole}");
}

/// Checks the position of an option. The function is kept as written, so that the tokens before do not depend on
/// whether it is expanded.
#[test]
fn option_keeps_its_position_during_typing() {
    let expanded = |options: &str| {
        let item = "async fn capture(Path(id): Path<u64>, body: String) -> Result<(), Error> { Ok(()) }";
        distributed_lock_tokens(options.parse().unwrap(), item.parse().unwrap(), true).to_string()
    };
    let whole = expanded(r#"key = "order:{id}", ttl = 30,"#);
    let (before, next) = whole.split_at(whole.rfind(":: options").unwrap());
    assert!(next.starts_with(":: options as _ ;"), "{next}");
    for typed in [r#"key = "order:{id}", ttl = 30, w"#, r#"key = "order:{id}", ttl = 30, wait"#] {
        let text = expanded(typed);
        let next = text.strip_prefix(before).unwrap_or_else(|| panic!("{text}"));
        assert!(next.starts_with(":: options :: w"), "{next}");
    }
    assert!(before.contains("options :: ttl"), "{before}");
}

#[test]
fn too_large_numbers_are_rejected() {
    for template in ["{id.88888888888888888888}", "{Self::NS.4294967296}", "{id.get(88888888888888888888)}"] {
        let options = format!(r#"key = "{template}""#).parse().unwrap();
        let text = distributed_lock_tokens(options, "async fn capture(id: Id) {}".parse().unwrap(), false).to_string();
        assert!(text.contains("is too large for a field, an index or an argument in a key"), "{text}");
    }
}

/// `mode` begins with the keyword `mod`.
#[test]
fn editor_code_parses_with_any_option_name() {
    for typed in ["mod", "_", "self", "r#mod", "crate", "yield"] {
        let options = format!(r#"key = "order:{{id}}", {typed}"#).parse().unwrap();
        let tokens = distributed_lock_tokens(options, "async fn capture(id: u64) {}".parse().unwrap(), true);
        assert!(syn::parse2::<syn::File>(tokens.clone()).is_ok(), "{typed}: {tokens}");
    }
}

/// A format string captures only names, so a field is named in addition.
#[test]
fn editor_code_mentions_a_field_after_its_root() {
    let item = "async fn capture(order: Order) -> Result<(), Error> { Ok(()) }";
    let text = distributed_lock_tokens(r#"key = "order:{order.id}""#.parse().unwrap(), item.parse().unwrap(), true);
    let text = text.to_string();
    assert!(text.contains(r#"format_args ! ("order:{order:dd}")"#) && text.contains("& order . id"), "{text}");
}
