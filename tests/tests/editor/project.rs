//! A crate that uses the attribute, to be opened in an editor.

use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) struct Project {
    pub(crate) folder: PathBuf,
    pub(crate) source: String,
}

/// Returns the root of the repository.
pub(crate) fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

impl Project {
    pub(crate) fn create(source: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("editor");
        fs::create_dir_all(folder.join("src")).unwrap();
        // Uses the profile of the workspace, so the macros are not rebuilt.
        let manifest = format!(
            "[package]\nname = \"shop\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n\
             redlock-runtime = {{ path = \"{}\" }}\n\n[profile.dev]\ndebug = \"line-tables-only\"\n",
            workspace().join("redlock-runtime").display()
        );
        fs::write(folder.join("Cargo.toml"), manifest).unwrap();
        fs::copy(workspace().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
        fs::write(folder.join("src/lib.rs"), source).unwrap();
        Self { folder, source: source.to_owned() }
    }

    pub(crate) fn uri(&self) -> String {
        format!("file://{}", self.folder.join("src/lib.rs").display())
    }

    /// Returns the position of the `|` in `place`. The rest of `place` occurs once in the source.
    #[track_caller]
    pub(crate) fn find(&self, place: &str) -> Value {
        let (before, after) = place.split_once('|').unwrap();
        let text = format!("{before}{after}");
        let found: Vec<_> = self.source.match_indices(&text).map(|(at, _)| at + before.len()).collect();
        let [at] = found.as_slice() else { panic!("{place} stands in the source {} times", found.len()) };
        let (above, _) = self.source.split_at(*at);
        json!({ "line": above.matches('\n').count(), "character": at - above.rfind('\n').map_or(0, |at| at + 1) })
    }

    /// Returns the source after some edits, as the protocol writes them.
    pub(crate) fn edited(&self, edits: &[Value]) -> String {
        let at = |position: &Value| {
            let number = |name: &str| usize::try_from(position[name].as_u64().unwrap()).unwrap();
            let above: usize = self.source.split_inclusive('\n').take(number("line")).map(str::len).sum();
            above + number("character")
        };
        let mut edits: Vec<_> =
            edits.iter().map(|edit| (at(&edit["range"]["start"]), at(&edit["range"]["end"]), edit)).collect();
        edits.sort_unstable_by_key(|(start, ..)| std::cmp::Reverse(*start));
        let mut source = self.source.clone();
        for (start, end, edit) in edits {
            source.replace_range(start..end, edit["newText"].as_str().unwrap());
        }
        source
    }
}
