#!/usr/bin/env python3
"""Tables and drawings of what bench_spmv measured. Of one device: each matrix against the best cuSPARSE format, a
performance profile of all kernels (Dolan, More, "Benchmarking optimization software with performance profiles", 2002)
and a roofline; of several device sets: GFLOP/s and the speed-up over one; where kernel ehyb was measured, the
experiment of its paper. Without OUT only the tables are printed; drawing needs matplotlib.

usage: bench/plot_spmv.py RESULTS.json [OUT]     draws OUT-speedup.svg, OUT-profile.svg, OUT-roofline.svg,
                                                 OUT-scaling.svg, OUT-ehyb.svg
"""
import json
import math
import pathlib
import sys


def vendor(kernel):
    return kernel.startswith("cusparse")


def geometric_mean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def cases_of(benchmarks, layout_case="replicated"):
    """(precision, cache) -> matrix -> kernel -> benchmark, of one device and vectors on it."""
    cases = {}
    for b in benchmarks:
        if b["device_count"] == 1 and f"/{layout_case}/" in b["name"]:
            table = cases.setdefault((b["precision"], b["cache"]), {})
            table.setdefault(b["matrix"], {})[b["kernel"]] = b
    return cases


def print_tables(cases):
    for (precision, cache), matrices in sorted(cases.items()):
        kernels = sorted({k for row in matrices.values() for k in row}, key=lambda k: (vendor(k), k))
        print(f"\nSpMV, {precision}, one device, {cache} caches, GFLOP/s")
        print("| matrix | nonzeros | " + " | ".join(kernels) +
              " | best / best cuSPARSE | auto / best cuSPARSE | auto took |")
        print("|---|--:|" + "--:|" * (len(kernels) + 2) + "---|")
        best, automatic = [], []
        for matrix, row in matrices.items():
            ours = max((b["gflops"] for k, b in row.items() if not vendor(k)), default=0)
            theirs = max((b["gflops"] for k, b in row.items() if vendor(k)), default=0)
            ratios = ["", ""]
            if ours and theirs:
                best.append(ours / theirs)
                ratios[0] = f"{best[-1]:.2f}"
            if "auto" in row and theirs:
                automatic.append(row["auto"]["gflops"] / theirs)
                ratios[1] = f"{automatic[-1]:.2f}"
            cells = [f'{row[k]["gflops"]:.0f}' if k in row else "" for k in kernels]
            nonzeros = next(iter(row.values()))["nonzeros"]
            print(f"| {matrix} | {nonzeros / 1e6:.1f} M | " + " | ".join(cells + ratios) +
                  f' | {row["auto"]["chosen"] if "auto" in row else ""} |')
        if best:
            print(f"geometric mean of best / best cuSPARSE {geometric_mean(best):.2f}, least {min(best):.2f}; "
                  f"auto {geometric_mean(automatic):.2f}, least {min(automatic, default=float('nan')):.2f}")


def preparation(benchmark):
    """What making the kernel ready took, in products: the median, or the only time of results that have no more."""
    seconds = benchmark.get("prepare_seconds", max(benchmark["setup_seconds"]["prepare"]))
    return seconds / (benchmark["real_time"] * 1e-6)


def print_preparation(cases):
    """Of the kernel that "auto" took, asked for by its name, where that was measured."""
    for (precision, cache), matrices in sorted(cases.items()):
        rows = {m: row[row["auto"]["chosen"]] for m, row in matrices.items()
                if "auto" in row and "prepare_seconds" in row.get(row["auto"]["chosen"], {})}
        if not rows or cache != "cold":
            continue
        print(f"\nPreparation, {precision}: median of several, in products; first of them")
        print("| matrix | kernel | ms | products | first, ms |")
        print("|---|---|--:|--:|--:|")
        for matrix, b in rows.items():
            print(f'| {matrix} | {b["kernel"]} | {b["prepare_seconds"] * 1e3:.2f} | {preparation(b):.0f} | '
                  f'{b["first_prepare_seconds"] * 1e3:.2f} |')


def print_ehyb(cases):
    """Tables 1 and 2 and figure 6 of Chen, "Explicit caching HYB": speed-up over each other kernel, and preparation."""
    for own in ("ehyb", "ehyb-ghosts"):
        for (precision, cache), matrices in sorted(cases.items()):
            measured = {m: row for m, row in matrices.items() if own in row}
            others = sorted({k for row in measured.values() for k in row if k != own}, key=lambda k: (vendor(k), k))
            if not measured:
                continue
            print(f"\n{own}, {precision}, {cache} caches: GFLOP/s, times the others', preparation in products")
            print(f"| matrix | nonzeros | {own} | " + " | ".join(others) + " | preparation |")
            print("|---|--:|--:|" + "--:|" * (len(others) + 1))
            ratios = {k: {m: row[own]["gflops"] / row[k]["gflops"] for m, row in measured.items() if k in row}
                      for k in others}
            for matrix, row in measured.items():
                cells = [f"{ratios[k][matrix]:.2f}" if matrix in ratios[k] else "" for k in others]
                b = row[own]
                print(f'| {matrix} | {b["nonzeros"] / 1e6:.1f} M | {b["gflops"]:.0f} | ' + " | ".join(cells) +
                      f" | {preparation(b):.0f} |")
            print(f"\n| {own} against | faster on | most | least | average |")
            print("|---|--:|--:|--:|--:|")
            for kernel, found in ratios.items():
                found = list(found.values())
                print(f"| {kernel} | {100 * sum(r > 1 for r in found) / len(found):.0f} % | "
                      f"{max(found):.2f} | {min(found):.2f} | {sum(found) / len(found):.2f} |")


def draw_ehyb(plt, cases, save):
    figure, axes = plt.subplots(2, len(cases), figsize=(6 * len(cases), 7), squeeze=False)
    for (top, bottom), ((precision, cache), matrices) in zip(axes.T, sorted(cases.items())):
        rows = {m: row for m, row in matrices.items() if "ehyb" in row}
        kernels = sorted({k for row in rows.values() for k in row}, key=lambda k: (vendor(k), k))
        width = 0.8 / max(len(kernels), 1)
        for i, kernel in enumerate(kernels):
            top.bar([j + (i - (len(kernels) - 1) / 2) * width for j in range(len(rows))],
                    [row[kernel]["gflops"] if kernel in row else 0 for row in rows.values()], width, label=kernel,
                    color="#08519c" if kernel == "ehyb" else None)
        top.set_ylabel("GFLOP/s")
        top.set_title(f"{precision}, {cache} caches", fontsize=10)
        top.legend(fontsize=6)
        bottom.bar(range(len(rows)), [preparation(row["ehyb"]) for row in rows.values()], color="#08519c")
        bottom.set_yscale("log")
        bottom.set_ylabel("preparation, in products")
        for axis in (top, bottom):
            axis.set_xticks(range(len(rows)), list(rows), rotation=25, ha="right", fontsize=7)
    save(figure, "-ehyb.svg")


def draw_speedup(plt, cases, save):
    figure, axes = plt.subplots(len(cases), 1, figsize=(11, 3.2 * len(cases)), squeeze=False)
    for axis, ((precision, cache), matrices) in zip(axes[:, 0], sorted(cases.items())):
        rows = []
        for matrix, row in matrices.items():
            theirs = max((b["gflops"] for k, b in row.items() if vendor(k)), default=0)
            if theirs:
                ours = max(b["gflops"] for k, b in row.items() if not vendor(k))
                rows.append((matrix, ours / theirs, row["auto"]["gflops"] / theirs if "auto" in row else 0))
        at = range(len(rows))
        axis.bar([i - 0.2 for i in at], [r[1] for r in rows], 0.4, color="#08519c", label="best kernel")
        axis.bar([i + 0.2 for i in at], [r[2] for r in rows], 0.4, color="#9ecae1", label="auto")
        axis.axhline(1, color="#b04040", linewidth=1)
        axis.set_xticks(list(at), [r[0] for r in rows], rotation=25, ha="right", fontsize=8)
        axis.set_ylabel("times the best cuSPARSE")
        axis.set_title(f"{precision}, {cache} caches: geometric mean {geometric_mean(r[1] for r in rows):.2f}, "
                       f"auto {geometric_mean(r[2] for r in rows if r[2]):.2f}", fontsize=10)
        axis.legend(fontsize=8)
    save(figure, "-speedup.svg")


def draw_profile(plt, cases, save):
    figure, axes = plt.subplots(1, len(cases), figsize=(5.5 * len(cases), 4.5), squeeze=False)
    for axis, ((precision, cache), matrices) in zip(axes[0], sorted(cases.items())):
        kernels = sorted({k for row in matrices.values() for k in row}, key=lambda k: (vendor(k), k))
        for kernel in kernels:
            ratios = []
            for row in matrices.values():
                if kernel in row:
                    fastest = min(b["real_time"] for b in row.values())
                    ratios.append(row[kernel]["real_time"] / fastest)
            ratios.sort()
            # A matrix that a kernel refuses counts as never solved.
            x, y = [1.0], [0.0]
            for i, ratio in enumerate(ratios):
                x += [ratio, ratio]
                y += [y[-1], (i + 1) / len(matrices)]
            axis.plot(x + [4.0], y + [y[-1]], label=kernel, linestyle="--" if vendor(kernel) else "-",
                      linewidth=2.2 if kernel == "auto" else 1.2)
        axis.set_xlim(1, 4)
        axis.set_ylim(0, 1.02)
        axis.set_xlabel("time over that of the fastest kernel")
        axis.set_ylabel("share of the matrices")
        axis.set_title(f"{precision}, {cache} caches", fontsize=10)
        axis.legend(fontsize=6, loc="lower right")
    save(figure, "-profile.svg")


def draw_roofline(plt, cases, save):
    figure, axes = plt.subplots(1, len(cases), figsize=(5.5 * len(cases), 4.5), squeeze=False)
    for axis, ((precision, cache), matrices) in zip(axes[0], sorted(cases.items())):
        limit = max(b["limit_gbs"] for row in matrices.values() for b in row.values())
        points = {"auto": [], "best cuSPARSE": []}
        for row in matrices.values():
            theirs = [b for k, b in row.items() if vendor(k)]
            if theirs:
                points["best cuSPARSE"].append(max(theirs, key=lambda b: b["gflops"]))
            if "auto" in row:
                points["auto"].append(row["auto"])
        intensity = {k: [b["gflops"] * 1e9 / b["bytes_per_second"] for b in v] for k, v in points.items()}
        everything = [i for v in intensity.values() for i in v] or [0.1]
        line = [min(everything) * 0.8, max(everything) * 1.25]
        axis.plot(line, [i * limit for i in line], color="#606060", linewidth=1, label=f"{limit:.0f} GB/s")
        for (name, found), marker, colour in zip(points.items(), "os", ("#08519c", "#d08020")):
            axis.scatter(intensity[name], [b["gflops"] for b in found], marker=marker, color=colour, s=22, label=name)
            for x, b in zip(intensity[name], found):
                if name == "auto":
                    axis.annotate(b["matrix"], (x, b["gflops"]), fontsize=5, xytext=(3, -3), textcoords="offset points")
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlabel("flop a byte of least traffic")
        axis.set_ylabel("GFLOP/s")
        axis.set_title(f"{precision}, {cache} caches", fontsize=10)
        axis.legend(fontsize=7)
    save(figure, "-roofline.svg")


def scaling_of(benchmarks):
    """matrix and case -> number of devices -> GFLOP/s of the automatic choice, with warm caches."""
    speed = {}
    for b in benchmarks:
        if b["kernel"] == "auto" and b["cache"] == "warm" and b["precision"] == "double":
            case = b["name"].split("/")[-3]
            speed.setdefault(f'{b["matrix"]}, {case}', {})[b["device_count"]] = b["gflops"]
    return {name: sets for name, sets in speed.items() if len(sets) > 1}


def print_scaling(speed):
    if speed:
        counts = sorted({n for sets in speed.values() for n in sets})
        print("\nGFLOP/s on several devices, double, warm caches (times one device)")
        print("| matrix, case | " + " | ".join(map(str, counts)) + " |")
        print("|---|" + "--:|" * len(counts))
        for name, sets in speed.items():
            cells = [f"{sets[n]:.0f}" + (f" ({sets[n] / sets[1]:.2f})" if 1 in sets and n > 1 else "")
                     if n in sets else "" for n in counts]
            print(f"| {name} | " + " | ".join(cells) + " |")


def draw_scaling(plt, speed, save):
    colours = {1: "#9ecae1", 2: "#4292c6", 4: "#08519c", 8: "#08306b"}
    counts = sorted({n for sets in speed.values() for n in sets})
    names = list(speed)
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(11, 8), sharex=True)
    width = 0.8 / len(counts)
    for i, n in enumerate(counts):
        at = [k + (i - (len(counts) - 1) / 2) * width for k in range(len(names))]
        style = {"color": colours.get(n, "#606060"), "label": f"{n} device{'s' if n > 1 else ''}"}
        top.bar(at, [speed[name].get(n, 0) for name in names], width, **style)
        if n > 1:
            bottom.bar(at, [speed[name].get(n, 0) / speed[name][1] if 1 in speed[name] else 0 for name in names], width,
                       **style)
            bottom.axhline(n, color="#d0d0d0", linewidth=0.8, zorder=0)
    top.set_yscale("log")
    top.set_ylabel("GFLOP/s")
    top.legend(ncol=len(counts), fontsize=8)
    bottom.set_ylabel("speed-up over one device")
    bottom.set_xticks(range(len(names)), names, rotation=30, ha="right", fontsize=8)
    save(figure, "-scaling.svg")


def main(source, out=None):
    document = json.loads(pathlib.Path(source).read_text())
    measured = [b for b in document["benchmarks"] if not b.get("error_occurred")]
    cases = cases_of(measured)
    speed = scaling_of(measured)
    context = document["context"]
    print(f'{context["devices"][0]["names"][0]}, {context["date"][:10]}, commit {context["commit"]}')
    print_tables(cases)
    print_preparation(cases)
    print_ehyb(cases)
    print_scaling(speed)
    wrong = [b["name"] for b in measured if not b["verified"]]
    print(f"\n{len(measured)} measurements, {len(wrong)} wrong {' '.join(wrong)}")
    for b in document["benchmarks"]:
        if b.get("error_occurred"):
            print(f'not measured: {b["name"]}: {b["error_message"]}')
    if out is None:
        return
    import matplotlib.pyplot as plt
    import pictures

    def save(figure, ending):
        pictures.save(figure, out + ending, context)

    compared = {case: matrices for case, matrices in cases.items()
                if any(map(vendor, (k for r in matrices.values() for k in r)))}
    if compared:
        draw_speedup(plt, compared, save)
        draw_profile(plt, compared, save)
        draw_roofline(plt, compared, save)
    published = {case: rows for case, rows in cases.items() if any("ehyb" in row for row in rows.values())}
    if published:
        draw_ehyb(plt, published, save)
    if speed:
        draw_scaling(plt, speed, save)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])
