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
source "$(dirname "$0")/corpus_options.sh"
bench=${BENCH:-$here/../build-host/bin}
choose_matrices --least 1000 --most 3000000
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
write_report --against mkl
exit $failed
