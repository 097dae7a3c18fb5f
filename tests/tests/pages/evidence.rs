//! Generates `docs/evidence.md` from the sources, the tests of the model and the ledgers.

mod promises;
mod source;

use self::promises::CHECKED;
use self::source::{Case, cases, rows, tests_without, variants};
use crate::page::{Page, workspace};
use redlock_model::lock::{Scenario, UNBOUNDED};
use redlock_model::permits::Variant;
use redlock_model::recorded::{MOST_STATES, Row, Table};
use redlock_model::restarts::Restarts;
use redlock_model::runs;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

const PAGE: &str = "docs/evidence.md";

const HEAD: &str = "\
# Evidence

The checks behind each promise and each rule of the [protocol](protocol.md). A test generates this page from the sources, the results
of the searches and the ledgers of long runs: `UPDATE_EXPECT=1 cargo test -p redlock-tests --test pages evidence`.
The page [Verification](../redlock-runtime/docs/guide/reference/verification.md) explains each kind of check, and its limits.
";

/// Formats a number with its digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(" ")
}

/// Formats names as code. Returns a dash for an empty list.
fn code(names: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let names: Vec<_> = names.into_iter().map(|name| format!("`{}`", name.as_ref())).collect();
    if names.is_empty() { "-".to_owned() } else { names.join(", ") }
}

/// Table of the promises, with the checks that find a violation of each.
fn promises(cases: &[Case]) -> String {
    let known = variants("simulation/records.rs", "pub(super) enum Promise");
    let names: Vec<_> = known.iter().map(|variant| &*variant.name).collect();
    assert_eq!(names, CHECKED.map(|row| row.promise), "evidence/promises.rs has not the promises of the simulation");
    let mut text = "\n## Promises\n\nThe simulation checks each promise at every step. *Rules* counts the rules without which the \
                    simulation finds this promise broken.\n\n\
                    | promise | meaning | rules | model | real servers |\n|---|---|---:|---|---|\n"
        .to_owned();
    for (variant, checked) in known.iter().zip(CHECKED) {
        let rules = cases.iter().filter(|case| case.promises.contains(&variant.name)).count();
        let (name, words, model) = (&variant.name, variant.words.trim_end_matches('.'), checked.model.unwrap_or("-"));
        writeln!(text, "| {name} | {words} | {rules} | {model} | {} |", code(checked.servers)).unwrap();
    }
    text
}

/// Returns the violation that the model finds without each rule.
fn symptoms() -> BTreeMap<String, &'static str> {
    let mut symptoms: BTreeMap<_, _> =
        runs::without_a_rule().into_iter().map(|(rule, _, symptom)| (format!("{rule:?}"), symptom)).collect();
    symptoms
        .extend(runs::fencing_without_a_rule().into_iter().map(|(rule, _, symptom)| (format!("{rule:?}"), symptom)));
    symptoms
        .extend(runs::restarts_without_a_rule().into_iter().map(|(rule, _, symptom)| (format!("{rule:?}"), symptom)));
    for (rule, _, symptom) in runs::sets_without_a_rule() {
        symptoms.entry(format!("{rule:?}")).or_insert(symptom);
    }
    for (_, model) in runs::permits_without_a_rule() {
        if let Variant::Without(rule) = model.variant {
            symptoms.entry(format!("{rule:?}")).or_insert("one permit too many");
        }
    }
    symptoms
}

/// Table of the rules, with the tests that fail without each of them.
fn rules(cases: &[Case]) -> String {
    let symptoms = symptoms();
    let rules = variants("protocol/rules.rs", "pub(crate) enum Rule");
    let of_model = rules.iter().filter(|rule| symptoms.contains_key(&rule.name)).count();
    let mut text = format!(
        "\n## Rules\n\n{} rules can be switched off one at a time. A test then requires that a check fails. The column *simulation* names \
         the circumstances in which the simulation fails, and the broken promises. The model fails for {of_model} rules as well, and its \
         column quotes the error.\n\n| rule | simulation | model |\n|---|---|---|\n",
        rules.len()
    );
    for rule in &rules {
        let told = cases.iter().filter(|case| case.rule == rule.name);
        let told = told.map(|case| format!("`{}`: {}", case.circumstances, case.promises.join(", ")));
        let mut told: Vec<_> = told.collect();
        if told.is_empty() {
            let tests = tests_without(&rule.name);
            assert!(!tests.is_empty(), "no test switches off {}", rule.name);
            told.push(format!("{} instead", code(tests)));
        }
        let model = symptoms.get(&rule.name).map_or("-".to_owned(), |symptom| format!("\"{symptom}\""));
        writeln!(text, "| `{}` | {} | {model} |", rule.name, told.join("; ")).unwrap();
    }
    text
}

/// Describes the properties of a scenario beyond nodes and tokens.
fn bounds(scenario: &Scenario) -> String {
    let many = |count: u8, what: &str| match count {
        0 => None,
        UNBOUNDED => Some(format!("any {what}")),
        count => Some(format!("{count} {what}")),
    };
    let has = |is: bool, what: &str| is.then(|| what.to_owned());
    let bounds = [
        many(scenario.expiries, "expiries"),
        many(scenario.polls, "polls"),
        many(scenario.crashes, "crashes"),
        many(scenario.cuts, "cuts"),
        many(scenario.failures, "failed scripts"),
        many(scenario.forgeries, "forged messages"),
        has(scenario.fast, "first tries"),
        has(scenario.give_up, "giving up"),
        has(scenario.frozen, "a frozen node"),
        has(scenario.proves > 0, "proven claims"),
        has(scenario.successor, "a successor"),
        has(scenario.adopters > 0, "adopters"),
        has(scenario.sharing > 0, "readers"),
    ];
    let bounds: Vec<_> = bounds.into_iter().flatten().collect();
    if bounds.is_empty() { "-".to_owned() } else { bounds.join(", ") }
}

/// Describes the faults of restarted servers.
fn faults(model: &Restarts) -> String {
    let kinds: Vec<_> = model.kinds.iter().map(|kind| format!("{kind:?}")).collect();
    format!("{} of {}", model.faults, kinds.join(", "))
}

/// Returns the row of a search, with a remark if the search has not been run yet.
fn searched(name: &str, what: &str, found: &[Row]) -> String {
    let Some(row) = found.iter().find(|row| row.name == name) else {
        return format!("| {name} | {what} | not recorded yet | |\n");
    };
    let violation = row.violation.as_ref().map_or(String::new(), |violation| format!(", and then: {violation}"));
    let end = if row.exhausted { "completely" } else { "until the limit of memory" };
    format!("| {name} | {what} | {} | {end}{violation} |\n", grouped(row.states as u64))
}

fn of_lock(runs: &[runs::Run], found: &[Row]) -> String {
    let what = |scenario: &Scenario| {
        let nodes = if scenario.free.is_some() { "any".to_owned() } else { scenario.nodes.to_string() };
        format!("{nodes} | {} | {}", scenario.tokens, bounds(scenario))
    };
    runs.iter().map(|run| searched(run.name, &what(&run.scenario), found)).collect()
}

fn model() -> String {
    let (lock, fencing, long) = (Table::Lock.read(), Table::Fencing.read(), Table::Long.read());
    let (sets, restarts) = (Table::Sets.read(), Table::Restarts.read());
    let states: usize = lock.iter().chain(&sets).chain(&fencing).chain(&restarts).map(|row| row.states).sum();
    let is_complete = runs::of_the_tests().iter().all(|run| lock.iter().any(|row| row.name == run.name))
        && runs::sets().iter().all(|(name, _)| sets.iter().any(|row| row.name == *name))
        && runs::fencing().iter().all(|(name, _)| fencing.iter().any(|row| row.name == *name))
        && runs::restarts().iter().all(|(name, _)| restarts.iter().any(|row| row.name == *name));
    assert!(is_complete, "states are missing: UPDATE_EXPECT=1 cargo test -p redlock-model");
    let head = "| scenario | nodes | tokens | with | states | searched |\n|---|---:|---:|---|---:|---|\n";
    let of_tests = of_lock(&runs::of_the_tests(), &lock);
    let of_long = of_lock(&runs::of_the_long_run(), &long);
    let of_several = runs::sets().into_iter().map(|(name, model)| {
        let with = if model.give_up { "giving up" } else { "-" };
        searched(name, &format!("{} | {} | {with}", model.nodes, model.tokens), &sets)
    });
    let of_several: String = of_several.collect();
    let numbers = runs::fencing().into_iter().map(|(name, model)| (name, model, &fencing));
    let of_long_run = runs::fencing_of_the_long_run().into_iter().map(|(name, model)| (name, model, &long));
    let numbers = numbers.chain(of_long_run);
    let numbers: String = numbers
        .map(|(name, model, found)| {
            let what = format!(
                "{} | {} | {} | {} | {} | {}",
                model.tokens, model.rounds, model.ballots, model.changes, model.wipes, model.poisons
            );
            searched(name, &what, found)
        })
        .collect();
    let of_restarts = runs::restarts().into_iter().map(|(name, model)| {
        searched(name, &format!("{} | {} | {}", model.servers, model.asks, faults(&model)), &restarts)
    });
    let of_restarts: String = of_restarts.collect();
    format!(
        "\n## Model\n\nThe model searches every state of each scenario, {} states in all. Tests compare their numbers with this table. Each run \
         of the tests searches the scenarios of at most {} states, and `tests/run.sh --long` searches all. The numbers of expiries, polls, crashes and cuts are upper bounds.\n\n{head}{of_tests}\n\
         Several keys, and paths of a tree:\n\n{head}{of_several}\n\
         Results of the last long run (`tests/run.sh --long`):\n\n{head}{of_long}\n\
         Fencing numbers. The last three rows belong to the long run:\n\n\
         | scenario | tokens | rounds | ballots | changes | wipes | damaged | states | searched |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---|\n{numbers}\n\
         Restarted servers, with two clients that each ask all servers this many times:\n\n\
         | scenario | servers | asks | faults | states | searched |\n|---|---:|---:|---|---:|---|\n{of_restarts}",
        grouped(states as u64),
        grouped(MOST_STATES as u64)
    )
}

/// Table of the long runs, one row for each kind.
fn ledger() -> String {
    let mut sums: BTreeMap<String, (u64, u64, u64, String)> = BTreeMap::new();
    for row in rows("tests/ledger.tsv") {
        let [date, _, what, _, amount, _, found, _] = &row[..] else { panic!("no row of the ledger: {row:?}") };
        let (runs, amounts, violations, last) = sums.entry(what.clone()).or_default();
        *runs += 1;
        *amounts += amount.parse::<u64>().unwrap();
        *violations += found.parse::<u64>().unwrap();
        *last = std::mem::take(last).max(date.clone());
    }
    let mut text = "\n## Long runs\n\nEach run of the tests simulates the same 30 000 schedules, and runs the soak test \
                    (`tests/tests/redis/soak.rs`) for some seconds. [The ledger](../tests/ledger.tsv) lists the longer runs of \
                    `tests/long.sh`, with commits and seeds:\n\n\
                    | test | runs | schedules, or bodies | violations | last |\n|---|---:|---:|---:|---|\n"
        .to_owned();
    for (what, (runs, amount, violations, last)) in sums {
        writeln!(text, "| {what} | {runs} | {} | {violations} | {last} |", grouped(amount)).unwrap();
    }
    text + &violations()
}

/// Table of the violations that the long runs have found, with their causes.
fn violations() -> String {
    let found: Vec<_> = rows("tests/ledger.tsv").into_iter().filter(|row| row[6] != "0").collect();
    if found.is_empty() {
        return String::new();
    }
    let mut text = "\nViolations that the long runs have found. Each run ends with its first violation. The cause names the commit of the fix.\n\n\
                    | test | commit | cause |\n|---|---|---|\n"
        .to_owned();
    for row in found {
        writeln!(text, "| {} | `{}` | {} |", row[2], row[1], row[7]).unwrap();
    }
    text
}

#[test]
fn every_violation_in_the_ledger_has_a_cause() {
    for row in rows("tests/ledger.tsv") {
        assert!(row[6] == "0" || row[7] != "-", "enter the cause of this violation in tests/ledger.tsv: {row:?}");
    }
}

/// Table of the fuzz targets.
fn fuzzing() -> String {
    let mut sums: BTreeMap<String, (u64, u64, u64)> = BTreeMap::new();
    for row in rows("fuzz/runs.tsv") {
        let [_, _, target, seconds, runs, _, found] = &row[..] else { panic!("no run of a fuzz target: {row:?}") };
        let sum = sums.entry(target.clone()).or_default();
        for (sum, more) in [&mut sum.0, &mut sum.1, &mut sum.2].into_iter().zip([seconds, runs, found]) {
            *sum += more.parse::<u64>().unwrap();
        }
    }
    let mut text = "\n## Fuzzing\n\n`fuzz/run.sh` runs each target with coverage guidance, and enters the run and its commit in \
                    [a table](../fuzz/runs.tsv). *Findings* counts the runs that ended with a failure. In `options` and `templates`, the \
                    attribute panicked on a number in a key that was too large. In `nodes`, the fuzzer's own clock had interrupted \
                    connections. Both faults are fixed.\n\n\
                    | target | seconds | inputs | findings |\n|---|---:|---:|---:|\n"
        .to_owned();
    for (target, (seconds, runs, found)) in sums {
        writeln!(text, "| `{target}` | {} | {} | {found} |", grouped(seconds), grouped(runs)).unwrap();
    }
    text
}

/// Open questions of the guide, and the rules that only the simulation checks.
fn open() -> String {
    let guide = Page::read("redlock-runtime/docs/guide/reference/verification.md").text;
    let (_, rest) = guide.split_once("# What is not known\n\n").unwrap();
    let (unknown, _) = rest.split_once("\n\n# ").unwrap();
    let symptoms = symptoms();
    let rules = variants("protocol/rules.rs", "pub(crate) enum Rule");
    let unseen: Vec<_> = rules.iter().map(|rule| &rule.name).filter(|name| !symptoms.contains_key(*name)).collect();
    format!(
        "\n## Not covered\n\n{unknown}\n- {} rules are checked only by random schedules and by unit tests. The model has no time, except for restarts, \
         and no inside of a process, so it cannot check them: {}.\n",
        unseen.len(),
        code(unseen)
    )
}

#[test]
fn evidence_page_matches_sources_and_ledgers() {
    let cases = cases();
    let parts = [HEAD.to_owned(), promises(&cases), rules(&cases), model(), ledger(), fuzzing(), open()];
    let expected = parts.concat();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(workspace().join(PAGE), &expected).unwrap();
    }
    assert_eq!(Page::read(PAGE).text, expected, "{PAGE} is out of date: run this with UPDATE_EXPECT=1");
}
