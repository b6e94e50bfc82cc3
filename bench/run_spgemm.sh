#!/usr/bin/env bash
# Times products of sparse matrices: squares of real and generated matrices against cuSPARSE, A B of all pairs of
# top-left squares, bands and their random permutations with several accumulators and virtual warps of fixed sizes,
# squares on 1, 2, 4, ... GPUs, and the parts that each of four GPUs would compute, on one.
# Usage: bench/run_spgemm.sh [FILE...]
#   BENCH      the program                                           (build/bin/bench_spgemm)
#   OUT        folder for one JSON file a suite and the drawings     (bench/results/tmp)
#   MATRICES   a folder of .mtx[.gz|.xz|.zst] files, taken as well
#   SUITES     of squares, pairs, bands, devices, parts              (all)
#   SECONDS_EACH  start nothing new in a suite after so many seconds (0: no limit)
#   RMSP_BENCH_SIZE  rows of the pairs' squares (45000) and of the bands (100000) as "PAIRS BANDS"
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bench=${BENCH:-$here/../build/bin/bench_spgemm}
out=${OUT:-$here/results/tmp}
read -r pair_rows band_rows <<< "${RMSP_BENCH_SIZE:-45000 100000}"
mkdir -p "$out"
files=("$@")
if [ -n "${MATRICES:-}" ]; then
    files+=("$MATRICES"/*.mtx*)
fi
gpus=0
if command -v nvidia-smi > /dev/null; then
    gpus=$(nvidia-smi -L 2> /dev/null | grep -c '^GPU' || true)
fi
if [ "$gpus" -gt 0 ]; then
    one=0
    sets=()
    for ((n = 1; n <= gpus; n *= 2)); do
        sets+=(--devices "$(seq -s, 0 $((n - 1)))")
    done
    grid=100 large=160 scale=18 accumulators=(spgemm spgemm/{scatter,scatter-{1,2,4,8},hash,window})
else
    one=host:1
    sets=(--devices host:1 --devices host:2)
    grid=40 large=40 scale=12 accumulators=(spgemm-openmp spgemm-openmp/hash spgemm-openmp/window)
fi

# A A is possible for square matrices alone; the others are reported as such and do not stop the rest.
squares() {
    "$bench" --devices $one --kernels all --json "$out/squares.json" --seconds "${SECONDS_EACH:-0}" \
        "stencil27 $grid $grid $grid" "${files[@]}" "banded 100000 111" "banded 400000 15" "rmat $scale 8"
}
pairs() {
    local cases=()
    for file in "${files[@]}"; do
        local name
        name=$(basename "$file")
        cases+=("${name%%.mtx*},file=$file,top_left=$pair_rows")
    done
    "$bench" --devices $one --pairs --iterations 3 \
        --kernels auto,$([ "$gpus" -gt 0 ] && echo cusparse-spgemm-alg2 || echo spgemm-openmp/hash) \
        --warmup 1 --seconds "${SECONDS_EACH:-0}" --json "$out/pairs.json" "${cases[@]}"
}
bands() {
    local cases=()
    for half in 15 31 47 63 79 95 111; do
        cases+=("band $half,generate=banded $band_rows $half"
            "permuted $half,generate=banded $band_rows $half,permute=1")
    done
    "$bench" --devices $one --kernels "$(IFS=,; echo "${accumulators[*]}")" --iterations 3 --warmup 1 \
        --seconds "${SECONDS_EACH:-0}" --json "$out/bands.json" "${cases[@]}"
}
devices() {
    "$bench" "${sets[@]}" --iterations 5 --seconds "${SECONDS_EACH:-0}" --json "$out/devices.json" \
        "stencil27 $large $large $large" "banded 400000 15" "rmat $scale 8"
}
parts() {
    "$bench" --devices $one --parts 4 --iterations 5 --seconds "${SECONDS_EACH:-0}" --json "$out/parts.json" \
        "stencil27 $large $large $large" "banded 400000 15" "rmat $scale 8"
}

failed=0
for suite in ${SUITES:-squares pairs bands devices parts}; do
    if [ "$suite" = pairs ] && [ ${#files[@]} -eq 0 ]; then
        continue
    fi
    "$suite" || failed=1
done
if python3 -c 'import matplotlib' 2> /dev/null; then
    for json in "$out"/{squares,pairs,bands,devices,parts}.json; do
        [ ! -f "$json" ] || python3 "$here/plot_spgemm.py" "$json" "${json%.json}.svg"
    done
fi
exit $failed
