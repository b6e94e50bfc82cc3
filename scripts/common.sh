# shellcheck shell=bash
# Sourced by the scripts beside it.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export PATH="$PATH:/usr/local/cuda/bin"
jobs=${JOBS:-$(nproc)}

# configure PRESET [OPTION...]: quiet unless it fails.
configure() {
    local preset=$1 log
    shift
    log=$(mktemp)
    if ! (cd "$root" && cmake --preset "$preset" "$@") >"$log" 2>&1; then
        cat "$log" >&2
        rm -f "$log"
        return 1
    fi
    grep -- '-- librmsp:' "$log" >&2 || true
    rm -f "$log"
}

# build DIRECTORY [TARGET...]
build() {
    local directory=$1
    shift
    (($# == 0)) || set -- --target "$@"
    cmake --build "$root/$directory" -j "$jobs" "$@"
}
