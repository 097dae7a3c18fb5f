//! A page with the locks of a service: what is held, who waits, which templates are hot, how long calls wait.
//!
//! One text of HTML without a script or anything to load. It asks for itself anew every two seconds. Keys come from requests,
//! so that whatever is written here is escaped: line breaks and bidirectional marks by [`single_line`], and what HTML would read.

use redlock_runtime::{Histogram, Holding, SiteStats, Stats, single_line};
use std::fmt::{Display, Write as _};
use std::time::Duration;

const STYLE: &str = "body{font:14px system-ui;margin:2em;max-width:70em}table{border-collapse:collapse;margin:0 0 2em}\
    th,td{text-align:left;padding:.3em 1em .3em 0;border-bottom:1px solid #ccc}td.n,th.n{text-align:right}\
    .bar{background:#4a7bd0;height:.8em}.bad{color:#b00020}h1{font-size:1.4em}h2{font-size:1.1em}";

/// The page, as `text/html`.
#[must_use]
pub fn page(stats: &Stats, held: &[Holding]) -> String {
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"2\">\
         <title>Locks</title><style>{STYLE}</style><h1>Locks of this process</h1>"
    );
    let waiting: u64 = stats.sites.iter().map(|site| site.waiting_now).sum();
    put(&mut page, format_args!("<p>{} held, {waiting} waiting</p>", held.len()));
    held_locks(&mut page, held);
    hot_templates(&mut page, stats);
    for site in by_calls(stats).into_iter().take(5) {
        histogram(&mut page, site, "wait", &site.wait);
    }
    nodes(&mut page, stats);
    page + "</html>\n"
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

fn held_locks(page: &mut String, held: &[Holding]) {
    put(page, "<h2>Held now</h2><table><tr><th>key<th>asked for at<th class=n>for<th class=n>left of its lease");
    for Holding { key, site, held_for, remaining, .. } in held {
        let place = site.line.map(|line| line.to_string()).unwrap_or_default();
        let (key, place) = (escaped(key), escaped(place));
        let (held_for, remaining) = (seconds(*held_for), seconds(*remaining));
        put(page, format_args!("<tr><td>{key}<td>{place}<td class=n>{held_for}<td class=n>{remaining}"));
    }
    put(page, "</table>");
}

/// The sites with the most calls first.
fn by_calls(stats: &Stats) -> Vec<&SiteStats> {
    let mut sites: Vec<_> = stats.sites.iter().collect();
    sites.sort_by_key(|site| std::cmp::Reverse(site.acquired + site.contended + site.timed_out + site.waiting_now));
    sites
}

fn hot_templates(page: &mut String, stats: &Stats) {
    put(page, "<h2>Templates, the hottest first</h2><table><tr><th>template<th>place");
    for name in ["acquired", "held", "waiting", "contended", "timed out", "lost", "wait p50", "wait p99", "hold p50"] {
        put(page, format_args!("<th class=n>{name}"));
    }
    for site in by_calls(stats) {
        let place = site.site.line.map(|line| line.to_string()).unwrap_or_default();
        put(page, format_args!("<tr><td>{}<td>{}", escaped(&site.site), escaped(place)));
        let counts = [site.acquired, site.held_now, site.waiting_now, site.contended, site.timed_out, site.lost];
        for count in counts {
            put(page, format_args!("<td class=n>{count}"));
        }
        let times = [site.wait.quantile(0.5), site.wait.quantile(0.99), site.hold.quantile(0.5)];
        for time in times {
            put(page, format_args!("<td class=n>{}", seconds(time)));
        }
    }
    put(page, "</table>");
}

fn histogram(page: &mut String, site: &SiteStats, what: &str, histogram: &Histogram) {
    let most = histogram.buckets().map(|(_, count)| count).max().unwrap_or_default();
    if most == 0 {
        return;
    }
    put(page, format_args!("<h2>{what} of {}</h2><table>", escaped(&site.site)));
    for (bound, count) in histogram.buckets().filter(|(_, count)| *count > 0) {
        let (bound, width) = (seconds(bound), 20 * count / most);
        let bar = format_args!("<div class=bar style=\"width:{width}em\"></div>");
        put(page, format_args!("<tr><td class=n>&lt; {bound}<td class=n>{count}<td>{bar}"));
    }
    put(page, "</table>");
}

fn nodes(page: &mut String, stats: &Stats) {
    put(page, "<h2>Nodes</h2><table><tr><th>node<th>connection<th class=n>commands<th class=n>errors<th class=n>p99");
    for node in &stats.nodes {
        let (label, time) = (escaped(&node.node), seconds(node.round_trip.quantile(0.99)));
        let (commands, errors) = (node.commands, node.errors);
        let up = if node.is_up { "up" } else { "<span class=bad>down</span>" };
        put(page, format_args!("<tr><td>{label}<td>{up}<td class=n>{commands}<td class=n>{errors}<td class=n>{time}"));
    }
    put(page, "</table>");
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
        let text = page(&manager.stats(), &manager.held());
        assert!(!text.contains("<script") && !text.contains("<b>"), "{text}");
        assert!(text.contains("&lt;script&gt;alert(&#39;1 &amp; &quot;2&quot;&#39;)&lt;/script&gt;"), "{text}");
        guard.release().await
    }

    #[tokio::test]
    async fn control_characters_and_bidirectional_marks_of_a_key_are_escaped() -> Result<(), LockError> {
        let manager = LockManager::in_memory();
        let guard = manager.acquire("7\r\n\u{1b}[2J\u{202e}für").await?;
        let text = page(&manager.stats(), &manager.held());
        assert!(text.contains("<td>7\\u000d\\u000a\\u001b[2J\\u202efür<td>"), "{text}");
        guard.release().await
    }

    #[tokio::test]
    async fn the_page_shows_what_is_held_and_who_waits() -> Result<(), LockError> {
        let manager = LockManager::in_memory();
        let request = || LockRequest::new("order:7").label("order:{id}");
        let guard = manager.acquire(request()).await?;
        let (waited, ()) = tokio::join!(manager.acquire(request()), async {
            let text = page(&manager.stats(), &manager.held());
            assert!(text.contains("<p>1 held, 1 waiting</p>") && text.contains("<td>order:7<td>"), "{text}");
            drop(guard);
        });
        drop(waited?);
        let text = page(&manager.stats(), &manager.held());
        assert!(text.contains("<p>0 held, 0 waiting</p>") && !text.contains("order:7"), "{text}");
        assert!(text.contains("<h2>wait of order:{id}</h2>") && text.contains("class=bar"), "{text}");
        assert_eq!(text.matches("<table>").count(), text.matches("</table>").count());
        Ok(())
    }
}
