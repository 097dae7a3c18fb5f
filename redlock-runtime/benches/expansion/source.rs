//! Source of the compiled functions: ordinary handlers of a service, each slightly different.

use std::fmt::Write;

/// Attribute of each function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    Plain,
    Instrument,
    Ours,
}

impl Variant {
    pub(crate) const ALL: [Self; 3] = [Self::Plain, Self::Instrument, Self::Ours];

    /// Returns the name of the variant, which is also the name of its crate.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Instrument => "instrument",
            Self::Ours => "ours",
        }
    }

    fn attribute(self, function: usize) -> String {
        match self {
            Self::Plain => String::new(),
            Self::Instrument => "#[tracing::instrument(skip_all)]\n".to_owned(),
            Self::Ours => {
                format!("#[redlock_runtime::distributed_lock(key = \"order:{{id}}:{function}\", ttl = 30)]\n")
            }
        }
    }
}

/// Bodies of the functions, used in turn. Each takes `id: u64, note: String`.
const BODIES: [&str; 4] = [
    "let loaded = load(id).await?;\n    save(loaded + note.len() as u64).await?;\n    Ok(loaded)",
    "if note.is_empty() {\n        return Err(Failed);\n    }\n    let mut total = 0;\n    for step in 0..id {\n        \
     total += load(step).await?;\n    }\n    Ok(total)",
    "let all = [load(id).await?, load(note.len() as u64).await?];\n    match all.iter().max() {\n        Some(most) => save(*most).await,\
     \n        None => Err(Failed),\n    }",
    "let text = format!(\"{note}:{id}\");\n    let saved = save(text.len() as u64).await?;\n    if saved > 10 { Ok(saved) } else \
     { load(saved).await }",
];

const PRELUDE: &str = "\
#[derive(Debug)]
pub struct Failed;

impl From<redlock_runtime::LockError> for Failed {
    fn from(_: redlock_runtime::LockError) -> Self {
        Self
    }
}

pub type Answer = std::pin::Pin<Box<dyn Future<Output = Result<u64, Failed>> + Send>>;

#[inline(never)]
pub async fn load(id: u64) -> Result<u64, Failed> {
    tokio::task::yield_now().await;
    Ok(id)
}

#[inline(never)]
pub async fn save(value: u64) -> Result<u64, Failed> {
    tokio::task::yield_now().await;
    Ok(value)
}
";

/// Returns the source of a program that runs `functions` handlers. With the argument `sizes`, the program prints the
/// sizes of their futures instead.
pub(crate) fn program(variant: Variant, functions: usize) -> String {
    let mut text = PRELUDE.to_owned();
    for (function, body) in BODIES.iter().cycle().take(functions).enumerate() {
        let attribute = variant.attribute(function);
        let _ = write!(
            text,
            "\n{attribute}pub async fn handler_{function}(id: u64, note: String) -> Result<u64, Failed> {{\n    {body}\n}}\n"
        );
    }
    text.push_str("\npub fn all(id: u64) -> Vec<Answer> {\n    vec![\n");
    for function in 0..functions {
        let _ = writeln!(text, "        Box::pin(handler_{function}(id, String::new())),");
    }
    text.push_str("    ]\n}\n\nfn main() {\n    if std::env::args().nth(1).as_deref() == Some(\"sizes\") {\n");
    for function in 0..BODIES.len() {
        let _ =
            writeln!(text, "        println!(\"{{}}\", std::mem::size_of_val(&handler_{function}(1, String::new())));");
    }
    text.push_str(
        "        return;\n    }\n    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();\n    \
         for answer in all(3) {\n        let _ = runtime.block_on(answer);\n    }\n}\n",
    );
    text
}
