#!/usr/bin/env bash
# Repeats the experiments of the paper on 1, 2, 4, ... GPUs of this machine (or host devices, where there is none),
# keeps their figures in one JSON file and draws them.
# Usage: bench/run_msrep.sh [MATRIX_FILE...]
#   PROGRAM  the benchmark program          (build/bin/bench_msrep)
#   OUT      where JSON and SVG files go    (bench/results/tmp)
#   SCALE    size of the matrices, as a share of the paper's    (1; 0.01 without a GPU)
#   SECONDS_EACH  timed seconds of each measurement             (0.3)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=${PROGRAM:-$here/../build/bin/bench_msrep}
out=${OUT:-$here/results/tmp}
mkdir -p "$out"
"$program" --configs "$here/../configs" --json "$out/msrep.json" ${SCALE:+--scale "$SCALE"} \
    --seconds "${SECONDS_EACH:-0.3}" "$@"
python3 "$here/plot_msrep.py" "$out/msrep.json" "$out"
