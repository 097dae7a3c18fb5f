//! Adapter that formats the statistics of a lock manager in the text format of Prometheus.
//!
//! It needs no client library, because the manager keeps cumulative counts. Labels contain key templates and source
//! locations. Keys are not labels, because each key would create a new time series.

use redlock_runtime::admin::{Histogram, NodeStats, SiteStats, Stats};
use std::fmt::{Display, Write as _};

/// Returns the page for a scrape. Its content type is `text/plain; version=0.0.4`.
#[must_use]
pub fn page(stats: &Stats) -> String {
    let mut page = String::new();
    sites(&mut page, stats, "redlock_acquire_total", "counter", "Calls by what became of them.", |site| {
        let SiteStats { acquired, contended, timed_out, no_quorum, refused, cancelled, .. } = *site;
        let outcomes = [
            ("acquired", acquired),
            ("contended", contended),
            ("timed_out", timed_out),
            ("no_quorum", no_quorum),
            ("refused", refused),
            ("cancelled", cancelled),
        ];
        outcomes.map(|(outcome, count)| (format!(",outcome=\"{outcome}\""), count)).to_vec()
    });
    sites(&mut page, stats, "redlock_lost_total", "counter", "Locks that were lost.", |site| plain(site.lost));
    sites(&mut page, stats, "redlock_held", "gauge", "Calls that have their lock now.", |site| plain(site.held_now));
    sites(&mut page, stats, "redlock_waiting", "gauge", "Calls on their way to it.", |site| plain(site.waiting_now));
    histograms(&mut page, stats, "redlock_acquire_duration_seconds", "From asking to having.", |site| &site.wait);
    histograms(&mut page, stats, "redlock_hold_duration_seconds", "How long locks are held.", |site| &site.hold);
    nodes(&mut page, stats, "redlock_node_up", "gauge", "Whether there is a connection.", |node| node.is_up.into());
    nodes(&mut page, stats, "redlock_node_errors_total", "counter", "Commands that failed.", |node| node.errors);
    page
}

/// Wraps a number that has no additional label.
fn plain(number: u64) -> Vec<(String, u64)> {
    vec![(String::new(), number)]
}

fn head(page: &mut String, name: &str, kind: &str, help: &str) {
    line(page, format_args!("# HELP {name} {help}"));
    line(page, format_args!("# TYPE {name} {kind}"));
}

fn line(page: &mut String, line: impl Display) {
    // Writing to a `String` cannot fail.
    let _ = writeln!(page, "{line}");
}

/// Labels of a lock site. Two functions may share a template, so the source line tells them apart, unless a macro has
/// generated both.
fn labels(site: &SiteStats) -> String {
    let line = site.site.line.map(|line| line.to_string()).unwrap_or_default();
    let module = site.site.module.unwrap_or_default();
    format!("lock=\"{}\",site=\"{}\",module=\"{module}\"", escaped(&site.site), escaped(line))
}

fn escaped(text: impl Display) -> String {
    text.to_string().replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

fn sites(
    page: &mut String,
    stats: &Stats,
    name: &str,
    kind: &str,
    help: &str,
    numbers: impl Fn(&SiteStats) -> Vec<(String, u64)>,
) {
    head(page, name, kind, help);
    for site in &stats.sites {
        for (more, number) in numbers(site) {
            line(page, format_args!("{name}{{{}{more}}} {number}", labels(site)));
        }
    }
}

fn histograms(page: &mut String, stats: &Stats, name: &str, help: &str, of: impl Fn(&SiteStats) -> &Histogram) {
    head(page, name, "histogram", help);
    for site in &stats.sites {
        let (labels, histogram, mut seen) = (labels(site), of(site), 0);
        // Write every bucket each time: aggregations are wrong if a series appears in some scrapes only.
        for (bound, count) in histogram.buckets() {
            seen += count;
            let is_last = bound == std::time::Duration::MAX;
            let le = if is_last { "+Inf".to_owned() } else { bound.as_secs_f64().to_string() };
            line(page, format_args!("{name}_bucket{{{labels},le=\"{le}\"}} {seen}"));
        }
        line(page, format_args!("{name}_sum{{{labels}}} {}", histogram.sum().as_secs_f64()));
        line(page, format_args!("{name}_count{{{labels}}} {seen}"));
    }
}

fn nodes(page: &mut String, stats: &Stats, name: &str, kind: &str, help: &str, number: impl Fn(&NodeStats) -> u64) {
    head(page, name, kind, help);
    for node in &stats.nodes {
        line(page, format_args!("{name}{{node=\"{}\"}} {}", escaped(&node.node), number(node)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redlock_runtime::{LockError, LockManager, LockRequest};

    #[tokio::test]
    async fn metrics_page_has_the_counters_and_no_key() -> Result<(), LockError> {
        let manager = LockManager::in_memory();
        let request = || LockRequest::new("order:4711").label("order:{\"id\"}");
        let guard = manager.acquire(request()).await?;
        assert!(manager.try_acquire(request()).await.is_err());
        let text = page(&manager.stats());
        assert!(!text.contains("4711"), "{text}");
        for expected in [
            "# TYPE redlock_acquire_duration_seconds histogram",
            r#"lock="order:{\"id\"}",site="examples/src/prometheus.rs:"#,
            r#"outcome="contended"} 1"#,
            r#"le="+Inf"} 1"#,
            r#"redlock_node_up{node="memory"} 1"#,
        ] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
        let held = |text: &str| text.lines().any(|line| line.starts_with("redlock_held{") && line.ends_with(" 1"));
        assert!(held(&text), "{text}");
        guard.release().await?;
        assert!(!held(&page(&manager.stats())));
        Ok(())
    }
}
