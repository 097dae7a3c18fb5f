//! How hard the prose of each file is to read: pages, item docs and comments.
//!
//! Four counts are taken of each file:
//!
//! - *phrases* that readers stumble over (`PHRASES`), at most 3 for each 1000 words;
//! - *openings*: sentences of more than eight words that begin with a subordinate clause or a preposition, at most 4 for each 1000 words;
//! - *long sentences* of more than 25 words, at most 6 %;
//! - *heads*: item docs that begin with a question word or a pronoun, at most 5 %.
//!
//! One phrase, opening, sentence and head more is allowed in each file, so that a short file may have one. `tests/prose.tsv` lists the
//! files that exceed these limits, with their counts. A listed count can only become smaller:
//! `UPDATE_EXPECT=1 cargo test -p redlock-tests --test pages prose` writes the smaller ones. Add a row by hand where the natural sentence has
//! such a phrase.

mod text;

use self::text::{Kind, Sentence, heads, sentences};
use crate::page::workspace;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const LIST: &str = "tests/prose.tsv";

/// Generated pages, and what is not prose of the project.
const LEFT_OUT: [&str; 6] = ["target", ".git", "docs/evidence.md", "snapshots", "seeds", "tests/tests/pages/prose.rs"];

/// Sequences of words. `|` separates alternatives; `*` is any word but `longer`.
const PHRASES: [&str; 44] = [
    "whoever",
    "whatever it",
    "who|whom|whose waits|has|is|asks|wants|comes|gives|holds|drives|knows|may|stands",
    "is|are told",
    "tell|tells it|them|nobody|others",
    "say|says so|it|why|what|who|whether|which|until|when|how|that",
    "stand|stands in|at|on|for|beside|behind|before|there|here|with|as|above|below",
    "nobody",
    "somebody",
    "is|are|was|were no *",
    "no more",
    "all the same",
    "as ever",
    "mend|mends|mended|mending",
    "bear|bears",
    "at work",
    "by then",
    "until then",
    "besides",
    "the one before|after|that|who|which",
    "one that|who|which|whose",
    "those who|that|which|of",
    "for so long",
    "has it",
    "has the|a lock",
    "has one",
    "had alone",
    "also when|if|with|where|after|in",
    "is|are to",
    "come|came by|between",
    "come|came in between",
    "go|goes on",
    "take|takes|taken in",
    "put together",
    "of its|their|his own",
    "by hand",
    "left alone|out",
    "does not count",
    "count|counts no|as|for",
    "what is|was|has|comes|becomes|it|they",
    "give|gives|gave|given back",
    "so many",
    "in vain",
    "in line",
];

/// First words of sentences that do not begin with their subject.
const OPENINGS: [&str; 16] = [
    "what", "who", "whoever", "whom", "whose", "where", "whether", "that", "of", "as", "for", "by", "with", "in",
    "from", "to",
];

/// First words of item docs that ask or point instead of naming the item.
const QUESTIONS: [&str; 15] = [
    "what", "whether", "who", "whoever", "whose", "how", "which", "why", "when", "where", "until", "since", "as", "it",
    "those",
];

/// The counts of one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    words: usize,
    sentences: usize,
    items: usize,
    /// Phrases, openings, long sentences, heads.
    faults: [usize; 4],
}

impl Counts {
    /// The largest counts that need no row in the list.
    fn limits(&self) -> [usize; 4] {
        let share = |part: usize, of: usize, whole: usize| 1 + part * of / whole;
        [
            share(3, self.words, 1000),
            share(4, self.words, 1000),
            share(6, self.sentences, 100),
            share(5, self.items, 100),
        ]
    }

    fn exceed(&self, limits: [usize; 4]) -> bool {
        self.faults.iter().zip(limits).any(|(count, limit)| *count > limit)
    }
}

/// The number of `PHRASES` in a sentence.
fn phrases(words: &[String]) -> usize {
    let begins = |phrase: &str, words: &[String]| {
        let mut words = words.iter();
        phrase.split(' ').all(|slot| {
            let word = words.next();
            word.is_some_and(|word| if slot == "*" { word != "longer" } else { slot.split('|').any(|one| one == word) })
        })
    };
    let at = |at: usize| PHRASES.iter().filter(|phrase| begins(phrase, &words[at..])).count();
    (0..words.len()).map(at).sum()
}

fn begins_with(words: &[String], all: &[&str]) -> bool {
    words.first().is_some_and(|word| all.contains(&word.as_str()))
}

/// The counts of a text, and the places of all faults.
fn measure(text: &str, kind: Kind) -> (Counts, Vec<(usize, String)>) {
    let mut counts = Counts::default();
    let mut places = Vec::new();
    for sentence in sentences(text, kind) {
        let words = sentence.words();
        counts.words += words.len();
        counts.sentences += 1;
        let opens = begins_with(&words, &OPENINGS) && words.len() > 8;
        let faults = [phrases(&words), usize::from(opens), usize::from(words.len() > 25)];
        counts.faults.iter_mut().zip(faults).for_each(|(all, more)| *all += more);
        if faults != [0; 3] {
            let Sentence { line, text } = sentence;
            places.push((line, text));
        }
    }
    if kind != Kind::Markdown {
        for (line, head) in heads(text) {
            counts.items += 1;
            let first = head.split_whitespace().next().unwrap_or_default().to_lowercase();
            if QUESTIONS.contains(&first.as_str()) {
                counts.faults[3] += 1;
                places.push((line, head.to_owned()));
            }
        }
    }
    places.sort_unstable();
    (counts, places)
}

/// All files with prose, by their names below the workspace.
pub(crate) fn files(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        let name = path.strip_prefix(workspace()).unwrap().to_str().unwrap().to_owned();
        let is_left_out = LEFT_OUT.iter().any(|left_out| name == *left_out || name.ends_with(&format!("/{left_out}")));
        if is_left_out || kind.is_symlink() {
            continue;
        }
        if kind.is_dir() {
            files(&path, found);
        } else if Kind::of(&name).is_some() {
            found.push(name);
        }
    }
}

/// The list: a file, and its largest counts.
fn listed() -> BTreeMap<String, [usize; 4]> {
    let text = fs::read_to_string(workspace().join(LIST)).unwrap_or_default();
    let row = |line: &str| {
        let mut cells = line.split('\t');
        let name = cells.next().unwrap().to_owned();
        let counts: Vec<usize> = cells.take(4).map(|cell| cell.parse().unwrap()).collect();
        (name, counts.try_into().unwrap())
    };
    text.lines().skip(1).map(row).collect()
}

#[test]
fn prose_stays_within_the_language_limits() {
    let mut names = Vec::new();
    files(&workspace(), &mut names);
    names.sort_unstable();
    assert!(names.len() > 100, "{names:?}");
    let (before, update) = (listed(), std::env::var_os("UPDATE_EXPECT").is_some());
    let (mut after, mut faults) = (BTreeMap::new(), String::new());
    for name in names {
        let text = fs::read_to_string(workspace().join(&name)).unwrap();
        let (counts, places) = measure(&text, Kind::of(&name).unwrap());
        let (usual, row) = (counts.limits(), before.get(&name));
        let limits = row.map_or(usual, |row| std::array::from_fn(|nth| row[nth].max(usual[nth])));
        if counts.exceed(limits) {
            let _ = writeln!(faults, "{name}: {:?}, at most {limits:?}", counts.faults);
            for (line, text) in places {
                let _ = writeln!(faults, "  {line}: {text}");
            }
        }
        if counts.exceed(usual) {
            let least = row.map_or(counts.faults, |row| std::array::from_fn(|nth| row[nth].min(counts.faults[nth])));
            after.insert(name, least);
        }
    }
    assert!(faults.is_empty(), "phrases, openings, long sentences, heads:\n{faults}");
    if update {
        let mut list = "file\tphrases\topenings\tlong\theads\n".to_owned();
        for (name, [phrases, openings, long, heads]) in &after {
            let _ = writeln!(list, "{name}\t{phrases}\t{openings}\t{long}\t{heads}");
        }
        fs::write(workspace().join(LIST), list).unwrap();
    } else {
        let gone: Vec<_> = before.keys().filter(|name| !after.contains_key(*name)).collect();
        assert!(
            gone.is_empty(),
            "{LIST} lists files that keep to the limits, or are gone: {gone:?}; run with UPDATE_EXPECT=1"
        );
    }
}

#[test]
fn language_faults_are_counted() {
    let bad =
        "Whoever has the lock is told that nobody waits. What is left of the lease stands in the reply, and goes on.\n";
    let (counts, places) = measure(bad, Kind::Markdown);
    assert_eq!((counts.words, counts.sentences, counts.faults), (22, 2, [7, 2, 0, 0]), "{places:?}");
    let code = "/// What a node says.\nstruct A;\n/// The reply of a node.\nstruct B;\n";
    assert_eq!(measure(code, Kind::of("a.rs").unwrap()).0.faults, [0, 0, 0, 1]);
    let long = "one two three four five six seven eight nine ten ".repeat(3);
    assert_eq!(measure(&long, Kind::Markdown).0.faults, [0, 0, 1, 0]);
    let good = "The holder renews its lease. A waiter is no longer served after its deadline.\n";
    assert_eq!(measure(good, Kind::Markdown).0.faults, [0; 4]);
}
