//! Modules of one file: their definitions, their `use` declarations, and the paths in their code.

use super::text::group_at_start;
use std::collections::BTreeSet;

/// Module of a file: the file itself, or an inline module.
#[derive(Debug, Default)]
pub(super) struct Module {
    /// Name inside the file, empty for the file itself.
    pub(super) name: Vec<String>,
    /// All child modules, in files and inline.
    pub(super) children: BTreeSet<String>,
    /// Child modules that are files.
    pub(super) files: BTreeSet<String>,
    /// Names that are defined here, and that a glob import could mean.
    pub(super) definitions: BTreeSet<String>,
    pub(super) uses: Vec<Use>,
    /// Paths outside of `use`, of at least two names.
    pub(super) paths: Vec<Vec<String>>,
}

/// One name that a `use` declaration imports.
#[derive(Debug)]
pub(super) struct Use {
    pub(super) path: Vec<String>,
    /// Local name of the import, `*` for a glob.
    pub(super) name: String,
    pub(super) is_public: bool,
}

/// Returns the modules of a file, the file itself first.
pub(super) fn read(tokens: &[&str]) -> Vec<Module> {
    let mut modules = Vec::new();
    read_module(tokens, Vec::new(), &mut modules);
    modules
}

fn read_module(tokens: &[&str], name: Vec<String>, modules: &mut Vec<Module>) {
    let at = modules.len();
    let mut module = Module { name, ..Module::default() };
    modules.push(Module::default());
    let mut reader = Reader { rest: tokens, before: Vec::new() };
    while let [first, after @ ..] = reader.rest {
        match (*first, after) {
            ("mod", [child, ";", ..]) => {
                module.children.insert((*child).to_owned());
                module.files.insert((*child).to_owned());
                reader.skip(3);
            }
            ("mod", [child, group @ ..]) if group.first() == Some(&"{") => {
                let (inside, after) = group_at_start(group).unwrap_or((group, &[]));
                module.children.insert((*child).to_owned());
                let name = module.name.iter().cloned().chain([(*child).to_owned()]).collect();
                read_module(inside, name, modules);
                reader.rest = after;
            }
            // `impl Trait + use<..>` is a capture list, and not an import.
            ("use", [next, ..]) if *next != "<" => {
                let is_public = reader.follows_pub();
                reader.skip(1);
                let mut uses = Vec::new();
                reader.rest = read_use(reader.rest, &[], &mut uses);
                module.uses.extend(uses.into_iter().map(|(path, name)| Use { path, name, is_public }));
            }
            (word, ["::", ..]) if is_name(word) && reader.may_begin_a_path() => {
                let path = path_at_start(reader.rest);
                reader.skip(path.len() * 2 - 1);
                module.paths.push(path);
            }
            (word, [name, ..]) if DEFINING.contains(&word) => {
                module.definitions.insert((*name).to_owned());
                reader.skip(1);
            }
            _ => reader.skip(1),
        }
    }
    if let Some(place) = modules.get_mut(at) {
        *place = module;
    }
}

/// Keywords that are followed by the name of a new item.
const DEFINING: &[&str] = &["const", "enum", "fn", "static", "struct", "trait", "type", "union"];

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c == '_' || c.is_alphabetic())
}

struct Reader<'t, 'a> {
    rest: &'t [&'a str],
    before: Vec<&'a str>,
}

impl Reader<'_, '_> {
    fn skip(&mut self, count: usize) {
        let (skipped, rest) = self.rest.split_at(count.min(self.rest.len()));
        self.before.extend(skipped);
        self.rest = rest;
    }

    /// Returns `true` if the previous tokens are `pub` or `pub(..)`.
    fn follows_pub(&self) -> bool {
        match self.before.as_slice() {
            [.., "pub"] => true,
            [before @ .., ")"] => {
                let open = before.iter().rposition(|token| *token == "(");
                open.and_then(|open| open.checked_sub(1)).and_then(|at| before.get(at)) == Some(&"pub")
            }
            _ => false,
        }
    }

    /// Returns `true` unless the position is inside a path, after a dot, or in `pub(in path)`.
    fn may_begin_a_path(&self) -> bool {
        !matches!(self.before.as_slice(), [.., "::" | "."] | [.., "(", "in"])
    }
}

/// Reads `a::b::c`, as long as names follow.
fn path_at_start(tokens: &[&str]) -> Vec<String> {
    let mut path = Vec::new();
    let mut rest = tokens;
    while let [name, after @ ..] = rest
        && is_name(name)
    {
        path.push((*name).to_owned());
        let ["::", after @ ..] = after else { break };
        rest = after;
    }
    path
}

/// Reads one tree of a `use` declaration. Returns the tokens behind it.
fn read_use<'t, 'a>(tokens: &'t [&'a str], prefix: &[String], uses: &mut Vec<(Vec<String>, String)>) -> &'t [&'a str] {
    let mut path = prefix.to_vec();
    let mut rest = tokens;
    while let [first, after @ ..] = rest {
        rest = after;
        match *first {
            // A path that begins with `::` leads out of the crate.
            "::" if path.is_empty() => path.push(String::new()),
            "::" => {}
            "{" => {
                let (inside, after) = group_at_start(tokens_from(tokens, rest)).unwrap_or((rest, &[]));
                let mut inside = inside;
                while !inside.is_empty() {
                    inside = read_use(inside, &path, uses);
                }
                return after.strip_prefix(&[","]).or_else(|| after.strip_prefix(&[";"])).unwrap_or(after);
            }
            "," | ";" => return add_use(path, None, after, uses),
            "as" => {
                let [name, after @ ..] = after else { return after };
                let after = after.strip_prefix(&[","]).or_else(|| after.strip_prefix(&[";"])).unwrap_or(after);
                return add_use(path, Some(name), after, uses);
            }
            name => path.push(name.to_owned()),
        }
    }
    add_use(path, None, rest, uses)
}

/// Returns the tokens from the one before `rest` on.
fn tokens_from<'t, 'a>(tokens: &'t [&'a str], rest: &[&str]) -> &'t [&'a str] {
    tokens.get(tokens.len() - rest.len() - 1..).unwrap_or_default()
}

fn add_use<'t, 'a>(
    mut path: Vec<String>,
    name: Option<&str>,
    after: &'t [&'a str],
    uses: &mut Vec<(Vec<String>, String)>,
) -> &'t [&'a str] {
    // `a::{self}` means `a`. A `self` without a path does not.
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    if let Some(last) = path.last().cloned() {
        uses.push((path, name.map_or(last, str::to_owned)));
    }
    after
}
