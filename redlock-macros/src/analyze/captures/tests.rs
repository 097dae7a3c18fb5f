//! Plans for the arguments of whole signatures.

use super::{Inside, Names, from_function};
use crate::analyze::mentions::Mentions;
use quote::ToTokens;

fn squeezed(tokens: impl ToTokens) -> String {
    tokens.to_token_stream().to_string().replace(' ', "")
}

/// Returns the inputs of the signature, and each entry: the captured variable, with `*` before a local, and its
/// binding.
fn plan(signature: &str, in_options: &[&str], in_body: &[&str]) -> (String, String) {
    let mentions = |names: &[&str]| Mentions::from_tokens(names.join(" ").parse().unwrap());
    let (in_options, in_body) = (mentions(in_options), mentions(in_body));
    let signature = syn::parse_str(signature).unwrap();
    let arguments = from_function(&signature, &Names { in_options: &in_options, in_body: &in_body });
    let entries = arguments.entries.iter().map(|entry| {
        let mark = if entry.is_local { "*" } else { "" };
        let taken = entry.taken();
        match &entry.inside {
            Inside::Nothing => format!("{mark}{taken}"),
            Inside::Pattern(pattern) => format!("{}={mark}{taken}", squeezed(pattern)),
            Inside::Unused(pattern) => format!("{}=&{mark}{taken}", squeezed(pattern)),
        }
    });
    let entries = entries.collect::<Vec<_>>().join(" ");
    (squeezed(&arguments.changed.unwrap_or(signature).inputs), entries)
}

#[test]
fn captures_of_arguments_are_planned() {
    type Row<'a> = (&'a str, &'a [&'a str], &'a [&'a str], &'a str, &'a str);
    let table: &[Row<'_>] = &[
        ("fn f(&self, a: A, mut b: B)", &[], &["a", "b"], "&self,a:A,mutb:B", "self a b"),
        ("fn f(a: A, mut b: B, mut c: C)", &[], &["a", "c"], "a:A,b:B,mutc:C", "a mutb=&__unused1 c"),
        ("fn f(a: u8, b: (&B, u8))", &[], &[], "a:u8,b:(&B,u8)", "a=&a b=&b"),
        ("fn f((a, mut b): (A, B))", &[], &["a"], "(a,b):(A,B)", "a mutb=&__unused1"),
        ("fn f(assigned: A, mut b: B)", &[], &["assigned = 1;", "b"], "assigned:A,b:B", "assigned=*assigned mutb=*b"),
        ("fn f(mut assigned: A)", &[], &["assigned = 1;"], "mutassigned:A", "assigned"),
        ("fn f(a: A, _b: B)", &["a"], &[], "a:A,_b:B", "a __unused1"),
        ("fn f(a: A, _b: B)", &["a"], &["_b"], "a:A,_b:B", "a _b"),
        ("fn f(a: A, _: B, c: C)", &[], &["a", "c"], "a:A,__arg1:B,c:C", "a __unused1 c"),
        ("fn f((a, _): A, b: B)", &[], &["a", "b"], "__arg0:A,b:B", "(a,_)=*__arg0 b=*b"),
        ("fn f((a, _): A, b: B, _: C)", &[], &["a"], "__arg0:A,b:B,__arg2:C", "(a,_)=*__arg0 b=&*__unused1 *__unused2"),
        ("fn f((a, _): A, b: B)", &["a"], &["b"], "(a,_):A,b:B", "a b"),
        ("fn f(ref mut a: A, (mut b, c): B)", &["c"], &["a", "b"], "__arg0:A,(b,c):B", "refmuta=*__arg0 mutb=*b c=*c"),
        ("fn f(Path(a): A, S { b, .. }: B)", &[], &["a", "b"], "Path(a):A,__arg1:B", "a S{b,..}=*__arg1"),
    ];
    for (signature, in_options, in_body, inputs, entries) in table {
        assert_eq!(plan(signature, in_options, in_body), ((*inputs).to_owned(), (*entries).to_owned()), "{signature}");
    }
}
