//! Reads the public API of a crate whose modules are private and whose `lib.rs` names the public items.

use super::words::words;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use syn::{
    Attribute, Fields, File, ImplItem, Item, ItemEnum, ItemImpl, ItemStruct, ItemTrait, TraitItem, Type, UseTree,
    Visibility,
};

/// Lines, each with the item that it describes. The set keeps the lines of one item together.
#[derive(Default)]
struct Lines(BTreeSet<(String, String)>);

impl Lines {
    fn insert(&mut self, about: &str, line: String) {
        self.0.insert((about.to_owned(), line));
    }
}

/// One file, and the path of its module.
struct Source {
    module: Vec<String>,
    items: Vec<Item>,
    /// Conditions for the existence of the module, from the modules above it.
    when: String,
}

pub(super) struct Crate {
    sources: Vec<Source>,
}

/// Name that a `use` imports: the path of the item, and its local name.
struct Named {
    path: Vec<String>,
    name: String,
}

impl Crate {
    pub(super) fn read(src: &Path) -> Self {
        let mut files = Vec::new();
        collect(src, src, &mut files);
        let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        Self::of(&files)
    }

    /// Builds the crate from files: their paths below `src`, and their texts.
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let mut sources = Vec::new();
        for (name, text) in files {
            let File { items, .. } = syn::parse_file(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            let path = name.trim_end_matches(".rs").trim_end_matches("/mod");
            let module = path.split('/').filter(|part| *part != "lib").map(str::to_owned).collect();
            flatten(module, items, &mut sources);
        }
        let all = Self { sources };
        let when: Vec<_> = all.sources.iter().map(|source| all.condition_of(&source.module)).collect();
        let sources = all.sources.into_iter().zip(when).map(|(source, when)| Source { when, ..source });
        // Test-only modules are not part of the API.
        Self { sources: sources.filter(|source| !source.when.contains("test")).collect() }
    }

    /// Returns the conditions for the existence of a module.
    fn condition_of(&self, module: &[String]) -> String {
        let Some((name, above)) = module.split_last() else { return String::new() };
        let parent = self.sources.iter().filter(|source| source.module == above).flat_map(|source| &source.items);
        let own = parent.filter_map(|item| match item {
            Item::Mod(item) if item.ident == name => Some(condition(&item.attrs)),
            _ => None,
        });
        [self.condition_of(above), own.collect()].concat()
    }

    /// Returns one line for each thing that users can name.
    pub(super) fn api(&self) -> Vec<String> {
        let mut lines = Lines::default();
        for source in self.sources.iter().filter(|source| source.module.is_empty()) {
            for item in &source.items {
                self.exported(item, "", &mut lines);
            }
        }
        lines.0.into_iter().map(|(_, line)| line).collect()
    }

    /// Adds the lines of an item of a public module. `of` is the prefix of these lines.
    fn exported(&self, item: &Item, of: &str, lines: &mut Lines) {
        match item {
            Item::Use(item) if is_public(&item.vis, &item.attrs) => {
                for Named { path, name } in named(&item.tree) {
                    self.reexported(&path, &name, (of, &condition(&item.attrs)), lines);
                }
            }
            Item::Mod(item) if is_public(&item.vis, &item.attrs) && !is_for_the_documentation(&item.attrs) => {
                let module = [of, &format!("mod {}: ", item.ident)].concat();
                let itself = module.trim_end_matches(": ");
                lines.insert(itself, format!("{}pub {itself}", condition(&item.attrs)));
                let inner = self.sources.iter().find(|source| source.module == [item.ident.to_string()]);
                for item in inner.into_iter().flat_map(|source| &source.items) {
                    self.exported(item, &module, lines);
                }
            }
            item => {
                let public = named_item(item).filter(|(_, vis, attrs)| is_public(vis, attrs));
                if let Some((name, ..)) = public {
                    self.described(item, &name, (of, ""), lines);
                }
            }
        }
    }

    /// Adds the lines of a `pub use` of `path`.
    fn reexported(&self, path: &[String], name: &str, place: (&str, &str), lines: &mut Lines) {
        let own: Vec<_> = path.iter().filter(|part| !matches!(part.as_str(), "self" | "crate")).cloned().collect();
        let (Some(top), Some(last)) = (own.first(), own.last()) else { return };
        let is_here = |source: &&Source| source.module.first() == Some(top);
        let defined = self.sources.iter().filter(is_here).flat_map(|source| &source.items).find(|item| {
            named_item(item).is_some_and(|(name, vis, _)| name == *last && matches!(vis, Visibility::Public(_)))
        });
        match defined {
            Some(item) => self.described(item, name, place, lines),
            None if self.sources.iter().any(|source| is_here(&source)) => panic!("{} is not found", path.join("::")),
            None => {
                lines.insert(name, format!("{}pub {}use {}", place.1, place.0, path.join("::")));
            }
        }
    }

    /// Adds the lines of an item with the public name `name`.
    fn described(&self, item: &Item, name: &str, (of, when): (&str, &str), lines: &mut Lines) {
        let head = |kind: &str, generics: String, attrs: &[Attribute]| {
            let derived = derives(attrs);
            let open = if has(attrs, "non_exhaustive") { "#[non_exhaustive] " } else { "" };
            let derived = if derived.is_empty() { String::new() } else { format!(": {}", derived.join(", ")) };
            format!("{when}pub {of}{open}{kind} {name}{generics}{derived}")
        };
        match item {
            Item::Struct(ItemStruct { attrs, generics, fields, .. }) => {
                let is_tuple = matches!(fields, Fields::Unnamed(_));
                lines.insert(
                    name,
                    head("struct", [words(generics), if is_tuple { "(..)" } else { "" }.into()].concat(), attrs),
                );
                Self::fields(name, fields, lines);
                self.impls(item, lines);
            }
            Item::Enum(ItemEnum { attrs, generics, variants, .. }) => {
                lines.insert(name, head("enum", words(generics), attrs));
                for variant in variants {
                    let open = if has(&variant.attrs, "non_exhaustive") { "#[non_exhaustive] " } else { "" };
                    let mut variant = variant.clone();
                    variant.attrs.clear();
                    plain(&mut variant.fields);
                    lines.insert(name, format!("pub enum {name}::{open}{}", words(variant)));
                }
                self.impls(item, lines);
            }
            Item::Trait(ItemTrait { attrs, generics, supertraits, items, .. }) => {
                let above = if supertraits.is_empty() { String::new() } else { format!(": {}", words(supertraits)) };
                lines.insert(name, head("trait", [words(generics), above].concat(), attrs));
                for item in items.iter().filter_map(of_trait) {
                    lines.insert(name, format!("pub trait {name}: {item}"));
                }
            }
            Item::Fn(function) => {
                let mut signature = function.sig.clone();
                signature.ident = syn::Ident::new(name, signature.ident.span());
                lines.insert(name, format!("{when}pub {of}{}", words(signature)));
            }
            Item::Const(item) => {
                lines.insert(name, format!("{when}pub {of}const {name}: {}", words(&item.ty)));
            }
            Item::Type(item) => {
                lines.insert(name, format!("{when}pub {of}type {name} = {}", words(&item.ty)));
            }
            _ => {
                lines.insert(name, format!("{when}pub {of}macro {name}"));
            }
        }
    }

    fn fields(name: &str, fields: &Fields, lines: &mut Lines) {
        let is_public = |field: &&syn::Field| is_public(&field.vis, &field.attrs);
        for field in fields.iter().filter(is_public) {
            let field_name = field.ident.as_ref().map_or("0".to_owned(), ToString::to_string);
            lines.insert(name, format!("pub struct {name}.{field_name}: {}", words(&field.ty)));
        }
        let private = fields.iter().filter(|field| !is_public(field)).count();
        if private > 0 && private < fields.len() {
            lines.insert(name, format!("pub struct {name}: .. private fields"));
        }
    }

    /// Adds the implementations for the type that `item` defines.
    fn impls(&self, item: &Item, lines: &mut Lines) {
        let Some((name, ..)) = named_item(item) else { return };
        let home = self.sources.iter().find(|source| source.items.iter().any(|other| std::ptr::eq(other, item)));
        let Some(home) = home else { return };
        for source in &self.sources {
            for item in &source.items {
                let Item::Impl(implemented) = item else { continue };
                let is_ours = mentions(implemented, &name) && source.means(&name, home);
                if is_ours && !is_hidden(&implemented.attrs) {
                    self.implemented(implemented, (&name, &source.when), lines);
                }
            }
        }
    }

    fn implemented(&self, implemented: &ItemImpl, (name, when): (&str, &str), lines: &mut Lines) {
        let ItemImpl { attrs, generics, trait_, self_ty, items, .. } = implemented;
        let (when, ty) = ([when, &condition(attrs)].concat(), words(self_ty));
        let generics = words(generics);
        if let Some((path, _)) = trait_ {
            let of = path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
            if !self.is_private_trait(&of) && !self.is_of_private(path) {
                lines.insert(name, format!("{when}impl{generics} {} for {ty}", words(path)));
            }
        } else if last_ident(self_ty).as_deref() == Some(name) {
            for item in items {
                let (vis, attrs, text) = match item {
                    ImplItem::Fn(item) => (&item.vis, &item.attrs, words(&item.sig)),
                    ImplItem::Const(item) => {
                        (&item.vis, &item.attrs, format!("const {}: {}", item.ident, words(&item.ty)))
                    }
                    _ => continue,
                };
                if is_public(vis, attrs) {
                    lines.insert(name, format!("{when}{}impl{generics} {ty}: {text}", condition(attrs)));
                }
            }
        }
    }

    /// Returns `true` if the path contains a type of this crate that users cannot name, as in `From<Inner>`.
    fn is_of_private(&self, path: &syn::Path) -> bool {
        let text = words(path);
        let (_, generics) = text.split_once('<').unwrap_or_default();
        let mut names = generics.split(|c: char| !c.is_alphanumeric() && c != '_');
        names.any(|name| {
            let is_it = |item: &Item| named_item(item).is_some_and(|(defined, ..)| defined == name);
            // An unnamed lifetime `'_` is not an unnamed constant.
            name != "_" && self.sources.iter().any(|source| source.items.iter().any(is_it)) && !self.is_named(name)
        })
    }

    /// Returns `true` for a trait of this crate that users cannot name.
    fn is_private_trait(&self, name: &str) -> bool {
        let is_it = |item: &Item| matches!(item, Item::Trait(item) if item.ident == name);
        self.sources.iter().any(|source| source.items.iter().any(is_it)) && !self.is_named(name)
    }

    /// Returns `true` if `lib.rs` names the item.
    fn is_named(&self, name: &str) -> bool {
        let is_it = |item: &Item| match item {
            Item::Use(item) => {
                is_public(&item.vis, &item.attrs) && named(&item.tree).iter().any(|named| named.name == name)
            }
            _ => false,
        };
        let mut root = self.sources.iter().filter(|source| source.module.is_empty()).flat_map(|source| &source.items);
        root.any(is_it)
    }
}

impl Source {
    /// Returns `true` if `name` means in this file the item of `home`.
    /// Both must be below one module of the crate, as far as the imports of this file show.
    fn means(&self, name: &str, home: &Self) -> bool {
        if std::ptr::eq(self, home) {
            return true;
        }
        let defines = self.items.iter().filter_map(named_item).any(|(defined, ..)| defined == name);
        let imports = self.items.iter().filter_map(|item| match item {
            Item::Use(item) => named(&item.tree).into_iter().find(|named| named.name == name || named.name == "*"),
            _ => None,
        });
        !defines
            && imports.into_iter().any(|Named { path, .. }| match path.first().map(String::as_str) {
                Some("crate") => path.get(1) == home.module.first(),
                _ => self.module.first() == home.module.first(),
            })
    }
}

/// Collects all files below `folder` that are not tests, with their paths below `src`.
fn collect(src: &Path, folder: &Path, files: &mut Vec<(String, String)>) {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let name = path.strip_prefix(src).unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            if !matches!(name.as_str(), "simulation") && !name.ends_with("/tests") {
                collect(src, &path, files);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") && !name.ends_with("tests.rs") {
            files.push((name, fs::read_to_string(&path).unwrap()));
        }
    }
}

/// Adds each inline module as a separate source.
fn flatten(module: Vec<String>, items: Vec<Item>, sources: &mut Vec<Source>) {
    let mut own = Vec::new();
    for item in items {
        match item {
            Item::Mod(inner) if is_test(&inner.attrs) => {}
            Item::Mod(mut inner) if inner.content.is_some() && !module.is_empty() => {
                let name = inner.ident.to_string();
                let (_, items) = inner.content.take().unwrap();
                flatten(module.iter().cloned().chain([name]).collect(), items, sources);
            }
            item => own.push(item),
        }
    }
    sources.push(Source { module, items: own, when: String::new() });
}

fn named(tree: &UseTree) -> Vec<Named> {
    fn walk(tree: &UseTree, path: &[String], found: &mut Vec<Named>) {
        let with = |part: &syn::Ident| path.iter().cloned().chain([part.to_string()]).collect::<Vec<_>>();
        match tree {
            UseTree::Path(inner) => walk(&inner.tree, &with(&inner.ident), found),
            UseTree::Name(leaf) => found.push(Named { path: with(&leaf.ident), name: leaf.ident.to_string() }),
            UseTree::Rename(leaf) => found.push(Named { path: with(&leaf.ident), name: leaf.rename.to_string() }),
            UseTree::Glob(_) => found.push(Named { path: path.to_vec(), name: "*".into() }),
            UseTree::Group(group) => group.items.iter().for_each(|tree| walk(tree, path, found)),
        }
    }
    let mut found = Vec::new();
    walk(tree, &[], &mut found);
    found
}

fn named_item(item: &Item) -> Option<(String, &Visibility, &[Attribute])> {
    Some(match item {
        Item::Struct(item) => (item.ident.to_string(), &item.vis, &item.attrs),
        Item::Enum(item) => (item.ident.to_string(), &item.vis, &item.attrs),
        Item::Trait(item) => (item.ident.to_string(), &item.vis, &item.attrs),
        Item::Fn(item) => (item.sig.ident.to_string(), &item.vis, &item.attrs),
        Item::Const(item) => (item.ident.to_string(), &item.vis, &item.attrs),
        Item::Type(item) => (item.ident.to_string(), &item.vis, &item.attrs),
        _ => return None,
    })
}

/// Returns `true` if the impl is for the type called `name`, or converts that type into another one.
fn mentions(implemented: &ItemImpl, name: &str) -> bool {
    let is_from = || {
        let Some((path, _)) = &implemented.trait_ else { return false };
        words(path).split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name)
    };
    last_ident(&implemented.self_ty).as_deref() == Some(name) || is_from()
}

fn last_ident(ty: &Type) -> Option<String> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        Type::Reference(reference) => last_ident(&reference.elem),
        _ => None,
    }
}

fn of_trait(item: &TraitItem) -> Option<String> {
    match item {
        TraitItem::Fn(item) if is_hidden(&item.attrs) => None,
        TraitItem::Fn(item) => {
            Some([words(&item.sig), if item.default.is_some() { " { .. }" } else { "" }.into()].concat())
        }
        TraitItem::Type(item) => Some(words(item).trim_end_matches(';').to_owned()),
        TraitItem::Const(item) => Some(words(item)),
        _ => None,
    }
}

/// Removes the documentation of the fields.
fn plain(fields: &mut Fields) {
    fields.iter_mut().for_each(|field| field.attrs.clear());
}

fn is_public(vis: &Visibility, attrs: &[Attribute]) -> bool {
    matches!(vis, Visibility::Public(_)) && !is_hidden(attrs)
}

fn has(attrs: &[Attribute], name: &str) -> bool {
    attrs.iter().any(|attr| attr.path().is_ident(name))
}

fn is_hidden(attrs: &[Attribute]) -> bool {
    attrs.iter().map(words).any(|attr| attr == "#[doc(hidden)]" || attr == "#[cfg_attr(doc, doc(hidden))]")
}

fn conditions(attrs: &[Attribute]) -> impl Iterator<Item = String> {
    attrs.iter().filter(|attr| attr.path().is_ident("cfg")).map(words)
}

fn is_test(attrs: &[Attribute]) -> bool {
    conditions(attrs).any(|condition| condition.contains("test"))
}

fn is_for_the_documentation(attrs: &[Attribute]) -> bool {
    conditions(attrs).any(|condition| condition.contains("doc"))
}

/// Returns the condition in the attributes, followed by a space.
fn condition(attrs: &[Attribute]) -> String {
    conditions(attrs).flat_map(|condition| [condition, " ".into()]).collect()
}

fn derives(attrs: &[Attribute]) -> Vec<String> {
    let mut derived: Vec<String> = Vec::new();
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("derive")) {
        let paths = attr.parse_args_with(syn::punctuated::Punctuated::<syn::Path, syn::Token![,]>::parse_terminated);
        derived.extend(paths.unwrap().iter().map(words));
    }
    derived.sort();
    derived
}
