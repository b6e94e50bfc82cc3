#!/usr/bin/env python3
"""What adapting virtual warps gains, of the JSON of bench/run_spgemm.sh's suite `virtual`: Figures 9 and 10 of Kurt et
al., matrices of low and of high throughput apart. GFLOP/s of whole products. Prints tables as Markdown; draws them
where OUT is given, which needs matplotlib.

usage: bench/plot_virtual.py RESULTS.json [OUT.svg] [--values] [--cut GFLOPS]
  --values  values alone, for a structure that is known: the scatter vectors by themselves
  --cut     low is where `virtual-1`, one virtual warp a block whatever the rows, does fewer GFLOP/s   (the median)
"""
import argparse
import json
import pathlib
import statistics
import sys

FIXED = "spgemm/virtual-1"
SHOWN = {"hybrid": "spgemm/hybrid", "adaptive": "spgemm/virtual", "one a block": FIXED, "2 a block": "spgemm/virtual-2",
         "4 a block": "spgemm/virtual-4", "8 a block": "spgemm/virtual-8",
         "lanes by row of B": "spgemm/scatter", "hash": "spgemm/hash", "auto": "auto"}


def speeds_of(document, field):
    """matrix -> what is shown -> GFLOP/s, matrices that `virtual-1` is slowest on first."""
    found = {}
    for b in document["benchmarks"]:
        if not b.get("error_occurred") and b.get(field):
            found.setdefault(b["matrix"], {})[b["kernel"]] = b[field]
    speeds = {}
    for matrix, of in sorted(found.items(), key=lambda one: one[1].get(FIXED, 0)):
        if FIXED not in of:
            continue  # its scatter vectors found no room
        speeds[matrix] = {label: of[kernel] for label, kernel in SHOWN.items() if kernel in of}
        vendor = [speed for kernel, speed in of.items() if kernel.startswith("cusparse")]
        if vendor:
            speeds[matrix]["cuSPARSE's best"] = max(vendor)
    return speeds


def said_mean(speeds, what, speed_of):
    """How many times as fast the adaptive choice is, where both were measured."""
    ratios = [of["adaptive"] / speed_of(of) for of in speeds.values() if "adaptive" in of and speed_of(of)]
    return [f"{statistics.geometric_mean(ratios):.2f} times {what}"] if ratios else []


def print_group(title, speeds):
    columns = list(dict.fromkeys(label for of in speeds.values() for label in of))
    print(f"\n{title}\n\n| matrix | {' | '.join(columns)} | adaptive over one a block |\n"
          f"|---|{'--:|' * (len(columns) + 1)}")
    for matrix, of in speeds.items():
        cells = [f"{of[label]:.4g}" if label in of else "-" for label in columns]
        gain = f"{of['adaptive'] / of['one a block']:.2f}" if "adaptive" in of else "-"
        print(f"| {matrix} | {' | '.join(cells)} | {gain} |")
    means = (said_mean(speeds, "one virtual warp a block", lambda of: of["one a block"]) +
             said_mean(speeds, "the best count of each matrix",
                       lambda of: max(speed for label, speed in of.items() if label.endswith("a block"))) +
             said_mean(speeds, "hash tables", lambda of: of.get("hash")) +
             said_mean(speeds, "sorting rows of few products (hybrid)", lambda of: of.get("hybrid")))
    print(f"\nThe adaptive choice, geometric mean: {', '.join(means)}.")


def draw(groups, label, out, context):
    import pictures
    from pictures import plt

    groups = {title: speeds for title, speeds in groups.items() if speeds}
    figure, all_axes = plt.subplots(len(groups), 1, figsize=(10, 3.7 * len(groups)), squeeze=False)
    columns = list(dict.fromkeys(one for speeds in groups.values() for of in speeds.values() for one in of))
    # Scatter vectors in blues, the rest in other colours.
    blues = iter((pictures.STEPS[3], *pictures.STEPS[:3], "#9aa7b8"))
    others = {"lanes by row of B": pictures.COLOURS[3], "auto": pictures.COLOURS[2],
              "cuSPARSE's best": pictures.THEIRS, "hybrid": pictures.COLOURS[4], "hash": pictures.COLOURS[5]}
    colours = {one: others.get(one) or next(blues) for one in columns}
    width = 0.85 / len(columns)
    for axes, (title, speeds) in zip(all_axes[:, 0], groups.items()):
        for i, one in enumerate(columns):
            at = [n + (i - (len(columns) - 1) / 2) * width for n in range(len(speeds))]
            axes.bar(at, [of.get(one, 0) for of in speeds.values()], width, label=one, color=colours[one])
        known = [speed for of in speeds.values() for speed in of.values()]
        axes.set_yscale("log")
        axes.set_ylim(min(known) / 1.5, max(known) * 1.3)
        pictures.plain_numbers(axes.yaxis, [10.0**power for power in range(-4, 6)
                                            if min(known) / 1.5 <= 10.0**power <= max(known) * 1.3])
        axes.set_xticks(range(len(speeds)), speeds, rotation=25, ha="right", rotation_mode="anchor")
        axes.set_xlim(-0.6, len(speeds) - 0.4)
        axes.grid(axis="x", visible=False)
        axes.set_title(title)
        axes.set_ylabel(f"GFLOP/s, {label}")
    pictures.save(figure, out, context,
                  "virtual warps of a block of 128 threads, each with a row of A and a scatter vector",
                  legend=all_axes[0][0], columns=5)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results")
    parser.add_argument("out", nargs="?")
    parser.add_argument("--values", action="store_true")
    parser.add_argument("--cut", type=float)
    options = parser.parse_args()
    document = json.loads(pathlib.Path(options.results).read_text())
    speeds = speeds_of(document, "numeric_gflops" if options.values else "gflops")
    if not speeds:
        sys.exit(f"no product by {FIXED}")
    throughput = [of["one a block"] for of in speeds.values()]
    cut = statistics.median(throughput) if options.cut is None else options.cut
    is_low = {matrix: of["one a block"] < cut for matrix, of in speeds.items()}
    groups = {f"low throughput: below {cut:.4g} GFLOP/s": {m: of for m, of in speeds.items() if is_low[m]},
              f"high throughput: {cut:.4g} GFLOP/s and more": {m: of for m, of in speeds.items() if not is_low[m]}}
    for title, of in groups.items():
        if of:
            print_group(title, of)
    if options.out:
        draw(groups, "values alone" if options.values else "whole product", options.out, document["context"])


if __name__ == "__main__":
    main()
