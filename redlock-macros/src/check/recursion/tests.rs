//! Recursive calls that are found, and calls that are not.

use super::find;
use crate::analyze::bindings;
use crate::analyze::form::{self, Form};
use crate::analyze::item::Function;
use crate::analyze::key;
use crate::analyze::mentions::Mentions;
use crate::errors::Errors;
use crate::options;

/// Result of the search in a function.
#[derive(Debug, PartialEq)]
enum Expected {
    Nothing,
    Waits,
    WaitsIf(String),
}

fn result(key: &str, function: &str) -> Expected {
    let mut errors = Errors::default();
    let options = options::read(format!("key = \"{key}\"").parse().unwrap(), &mut errors);
    let function = Function::read(function.parse().unwrap()).unwrap();
    let bindings = bindings::from_arguments(&function.signature);
    let key = key::read(&options.key.unwrap(), &function.signature.ident, &bindings, &mut errors).unwrap();
    assert_eq!(errors.messages(), [""; 0]);
    let (form, _) = form::read(&function, false);
    let form = form.unwrap_or(Form::Async);
    let in_body = Mentions::from_tokens(function.body.stream());
    match find(&function, &form, &bindings, &key, &in_body).map(|found| found.only_if) {
        None => Expected::Nothing,
        Some(None) => Expected::Waits,
        Some(Some(ty)) => Expected::WaitsIf(ty.to_string().replace(' ', "")),
    }
}

#[test]
fn recursive_calls_with_the_same_key_are_found() {
    let table = [
        ("{id}", "async fn f(id: u64) { f(id).await }"),
        ("{id}", "async fn f(id: u64, n: u8) { if n > 0 { Box::pin(f(id, n - 1)).await } }"),
        ("{id}", "async fn f(id: String) { f(id.clone()).await }"),
        ("{id}", "async fn f(id: &str) { join!(f(&id), g(id)) }"),
        ("x", "async fn f(id: u64) { f(id - 1).await }"),
        ("{id}", "async fn f(id: u64) { for other in ids { f(id).await } }"),
        ("{id}", "async fn f(id: u64) { let other = id + 1; f(id).await }"),
        ("{id}", "async fn f(id: u64) { match g() { Some(other) => f(id).await, None => () } }"),
        ("{id}", "async fn f(id: u64) { each(|other| f(id)) }"),
        ("{id}", "async fn f(id: u64) { let a = b | c; f(id).await }"),
        ("{order.id}", "async fn f(order: &Order) { f(order).await }"),
        ("{id}", "async fn f(Path(id): Path<u64>) { f(Path(id)).await }"),
        ("{id}", "async fn f(&self, id: u64) { self.f(id).await }"),
        ("{self.id}", "async fn f(&self) { self.f().await }"),
        ("{self.id}", "async fn f(self: Arc<Self>) { let this = Arc::clone(&self); this.f().await }"),
        ("{self.id}", "async fn f(&self) { self.clone().f().await }"),
        ("{id}", "pub async fn f(&self, id: u64) { Self::f(self, id).await }"),
        ("{id}", "async fn f(id: u64) { Self::f(id).await }"),
        ("{id}", "async fn f(&self, other: &Self, id: u64) { other.f(self, id).await }"),
        ("{id}", "async fn f(&self, other: Arc<Self>, id: u64) { other.f(other.clone(), id).await }"),
        ("{id}", "async fn f(&self, id: u64) { let other = Self::new(); other.f(id).await }"),
        ("{id}", "async fn f(&self, id: u64) { let other = Self { id }; other.f(id).await }"),
        ("{id}", "fn f(id: u64) -> impl Future<Output = ()> { async move { f(id).await } }"),
    ];
    for (key, function) in table {
        assert_eq!(result(key, function), Expected::Waits, "{key} {function}");
    }
}

#[test]
fn calls_with_another_key_are_not_reported() {
    let table = [
        ("{id}", "async fn f(id: u64) { f(id - 1).await }"),
        ("{id}", "async fn f(id: u64) { let id = id - 1; f(id).await }"),
        ("{id}", "async fn f(id: u64) { if let Some(id) = parent(id) { f(id).await } }"),
        ("{id}", "async fn f(id: u64) { match parent(id) { Some(Node { id, .. }) => f(id).await, None => () } }"),
        ("{id}", "async fn f(id: u64) { for id in ids { f(id).await } }"),
        ("{id}", "async fn f(id: u64) { each(|id| f(id)) }"),
        ("{id}", "async fn f(id: u64) { each(async move |(id, _)| f(id)) }"),
        ("{id}", "async fn f(id: u64) { select! { id = next() => f(id).await } }"),
        ("{id}", "async fn f(mut id: u64) { id += 1; f(id).await }"),
        ("{order.id}", "async fn f(order: &mut Order) { order.id = 5; f(order).await }"),
        ("{id}", "async fn f(id: u64) { fn f(id: u64) {} f(id) }"),
        ("{id}", "async fn f(id: u64) { use other::f; f(id) }"),
        ("{id}", "async fn f(id: u64) { use other::{self, g as f}; f(id) }"),
        ("{id}", "async fn f(id: u64) { let f = |id| id; f(id) }"),
        ("{id}", "async fn f(id: u64, f: impl Fn(u64)) { f(id) }"),
        ("{id}", "async fn f(id: u64) { other::f(id).await }"),
        ("{id}", "async fn f(id: u64) { <Self as Other>::f(id).await }"),
        ("{id}", "async fn f(id: u64) { Other::f(id).await }"),
        ("{id}", "async fn f(id: u64) { store.f(id).await }"),
        ("{id}", "async fn f(id: u64) { f(id, 5) }"),
        ("{id}", "async fn f(id: u64) -> Self { f(id).await }"),
        ("{id}", "async fn f(id: u64) { tokio::spawn(f(id)); tasks.spawn(async move { f(id).await }); }"),
        ("{id}", "async fn f(&self, id: u64) { f(id).await }"),
        ("{id}", "async fn f(&self, id: u64) { self.inner.f(id).await }"),
        ("{id}", "async fn f(&self, id: u64) { let other = self.inner.clone(); other.f(id).await }"),
        ("{id}", "async fn f(&self, id: u64) { self.store().f(id).await }"),
        ("{id}", "async fn f(&self, other: &dyn Store, id: u64) { other.f(id).await }"),
        ("{id}", "async fn f(&self, other: &Self, id: u64) { let other = other.store(); other.f(id).await }"),
        ("{id}", "async fn f(&self, id: u64) { Self::f(self, id).await }"),
        ("{self.id}", "async fn f(&self, other: &Self) { other.f(self).await }"),
        ("{self.id}", "async fn f(&self, other: &Store) { other.f(self).await }"),
    ];
    for (key, function) in table {
        assert_eq!(result(key, function), Expected::Nothing, "{key} {function}");
    }
}

#[test]
fn recursive_calls_depend_on_the_receiver_type() {
    let table = [
        ("async fn f(&self, other: &Walker, id: u64) { other.f(self, id).await }", "Walker"),
        ("async fn f(&self, other: Arc<Tree<'a, T>>, id: u64) { other.f(other, id).await }", "Tree<'_,T>"),
    ];
    for (function, ty) in table {
        assert_eq!(result("{id}", function), Expected::WaitsIf(ty.into()), "{function}");
    }
}
