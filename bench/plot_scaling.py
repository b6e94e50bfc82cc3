#!/usr/bin/env python3
"""Draws what bench_scaling kept: the speed of each case over the devices, measured and predicted. Needs matplotlib.

usage: bench/plot_scaling.py RESULTS.json OUT.svg
"""
import json
import pathlib
import sys

import pictures
from pictures import plt

VERSIONS = {"default": "as configured by default", "baseline": "baseline", "pstar": "p*", "pstar-opt": "p*-opt"}


def main(source, out):
    data = json.loads(pathlib.Path(source).read_text())
    runs = data["runs"]
    cases = list(dict.fromkeys(run["case"] for run in runs))
    figure, panels = plt.subplots(1, len(cases), figsize=(5 * len(cases), 4.5), squeeze=False)
    for axes, case in zip(panels[0], cases):
        here = [run for run in runs if run["case"] == case]
        for version, label in VERSIONS.items():
            measured = sorted((run["devices"], run["gflops"]) for run in here
                              if run["version"] == version and "gflops" in run)
            if measured:
                axes.plot(*zip(*measured), "o-", label=label)
        model = sorted((run["devices"], 2e-9 * run["nonzeros"] / run["predicted_seconds"])
                       for run in here if run["version"] == "default" and run["predicted_seconds"] > 0)
        if model:
            axes.plot(*zip(*model), "--", color=pictures.QUIET, label="predicted by the plan")
        axes.set_title(f"{case}: {here[0]['matrix']},\n{here[0]['nonzeros']:,} nonzeros", fontsize=9)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        pictures.plain_numbers(axes.xaxis, sorted({run["devices"] for run in here} | {n for n, _ in model}))
        bounds = axes.get_ylim()
        steps = (base * 10**power for power in range(7) for base in (1, 2, 3, 5))
        pictures.plain_numbers(axes.yaxis, [tick for tick in steps if bounds[0] <= tick <= bounds[1]])
        axes.set_xlabel("devices")
        axes.legend()
    panels[0][0].set_ylabel("GFLOP/s")
    figure.suptitle("Strong scaling: measured, and predicted by the plan", fontsize=10)
    pictures.save(figure, out, data["context"])


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
