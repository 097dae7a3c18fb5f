//! Warning that depends on the equality of two types, which only the compiler knows.

use std::marker::PhantomData;
use std::ops::Deref;

/// Pair of types. For equal types, the method of `Same` is found; otherwise that of its `Deref` target.
#[derive(Debug)]
pub struct Same<A: ?Sized, B: ?Sized>(Different, PhantomData<(*const A, *const B)>);

/// Target of `Deref` for two different types.
#[derive(Debug)]
pub struct Different;

impl<A: ?Sized, B: ?Sized> Same<A, B> {
    /// Value for the pair of types.
    pub const TYPES: Self = Self(Different, PhantomData);
}

impl<T: ?Sized> Same<T, T> {
    /// Causes the warning.
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
    /// Causes no warning.
    #[expect(clippy::unused_self, reason = "it is found where the other one is not")]
    pub const fn distributed_lock(&self) {}
}
