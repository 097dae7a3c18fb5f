//! Evaluates the alerting rules of `docs/alerts.yml` against the metrics that the Prometheus adapter writes.
//!
//! The evaluator supports the subset of `PromQL` that the rules use. A selector without samples is an error here,
//! because in production a misspelt metric or label would fail silently. If `promtool` is installed, it must find the same
//! alerts.

use crate::promtool::assert_fires;
use redlock_examples::prometheus::page;
use redlock_runtime::admin::BreakOptions;
use redlock_runtime::{LockError, LockManager, LockRequest, Wait};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::sleep;

const RULES: &str = include_str!("../../../docs/alerts.yml");
/// Window of all ranges in the rules.
const WINDOW_SECONDS: f64 = 300.0;

type Labels = BTreeMap<String, String>;
type Samples = Vec<(String, Labels, f64)>;

/// Expressions of all alerts by their names.
fn rules() -> BTreeMap<&'static str, String> {
    let rules = RULES.split("- alert: ").skip(1).map(|rule| {
        let (name, rest) = rule.split_once('\n').unwrap();
        let (_, expression) = rest.split_once("expr:").unwrap();
        let is_expression =
            |line: &&str| !line.trim_start().starts_with("for:") && !line.trim_start().starts_with("labels:");
        let lines: Vec<_> = expression.lines().take_while(is_expression).map(str::trim).collect();
        (name.trim(), lines.join(" ").trim().trim_start_matches('|').trim().to_owned())
    });
    rules.collect()
}

/// Samples of a page in the text format of Prometheus.
fn samples(page: &str) -> Samples {
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    let sample = |line: &str| {
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').unwrap();
        (name.to_owned(), labels_of(labels.strip_suffix('}').unwrap()), value.parse().unwrap())
    };
    lines.map(sample).collect()
}

/// Parses `a="1",b="2"`. Values in these tests never contain a quotation mark.
fn labels_of(text: &str) -> Labels {
    let mut parts = text.split('"');
    let mut labels = Labels::new();
    while let (Some(name), Some(value)) = (parts.next(), parts.next()) {
        labels.insert(name.trim_matches([',', '=', ' ']).to_owned(), value.to_owned());
    }
    labels
}

enum Value {
    Scalar(f64),
    Vector(Vec<(Labels, f64)>),
}

impl Value {
    fn vector(self) -> Vec<(Labels, f64)> {
        match self {
            Self::Vector(vector) => vector,
            Self::Scalar(_) => panic!("a vector is expected"),
        }
    }
}

/// Evaluates one expression at the later of two scrapes.
struct Evaluator<'a> {
    rest: &'a str,
    before: &'a Samples,
    after: &'a Samples,
}

impl Evaluator<'_> {
    fn take(&mut self, text: &str) -> bool {
        self.rest = self.rest.trim_start();
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect(&mut self, text: &str) {
        assert!(self.take(text), "{text:?} is expected before {:?}", self.rest);
    }

    fn until(&mut self, end: char) -> &str {
        let (text, rest) = self.rest.split_once(end).unwrap();
        self.rest = rest;
        text
    }

    fn word(&mut self) -> &str {
        self.rest = self.rest.trim_start();
        let end =
            self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn conjunction(&mut self) -> Vec<(Labels, f64)> {
        let mut left = self.comparison().vector();
        while self.take("and") {
            let right: BTreeSet<_> = self.comparison().vector().into_iter().map(|(labels, _)| labels).collect();
            left.retain(|(labels, _)| right.contains(labels));
        }
        left
    }

    fn comparison(&mut self) -> Value {
        let left = self.quotient();
        let compare: fn(f64, f64) -> bool = if self.take(">") {
            |a, b| a > b
        } else if self.take("==") {
            |a, b| (a - b).abs() < f64::EPSILON
        } else if self.take("<=") {
            |a, b| a <= b
        } else {
            return left;
        };
        let right = self.quotient();
        let mut left = left.vector();
        left.retain(|(labels, value)| match &right {
            Value::Scalar(limit) => compare(*value, *limit),
            Value::Vector(others) => others.iter().any(|(other, limit)| other == labels && compare(*value, *limit)),
        });
        Value::Vector(left)
    }

    fn quotient(&mut self) -> Value {
        let left = self.operand();
        if !self.take("/") {
            return left;
        }
        let divisor: f64 = self.word().parse().unwrap();
        Value::Vector(left.vector().into_iter().map(|(labels, value)| (labels, value / divisor)).collect())
    }

    fn operand(&mut self) -> Value {
        let word = self.word().to_owned();
        match &*word {
            "sum" => self.aggregate(|values| values.iter().sum()),
            "count" => self.aggregate(|values| values.iter().map(|_| 1.0).sum()),
            "min" => self.aggregate(|values| values.iter().copied().fold(f64::INFINITY, f64::min)),
            "increase" => self.increase(1.0),
            "rate" => self.increase(WINDOW_SECONDS),
            "histogram_quantile" => {
                self.expect("(");
                let quantile: f64 = self.word().parse().unwrap();
                self.expect(",");
                let buckets = self.operand().vector();
                self.expect(")");
                Value::Vector(quantiles(quantile, buckets))
            }
            number if number.starts_with(|c: char| c.is_ascii_digit()) => Value::Scalar(number.parse().unwrap()),
            metric => Value::Vector(self.selected(metric, self.after)),
        }
    }

    /// Aggregates by the labels of `by (..)`. Each of them must be a label of every sample.
    fn aggregate(&mut self, combine: fn(&[f64]) -> f64) -> Value {
        let mut by = BTreeSet::new();
        if self.take("by") {
            self.expect("(");
            by = self.until(')').split(',').map(|label| label.trim().to_owned()).collect();
        }
        self.expect("(");
        let vector = Value::Vector(self.conjunction()).vector();
        self.expect(")");
        let mut groups: BTreeMap<Labels, Vec<f64>> = BTreeMap::new();
        for (labels, value) in vector {
            let label = |name: &String| {
                let value = labels.get(name).unwrap_or_else(|| panic!("no label {name} in {labels:?}"));
                (name.clone(), value.clone())
            };
            groups.entry(by.iter().map(label).collect()).or_default().push(value);
        }
        Value::Vector(groups.into_iter().map(|(labels, values)| (labels, combine(&values))).collect())
    }

    /// Increase of a counter between both scrapes, per `seconds`. A series that is absent from the first scrape has
    /// none.
    fn increase(&mut self, seconds: f64) -> Value {
        self.expect("(");
        let metric = self.word().to_owned();
        let start = self.rest;
        let before = self.selected(&metric, self.before);
        self.rest = start;
        let after = self.selected(&metric, self.after);
        self.expect("[5m]");
        self.expect(")");
        let grown = |(labels, value): (Labels, f64)| {
            let (_, earlier) = before.iter().find(|(other, _)| *other == labels)?;
            Some((labels, (value - earlier) / seconds))
        };
        Value::Vector(after.into_iter().filter_map(grown).collect())
    }

    fn selected(&mut self, metric: &str, samples: &Samples) -> Vec<(Labels, f64)> {
        let wanted = if self.take("{") { labels_of(self.until('}')) } else { Labels::new() };
        let is_wanted = |labels: &Labels| wanted.iter().all(|(name, value)| labels.get(name) == Some(value));
        let of_metric = samples.iter().filter(|(name, labels, _)| name == metric && is_wanted(labels));
        let vector: Vec<_> = of_metric.map(|(_, labels, value)| (labels.clone(), *value)).collect();
        assert!(!vector.is_empty(), "the adapter writes no {metric} with {wanted:?}");
        vector
    }
}

/// Upper bounds of the buckets that contain the quantile, for each set of the other labels.
fn quantiles(quantile: f64, buckets: Vec<(Labels, f64)>) -> Vec<(Labels, f64)> {
    let mut histograms: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
    for (mut labels, count) in buckets {
        let bound = labels.remove("le").expect("a bucket has a bound");
        let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().unwrap() };
        histograms.entry(labels).or_default().push((bound, count));
    }
    let quantile_of = |(labels, mut buckets): (Labels, Vec<(f64, f64)>)| {
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        let total = buckets.last().map(|(_, count)| *count).filter(|total| *total > 0.0)?;
        let (bound, _) = buckets.iter().find(|(_, count)| *count >= total * quantile)?;
        Some((labels, *bound))
    };
    histograms.into_iter().filter_map(quantile_of).collect()
}

/// Names of the alerts that fire after two scrapes.
fn firing(before: &str, after: &str) -> Vec<&'static str> {
    let names = evaluate(&samples(before), &samples(after));
    assert_fires(before, after, &names);
    names
}

fn evaluate(before: &Samples, after: &Samples) -> Vec<&'static str> {
    let fires = |expression: &str| {
        let mut evaluator = Evaluator { rest: expression, before, after };
        let vector = evaluator.conjunction();
        assert_eq!(evaluator.rest.trim(), "", "in {expression}");
        !vector.is_empty()
    };
    rules().into_iter().filter(|(_, expression)| fires(expression)).map(|(name, _)| name).collect()
}

fn request(id: u32) -> LockRequest {
    LockRequest::new(format!("order:{id}")).label("order:{id}").wait(Wait::Forever)
}

/// A manager that has acquired and released a lock, and its metrics page.
async fn started() -> Result<(LockManager, String), LockError> {
    let manager = LockManager::in_memory();
    manager.acquire(request(1)).await?.release().await?;
    let text = page(&manager.stats());
    Ok((manager, text))
}

#[tokio::test(start_paused = true)]
async fn no_alert_fires_while_locks_are_taken_and_released() -> Result<(), LockError> {
    let (manager, before) = started().await?;
    for id in 0..20 {
        manager.acquire(request(id)).await?.release().await?;
    }
    assert_eq!(firing(&before, &page(&manager.stats())), [""; 0]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn lost_lock_fires() -> Result<(), LockError> {
    let (manager, _) = started().await?;
    let guard = manager.acquire(request(7)).await?;
    let before = page(&manager.stats());
    manager.break_lock("order:7", BreakOptions::new(*guard.token()).by_force()).await;
    let _ = guard.extend().await;
    drop(guard);
    assert_eq!(firing(&before, &page(&manager.stats())), ["RedlockLockLost"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn hanging_holder_fires_at_once_and_slow_locks_when_they_end() -> Result<(), LockError> {
    let (manager, _) = started().await?;
    let guard = manager.acquire(request(7)).await?;
    let waiting: Vec<_> = (0..11)
        .map(|_| {
            let manager = manager.clone();
            tokio::spawn(async move { manager.acquire(request(7)).await?.release().await })
        })
        .collect();
    // Let all calls start to wait before the clock advances.
    sleep(Duration::from_millis(1)).await;
    let before = page(&manager.stats());
    sleep(Duration::from_secs(40)).await;
    let hanging = page(&manager.stats());
    assert_eq!(firing(&before, &hanging), ["RedlockHolderHangs"]);
    guard.release().await?;
    for call in waiting {
        call.await.expect("no panic")?;
    }
    assert_eq!(firing(&hanging, &page(&manager.stats())), ["RedlockLongHold", "RedlockSlowAcquire"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn unreachable_nodes_and_failed_calls_fire() -> Result<(), LockError> {
    let (_, healthy) = started().await?;
    let down = healthy.replace("redlock_node_up{node=\"memory\"} 1", "redlock_node_up{node=\"memory\"} 0");
    assert_eq!(firing(&healthy, &down), ["RedlockMajorityDown", "RedlockNodeDown"]);
    let up = "redlock_node_up{node=\"memory\"} 1";
    let one_of_three = down.clone()
        + "redlock_node_up{node=\"a\"} 1\nredlock_node_up{node=\"b\"} 1\n"
        + &up.replace("memory", "c")
        + "\n";
    assert_eq!(firing(&healthy, &one_of_three), ["RedlockNodeDown"]);
    for (outcome, alert) in [("no_quorum", "RedlockNoQuorum"), ("refused", "RedlockRefused")] {
        let failed = healthy.replace(&format!("outcome=\"{outcome}\"}} 0"), &format!("outcome=\"{outcome}\"}} 3"));
        assert_eq!(firing(&healthy, &failed), [alert]);
    }
    Ok(())
}

#[test]
fn every_alert_rule_is_tested_and_in_the_runbook() {
    let names: Vec<_> = rules().into_keys().collect();
    let (source, runbook) = (include_str!("alerts.rs"), include_str!("../../../docs/operations.md"));
    assert!(names.len() >= 8, "{names:?}");
    for name in names {
        assert!(source.contains(&format!("\"{name}\"")), "no test of {name}");
        assert!(runbook.contains(&format!("| `{name}` |")), "{name} is not in the runbook");
    }
}
