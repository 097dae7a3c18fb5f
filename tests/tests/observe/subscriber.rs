//! A subscriber that keeps all that it is told: one for the whole program, because the library has a thread of its own.

use redlock_tests::{PATIENCE, eventually};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// An event or a span.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) level: Level,
    pub(crate) name: String,
    pub(crate) fields: BTreeMap<String, String>,
    /// The names of the spans around it, the outermost first.
    pub(crate) within: Vec<String>,
    is_span: bool,
}

impl Told {
    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }

    /// Whether any value is, or contains, `text`.
    pub(crate) fn mentions(&self, text: &str) -> bool {
        self.fields.values().any(|value| value.contains(text))
    }
}

impl Visit for Told {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name().to_owned(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.fields.insert(field.name().to_owned(), format!("{value:?}"));
    }
}

/// All that was told, in order; the number of a span is its place and one more.
static ALL: Mutex<Vec<Told>> = Mutex::new(Vec::new());

thread_local! {
    /// The spans that this thread is in.
    static WITHIN: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

fn all() -> MutexGuard<'static, Vec<Told>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Keeper;

impl Keeper {
    fn keep(metadata: &Metadata<'_>, is_span: bool, record: impl FnOnce(&mut Told)) -> u64 {
        let (level, name) = (*metadata.level(), metadata.name().to_owned());
        let mut all = all();
        let within = WITHIN.with_borrow(|within| within.iter().map(|id| all[index(*id)].name.clone()).collect());
        let mut told = Told { level, name, fields: BTreeMap::new(), within, is_span };
        record(&mut told);
        all.push(told);
        all.len() as u64
    }
}

fn index(id: u64) -> usize {
    usize::try_from(id).unwrap() - 1
}

impl Subscriber for Keeper {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        ["redlock", "observe"].iter().any(|target| metadata.target().starts_with(target))
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        Id::from_u64(Self::keep(span.metadata(), true, |told| span.record(told)))
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        values.record(&mut all()[index(span.into_u64())]);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        Self::keep(event.metadata(), false, |told| event.record(told));
    }

    fn enter(&self, span: &Id) {
        WITHIN.with_borrow_mut(|within| within.push(span.into_u64()));
    }

    fn exit(&self, span: &Id) {
        let left = WITHIN.with_borrow_mut(Vec::pop);
        assert_eq!(left, Some(span.into_u64()), "spans are left in the order in which they were entered");
    }
}

/// Keeps what is told from now on.
pub(crate) fn keep_all() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(Keeper).unwrap());
}

/// The events called `name` so far in which any value is, or contains, `text`.
pub(crate) fn events(name: &str, text: &str) -> Vec<Told> {
    all().iter().filter(|told| !told.is_span && told.name == name && told.mentions(text)).cloned().collect()
}

/// The same for spans.
pub(crate) fn spans(name: &str, text: &str) -> Vec<Told> {
    all().iter().filter(|told| told.is_span && told.name == name && told.mentions(text)).cloned().collect()
}

/// All that mentions `text` so far.
pub(crate) fn mentions(text: &str) -> Vec<Told> {
    all().iter().filter(|told| told.mentions(text)).cloned().collect()
}

/// Waits for an event called `name` in which any value is, or contains, `text`.
pub(crate) async fn event(name: &str, text: &str) -> Told {
    let found = async || events(name, text).into_iter().next().ok_or_else(|| format!("{:#?}", mentions(text)));
    eventually(PATIENCE, &format!("{name} of {text}"), found).await
}
