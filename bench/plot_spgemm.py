#!/usr/bin/env python3
"""Draws one JSON file of bench_spgemm: GFLOP/s of the whole product (structure, memory, values) of each matrix, a bar
for each kernel and set of devices; pairs "A * B" as a table of speed-ups of the first kernel over the others' best;
"band N" and "permuted N" as lines over the half-band N, of the whole product and of the values alone. Needs matplotlib.

usage: bench/plot_spgemm.py RESULTS.json OUT.svg
"""
import json
import math
import pathlib
import sys

import matplotlib
import pictures
from pictures import plt


def bars(figures, matrices, keys, out, context):
    """From the bottom up, so that names of matrices can be read; logarithmic, since kernels differ by far more than a
    picture has room for."""
    figure, axes = plt.subplots(figsize=(9, 1.2 + 0.13 * len(matrices) * (len(keys) + 1)))
    width = 0.85 / len(keys)
    least = min(v for of in figures.values() for v in of.values() if v > 0)
    for i, key in enumerate(keys):
        at = [n + (i - (len(keys) - 1) / 2) * width for n in range(len(matrices))]
        axes.barh(at, [figures[m].get(key, 0) for m in matrices], width, left=0, label=key)
    axes.set_yticks(range(len(matrices)), matrices)
    axes.set_ylim(len(matrices) - 0.4, -0.6)
    axes.set_xscale("log")
    axes.set_xlim(left=least / 1.5)
    pictures.plain_numbers(axes.xaxis, [base * 10**e for e in range(-3, 6) for base in (1, 2, 5)
                                        if least / 1.5 <= base * 10**e <= axes.get_xlim()[1]])
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("GFLOP/s, whole product")
    axes.legend(ncol=min(len(keys), 4), loc="lower center", bbox_to_anchor=(0.4, 1))
    pictures.save(figure, out, context)


def pairs(figures, keys, out, context):
    left = sorted({name.split(" * ")[0] for name in figures})
    table = [[ratio(figures.get(f"{a} * {b}", {}), keys) for b in left] for a in left]
    figure, axes = plt.subplots(figsize=(1 + 0.8 * len(left), 1 + 0.7 * len(left)))
    image = axes.imshow(table, cmap="Blues", norm=matplotlib.colors.LogNorm())
    middle = math.sqrt(image.norm.vmin * image.norm.vmax)
    for i, row in enumerate(table):
        for j, value in enumerate(row):
            axes.text(j, i, f"{value:.1f}", ha="center", va="center", fontsize=8,
                      color="white" if value > middle else "black")
    axes.grid(visible=False)
    axes.set_xticks(range(len(left)), left, rotation=35, ha="right")
    axes.set_yticks(range(len(left)), left)
    axes.set_xlabel(f"rows: A, columns: B; {keys[0]} over\nthe best of: {', '.join(keys[1:])}", fontsize=9)
    pictures.save(figure, out, context)


def bands(benchmarks, kinds, out, context):
    figure, axes = plt.subplots(2, len(kinds), figsize=(6 * len(kinds), 8), sharex=True, squeeze=False)
    for row, (field, label) in enumerate((("gflops", "whole product"), ("numeric_gflops", "values alone"))):
        for column, kind in enumerate(kinds):
            lines = {}
            for b in benchmarks:
                of, half = b["matrix"].split()
                if of == kind and field in b:
                    lines.setdefault(b["kernel"], []).append((int(half), b[field]))
            for kernel, points in lines.items():
                axes[row][column].plot(*zip(*sorted(points)), marker="o", markersize=3, label=kernel)
            axes[row][column].set_title(kind)
            axes[row][column].set_ylabel(f"GFLOP/s, {label}")
            axes[row][column].set_ylim(bottom=0)
    for axis in axes[-1]:
        axis.set_xlabel("half-band")
    axes[0][0].legend()
    pictures.save(figure, out, context)


def ratio(speeds, keys):
    others = max((speeds.get(key, 0) for key in keys[1:]), default=0)
    return speeds.get(keys[0], 0) / others if others > 0 else float("nan")


def main(source, out):
    document = json.loads(pathlib.Path(source).read_text())
    benchmarks, context = document["benchmarks"], document["context"]
    sets = {b["devices"] for b in benchmarks}
    figures = {}
    keys = []
    for b in benchmarks:
        key = b["kernel"] if len(sets) == 1 else f'{b["kernel"]} on {b["devices"]}'
        if key not in keys:
            keys.append(key)
        figures.setdefault(b["matrix"], {})[key] = b.get("gflops", 0)
    if all(" * " in name for name in figures):
        pairs(figures, keys, out, context)
    elif all(name.split()[0] in ("band", "permuted") and len(name.split()) == 2 for name in figures):
        bands(benchmarks, list(dict.fromkeys(name.split()[0] for name in figures)), out, context)
    else:
        bars(figures, list(figures), keys, out, context)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
