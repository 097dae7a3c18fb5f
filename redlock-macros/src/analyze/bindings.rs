//! Variables that the arguments of a function bind.

use super::lints;
use syn::ext::IdentExt;
use syn::{Attribute, FnArg, Ident, Local, Pat, PatIdent, PatType, Receiver, Signature, Token, Type};

/// Variable that the body sees.
#[derive(Clone)]
pub(crate) struct Binding {
    /// Name in a template: without `r#`, and `self` for the receiver even if it was renamed.
    pub(crate) name: String,
    /// Name in generated code, with the hygiene of the binding.
    pub(crate) ident: Ident,
    /// `cfg` attributes of the argument.
    pub(crate) cfg: Vec<Attribute>,
    pub(crate) mutability: Option<Token![mut]>,
    /// Lint levels that the user has set for the argument.
    pub(crate) lints: Vec<Attribute>,
    /// Name of its type if the type is a primitive integer.
    pub(crate) integer: Option<&'static str>,
    /// Number of `&` at the beginning of its type.
    pub(crate) references: usize,
    /// `true` if its type looks like a few machine words at most.
    pub(crate) is_small: bool,
}

impl Binding {
    /// Returns `true` if the name may be a constant or a unit struct, such as `RequireAdmin` in a pattern. Such a
    /// pattern binds no variable.
    pub(crate) fn may_be_a_constant(&self) -> bool {
        self.mutability.is_none() && self.name.starts_with(char::is_uppercase)
    }

    /// Creates a variable of unknown type.
    pub(crate) fn new(ident: &Ident, attributes: &[Attribute]) -> Self {
        let cfg = attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).cloned().collect();
        let (name, lints) = (ident.unraw().to_string(), lints::repeated(attributes));
        Self { name, ident: ident.clone(), cfg, mutability: None, lints, integer: None, references: 0, is_small: false }
    }
}

/// Returns the variables that the arguments bind, in order.
pub(crate) fn from_arguments(signature: &Signature) -> Vec<Binding> {
    let mut bindings = Vec::new();
    for argument in &signature.inputs {
        match argument {
            FnArg::Receiver(receiver) => bindings.push(from_receiver(receiver)),
            FnArg::Typed(argument) => bindings.extend(from_argument(argument)),
        }
    }
    bindings
}

/// Returns `self`. The `mut` of `&mut self` belongs to the reference.
pub(crate) fn from_receiver(receiver: &Receiver) -> Binding {
    let ident = Ident::new("self", receiver.self_token.span);
    Binding { mutability: receiver.mutability, ..Binding::new(&ident, &receiver.attrs) }
}

/// Returns the variables in the pattern of one argument.
pub(crate) fn from_argument(PatType { attrs, pat, ty, .. }: &PatType) -> Vec<Binding> {
    let mut bindings = Vec::new();
    let is_small = is_small(ty);
    visit(pat, &mut |pattern| {
        let mutability = pattern.mutability.filter(|_| pattern.by_ref.is_none());
        bindings.push(Binding { mutability, is_small, ..Binding::new(&pattern.ident, attrs) });
    });
    // Under another `cfg`, an argument of the same name may have another type.
    if let ([binding], Pat::Ident(PatIdent { by_ref: None, subpat: None, .. })) = (bindings.as_mut_slice(), &**pat)
        && binding.cfg.is_empty()
    {
        (binding.integer, binding.references) = (integer(ty), references(ty));
    }
    bindings
}

/// Counts the `&` at the beginning of the type.
fn references(ty: &Type) -> usize {
    match ty {
        Type::Group(ty) => references(&ty.elem),
        Type::Paren(ty) => references(&ty.elem),
        Type::Reference(ty) => 1 + references(&ty.elem),
        _ => 0,
    }
}

/// Returns `true` for types of a few machine words: numbers, references, and tuples of these.
pub(crate) fn is_small(ty: &Type) -> bool {
    match ty {
        Type::Group(ty) => is_small(&ty.elem),
        Type::Paren(ty) => is_small(&ty.elem),
        Type::Path(path) => {
            integer(ty).is_some() || ["bool", "char", "f32", "f64"].iter().any(|name| path.path.is_ident(name))
        }
        Type::Reference(_) => true,
        Type::Tuple(ty) => ty.elems.iter().all(is_small),
        _ => false,
    }
}

/// Returns the name of the type if it is a primitive integer.
fn integer(ty: &Type) -> Option<&'static str> {
    const INTEGERS: &[&str] = &["u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize"];
    match ty {
        Type::Path(ty) if ty.qself.is_none() => {
            let name = ty.path.get_ident()?;
            INTEGERS.iter().copied().find(|integer| name == integer)
        }
        Type::Group(ty) => integer(&ty.elem),
        Type::Paren(ty) => integer(&ty.elem),
        _ => None,
    }
}

/// Returns the variables that a `let` binds.
pub(crate) fn from_local(local: &Local) -> Vec<Binding> {
    let mut bindings = Vec::new();
    visit(&local.pat, &mut |pattern| {
        let mutability = pattern.mutability.filter(|_| pattern.by_ref.is_none());
        bindings.push(Binding { mutability, ..Binding::new(&pattern.ident, &local.attrs) });
    });
    bindings
}

/// Returns `true` if the pattern contains `ref mut`.
pub(crate) fn borrow_mutably(pattern: &Pat) -> bool {
    let mut is_found = false;
    visit(pattern, &mut |name| is_found |= name.by_ref.is_some() && name.mutability.is_some());
    is_found
}

/// Returns the variables in a pattern.
pub(crate) fn from_pattern(pattern: &Pat) -> Vec<Binding> {
    let mut bindings = Vec::new();
    visit(pattern, &mut |name| bindings.push(Binding::new(&name.ident, &[])));
    bindings
}

/// Calls `found` with each name that the pattern binds.
fn visit(pattern: &Pat, found: &mut impl FnMut(&PatIdent)) {
    match pattern {
        Pat::Ident(pattern) => {
            found(pattern);
            if let Some((_, inner)) = &pattern.subpat {
                visit(inner, found);
            }
        }
        // All alternatives of a pattern bind the same names, so the first one is enough.
        Pat::Or(pattern) => pattern.cases.iter().take(1).for_each(|case| visit(case, found)),
        Pat::Paren(pattern) => visit(&pattern.pat, found),
        Pat::Reference(pattern) => visit(&pattern.pat, found),
        Pat::Slice(pattern) => pattern.elems.iter().for_each(|element| visit(element, found)),
        Pat::Struct(pattern) => pattern.fields.iter().for_each(|field| visit(&field.pat, found)),
        Pat::Tuple(pattern) => pattern.elems.iter().for_each(|element| visit(element, found)),
        Pat::TupleStruct(pattern) => pattern.elems.iter().for_each(|element| visit(element, found)),
        Pat::Type(pattern) => visit(&pattern.pat, found),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::from_arguments;

    #[test]
    fn names_in_patterns_are_found() {
        let signature = "async fn f(&self, Path(id): Path<u64>, mut a: A, (b, _): (B, C), \
                         Order { line: Line { sku, .. }, total, .. }: Order, [d, rest @ ..]: [u8; 4], &e: &u8, \
                         (Ok(g) | Err(g)): Result<u8, u8>, ref h: H, r#type: u8, _unused: U, _: V)";
        let bindings = from_arguments(&syn::parse_str(signature).unwrap());
        let names: Vec<_> = bindings.iter().map(|binding| binding.name.as_str()).collect();
        let expected = "self id a b sku total d rest e g h type _unused";
        assert_eq!(names.join(" "), expected);
    }
}
