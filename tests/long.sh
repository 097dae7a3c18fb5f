#!/usr/bin/env bash
# Runs the checks that take longer than a test may, and appends the results to the ledger.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
    cat <<'TEXT'
Usage: tests/long.sh simulation [SCHEDULES] | soak [SECONDS [DEPLOYMENT]] | fuzz [SECONDS] | handshakes

  simulation  run the simulation with new random seeds (default: 10000000 schedules)
  soak        run processes and real servers with injected faults, and a user who forges messages (default: 1800 seconds).
              DEPLOYMENT is 1, 3 (default) or 5 independent nodes, cluster (3 masters, 3 replicas), or sentinels (3 sentinels,
              one master, one replica). The last two also inject network faults: silent, dropped and refused connections, and
              name lookups that are slow or fail (needs Linux and cc). If you run the test without this script, set
              REDLOCK_SOAK_DEPLOYMENT
  fuzz        run each fuzz target for the given time (default: 1800 seconds)
  handshakes  check the two lock-free handshakes in the step orders that loom explores

simulation and soak add a row to tests/ledger.tsv: date, commit, what, first seed, schedules or bodies, seconds,
violations, and a dash.
If there are violations, replace the dash with their cause. fuzz adds rows to fuzz/runs.tsv. All three then update
docs/evidence.md. Ctrl-C ends a run, and its results so far are recorded. A `+` after the commit means uncommitted changes.
Start the script with `nice` if other programs need the CPU.

Environment:
  REDLOCK_LONG_SEED  the first seed, to repeat a run
TEXT
}

commit=$(git rev-parse --short HEAD)
[[ -z $(git status --porcelain -- . ':!tests/ledger.tsv' ':!docs/evidence.md') ]] || commit=$commit+
scratch=$(mktemp -d)
log=$scratch/log
trap 'rm -rf "$scratch"' EXIT

# enter <what> <seed> <amount> <seconds> <violations>
enter() {
    [[ $3 -gt 0 ]] || return 0
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t-\n' "$(date -u +%F)" "$commit" "$@" >>tests/ledger.tsv
    tail -n 1 tests/ledger.tsv
}

write_evidence() {
    UPDATE_EXPECT=1 cargo test -q -p redlock-tests --test pages evidence::evidence_page_matches
}

# copy_tests <name> <cargo options>: builds test programs, and copies one of them, so that a rebuild does not change the running program.
copy_tests() {
    local name=$1 built
    shift
    built=$(cargo test --all-features --no-run --message-format=json "$@" 2>/dev/null |
        sed -n "s/.*\"executable\":\"\([^\"]*\/$name-[^\"]*\)\".*/\1/p" | tail -n 1)
    [[ -x $built ]] || { echo "$name was not built" >&2 && exit 1; }
    cp "$built" "$scratch/$name"
}

# Seeds stay below 2^48: a larger number could not be written to the ledger.
seed=${REDLOCK_LONG_SEED:-$(od -An -N6 -tu8 /dev/urandom | tr -d ' ')}

simulation() {
    local schedules=${1:-10000000} chunk=20000 done=0 violations=0
    # Uses the build options of tests/run.sh, so that an existing build is reused.
    copy_tests redlock_runtime --workspace --lib
    trap 'schedules=0' INT TERM
    SECONDS=0
    while [[ $done -lt $schedules && $violations -eq 0 ]]; do
        if ! (cd redlock-runtime && REDLOCK_SIMULATION_FROM=$((seed + done)) REDLOCK_SIMULATION_SCHEDULES=$chunk \
            "$scratch/redlock_runtime" simulation::the_promises_hold_in_every_schedule --nocapture) >"$log" 2>&1; then
            # The operator has interrupted this chunk. Its progress is unknown, so it is not entered.
            [[ $schedules -ne 0 ]] || break
            violations=1
            chunk=$(sed -n 's/.*REDLOCK_SIMULATION_SEED=\([0-9]*\) .*/\1/p' "$log" | tail -n 1)
            chunk=$((chunk - seed - done + 1))
        fi
        done=$((done + chunk))
    done
    enter simulation "$seed" "$done" "$SECONDS" "$violations"
    [[ $violations -eq 0 ]] || { cat "$log" >&2 && return 1; }
}

soak() {
    local status=0 what bodies violations
    copy_tests redis -p redlock-tests --test redis
    SECONDS=0
    REDLOCK_SOAK_SECONDS=${1:-1800} REDLOCK_SOAK_SEED=$seed REDLOCK_SOAK_DEPLOYMENT=${2:-3} "$scratch/redis" \
        --exact soak::lock_guarantees_hold_under_process_and_server_faults --nocapture >"$log" 2>&1 || status=$?
    grep '^soak ' "$log" || true
    what=$(sed -n 's/^\(soak [^:]*\): .*/\1/p' "$log")
    bodies=$(sed -n 's/^soak .* \([0-9]*\) bodies.*/\1/p' "$log")
    violations=$(sed -n 's/^soak .* \([0-9]*\) violations.*/\1/p' "$log")
    # A failure without a violation is also entered, such as a lock that no waiter can get any longer.
    [[ $status -eq 0 || ${violations:-0} -gt 0 ]] || violations=1
    enter "${what:-soak}" "$seed" "${bodies:-0}" "$SECONDS" "${violations:-1}"
    [[ $status -eq 0 ]] || { tail -n 60 "$log" >&2 && return 1; }
}

case ${1:-} in
    simulation | soak) what=$1 && shift && status=0 && { "$what" "$@" || status=1; } && write_evidence && exit "$status" ;;
    fuzz) status=0 && { fuzz/run.sh "${2:-1800}" || status=1; } && write_evidence && exit "$status" ;;
    handshakes) RUSTFLAGS='--cfg loom' cargo test --manifest-path tests/handshakes/Cargo.toml --release ;;
    -h | --help) usage ;;
    *) usage >&2 && exit 2 ;;
esac
