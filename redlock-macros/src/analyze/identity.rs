//! Which arguments look like the identity of what is locked.
//!
//! 1. The pattern of each argument is laid over its type, through extractors and tuples: so
//!    `Path((tenant, id)): Path<(String, u64)>` gives `tenant: String` and `id: u64`.
//! 2. The type of a name says that its values are identities, as `OrderId` does, that they never are, as `bool` or
//!    `Sender<_>`, or neither.
//! 3. Where the type leaves it open, the words of the name decide. What stands in the path of a URL names something,
//!    unless its words say that it does not.
//!
//! To take an identity for something else costs a warning that is not given; to take something else for an identity
//! costs a false alarm, which is an error under `deny(warnings)`.

use super::bindings::{self, Binding};
use super::words::Words;
use syn::{FnArg, GenericArgument, Pat, PatTupleStruct, PathArguments, Signature, Type, TypeParamBound, TypePath};

/// What could stand in the key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The name that the placeholder would have.
    pub(crate) name: String,
    /// The argument that it is taken from.
    pub(crate) argument: String,
    /// The expression of a named part, where no argument is called so.
    pub(crate) value: Option<String>,
}

/// The identities among the arguments, in their order. `key` is what the template says as it is.
pub(crate) fn of_arguments(signature: &Signature, bindings: &[Binding], key: &str) -> Vec<Identity> {
    let key = Words::of(key);
    let mut names = Vec::new();
    for argument in &signature.inputs {
        if let FnArg::Typed(argument) = argument {
            lay(&argument.pat, Known::Type(&argument.ty), &mut names);
        }
    }
    let seen = bindings.iter().filter(|binding| binding.name != "self" && !binding.name.starts_with('_'));
    let identities = seen.flat_map(|binding| {
        let known = names.iter().rev().find(|(name, _)| *name == binding.name);
        identities(&binding.name, known.map_or(Known::Nothing, |(_, known)| *known), &key)
    });
    identities.collect()
}

/// What is known of the type of a name.
#[derive(Clone, Copy)]
enum Known<'a> {
    Type(&'a Type),
    /// A type that stands in the path of a URL.
    InPath(&'a Type),
    /// It is a part of the path of a URL.
    PartOfPath,
    Nothing,
}

impl<'a> Known<'a> {
    const fn ty(self) -> Option<&'a Type> {
        match self {
            Self::Type(ty) | Self::InPath(ty) => Some(ty),
            Self::PartOfPath | Self::Nothing => None,
        }
    }

    /// The same for a part of the type.
    const fn part(self, ty: Option<&'a Type>) -> Self {
        match (self, ty) {
            (Self::Type(_), Some(ty)) => Self::Type(ty),
            (Self::InPath(_), Some(ty)) => Self::InPath(ty),
            (Self::InPath(_) | Self::PartOfPath, _) => Self::PartOfPath,
            _ => Self::Nothing,
        }
    }
}

/// Lays a pattern over what is known of its type.
fn lay<'a>(pattern: &Pat, known: Known<'a>, names: &mut Vec<(String, Known<'a>)>) {
    match pattern {
        Pat::Ident(pattern) => names.push((Binding::new(&pattern.ident, &[]).name, known)),
        Pat::Paren(pattern) => lay(&pattern.pat, known, names),
        Pat::Tuple(pattern) => {
            let types = match known.ty() {
                Some(Type::Tuple(ty)) => Some(&ty.elems),
                _ => None,
            };
            for (at, pattern) in pattern.elems.iter().enumerate() {
                lay(pattern, known.part(types.and_then(|types| types.iter().nth(at))), names);
            }
        }
        Pat::TupleStruct(pattern) => lay_extractor(pattern, known, names),
        other => {
            let parts = bindings::of_pattern(other).into_iter();
            names.extend(parts.map(|binding| (binding.name, known.part(None))));
        }
    }
}

/// `Path(id)` over `Path<u64>`, or `OrderId(id)` over `OrderId`, whose part is the identity that the whole is.
fn lay_extractor<'a>(pattern: &PatTupleStruct, known: Known<'a>, names: &mut Vec<(String, Known<'a>)>) {
    let ty = match known.ty() {
        Some(Type::Path(ty)) => Some(ty),
        _ => None,
    };
    let inner = ty.and_then(only_argument);
    let known = match inner {
        Some(inner) if ty.is_some_and(is_url_path) => Known::InPath(inner),
        Some(inner) => known.part(Some(inner)),
        None => known,
    };
    // What the whole process shares is not what a call locks.
    let known = if ty.is_some_and(is_state) { Known::Nothing } else { known };
    match pattern.elems.first() {
        Some(only) if pattern.elems.len() == 1 => lay(only, known, names),
        _ => pattern.elems.iter().for_each(|pattern| lay(pattern, known.part(None), names)),
    }
}

/// What one name gives to the key: itself, or the parts of the path of a URL.
fn identities(name: &str, known: Known<'_>, key: &Words) -> Vec<Identity> {
    if let Known::Type(Type::Path(ty)) = known
        && let Some(inner) = only_argument(ty).filter(|_| is_url_path(ty))
    {
        return parts_of_path(name, inner, key);
    }
    let itself = Identity { name: name.to_owned(), argument: name.to_owned(), value: None };
    Vec::from_iter(is_identity(name, known, key).then_some(itself))
}

/// The parts of `path: web::Path<(String, u64)>`, which have no names yet.
fn parts_of_path(argument: &str, inner: &Type, key: &Words) -> Vec<Identity> {
    let identity = |name: &str, value: String| Identity {
        name: name.to_owned(),
        argument: argument.to_owned(),
        value: Some(value),
    };
    let is_part = |ty: &Type| matches!(Kind::of(ty, key), Kind::Text | Kind::Integer | Kind::Identity);
    match inner {
        Type::Tuple(ty) if ty.elems.iter().all(is_part) => {
            let names = ["first", "second", "third", "fourth"].iter().zip(0..ty.elems.len());
            names.map(|(name, at)| identity(name, format!("(*{argument}).{at}"))).collect()
        }
        ty if is_part(ty) && (argument == "path" || is_identity(argument, Known::InPath(inner), key)) => {
            vec![identity("id", format!("*{argument}"))]
        }
        _ => Vec::new(),
    }
}

fn is_identity(name: &str, known: Known<'_>, key: &Words) -> bool {
    let words = Words::of(name);
    let is_in_path = matches!(known, Known::InPath(_) | Known::PartOfPath);
    let by_name = words.name_an_identity(key);
    match known.ty().map(|ty| Kind::of(ty, key)) {
        Some(Kind::Identity) => !words.are_technical(key),
        Some(kind @ (Kind::Text | Kind::Integer)) => {
            let is_counted_thing = matches!(kind, Kind::Integer) && words.may_name_something() && words.end_as_in(key);
            let is_part_of_url = is_in_path && words.may_name_something();
            let by_name = by_name && !(matches!(kind, Kind::Integer) && words.are_only_a_number());
            by_name || words.name_a_thing(key) || is_counted_thing || is_part_of_url
        }
        None if is_in_path => by_name || words.may_name_something(),
        Some(Kind::Open) | None => by_name,
        Some(Kind::Never) => false,
    }
}

/// What a type says of its values.
#[derive(Clone, Copy)]
enum Kind {
    /// They are identities.
    Identity,
    Text,
    Integer,
    /// A type of which nothing is known.
    Open,
    /// They are none: flags, collections, handles, whatever has no text.
    Never,
}

/// Types without parameters, of which it is known that their values are no identities.
const NEVER: &[&str] = &[
    "bool",
    "f32",
    "f64",
    "char",
    "AtomicBool",
    "AtomicU32",
    "AtomicU64",
    "AtomicUsize",
    "Body",
    "Bytes",
    "BytesMut",
    "HeaderMap",
    "HeaderName",
    "HeaderValue",
    "HttpRequest",
    "Key",
    "Method",
    "Multipart",
    "OsStr",
    "OsString",
    "Path",
    "PathBuf",
    "Payload",
    "Uri",
    "Url",
    "Value",
    "WebSocket",
    "WebSocketUpgrade",
];

impl Kind {
    fn of(ty: &Type, key: &Words) -> Self {
        match ty {
            Type::Group(ty) => Self::of(&ty.elem, key),
            Type::Paren(ty) => Self::of(&ty.elem, key),
            Type::Reference(ty) => Self::of(&ty.elem, key),
            Type::Path(ty) => Self::of_path(ty, key),
            Type::ImplTrait(ty) if ty.bounds.iter().any(is_bound_of_text) => Self::Text,
            _ => Self::Never,
        }
    }

    fn of_path(ty: &TypePath, key: &Words) -> Self {
        let Some(last) = ty.path.segments.last() else { return Self::Never };
        let name = last.ident.to_string();
        let inner = only_argument(ty);
        match (name.as_str(), inner) {
            ("Arc" | "Box" | "Cow" | "Rc", Some(inner)) => Self::of(inner, key),
            ("NonZero", _) => Self::Integer,
            ("String" | "str" | "SmolStr" | "CompactString" | "ByteString", None) => Self::Text,
            (integer, None) if is_integer(integer) => Self::Integer,
            (name, _) if Words::of(name).name_a_type_of_identities(key) => Self::Identity,
            (name, None)
                if last.arguments.is_none() && !NEVER.contains(&name) && !Words::of(name).sound_like_an_identity() =>
            {
                Self::Open
            }
            _ => Self::Never,
        }
    }
}

/// `u64` and `NonZeroU64`
fn is_integer(name: &str) -> bool {
    let plain = name.strip_prefix("NonZero").unwrap_or(name).to_lowercase();
    matches!(plain.get(1..), Some("8" | "16" | "32" | "64" | "128" | "size")) && plain.starts_with(['i', 'u'])
}

/// `impl AsRef<str>` and the like.
fn is_bound_of_text(bound: &TypeParamBound) -> bool {
    let TypeParamBound::Trait(bound) = bound else { return false };
    let last = bound.path.segments.last();
    last.is_some_and(|last| ["AsRef", "Display", "Into", "ToString"].iter().any(|name| last.ident == name))
}

/// The type between the angle brackets, if there is one and no other.
fn only_argument(ty: &TypePath) -> Option<&Type> {
    let PathArguments::AngleBracketed(arguments) = &ty.path.segments.last()?.arguments else { return None };
    let mut types = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    });
    let only = types.next();
    only.filter(|_| types.next().is_none())
}

/// The extractor of what a URL names.
fn is_url_path(ty: &TypePath) -> bool {
    is_called(ty, &["Path"])
}

/// The extractors of what all calls share.
fn is_state(ty: &TypePath) -> bool {
    is_called(ty, &["State", "Data"])
}

fn is_called(ty: &TypePath, names: &[&str]) -> bool {
    ty.path.segments.last().is_some_and(|last| names.iter().any(|name| last.ident == name))
}
