//! A block of functions (an `impl`, a `trait` or a module) as tokens.
//!
//! 1. The first keyword of an item determines its kind. `const`, `unsafe` and similar words before it do not. An item
//!    ends with its braces or with a semicolon.
//! 2. The items in a module, an `impl` or a `trait` are visited in turn. Bodies of functions are not.
//! 3. The attributes of an item precede it, and may be inside `cfg_attr`. The last name in the path identifies the
//!    attribute of a function.

use super::item::with_contents;
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// The block that an attribute is applied to.
pub(crate) struct Block {
    /// `impl`, `trait` or `mod`.
    pub(crate) kind: String,
    before: Vec<TokenTree>,
    body: Group,
}

impl Block {
    /// Reads a block. If the item is not a block, returns the token that shows what it is.
    pub(crate) fn read(item: TokenStream) -> Result<Self, Option<TokenTree>> {
        let mut before: Vec<TokenTree> = item.into_iter().collect();
        // An item from a `macro_rules!` variable is in an invisible group.
        if let [TokenTree::Group(whole)] = before.as_slice() {
            return Self::read(whole.stream());
        }
        let keyword = before.iter().find(|token| kind(token).is_some()).cloned();
        let is_block = keyword.as_ref().and_then(kind).is_some_and(has_items);
        match before.pop() {
            Some(TokenTree::Group(body)) if is_block && body.delimiter() == Delimiter::Brace => {
                Ok(Self { kind: keyword.map(|word| word.to_string()).unwrap_or_default(), before, body })
            }
            last => Err(keyword.or_else(|| before.into_iter().next()).or(last)),
        }
    }

    /// Applies `change` to the arguments of each attribute that is called `name`. Returns the new block and the number
    /// of these attributes.
    pub(crate) fn map(&self, name: &str, change: &impl Fn(TokenStream) -> TokenStream) -> (TokenStream, usize) {
        let mut changes = Changes { name, change, count: 0 };
        let body = changes.in_items(self.body.stream());
        let tokens = self.before.iter().cloned().chain([with_contents(&self.body, body).into()]).collect();
        (tokens, changes.count)
    }
}

/// Traversal state: what to change, and how many attributes were found.
struct Changes<'a, F> {
    name: &'a str,
    change: &'a F,
    count: usize,
}

impl<F: Fn(TokenStream) -> TokenStream> Changes<'_, F> {
    fn in_items(&mut self, items: TokenStream) -> TokenStream {
        let tokens: Vec<TokenTree> = items.into_iter().collect();
        let mut item = None;
        let mut changed = Vec::new();
        for (at, token) in tokens.iter().enumerate() {
            let is_after_hash =
                at.checked_sub(1).and_then(|at| tokens.get(at)).is_some_and(|token| is_punct(token, '#'));
            changed.push(match token {
                TokenTree::Group(group) if is_after_hash => {
                    with_contents(group, self.in_attribute(group.stream())).into()
                }
                TokenTree::Group(group) if ends_item(group, tokens.get(at + 1)) => {
                    let has_items = item.take().is_some_and(has_items);
                    if has_items { with_contents(group, self.in_items(group.stream())).into() } else { token.clone() }
                }
                _ => {
                    item = if is_punct(token, ';') { None } else { item.or_else(|| kind(token)) };
                    token.clone()
                }
            });
        }
        changed.into_iter().collect()
    }

    /// Changes `locks::distributed_lock(..)`, also inside `cfg_attr(.., distributed_lock(..))`.
    fn in_attribute(&mut self, attribute: TokenStream) -> TokenStream {
        let tokens: Vec<TokenTree> = attribute.into_iter().collect();
        let mut changed = Vec::new();
        for (at, token) in tokens.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|at| tokens.get(at));
            let is_called = |name: &str| before.is_some_and(|token| is_word(token, name));
            let is_last = !matches!(tokens.get(at + 1), Some(TokenTree::Group(_) | TokenTree::Punct(_)))
                || matches!(tokens.get(at + 1), Some(token) if is_punct(token, ','));
            self.count += usize::from(is_word(token, self.name) && is_last);
            changed.push(match token {
                TokenTree::Group(group) if is_called(self.name) => {
                    self.count += 1;
                    with_contents(group, (self.change)(group.stream())).into()
                }
                TokenTree::Group(group) if is_called("cfg_attr") => {
                    with_contents(group, self.in_attribute(group.stream())).into()
                }
                _ => token.clone(),
            });
        }
        changed.into_iter().collect()
    }
}

/// Returns the keyword that determines the kind of an item.
fn kind(token: &TokenTree) -> Option<&'static str> {
    const KINDS: &[&str] =
        &["enum", "fn", "impl", "macro_rules", "mod", "static", "struct", "trait", "type", "union", "use"];
    let TokenTree::Ident(word) = token else { return None };
    KINDS.iter().copied().find(|kind| word == kind)
}

/// Returns `true` if such an item may contain functions.
fn has_items(kind: &str) -> bool {
    matches!(kind, "impl" | "mod" | "trait")
}

/// Returns `true` if the group ends an item. Braces in a type, as in `Array<{ N }>`, do not.
fn ends_item(group: &Group, next: Option<&TokenTree>) -> bool {
    group.delimiter() == Delimiter::Brace && !next.is_some_and(|token| is_punct(token, '>') || is_punct(token, ','))
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == word)
}

fn is_punct(token: &TokenTree, c: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == c)
}

#[cfg(test)]
mod tests {
    use super::Block;
    use proc_macro2::TokenStream;

    #[test]
    fn attributes_of_functions_are_found() {
        let table = [
            ("impl A { #[lock(a)] async fn f() { #[lock(b)] fn g() {} } fn h() {} }", 1),
            ("pub mod m { #[x::lock(a)] pub(crate) async fn f() {} impl B<{ 1 }> for C { #[lock(b)] fn g() {} } }", 2),
            ("mod m { mod n { #[cfg_attr(test, lock(a), inline)] unsafe fn f() {} } #[lock] fn g() {} }", 2),
            ("unsafe impl<T> A<T> where T: B { const N: usize = { 1 }; #[doc = \"x\"] #[lock(a)] fn f() {} }", 1),
            ("trait A { #[lock(a)] async fn f() {} #[lock::x] fn g(); #[unlock(a)] fn h() -> impl B {} }", 1),
            (
                "mod m { struct S { #[lock(a)] f: u8 } macro_rules! m { () => { #[lock(a)] } } const C: [u8; { 1 }] = \
                 []; }",
                0,
            ),
        ];
        for (item, expected) in table {
            let block = Block::read(item.parse().unwrap()).ok().unwrap();
            let add = |contents: TokenStream| [contents, "+".parse().unwrap()].into_iter().collect();
            let (tokens, count) = block.map("lock", &add);
            assert_eq!(count, expected, "{item}");
            let squeezed = |text: &str| text.replace(' ', "");
            assert_eq!(
                squeezed(&tokens.to_string()).replace('+', ""),
                squeezed(&item.parse::<TokenStream>().unwrap().to_string())
            );
            assert_eq!(tokens.to_string().matches('+').count(), expected - item.matches("#[lock]").count(), "{tokens}");
        }
    }

    #[test]
    fn block_attribute_rejects_other_items() {
        for (item, expected) in [
            ("async fn f() {}", "fn"),
            ("#[x] pub struct S { a: impl B }", "struct"),
            ("mod m;", "mod"),
            ("const C: u8 = 1;", "const"),
        ] {
            let found = Block::read(item.parse().unwrap()).err().unwrap();
            assert_eq!(found.unwrap().to_string(), expected, "{item}");
        }
    }
}
