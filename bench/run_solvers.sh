#!/usr/bin/env bash
# Measures solvers on one GPU, in one run on the same machine:
#   steps.json   time steps with new values by conjugate gradients with a sparse approximate inverse (SPAI-1): kernels
#                of CSR, sell and ehyb, their preparation included (bench_time_steps)
#   cg.json      iterations of cg, cg_single, cg_pipelined and auto (bench_solvers)
#   cupy.json    mspmv solve beside CuPy's cg and a loop over cuSPARSE and cuBLAS, where Python has CuPy
#   amgx.txt     what AMGX prints, a command that solves the same grids by AmgX and gets them as "7 32 27 128": points
#                and size in turn
# Usage: bench/run_solvers.sh
#   BENCH     folder of the programs                         (build/bin)
#   OUT       folder of the results                          (bench/results/tmp)
#   DEVICES   of the steps and the iterations                (0)
#   PYTHON    an interpreter that has CuPy                   (python3)
#   AMGX      that command                                   (none)
#   STEPS     time steps                                     (100)
#   RENEW     the preconditioner is made anew every so many  (10)
#   MATRICES  of the steps, separated by semicolons          (27 points of 100^3, 7 of 160^3)
#   KERNELS   of the steps; the others are compared with the first
#   GRIDS     of iterations, POINTS:SIZE                     (7:32 7:64 7:128 7:256 27:128 27:200)
#   ITERATIONS  so many, fewer than the smallest grid takes to the end of the precision   (100)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bench=${BENCH:-$here/../build/bin}
out=${OUT:-$here/results/tmp}
devices=${DEVICES:-0}
python=${PYTHON:-python3}
IFS=';' read -r -a matrices <<< "${MATRICES:-stencil27 100 100 100;stencil7 160 160 160}"
read -r -a grids <<< "${GRIDS:-7:32 7:64 7:128 7:256 27:128 27:200}"
kernels=${KERNELS:-csr-row-vector,cusparse-csr-alg2,sell,ehyb,ehyb-natural}
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
mkdir -p "$out"
"$bench/bench_time_steps" "${matrices[@]}" --devices "$devices" --kernels "$kernels" --steps "${STEPS:-100}" \
    --renew "${RENEW:-10}"     --json "$out/steps.json"
stencils=()
for grid in "${grids[@]}"; do
    n=${grid#*:}
    stencils+=("poisson$grid,generate=stencil${grid%:*} $n $n $n,values=poisson")
done
"$bench/bench_solvers" "${stencils[@]}" --devices "$devices" --methods cg,cg_single,cg_pipelined,auto --values as-is \
    --iterations "${ITERATIONS:-100}" --json "$out/cg.json"
if "$python" -c 'import cupy' 2> /dev/null; then
    "$python" "$here/solvers_cupy.py" "$bench/mspmv" "${grids[@]/#/poisson}" --json "$out/cupy.json"
fi
if [ -n "${AMGX:-}" ]; then
    read -r -a amgx <<< "$AMGX"
    read -r -a sizes <<< "${grids[*]//:/ }"
    "${amgx[@]}" "${sizes[@]}" | tee "$out/amgx.txt"
fi
