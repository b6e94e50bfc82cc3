#!/usr/bin/env bash
# Times products of sparse matrices: squares of real and generated matrices against cuSPARSE, A B of all pairs of
# top-left squares, bands and their random permutations with several accumulators and virtual warps of fixed sizes,
# virtual warps that have a row of A each on bands and on matrices whose rows differ, squares on 1, 2, 4, ... GPUs, and
# the parts that each of four GPUs would compute, on one.
# Usage: bench/run_spgemm.sh [FILE...]
#   BENCH      the program                                           (build/bin/bench_spgemm)
#   OUT        folder for one JSON file a suite and the drawings     (bench/results/tmp)
#   MATRICES   a folder of .mtx[.gz|.xz|.zst] files, taken as well
#   SUITES     of squares, pairs, bands, virtual, devices, parts     (all)
#   SECONDS_EACH  start nothing new in a suite after so many seconds (0: no limit)
#   RMSP_BENCH_SIZE  rows of the pairs' squares (45000 of files; 100000) and of the bands (100000) as "PAIRS BANDS"
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bench=${BENCH:-$here/../build/bin/bench_spgemm}
out=${OUT:-$here/results/tmp}
mkdir -p "$out"
files=("$@")
if [ -n "${MATRICES:-}" ]; then
    files+=("$MATRICES"/*.mtx*)
fi
read -r pair_rows band_rows <<< "${RMSP_BENCH_SIZE:-$([ ${#files[@]} -gt 0 ] && echo 45000 || echo 100000) 100000}"
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
    grid=100 large=160 scale=18 accumulators=(spgemm spgemm/{scatter,scatter-{1,2,4,8},hybrid,hash,window})
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
    if [ ${#cases[@]} -eq 0 ]; then
        # Larger than what is kept of them, so that no row is empty for want of columns.
        local n=$((pair_rows * 13 / 10))
        local side
        side=$(awk -v n="$n" 'BEGIN { printf "%d", n ^ (1 / 3) + 1 }')
        for matrix in "unstructured $side $side $side" "stencil27 $side $side $side" \
            "triangles 400 $((n / 400 + 1))" "neighbours $n 2 12" "powerlaw $n 8 2" "thinned $n 500 12" \
            "multidiagonal $n 9" "ragged $side $side $side 2" "gaps $n 6 1"; do
            cases+=("${matrix%% *},generate=$matrix,top_left=$pair_rows")
        done
    fi
    local others=spgemm-openmp/hash
    [ "$gpus" -eq 0 ] || others=$(echo cusparse-spgemm-alg{1,2,3} | tr ' ' ,)
    "$bench" --devices $one --pairs --iterations 3 --kernels "auto,$others" --warmup 1 \
        --seconds "${SECONDS_EACH:-0}" --json "$out/pairs.json" "${cases[@]}"
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
# Figures 8 to 10 of Kurt et al.: the paper's code as a whole, which sorts rows of few products; counts of virtual warps
# in a block, and as many as the row wants; a block for a row; hash tables, as the peers of the paper have them.
virtual() {
    # Files first: these figures of the paper are of them, and SECONDS_EACH may end the rest.
    local cases=()
    for file in "${files[@]}"; do
        local name
        name=$(basename "$file")
        cases+=("${name%%.mtx*},file=$file")
    done
    for half in 7 15 31 63 111; do
        cases+=("band $half,generate=banded $band_rows $half")
    done
    cases+=("unstructured,generate=unstructured 50 50 50" "elastic,generate=elasticity 30 30 30"
        "stencil7,generate=stencil7 80 80 80" "neighbours,generate=neighbours $band_rows 2 12"
        "powerlaw,generate=powerlaw $band_rows 8 2" "ragged,generate=ragged 40 40 40 4" "rmat,generate=rmat 15 8"
        "hubs,generate=hubs $band_rows 4 20 20")
    local kernels
    if [ "$gpus" -gt 0 ]; then
        kernels=$(echo auto spgemm/{hybrid,virtual{,-1,-2,-4,-8},scatter,hash} cusparse-spgemm-alg{1,2,3} | tr ' ' ,)
    else
        kernels=auto,spgemm-openmp/hash
    fi
    "$bench" --devices $one --kernels "$kernels" --iterations 3 --warmup 1 --seconds "${SECONDS_EACH:-0}" \
        --json "$out/virtual.json" "${cases[@]}"
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
for suite in ${SUITES:-squares pairs bands virtual devices parts}; do
    "$suite" || failed=1
done
if python3 -c 'import matplotlib' 2> /dev/null; then
    for json in "$out"/{squares,pairs,bands,virtual,devices,parts}.json; do
        [ ! -f "$json" ] || python3 "$here/plot_spgemm.py" "$json" "${json%.json}.svg"
    done
    if [ "$gpus" -gt 0 ] && [ -f "$out/virtual.json" ]; then
        python3 "$here/plot_virtual.py" "$out/virtual.json" "$out/virtual-groups.svg"
    fi
fi
exit $failed
