#!/usr/bin/env python3
"""Matrices of bench/corpus.toml as arguments of bench_spmv and bench_spgemm, and what these found: the matrices on
which another library is faster first, geometric means by family and half, the choice, the preparation, a profile.

usage: bench/corpus.py arguments [--half fit|judge] [--family NAME]... [--most NONZEROS] [--least NONZEROS]
                                 [--files FOLDER] [--names FILE]
       bench/corpus.py report LINES... [--against PREFIX] [--svg FILE]
       bench/corpus.py list
"""
import argparse
import json
import math
import pathlib
import sys
import tomllib

HANDS = 61  # that a bad numbering deals rows to
CLOSE = 1.05  # a choice within this factor of the best kernel is right
NEAR = 1.2  # and a prediction within this one of what was measured


def name_of(matrix):
    """Unique in the corpus, without commas and slashes."""
    text = matrix.get("generate", matrix.get("file"))
    if matrix.get("kron", 1) > 1:
        text += f' x{matrix["kron"]}'
    return text if matrix["numbering"] == "good" else f'{text} {matrix["numbering"]}'


def read_corpus():
    """Name -> matrix, with its family and half."""
    path = pathlib.Path(__file__).with_name("corpus.toml")
    matrices = {}
    for family in tomllib.loads(path.read_text())["family"]:
        if family["half"] not in ("fit", "judge"):
            raise SystemExit(f'{path}: family "{family["name"]}": half is "{family["half"]}", not "fit" or "judge"')
        for matrix in family["matrices"]:
            name = name_of(matrix)
            if name in matrices:
                raise SystemExit(f'{path}: family "{family["name"]}": there are two matrices "{name}"')
            if matrix["numbering"] not in ("good", "bad", "random"):
                raise SystemExit(f'{path}: "{name}": numbering is "{matrix["numbering"]}"')
            matrices[name] = {**matrix, "family": family["name"], "half": family["half"]}
    return matrices


def file_of(folder, name):
    return next(iter(sorted(pathlib.Path(folder).glob(f"{name}.mtx*"))), None) if folder else None


def chosen_by(path):
    """The corpus, or those of its matrices that a file names, a line each, in the file's order."""
    corpus = read_corpus()
    names = pathlib.Path(path).read_text().splitlines() if path else corpus
    for name in names:
        if name not in corpus:
            raise SystemExit(f'{path}: the corpus has no matrix "{name}"')
    return {name: corpus[name] for name in names}


def print_arguments(options):
    for name, matrix in chosen_by(options.names).items():
        if options.half and matrix["half"] != options.half or \
                options.family and matrix["family"] not in options.family or \
                not options.least <= matrix["nonzeros"] <= options.most:
            continue
        words = [name, "values=random"]
        if "file" in matrix:
            path = file_of(options.files, matrix["file"])
            if path is None:
                continue
            words.append(f"file={path}")
        else:
            words += [f'generate={matrix["generate"]}', f'seed={matrix["seed"]}']
        if "kron" in matrix:
            words.append(f'kron={matrix["kron"]}')
        if matrix["numbering"] == "bad":
            words.append(f"deal={HANDS}")
        elif matrix["numbering"] == "random":
            words.append(f'permute={matrix.get("seed", 1)}')
        print(",".join(words))


def print_list():
    families = {}
    for matrix in read_corpus().values():
        families.setdefault((matrix["half"], matrix["family"]), []).append(matrix["nonzeros"])
    print("| half | family | matrices | nonzeros |\n|---|---|--:|---|")
    for (half, family), nonzeros in sorted(families.items()):
        print(f"| {half} | {family} | {len(nonzeros)} | {min(nonzeros):,} to {max(nonzeros):,} |")
    print(f"\n{sum(map(len, families.values()))} matrices, {len(families)} families")


def geometric_mean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def quickest(benchmarks, against, field):
    """(name, time) of the fastest of the others."""
    times = [(b[field], b["kernel"]) for b in benchmarks if b["kernel"].startswith(against) and b.get(field, 0) > 0]
    return min(times, default=None)


def compared(line, against):
    """(case, ours, theirs, kernel of theirs, benchmark of ours) of one line of results."""
    measured = [b for b in line["benchmarks"] if not b.get("error_occurred")]
    if any("numeric_us" in b for b in measured):
        ours = next((b for b in measured if b["kernel"].startswith("spgemm") and "/" not in b["kernel"]), None)
        if ours:
            yield "SpGEMM, whole", ours["real_time"], quickest(measured, against, "real_time"), ours
            # Others than REUSE compute everything again.
            kept = [b for b in measured if "reuse" in b["kernel"] or not against.startswith("cusparse")]
            yield "SpGEMM, values alone", ours["numeric_us"], quickest(kept, against, "numeric_us"), ours
        return
    for cache in ("cold", "warm"):
        of_cache = [b for b in measured if b.get("cache") == cache]
        ours = next((b for b in of_cache if b["kernel"] == "auto"), None)
        if ours:
            text = "flushed" if cache == "cold" else "in a row, on the device"
            case = f'SpMV, {line["precision"]}'
            yield f"{case}, {text}", ours["real_time"], quickest(of_cache, against, "real_time"), ours
            if "queued_us" in ours:
                yield f"{case}, in a row, by the wall clock", ours["queued_us"], \
                    quickest(of_cache, against, "queued_us"), ours


def read_lines(paths):
    """The last result of each matrix and precision of each file, and what was begun twice without an end."""
    done, begun = {}, {}
    for path in paths:
        for text in pathlib.Path(path).read_text().splitlines():
            try:
                line = json.loads(text)
            except json.JSONDecodeError:
                continue  # cut off with its program
            key = (str(path), line["matrix"], line["precision"])
            if line["state"] == "done":
                done[key] = line
            else:
                begun[key] = begun.get(key, 0) + 1
    return list(done.values()), [key for key in begun if key not in done]


def table(title, rows):
    print(f"\n{title}: " + (f"{len(rows)}" if rows else "none"))
    if rows:
        print("\n| matrix | family | half | ours, us | theirs, us | their kernel | ratio |\n"
              "|---|---|---|--:|--:|---|--:|")
        for r in rows:
            print(f'| {r["matrix"]} | {r["family"]} | {r["half"]} | {r["ours"]:.2f} | {r["theirs"]:.2f} | '
                  f'{r["kernel"]} | {r["ratio"]:.2f} |')


def print_case(case, rows):
    rows.sort(key=lambda r: r["ratio"])
    worst = rows[0]
    print(f"\n## {case}\n")
    for half in ("fit", "judge", None):
        ratios = [r["ratio"] for r in rows if half in (None, r["half"])]
        if ratios:
            print(f'- {half or "both"}: {len(ratios)} matrices, geometric mean {geometric_mean(ratios):.3f}, '
                  f'least {min(ratios):.2f}, {sum(r < 1 for r in ratios)} below 1')
    print(f'- the worst: {worst["matrix"]} ({worst["ratio"]:.2f}, {worst["kernel"]})')
    table("Where the other is faster", [r for r in rows if r["ratio"] < 1])
    print("\n| family | half | matrices | geometric mean | least |\n|---|---|--:|--:|--:|")
    families = {}
    for r in rows:
        families.setdefault((r["family"], r["half"]), []).append(r["ratio"])
    for (family, half), ratios in sorted(families.items(), key=lambda f: geometric_mean(f[1])):
        print(f"| {family} | {half} | {len(ratios)} | {geometric_mean(ratios):.2f} | {min(ratios):.2f} |")


def print_choice(lines, corpus, against):
    """How often "auto" is about as fast as the best kernel of ours, flushed."""
    costs = []
    for line in lines:
        cold = [b for b in line["benchmarks"] if not b.get("error_occurred") and b.get("cache") == "cold"]
        auto = next((b for b in cold if b["kernel"] == "auto"), None)
        own = [b for b in cold if b["kernel"] != "auto" and not b["kernel"].startswith(against)]
        if auto and own:
            best = min(own, key=lambda b: b["real_time"])
            costs.append((auto["real_time"] / best["real_time"], line["matrix"], line["precision"], auto["chosen"],
                          best["kernel"]))
    if not costs:
        return
    print("\n## The choice")
    for half in ("fit", "judge"):
        those = [c[0] for c in costs if corpus.get(c[1], {}).get("half") == half]
        if those:
            print(f"\n- {half}: within {100 * (CLOSE - 1):.0f} % of the best kernel on "
                  f"{100 * sum(c <= CLOSE for c in those) / len(those):.0f} % of {len(those)}, the most that a choice "
                  f"cost {max(those):.2f} times")
    print("\n| matrix | precision | chosen | best | times the best |\n|---|---|---|---|--:|")
    for cost, matrix, precision, chosen, best in sorted(costs, reverse=True)[:20]:
        if cost > CLOSE:
            print(f"| {matrix} | {precision} | {chosen} | {best} | {cost:.2f} |")


def print_model(lines, corpus):
    """What the model of each kernel said beside what the kernel took, flushed."""
    errors = {}
    for line in lines:
        cold = {b["kernel"]: b for b in line["benchmarks"]
                if not b.get("error_occurred") and b.get("cache") == "cold"}
        for candidate in cold.get("auto", {}).get("kernel_candidates", []):
            took = cold.get(candidate["kernel"], {}).get("real_time", 0)
            if took > 0 and candidate["predicted_seconds"] > 0:
                half = corpus.get(line["matrix"], {}).get("half", "-")
                errors.setdefault((candidate["kernel"], half), []).append(
                    (candidate["predicted_seconds"] * 1e6 / took, line["matrix"]))
    if not errors:
        return
    print(f"\n## The model: predicted over measured\n\n| kernel | half | matrices | geometric mean | within "
          f"{100 * (NEAR - 1):.0f} % | least | of | most | of |\n|---|---|--:|--:|--:|--:|---|--:|---|")
    for (kernel, half), those in sorted(errors.items()):
        near = sum(1 / NEAR <= ratio <= NEAR for ratio, _ in those) / len(those)
        least, most = min(those), max(those)
        print(f"| {kernel} | {half} | {len(those)} | {geometric_mean(r for r, _ in those):.2f} | {100 * near:.0f} % | "
              f"{least[0]:.2f} | {least[1]} | {most[0]:.2f} | {most[1]} |")


def print_setup(lines):
    """What the set-up takes: the preparation in products, all of it in uploads of its bytes."""
    rows = []
    for line in lines:
        for b in line["benchmarks"]:
            if b.get("kernel") == "auto" and b.get("cache") == "cold" and "setup_seconds" in b:
                parts = {part: max(times, default=0) for part, times in b["setup_seconds"].items()
                         if isinstance(times, list)}
                seconds, upload = sum(parts.values()), parts.get("upload", 0)
                rows.append({"products": b["prepare_seconds"] / (b["real_time"] * 1e-6), "ms": seconds * 1e3,
                             "uploads": seconds / upload if upload > 0 else 0,
                             "slowest": max(parts, key=parts.get), "kernel": b["chosen"], "nonzeros": b["nonzeros"],
                             "matrix": line["matrix"], "precision": line["precision"]})
    if not rows:
        return
    print("\n## Set-up")
    for title, field, most in (("Preparation, in products", "products", 30),
                               ("All of the set-up, in times of its upload", "uploads", 3)):
        values = [r[field] for r in rows if r[field] > 0]
        if not values:
            continue
        print(f"\n{title}: geometric mean {geometric_mean(values):.1f}, {sum(v <= most for v in values)} of "
              f"{len(values)} at most {most}; the most:\n\n| matrix | precision | kernel | nonzeros | {field} "
              f"| all, ms | most of it |\n|---|---|---|--:|--:|--:|---|")
        for r in sorted(rows, key=lambda r: -r[field])[:20]:
            print(f'| {r["matrix"]} | {r["precision"]} | {r["kernel"]} | {r["nonzeros"]:,} | {r[field]:.1f} | '
                  f'{r["ms"]:.2f} | {r["slowest"]} |')


def draw_profiles(cases, context, path):
    """For each case, the share of the matrices on which a library takes at most so many times the least time (Dolan,
    More: "Benchmarking optimization software with performance profiles", 2002). Needs matplotlib."""
    import pictures
    from pictures import plt

    most, columns = 4.0, 2
    lines = -(-len(cases) // columns)
    figure, panels = plt.subplots(lines, columns, figsize=(5 * columns, 3.2 * lines), squeeze=False)
    for axes in panels.flat[len(cases):]:
        axes.remove()
    for axes, (case, rows) in zip(panels.flat, cases.items()):
        for label, colour, times in (("librmsp", pictures.OURS, [max(1, 1 / r["ratio"]) for r in rows]),
                                     ("the best of the other", pictures.THEIRS, [max(1, r["ratio"]) for r in rows])):
            x, y = [1.0], [0.0]
            for n, time in enumerate(sorted(t for t in times if t <= most), 1):
                x += [time, time]
                y += [y[-1], n / len(rows)]
            axes.plot(x + [most], y + [y[-1]], color=colour, label=label)
        axes.set_xscale("log")
        axes.set_xlim(1, most)
        pictures.plain_numbers(axes.xaxis, [1, 1.5, 2, 3, 4])
        axes.set_ylim(0, 1.02)
        axes.set_title(f"{case} ({len(rows)} matrices)")
        axes.set_xlabel("times the least")
        axes.set_ylabel("share of the matrices")
    panels[0][0].legend(loc="lower right")
    pictures.save(figure, path, context)


def report(options):
    corpus = read_corpus()
    lines, ended = read_lines(options.lines)
    if not lines:
        raise SystemExit("no results in " + " ".join(options.lines))
    for context in sorted({json.dumps([line["context"]["commit"], line["context"]["devices"],
                                       line["context"]["versions"]]) for line in lines}):
        commit, devices, versions = json.loads(context)
        print(f"commit {commit}; {json.dumps(devices)}; " + ", ".join(f"{k} {v}" for k, v in sorted(versions.items())))
    everything = [b for line in lines for b in line["benchmarks"]]
    wrong = [b["name"] for b in everything if b.get("verified") is False]
    print(f"\n{len({line['matrix'] for line in lines})} matrices of {len(corpus)}, {len(everything)} measurements, "
          f"{len(wrong)} wrong")
    for name in wrong:
        print(f"- WRONG: {name}")
    for _, matrix, precision in ended:
        print(f"- begun and not finished: {matrix}, {precision}")
    for kernel in sorted({k for line in lines for k in line["context"].get("absent_kernels", [])}):
        print(f"- not in the build: {kernel}")
    left_out = {}
    for b in everything:
        if b.get("error_occurred"):
            left_out.setdefault(b["name"].split("/")[-1], []).append(b)
    for kernel, those in sorted(left_out.items()):
        print(f'- not measured: {kernel}, {len(those)} times, first {those[0]["name"]}: {those[0]["error_message"]}')
    cases = {}
    for line in lines:
        of = corpus.get(line["matrix"], {"family": "others", "half": "-"})
        for case, ours, theirs, _ in compared(line, options.against):
            if theirs:
                cases.setdefault(case, []).append(
                    {"matrix": line["matrix"], "family": of["family"], "half": of["half"], "ours": ours,
                     "theirs": theirs[0], "kernel": theirs[1], "ratio": theirs[0] / ours})
    for case, rows in cases.items():
        print_case(case, rows)
    print_choice(lines, corpus, options.against)
    print_model(lines, corpus)
    print_setup(lines)
    if options.svg and cases:
        draw_profiles(cases, lines[0]["context"], options.svg)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    arguments = commands.add_parser("arguments")
    arguments.add_argument("--half", choices=("fit", "judge"))
    arguments.add_argument("--family", action="append")
    arguments.add_argument("--most", type=float, default=math.inf)
    arguments.add_argument("--least", type=float, default=0)
    arguments.add_argument("--files")
    arguments.add_argument("--names")
    of_report = commands.add_parser("report")
    of_report.add_argument("lines", nargs="+")
    of_report.add_argument("--against", default="cusparse")
    of_report.add_argument("--svg")
    commands.add_parser("list")
    options = parser.parse_args()
    {"arguments": print_arguments, "report": report, "list": lambda _: print_list()}[options.command](options)


if __name__ == "__main__":
    sys.exit(main())
