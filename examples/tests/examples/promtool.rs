//! Checks `docs/alerts.yml` with Prometheus' own tool, if it is installed (Debian: package `prometheus`).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{fs, io};

const PROMTOOL: &str = "promtool";

/// Minutes for which the series of a test continue: longer than every range and every `for` of the rules.
const MINUTES: u32 = 20;

/// `true` if the tool is in `PATH`. Otherwise, the first use prints that the checks are left out.
static IS_INSTALLED: LazyLock<bool> = LazyLock::new(|| {
    let is_installed = Command::new(PROMTOOL).arg("--version").output().is_ok();
    if !is_installed {
        // Bypasses the test harness, which would show the message only if the test failed.
        let mut shown = io::stderr();
        writeln!(shown, "left out: {PROMTOOL} on docs/alerts.yml, which is not installed (Debian: prometheus)")
            .unwrap();
    }
    is_installed
});

fn rules() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs/alerts.yml")
}

/// Runs the tool on `file`, and asserts that it succeeds.
fn run(arguments: &[&str], file: &Path) {
    let output = Command::new(PROMTOOL).args(arguments).arg(file).output().unwrap();
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
    assert!(output.status.success(), "{PROMTOOL} {} {}:\n{text}", arguments.join(" "), file.display());
}

/// Asserts that exactly the alerts of `expected` fire if every counter grows from `before` to `after` each minute, and
/// every gauge has its value of `after`.
pub(crate) fn assert_fires(before: &str, after: &str, expected: &[&str]) {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    if !*IS_INSTALLED {
        return;
    }
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("alerts-{}-{number}.yml", std::process::id());
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&file, test_file(before, after, expected)).unwrap();
    run(&["test", "rules"], &file);
    fs::remove_file(&file).unwrap();
}

/// Returns a test of the rules in the format of `promtool test rules`.
fn test_file(before: &str, after: &str, expected: &[&str]) -> String {
    let mut text = format!(
        "rule_files: ['{}']\nevaluation_interval: 1m\ntests:\n- interval: 1m\n  input_series:\n",
        rules().display()
    );
    let before = samples(before);
    for (series, value) in samples(after) {
        let earlier = before.get(series).copied().filter(|_| is_counter(series)).unwrap_or(value);
        let series = series.replace('\'', "''");
        writeln!(text, "  - series: '{series}'\n    values: '{earlier}+{}x{MINUTES}'", value - earlier).unwrap();
    }
    text += "  promql_expr_test:\n  - expr: group by (alertname) (ALERTS{alertstate=\"firing\"})\n";
    writeln!(text, "    eval_time: {MINUTES}m\n    exp_samples:").unwrap();
    for alert in expected {
        writeln!(text, "    - labels: '{{alertname=\"{alert}\"}}'\n      value: 1").unwrap();
    }
    text
}

/// Values of a page in the text format of Prometheus, by their series.
fn samples(page: &str) -> BTreeMap<&str, f64> {
    let lines = page.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.rsplit_once(' '));
    lines.map(|(series, value)| (series, value.parse().unwrap())).collect()
}

/// Returns `true` for the series of counters and histograms.
fn is_counter(series: &str) -> bool {
    let name = series.split('{').next().unwrap();
    ["_total", "_bucket", "_count", "_sum"].iter().any(|end| name.ends_with(end))
}

#[test]
fn alert_rules_are_accepted_by_promtool() {
    if *IS_INSTALLED {
        run(&["check", "rules"], &rules());
    }
}
