#!/usr/bin/env bash
# SpMV benchmark of this machine: every kernel and every vendor's format on one GPU, then 1, 2, 4, ... GPUs (host
# devices where there is none). One process, one JSON file; its tables are printed, and drawn where matplotlib is there.
# Usage: bench/run_spmv.sh [MATRIX_FILE...]
#   BENCH               bench_spmv                                      (build/bin/bench_spmv)
#   OUT                 folder of kernels.json, ehyb.json, scaling.json, drawings  (bench/results/tmp)
#   MATRICES            more matrix files, separated by spaces; one called wave.* also makes wave3
#   RMSP_BENCH_STEPS    kernels, scaling, ehyb (the experiment of the paper of kernel ehyb),
#                       values (that can be kept in fewer bytes)        (kernels scaling)
#   RMSP_BENCH_GRID     points on each side of the 27-point stencil of the scaling runs (246; 40 without a GPU)
#   RMSP_BENCH_SCALE    R-MAT scale, edge factor 16                     (22; 14 without a GPU)
#   RMSP_BENCH_DEVICES  device sets of the scaling runs, separated by spaces (powers of two of the GPUs; host:1 host:2)
#   RMSP_BENCH_SECONDS  begin no measurement of a step after this time  (300)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bench=${BENCH:-$here/../build/bin/bench_spmv}
out=${OUT:-$here/results/tmp}
steps=${RMSP_BENCH_STEPS:-kernels scaling}
seconds=${RMSP_BENCH_SECONDS:-300}
read -r -a more <<< "${MATRICES:-}"
set -- "$@" "${more[@]}"
mkdir -p "$out"

gpus=0
if command -v nvidia-smi > /dev/null; then
    gpus=$(nvidia-smi -L 2> /dev/null | grep -c '^GPU' || true)
fi
if [ "$gpus" -gt 0 ]; then
    grid=${RMSP_BENCH_GRID:-246}
    scale=${RMSP_BENCH_SCALE:-22}
    first=0
    meshes=("stencil27-100,generate=stencil27 100 100 100" "stencil7-120,generate=stencil7 120 120 120"
        "stencil27-100-shuffled,generate=stencil27 100 100 100,permute=1"
        "elastic-40,generate=stencil27 40 40 40,kron=3,values=random")
    reorderings=sell-reordered,ehyb,ehyb-natural,cusparse-csr-alg1,cusparse-csr-alg2,cusparse-coo-alg1,cusparse-sell
    reorderings+=,cusparse-bsr
    generated=("stencil27-200,generate=stencil27 200 200 200" "stencil7-256,generate=stencil7 256 256 256")
    sets=()
    for ((n = 1; n <= gpus; n *= 2)); do
        sets+=("$(seq -s, 0 $((n - 1)))")
    done
else
    grid=${RMSP_BENCH_GRID:-40}
    scale=${RMSP_BENCH_SCALE:-14}
    first=host:1
    meshes=("stencil27-20,generate=stencil27 20 20 20" "stencil7-30,generate=stencil7 30 30 30"
        "stencil27-20-shuffled,generate=stencil27 20 20 20,permute=1"
        "elastic-10,generate=stencil27 10 10 10,kron=3,values=random")
    reorderings=ehyb,ehyb-natural,csr-openmp
    generated=("stencil27-40,generate=stencil27 40 40 40" "stencil7-60,generate=stencil7 60 60 60")
    sets=(host:1 host:2)
fi
generated+=("rmat-$scale,generate=rmat $scale 16")
if [ -n "${RMSP_BENCH_DEVICES:-}" ]; then
    read -r -a sets <<< "$RMSP_BENCH_DEVICES"
fi

# Random values everywhere, so that no compression of values decides.
files=()
for file in "$@"; do
    name=$(basename "$file")
    name=${name%%.*}
    files+=("$name,file=$file,values=random")
    if [ "$name" = wave ]; then
        generated+=("wave3,file=$file,plus_identity=true,kron=3,values=random")
    fi
done

failed=0
# step NAME OPTION...
step() {
    local name=$1
    shift
    "$bench" "$@" --seconds "$seconds" --json "$out/$name.json" | tee "$out/$name.txt" || failed=1
    python3 "$here/plot_spmv.py" "$out/$name.json" "$out/$name" > "$out/$name.md" 2> "$out/$name.log" ||
        python3 "$here/plot_spmv.py" "$out/$name.json" > "$out/$name.md"
    cat "$out/$name.md"
}

if [[ " $steps " == *" kernels "* ]]; then
    step kernels --devices "$first" --precision double,float --cache cold,warm --kernels all \
        --set kernel.expected_applies=1000 "${files[@]}" "${generated[@]}"
fi
# What values add that can be kept in fewer bytes, beside random ones: constant coefficients, ones; floats by consent.
if [[ " $steps " == *" values "* ]]; then
    compressible=()
    for matrix in "${generated[@]}"; do
        kind=ones
        [[ $matrix != stencil* ]] || kind=laplace
        compressible+=("$matrix" "${matrix%%,*}-$kind,${matrix#*,},values=$kind")
    done
    step values --devices "$first" --precision double --cache cold,warm --kernels auto \
        --set kernel.expected_applies=1000 \
        "${compressible[@]}"
    step floats --devices "$first" --precision double --cache cold,warm --kernels auto \
        --set kernel.expected_applies=1000 --set kernel.values=float "${generated[@]}"
fi
# Matrices of meshes, as in the paper: files, and generated ones for those that are not at hand. "auto" is what the
# library does.
if [[ " $steps " == *" ehyb "* ]]; then
    step ehyb --devices "$first" --precision double,float --cache cold,warm --kernels "auto,$reorderings" \
        --set kernel.expected_applies=1000 "${files[@]}" "${meshes[@]}"
fi
if [[ " $steps " == *" scaling "* ]]; then
    devices=()
    for set in "${sets[@]}"; do
        devices+=(--devices "$set")
    done
    # So many that parts of unequal time are worth another distribution.
    step scaling "${devices[@]}" --cache warm --case replicated,rows,host,streamed --iterations 50 \
        --set kernel.expected_applies=10000 \
        "stencil27-$grid,generate=stencil27 $grid $grid $grid" "rmat-$scale,generate=rmat $scale 16" "${files[@]}"
fi
exit $failed
