//! The tokens of the attribute, read into options by a table.

use crate::duration::{self, Time};
use crate::errors::{self, Errors};
use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Expr, ExprLit, Ident, Lit, LitStr, Path, Token, token};

/// How long to wait.
pub(crate) enum Waiting {
    None,
    Forever,
    For(Time),
}

/// What the attribute says.
#[derive(Default)]
pub(crate) struct Args {
    pub(crate) key: Option<LitStr>,
    pub(crate) ttl: Option<Time>,
    pub(crate) wait: Option<Waiting>,
    pub(crate) manager: Option<Expr>,
    pub(crate) on_error: Option<Expr>,
    pub(crate) krate: Option<Path>,
    /// Whether something stands there that is, or was meant to be, what is locked.
    pub(crate) has_key: bool,
    /// The known names as they were written.
    names: Vec<Ident>,
}

/// One row of the table: an option, how to write it, and what reads its value.
struct Opt {
    name: &'static str,
    example: &'static str,
    /// `None` is designed and refused until it works: an option is never accepted and ignored.
    read: Option<fn(&mut Args, ParseStream<'_>) -> syn::Result<()>>,
}

const OPTIONS: &[Opt] = &[
    Opt { name: "key", example: "key = \"order:{order_id}\"", read: Some(read_key) },
    Opt { name: "ttl", example: "ttl = 30", read: Some(read_ttl) },
    Opt { name: "wait", example: "wait = \"5s\"", read: Some(read_wait) },
    Opt { name: "manager", example: "manager = self.locks", read: Some(read_manager) },
    Opt { name: "on_error", example: "on_error = |error| ..", read: Some(read_on_error) },
    Opt { name: "crate", example: "crate = ::redlock_runtime", read: Some(read_crate) },
    Opt { name: "renew", example: "renew = false", read: None },
    Opt { name: "max_hold", example: "max_hold = \"5m\"", read: None },
    Opt { name: "min_hold", example: "min_hold = \"5s\"", read: None },
    Opt { name: "mode", example: "mode = shared", read: None },
    Opt { name: "path", example: "path = \"/tenants/{tenant}\"", read: None },
    Opt { name: "permits", example: "permits = 4", read: None },
    Opt { name: "reentrant", example: "reentrant", read: None },
    Opt { name: "fencing", example: "fencing", read: None },
    Opt { name: "guard", example: "guard = lock", read: None },
    Opt { name: "on_contended", example: "on_contended = skip", read: None },
    Opt { name: "on_lost", example: "on_lost = continue", read: None },
    Opt { name: "release", example: "release = confirmed", read: None },
];

/// Words that other lock libraries use for one of the options.
const ALIASES: &[(&str, &str)] = &[
    ("px", "ttl"),
    ("ex", "ttl"),
    ("lease", "ttl"),
    ("lease_time", "ttl"),
    ("expire", "ttl"),
    ("expiry", "ttl"),
    ("timeout", "wait"),
    ("wait_time", "wait"),
    ("name", "key"),
    ("resource", "key"),
    ("client", "manager"),
];

impl Args {
    /// Reads all options, as far as they can be read.
    pub(crate) fn read(tokens: TokenStream, errors: &mut Errors) -> Self {
        let mut args = Self::default();
        let parser = |input: ParseStream<'_>| {
            while !input.is_empty() {
                if let Err(error) = args.read_option(input, errors) {
                    errors.add(error);
                    skip_to_next_option(input)?;
                }
            }
            Ok(())
        };
        let end = parser.parse2(tokens);
        errors.ok(end);
        args
    }

    /// The name of an option that was given, rightly or wrongly.
    pub(crate) fn name(&self, option: &str) -> Option<&Ident> {
        self.names.iter().find(|name| name.unraw() == option)
    }

    /// What to say of an option that does not exist. One that was meant to be the key is not missing as well.
    fn unknown(&mut self, text: &str) -> String {
        let alias = ALIASES.iter().find(|(alias, _)| *alias == text).map(|(_, option)| *option);
        let meant = alias.or_else(|| errors::nearest(text, OPTIONS.iter().map(|option| option.name)));
        self.has_key |= meant == Some("key");
        if let Some(meant) = meant {
            return format!("unknown option `{text}`: did you mean `{meant}`?");
        }
        let usable = OPTIONS.iter().filter(|option| option.read.is_some());
        format!("unknown option `{text}`: the options are {}", errors::list(usable.map(|option| option.name)))
    }

    fn read_option(&mut self, input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<()> {
        self.has_key |= input.peek(LitStr);
        let name = read_name(input)?;
        let text = name.unraw().to_string();
        let Some(option) = OPTIONS.iter().find(|option| option.name == text) else {
            errors.at(name.span(), self.unknown(&text));
            return skip_value(input);
        };
        if let Some(first) = self.name(&text) {
            errors.at(first.span(), format!("`{text}` is given twice: keep this one or the other"));
            errors.at(name.span(), format!("`{text}` is given a second time here"));
        }
        self.has_key |= text == "key" || text == "path";
        self.names.push(name.clone());
        let Some(read) = option.read else {
            errors.at(name.span(), format!("`{name}` is not available yet"));
            return skip_value(input);
        };
        before_value(input, &name, option)?;
        read(self, input)?;
        end_of_option(input)
    }
}

/// The name of an option; something else is a value without a name.
fn read_name(input: ParseStream<'_>) -> syn::Result<Ident> {
    if input.peek(Ident::peek_any) {
        return input.call(Ident::parse_any);
    }
    let message = match input.fork().parse::<Lit>() {
        Ok(Lit::Str(text)) => format!("this value has no name: write `key = {}`", text.token()),
        Ok(_) => "this value has no name: write `ttl = ..` or `wait = ..`".to_owned(),
        Err(_) => "expected an option, as in `key = \"order:{order_id}\"`".to_owned(),
    };
    Err(input.error(message))
}

/// Reads the `=`, and sees that something follows.
fn before_value(input: ParseStream<'_>, name: &Ident, option: &Opt) -> syn::Result<()> {
    if input.peek(token::Paren) && option.name == "key" {
        return Err(input.error("named parts are not available yet: write `key = \"order:{order_id}\"`"));
    }
    let equals = input.parse::<Option<Token![=]>>()?;
    if equals.is_none() && !input.is_empty() && !input.peek(Token![,]) {
        return Err(input.error(format!("expected `=`: write `{}`", option.example)));
    }
    if equals.is_none() || input.is_empty() || input.peek(Token![,]) {
        return Err(syn::Error::new(name.span(), format!("`{name}` needs a value: write `{}`", option.example)));
    }
    Ok(())
}

fn end_of_option(input: ParseStream<'_>) -> syn::Result<()> {
    if input.is_empty() || input.parse::<Option<Token![,]>>()?.is_some() {
        return Ok(());
    }
    Err(input.error("expected `,` between two options"))
}

/// Skips the value of an option that is not read.
fn skip_value(input: ParseStream<'_>) -> syn::Result<()> {
    if input.parse::<Option<Token![=]>>()?.is_some() {
        input.parse::<Expr>()?;
    }
    end_of_option(input)
}

/// Skips what could not be read, to the next option after a comma: a comma may also stand inside the value.
fn skip_to_next_option(input: ParseStream<'_>) -> syn::Result<()> {
    while !input.is_empty() {
        if input.parse::<Option<Token![,]>>()?.is_some() {
            let ahead = input.fork();
            let is_name = ahead.peek(Lit) || ahead.call(Ident::parse_any).is_ok();
            if ahead.is_empty() || (is_name && !ahead.peek(Token![|])) {
                return Ok(());
            }
        } else {
            input.parse::<TokenTree>()?;
        }
    }
    Ok(())
}

/// An expression that came through a `macro_rules!` variable stands in an invisible group.
fn ungrouped(value: Expr) -> Expr {
    match value {
        Expr::Group(group) => ungrouped(*group.expr),
        other => other,
    }
}

fn read_key(args: &mut Args, input: ParseStream<'_>) -> syn::Result<()> {
    let refuse = |value: &dyn ToTokens, message| Err(syn::Error::new_spanned(value.to_token_stream(), message));
    match ungrouped(input.parse()?) {
        Expr::Lit(ExprLit { lit: Lit::Str(value), .. }) => args.key = Some(value),
        Expr::Lit(value) => return refuse(&value, "`key` is text: write `key = \"order:{order_id}\"`"),
        Expr::Array(value) => return refuse(&value, "several keys are not available yet: write one"),
        value => return refuse(&value, "`key` is a string literal: write `key = \"order:{order_id}\"`"),
    }
    Ok(())
}

fn read_ttl(args: &mut Args, input: ParseStream<'_>) -> syn::Result<()> {
    let value: Expr = input.parse()?;
    let time = duration::read("ttl", value.clone())?;
    if matches!(time, Time::Literal(time) if time.is_zero()) {
        return Err(syn::Error::new_spanned(value, "a lock with a `ttl` of zero is never held: write `ttl = 30`"));
    }
    args.ttl = Some(time);
    Ok(())
}

fn read_wait(args: &mut Args, input: ParseStream<'_>) -> syn::Result<()> {
    let value = match ungrouped(input.parse()?) {
        Expr::Path(path) if path.path.is_ident("none") => Waiting::None,
        Expr::Path(path) if path.path.is_ident("forever") => Waiting::Forever,
        Expr::Path(path) if path.path.is_ident("None") => {
            return Err(syn::Error::new_spanned(path, "`None` is not a time: write `wait = none`"));
        }
        other => Waiting::For(duration::read("wait", other)?),
    };
    args.wait = Some(value);
    Ok(())
}

fn read_manager(args: &mut Args, input: ParseStream<'_>) -> syn::Result<()> {
    args.manager = Some(input.parse()?);
    Ok(())
}

fn read_on_error(args: &mut Args, input: ParseStream<'_>) -> syn::Result<()> {
    args.on_error = Some(input.parse()?);
    Ok(())
}

fn read_crate(args: &mut Args, input: ParseStream<'_>) -> syn::Result<()> {
    args.krate = Some(input.call(Path::parse_mod_style)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Args, Waiting};
    use crate::duration::Time;
    use crate::errors::Errors;

    fn read(tokens: &str) -> (Args, Vec<String>) {
        let mut errors = Errors::default();
        let args = Args::read(tokens.parse().unwrap(), &mut errors);
        (args, errors.messages())
    }

    #[test]
    fn every_form_of_every_option() {
        let tokens = "key = \"order:{id}\", ttl = 30s, wait = forever, manager = pool.get::<A, B>(|a, b| a), \
                      on_error = |error: LockError| f(error, 1), crate = ::locks::runtime,";
        let (args, mistakes) = read(tokens);
        assert_eq!(mistakes, [""; 0]);
        assert_eq!(args.key.unwrap().value(), "order:{id}");
        assert!(matches!(args.ttl, Some(Time::Literal(ttl)) if ttl.as_secs() == 30));
        assert!(matches!(args.wait, Some(Waiting::Forever)));
        assert!(args.manager.is_some() && args.on_error.is_some() && args.krate.is_some());
    }

    #[test]
    fn nothing_is_read_from_nothing() {
        let (args, mistakes) = read("");
        assert!(mistakes.is_empty() && !args.has_key && args.key.is_none());
    }

    #[test]
    fn every_mistake_is_found() {
        let table: &[(&str, &[&str])] = &[
            ("ttl = 0, wait = -1", &["a `ttl` of zero", "`wait` cannot be negative"]),
            ("ttl = , key =", &["`ttl` needs a value", "`key` needs a value"]),
            ("ttl, wait", &["`ttl` needs a value", "`wait` needs a value"]),
            ("tll = 5, kee = 3, renew", &["did you mean `ttl`", "did you mean `key`", "`renew` is not available yet"]),
            ("guard = a, on_contended = |a, b| (c, d), ttl = 0", &["`guard`", "`on_contended`", "a `ttl` of zero"]),
            ("ttl = 5 wait = none, wait = \"3\"", &["expected `,`", "has no unit"]),
            ("ttl = 5 5 5, tll = 3", &["expected `,`", "did you mean `ttl`"]),
            ("\"a\", 30, key = 5", &["write `key = \"a\"`", "this value has no name", "`key` is text"]),
            ("crate = \"x\", ttl: 5", &["expected identifier", "expected `=`"]),
            ("= 5, ttl = 0", &["expected an option", "a `ttl` of zero"]),
            ("ttl = 1, wait = 2, ttl = 3", &["`ttl` is given twice", "a second time here"]),
        ];
        for (tokens, expected) in table {
            let (_, mistakes) = read(tokens);
            assert_eq!(mistakes.len(), expected.len(), "{tokens}: {mistakes:?}");
            for (mistake, expected) in mistakes.iter().zip(*expected) {
                assert!(mistake.contains(expected), "{tokens}: {mistake}");
            }
        }
    }
}
