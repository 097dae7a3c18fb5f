#!/usr/bin/env bash
# Runs every check of this repository against real Redis servers. Every change must pass it.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
    cat <<'TEXT'
Usage: tests/run.sh [--servers] [--long] [--help]

Installs redis-server, redis-cli, openssl, sqlite3 and libfaketime if they are missing (on Debian and its derivatives). Then
runs these checks in this order, and stops at the first failure: formatting, clippy, documentation, all tests, the tests that
need servers with Valkey, the examples, packaging.
Three groups of tests are skipped with a message if they cannot run: the tests of the attribute in the editor need
rust-analyzer, one check of docs/alerts.yml needs promtool (Debian: prometheus), and the tests with Valkey need Linux on x86-64
(see tests/servers.sh).

  --servers  run all tests that need servers with every server of tests/servers.sh --list (default: with the newest Valkey, the
             tests of what servers may do differently)
  --long     also run the large searches of the models: up to an hour and 9 GB of memory

Environment:
  REDIS_SERVER   redis-server binary to test against (default: the one in PATH)
  REDIS_CLI      redis-cli binary (default: the one in PATH)
  LIBFAKETIME    libfaketime.so.1 (default: the usual paths of distributions)
  RUST_TEST_THREADS  number of tests that run at once (default: 8)
TEXT
}

long=
# The server kind of every run is the newest one that is not Redis, with the tests of what servers may do differently.
servers=valkey-9.1
chosen=(check:: clusters:: fencing:: inspecting:: interop:: kinds:: permission permits:: sets:: shared:: unstored_scripts::)
for argument in "$@"; do
    case $argument in
        --servers) servers=$(tests/servers.sh --list) && chosen=() ;;
        --long) long=yes ;;
        -h | --help) usage && exit 0 ;;
        *) printf 'unknown option: %s\n\n' "$argument" >&2 && usage >&2 && exit 2 ;;
    esac
done

redis_server=${REDIS_SERVER:-redis-server}
redis_pid=
redis_port=
scratch=$(mktemp -d)

clean_up() {
    if [[ -n $redis_pid ]]; then
        kill "$redis_pid" 2>/dev/null || true
        wait "$redis_pid" 2>/dev/null || true
    fi
    rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fail() {
    printf '\nFAILED: %s\n' "$*" >&2
    exit 1
}

# step <heading> <command..>: prints the heading, runs the command, and prints the time that it took.
step() {
    local heading=$1 started=$SECONDS
    shift
    printf '\n== %s\n' "$heading"
    "$@" </dev/null || fail "$heading: $*"
    printf -- '-- %s s\n' "$((SECONDS - started))"
}

has() { command -v "$1" >/dev/null 2>&1; }

# --- What must be installed ---------------------------------------------------------------------------------------

# Prints the Debian package of each missing program. A binary that the caller names is not checked.
missing_packages() {
    [[ -n ${REDIS_SERVER:-} ]] || has redis-server || echo redis-server
    [[ -n ${REDIS_CLI:-} ]] || has redis-cli || echo redis-tools
    has openssl || echo openssl
    has sqlite3 || echo sqlite3
    # Needed to step the clocks of servers. The package contains a program of the same name.
    [[ $(uname -s) != Linux || -n ${LIBFAKETIME:-} ]] || has faketime || echo faketime
    # rustc links with cc.
    has cc || echo gcc libc6-dev
}

as_root() {
    if [[ $(id -u) -eq 0 ]]; then
        "$@"
    elif has sudo; then
        sudo "$@"
    else
        fail "not root and no sudo; run as root: $*"
    fi
}

install_hint() {
    # shellcheck disable=SC2086 # one word per package
    echo "Missing (by Debian's names):" $1
    echo 'Install redis-server, redis-cli, openssl, sqlite3 and on Linux libfaketime, then run this again. For instance:'
    echo '  macOS    brew install redis openssl sqlite'
    echo '  Fedora   dnf install redis openssl sqlite libfaketime'
    echo '  Arch     pacman -S redis openssl sqlite libfaketime'
    echo '  Alpine   apk add redis openssl sqlite libfaketime'
}

install_missing() {
    local packages
    packages=$(missing_packages)
    if [[ -n $packages ]] && ! has apt-get; then
        install_hint "$packages" >&2
        return 1
    elif [[ -n $packages ]]; then
        as_root apt-get update -q
        # shellcheck disable=SC2086 # one word per package
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $packages
        packages=$(missing_packages)
        [[ -z $packages ]] || fail "still missing after the installation: $packages"
    fi
    "$redis_server" --version
}

check_toolchain() {
    # Default folder of rustup. Shells that are older than the installation, or that read no profile, do not have it in PATH.
    has cargo || PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin
    has cargo || fail 'no cargo; install Rust from https://rustup.rs'
    cargo --version
    cargo fmt --version || fail 'no rustfmt; run: rustup component add rustfmt'
    cargo clippy --version || fail 'no clippy; run: rustup component add clippy'
}

# Prints which tests are left out because an optional program is missing.
optional_programs() {
    rust-analyzer --version 2>/dev/null || echo 'left out: the tests of the attribute in the editor need rust-analyzer'
    if has promtool; then
        promtool --version 2>&1 | sed -n 1p
    else
        echo 'left out: the check of docs/alerts.yml by Prometheus needs promtool'
    fi
}

# --- Other servers ------------------------------------------------------------------------------------------------

# Runs the tests `chosen` with another server, or all if none is named. Tests that need a missing feature of its binary are skipped, and the script prints them.
tests_on() {
    local name=$1 server left_out=()
    if [[ $(uname -sm) != 'Linux x86_64' ]]; then
        echo "left out: tests/servers.sh has no binaries for $(uname -sm)"
        return 0
    fi
    server=$(tests/servers.sh "$name") || return 1
    "$server" --version
    if ! has_tls "$server"; then
        echo 'left out: the tests of TLS, which this binary was built without'
        left_out=(--skip tls::)
    fi
    REDIS_SERVER=$server cargo test --workspace --all-features --test redis -- "${left_out[@]}" "${chosen[@]}"
}

# Finds out whether the server binary supports TLS. The server exits in both cases: with TLS, it complains about a missing certificate.
has_tls() {
    "$1" --port 0 --tls-port 1 2>&1 </dev/null | grep -q 'tls-cert-file'
}

# --- Examples -----------------------------------------------------------------------------------------------------

# Starts a server on a free port. Sets `redis_pid` and `redis_port`.
start_redis() {
    local log=$scratch/redis.log
    for _ in {1..10}; do
        # Lies below the range of ephemeral ports.
        redis_port=$((10000 + RANDOM % 20000))
        "$redis_server" --bind 127.0.0.1 --port "$redis_port" --dir "$scratch" --save '' --appendonly no \
            --daemonize no --logfile '' >"$log" 2>&1 </dev/null &
        redis_pid=$!
        # Waits for the server's own log line: another process on the same port would answer a PING as well.
        while kill -0 "$redis_pid" 2>/dev/null; do
            if grep -q 'Ready to accept connections' "$log"; then return 0; fi
            sleep 0.05
        done
        wait "$redis_pid" || true
        redis_pid=
    done
    cat "$log" >&2
    return 1
}

quickstart=(cargo run -q -p redlock-examples --bin quickstart)

quickstart_on_redis() {
    REDLOCK_NODES="redis://127.0.0.1:$redis_port" "${quickstart[@]}"
}

# --- The guide ----------------------------------------------------------------------------------------------------

# Checks that rustdoc finds every example of the guide. Examples on a page that no module includes would never run.
guide_examples() {
    local written found
    # shellcheck disable=SC2016 # an awk program
    written=$(awk '/^```/ { if (!open && ($0 == "```" || $0 == "```no_run" || $0 == "```test_harness")) n++; open = !open } END { print n }' \
        redlock-runtime/docs/guide/*.md redlock-runtime/docs/guide/*/*.md)
    # Uses the whole workspace, which is built already. A single crate has other features of its dependencies, and would rebuild them all.
    found=$(cargo test -q --workspace --all-features --doc guide:: -- --list | grep -c ': test$')
    echo "$found of $written examples"
    [[ $found -eq $written ]]
}

# --- Packaging ----------------------------------------------------------------------------------------------------

# Packs the crates and checks the packages: the library builds, and each package has its pages for readers.
# Cargo's own verification is not enough. It unpacks a crate once for each path and version, and never looks again:
# a later run would check the runtime against the macros of an earlier run.
package() {
    local minor packed=$scratch/packed crate file
    minor=$(cargo --version | sed -E 's/^cargo 1\.([0-9]+).*/\1/')
    if [[ $minor -lt 90 ]]; then
        echo 'left out: packaging several crates at once needs cargo 1.90'
        return 0
    fi
    # Packs all crates at once: one depends on another at its own version, which no registry may have yet.
    cargo package --quiet --allow-dirty --no-verify --target-dir "$packed" -p redlock-macros -p redlock-runtime -p redlock-cli
    for crate in redlock-macros redlock-runtime redlock-cli; do
        mkdir "$packed/$crate"
        # -m sets new dates. Cargo packs files with a date of 2006, which a build takes for unchanged.
        tar -xzmf "$packed"/package/$crate-[0-9]*.crate -C "$packed/$crate" --strip-components 1
        for file in README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE; do
            [[ -f $packed/$crate/$file ]] || fail "the package of $crate has no $file"
        done
    done
    cp Cargo.lock "$packed"
    printf '[workspace]\nresolver = "3"\nmembers = ["redlock-macros", "redlock-runtime"]\n' >"$packed/Cargo.toml"
    cargo add --quiet --offline --manifest-path "$packed/redlock-runtime/Cargo.toml" --path "$packed/redlock-macros"
    cargo check --quiet --offline --manifest-path "$packed/Cargo.toml" --target-dir target
}

# ------------------------------------------------------------------------------------------------------------------

deny_warnings=(-- -D warnings)

step 'Servers and tools' install_missing
step 'Toolchain' check_toolchain
step 'Optional programs' optional_programs
step 'Formatting' cargo fmt --all --check
# --locked is needed only once: this run ends if a manifest does not fit the committed Cargo.lock.
step 'Clippy' cargo clippy --locked --workspace --all-targets --all-features "${deny_warnings[@]}"
step 'Clippy without default features' \
    cargo clippy -p redlock-runtime --no-default-features "${deny_warnings[@]}"
step 'Documentation' env RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --all-features
# Most tests spend their time waiting for servers, so more tests than cores run at once.
export RUST_TEST_THREADS="${RUST_TEST_THREADS:-8}"
step 'Tests' cargo test --workspace --all-features --no-fail-fast
for server in $servers; do
    step "Tests on $server" tests_on "$server"
done
step 'Examples of the guide' guide_examples
step 'Example: quickstart in memory' env -u REDLOCK_NODES "${quickstart[@]}"
step 'A server for the examples' start_redis
step 'Example: quickstart on Redis' quickstart_on_redis
step 'Packages' package
if [[ -n $long ]]; then
    step 'Large searches of the models' env REDLOCK_MODEL_ALL=1 cargo test --workspace --all-features --test fencing --test lock --test sets --test restarts
    step 'Models with three tokens' cargo run --release -q -p redlock-model -- long
fi

printf '\nAll checks passed in %s s.\n' "$SECONDS"
