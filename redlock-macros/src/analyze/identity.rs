//! Finds arguments that look like the id of what is locked.
//!
//! 1. The pattern of each argument is matched with its type, through extractors and tuples. `Path((tenant, id)):
//!    Path<(String, u64)>` results in `tenant: String` and `id: u64`.
//! 2. The type of a name classifies its values: always ids (`OrderId`), never ids (`bool`, `Sender<_>`), or unknown.
//! 3. For an unknown type, the words of the name decide. A part of a URL path names something, unless its words show
//!    that it does not.
//!
//! A missed id costs one missing warning. A false id costs a false alarm, which is an error under `deny(warnings)`.

use super::bindings::{self, Binding};
use super::words::Words;
use syn::{FnArg, GenericArgument, Pat, PatTupleStruct, PathArguments, Signature, Type, TypeParamBound, TypePath};

/// Value that could be part of the key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Name of the placeholder.
    pub(crate) name: String,
    /// Argument that contains the value.
    pub(crate) argument: String,
    /// Expression of the named part, if no argument has the name.
    pub(crate) value: Option<String>,
}

/// Returns the ids among the arguments, in order. `key` is the literal text of the template.
pub(crate) fn from_arguments(signature: &Signature, bindings: &[Binding], key: &str) -> Vec<Identity> {
    let key = Words::new(key);
    let mut names = Vec::new();
    for argument in &signature.inputs {
        if let FnArg::Typed(argument) = argument {
            match_pattern(&argument.pat, Known::Type(&argument.ty), &mut names);
        }
    }
    let seen = bindings.iter().filter(|binding| binding.name != "self" && !binding.name.starts_with('_'));
    let identities = seen.flat_map(|binding| {
        let known = names.iter().rev().find(|(name, _)| *name == binding.name);
        identities(&binding.name, known.map_or(Known::Nothing, |(_, known)| *known), &key)
    });
    identities.collect()
}

/// Knowledge about the type of a name.
#[derive(Clone, Copy)]
enum Known<'a> {
    Type(&'a Type),
    /// A type in the path of a URL.
    InPath(&'a Type),
    /// Unknown type of a part of a URL path.
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

    /// Returns the knowledge about a part of the type.
    const fn part(self, ty: Option<&'a Type>) -> Self {
        match (self, ty) {
            (Self::Type(_), Some(ty)) => Self::Type(ty),
            (Self::InPath(_), Some(ty)) => Self::InPath(ty),
            (Self::InPath(_) | Self::PartOfPath, _) => Self::PartOfPath,
            _ => Self::Nothing,
        }
    }
}

/// Matches a pattern with the knowledge about its type.
fn match_pattern<'a>(pattern: &Pat, known: Known<'a>, names: &mut Vec<(String, Known<'a>)>) {
    match pattern {
        Pat::Ident(pattern) => names.push((Binding::new(&pattern.ident, &[]).name, known)),
        Pat::Paren(pattern) => match_pattern(&pattern.pat, known, names),
        Pat::Tuple(pattern) => {
            let types = match known.ty() {
                Some(Type::Tuple(ty)) => Some(&ty.elems),
                _ => None,
            };
            for (at, pattern) in pattern.elems.iter().enumerate() {
                match_pattern(pattern, known.part(types.and_then(|types| types.iter().nth(at))), names);
            }
        }
        Pat::TupleStruct(pattern) => match_extractor(pattern, known, names),
        other => {
            let parts = bindings::from_pattern(other).into_iter();
            names.extend(parts.map(|binding| (binding.name, known.part(None))));
        }
    }
}

/// Matches `Path(id)` with `Path<u64>`, or `OrderId(id)` with `OrderId`, whose only part is the same id.
fn match_extractor<'a>(pattern: &PatTupleStruct, known: Known<'a>, names: &mut Vec<(String, Known<'a>)>) {
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
    // State that all calls share does not identify what a call locks.
    let known = if ty.is_some_and(is_state) { Known::Nothing } else { known };
    match pattern.elems.first() {
        Some(only) if pattern.elems.len() == 1 => match_pattern(only, known, names),
        _ => pattern.elems.iter().for_each(|pattern| match_pattern(pattern, known.part(None), names)),
    }
}

/// Returns the ids of one name: the name itself, or the parts of a URL path.
fn identities(name: &str, known: Known<'_>, key: &Words) -> Vec<Identity> {
    if let Known::Type(Type::Path(ty)) = known
        && let Some(inner) = only_argument(ty).filter(|_| is_url_path(ty))
    {
        return parts_of_path(name, inner, key);
    }
    let itself = Identity { name: name.to_owned(), argument: name.to_owned(), value: None };
    Vec::from_iter(is_identity(name, known, key).then_some(itself))
}

/// Returns the parts of `path: web::Path<(String, u64)>`, which have no names yet.
fn parts_of_path(argument: &str, inner: &Type, key: &Words) -> Vec<Identity> {
    let identity = |name: &str, value: String| Identity {
        name: name.to_owned(),
        argument: argument.to_owned(),
        value: Some(value),
    };
    let is_part = |ty: &Type| matches!(Kind::from_type(ty, key), Kind::Text | Kind::Integer | Kind::Identity);
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
    let words = Words::new(name);
    let is_in_path = matches!(known, Known::InPath(_) | Known::PartOfPath);
    let by_name = words.is_id(key);
    match known.ty().map(|ty| Kind::from_type(ty, key)) {
        Some(Kind::Identity) => !words.is_technical(key),
        Some(kind @ (Kind::Text | Kind::Integer)) => {
            let is_counted_thing = matches!(kind, Kind::Integer) && words.may_identify() && words.last_word_is_in(key);
            let is_part_of_url = is_in_path && words.may_identify();
            let by_name = by_name && !(matches!(kind, Kind::Integer) && words.is_only_number());
            by_name || words.is_thing(key) || is_counted_thing || is_part_of_url
        }
        None if is_in_path => by_name || words.may_identify(),
        Some(Kind::Open) | None => by_name,
        Some(Kind::Never) => false,
    }
}

/// Classification of a type by its values.
#[derive(Clone, Copy)]
enum Kind {
    /// Ids.
    Identity,
    Text,
    Integer,
    /// Unknown.
    Open,
    /// Never ids: flags, collections, handles, and types without text.
    Never,
}

/// Types without parameters whose values are never ids.
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
    fn from_type(ty: &Type, key: &Words) -> Self {
        match ty {
            Type::Group(ty) => Self::from_type(&ty.elem, key),
            Type::Paren(ty) => Self::from_type(&ty.elem, key),
            Type::Reference(ty) => Self::from_type(&ty.elem, key),
            Type::Path(ty) => Self::from_path(ty, key),
            Type::ImplTrait(ty) if ty.bounds.iter().any(is_bound_of_text) => Self::Text,
            _ => Self::Never,
        }
    }

    fn from_path(ty: &TypePath, key: &Words) -> Self {
        let Some(last) = ty.path.segments.last() else { return Self::Never };
        let name = last.ident.to_string();
        let inner = only_argument(ty);
        match (name.as_str(), inner) {
            ("Arc" | "Box" | "Cow" | "Rc", Some(inner)) => Self::from_type(inner, key),
            ("NonZero", _) => Self::Integer,
            ("String" | "str" | "SmolStr" | "CompactString" | "ByteString", None) => Self::Text,
            (integer, None) if is_integer(integer) => Self::Integer,
            (name, _) if Words::new(name).is_type_of_id(key) => Self::Identity,
            (name, None) if last.arguments.is_none() && !NEVER.contains(&name) && !Words::new(name).ends_like_id() => {
                Self::Open
            }
            _ => Self::Never,
        }
    }
}

/// Returns `true` for `u64` and `NonZeroU64`.
fn is_integer(name: &str) -> bool {
    let plain = name.strip_prefix("NonZero").unwrap_or(name).to_lowercase();
    matches!(plain.get(1..), Some("8" | "16" | "32" | "64" | "128" | "size")) && plain.starts_with(['i', 'u'])
}

/// Returns `true` for `impl AsRef<str>` and similar bounds of text.
fn is_bound_of_text(bound: &TypeParamBound) -> bool {
    let TypeParamBound::Trait(bound) = bound else { return false };
    let last = bound.path.segments.last();
    last.is_some_and(|last| ["AsRef", "Display", "Into", "ToString"].iter().any(|name| last.ident == name))
}

/// Returns the type between the angle brackets, if it is the only one.
fn only_argument(ty: &TypePath) -> Option<&Type> {
    let PathArguments::AngleBracketed(arguments) = &ty.path.segments.last()?.arguments else { return None };
    let mut types = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    });
    let only = types.next();
    only.filter(|_| types.next().is_none())
}

/// Returns `true` for the extractor of a URL path.
fn is_url_path(ty: &TypePath) -> bool {
    is_called(ty, &["Path"])
}

/// Returns `true` for the extractors of shared state.
fn is_state(ty: &TypePath) -> bool {
    is_called(ty, &["State", "Data"])
}

fn is_called(ty: &TypePath, names: &[&str]) -> bool {
    ty.path.segments.last().is_some_and(|last| names.iter().any(|name| last.ident == name))
}
