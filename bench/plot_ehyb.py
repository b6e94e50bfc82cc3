#!/usr/bin/env python3
"""The tables and figures of the paper on explicit caching HYB, of what bench/run_ehyb_class.sh measured, in one run or
in slices: by how much kernels `ehyb` are faster than both CSR algorithms of cuSPARSE, as Markdown (Tables 1 and 2);
where matplotlib is there, also a dot for each matrix and kernel (Figures 2 to 5) and what preparation takes, step by
step (Figure 6). bench/plot_spmv.py has each matrix of one run beside every other kernel.

usage: bench/plot_ehyb.py OUT RESULTS.json... [--preparation PREPARATION.json...]
  OUT          OUT-double.svg, OUT-float.svg, OUT-preparation.svg
  RESULTS      ehyb-class.json of one run or of its slices
  PREPARATION  preparation.json likewise
"""
import argparse
import json
import pathlib
import statistics
import sys

OURS = ("ehyb", "ehyb-ghosts", "ehyb-metis")
THEIRS = ("cusparse-csr-alg1", "cusparse-csr-alg2")
# The paper's two parts of preparation, by the steps that librmsp logs.
PARTITIONING = ("distances", "bisection", "smoothing", "METIS", "parts")


def speeds_of(documents):
    """precision -> matrix -> kernel -> GFLOP/s, caches flushed, one device; matrices from the fewest nonzeros on."""
    kept = [b for document in documents for b in document["benchmarks"]
            if not b.get("error_occurred") and b["cache"] == "cold" and b["device_count"] == 1]
    speeds = {}
    for b in sorted(kept, key=lambda b: b["nonzeros"]):
        of = speeds.setdefault(b["precision"], {}).setdefault(b["matrix"], {})
        of[b["kernel"]] = b["gflops"]
    return speeds


def print_tables(speeds):
    for precision, matrices in speeds.items():
        rows = []
        for ours in OURS:
            for theirs in THEIRS:
                ratios = [of[ours] / of[theirs] for of in matrices.values() if ours in of and theirs in of]
                if ratios:
                    faster = sum(ratio > 1 for ratio in ratios)
                    rows.append(f"| {ours} | {theirs} | {faster} of {len(ratios)} | {max(ratios):.2f} | "
                                f"{min(ratios):.2f} | {statistics.mean(ratios):.2f} |")
        if rows:
            print(f"\n{precision}, L2 flushed\n\n| kernel | over | faster on | most | least | mean |\n"
                  "|---|---|--:|--:|--:|--:|\n" + "\n".join(rows))


def draw_speeds(matrices, precision, out, context):
    import pictures
    from pictures import plt

    kernels = list(dict.fromkeys(kernel for of in matrices.values() for kernel in of))
    figure, axes = plt.subplots(figsize=(9, 4.6))
    markers = "os^Dv<>ph*"
    for i, kernel in enumerate(kernels):
        points = [(n, of[kernel]) for n, of in enumerate(matrices.values()) if kernel in of]
        axes.plot(*zip(*points), markers[i % len(markers)], markersize=6, label=kernel,
                  markerfacecolor="none" if kernel in THEIRS else None)
    axes.set_xticks(range(len(matrices)), matrices, rotation=25, ha="right", rotation_mode="anchor")
    axes.set_xlim(-0.5, len(matrices) - 0.5)
    axes.set_ylim(bottom=0)
    axes.set_ylabel(f"GFLOP/s, {precision}")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    pictures.save(figure, f"{out}-{precision}.svg", context, "L2 flushed before each product; fewest nonzeros first")


def preparation_of(documents, speeds, benchmarks):
    """(matrix, kernel) -> step -> products of that kernel in double."""
    seconds = {(b["matrix"], b["kernel"]): b["real_time"] * 1e-6 for b in benchmarks
               if not b.get("error_occurred") and b["precision"] == "double" and b["cache"] == "cold"}
    found = {}
    for document in documents:
        for matrix, kernels in document["medians"].items():
            for kernel, steps in kernels.items():
                if (matrix, kernel) in seconds:
                    found[matrix, kernel] = {step: ms * 1e-3 / seconds[matrix, kernel] for step, ms in steps.items()}
    order = list(speeds.get("double", {}))
    return dict(sorted(found.items(), key=lambda one: (order.index(one[0][0]), one[0][1])))


def print_preparation(preparation):
    print("\nPreparation, in products\n\n| matrix | kernel | partitioning | layout and values | together |\n"
          "|---|---|--:|--:|--:|")
    for (matrix, kernel), steps in preparation.items():
        partitioning = sum(products for step, products in steps.items() if step in PARTITIONING)
        print(f"| {matrix} | {kernel} | {partitioning:.0f} | {sum(steps.values()) - partitioning:.0f} | "
              f"{sum(steps.values()):.0f} |")


def draw_preparation(preparation, out, context):
    import pictures
    from pictures import plt

    names = [f"{matrix}, {kernel}" for matrix, kernel in preparation]
    steps = list(dict.fromkeys(step for of in preparation.values() for step in of))
    figure, axes = plt.subplots(figsize=(9, 1.6 + 0.28 * len(names)))
    left = [0.0] * len(names)
    # Blue ones are of the partitioning.
    blues = iter(reversed(pictures.STEPS))
    others = iter((pictures.THEIRS, pictures.COLOURS[2], *pictures.COLOURS[3:]))
    for step in steps:
        values = [of.get(step, 0) for of in preparation.values()]
        axes.barh(range(len(names)), values, 0.75, left=left, label=step,
                  color=next(blues if step in PARTITIONING else others))
        left = [a + b for a, b in zip(left, values)]
    for at, total in enumerate(left):
        axes.annotate(f"{total:.0f}", (total, at), xytext=(3, 0), textcoords="offset points", va="center", fontsize=8)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(0, max(left) * 1.08)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("products of the kernel, double")
    pictures.save(figure, f"{out}-preparation.svg", context,
                  "each step by itself; blue: partitioning. The paper: 500 to 2,000 products", legend=axes, columns=5)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("results", nargs="+")
    parser.add_argument("--preparation", nargs="+", default=[])
    options = parser.parse_args()
    results, preparations = ([json.loads(pathlib.Path(path).read_text()) for path in paths]
                             for paths in (options.results, options.preparation))
    speeds = speeds_of(results)
    if not speeds:
        sys.exit("no measurements with flushed caches on one device")
    print_tables(speeds)
    preparation = preparation_of(preparations, speeds, [b for document in results for b in document["benchmarks"]])
    if preparation:
        print_preparation(preparation)
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        print("\nnothing drawn: this Python has no matplotlib", file=sys.stderr)
        return
    context = results[0]["context"]
    for precision, matrices in speeds.items():
        draw_speeds(matrices, precision, options.out, context)
    if preparation:
        draw_preparation(preparation, options.out, context)


if __name__ == "__main__":
    main()
