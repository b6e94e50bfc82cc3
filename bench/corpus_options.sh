# shellcheck shell=bash
# Sourced by the scripts that measure the matrices of corpus.toml, with their arguments.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
script=$(basename "$0")
out=${OUT:-$here/results/tmp}
seconds=0
selection=()
while [ $# -gt 0 ]; do
    case $1 in
        --seconds)
            seconds=${2:?--seconds wants a number}
            ;;
        --half | --family | --least | --most | --names)
            selection+=("$1" "${2:?$1 wants a value}")
            ;;
        *)
            echo "$script: unknown option $1" >&2
            exit 2
            ;;
    esac
    shift 2
done
mkdir -p "$out"

# choose_matrices OPTION...: the array `matrices`, of what options and arguments leave of the corpus.
choose_matrices() {
    local list
    list=$(python3 "$here/corpus.py" arguments "$@" "${selection[@]}")
    if [ -z "$list" ]; then
        echo "$script: the corpus has no such matrices" >&2
        exit 2
    fi
    mapfile -t matrices <<< "$list"
}

# write_report OPTION...: report.md of all there is, whose summary is shown.
write_report() {
    local file found=()
    for file in "$out"/spmv.jsonl "$out"/spgemm.jsonl; do
        if [ -s "$file" ]; then
            found+=("$file")
        fi
    done
    if [ ${#found[@]} -gt 0 ]; then
        python3 "$here/corpus.py" report "${found[@]}" "$@" > "$out/report.md"
        sed -n '1,/^## The choice/p' "$out/report.md"
    fi
}
