#!/usr/bin/env bash
# Checks that must pass before the crates are published, and that are too slow for every run.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
    cat <<'TEXT'
Usage: tests/publishable.sh [--help] [CHECK ..]

Runs the given checks, or all of them:

  features  redlock-runtime builds without a warning with each pair of its features, with none and with all
  plain     the library's own tests pass without the test kit, which adds code to calls
  minimal   the two crates of the library build with the oldest versions of their dependencies that their manifests allow
  deny      advisories, licenses, sources and duplicates of all dependencies, as configured in deny.toml. Without a network, the
            last downloaded advisories are used. If there are none, they are skipped with a warning
  contact   the manifests name a public repository, and SECURITY.md an address for reports. Fails until the project has both

features needs cargo-hack, and deny needs cargo-deny: cargo install --locked cargo-hack cargo-deny
TEXT
}

checks=()
for argument in "$@"; do
    case $argument in
        -h | --help) usage && exit 0 ;;
        features | plain | minimal | deny | contact) checks+=("$argument") ;;
        *) printf 'unknown check: %s\n\n' "$argument" >&2 && usage >&2 && exit 2 ;;
    esac
done
[[ ${#checks[@]} -gt 0 ]] || checks=(features plain minimal deny contact)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
    printf '\nFAILED: %s\n' "$*" >&2
    exit 1
}

need() {
    cargo "$1" --version >/dev/null 2>&1 || fail "no cargo-$1; run: cargo install --locked cargo-$1"
}

# Works on a copy, because the tool removes dev-dependencies from the manifests while it runs.
features() {
    local here=$PWD
    need hack
    mkdir "$scratch/workspace"
    git ls-files -z | tar --null --create --files-from - | tar --extract --directory "$scratch/workspace"
    (cd "$scratch/workspace" && RUSTFLAGS='-D warnings' cargo hack check -p redlock-runtime --feature-powerset --depth 2 \
        --no-dev-deps --target-dir "$here/target/features")
}

plain() {
    cargo test -p redlock-runtime --features macros,serde --lib -- client:: guard:: manager::
}

# Checks the crates without their dev-dependencies: the oldest versions of those do not matter to users.
minimal() {
    local crate
    for crate in redlock-macros redlock-runtime; do
        mkdir "$scratch/$crate"
        cp -r "$crate/src" "$crate/docs" "$scratch/$crate" 2>/dev/null || cp -r "$crate/src" "$scratch/$crate"
        cp README.md "$scratch/$crate"
        # Keeps the sections that users need, and drops those of tests and benches.
        awk '/^\[(dev-dependencies|\[bench\]|\[example\]|\[test\])/ { skip = 1; next } /^\[/ { skip = 0 } !skip' \
            "$crate/Cargo.toml" >"$scratch/$crate/Cargo.toml"
    done
    sed 's/^members = .*/members = ["redlock-macros", "redlock-runtime"]/' Cargo.toml >"$scratch/Cargo.toml"
    # Only nightly compilers know this option. It affects the choice of versions alone: the compiler itself stays the pinned one.
    RUSTC_BOOTSTRAP=1 cargo update --manifest-path "$scratch/Cargo.toml" -Z direct-minimal-versions
    cargo check --manifest-path "$scratch/Cargo.toml" --all-features --target-dir target/minimal
}

deny() {
    need deny
    cargo deny --all-features check bans licenses sources
    # Needs the network, because the database of advisories is downloaded.
    if cargo deny fetch db; then
        cargo deny --all-features check advisories
    elif ! cargo deny --all-features check --disable-fetch advisories; then
        [[ -n $(find "${CARGO_HOME:-$HOME/.cargo}" -maxdepth 1 -name 'advisory-db*' -print -quit) ]] && fail "advisories"
        printf 'WARNING: the database of advisories cannot be reached: advisories were not checked\n' >&2
    fi
}

contact() {
    local crate
    for crate in redlock-macros redlock-runtime redlock-cli; do
        grep -q '^repository' "$crate/Cargo.toml" || fail "$crate/Cargo.toml names no repository: add \`repository = \"..\"\`"
    done
    sed -n '/^## Report/,/^## Supported/p' SECURITY.md | grep -Eq 'https://|[^ ]+@[^ ]+' ||
        fail 'SECURITY.md names no address for reports: add one below "Report a vulnerability"'
}

for check in "${checks[@]}"; do
    printf '\n== %s\n' "$check"
    "$check"
done
printf '\nThe crates are fit to be published, as far as %s tell.\n' "${checks[*]}"
