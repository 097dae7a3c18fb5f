//! A page with the locks of a service: what is held, who waits, which templates are hot, how long calls wait.
//!
//! One text of HTML without a script or anything to load. It asks for itself anew every two seconds. Keys come from requests,
//! so that whatever is written here is escaped: line breaks and bidirectional marks by [`single_line`], and what HTML would read.
//!
//! The names of the columns are those of the metrics (`prometheus`). A quantile is the upper bound of a bucket, up to twice the real value, and
//! is shown as such: `≤ 8.4s`.

use redlock_runtime::admin::{Histogram, LocalLock, LockSite, SiteStats, Stats, single_line};
use std::fmt::{Display, Write as _};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const STYLE: &str = "body{font:14px system-ui;margin:2em;overflow-x:auto}table{border-collapse:collapse;margin:0 0 2em}\
    th,td{text-align:left;padding:.3em 1em .3em 0;border-bottom:1px solid #ccc;white-space:nowrap}td.n,th.n{text-align:right}\
    .bar{background:#4a7bd0;height:.8em}.bad{color:#b00020}h1{font-size:1.4em}h2{font-size:1.1em}";

/// The page of the `service` with this name, as `text/html`.
#[must_use]
pub fn page(service: &str, stats: &Stats, held: &[LocalLock]) -> String {
    let service = escaped(service);
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"2\">\
         <title>Locks of {service}</title><style>{STYLE}</style><h1>Locks of {service}</h1>"
    );
    let (host, process) = (escaped(host()), std::process::id());
    put(&mut page, format_args!("<p>process {process} on {host}, at {} UTC</p>", time_of_day(SystemTime::now())));
    let waiting: u64 = stats.sites.iter().map(|site| site.waiting_now).sum();
    put(&mut page, format_args!("<p>{} held, {waiting} waiting</p>", held.len()));
    held_locks(&mut page, held);
    hot_templates(&mut page, stats);
    for site in by_calls(stats).into_iter().take(5) {
        histogram(&mut page, site);
    }
    nodes(&mut page, stats);
    page + "</html>\n"
}

/// Name of this machine, as Linux or the environment has it.
fn host() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").or_else(|_| std::env::var("HOSTNAME"));
    host.map_or_else(|_| "an unknown host".to_owned(), |host| host.trim().to_owned())
}

/// `17:04:09`.
fn time_of_day(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    format!("{:02}:{:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60)
}

fn put(page: &mut String, part: impl Display) {
    // Writing to a text does not fail.
    let _ = write!(page, "{part}");
}

/// The text as it may stand anywhere in a page.
fn escaped(text: impl Display) -> String {
    let escape = |c| match c {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        '\'' => "&#39;".to_owned(),
        other => other.to_string(),
    };
    single_line(&text.to_string()).chars().map(escape).collect()
}

fn seconds(duration: Duration) -> String {
    if duration == Duration::MAX { "more".to_owned() } else { format!("{duration:.1?}") }
}

/// Upper bound of the bucket with the quantile, such as `≤ 8.4s`; a dash if nothing was measured.
fn quantile(histogram: &Histogram, part: f64) -> String {
    match histogram.quantile(part) {
        _ if histogram.count() == 0 => "–".to_owned(),
        Duration::MAX => "very long".to_owned(),
        bound => format!("≤ {}", seconds(bound)),
    }
}

/// Place in the source, such as `src/api.rs:88`.
fn place(site: &LockSite) -> String {
    escaped(site.line.map(|line| line.to_string()).unwrap_or_default())
}

/// Begins a table with these columns, or says that it would be empty.
fn table(page: &mut String, title: &str, columns: &[&str], is_empty: bool) {
    put(page, format_args!("<h2>{title}</h2>"));
    if is_empty {
        put(page, "<p>none</p>");
        return;
    }
    put(page, "<table><tr>");
    for column in columns {
        // A column of numbers begins with a space.
        let class = if column.starts_with(' ') { " class=n" } else { "" };
        put(page, format_args!("<th{class}>{}", column.trim()));
    }
}

fn held_locks(page: &mut String, held: &[LocalLock]) {
    table(page, "Held now", &["key", "asked for at", " for", " left of its lease"], held.is_empty());
    for LocalLock { key, site, held_for, remaining, .. } in held {
        let (key, place) = (escaped(key), place(site));
        let (held_for, remaining) = (seconds(*held_for), seconds(*remaining));
        put(page, format_args!("<tr><td>{key}<td>{place}<td class=n>{held_for}<td class=n>{remaining}"));
    }
    end(page, held.is_empty());
}

/// Ends a table.
fn end(page: &mut String, is_empty: bool) {
    if !is_empty {
        put(page, "</table>");
    }
}

/// The sites with the most calls first.
fn by_calls(stats: &Stats) -> Vec<&SiteStats> {
    let mut sites: Vec<_> = stats.sites.iter().collect();
    sites.sort_by_key(|site| std::cmp::Reverse(site.acquired + site.contended + site.timed_out + site.waiting_now));
    sites
}

fn hot_templates(page: &mut String, stats: &Stats) {
    let columns = [
        "lock",
        "site",
        " acquired",
        " held",
        " waiting",
        " contended",
        " timed out",
        " lost",
        " acquire duration p50",
        " acquire duration p99",
        " hold duration p50",
    ];
    table(page, "Templates, the hottest first", &columns, stats.sites.is_empty());
    for site in by_calls(stats) {
        put(page, format_args!("<tr><td>{}<td>{}", escaped(&site.site), place(&site.site)));
        let counts = [site.acquired, site.held_now, site.waiting_now, site.contended, site.timed_out, site.lost];
        for count in counts {
            put(page, format_args!("<td class=n>{count}"));
        }
        for time in [quantile(&site.wait, 0.5), quantile(&site.wait, 0.99), quantile(&site.hold, 0.5)] {
            put(page, format_args!("<td class=n>{time}"));
        }
    }
    end(page, stats.sites.is_empty());
}

/// How long calls of a site took to acquire. The title has the place, because functions may share a template.
fn histogram(page: &mut String, site: &SiteStats) {
    let histogram = &site.wait;
    let most = histogram.buckets().map(|(_, count)| count).max().unwrap_or_default();
    if most == 0 {
        return;
    }
    let (template, place) = (escaped(&site.site), place(&site.site));
    put(page, format_args!("<h2>acquire duration of {template} at {place}</h2><table>"));
    for (bound, count) in histogram.buckets().filter(|(_, count)| *count > 0) {
        let (bound, width) = (seconds(bound), 20 * count / most);
        let bar = format_args!("<div class=bar style=\"width:{width}em\"></div>");
        put(page, format_args!("<tr><td class=n>&lt; {bound}<td class=n>{count}<td>{bar}"));
    }
    put(page, "</table>");
}

fn nodes(page: &mut String, stats: &Stats) {
    let columns = ["node", "connection", " commands", " errors", " round trip p99"];
    table(page, "Nodes", &columns, stats.nodes.is_empty());
    for node in &stats.nodes {
        let (label, time) = (escaped(&node.node), quantile(&node.round_trip, 0.99));
        let (commands, errors) = (node.commands, node.errors);
        let up = if node.is_up { "up" } else { "<span class=bad>down</span>" };
        put(page, format_args!("<tr><td>{label}<td>{up}<td class=n>{commands}<td class=n>{errors}<td class=n>{time}"));
    }
    end(page, stats.nodes.is_empty());
}

#[cfg(test)]
mod tests {
    use super::*;
    use redlock_runtime::{LockError, LockManager, LockRequest};

    #[tokio::test]
    async fn what_comes_from_a_request_cannot_become_a_part_of_the_page() -> Result<(), LockError> {
        let manager = LockManager::in_memory();
        let request = LockRequest::new("<script>alert('1 & \"2\"')</script>").label("<b>{id}</b>");
        let guard = manager.acquire(request).await?;
        let text = page("shop", &manager.stats(), &manager.held_locks());
        assert!(!text.contains("<script") && !text.contains("<b>"), "{text}");
        assert!(text.contains("&lt;script&gt;alert(&#39;1 &amp; &quot;2&quot;&#39;)&lt;/script&gt;"), "{text}");
        guard.release().await
    }

    #[tokio::test]
    async fn control_characters_and_bidirectional_marks_of_a_key_are_escaped() -> Result<(), LockError> {
        let manager = LockManager::in_memory();
        let guard = manager.acquire("7\r\n\u{1b}[2J\u{202e}für").await?;
        let text = page("shop", &manager.stats(), &manager.held_locks());
        assert!(text.contains("<td>7\\u000d\\u000a\\u001b[2J\\u202efür<td>"), "{text}");
        guard.release().await
    }

    #[tokio::test]
    async fn the_page_shows_what_is_held_and_who_waits() -> Result<(), LockError> {
        let manager = LockManager::in_memory();
        let request = || LockRequest::new("order:7").label("order:{id}");
        let guard = manager.acquire(request()).await?;
        let (waited, ()) = tokio::join!(manager.acquire(request()), async {
            let text = page("shop", &manager.stats(), &manager.held_locks());
            assert!(text.contains("<p>1 held, 1 waiting</p>") && text.contains("<td>order:7<td>"), "{text}");
            drop(guard);
        });
        drop(waited?);
        let text = page("shop", &manager.stats(), &manager.held_locks());
        assert!(text.contains("<p>0 held, 0 waiting</p>") && !text.contains("order:7"), "{text}");
        assert!(text.contains("<h2>acquire duration of order:{id} at ") && text.contains("class=bar"), "{text}");
        assert!(text.contains("<h2>Held now</h2><p>none</p>"), "{text}");
        assert_eq!(text.matches("<table>").count(), text.matches("</table>").count());
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn page_names_the_service_and_shows_bounds_as_bounds() -> Result<(), LockError> {
        let manager = LockManager::in_memory();
        let empty = page("shop <1>", &manager.stats(), &manager.held_locks());
        assert!(empty.contains("<title>Locks of shop &lt;1&gt;</title>") && empty.contains(" UTC</p>"), "{empty}");
        assert!(empty.contains(&format!("<p>process {} on ", std::process::id())), "{empty}");
        assert!(empty.contains("first</h2><p>none</p>"), "{empty}");
        let request = || LockRequest::new("order:7").label("order:{id}");
        // Two places with one template.
        let guard = manager.acquire(request()).await?;
        tokio::time::advance(Duration::from_secs(1)).await;
        let text = page("shop", &manager.stats(), &manager.held_locks());
        assert!(text.contains("<td class=n>–") && !text.contains("0.0ns"), "{text}");
        tokio::time::advance(Duration::from_secs(5)).await;
        guard.release().await?;
        manager.acquire(request()).await?.release().await?;
        let text = page("shop", &manager.stats(), &manager.held_locks());
        assert!(text.contains("<td class=n>≤ 8."), "{text}");
        let titles: Vec<_> =
            text.split("<h2>acquire duration of ").skip(1).filter_map(|rest| rest.split('<').next()).collect();
        assert_eq!(titles.len(), 2, "{text}");
        assert_ne!(titles.first(), titles.last());
        Ok(())
    }

    #[test]
    fn time_of_day_is_that_of_utc() {
        assert_eq!(time_of_day(UNIX_EPOCH + Duration::from_secs(1_000_000_000)), "01:46:40");
    }
}
