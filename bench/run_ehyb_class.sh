#!/usr/bin/env bash
# The matrices that explicit caching HYB (kernel ehyb) is for: meshes of tetrahedra with 1, 3 and 4 unknowns a node,
# numbered as a sweep meets the nodes, and in random order, beside what `auto` takes and both of cuSPARSE's CSR
# algorithms, in double and single precision with caches flushed; then the steps of its preparation. A case takes some
# ten seconds at a million rows, so that a run can be done in slices: cases after each other, each with its own OUT.
# Usage: bench/run_ehyb_class.sh [CASE...]   of 1-sweep 1-random 3-sweep 3-random 4-sweep 4-random   (all)
#   BENCH    bench_spmv                                          (build/bin/bench_spmv)
#   OUT      folder of ehyb-class.json, ehyb-class.md, preparation.txt, preparation.json, drawings  (bench/results/tmp)
#            the paper's tables are the end of ehyb-class.md; bench/plot_ehyb.py makes them of several slices, too
#   ROWS     about how many                                      (1000000; 20000 without a GPU)
#   KERNELS  what is measured; ehyb-metis takes minutes          (as below)
#   PRECISION  double,float                                      (double,float)
#   SECONDS_EACH  begin no measurement of a step after this time (300)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bench=${BENCH:-$here/../build/bin/bench_spmv}
out=${OUT:-$here/results/tmp}
mkdir -p "$out"
if command -v nvidia-smi > /dev/null && nvidia-smi -L 2> /dev/null | grep -q '^GPU'; then
    device=0
    rows=${ROWS:-1000000}
    kernels=auto,ehyb,ehyb-ghosts,ehyb-natural,sell,sell-reordered,cusparse-csr-alg1,cusparse-csr-alg2
else
    device=host:1
    rows=${ROWS:-20000}
    kernels=auto,ehyb,ehyb-ghosts,ehyb-natural
fi
kernels=${KERNELS:-$kernels}
[ $# -gt 0 ] || set -- 1-sweep 1-random 3-sweep 3-random 4-sweep 4-random
matrices=()
for case in "$@"; do
    unknowns=${case%%-*}
    # About 1.27 vertices a cell.
    side=$(awk -v rows="$rows" -v unknowns="$unknowns" \
        'BEGIN { printf "%d", (rows / unknowns / 1.27) ^ (1 / 3) + 0.5 }')
    matrix="tetrahedra-$case,generate=unstructured $side $side $side,kron=$unknowns,values=random"
    case $case in
        [1-9]-sweep) ;;
        [1-9]-random)
            matrix+=",scatter=1"
            ;;
        *)
            echo "run_ehyb_class.sh: unknown case $case: UNKNOWNS-sweep or UNKNOWNS-random" >&2
            exit 2
            ;;
    esac
    matrices+=("$matrix")
done

failed=0
"$bench" --devices "$device" --precision "${PRECISION:-double,float}" --cache cold --kernels "$kernels" \
    --iterations 20 --warmup 5 --preparations 3 --set kernel.expected_applies=10000 --seconds "${SECONDS_EACH:-300}" \
    --json "$out/ehyb-class.json" "${matrices[@]}" || failed=1
python3 "$here/plot_spmv.py" "$out/ehyb-class.json" "$out/ehyb-class" > "$out/ehyb-class.md" 2> /dev/null ||
    python3 "$here/plot_spmv.py" "$out/ehyb-class.json" > "$out/ehyb-class.md"
cat "$out/ehyb-class.md"

# Each step waits for the device here, which costs some microseconds. Lines of both streams in their order.
stdbuf -oL "$bench" --devices "$device" --cache cold --kernels ehyb,ehyb-ghosts \
    --iterations 2 --warmup 1 --preparations 3 --set output.log_level=debug \
    --set kernel.expected_applies=10000 --seconds "${SECONDS_EACH:-300}" \
    "${matrices[@]}" > "$out/preparation.txt" 2>&1 || failed=1
python3 - "$out/preparation.txt" "$out/preparation.json" << 'PYTHON'
import json
import re
import statistics
import sys

steps = {}
matrix = None
for line in open(sys.argv[1]):
    if found := re.match(r"(tetrahedra-\S+): \d+ x", line):
        matrix = found[1]
    elif "is made ready:" in line:
        which = re.search(r"(ehyb\S*) is made ready", line)[1]
        for step, ms in re.findall(r"([A-Za-z]+) ([0-9.]+) ms", line.split("ready:")[1]):
            steps.setdefault(matrix, {}).setdefault(which, {}).setdefault(step, []).append(float(ms))
medians = {m: {k: {s: statistics.median(ms) for s, ms in of.items()} for k, of in kernels.items()}
           for m, kernels in steps.items()}
json.dump({"unit": "ms", "times": steps, "medians": medians}, open(sys.argv[2], "w"), indent=1)
for matrix, kernels in medians.items():
    for kernel, of in kernels.items():
        print(f"{matrix}, {kernel}: " + ", ".join(f"{step} {ms:.2f} ms" for step, ms in of.items()) +
              f"; together {sum(of.values()):.1f} ms")
PYTHON
python3 "$here/plot_ehyb.py" "$out/ehyb-class" "$out/ehyb-class.json" --preparation "$out/preparation.json" |
    tee -a "$out/ehyb-class.md"
exit $failed
