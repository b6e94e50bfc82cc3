#!/usr/bin/env python3
"""Draws what bench_msrep kept, one SVG for each figure of the paper that it repeats, with the paper's claim below, and
prints a table of p*-opt and the baseline on each matrix. Needs matplotlib.

usage: bench/plot_msrep.py RESULTS.json OUT_FOLDER
"""
import json
import pathlib
import sys

import pictures
from pictures import plt

VERSIONS = {"baseline": ("baseline", "#b4bcc6"), "pstar": ("p*", pictures.STEPS[1]),
            "pstar-opt": ("p*-opt", pictures.OURS)}
FORMATS = ("csr", "csc", "coo")


def picked(runs, **wanted):
    return [run for run in runs if all(run[key] == value for key, value in wanted.items())]


def merging(run):
    """Seconds from the time at which the last device has its partial result; of older files, of the phase on the device
    where it takes longest, which may have waited for a slower one in it."""
    return run.get("merge_behind_barrier_seconds", run["merge_seconds"])


def grouped(axes, groups, series, value, colours=None):
    """Bars: one group for each of `groups`, in it one for each (key, label) of `series`."""
    width = 0.8 / len(series)
    for i, (key, label) in enumerate(series):
        at = [n + (i - (len(series) - 1) / 2) * width for n in range(len(groups))]
        axes.bar(at, [value(group, key) for group in groups], width, label=label,
                 color=colours[key] if colours else None)
    axes.set_xticks(range(len(groups)), [str(group) for group in groups])
    axes.grid(axis="x", visible=False)


class Figures:
    ONCE = ("cuts, and COO's row pointers, are made once for a matrix; "
            "pointers by the host are seconds of its cores, added up")

    def __init__(self, data, folder):
        self.data = data
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.counts = sorted({run["devices"] for run in data["speed"]})
        self.first = data["matrices"][0]["name"]  # what stands for HV15R

    def save(self, figure, name, title, claim, legend=None, note=""):
        figure.suptitle(title, fontsize=11)
        scale = self.data["context"]["scale"]
        size = "of the paper's size" if scale == 1 else f"of {scale:g} times the paper's size"
        pictures.save(figure, self.folder / f"{name}.svg", self.data["context"],
                      f"Paper: {claim}\nHere: matrices {size}{note and '; '}{note}", legend)
        plt.close(figure)

    def run(self, version, devices, layout="csr", matrix=None):
        runs = picked(self.data["speed"], version=version, devices=devices, matrix=matrix or self.first, format=layout)
        return runs[0]

    def seconds(self, version, devices, matrix=None):
        return self.run(version, devices, matrix=matrix)["seconds"]

    def partition(self, version, devices, layout):
        """What a partition takes: once the cuts, of coordinates with the pass that finds their order, and in each
        product the pointers of each part. Older files do not have that pass, but a loop over it and the cuts alone."""
        run = self.run(version, devices, layout)
        if "setup" in run:
            once = sum(max(run["setup"].get(phase, [0.0])) for phase in ("sort", "row pointers", "partition"))
        elif layout == "coo":
            once = picked(self.data["partition"], version=version, devices=devices, format=layout)[0]["seconds"]
        else:
            once = run["partition_seconds"]
        return once + run["pointers_seconds"]

    def versions(self, name, title, claim, label, value, log=False, note=""):
        """A panel for each format: bars of the three versions over the devices."""
        figure, panels = plt.subplots(1, len(FORMATS), figsize=(11, 4.8))
        for axes, layout in zip(panels, FORMATS):
            grouped(axes, self.counts, [(key, text) for key, (text, _) in VERSIONS.items()],
                    lambda n, version, of=layout: value(version, n, of),
                    {key: colour for key, (_, colour) in VERSIONS.items()})
            if log:
                pictures.plain_logarithm(axes, "y")
            axes.set_title("p" + layout.upper())
            axes.set_xlabel("devices")
        panels[0].set_ylabel(label)
        self.save(figure, name, title, claim, panels[0], note)

    def fig06(self):
        figure, axes = plt.subplots(figsize=(7, 4.5))
        runs = self.data["imbalance"]
        best = picked(runs, low=0, strategy="rows")[0]["gflops"]
        count = runs[0]["devices"]
        for low in sorted({run["low"] for run in runs} - {0}):
            for strategy, style in (("rows", "o-"), ("nonzeros", "s--")):
                points = sorted((run["ratio"], run["gflops"]) for run in picked(runs, low=low, strategy=strategy))
                lines = axes.plot(*zip(*points), style, markersize=4,
                                  label=f"{low} of {count} devices low, equal {strategy}")
                if strategy == "rows":
                    ratios = [ratio for ratio, _ in points]
                    axes.plot(ratios, [best * (count - low + low * ratio) / count for ratio in ratios], ":",
                              color=lines[0].get_color(), label="what the largest part allows")
        axes.axhline(best, color="#b4bcc6", zorder=0, label="all alike")
        axes.set_ylim(bottom=0)
        axes.set_xlabel("nonzeros in the rows of a low device, as a share of a high one's")
        axes.set_ylabel("GFLOP/s, all devices, resident")
        axes.legend(fontsize=7)
        self.save(figure, "fig06-imbalance", "Figure 6: imbalance",
                  "4 of 8 GPUs with a tenth of the others' nonzeros: 559 GFLOP/s remain of 1028 with blocks of rows")

    def fig16(self):
        self.versions("fig16-partition-cost", "Figure 16: cost of partitioning HV15R's stand-in",
                      "p* costs no more than the baseline and falls with the GPUs; "
                      "p*-opt leaves the pointers to the GPUs",
                      "ms: cuts, and pointers of the parts",
                      lambda version, n, of: 1e3 * self.partition(version, n, of), log=True, note=self.ONCE)

    def fig17(self):
        self.versions("fig17-partition-overhead", "Figure 17: overhead of partitioning HV15R's stand-in",
                      "baseline 3.8 to 9 % for CSR and CSC (Summit), 0.5 to 2.3 % (DGX-1), "
                      "72 to 85 % and 38 to 62 % for COO; "
                      "p*-opt below 2 % in most cases", "% of one streamed product",
                      lambda version, n, of: 100 * self.partition(version, n, of) / self.run(version, n, of)["seconds"],
                      note=self.ONCE)

    def fig18(self):
        self.versions("fig18-merge-cost", "Figure 18: cost of merging, HV15R's stand-in",
                      "low for CSR and COO, where rows are copied to their place; "
                      "CSC baseline rises with the GPUs", "ms",
                      lambda version, n, of: 1e3 * merging(self.run(version, n, of)))

    def fig19(self):
        def share(version, n, of):
            run = self.run(version, n, of)
            return 100 * merging(run) / run["seconds"]
        self.versions("fig19-merge-overhead", "Figure 19: overhead of merging, HV15R's stand-in",
                      "p*-opt below 3.8 % for CSR, 9 % for CSC, 17 % for COO", "% of one streamed product", share)

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
        axes.plot(self.counts, [n / self.counts[0] for n in self.counts], "--", color="#b4bcc6", label="ideal",
                  zorder=0)
        axes.set_xticks(self.counts)
        axes.set_xlabel("devices")
        axes.set_ylabel("speed-up")
        axes.legend()

    def fig21(self):
        figure, panels = plt.subplots(1, len(FORMATS), figsize=(11, 4.8))
        for axes, layout in zip(panels, FORMATS):
            base = self.run("baseline", self.counts[0], layout)["seconds"]
            for version, (label, colour) in VERSIONS.items():
                axes.plot(self.counts, [base / self.run(version, n, layout)["seconds"] for n in self.counts], "o-",
                          label=label, color=colour)
            self.ideal(axes)
            axes.set_title("p" + layout.upper())
            axes.set_ylabel("")
        panels[0].set_ylabel("speed-up over the baseline on one device")
        self.save(figure, "fig21-speed-up", "Figure 21: total speed-up, HV15R's stand-in, streamed",
                  "p*-opt 5.5 on 6 GPUs (Summit), 6.2 on 8 (DGX-1); p* falls behind, the baseline is worst")

    def skewed(self):
        """Every matrix, by rows: p*-opt beside the baseline on as many devices, as a Markdown table."""
        counts = self.counts
        print("| matrix | nonzeros | " + " | ".join(f"baseline, {n} | p*-opt | ratio" for n in counts) + " |")
        print("|---|--:|" + "--:|--:|--:|" * len(counts))
        for matrix in self.data["matrices"]:
            cells = [matrix["name"], f"{matrix['nonzeros'] / 1e6:.1f} M"]
            for n in counts:
                baseline, opt = (1e3 * self.seconds(v, n, matrix=matrix["name"]) for v in ("baseline", "pstar-opt"))
                cells += [f"{baseline:.2f} ms", f"{opt:.2f} ms", f"{baseline / opt:.2f}"]
            print("| " + " | ".join(cells) + " |")

    def others(self):
        """Cuts in every call, streamed coordinates, and p*-opt with one key switched, as Markdown tables."""
        calls = self.data.get("partition_in_every_call", [])
        if calls and all("version" in run for run in calls):
            print("\n| cuts in every call, by rows | " + " | ".join(f"{n} devices | of it cuts" for n in self.counts) +
                  " |\n|---|" + "--:|--:|" * len(self.counts))
            for version, (label, _) in VERSIONS.items():
                runs = [picked(calls, version=version, devices=n)[0] for n in self.counts]
                print(f"| {label} | " + " | ".join(f"{1e3 * run['seconds']:.2f} ms | "
                                                   f"{100 * run['cut_seconds'] / run['seconds']:.2f} %"
                                                   for run in runs) + " |")
        for key, head, cells in (("coordinates", "streamed coordinates", ("order", "sent")),
                                 ("switches", "p*-opt with", ("switched",))):
            runs = self.data.get(key, [])
            if runs:
                print(f"\n| {head} | devices | ms | of the links | merge, ms |\n|---|--:|--:|--:|--:|")
            for run in runs:
                print(f"| {', '.join(run[cell] for cell in cells)} | {run['devices']} | {1e3 * run['seconds']:.2f} | "
                      f"{100 * run['share_of_limit']:.0f} % | {1e3 * merging(run):.2f} |")

    def fig22(self):
        figure, axes = plt.subplots(figsize=(8, 4.5))
        for i, matrix in enumerate(self.data["matrices"]):
            name = matrix["name"]
            base = self.seconds("pstar-opt", self.counts[0], matrix=name)
            axes.plot(self.counts, [base / self.seconds("pstar-opt", n, matrix=name) for n in self.counts],
                      "o-" if i < len(pictures.COLOURS) else "s--", label=name)
        self.ideal(axes)
        self.save(figure, "fig22-matrices", "Figures 22 and 23: speed-up of each matrix, p*-opt, streamed",
                  "all matrices scale, the large ones nearly linearly")


def main(source, folder):
    figures = Figures(json.loads(pathlib.Path(source).read_text()), folder)
    for name in sorted(name for name in dir(figures) if name.startswith("fig")):
        getattr(figures, name)()
    figures.skewed()
    figures.others()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
