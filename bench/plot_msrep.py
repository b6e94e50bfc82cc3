#!/usr/bin/env python3
"""Draws what bench_msrep kept, one SVG for each figure of the paper that it repeats, with the paper's claim below. Needs matplotlib.

usage: bench/plot_msrep.py RESULTS.json OUT_FOLDER
"""
import json
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "rmsp"  # the same data give the same file
import matplotlib.pyplot as plt  # noqa: E402

VERSIONS = {"baseline": ("baseline", "#b0b0b0"), "pstar": ("p*", "#6baed6"), "pstar-opt": ("p*-opt", "#08519c")}
FORMATS = ("csr", "csc", "coo")


def picked(runs, **wanted):
    return [run for run in runs if all(run[key] == value for key, value in wanted.items())]


def grouped(axes, groups, series, value, colours=None):
    """Bars: one group for each of `groups`, in it one for each (key, label) of `series`."""
    width = 0.8 / len(series)
    for i, (key, label) in enumerate(series):
        at = [n + (i - (len(series) - 1) / 2) * width for n in range(len(groups))]
        axes.bar(at, [value(group, key) for group in groups], width, label=label,
                 color=colours[key] if colours else None)
    axes.set_xticks(range(len(groups)), [str(group) for group in groups])
    axes.legend(fontsize=8)


class Figures:
    def __init__(self, data, folder):
        self.data = data
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        context = data["context"]
        self.where = (f"{len(context['devices'])} x {context['devices'][0].split(' ', 1)[-1]}, {context['date'][:10]}, "
                      f"commit {context['commit']}, matrices of {context['scale']:g} times the paper's size")
        self.counts = sorted({run["devices"] for run in data["speed"]})
        self.first = data["matrices"][0]["name"]  # what stands for HV15R

    def save(self, figure, name, title, claim):
        figure.suptitle(title, fontsize=11)
        figure.text(0.5, 0.005, f"Paper: {claim}\nHere: {self.where}", ha="center", va="bottom", fontsize=7)
        figure.tight_layout(rect=(0, 0.09, 1, 1))
        figure.savefig(self.folder / f"{name}.svg", metadata={"Date": None})
        plt.close(figure)

    def seconds(self, version, devices, key="seconds", matrix=None):
        runs = picked(self.data["speed"], version=version, devices=devices, matrix=matrix or self.first)
        return runs[0][key] if runs else 0

    def partition(self, version, devices, layout):
        return picked(self.data["partition"], version=version, devices=devices, format=layout)[0]["seconds"]

    def fig06(self):
        figure, axes = plt.subplots(figsize=(7, 4.5))
        runs = self.data["imbalance"]
        ratios = sorted({run["ratio"] for run in runs})
        grouped(axes, ratios, [("rows", "equal rows"), ("nonzeros", "equal nonzeros")],
                lambda ratio, strategy: picked(runs, ratio=ratio, strategy=strategy)[0]["gflops"],
                {"rows": "#b0b0b0", "nonzeros": "#08519c"})
        axes.set_xlabel("nonzeros of one half of the rows, as a multiple of the other half's")
        axes.set_ylabel("GFLOP/s, all devices")
        self.save(figure, "fig06-imbalance", "Figure 6: imbalance", "1:10 between halves of 8 GPUs costs about half: 559 of "
                  "1028 remain with blocks of rows")

    def fig16(self):
        figure, panels = plt.subplots(1, 3, figsize=(11, 4.5))
        for axes, layout in zip(panels, FORMATS):
            grouped(axes, self.counts, [(key, label) for key, (label, _) in VERSIONS.items()],
                    lambda n, version, of=layout: 1e3 * self.partition(version, n, of),
                    {key: colour for key, (_, colour) in VERSIONS.items()})
            axes.set_yscale("log")
            axes.set_title(layout.upper(), fontsize=9)
            axes.set_xlabel("devices")
        panels[0].set_ylabel("ms of the host")
        self.save(figure, "fig16-partition-cost", "Figure 16: cost of partitioning HV15R's stand-in",
                  "p* costs no more than the baseline and falls with the GPUs; p*-opt leaves the pointers to the GPUs")

    def fig17(self):
        figure, axes = plt.subplots(figsize=(7, 4.5))
        grouped(axes, self.counts, [(key, label) for key, (label, _) in VERSIONS.items()],
                lambda n, version: 100 * self.partition(version, n, "csr") / self.seconds(version, n),
                {key: colour for key, (_, colour) in VERSIONS.items()})
        axes.set_xlabel("devices")
        axes.set_ylabel("% of one streamed product (CSR)")
        self.save(figure, "fig17-partition-overhead", "Figure 17: overhead of partitioning HV15R's stand-in",
                  "CSR baseline 3.8 to 9 % (Summit), 0.5 to 2.3 % (DGX-1); p*-opt below 2 % in most cases")

    def fig18(self):
        figure, axes = plt.subplots(figsize=(7, 4.5))
        grouped(axes, self.counts, [(key, label) for key, (label, _) in VERSIONS.items()],
                lambda n, version: 1e3 * self.seconds(version, n, "merge_seconds"),
                {key: colour for key, (_, colour) in VERSIONS.items()})
        axes.set_xlabel("devices")
        axes.set_ylabel("ms")
        self.save(figure, "fig18-merge-cost", "Figure 18: cost of merging, HV15R's stand-in",
                  "CSR: y is copied to the host by all GPUs at once, and the host adds the shared rows")

    def fig19(self):
        figure, axes = plt.subplots(figsize=(7, 4.5))
        grouped(axes, self.counts, [(key, label) for key, (label, _) in VERSIONS.items()],
                lambda n, version: 100 * self.seconds(version, n, "merge_seconds") / self.seconds(version, n),
                {key: colour for key, (_, colour) in VERSIONS.items()})
        axes.set_xlabel("devices")
        axes.set_ylabel("% of one streamed product (CSR)")
        self.save(figure, "fig19-merge-overhead", "Figure 19: overhead of merging, HV15R's stand-in",
                  "p*-opt below 3.8 % for CSR")

    def fig20(self):
        figure, axes = plt.subplots(figsize=(7, 4.5))
        runs = self.data["numa"]
        base = picked(runs, bind="auto", devices=self.counts[0])[0]["seconds"]
        for bind, label in (("auto", "threads and memory near their GPU"), ("none", "anywhere")):
            axes.plot(self.counts, [base / picked(runs, bind=bind, devices=n)[0]["seconds"] for n in self.counts], "o-",
                      label=label)
        self.ideal(axes)
        nodes = self.data["context"]["numa_nodes"]
        note = "" if nodes > 1 else " (this machine has one NUMA node: nothing to gain)"
        self.save(figure, "fig20-numa", f"Figure 20: NUMA placement{note}",
                  "without it no scaling beyond 3 GPUs on Summit; no consistent effect on DGX-1")

    def ideal(self, axes):
        axes.plot(self.counts, [n / self.counts[0] for n in self.counts], color="#d0d0d0", label="ideal", zorder=0)
        axes.set_xticks(self.counts)
        axes.set_xlabel("devices")
        axes.set_ylabel("speed-up")
        axes.legend(fontsize=8)

    def fig21(self):
        figure, axes = plt.subplots(figsize=(7, 4.5))
        base = self.seconds("baseline", self.counts[0])
        for version, (label, colour) in VERSIONS.items():
            axes.plot(self.counts, [base / self.seconds(version, n) for n in self.counts], "o-", label=label, color=colour)
        self.ideal(axes)
        axes.set_ylabel("speed-up over the baseline on one device")
        self.save(figure, "fig21-speed-up", "Figure 21: total speed-up, HV15R's stand-in, streamed",
                  "p*-opt 5.5 on 6 GPUs (Summit), 6.2 on 8 (DGX-1); p* falls behind, the baseline is worst")

    def fig22(self):
        figure, axes = plt.subplots(figsize=(8, 4.5))
        for matrix in self.data["matrices"]:
            name = matrix["name"]
            base = self.seconds("pstar-opt", self.counts[0], matrix=name)
            axes.plot(self.counts, [base / self.seconds("pstar-opt", n, matrix=name) for n in self.counts], "o-", label=name)
        self.ideal(axes)
        self.save(figure, "fig22-matrices", "Figures 22 and 23: speed-up of each matrix, p*-opt, streamed",
                  "all matrices scale, the large ones nearly linearly")


def main(source, folder):
    figures = Figures(json.loads(pathlib.Path(source).read_text()), folder)
    for name in sorted(name for name in dir(figures) if name.startswith("fig")):
        getattr(figures, name)()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
