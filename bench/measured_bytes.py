#!/usr/bin/env python3
"""Bytes that y = A x, or C = A A, moves between one device and its memory, beside what it has to move.

On a GPU they are counted by the GPU, under Nsight Compute: each kernel is run twice, with a few products and with more;
what more the counters show, divided by the products more, is one product's. Preparation, verification and the
measurement of limits are in both and cancel. Needs `ncu` and the right to read counters; one GPU, since ncu runs
kernels one at a time and GPUs that exchange wait for each other. On the host a simulated cache takes the counters'
place: the order is the rows', whatever the kernel.

usage: bench/measured_bytes.py --json OUT.json [--square] [--device 0|host:1] [--kernels a,b] [--into BENCH.json]
                               [--bounds] MATRIX...
  MATRIX    a description that `mspmv generate` takes, "stencil27 200 200 200", or a matrix file
  --square  C = A A, structure and values, in place of y = A x; kernels as bench_spgemm takes them
  --into    a JSON of bench_spmv, `mspmv run` or bench_spgemm, in which entries of the same matrix and kernel get
            `measured_bytes`
  --bounds  also count the lower and upper bound of each matrix, and print a table
"""
import argparse
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile

METRICS = ("dram__bytes_read.sum", "dram__bytes_write.sum")
UNITS = {"byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12}


def total_bytes(text):
    """Of every kernel in ncu's CSV, by metric. ncu prints the program's own lines before the table."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        sys.exit("ncu printed no table; it said:\n" + text[-2000:])
    totals = dict.fromkeys(METRICS, 0.0)
    for row in csv.DictReader(lines[start:]):
        if row.get("Metric Name") in totals:
            totals[row["Metric Name"]] += float(row["Metric Value"].replace(",", "")) * UNITS[row["Metric Unit"]]
    return totals


def output_of(command):
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "RMSP_CACHE_DIR": "off"})
    if run.returncode != 0:
        said = run.stdout[-2000:] + run.stderr[-2000:]
        sys.exit(f"{' '.join(command)}\nended with exit code {run.returncode}:\n{said}")
    return run.stdout


def source_of(matrix):
    return ["--matrix", matrix] if os.path.exists(matrix) else ["--set", f"matrix.generate={matrix}"]


def name_of(matrix):
    """As benchmarks call it."""
    return os.path.basename(matrix).split(".mtx")[0] if os.path.exists(matrix) else matrix


def product_command(options, matrix, kernel, products):
    """A program that makes so many products, and whatever else, which is always the same."""
    if options.square:
        # The values are random in both.
        return [options.bench, "--devices", options.device, "--kernels", kernel, "--untimed", str(products), matrix]
    settings = {"run.iterations": products, "run.warmup": 0, "kernel.spmv": kernel, "runtime.limit_gbs": 1000,
                "run.verify": "false", "run.vectors": "replicated",
                # No race of kernels in the applies that are counted.
                "kernel.determinism": "run" if kernel == "auto" else "none"}
    command = [options.mspmv, "run", *source_of(matrix), "--devices", options.device]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    return command


def counted(options, matrix, kernel):
    few, more = options.products, 3 * options.products
    first, second = (total_bytes(output_of([options.ncu, "--csv", "--metrics", ",".join(METRICS), "--target-processes",
                                            "all", *product_command(options, matrix, kernel, n)]))
                     for n in (few, more))
    read, written = ((second[name] - first[name]) / (more - few) for name in METRICS)
    return {"measured_bytes": read + written, "measured_bytes_read": read, "measured_bytes_written": written,
            "measured_by": "counters of the GPU"}


def characterized(options, matrix):
    """What `mspmv characterize` counts on the host."""
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "bounds.json")
        output_of([options.mspmv, "characterize", *source_of(matrix), "--devices", "host:1", "--iterations", "0",
                   "--fast-memory", str(options.fast_memory), "--line", str(options.line), "--json", path,
                   *(["--square"] if options.square else [])])
        with open(path, encoding="utf-8") as file:
            return json.load(file)


def simulated(options, found):
    cache = found["bounds"]["cache"]
    return {"measured_bytes": cache["bytes"] if cache else None,
            "measured_by": f"a simulated cache of {options.fast_memory} bytes, lines of {options.line}"}


def measure(options, matrix):
    host = options.device.startswith("host")
    found = characterized(options, matrix) if host or options.bounds else None
    for kernel in options.kernels.split(","):
        one = {"matrix": name_of(matrix), "kernel": kernel, "operation": "C = A A" if options.square else "y = A x",
               **(simulated(options, found) if host else counted(options, matrix, kernel))}
        if found:
            one |= {"lower_bytes": found["bounds"]["lower"]["bytes"], "upper_bytes": found["bounds"]["upper"]["bytes"],
                    "flops": found["matrix"]["flops"]}
        yield one


def fill_in(path, found):
    """Adds measured_bytes to what a benchmark kept. An entry is found by the words of its name, between slashes.

    Returns what each of `found` took there in seconds, and the bandwidth beside it, None where that is not said."""
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    times = {}
    filled = 0
    for entry in data["benchmarks"]:
        words = entry["name"].split("/")
        if "float" in words:
            continue  # doubles were counted
        for i, one in enumerate(found):
            matrix = entry.get("matrix", one["matrix"] if one["matrix"] in words else None)
            kernel = entry.get("kernel", one["kernel"] if one["kernel"] in words else None)
            if (matrix, kernel) == (one["matrix"], one["kernel"]):
                entry["measured_bytes"] = one["measured_bytes"]
                entry["measured_by"] = one["measured_by"]
                times[i] = (entry["real_time"] * 1e-6, entry.get("limit_gbs"))
                filled += 1
    unfinished = pathlib.Path(f"{path}.part")
    unfinished.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    unfinished.replace(path)
    print(f"{path}: {filled} entries have measured_bytes")
    return times


def show(found, times, gbs):
    """Figures 3, 5 and 7 of Kurt et al.: measured against bounds, GFLOP/s against what the measured bytes allow."""
    head = ["matrix", "kernel", "lower bound, MB", "upper over lower", "measured over lower"]
    timed = bool(times)
    head += ["GFLOP/s", "roofline", "of it"] if timed else []
    print(f"\n| {' | '.join(head)} |\n|---|---|{'--:|' * (len(head) - 2)}")
    for i, one in enumerate(found):
        lower, measured = one["lower_bytes"], one["measured_bytes"]
        cells = [one["matrix"], one["kernel"], f"{lower / 1e6:.3f}", f"{one['upper_bytes'] / lower:.2f}",
                 f"{measured / lower:.2f}" if measured else "-"]
        if timed:
            seconds, limit = times.get(i, (None, None))
            limit = gbs or limit
            cells.append(f"{one['flops'] / seconds * 1e-9:.1f}" if seconds else "-")
            if seconds and limit and measured:
                roofline = one["flops"] / measured * limit
                cells += [f"{roofline:.1f}", f"{one['flops'] / seconds * 1e-9 / roofline:.2f}"]
            else:
                cells += ["-", "-"]
        print(f"| {' | '.join(cells)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("matrices", nargs="+", metavar="MATRIX")
    parser.add_argument("--json", required=True, help="file to write")
    parser.add_argument("--square", action="store_true")
    parser.add_argument("--mspmv", default="build/bin/mspmv")
    parser.add_argument("--bench", default="build/bin/bench_spgemm", help="for --square")
    parser.add_argument("--ncu", default="ncu")
    parser.add_argument("--device", default="0", help="CUDA ordinal, or host:1")
    parser.add_argument("--kernels", default="auto", help="names of `mspmv kernels`, with commas")
    parser.add_argument("--products", type=int, default=5,
                        help="of the shorter run; the longer one has 3 times as many")
    parser.add_argument("--into", help="a benchmark's JSON to add measured_bytes to")
    parser.add_argument("--bounds", action="store_true")
    parser.add_argument("--fast-memory", type=int, default=50 << 20, help="bytes; of bounds and the simulated cache")
    parser.add_argument("--line", type=int, default=32, help="bytes of the simulated cache's line")
    parser.add_argument("--gbs", type=float, help="bandwidth for the roofline, where the benchmark does not say it")
    options = parser.parse_args()
    found = []
    for matrix in options.matrices:
        for one in measure(options, matrix):
            found.append(one)
            size = f"{one['measured_bytes'] / 1e6:.3f} MB" if one["measured_bytes"] else "too large to simulate"
            print(f"{one['matrix']}, {one['kernel']}: {size} a product, by {one['measured_by']}")
    with open(options.json, "w", encoding="utf-8") as file:
        json.dump({"metrics": METRICS, "benchmarks": found}, file, indent=1)
        file.write("\n")
    times = fill_in(options.into, found) if options.into else {}
    if found and "lower_bytes" in found[0]:
        show(found, times, options.gbs)


if __name__ == "__main__":
    main()
