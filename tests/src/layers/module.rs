//! What one file says about its modules: their definitions, their `use` declarations, and the paths they name.

use super::text::group_at_start;
use std::collections::BTreeSet;

/// A module of a file: the file itself, or one written inside of it.
#[derive(Debug, Default)]
pub(super) struct Module {
    /// Its name inside the file: nothing for the file itself.
    pub(super) name: Vec<String>,
    /// Modules in files of their own, and modules inside this one.
    pub(super) children: BTreeSet<String>,
    /// Those of the children that are in files of their own.
    pub(super) files: BTreeSet<String>,
    /// What is defined here, and could be meant by a glob.
    pub(super) definitions: BTreeSet<String>,
    pub(super) uses: Vec<Use>,
    /// Paths outside of `use`, of at least two names.
    pub(super) paths: Vec<Vec<String>>,
}

/// One name that a `use` declaration brings.
#[derive(Debug)]
pub(super) struct Use {
    pub(super) path: Vec<String>,
    /// The name by which it is known here; `*` for all names.
    pub(super) name: String,
    pub(super) is_public: bool,
}

/// The modules of a file, the file itself first.
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
            // `impl Trait + use<..>` is another thing.
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

/// Words after which the name of something new stands.
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

    /// Whether `pub` or `pub(..)` stands right before.
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

    /// Not in the middle of a path, not after a dot, and not in `pub(in path)`.
    fn may_begin_a_path(&self) -> bool {
        !matches!(self.before.as_slice(), [.., "::" | "."] | [.., "(", "in"])
    }
}

/// `a::b::c`, as far as names go.
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

/// Reads one tree of a `use` declaration, and gives what follows it.
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

/// The same tokens from one before `rest` on.
fn tokens_from<'t, 'a>(tokens: &'t [&'a str], rest: &[&str]) -> &'t [&'a str] {
    tokens.get(tokens.len() - rest.len() - 1..).unwrap_or_default()
}

fn add_use<'t, 'a>(
    mut path: Vec<String>,
    name: Option<&str>,
    after: &'t [&'a str],
    uses: &mut Vec<(Vec<String>, String)>,
) -> &'t [&'a str] {
    // `a::{self}` is `a`; a lone `self` is not.
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    if let Some(last) = path.last().cloned() {
        uses.push((path, name.map_or(last, str::to_owned)));
    }
    after
}
