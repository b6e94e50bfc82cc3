#!/usr/bin/env bash
# Strong scaling on 1, 2, 4, 8 GPUs of this machine, as many as there are (or host devices, where there is none), beside
# what the model predicts for each of these numbers; keeps one JSON file and draws it. Nothing has to be set for eight
# GPUs. Needs 40 GB of host memory at full size. Usage: bench/run_scaling.sh [OPTION...], as bench_scaling has them
#   PROGRAM  the benchmark program          (build/bin/bench_scaling)
#   OUT      where JSON and SVG files go    (bench/results/tmp)
#   SCALE    nonzeros as a share of the full size (1; 0.005 without a GPU)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=${PROGRAM:-$here/../build/bin/bench_scaling}
out=${OUT:-$here/results/tmp}
mkdir -p "$out"
scale=0.005
if command -v nvidia-smi > /dev/null && nvidia-smi -L 2> /dev/null | grep -q '^GPU'; then
    scale=1
fi
"$program" --configs "$here/../configs" --machine "$here/../machines/dgx-h200.toml" --scale "${SCALE:-$scale}" \
    --json "$out/scaling.json" "$@"
python3 "$here/plot_scaling.py" "$out/scaling.json" "$out/scaling.svg"
