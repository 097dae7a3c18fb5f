//! Subscriber that records everything. The whole program shares it, because the library has a thread that belongs to no test.

use redlock_tests::{PATIENCE, eventually};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_core::span::Current;

/// An event or a span.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) level: Level,
    pub(crate) name: String,
    pub(crate) fields: BTreeMap<String, String>,
    /// Names of the surrounding spans, the outermost first.
    pub(crate) within: Vec<String>,
    /// Name of the parent span, which may have been created elsewhere.
    pub(crate) parent: Option<String>,
    /// Number of records when the span was closed.
    pub(crate) closed: Option<usize>,
    /// Number of records before this one.
    pub(crate) before: usize,
    is_span: bool,
    metadata: &'static Metadata<'static>,
    parent_id: Option<u64>,
    /// Number of references that keep the span open: handles, and child spans.
    handles: usize,
}

impl Told {
    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }

    /// Returns `true` if any value is, or contains, `text`.
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

/// All records, in order. The number of a span is its index plus one.
static ALL: Mutex<Vec<Told>> = Mutex::new(Vec::new());

thread_local! {
    /// Spans that this thread has entered.
    static WITHIN: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

fn all() -> MutexGuard<'static, Vec<Told>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Keeper;

impl Keeper {
    fn keep(
        metadata: &'static Metadata<'static>,
        is_span: bool,
        parent_id: Option<u64>,
        record: impl FnOnce(&mut Told),
    ) -> u64 {
        let (level, name) = (*metadata.level(), metadata.name().to_owned());
        let mut all = all();
        let within = WITHIN.with_borrow(|within| within.iter().map(|id| all[index(*id)].name.clone()).collect());
        let parent = parent_id.map(|id| all[index(id)].name.clone());
        if let Some(parent) = parent_id.filter(|_| is_span) {
            all[index(parent)].handles += 1;
        }
        let (fields, closed, before, handles) = (BTreeMap::new(), None, all.len(), 1);
        let mut told =
            Told { level, name, fields, within, parent, closed, before, is_span, metadata, parent_id, handles };
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
        let around = || WITHIN.with_borrow(|within| within.last().copied());
        let parent = if span.is_contextual() { around() } else { span.parent().map(Id::into_u64) };
        Id::from_u64(Self::keep(span.metadata(), true, parent, |told| span.record(told)))
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        values.record(&mut all()[index(span.into_u64())]);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        Self::keep(event.metadata(), false, None, |told| event.record(told));
    }

    fn enter(&self, span: &Id) {
        WITHIN.with_borrow_mut(|within| within.push(span.into_u64()));
    }

    fn exit(&self, span: &Id) {
        let left = WITHIN.with_borrow_mut(Vec::pop);
        assert_eq!(left, Some(span.into_u64()), "spans are left in the order in which they were entered");
    }

    fn current_span(&self) -> Current {
        let current = WITHIN.with_borrow(|within| within.last().copied());
        current.map_or_else(Current::none, |id| Current::new(Id::from_u64(id), all()[index(id)].metadata))
    }

    fn clone_span(&self, span: &Id) -> Id {
        all()[index(span.into_u64())].handles += 1;
        span.clone()
    }

    fn try_close(&self, span: Id) -> bool {
        let (mut all, mut next) = (all(), Some(span.into_u64()));
        let count = all.len();
        let mut is_closed = false;
        while let Some(id) = next {
            let told = &mut all[index(id)];
            told.handles -= 1;
            if told.handles > 0 {
                break;
            }
            (told.closed, is_closed) = (Some(count), true);
            // The closed span no longer keeps its parent open.
            next = told.parent_id;
        }
        is_closed
    }
}

/// Starts the recording.
pub(crate) fn keep_all() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(Keeper).unwrap());
}

/// Returns the events called `name` so far in which any value is, or contains, `text`.
pub(crate) fn events(name: &str, text: &str) -> Vec<Told> {
    all().iter().filter(|told| !told.is_span && told.name == name && told.mentions(text)).cloned().collect()
}

/// Returns the spans called `name` so far in which any value is, or contains, `text`.
pub(crate) fn spans(name: &str, text: &str) -> Vec<Told> {
    all().iter().filter(|told| told.is_span && told.name == name && told.mentions(text)).cloned().collect()
}

/// Returns all records so far that mention `text`.
pub(crate) fn mentions(text: &str) -> Vec<Told> {
    all().iter().filter(|told| told.mentions(text)).cloned().collect()
}

/// Waits for an event called `name` in which any value is, or contains, `text`.
pub(crate) async fn event(name: &str, text: &str) -> Told {
    let found = async || events(name, text).into_iter().next().ok_or_else(|| format!("{:#?}", mentions(text)));
    eventually(PATIENCE, &format!("{name} of {text}"), found).await
}
