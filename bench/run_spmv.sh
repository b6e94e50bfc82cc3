#!/usr/bin/env bash
# Multiplies generated and real matrices on 1, 2, 4, ... GPUs of this machine (or host devices, where there is none) and keeps one
# JSON file for each run. Usage: bench/run_spmv.sh [MATRIX_FILE...]
#   MSPMV               the driver                                      (build/bin/mspmv)
#   OUT                 where the JSON files go                         (bench/results/tmp)
#   MATRICES            more matrix files, separated by spaces
#   RMSP_BENCH_GRID     points on each side of the 27-point stencil   (246: 400 M nonzeros; 80 without a GPU)
#   RMSP_BENCH_SCALE    R-MAT scale, edge factor 16                    (22; 16 without a GPU)
#   RMSP_BENCH_DEVICES  device sets to run, separated by spaces        (every power of two of the GPUs; host:1 host:2)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mspmv=${MSPMV:-$here/../build/bin/mspmv}
out=${OUT:-$here/results/tmp}
read -r -a more <<< "${MATRICES:-}"
set -- "$@" "${more[@]}"
mkdir -p "$out"
config=$(mktemp --suffix=.toml)
trap 'rm -f "$config"' EXIT
printf '[matrix]\ngenerate = "stencil27 2 2 2"\n[run]\niterations = 100\nwarmup = 10\n' > "$config"

gpus=0
if command -v nvidia-smi > /dev/null; then
    gpus=$(nvidia-smi -L 2> /dev/null | grep -c '^GPU' || true)
fi
if [ "$gpus" -gt 0 ]; then
    grid=${RMSP_BENCH_GRID:-246}
    scale=${RMSP_BENCH_SCALE:-22}
    sets=()
    for ((n = 1; n <= gpus; n *= 2)); do
        sets+=("$(seq -s, 0 $((n - 1)))")
    done
else
    grid=${RMSP_BENCH_GRID:-80}
    scale=${RMSP_BENCH_SCALE:-16}
    sets=(host:1 host:2)
fi
if [ -n "${RMSP_BENCH_DEVICES:-}" ]; then
    read -r -a sets <<< "$RMSP_BENCH_DEVICES"
fi

failed=0
# one NAME DEVICES [OPTION...]: the report goes to the terminal's log, the figures to NAME@DEVICES.json
one() {
    local name=$1 devices=$2
    shift 2
    local tag="$name@${devices//[,:]/-}"
    if ! "$mspmv" run "$config" --devices "$devices" --json "$out/$tag.json" "$@" > "$out/$tag.txt" 2> "$out/$tag.log"; then
        echo "FAILED $tag: $(tail -n 1 "$out/$tag.log")"
        failed=$((failed + 1))
        return
    fi
    python3 "$here/summary.py" "$out/$tag.json"
}

for devices in "${sets[@]}"; do
    compare=false
    case $devices in *,* | host:*) ;; *) compare=true ;; esac
    for vectors in replicated rows host; do
        one "stencil27-$grid-$vectors" "$devices" --set matrix.generate="stencil27 $grid $grid $grid" \
            --set run.vectors=$vectors --set run.compare_vendor=$compare
        one "rmat-$scale-$vectors" "$devices" --set matrix.generate="rmat $scale 16" \
            --set run.vectors=$vectors --set run.compare_vendor=$compare
    done
    one "stencil27-$grid-streamed" "$devices" --set matrix.generate="stencil27 $grid $grid $grid" \
        --set run.mode=streamed --set run.iterations=50
    one "rmat-$scale-streamed" "$devices" --set matrix.generate="rmat $scale 16" \
        --set run.mode=streamed --set run.iterations=50
    for file in "$@"; do
        name=$(basename "$file")
        one "${name%%.mtx*}" "$devices" --matrix "$file" --set run.compare_vendor=$compare
    done
done
exit $((failed > 0))
