//! Parts of a key with a format: integers.

use std::fmt;
use std::num::NonZero;

/// Integer in a key. Different integers have different texts in each format, such as leading zeros or another base.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot have a format in a lock key",
    label = "this part is not an integer",
    note = "a format can make different texts equal: remove the format, or write an integer, as in `{{order.id:08}}`"
)]
pub trait KeyInteger: fmt::Display + fmt::LowerHex + fmt::UpperHex + fmt::Octal + fmt::Binary {}

macro_rules! integers {
    ($($type:ty)*) => {$(
        #[diagnostic::do_not_recommend]
        impl KeyInteger for $type {}
        #[diagnostic::do_not_recommend]
        impl KeyInteger for NonZero<$type> {}
    )*};
}

integers!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);

#[diagnostic::do_not_recommend]
impl<T: KeyInteger + ?Sized> KeyInteger for &T {}

/// Integer in a template, which writes itself in the format of its placeholder.
#[derive(Debug)]
pub struct Integer<'a, T: ?Sized>(&'a T);

/// Wraps an integer for a key. The bound of `T` is checked where the integer is formatted, which is inside the user's string.
pub const fn integer<T: ?Sized>(value: &T) -> Integer<'_, T> {
    Integer(value)
}

macro_rules! formats {
    ($($format:ident)*) => {$(
        impl<T: KeyInteger + ?Sized> fmt::$format for Integer<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::$format::fmt(self.0, f)
            }
        }
    )*};
}

formats!(Display LowerHex UpperHex Octal Binary);

#[cfg(test)]
mod tests {
    use super::integer;
    use std::num::NonZero;

    #[test]
    fn integer_is_formatted_like_its_number() {
        let id = NonZero::<u16>::MAX;
        assert_eq!(
            format!("{:08}-{:x}-{:#010X}", integer(&7), integer(&&255_u8), integer(&id)),
            "00000007-ff-0x0000FFFF"
        );
        assert_eq!(format!("{:04}/{:o}/{:b}", integer(&-7), integer(&8), integer(&5)), "-007/10/101");
    }
}
