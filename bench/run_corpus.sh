#!/usr/bin/env bash
# Measures the matrices of corpus.toml on one GPU (host devices where there is none), whatever is not in OUT yet: SpMV,
# double and float, with caches flushed, in a row on the device and by the wall clock, `auto` and every other kernel
# against every format and algorithm of cuSPARSE; then A A (A A^T), whole and values alone, against its ways. Everything
# is verified. A run that was ended goes on where it was. Then report.md, losers first, and profile.svg of all there is.
# Usage: bench/run_corpus.sh [--seconds N] [--half fit|judge] [--family NAME]... [--least N] [--most N] [--names FILE]
#   --seconds           begin no matrix after this time, both steps together    (0: no limit)
#   --half, --family    these alone
#   --least, --most     matrices of so many nonzeros at least and at most       (all)
#   --names             those that the file names, a line each, in its order
#   BENCH               folder of bench_spmv and bench_spgemm                   (build/bin)
#   OUT                 folder of spmv.jsonl, spgemm.jsonl, report.md, profile.svg  (bench/results/tmp)
#   MATRICES            folder of the files that the corpus names
#   KERNELS             of y = A x, with commas: Figure 9 of the paper on Ginkgo's portability, which
#                       bench/plot_dots.py draws, wants native COO and CSC in
#                       auto,csr-row-vector,csr-nnz-split,coo-atomic,csc-atomic,cusparse-csr-alg1,cusparse-csr-alg2,
#                       cusparse-coo-alg1. Lines that are there count as done: into an OUT of its own  (all)
#   RMSP_CORPUS_STEPS   spmv, spgemm                                            (spmv spgemm)
#   RMSP_CORPUS_DEVICE  device set                                              (0; host:1 without a GPU)
#   RMSP_CORPUS_AGAINST kernels to compare with begin so                        (cusparse; csr-openmp without a GPU)
#   RMSP_CORPUS_PRODUCTS  most products of A A                                  (2000000000; a tenth without a GPU)
source "$(dirname "$0")/corpus_options.sh"
bench=${BENCH:-$here/../build/bin}
if command -v nvidia-smi > /dev/null && nvidia-smi -L 2> /dev/null | grep -q '^GPU'; then
    device=${RMSP_CORPUS_DEVICE:-0}
    against=${RMSP_CORPUS_AGAINST:-cusparse}
    products=${RMSP_CORPUS_PRODUCTS:-2000000000}
else
    device=${RMSP_CORPUS_DEVICE:-host:1}
    against=${RMSP_CORPUS_AGAINST:-csr-openmp}
    products=${RMSP_CORPUS_PRODUCTS:-200000000}
fi
if [ -n "${MATRICES:-}" ]; then
    selection+=(--files "$MATRICES")
fi
choose_matrices

begin=$SECONDS
failed=0
# step NAME PROGRAM OPTION...: with the time that is left.
step() {
    local name=$1 program=$2
    shift 2
    local left=0
    if [ "$seconds" -gt 0 ]; then
        left=$((seconds - (SECONDS - begin)))
        [ "$left" -gt 0 ] || return 0
    fi
    "$bench/$program" "$@" --devices "$device" --seconds "$left" --lines "$out/$name.jsonl" "${matrices[@]}" ||
        failed=1
}
for name in ${RMSP_CORPUS_STEPS:-spmv spgemm}; do
    case $name in
        spmv)
            step spmv bench_spmv --precision double,float --cache cold,warm --kernels "${KERNELS:-all}" --queued \
                --preparations 3 --iterations 20 --warmup 5 --set kernel.expected_applies=1000
            ;;
        spgemm)
            step spgemm bench_spgemm --kernels all --iterations 5 --warmup 1 --most-products "$products"
            ;;
        *)
            echo "run_corpus.sh: unknown step $name" >&2
            exit 2
            ;;
    esac
done
drawn=()
if python3 -c 'import matplotlib' 2> /dev/null; then
    drawn=(--svg "$out/profile.svg")
fi
write_report --against "$against" "${drawn[@]}"
exit $failed
