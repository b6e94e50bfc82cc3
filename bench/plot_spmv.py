#!/usr/bin/env python3
"""Draws what bench/collect.py kept: GFLOP/s of each matrix on each number of GPUs, with the vendor's kernels beside it, and the
speed-up over one GPU. Needs matplotlib.

usage: bench/plot_spmv.py RESULTS.json OUT.svg
"""
import json
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

COLOURS = {"cuSPARSE, 1": "#b0b0b0", 1: "#9ecae1", 2: "#4292c6", 4: "#08519c", 8: "#08306b"}


def main(source, out):
    data = json.loads(pathlib.Path(source).read_text())
    speed = {}  # matrix -> {bar: GFLOP/s}
    for run in data["runs"]:
        name, _ = run["tag"].split("@")
        bars = speed.setdefault(name, {})
        for benchmark in run["benchmarks"]:
            if "cusparse" in benchmark["name"]:
                bars["cuSPARSE, 1"] = max(bars.get("cuSPARSE, 1", 0), benchmark["gflops"])
            else:
                bars[run["devices"]] = benchmark["gflops"]
    names = sorted(speed)
    keys = [k for k in COLOURS if any(k in bars for bars in speed.values())]

    figure, (top, bottom) = plt.subplots(2, 1, figsize=(11, 8), sharex=True)
    width = 0.8 / len(keys)
    for i, key in enumerate(keys):
        at = [n + (i - (len(keys) - 1) / 2) * width for n in range(len(names))]
        label = key if isinstance(key, str) else f"librmsp, {key} GPU{'s' if key > 1 else ''}"
        top.bar(at, [speed[n].get(key, 0) for n in names], width, color=COLOURS[key], label=label)
        if not isinstance(key, str) and key > 1:
            bottom.bar(at, [speed[n].get(key, 0) / speed[n][1] if 1 in speed[n] else 0 for n in names], width,
                       color=COLOURS[key], label=label)
    top.set_yscale("log")
    top.set_ylabel("GFLOP/s")
    top.legend(ncol=len(keys), fontsize=8)
    context = data["context"]
    top.set_title(f"SpMV in double, resident, {context['device']}, {context['date'][:10]}, commit {context['commit']}",
                  fontsize=10)
    for line in (1, 2, 4):
        bottom.axhline(line, color="#d0d0d0", linewidth=0.8, zorder=0)
    bottom.set_ylabel("speed-up over one GPU")
    bottom.set_xticks(range(len(names)), names, rotation=30, ha="right", fontsize=8)
    figure.tight_layout()
    figure.savefig(out)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
