#!/usr/bin/env python3
"""A dot for each matrix and kernel: GFLOP/s over nonzeros, beside what the measured bandwidth BW allows a CSR (BW / 6
in double precision: 12 bytes for 2 operations) and a COO matrix (BW / 8): Figure 9 of the paper on Ginkgo's
portability. Says how near the best of each kernel comes. L2 flushed; needs matplotlib.

usage: bench/plot_dots.py OUT.svg LINES... [--precision double|float] [--kernels a,b]
  LINES  of bench_spmv --lines (.xz too), or its JSON
"""
import argparse
import json
import lzma
import statistics
import sys


def read_documents(paths):
    """Each with its context and benchmarks."""
    for path in paths:
        text = (lzma.open(path, "rt") if str(path).endswith(".xz") else open(path, encoding="utf-8")).read()
        try:
            yield json.loads(text)
            continue
        except json.JSONDecodeError:
            pass  # a document a line
        for line in text.splitlines():
            try:
                document = json.loads(line)
            except json.JSONDecodeError:
                continue  # cut off with its program
            if "benchmarks" in document:
                yield document


def draw(dots, bandwidth, bytes_of_value, context, out):
    import pictures
    from pictures import plt

    figure, axes = plt.subplots(figsize=(9, 5))
    for kernel, of in dots.items():
        axes.scatter(*zip(*of), s=10, alpha=0.7, linewidths=0, label=kernel)
    pictures.plain_logarithm(axes, "x")
    axes.set_ylim(bottom=0)
    for b in (4, 8):
        limit = 2 * bandwidth / (bytes_of_value + b)
        axes.axhline(limit, color=pictures.LIMIT, linestyle="--", linewidth=1)
        axes.annotate(f"BW / {(bytes_of_value + b) // 2} = {limit:.0f}", (0, limit), xycoords=("axes fraction", "data"),
                      xytext=(4, 3), textcoords="offset points", fontsize=8)
    axes.set_xlabel("nonzeros")
    axes.set_ylabel("GFLOP/s")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), markerscale=2)
    pictures.save(figure, out, context, f"BW = {bandwidth:.0f} GB/s, measured; caches flushed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("lines", nargs="+")
    parser.add_argument("--precision", choices=("double", "float"), default="double")
    parser.add_argument("--kernels", default="csr-row-vector,csr-nnz-split,coo-atomic,csc-atomic,cusparse-csr-alg1,"
                                             "cusparse-csr-alg2,cusparse-coo-alg1,auto")
    options = parser.parse_args()
    wanted = options.kernels.split(",")
    dots = {kernel: [] for kernel in wanted}
    limits = []
    context = None
    for document in read_documents(options.lines):
        for b in document["benchmarks"]:
            if not b.get("error_occurred") and b["kernel"] in dots and b.get("cache") == "cold" and \
                    b["precision"] == options.precision and b["device_count"] == 1:
                context = context or document["context"]
                dots[b["kernel"]].append((b["nonzeros"], b["gflops"]))
                limits.append(b["limit_gbs"])
    dots = {kernel: of for kernel, of in dots.items() if of}
    if not dots:
        sys.exit("no such measurements, caches flushed, on one device")
    bandwidth = statistics.median(limits)
    bytes_of_value = 8 if options.precision == "double" else 4
    draw(dots, bandwidth, bytes_of_value, context, options.out)
    print(f"{options.precision}, BW = {bandwidth:.0f} GB/s")
    print("| kernel | matrices | most, GFLOP/s | of what CSR is allowed |\n|---|--:|--:|--:|")
    for kernel, of in dots.items():
        most = max(g for _, g in of)
        print(f"| {kernel} | {len(of)} | {most:.0f} | {100 * most * (bytes_of_value + 4) / 2 / bandwidth:.0f} % |")


if __name__ == "__main__":
    main()
