//! HTML page with held locks, waiting calls and nodes of one manager.
//!
//! The page is one text without scripts and external resources. It reloads itself every two seconds. Keys come from requests, so
//! every text is escaped: [`single_line`] escapes line breaks and bidirectional marks, then the characters of HTML are escaped.

use super::held::LocalLock;
use super::{LockManager, Stats};
use crate::stats::{Histogram, LockSite, SiteStats};
use crate::text::single_line;
use std::fmt::{self, Display, Formatter};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const STYLE: &str = "\
:root{color-scheme:light dark;--line:#d8dce3;--soft:#5c6470;--card:#f4f6f9;--bar:#3b73c8;--bad:#b3261e}\
@media(prefers-color-scheme:dark){:root{--line:#343a44;--soft:#9aa4b2;--card:#1d222a;--bar:#6ea0ec;--bad:#ff8a80}\
body{background:#12151a;color:#e6e9ee}}\
body{font:14px/1.45 system-ui,sans-serif;margin:2rem auto;padding:0 1.5rem;max-width:76rem}\
h1{font-size:1.35rem;margin:0}h2{font-size:1rem;margin:2rem 0 .5rem}p{color:var(--soft);margin:.2rem 0}\
.cards{display:flex;gap:1rem;flex-wrap:wrap;margin:1.2rem 0}\
.cards div{background:var(--card);border-radius:.5rem;padding:.6rem 1.1rem;min-width:6rem}.cards b{display:block;font-size:1.5rem}\
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}\
th{font-weight:600;color:var(--soft);text-align:left}th,td{padding:.35rem 1.2rem .35rem 0;border-bottom:1px solid var(--line);\
white-space:nowrap}.n{text-align:right}.bar{background:var(--bar);height:.7em;border-radius:2px}.bad{color:var(--bad);font-weight:600}";

/// HTML page with the locks of one manager: held locks, waiting calls, templates, latencies and nodes.
///
/// With the feature `axum` it is a response. It shows keys and nodes: serve it on an internal port, or behind authentication.
///
/// # Examples
/// ```
/// # #[cfg(feature = "axum")]
/// # mod service {
/// use axum::{Router, routing::get};
/// use redlock_runtime::LockManager;
///
/// pub fn internal(locks: LockManager) -> Router {
///     Router::new().route("/locks", get(async move || locks.page("order-service")))
/// }
/// # }
/// # fn main() {}
/// ```
#[derive(Clone, Debug)]
pub struct LocksPage {
    service: Box<str>,
    stats: Stats,
    held: Vec<LocalLock>,
    at: SystemTime,
}

impl LockManager {
    /// Returns a page with the state of this manager. `service` is its title. No command is sent.
    #[must_use]
    pub fn page(&self, service: impl Into<String>) -> LocksPage {
        LocksPage {
            service: service.into().into_boxed_str(),
            stats: self.stats(),
            held: self.held_locks(),
            at: SystemTime::now(),
        }
    }
}

/// Writes the HTML document.
impl Display for LocksPage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { service, stats, held, at } = self;
        let (service, host) = (Escaped(service), host());
        write!(
            f,
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"2\">\
             <meta name=\"viewport\" content=\"width=device-width\"><title>Locks of {service}</title><style>{STYLE}</style>\
             <h1>Locks of {service}</h1><p>process {} on {}, {} UTC</p>",
            std::process::id(),
            Escaped(host),
            time_of_day(*at)
        )?;
        let sum = |count: fn(&SiteStats) -> u64| stats.sites.iter().map(count).sum::<u64>();
        f.write_str("<div class=cards>")?;
        card(f, "held", u64::try_from(held.len()).unwrap_or(u64::MAX), false)?;
        card(f, "waiting", sum(|site| site.waiting_now), false)?;
        card(f, "acquired", sum(|site| site.acquired), false)?;
        card(f, "timed out", sum(|site| site.timed_out), false)?;
        card(f, "lost", sum(|site| site.lost), true)?;
        f.write_str("</div>")?;
        held_locks(f, held)?;
        templates(f, stats)?;
        for site in by_calls(stats).into_iter().take(5) {
            histogram(f, site)?;
        }
        nodes(f, stats)?;
        f.write_str("</html>\n")
    }
}

#[cfg(feature = "axum")]
impl axum_core::response::IntoResponse for LocksPage {
    fn into_response(self) -> axum_core::response::Response {
        let html = http::HeaderValue::from_static("text/html; charset=utf-8");
        ([(http::header::CONTENT_TYPE, html)], self.to_string()).into_response()
    }
}

/// Returns the name of this machine, from Linux or the environment.
fn host() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").or_else(|_| std::env::var("HOSTNAME"));
    host.map_or_else(|_| "an unknown host".to_owned(), |host| host.trim().to_owned())
}

/// Returns a time of day: `17:04:09`.
fn time_of_day(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    format!("{:02}:{:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60)
}

/// Text that is safe anywhere in a page.
struct Escaped<T>(T);

impl<T: Display> Display for Escaped<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for c in single_line(&self.0.to_string()).chars() {
            match c {
                '&' => f.write_str("&amp;"),
                '<' => f.write_str("&lt;"),
                '>' => f.write_str("&gt;"),
                '"' => f.write_str("&quot;"),
                '\'' => f.write_str("&#39;"),
                other => write!(f, "{other}"),
            }?;
        }
        Ok(())
    }
}

/// Returns the upper bound of the bucket with the quantile, such as `≤ 8.4s`; a dash if nothing was measured.
fn quantile(histogram: &Histogram, part: f64) -> String {
    match histogram.quantile(part) {
        _ if histogram.count() == 0 => "–".to_owned(),
        Duration::MAX => "very long".to_owned(),
        bound => format!("≤ {bound:.1?}"),
    }
}

/// Returns the source line, such as `src/api.rs:88`.
fn place(site: &LockSite) -> Escaped<String> {
    Escaped(site.line.map(|line| line.to_string()).unwrap_or_default())
}

fn card(f: &mut Formatter<'_>, title: &str, count: u64, is_bad: bool) -> fmt::Result {
    let class = if is_bad && count > 0 { " class=bad" } else { "" };
    write!(f, "<div{class}><b>{count}</b>{title}</div>")
}

/// Writes a table, or a note that it is empty. The title of a column of numbers begins with a space.
fn table(
    f: &mut Formatter<'_>,
    title: &str,
    columns: &[&str],
    is_empty: bool,
    rows: impl FnOnce(&mut Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    write!(f, "<h2>{title}</h2>")?;
    if is_empty {
        return f.write_str("<p>none</p>");
    }
    f.write_str("<div class=scroll><table><tr>")?;
    for column in columns {
        let class = if column.starts_with(' ') { " class=n" } else { "" };
        write!(f, "<th{class}>{}", column.trim())?;
    }
    rows(f)?;
    f.write_str("</table></div>")
}

fn held_locks(f: &mut Formatter<'_>, held: &[LocalLock]) -> fmt::Result {
    let columns = ["key", "acquired in", " held for", " lease ends in"];
    table(f, "Held now", &columns, held.is_empty(), |f| {
        for LocalLock { key, site, held_for, remaining, .. } in held {
            let (key, place) = (Escaped(key), place(site));
            write!(f, "<tr><td>{key}<td>{place}<td class=n>{held_for:.1?}<td class=n>{remaining:.1?}")?;
        }
        Ok(())
    })
}

/// Returns the sites, those with the most calls first.
fn by_calls(stats: &Stats) -> Vec<&SiteStats> {
    let mut sites: Vec<_> = stats.sites.iter().collect();
    sites.sort_by_key(|site| std::cmp::Reverse(site.acquired + site.contended + site.timed_out + site.waiting_now));
    sites
}

fn templates(f: &mut Formatter<'_>, stats: &Stats) -> fmt::Result {
    let columns = [
        "template",
        "place",
        " acquired",
        " held",
        " waiting",
        " contended",
        " timed out",
        " lost",
        " wait p50",
        " wait p99",
        " hold p50",
    ];
    table(f, "Templates, most calls first", &columns, stats.sites.is_empty(), |f| {
        for site in by_calls(stats) {
            write!(f, "<tr><td>{}<td>{}", Escaped(&site.site), place(&site.site))?;
            for count in [site.acquired, site.held_now, site.waiting_now, site.contended, site.timed_out] {
                write!(f, "<td class=n>{count}")?;
            }
            let class = if site.lost > 0 { "n bad" } else { "n" };
            write!(f, "<td class=\"{class}\">{}", site.lost)?;
            for time in [quantile(&site.wait, 0.5), quantile(&site.wait, 0.99), quantile(&site.hold, 0.5)] {
                write!(f, "<td class=n>{time}")?;
            }
        }
        Ok(())
    })
}

/// Writes the waiting times of a site. The title has the source line, because functions can share a template.
fn histogram(f: &mut Formatter<'_>, site: &SiteStats) -> fmt::Result {
    let most = site.wait.buckets().map(|(_, count)| count).max().unwrap_or_default();
    if most == 0 {
        return Ok(());
    }
    let title = format!("Waiting time of {} in {}", Escaped(&site.site), place(&site.site));
    table(f, &title, &[" less than", " calls", ""], false, |f| {
        for (bound, count) in site.wait.buckets().filter(|(_, count)| *count > 0) {
            let bound = if bound == Duration::MAX { "more".to_owned() } else { format!("{bound:.1?}") };
            let width = 20 * count / most;
            write!(f, "<tr><td class=n>{bound}<td class=n>{count}<td><div class=bar style=\"width:{width}em\"></div>")?;
        }
        Ok(())
    })
}

fn nodes(f: &mut Formatter<'_>, stats: &Stats) -> fmt::Result {
    let columns = ["node", "connection", " commands", " errors", " round trip p99"];
    table(f, "Nodes", &columns, stats.nodes.is_empty(), |f| {
        for node in &stats.nodes {
            let (label, time) = (Escaped(&node.node), quantile(&node.round_trip, 0.99));
            let up = if node.is_up { "up" } else { "<span class=bad>down</span>" };
            let (commands, errors) = (node.commands, node.errors);
            write!(f, "<tr><td>{label}<td>{up}<td class=n>{commands}<td class=n>{errors}<td class=n>{time}")?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LockError, LockRequest};

    #[tokio::test]
    async fn texts_of_requests_are_escaped() -> Result<(), LockError> {
        let manager = LockManager::in_memory();
        let request = LockRequest::new("<script>alert('1 & \"2\"')</script>").label("<b>{id}</b>");
        let guard = manager.acquire(request).await?;
        let text = manager.page("shop <1>").to_string();
        assert!(!text.contains("<script") && !text.contains("<b>{"), "{text}");
        assert!(text.contains("&lt;script&gt;alert(&#39;1 &amp; &quot;2&quot;&#39;)&lt;/script&gt;"), "{text}");
        assert!(text.contains("<title>Locks of shop &lt;1&gt;</title>"), "{text}");
        guard.release().await?;
        let guard = manager.acquire("7\r\n\u{1b}[2J\u{202e}für").await?;
        let text = manager.page("shop").to_string();
        assert!(text.contains("<td>7\\u000d\\u000a\\u001b[2J\\u202efür<td>"), "{text}");
        guard.release().await
    }

    #[tokio::test]
    async fn held_locks_and_waiting_calls_are_shown() -> Result<(), LockError> {
        let manager = LockManager::in_memory();
        let request = || LockRequest::new("order:7").label("order:{id}");
        let guard = manager.acquire(request()).await?;
        let (waited, ()) = tokio::join!(manager.acquire(request()), async {
            let text = manager.page("shop").to_string();
            assert!(text.contains("<b>1</b>held</div><div><b>1</b>waiting"), "{text}");
            assert!(text.contains("<td>order:7<td>"), "{text}");
            drop(guard);
        });
        drop(waited?);
        let text = manager.page("shop").to_string();
        assert!(text.contains("<b>0</b>held</div><div><b>0</b>waiting") && !text.contains("order:7"), "{text}");
        assert!(text.contains("<h2>Waiting time of order:{id} in ") && text.contains("class=bar"), "{text}");
        assert!(text.contains("<h2>Held now</h2><p>none</p>"), "{text}");
        assert_eq!(text.matches("<table>").count(), text.matches("</table>").count());
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn quantiles_are_shown_as_bounds() -> Result<(), LockError> {
        let manager = LockManager::in_memory();
        assert!(manager.page("shop").to_string().contains("calls first</h2><p>none</p>"));
        let request = || LockRequest::new("order:7").label("order:{id}");
        // Two places with one template.
        let guard = manager.acquire(request()).await?;
        tokio::time::advance(Duration::from_secs(6)).await;
        let text = manager.page("shop").to_string();
        assert!(text.contains("<td class=n>–") && !text.contains("0.0ns"), "{text}");
        guard.release().await?;
        manager.acquire(request()).await?.release().await?;
        let text = manager.page("shop").to_string();
        assert!(text.contains("<td class=n>≤ 8."), "{text}");
        let titles = text.split("<h2>Waiting time of ").skip(1).filter_map(|rest| rest.split('<').next());
        let titles: std::collections::BTreeSet<_> = titles.collect();
        assert_eq!(titles.len(), 2, "{text}");
        Ok(())
    }

    #[test]
    fn time_of_day_is_in_utc() {
        assert_eq!(time_of_day(UNIX_EPOCH + Duration::from_secs(1_000_000_000)), "01:46:40");
    }
}
