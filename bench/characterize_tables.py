#!/usr/bin/env python3
"""Puts what bench/run_characterize.sh measured into one JSON file, and prints it as Markdown: Table I and Figures 3, 5
and 6 of Kurt et al. Without EACH.json, prints a file that is there.

usage: bench/characterize_tables.py RESULTS.json [EACH.json...]
"""
import json
import pathlib
import sys


def merged(paths):
    runs = []
    context = {}
    for path in sorted(paths):
        run = json.loads(pathlib.Path(path).read_text())
        context = {key: run["context"][key] for key in ("date", "library_version", "commit", "features", "num_cpus")}
        run["name"] = pathlib.Path(path).name.split(".")[0]
        run["context"] = {}
        del run["advice"]
        runs.append(run)
    return {"context": context, "runs": runs}


def ratio(part, run):
    return f"{part['bytes'] / run['bounds']['lower']['bytes']:.2f}" if part else "-"


def bounds_of(run):
    return ratio(run["bounds"]["upper"], run), ratio(run["bounds"]["cache"], run)


def least_known(run):
    """What is known to suffice: the upper bound, or what a simulated cache of the same capacity moves in some order."""
    known = [run["bounds"]["upper"], run["bounds"]["cache"]] + [order["cache"] for order in run["orders"]]
    return min((part for part in known if part), key=lambda part: part["bytes"])


def gflops(run):
    seconds = run["measured"]["seconds"]
    return f"{run['matrix']['flops'] / seconds * 1e-9:.2f}" if seconds else "-"


def intensity(run):
    """Operations for each word of four bytes that the simulated cache moves."""
    cache = run["bounds"]["cache"]
    return f"{4 * run['matrix']['flops'] / cache['bytes']:.3f}" if cache else "-"


def table(title, head, rows):
    print(f"\n{title}\n\n| {' | '.join(head)} |\n|---|{'--:|' * (len(head) - 1)}")
    for row in rows:
        print(f"| {' | '.join(str(cell) for cell in row)} |")


def method(run):
    """How the upper bound was found, in few words."""
    return {"multiplies": "fine", "rows": "coarse"}.get(run["bounds"]["upper"]["method"],
                                                         run["bounds"]["upper"]["method"])


def show(results):
    vectors = {run["name"]: run for run in results["runs"] if run["matrix"]["operation"] == "y = A x"}
    products = {run["name"]: run for run in results["runs"] if run["matrix"]["operation"] != "y = A x"}
    table("Table I: C = A A", ["matrix", "rows", "NZ_A (K)", "NZ_C (K)", "#ops (M)", "OI_UB"],
          [[name, run["matrix"]["rows"], round(run["matrix"]["a_nonzeros"] / 1e3),
            round(run["matrix"]["c_nonzeros"] / 1e3), f"{run['matrix']['flops'] / 1e6:.1f}",
            f"{run['matrix']['flops_per_word']:.3f}"] for name, run in products.items()])
    table("Figure 3: GFLOP/s, and operations for each word moved",
          ["matrix", "SpMV", "A A", "SpMV, a word", "A A, a word"],
          [[name, gflops(run), gflops(products[name]) if name in products else "-", intensity(run),
            intensity(products[name]) if name in products else "-"] for name, run in vectors.items()])
    table("Figure 5: times the lower bound",
          ["matrix", "SpMV, upper", "by rows", "A A, upper", "by rows", "least known", "vertices of A A"],
          [[name, *bounds_of(run)] +
           ([*bounds_of(products[name]), ratio(least_known(products[name]), products[name]), method(products[name])]
            if name in products else ["-", "-", "-", "-"]) for name, run in vectors.items()])
    for title, runs in (("Figure 6: SpMV", vectors), ("Figure 6: A A", products)):
        rows = []
        for name, run in runs.items():
            orders = {order["order"]: order for order in run["orders"]}
            if orders:
                rows.append([name] + [ratio(orders[o]["cache"], run) for o in orders] +
                            [f"{orders[o]['seconds'] * 1e3:.3g}" if orders[o]["seconds"] else "-" for o in orders])
        names = ["none", "mesh", "degree", "partition"]
        table(title + ", times the lower bound by rows, and ms", ["matrix"] + names + [n + ", ms" for n in names], rows)


def main():
    path = pathlib.Path(sys.argv[1])
    if len(sys.argv) > 2:
        path.write_text(json.dumps(merged(sys.argv[2:]), indent=1) + "\n")
    show(json.loads(path.read_text()))


if len(sys.argv) < 2:
    sys.exit(__doc__)
main()
