//! The tokens of the attribute, read into options by a table.

pub(crate) mod duration;
mod table;
#[cfg(test)]
mod tests;
mod values;

use self::duration::Time;
use self::table::{ALIASES, FAIR, Form, OPTIONS, Row};
use crate::analyze::mentions::Mentions;
use crate::errors::{self, Errors};
use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Expr, Ident, Lit, LitStr, Path, Token, token};

/// What the attribute says.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) key: Option<KeyTemplate>,
    pub(crate) ttl: Option<Time>,
    pub(crate) wait: Option<Waiting>,
    pub(crate) manager: Option<Expr>,
    pub(crate) guard: Option<Ident>,
    /// `fencing`
    pub(crate) is_fenced: bool,
    pub(crate) on_contended: Option<Contended>,
    pub(crate) on_error: Option<Expr>,
    pub(crate) on_lost: Lost,
    pub(crate) release: Release,
    pub(crate) krate: Option<Path>,
    pub(crate) renew: Option<bool>,
    pub(crate) max_hold: Option<Time>,
    pub(crate) min_hold: Option<Time>,
    /// An option of other libraries that promises an order among waiting calls.
    pub(crate) fair: Option<Ident>,
    /// Whether something stands there that is, or was meant to be, what is locked.
    pub(crate) has_key: bool,
    /// The known names as they were written.
    names: Vec<Ident>,
    /// Those that are refused whatever their values are.
    unavailable: Vec<Ident>,
}

/// `"order:{id}"`, with `id = order.id` beside it or without.
pub(crate) struct KeyTemplate {
    pub(crate) literal: LitStr,
    pub(crate) named: Vec<(Ident, Expr)>,
}

/// How long to wait.
pub(crate) enum Waiting {
    None,
    Forever,
    For(Time),
}

impl Waiting {
    pub(crate) const fn time(&self) -> Option<&Time> {
        match self {
            Self::For(time) => Some(time),
            Self::None | Self::Forever => None,
        }
    }
}

/// What a call gives that did not obtain the lock because another holds it.
pub(crate) enum Contended {
    /// The value that says that nothing was done.
    Skip,
    Handler(Expr),
}

/// What becomes of the body when the lease has run out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Lost {
    #[default]
    Cancel,
    Continue,
}

/// Whether the call waits for the answer to its release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Release {
    #[default]
    Background,
    Confirmed,
}

impl Options {
    /// Reads all options, as far as they can be read.
    pub(crate) fn read(tokens: TokenStream, errors: &mut Errors) -> Self {
        let mut options = Self::default();
        let parser = |input: ParseStream<'_>| {
            while !input.is_empty() {
                if let Err(error) = options.read_option(input, errors) {
                    errors.add(error);
                    skip_to_next_option(input)?;
                }
            }
            Ok(())
        };
        let end = parser.parse2(tokens);
        errors.ok(end);
        options
    }

    /// Whether nothing is asked for but a lock that is held while the body runs.
    pub(crate) fn is_ordinary(&self) -> bool {
        let has_own_outcome = self.on_contended.is_some() || self.on_error.is_some();
        let has_own_end = self.on_lost != Lost::Cancel || self.release != Release::Background;
        self.guard.is_none() && !has_own_outcome && !has_own_end
    }

    /// The names that all options but the key use.
    pub(crate) fn mentions(&self) -> Mentions {
        let mut mentions = Mentions::default();
        let waiting = self.wait.as_ref().and_then(Waiting::time);
        let times = [self.ttl.as_ref(), waiting, self.max_hold.as_ref(), self.min_hold.as_ref()];
        for time in times.into_iter().flatten().filter(|time| !matches!(time, Time::Literal(_))) {
            mentions.add(time.to_token_stream());
        }
        let handler = match &self.on_contended {
            Some(Contended::Handler(handler)) => Some(handler),
            _ => None,
        };
        let expressions = [self.manager.as_ref(), self.on_error.as_ref(), handler];
        for expression in expressions.into_iter().flatten() {
            mentions.add(expression.to_token_stream());
        }
        mentions
    }

    /// The name of an option that was given, rightly or wrongly.
    pub(crate) fn name(&self, option: &str) -> Option<&Ident> {
        self.names.iter().find(|name| name.unraw() == option)
    }

    /// The message, and that the option is not available in any case: one error for one token.
    pub(crate) fn complete_message(&self, option: &Ident, message: &str) -> String {
        let refused = self.unavailable.iter().any(|name| name == option);
        if refused { format!("{message} (`{option}` is not available yet)") } else { message.to_owned() }
    }

    /// Refuses what is not available, but for options of which something was said already.
    pub(crate) fn refuse_unavailable(&self, told: &[&Ident], errors: &mut Errors) {
        for name in self.unavailable.iter().filter(|name| !told.contains(name)) {
            errors.at(name.span(), format!("`{name}` is not available yet"));
        }
    }

    /// What to say of an option that does not exist. One that was meant to be the key is not missing as well.
    fn unknown(&mut self, name: &Ident, text: &str) -> String {
        if FAIR.contains(&text) {
            self.fair = Some(name.clone());
            return format!("unknown option `{text}`: nobody can choose who is served first, so leave it out");
        }
        let alias = ALIASES.iter().find(|(alias, _)| *alias == text).map(|(_, option)| *option);
        let meant = alias.or_else(|| errors::nearest(text, OPTIONS.iter().map(|option| option.name)));
        self.has_key |= meant == Some("key");
        if let Some(meant) = meant {
            return format!("unknown option `{text}`: did you mean `{meant}`?");
        }
        let usable = OPTIONS.iter().filter(|option| option.is_available);
        format!("unknown option `{text}`: the options are {}", errors::list(usable.map(|option| option.name)))
    }

    fn read_option(&mut self, input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<()> {
        self.has_key |= input.peek(LitStr);
        let name = read_name(input)?;
        let text = name.unraw().to_string();
        let Some(option) = OPTIONS.iter().find(|option| option.name == text) else {
            errors.at(name.span(), self.unknown(&name, &text));
            return skip_value(input);
        };
        if let Some(first) = self.name(&text) {
            errors.at(first.span(), format!("`{text}` is given twice: keep this one or the other"));
            errors.at(name.span(), format!("`{text}` is given a second time here"));
        }
        self.has_key |= text == "key" || text == "path";
        self.names.push(name.clone());
        before_value(input, &name, option)?;
        (option.read)(self, input)?;
        if !option.is_available {
            self.unavailable.push(name);
        }
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

/// Reads the `=`, and sees that something follows where something must.
fn before_value(input: ParseStream<'_>, name: &Ident, option: &Row) -> syn::Result<()> {
    let ends = |input: ParseStream<'_>| input.is_empty() || input.peek(Token![,]);
    match option.form {
        Form::Flag if ends(input) => return Ok(()),
        Form::Flag => return Err(input.error(format!("`{name}` is a flag without a value: write `{name}`"))),
        Form::ValueOrList if input.peek(token::Paren) => return Ok(()),
        Form::Value | Form::ValueOrList => {}
    }
    let equals = input.parse::<Option<Token![=]>>()?;
    if equals.is_none() && !ends(input) {
        return Err(input.error(format!("expected `=`: write `{}`", option.example)));
    }
    if equals.is_none() || ends(input) {
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
