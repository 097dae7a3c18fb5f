#!/usr/bin/env bash
# Fuzzes every parser of external input, on stable Rust.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

usage() {
    cat <<'TEXT'
Usage: fuzz/run.sh [SECONDS] [TARGET..]

Builds the targets with rustc's own instrumentation and runs each for SECONDS (default: 60), one after another; without
names, all of them. What was found stands in fuzz/found, what reaches new code is kept in fuzz/corpus, and each run adds a
row to fuzz/runs.tsv. Ends with an error when anything was found.

Needs g++, and redis-server for the target `nodes`.

Environment:
  REDIS_SERVER  redis-server binary (default: the one in PATH)
TEXT
}

targets=(urls url_parts answers wakeups detached templates options nodes)
triple=$(rustc -vV | sed -n 's/^host: //p')
seconds=60
case ${1:-} in
    -h | --help) usage && exit 0 ;;
    '' | *[!0-9]*) ;;
    *) seconds=$1 && shift ;;
esac
[[ $# -eq 0 ]] || targets=("$@")

# Cargo applies RUSTFLAGS to build scripts and macros as well, unless a target triple is given.
build() {
    RUSTFLAGS='--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
        -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
        -Cllvm-args=-sanitizer-coverage-trace-compares' \
        cargo build --release --quiet --target "$triple" "${targets[@]/#/--bin=}"
}

server_pid=
scratch=$(mktemp -d)
clean_up() {
    [[ -z $server_pid ]] || kill "$server_pid" 2>/dev/null || true
    rm -rf "$scratch"
}
trap clean_up EXIT

# Starts the server for the target `nodes`. It listens on a Unix socket, so it needs no free port.
start_server() {
    "${REDIS_SERVER:-redis-server}" --port 0 --unixsocket "$scratch/redis.sock" --dir "$scratch" --save '' \
        --appendonly no --daemonize no --logfile "$scratch/redis.log" </dev/null &
    server_pid=$!
    until [[ -S $scratch/redis.sock ]]; do
        kill -0 "$server_pid" || { cat "$scratch/redis.log" >&2 && exit 1; }
        sleep 0.05
    done
    export REDLOCK_FUZZ_SERVER=unix://$scratch/redis.sock
}

# run <target>: one row of runs.tsv: date, commit, target, seconds, runs, covered edges, findings.
run() {
    local target=$1 log=$scratch/$1.log status=0 timeout=20 runs covered started=$SECONDS
    # libFuzzer checks timeouts by a signal, which would interrupt the connections to the server.
    [[ $target != nodes ]] || timeout=0
    mkdir -p "corpus/$target" "found/$target"
    "target/$triple/release/$target" "corpus/$target" "seeds/$target" -artifact_prefix="found/$target/" \
        -max_total_time="$seconds" -timeout="$timeout" -print_final_stats=1 >"$log" 2>&1 || status=$?
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    covered=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$(date -u +%F)" "$commit" "$target" "$((SECONDS - started))" "${runs:-0}" "${covered:-0}" \
        "$([[ $status -eq 0 ]] && echo 0 || echo 1)" >>runs.tsv
    tail -n 1 runs.tsv
    # A failure may depend on all inputs that were run before, so keep the whole log.
    [[ $status -eq 0 ]] || { tail -n 40 "$log" >&2 && mv "$log" "found/$target/" && return 1; }
}

commit=$(git rev-parse --short HEAD)
[[ -z $(git status --porcelain -- .. ':!runs.tsv') ]] || commit=$commit+
[[ -f runs.tsv ]] || printf 'date\tcommit\ttarget\tseconds\truns\tcovered\tfound\n' >runs.tsv
build
[[ " ${targets[*]} " != *' nodes '* ]] || start_server
failed=
for target in "${targets[@]}"; do
    run "$target" || failed=yes
done
[[ -z $failed ]]
