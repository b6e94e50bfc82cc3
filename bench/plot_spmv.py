#!/usr/bin/env python3
"""Tables and drawings of what bench_spmv measured. Of one device: each matrix against the best cuSPARSE format, a
performance profile of all kernels (Dolan, More, "Benchmarking optimization software with performance profiles", 2002)
and a roofline; of several device sets: GFLOP/s and the speed-up over one; where kernel ehyb was measured, the
experiment of its paper. Without OUT only the tables are printed; drawing needs matplotlib.

usage: bench/plot_spmv.py RESULTS.json [OUT]     draws OUT-speedup.svg, OUT-profile.svg, OUT-roofline.svg,
                                                 OUT-scaling.svg, OUT-ehyb.svg
"""
import itertools
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


def slanted(count):
    """Of labels below an axis, which would touch where there are many."""
    return {"rotation": 25, "ha": "right"} if count > 4 else {}


def draw_ehyb(pictures, cases, save):
    figure, axes = pictures.plt.subplots(2, len(cases), figsize=(6 * len(cases), 7), squeeze=False)
    for (top, bottom), ((precision, cache), matrices) in zip(axes.T, sorted(cases.items())):
        rows = {m: row for m, row in matrices.items() if "ehyb" in row}
        kernels = sorted({k for row in rows.values() for k in row}, key=lambda k: (vendor(k), k))
        width = 0.8 / max(len(kernels), 1)
        others = [k for k in kernels if k != "ehyb"]
        colours = {"ehyb": pictures.OURS, **dict(zip(others, itertools.cycle(pictures.COLOURS[1:])))}
        for i, kernel in enumerate(kernels):
            top.bar([j + (i - (len(kernels) - 1) / 2) * width for j in range(len(rows))],
                    [row[kernel]["gflops"] if kernel in row else 0 for row in rows.values()], width, label=kernel,
                    color=colours[kernel])
        top.set_ylabel("GFLOP/s")
        top.set_title(f"{precision}, {cache} caches")
        bottom.bar(range(len(rows)), [preparation(row["ehyb"]) for row in rows.values()], 0.5, color=pictures.OURS)
        pictures.plain_logarithm(bottom, "y")
        bottom.set_ylabel("preparation of ehyb, in products")
        for axis in (top, bottom):
            axis.grid(axis="x", visible=False)
            axis.set_xticks(range(len(rows)), list(rows), **slanted(len(rows)))
    save(figure, "-ehyb.svg", legend=axes[0, 0], columns=4)


def draw_speedup(pictures, cases, save):
    figure, axes = pictures.plt.subplots(len(cases), 1, figsize=(11, 3.2 * len(cases)), squeeze=False)
    for axis, ((precision, cache), matrices) in zip(axes[:, 0], sorted(cases.items())):
        rows = []
        for matrix, row in matrices.items():
            theirs = max((b["gflops"] for k, b in row.items() if vendor(k)), default=0)
            if theirs:
                ours = max(b["gflops"] for k, b in row.items() if not vendor(k))
                rows.append((matrix, ours / theirs, row["auto"]["gflops"] / theirs if "auto" in row else 0))
        at = range(len(rows))
        axis.bar([i - 0.2 for i in at], [r[1] for r in rows], 0.4, color=pictures.OURS, label="best kernel")
        axis.bar([i + 0.2 for i in at], [r[2] for r in rows], 0.4, color=pictures.STEPS[1], label="auto")
        axis.axhline(1, color=pictures.LIMIT, linewidth=1)
        axis.grid(axis="x", visible=False)
        axis.set_xticks(list(at), [r[0] for r in rows], **slanted(len(rows)))
        axis.set_ylabel("times the best cuSPARSE")
        axis.set_title(f"{precision}, {cache} caches: geometric mean {geometric_mean(r[1] for r in rows):.2f}, "
                       f"auto {geometric_mean(r[2] for r in rows if r[2]):.2f}")
    save(figure, "-speedup.svg", legend=axes[0, 0])


def panels_of(pictures, cases, width, height):
    """One for each case, two beside each other."""
    columns = min(2, len(cases))
    lines = -(-len(cases) // columns)
    figure, axes = pictures.plt.subplots(lines, columns, figsize=(width * columns, height * lines), squeeze=False)
    for axis in axes.flat[len(cases):]:
        axis.remove()
    for axis, (precision, cache) in zip(axes.flat, sorted(cases)):
        axis.set_title(f"{precision}, {cache} caches")
    return figure, list(axes.flat)[:len(cases)]


def draw_profile(pictures, cases, save):
    """"auto" and cuSPARSE's formats are told apart; kernels that "auto" chooses from are the ground before which they
    stand."""
    figure, panels = panels_of(pictures, cases, 5.2, 3.8)
    kernels = sorted({k for matrices in cases.values() for row in matrices.values() for k in row},
                     key=lambda k: (k == "auto", vendor(k), k))
    colours = {k: pictures.COLOURS[1 + i % (len(pictures.COLOURS) - 1)] for i, k in enumerate(filter(vendor, kernels))}
    for axis, (_, matrices) in zip(panels, sorted(cases.items())):
        named = False
        for kernel in kernels:
            ratios = sorted(row[kernel]["real_time"] / min(b["real_time"] for b in row.values())
                            for row in matrices.values() if kernel in row)
            # A matrix that a kernel refuses counts as never solved.
            x, y = [1.0], [0.0]
            for i, ratio in enumerate(ratios):
                x += [ratio, ratio]
                y += [y[-1], (i + 1) / len(matrices)]
            x, y = x + [4.0], y + [y[-1]]
            if kernel == "auto":
                axis.plot(x, y, color=pictures.OURS, linewidth=2.4, label="librmsp, auto")
            elif vendor(kernel):
                axis.plot(x, y, color=colours[kernel], linestyle="--", linewidth=1.3, label=kernel)
            elif ratios:
                axis.plot(x, y, color="#c9d1da", linewidth=0.9, zorder=1,
                          label=None if named else "librmsp, each kernel by itself")
                named = True
        axis.set_xscale("log")
        axis.set_xlim(1, 4)
        pictures.plain_numbers(axis.xaxis, [1, 1.2, 1.5, 2, 3, 4])
        axis.set_ylim(0, 1.02)
        axis.set_xlabel("time over that of the fastest kernel")
        axis.set_ylabel("share of the matrices")
    save(figure, "-profile.svg", legend=panels[0])


def draw_roofline(pictures, cases, save):
    """Numbers stand for matrices; a line joins "auto" and cuSPARSE's best on one, whose least traffic is the same."""
    cases = {case: rows for case, rows in cases.items() if case[1] == "cold"} or cases
    figure, panels = panels_of(pictures, cases, 5.6, 5)
    names = list(dict.fromkeys(m for matrices in cases.values() for m in matrices))
    for axis, (_, matrices) in zip(panels, sorted(cases.items())):
        limit = max(b["limit_gbs"] for row in matrices.values() for b in row.values())
        intensities = []
        for matrix, row in matrices.items():
            theirs = max((b for k, b in row.items() if vendor(k)), key=lambda b: b["gflops"], default=None)
            if "auto" not in row or theirs is None:
                continue
            auto = row["auto"]
            # Of the CSR arrays, for both: the least traffic that is asked for, not that of a format.
            intensity = 2 * auto["nonzeros"] / least_traffic(auto)
            intensities.append(intensity)
            axis.plot([intensity, intensity], [theirs["gflops"], auto["gflops"]], color="#9aa6b4", linewidth=1,
                      zorder=1)
            axis.scatter(intensity, theirs["gflops"], marker="s", color=pictures.THEIRS, s=18, zorder=2)
            axis.scatter(intensity, auto["gflops"], color=pictures.OURS, s=110, zorder=3)
            axis.text(intensity, auto["gflops"], str(names.index(matrix) + 1), color="white", fontsize=6.5,
                      ha="center", va="center", zorder=4)
        line = [min(intensities) * 0.93, max(intensities) * 1.05]
        axis.plot(line, [i * limit for i in line], color=pictures.LIMIT, linewidth=1.2)
        axis.text(line[0], line[0] * limit * 1.06, f"{limit:,.0f} GB/s", color=pictures.LIMIT, fontsize=8, va="bottom")
        pictures.plain_logarithm(axis, "y")
        axis.set_xlim(*line)
        axis.set_xlabel("flop a byte of least traffic")
        axis.set_ylabel("GFLOP/s")
    key = [f"{i + 1} {name}" for i, name in enumerate(names)]
    columns = -(-len(key) // 4)
    text = "\n".join("    ".join(key[i:i + columns]) for i in range(0, len(key), columns))
    panels[0].scatter([], [], color=pictures.OURS, label="librmsp, auto")
    panels[0].scatter([], [], color=pictures.THEIRS, marker="s", label="the best of cuSPARSE")
    save(figure, "-roofline.svg", note="The least traffic is that of the CSR arrays: formats of fewer bytes come above "
         "the line.\n" + text, legend=panels[0])


def least_traffic(benchmark):
    """Bytes of the CSR arrays, x and y, each once."""
    value = 8 if benchmark["precision"] == "double" else 4
    return (benchmark["nonzeros"] * (value + 4) + 4 * (benchmark["rows"] + 1)
            + value * (benchmark["rows"] + benchmark["cols"]))


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


def draw_scaling(pictures, speed, save):
    colours = dict(zip((1, 2, 4, 8), pictures.STEPS))
    counts = sorted({n for sets in speed.values() for n in sets})
    names = list(speed)
    figure, (top, bottom) = pictures.plt.subplots(2, 1, figsize=(11, 8), sharex=True)
    width = 0.8 / len(counts)
    for i, n in enumerate(counts):
        at = [k + (i - (len(counts) - 1) / 2) * width for k in range(len(names))]
        style = {"color": colours.get(n, pictures.QUIET), "label": f"{n} device{'s' if n > 1 else ''}"}
        top.bar(at, [speed[name].get(n, 0) for name in names], width, **style)
        if n > 1:
            bottom.bar(at, [speed[name].get(n, 0) / speed[name][1] if 1 in speed[name] else 0 for name in names], width,
                       **style)
            bottom.axhline(n, color="#b4bcc6", linewidth=0.8, zorder=0)
    top.set_yscale("log")
    top.set_ylabel("GFLOP/s")
    top.legend(ncol=len(counts))
    bottom.set_ylabel("speed-up over one device")
    bottom.set_xticks(range(len(names)), names, rotation=30, ha="right")
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
    import pictures

    def save(figure, ending, **more):
        pictures.save(figure, out + ending, context, **more)

    compared = {case: matrices for case, matrices in cases.items()
                if any(map(vendor, (k for r in matrices.values() for k in r)))}
    if compared:
        draw_speedup(pictures, compared, save)
        draw_profile(pictures, compared, save)
        draw_roofline(pictures, compared, save)
    published = {case: rows for case, rows in cases.items() if any("ehyb" in row for row in rows.values())}
    if published:
        draw_ehyb(pictures, published, save)
    if speed:
        draw_scaling(pictures, speed, save)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])
