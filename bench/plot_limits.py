#!/usr/bin/env python3
"""Draws what `mspmv doctor --limits --json` measured: bandwidth over sizes and arithmetic over intensities of each
precision, Figures 6 to 8 of the paper on Ginkgo's portability, a row for each device. Needs matplotlib.

usage: bench/plot_limits.py LIMITS.json OUT.svg
"""
import json
import pathlib
import re
import sys

import pictures
from pictures import plt

PRECISIONS = ("half", "single", "double")
KERNELS = ("copy", "mul", "add", "triad", "dot")


def main(source, out):
    document = json.loads(pathlib.Path(source).read_text())
    devices = document["devices"]
    figure, panels = plt.subplots(len(devices), 4, figsize=(13, 3.3 * len(devices)), squeeze=False)
    for row, device in zip(panels, devices):
        for axes, precision in zip(row, PRECISIONS):
            for kernel in KERNELS:
                points = sorted((p["bytes"] / 2**20, p["gbs"]) for p in device["bandwidth"]
                                if p["kernel"] == kernel and p["precision"] == precision)
                if points:
                    axes.plot(*zip(*points), "o-", markersize=3, label=kernel)
            axes.set_title(f"{device['device']}: {precision}")
            axes.set_xlabel("MiB of each array")
        row[0].set_ylabel("GB/s")
        for i, precision in enumerate(PRECISIONS):
            points = sorted((p["intensity"], p["gflops"]) for p in device["compute"] if p["precision"] == precision)
            if points:
                row[3].plot(*zip(*points), "o-", markersize=3, color=pictures.COLOURS[5 + i], label=precision)
        row[3].set_title(f"{device['device']}: arithmetic")
        row[3].set_xlabel("operations for each byte")
        row[3].set_ylabel("GFLOP/s")
        for axes in row:
            for which in ("x", "y"):
                pictures.plain_logarithm(axes, which)
    panels[0][3].legend()
    commit = re.search(r"commit ([^;)]+)", document["versions"]["librmsp"])
    pictures.save(figure, out, {"devices": [device["device"] for device in devices], "date": document["date"],
                                "commit": commit.group(1) if commit else "unknown"}, legend=panels[0][0], columns=5)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
