//! Output type of a call, in a form that an expression can contain.

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::{GenericArgument, Path, PathArguments, Token, Type, TypeInfer, TypeParamBound, TypeTuple, token};

/// Replaces parts that only a signature may contain (`impl Trait` and `!`) by `_`.
pub(crate) fn in_expression(ty: &Type) -> Type {
    let mut ty = ty.clone();
    replace(&mut ty);
    ty
}

/// Returns `()`, for a signature without a return type.
pub(crate) fn unit(span: Span) -> Type {
    Type::Tuple(TypeTuple {
        attrs: Vec::new(),
        paren_token: token::Paren(span),
        elems: syn::punctuated::Punctuated::new(),
    })
}

/// Returns `_`, for a type that the compiler infers.
pub(crate) fn inferred(span: Span) -> Type {
    Type::Infer(TypeInfer { attrs: Vec::new(), underscore_token: Token![_](span) })
}

/// Returns `true` if the type is written as `()`.
pub(crate) fn is_unit(ty: &Type) -> bool {
    match ty {
        Type::Group(ty) => is_unit(&ty.elem),
        Type::Paren(ty) => is_unit(&ty.elem),
        Type::Tuple(ty) => ty.elems.is_empty(),
        _ => false,
    }
}

/// Returns `true` for a `Result` whose error type is `LockError`.
pub(crate) fn carries_lock_error(ty: &Type) -> bool {
    let Type::Path(ty) = ty else { return matches!(ty, Type::Group(ty) if carries_lock_error(&ty.elem)) };
    let Some(last) = ty.path.segments.last().filter(|last| last.ident == "Result") else { return false };
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return false };
    let error = arguments.args.iter().nth(1);
    matches!(error, Some(GenericArgument::Type(Type::Path(error)))
        if error.path.segments.last().is_some_and(|segment| segment.ident == "LockError"))
}

/// Replaces each part that only a signature may contain by `_`.
fn replace(ty: &mut Type) {
    match ty {
        Type::ImplTrait(_) | Type::Never(_) => *ty = inferred(ty.span()),
        Type::Array(ty) => replace(&mut ty.elem),
        Type::Group(ty) => replace(&mut ty.elem),
        Type::Paren(ty) => replace(&mut ty.elem),
        Type::Ptr(ty) => replace(&mut ty.elem),
        Type::Reference(ty) => replace(&mut ty.elem),
        Type::Slice(ty) => replace(&mut ty.elem),
        Type::Tuple(ty) => ty.elems.iter_mut().for_each(replace),
        Type::Path(ty) => {
            ty.qself.iter_mut().for_each(|qself| replace(&mut qself.ty));
            replace_in_path(&mut ty.path);
        }
        Type::TraitObject(ty) => {
            for bound in &mut ty.bounds {
                if let TypeParamBound::Trait(bound) = bound {
                    replace_in_path(&mut bound.path);
                }
            }
        }
        _ => {}
    }
}

fn replace_in_path(path: &mut Path) {
    for segment in &mut path.segments {
        if let PathArguments::AngleBracketed(arguments) = &mut segment.arguments {
            arguments.args.iter_mut().for_each(replace_argument);
        }
    }
}

fn replace_argument(argument: &mut GenericArgument) {
    match argument {
        GenericArgument::Type(ty) => replace(ty),
        GenericArgument::AssocType(assoc) => replace(&mut assoc.ty),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::in_expression;
    use quote::ToTokens;

    #[test]
    fn signature_only_types_are_inferred() {
        let table = [
            ("Result<impl Display + '_, Error>", "Result<_,Error>"),
            ("impl Display", "_"),
            ("!", "_"),
            ("(u8, &'a [impl Send])", "(u8,&'a[_])"),
            ("Result<Vec<Box<dyn Fn(u8) -> u8>>, E>", "Result<Vec<Box<dynFn(u8)->u8>>,E>"),
            ("Either<[impl Copy; 2], Self::X>", "Either<[_;2],Self::X>"),
            ("Box<dyn Iterator<Item = impl Display> + Send>", "Box<dynIterator<Item=_>+Send>"),
        ];
        for (ty, expected) in table {
            let found = in_expression(&syn::parse_str(ty).unwrap()).to_token_stream().to_string();
            assert_eq!(found.replace(' ', ""), expected.replace(' ', ""), "{ty}");
        }
    }
}
