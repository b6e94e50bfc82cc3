#!/usr/bin/env bash
# Measures host devices beside Intel MKL on the matrices of corpus.toml, whatever is not in OUT yet: y = A x in double
# and float, then A A (A A^T), in turns in one process, verified. A run that was ended goes on where it was. Then
# report.md, losers first, of all there is. bench_host_mkl is built where CMake finds MKL (RMSP_MKL); with wheels:
#   pip download --no-deps mkl mkl-include intel-openmp, unpack their data/ into FOLDER, -DCMAKE_PREFIX_PATH=FOLDER
# Usage: bench/run_host_mkl.sh [--seconds N] [--half fit|judge] [--family NAME]... [--least N] [--most N]
#   --seconds          begin no matrix after this time, both steps together     (0: no limit)
#   --half, --family   these alone
#   --least, --most    matrices of so many nonzeros at least and at most        (1000 and 3000000)
#   BENCH              folder of bench_host_mkl                                  (build-host/bin)
#   OUT                folder of spmv.jsonl, spgemm.jsonl, report.md             (bench/results/tmp)
#   THREADS            of the host device, and of MKL                            (2)
#   RMSP_CORPUS_STEPS  spmv, spgemm                                              (spmv spgemm)
#   MKL_THREADING_LAYER, MKL_ENABLE_INSTRUCTIONS  as MKL reads them: its own threads (INTEL) and all instructions
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bench=${BENCH:-$here/../build-host/bin}
out=${OUT:-$here/results/tmp}
seconds=0
bounds=(--least 1000 --most 3000000)
selection=()
while [ $# -gt 0 ]; do
    case $1 in
        --seconds)
            seconds=${2:?--seconds wants a number}
            ;;
        --half | --family | --least | --most)
            selection+=("$1" "${2:?$1 wants a value}")
            ;;
        *)
            echo "run_host_mkl.sh: unknown option $1" >&2
            exit 2
            ;;
    esac
    shift 2
done
mkdir -p "$out"
list=$(python3 "$here/corpus.py" arguments "${bounds[@]}" "${selection[@]}")
if [ -z "$list" ]; then
    echo "run_host_mkl.sh: the corpus has no such matrices" >&2
    exit 2
fi
mapfile -t matrices <<< "$list"
# Threads that wait for more work by spinning take the cores from the other side: not for longer than the pauses.
export KMP_BLOCKTIME=${KMP_BLOCKTIME:-1}
export MKL_THREADING_LAYER=${MKL_THREADING_LAYER:-INTEL}
export RMSP_CACHE_DIR=off

begin=$SECONDS
failed=0
for name in ${RMSP_CORPUS_STEPS:-spmv spgemm}; do
    left=0
    if [ "$seconds" -gt 0 ]; then
        left=$((seconds - (SECONDS - begin)))
        [ "$left" -gt 0 ] || break
    fi
    precisions=double,float
    if [ "$name" = spgemm ]; then
        precisions=double
    fi
    "$bench/bench_host_mkl" --product "$name" --precision "$precisions" --threads "${THREADS:-2}" \
        --most-products 100000000 --seconds "$left" --lines "$out/$name.jsonl" "${matrices[@]}" || failed=1
done
found=()
for file in "$out"/spmv.jsonl "$out"/spgemm.jsonl; do
    if [ -s "$file" ]; then
        found+=("$file")
    fi
done
if [ ${#found[@]} -gt 0 ]; then
    python3 "$here/corpus.py" report "${found[@]}" --against mkl > "$out/report.md"
    sed -n '1,/^## The choice/p' "$out/report.md"
fi
exit $failed
