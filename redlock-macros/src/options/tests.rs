//! Options that can be read, and the messages for those that cannot.

use super::{Contended, Lost, Mode, Options, Release, Time, Waiting};
use crate::errors::Errors;

fn read(tokens: &str) -> (Options, Vec<String>) {
    let mut errors = Errors::default();
    let options = super::read(tokens.parse().unwrap(), &mut errors);
    (options, errors.messages())
}

#[test]
fn every_form_of_every_option_is_parsed() {
    let tokens = "key = \"order:{id}\", ttl = 30s, wait = forever, manager = pool.get::<A, B>(|a, b| a), \
                  on_error = |error: LockError| f(error, 1), crate = ::locks::runtime, guard = lock, \
                  on_lost = continue, release = confirmed, renew = false, on_contended = skip,";
    let (options, mistakes) = read(tokens);
    assert_eq!(mistakes, [""; 0]);
    assert_eq!(options.key.unwrap().first.literal.value(), "order:{id}");
    assert!(matches!(options.ttl, Some(Time::Literal(ttl)) if ttl.as_secs() == 30));
    assert!(matches!(options.wait, Some(Waiting::Forever)));
    assert!(options.manager.is_some() && options.on_error.is_some() && options.krate.is_some());
    assert_eq!((options.on_lost, options.release, options.renew), (Lost::Continue, Release::Confirmed, Some(false)));
    assert!(matches!(options.on_contended, Some(Contended::Skip)));
    assert_eq!(options.guard.unwrap(), "lock");
}

#[test]
fn explicit_default_values_are_accepted() {
    let (options, mistakes) = read("on_contended = error, on_lost = cancel, release = background");
    assert_eq!(mistakes, [""; 0]);
    assert!(options.on_contended.is_none());
    assert_eq!((options.on_lost, options.release), (Lost::Cancel, Release::Background));
}

#[test]
fn mode_is_exclusive_by_default() {
    let table =
        [("", Mode::Exclusive), ("mode = exclusive", Mode::Exclusive), ("mode = shared, ttl = 5", Mode::Shared)];
    for (tokens, expected) in table {
        let (options, mistakes) = read(tokens);
        assert_eq!((options.mode, mistakes.len()), (expected, 0), "{tokens}");
    }
    let (options, _) = read("mode = exclusive, __defaults(mode = shared)");
    assert_eq!(options.mode, Mode::Exclusive);
    assert_eq!(read("ttl = 3, __defaults(mode = shared)").0.mode, Mode::Shared);
}

#[test]
fn contended_handler_accepts_any_expression() {
    for tokens in ["on_contended = error::busy", "on_contended = |error| (a, error)", "on_contended = self.skip(5)"] {
        let (options, mistakes) = read(tokens);
        assert_eq!(mistakes, [""; 0]);
        assert!(matches!(options.on_contended, Some(Contended::Handler(_))), "{tokens}");
    }
}

#[test]
fn named_parts() {
    let (options, mistakes) = read("key(\"order:{id}:{x}\", id = order.id, x = f(1, 2),), ttl = 3");
    assert_eq!(mistakes, [""; 0]);
    let key = options.key.unwrap();
    assert_eq!(key.first.literal.value(), "order:{id}:{x}");
    assert!(key.constant.is_none());
    assert_eq!(key.named.iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>(), ["id", "x"]);
}

#[test]
fn constant_keys_are_recognized() {
    for (tokens, is_constant) in [
        ("key(\"nightly\", constant)", true),
        ("key(\"nightly\", constant,)", true),
        ("key(\"{x}\", x = 5, constant)", true),
        ("key(\"{constant}\", constant = 5)", false),
        ("key(\"nightly\")", false),
    ] {
        let (options, mistakes) = read(tokens);
        assert_eq!(mistakes, [""; 0], "{tokens}");
        assert_eq!(options.key.unwrap().constant.is_some(), is_constant, "{tokens}");
    }
}

#[test]
fn empty_attribute_has_no_options() {
    let (options, mistakes) = read("");
    assert!(mistakes.is_empty() && !options.has_key && options.key.is_none());
}

#[test]
fn every_mistake_is_reported() {
    let table: &[(&str, &[&str])] = &[
        ("ttl = 0, wait = -1", &["a `ttl` of zero", "`wait` cannot be negative"]),
        ("ttl = 12ms", &["at least `ttl = 13ms`"]),
        ("ttl = 31d", &["write 30 days at most"]),
        ("ttl = , key =", &["`ttl` needs a value", "`key` needs a value"]),
        ("ttl, wait", &["`ttl` needs a value", "`wait` needs a value"]),
        ("tll = 5, kee = 3, renew", &["did you mean `ttl`", "did you mean `key`", "`renew` needs a value"]),
        ("mode = a, on_contended = |a, b| (c, d), ttl = 0", &["unknown word `a`", "a `ttl` of zero"]),
        ("ttl = 5 wait = none, wait = \"3\"", &["expected `,`", "has no unit"]),
        ("ttl = 5 5 5, tll = 3", &["expected `,`", "did you mean `ttl`"]),
        ("\"a\", 30, key = 5", &["write `key = \"a\"`", "this value has no name", "`key` must be a string literal"]),
        ("crate = \"x::y\", ttl: 5", &["without quotes: write `crate = x::y`", "expected `=`"]),
        ("crate = 5, renew = 10s", &["write `crate = ::redlock_runtime`", "renewal follows from the `ttl`"]),
        ("key(), manager = +", &["`key` needs a value", "is not an expression: write `manager = self.locks`"]),
        ("key(\"a\", \"b\")", &["this is a second key: put both into a list, as in `key = ["]),
        ("key = (\"a\", \"b\")", &["this is a second key"]),
        ("path(\"/a\", \"/b\")", &["this is a second path: put both into a list, as in `path = ["]),
        ("key = [], ttl = 0", &["this list is empty", "a `ttl` of zero"]),
        ("key = [\"a\", shared(\"a\")]", &["`\"a\"` is in this list twice"]),
        ("key = [\"a\", 5]", &["`key` must be a string literal"]),
        ("key = [\"a\", [\"b\"]]", &["a list cannot contain a list"]),
        ("key = [\"a\", order.id]", &["write `\"{order.id}\"`"]),
        ("key = [read(\"a\"), \"b\"]", &["unknown word `read`: did you mean `shared(\"..\")`?"]),
        ("key = [sharde(\"a\"), \"b\"]", &["did you mean `shared(\"..\")`?"]),
        ("key = [shared(), \"b\"]", &["`shared(..)` takes exactly one string"]),
        ("key = [shared(\"a\", \"c\"), \"b\"]", &["`shared(..)` takes exactly one string"]),
        ("key = [shared(5), \"b\"]", &["`key` must be a string literal"]),
        ("path = 5, path", &["`path` must be a string literal", "given twice", "second", "`path` needs a value"]),
        ("path(\"/{a}\", whole)", &["`whole` needs a value"]),
        (
            "keys = [\"a\"], folder = \"/a\"",
            &["did you mean `key`, as in `key = [", "did you mean `path`, as in `path ="],
        ),
        ("key(\"a\", order.id)", &["this value has no name: write `id = order.id`"]),
        ("key(\"a\", f(1, 2)), ttl = *", &["write `part = f(1, 2)`", "write `ttl = 30`"]),
        ("key(\"a\", once)", &["unknown word `once`: did you mean `key(\"..\", constant)`?"]),
        (
            "release = \"confirmed\", on_contended = \"skip\"",
            &["write `release = confirmed`", "write `on_contended = skip`"],
        ),
        (
            "wait = \"forever\", wait = false",
            &["write `wait = forever`", "given twice", "second", "write `wait = none`"],
        ),
        ("lease_ms = 5, shared(true), ttl = 0", &["did you mean `ttl`, as in", "did you mean `mode`", "of zero"]),
        ("max_wait = 5, blocking = false", &["did you mean `wait`?", "as in `wait = none`"]),
        ("= 5, ttl = 0", &["expected an option", "a `ttl` of zero"]),
        ("ttl = 1, wait = 2, ttl = 3", &["`ttl` is given twice", "a second time here"]),
        ("reentrant = true, fencing(5)", &["`reentrant` is a flag", "`fencing` is a flag"]),
        (
            "mode = \"shared\", mode = read",
            &["write `mode = shared`", "given twice", "second", "did you mean `mode = shared`"],
        ),
        ("mode = Exclusive, ttl = 0", &["did you mean `mode = exclusive`", "a `ttl` of zero"]),
        ("mode = writer, ttl = 0", &["did you mean `mode = exclusive`", "a `ttl` of zero"]),
        (
            "mode = 5, mode",
            &["`mode` must be `exclusive` or `shared`", "given twice", "second", "`mode` needs a value"],
        ),
        ("mode = self.mode, ttl = 0", &["unknown word `self`: `mode` must be", "a `ttl` of zero"]),
        ("shared, rwlock = true", &["did you mean `mode`, as in `mode = shared`", "did you mean `mode`"]),
        ("permits = 0, permits = 4", &["with `permits = 0`", "is given twice", "a second time"]),
        ("permits = 1001, ttl = 0", &["can be 1000 at most", "a `ttl` of zero"]),
        (
            "permits = \"4\", permits = -1",
            &["`\"4\"` is text in quotes: write `permits = 4`", "is given twice", "a second time", "number of holders"],
        ),
        ("renew = 5, on_lost = continu", &["`renew` must be `true` or `false`", "`on_lost = continue`"]),
        ("release = 5, on_lost = stop", &["`background` or `confirmed`", "`cancel` or `continue`"]),
        ("guard = \"lock\", on_error = 5", &["write `guard = lock`", "a closure that takes the error"]),
        ("max_hold = 0, min_hold = 0", &["a `max_hold` of zero", "a `min_hold` of zero"]),
        ("key(\"{a}\", a), ttl = 0", &["`a` needs a value", "a `ttl` of zero"]),
        ("key(\"{a}\", a = 1, a = 2)", &["`a` is given twice"]),
        ("key(\"{a}\" a = 1)", &["between two parts of the key"]),
        ("fair = true", &["remove it"]),
        ("manager = \"self.locks\", mode = \"read\"", &["write `manager = self.locks`", "write `mode = shared`"]),
        (
            "manager = \"my locks\", renew = \"false\"",
            &["takes an expression and not text: write `manager = self.locks`", "write `renew = false`"],
        ),
        ("permits = \"self.limit\", on_error = \"busy\"", &["write `permits = self.limit`", "write `on_error = busy`"]),
        ("wait = \"5s\".into(), ttl = limit.into()", &["a literal needs no conversion: write `wait = \"5s\"`"]),
        ("wait = limit.into()", &["write `wait = limit`"]),
        ("key(\"a\"), \"b\"", &["this is a second key: put both into a list"]),
        ("path = \"/a\", \"/b\"", &["this is a second path: put both into a list"]),
        ("key = \"a\", \"5s\"", &["write `ttl = \"5s\"` or `wait = \"5s\"`"]),
    ];
    for (tokens, expected) in table {
        let (_, mistakes) = read(tokens);
        assert_eq!(mistakes.len(), expected.len(), "{tokens}: {mistakes:?}");
        for (mistake, expected) in mistakes.iter().zip(*expected) {
            assert!(mistake.contains(expected), "{tokens}: {mistake}");
        }
    }
}

#[test]
fn key_list_has_at_most_sixteen_keys_with_a_mode_each() {
    let list = |count: usize| (0..count).map(|n| format!("\"k{n}\"")).collect::<Vec<_>>().join(", ");
    assert_eq!(read(&format!("key = [{}]", list(16))).1, [""; 0]);
    let (_, mistakes) = read(&format!("key = [{}]", list(17)));
    assert!(matches!(mistakes.as_slice(), [mistake] if mistake.contains("17 keys")), "{mistakes:?}");
    let (options, mistakes) = read(r#"key([shared("a:{x}"), exclusive("b"), "c",], x = order.id, constant)"#);
    assert_eq!(mistakes, [""; 0]);
    let key = options.key.unwrap();
    let modes: Vec<_> = key.all().map(|template| (template.literal.value(), template.mode)).collect();
    let expected = [("a:{x}", Some(Mode::Shared)), ("b", Some(Mode::Exclusive)), ("c", None)];
    assert_eq!(modes, expected.map(|(text, mode)| (text.to_owned(), mode)));
    assert!(key.named.len() == 1 && key.constant.is_some() && !key.is_one_key());
    assert!(read(r#"key = ["a"]"#).0.key.unwrap().is_one_key());
    assert!(!read(r#"path = "/a""#).0.key.unwrap().is_one_key());
}

#[test]
fn own_options_and_inner_defaults_replace_outer_defaults() {
    let own = "key = \"order:{id}\", ttl = 5, on_contended = error";
    let outer = "__defaults(ttl = 10, wait = 1s, renew = false, on_contended = skip, tll = 3)";
    let inner = "__defaults(wait = 2s, manager = self.locks)";
    let (options, mistakes) = read(&format!("{own}, {outer}, {inner}"));
    assert_eq!(mistakes, [""; 0], "mistakes in defaults are reported at the block");
    let is_seconds =
        |time: Option<&Time>, seconds| matches!(time, Some(Time::Literal(time)) if time.as_secs() == seconds);
    assert!(is_seconds(options.ttl.as_ref(), 5) && is_seconds(options.wait.as_ref().unwrap().time(), 2));
    assert!(options.renew == Some(false) && options.on_contended.is_none() && options.manager.is_some());
    let origins = ["ttl", "renew", "wait", "key"].map(|option| options.is_default(options.name(option).unwrap()));
    assert_eq!(origins, [false, true, true, false]);
}
