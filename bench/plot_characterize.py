#!/usr/bin/env python3
"""Draws what products move beside what they have to: Figures 3, 5, 6 and 7 of Kurt et al., each where the file has what
it shows. Needs matplotlib.

usage: bench/plot_characterize.py RESULTS.json OUT [--no-times]
  RESULTS  characterize.json of bench/run_characterize.sh (bytes of a simulated cache), or of measured_bytes.py with
           --bounds, of one operation or several files of it put together (bytes by the GPU's counters; times where
           --into had them)
  OUT      OUT-bounds.svg     Figure 5: upper bound and bytes moved, over the lower bound
           OUT-orders.svg     Figure 6: bytes moved with rows and columns in other orders, over the lower bound
           OUT-intensity.svg  Figure 3: speed, and below it operations for each byte moved
           OUT-roofline.svg   Figure 7: speed, and what the bandwidth allows for the bytes moved, stacked; of bands and
                              permuted ones where there are any
  --no-times  leaves Figures 3 and 7 out, of times that were taken beside other work
"""
import json
import pathlib
import re
import sys

import pictures
from pictures import plt

ORDERS = {"none": "as it is", "mesh": "Cuthill and McKee's", "degree": "longest rows first", "partition": "Algorithm 4"}
BAND = re.compile(r"(band|permuted)[- ](\d+)")


def cases_of(document):
    """Whatever the file is, a case for each matrix, operation and kernel. Bytes; None: not known."""
    for run in document.get("runs", []):
        bounds, cache = run["bounds"], run["bounds"]["cache"]
        yield {"name": run["name"], "product": run["matrix"]["operation"] != "y = A x", "flops": run["matrix"]["flops"],
               "lower": bounds["lower"]["bytes"], "upper": bounds["upper"]["bytes"],
               "moved": cache["bytes"] if cache else None, "seconds": run["measured"]["seconds"],
               "gbs": run["measured"]["limit_gbs"],
               "orders": {order["order"]: order["cache"]["bytes"] for order in run["orders"] if order["cache"]}}
    benchmarks = document.get("benchmarks", [])
    several = len({one["kernel"] for one in benchmarks}) > 1
    for one in benchmarks:
        yield {"name": f"{one['matrix']}, {one['kernel']}" if several else one["matrix"],
               "product": one["operation"] != "y = A x", "flops": one["flops"], "lower": one["lower_bytes"],
               "upper": one["upper_bytes"], "moved": one["measured_bytes"], "seconds": one.get("seconds"),
               "gbs": one.get("limit_gbs"), "orders": {}}


def operations(cases):
    """What is drawn in panels of their own, with its title; without those that there are none of."""
    for product, title in ((True, "C = A B"), (False, "y = A x")):
        of = sorted((case for case in cases if case["product"] == product), key=lambda case: order_of(case["name"]))
        if of:
            yield title, of


def order_of(name):
    """Bands by width, each before the permuted one."""
    band = BAND.match(name)
    return (int(band[2]), band[1], name) if band else (0, "", name)


def bars(axes, names, groups, colours):
    """A bar for each group and name; None leaves its place empty."""
    width = 0.8 / len(groups)
    for i, ((label, values), colour) in enumerate(zip(groups.items(), colours)):
        at = [n + (i - (len(groups) - 1) / 2) * width for n in range(len(names))]
        axes.bar(at, [value or 0 for value in values], width, label=label, color=colour)
    axes.set_xticks(range(len(names)), names, rotation=35, ha="right", rotation_mode="anchor")
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.grid(axis="x", visible=False)


def ratios(cases, title, groups, colours, out, context, note):
    """Bars over the lower bound, a panel for each operation."""
    panels = list(operations(cases))
    figure, all_axes = plt.subplots(len(panels), 1, figsize=(10, 3.7 * len(panels)), squeeze=False)
    for axes, (operation, of) in zip(all_axes[:, 0], panels):
        values = {label: [f(case) for case in of] for label, f in groups.items()}
        bars(axes, [case["name"] for case in of], values, colours)
        axes.axhline(1, color=pictures.LIMIT, linewidth=1)
        axes.set_title(f"{operation}: {title}")
        axes.set_ylabel("times the lower bound")
        most = max(v for row in values.values() for v in row if v)
        if most > 4:
            axes.set_yscale("log")
            least = min(v for row in values.values() for v in row if v)
            axes.set_ylim(0.8 * min(least, 1), most * 1.2)
            ticks = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)
            pictures.plain_numbers(axes.yaxis, [tick for tick in ticks if 0.8 * min(least, 1) <= tick < most])
        else:
            axes.set_ylim(0, most * 1.1)
    pictures.save(figure, out, context, note, legend=all_axes[0][0])


def over_lower(key):
    return lambda case: case[key] / case["lower"] if case[key] else None


def intensity(cases, out, context, note):
    """Both operations of a matrix beside each other, as a scatter of so many names cannot be read."""
    names = sorted(dict.fromkeys(case["name"] for case in cases), key=order_of)
    figure, all_axes = plt.subplots(2, 1, figsize=(10, 7.4))
    figures = {"GFLOP/s": lambda case: case["flops"] / case["seconds"] * 1e-9,
               "operations for each byte moved": lambda case: case["flops"] / case["moved"]}
    for axes, (label, of) in zip(all_axes, figures.items()):
        groups = {}
        for operation, those in reversed(list(operations(cases))):
            values = {case["name"]: of(case) for case in those}
            groups[operation] = [values.get(name) for name in names]
        bars(axes, names, groups, (pictures.OURS, pictures.THEIRS))
        known = [value for values in groups.values() for value in values if value]
        if max(known) > 20 * min(known):
            axes.set_yscale("log")
            axes.set_ylim(min(known) / 2, max(known) * 1.5)
            pictures.plain_numbers(axes.yaxis, [10.0**power for power in range(-6, 7)
                                                if min(known) / 2 <= 10.0**power <= max(known) * 1.5])
        axes.set_ylabel(label)
    pictures.save(figure, out, context, note, legend=all_axes[0])


def roofline(cases, out, context, note):
    panels = list(operations(cases))
    figure, all_axes = plt.subplots(len(panels), 1, figsize=(10, 3.7 * len(panels)), squeeze=False)
    for axes, (operation, of) in zip(all_axes[:, 0], panels):
        speeds = [case["flops"] / case["seconds"] * 1e-9 for case in of]
        roofs = [case["flops"] / case["moved"] * case["gbs"] for case in of]
        at = range(len(of))
        axes.bar(at, speeds, 0.7, label="measured", color=pictures.OURS)
        # What stays in caches between products that were timed in a row may be faster than memory allows.
        axes.bar(at, [max(roof - speed, 0) for roof, speed in zip(roofs, speeds)], 0.7, bottom=speeds,
                 label="what the bandwidth allows for the bytes moved", color=pictures.STEPS[0])
        for x, speed, roof in zip(at, speeds, roofs):
            axes.annotate(f"{100 * speed / roof:.0f} %", (x, max(speed, roof)), ha="center", xytext=(0, 2),
                          textcoords="offset points", fontsize=7)
        axes.set_xticks(at, [case["name"] for case in of], rotation=35, ha="right", rotation_mode="anchor")
        axes.grid(axis="x", visible=False)
        axes.set_title(operation)
        axes.set_ylabel("GFLOP/s")
    pictures.save(figure, out, context, note, legend=all_axes[0][0])


def main(source, out, *words):
    if words not in ((), ("--no-times",)):
        sys.exit(__doc__)
    document = json.loads(pathlib.Path(source).read_text())
    cases = list(cases_of(document))
    simulated = "runs" in document or any("simulated" in one["measured_by"] for one in document["benchmarks"])
    by = "bytes moved of a simulated cache, rows one after the other" if simulated else "bytes by the GPU's counters"
    context = document["context"]
    context.setdefault("devices", [f"host:0 host of {context.get('num_cpus', '?')} cores"])
    moved = "simulated cache" if simulated else "measured"
    ordered = [case for case in cases if len(case["orders"]) > 1]
    groups = {"upper bound": over_lower("upper"), moved: over_lower("moved")}
    if ordered:
        # What a cache of that size moves in some order is known to suffice, too.
        groups["least known to suffice"] = lambda case: min(
            [case["upper"], *(b for b in (case["moved"], *case["orders"].values()) if b)]) / case["lower"]
    ratios(cases, "bounds and bytes moved", groups, (pictures.STEPS[0], pictures.OURS, pictures.THEIRS),
           f"{out}-bounds.svg", context, by)
    if ordered:
        # The name is bound to each function, not to the last one.
        groups = {label: lambda case, order=order: case["orders"][order] / case["lower"] if order in case["orders"]
                  else None for order, label in ORDERS.items()}
        ratios(ordered, "bytes moved in other orders", groups,
               (pictures.QUIET, pictures.COLOURS[2], pictures.THEIRS, pictures.OURS), f"{out}-orders.svg", context, by)
    timed = [case for case in cases if case["seconds"] and case["moved"] and not words]
    if timed:
        intensity(timed, f"{out}-intensity.svg", context, by)
    limited = [case for case in timed if case["gbs"]]
    if limited:
        roofline([case for case in limited if BAND.match(case["name"])] or limited, f"{out}-roofline.svg", context, by)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
