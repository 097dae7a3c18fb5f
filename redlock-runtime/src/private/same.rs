//! A warning that depends on what only the compiler knows: whether two types are one.

use std::marker::PhantomData;
use std::ops::Deref;

/// Two types. Where they are one, the method of `Same` itself is found; otherwise that of what it derefs to.
#[derive(Debug)]
pub struct Same<A: ?Sized, B: ?Sized>(Different, PhantomData<(*const A, *const B)>);

/// Any two types.
#[derive(Debug)]
pub struct Different;

impl<A: ?Sized, B: ?Sized> Same<A, B> {
    /// The types themselves.
    pub const TYPES: Self = Self(Different, PhantomData);
}

impl<T: ?Sized> Same<T, T> {
    /// Warns.
    #[deprecated(note = "this call needs the lock that its caller already holds, so it can never acquire it: write \
                         `reentrant`, or move the repeated code into a function without `#[distributed_lock]`")]
    pub const fn distributed_lock(&self) {}
}

impl<A: ?Sized, B: ?Sized> Deref for Same<A, B> {
    type Target = Different;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Different {
    /// Has nothing to say.
    #[expect(clippy::unused_self, reason = "it is found where the other one is not")]
    pub const fn distributed_lock(&self) {}
}
