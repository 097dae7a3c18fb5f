//! The whole grammar of templates, and that different arguments never give the same key.

use redlock_runtime::{LockError, LockKey, LockManager, distributed_lock};
use std::collections::HashMap;
use std::num::NonZeroU32;

const REGION: &str = "eu/1";

mod constants {
    pub(super) const ZONE: u8 = 3;
}

struct Order {
    id: u64,
    tags: Vec<String>,
    r#type: &'static str,
}

impl Order {
    fn sku(&self, line: usize, prefix: &str) -> String {
        format!("{prefix}{line}:{}", self.id)
    }

    fn tags(&self) -> Vec<String> {
        self.tags.clone()
    }
}

struct Service {
    tenant: String,
}

impl Service {
    const NAMESPACE: &'static str = "shop";

    #[distributed_lock(key = "{Self::NAMESPACE}:{self.tenant}:{self.tenant.len()}", guard = lock)]
    async fn constants(&self) -> Result<String, LockError> {
        Ok(lock.key().to_string())
    }
}

trait Named {
    const NAME: &'static str;
}

impl Named for Service {
    const NAME: &'static str = "service";
}

#[distributed_lock(key = "{T::NAME}/{LENGTH}/{id}", guard = lock)]
async fn generic<T: Named, const LENGTH: usize>(id: u8) -> Result<String, LockError> {
    Ok(lock.key().to_string())
}

#[distributed_lock(key = "{REGION}/{constants::ZONE}:{id}", guard = lock)]
async fn free_constants(id: u8) -> Result<String, LockError> {
    Ok(lock.key().to_string())
}

#[distributed_lock(key = "{order.sku(1, prefix)}|{order.tags[0]}|{order.tags()[index].len()}|{order.type}", guard = lock)]
async fn steps(order: Order, prefix: &str, index: usize) -> Result<String, LockError> {
    let _ = (&order.r#type, index);
    Ok(lock.key().to_string())
}

#[distributed_lock(key = "{year:04}-{month:02}/{id:x}/{signed:06}/{flags:#010b}", guard = lock)]
async fn formats(year: u16, month: u8, id: NonZeroU32, signed: &i64, flags: u8) -> Result<String, LockError> {
    Ok(lock.key().to_string())
}

#[distributed_lock(key = "{id}/{id:04}", guard = lock)]
async fn both(id: u16) -> Result<String, LockError> {
    Ok(lock.key().to_string())
}

#[distributed_lock(key("{{{id}}}:{sku}:{number:03}", id = order.id, sku = order.sku(7, "a:"), number = order.tags.len()), guard = lock)]
async fn named(order: Order) -> Result<String, LockError> {
    Ok(lock.key().to_string() + &order.tags.concat())
}

#[distributed_lock(key("{größe}→{type}:{id}", type = id.trim()), guard = lock)]
async fn identifiers(größe: u8, id: &str) -> Result<String, LockError> {
    Ok(lock.key().to_string())
}

#[tokio::test]
async fn every_placeholder_form_builds_the_expected_key() {
    let order = || Order { id: 7, tags: vec!["a|b".into(), "cde".into()], r#type: "new" };
    let calls = async {
        let service = Service { tenant: "a:b".into() };
        let id = NonZeroU32::new(255).unwrap();
        Ok::<_, LockError>([
            (service.constants().await?, "shop:a%3Ab:3"),
            (generic::<Service, 4>(5).await?, "service/4/5"),
            (free_constants(9).await?, "eu%2F1/3:9"),
            (steps(order(), "x", 1).await?, "x1:7|a%7Cb|3|new"),
            (formats(26, 3, id, &-42, 5).await?, "0026-03/ff/-00042/0b00000101"),
            (both(7).await?, "7/0007"),
            (named(order()).await?, "{7}:a%3A7%3A7:002a|bcde"),
            (identifiers(4, " z ").await?, "4→z: z "),
        ])
    };
    for (found, expected) in LockManager::in_memory().scope(calls).await.unwrap() {
        assert_eq!(found, expected);
    }
}

#[distributed_lock(key = "{a}:{b}", guard = lock)]
async fn colon(a: &str, b: &str, _c: &str) -> Result<LockKey, LockError> {
    Ok(lock.key().clone())
}

#[distributed_lock(key = "x{a}é{{{b}}}{{{a}/{c}\n", guard = lock)]
async fn mixed(a: &str, b: &str, c: &str) -> Result<LockKey, LockError> {
    Ok(lock.key().clone())
}

#[distributed_lock(key("{first}a{second}\0{third}", first = a, second = b, third = c), guard = lock)]
async fn letters(a: &str, b: &str, c: &str) -> Result<LockKey, LockError> {
    Ok(lock.key().clone())
}

/// Pseudo-random numbers from a seed. Source: Marsaglia, "Xorshift RNGs".
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    /// Returns a mostly short text of the relevant characters, so nearly equal texts are common.
    fn value(&mut self) -> String {
        const HOSTILE: [&str; 16] =
            [":", "%", "{", "}", "/", "\0", "\n", "é", "a", "3", "A", "%3A", "%25", "名", "#", "x"];
        let length = if self.below(200) == 0 { 10_000 } else { self.below(5) };
        (0..length).filter_map(|_| HOSTILE.get(usize::try_from(self.below(16)).unwrap())).copied().collect()
    }
}

#[tokio::test]
async fn different_tuples_give_different_keys() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0x9E37_79B9_7F4A_7C15);
    let mut random = Random(seed);
    let mut all: [HashMap<String, [String; 3]>; 3] = Default::default();
    let calls = async {
        for _ in 0..5000 {
            let [a, b, c] = [random.value(), random.value(), random.value()];
            let keys = [colon(&a, &b, &c).await, mixed(&a, &b, &c).await, letters(&a, &b, &c).await];
            for (index, (key, seen)) in keys.into_iter().zip(&mut all).enumerate() {
                let key = key.unwrap();
                assert!(key.as_str().len() <= LockKey::MAX_LEN);
                let c = if index == 0 { String::new() } else { c.clone() };
                let tuple = [a.clone(), b.clone(), c];
                if let Some(other) = seen.insert(key.to_string(), tuple.clone()) {
                    assert_eq!(other, tuple, "both give {key:?} with SEED={seed}");
                }
            }
        }
    };
    LockManager::in_memory().scope(calls).await;
    assert!(all.iter().all(|seen| seen.len() > 3000), "the values repeat too often to show anything");
}
