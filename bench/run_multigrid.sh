#!/usr/bin/env bash
# Measures algebraic multigrid, `amg` and `sa-amg`, on Poisson's equation (7 and 27 points), anisotropic and jumping
# coefficients, elasticity with rigid motions, one component of Oseen's equations and the Laplacian of a mesh's graph:
# levels, complexities, bytes a row, set-up by phase, solves, and 20 time steps with new values. Beside it, on the same
# matrices, hypre's BoomerAMG where bench_multigrid_hypre was built, and pyamg where Python has it.
# Usage: bench/run_multigrid.sh [CASE...]        (poisson7:64 poisson27:40 anisotropic:48 jumps:48 elasticity:24
#                                                 oseen:48 graph:40)
#   BENCH       folder of the programs                              (build/bin)
#   OUT         folder of multigrid.json, hypre.json, pyamg.json    (bench/results/tmp)
#   DEVICES     sets of devices, taken in turn                      (auto)
#   OPTIONS     further options of bench_multigrid, "--steps 0 --set solver.amg_smoother=polynomial"
#   PEERS       of hypre, pyamg                                     (hypre pyamg)
#   PYTHON      an interpreter that has pyamg                       (python3)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bench=${BENCH:-$here/../build/bin}
out=${OUT:-$here/results/tmp}
peers=${PEERS-hypre pyamg}
python=${PYTHON:-python3}
read -r -a devices <<< "${DEVICES:-auto}"
read -r -a options <<< "${OPTIONS:-}"
cases=("$@")
if [ ${#cases[@]} -eq 0 ]; then
    cases=(poisson7:64 poisson27:40 anisotropic:48 jumps:48 elasticity:24 oseen:48 graph:40)
fi
# Threads of OpenMP that wait by spinning take the cores of host devices, which do the work between.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
mkdir -p "$out"
matrices=$(mktemp -d)
trap 'rm -rf "$matrices"' EXIT
if [[ " $peers " == *" pyamg "* ]] && "$python" -c 'import pyamg' 2> /dev/null; then
    options+=(--matrices "$matrices")
fi
"$bench/bench_multigrid" "${cases[@]}" --devices "${devices[@]}" "${options[@]}" --json "$out/multigrid.json"
if [[ " $peers " == *" hypre "* ]] && [ -x "$bench/bench_multigrid_hypre" ]; then
    "$bench/bench_multigrid_hypre" "${cases[@]}" --json "$out/hypre.json"
fi
if [ -n "$(ls "$matrices")" ]; then
    "$python" "$here/multigrid_peers.py" "$matrices" "$out/multigrid.json" --json "$out/pyamg.json"
fi
