#!/usr/bin/env python3
"""Bytes that y = A x, or C = A A, moves between one device and its memory, beside what it has to move.

On a GPU they are counted by the GPU, under Nsight Compute: each kernel is run twice, with a few products and with more;
what more the counters show, divided by the products more, is one product's. Preparation, verification and the
measurement of limits are in both and cancel. Needs `ncu` and the right to read counters; one GPU, since ncu runs
kernels one at a time and GPUs that exchange wait for each other. On the host a simulated cache takes the counters'
place: the order is the rows', whatever the kernel.

usage: bench/measured_bytes.py --json OUT.json [--square] [--device 0|host:1] [--kernels a,b] [--into BENCH.json]
                               [--bounds] [--skip] MATRIX...
  MATRIX    a description that `mspmv generate` takes, "stencil27 200 200 200", a matrix file, or as the benchmarks take
            it, "permuted 15,generate=banded 100000 15,permute=1"; of the latter's own words permute=SEED alone
  --square  C = A A, structure and values, in place of y = A x; kernels as bench_spgemm takes them
  --into    a JSON of bench_spmv, `mspmv run` or bench_spgemm, in which entries of the same matrix and kernel get
            `measured_bytes`
  --bounds  also count the lower and upper bound of each matrix, and print a table
  --skip    let ncu pass over as many launches of the longer run as the shorter one had, and measure the rest alone
"""
import argparse
import csv
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

METRICS = ("dram__bytes_read.sum", "dram__bytes_write.sum")
UNITS = {"byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12}


# Keys of MATRIX that the benchmarks apply themselves, beside permute: mspmv, which counts bounds, has none of them.
BENCHMARKS_OWN = ("top_left", "deal", "scatter", "renumber")


def launches(text):
    """Of ncu's CSV, the name of each kernel that was launched and its bytes by metric. ncu prints the program's own
    lines before the table."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        sys.exit("ncu printed no table; it said:\n" + text[-2000:])
    found = {}
    for row in csv.DictReader(lines[start:]):
        if row.get("Metric Name") in METRICS:
            launch = found.setdefault(row["ID"], (row["Kernel Name"], {}))
            launch[1][row["Metric Name"]] = float(row["Metric Value"].replace(",", "")) * UNITS[row["Metric Unit"]]
    return list(found.values())


def total_bytes(measured):
    return {name: sum(of.get(name, 0) for _, of in measured) for name in METRICS}


def output_of(command):
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "RMSP_CACHE_DIR": "off"})
    if run.returncode != 0:
        said = run.stdout[-2000:] + run.stderr[-2000:]
        sys.exit(f"{' '.join(command)}\nended with exit code {run.returncode}:\n{said}")
    return run.stdout


def words_of(matrix):
    """Name and keys of "NAME,key=value,...", or of a file or a generator's words."""
    if os.path.exists(matrix):
        return os.path.basename(matrix).split(".mtx")[0], {"file": matrix}
    name, *words = matrix.split(",")
    if not words:
        return name, {"generate": matrix}
    return name, dict(word.split("=", 1) for word in words)


def name_of(matrix):
    """As benchmarks call it."""
    return words_of(matrix)[0]


def write_permutation(path, rows, seed):
    """The old row at each place, in random order, as numpy.save writes it. Not the order that the benchmarks' own
    generator gives for the seed, but as random a one."""
    order = list(range(rows))
    random.Random(seed).shuffle(order)
    header = f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({rows},), }}"
    header += " " * (-(11 + len(header)) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack(f"<{rows}q", *order))


def source_of(options, matrix):
    """Of mspmv. A permutation goes through a file, in a folder that is there as long as the matrix is measured."""
    keys = dict(words_of(matrix)[1])
    refused = [key for key in BENCHMARKS_OWN if key in keys]
    if refused:
        sys.exit(f"{matrix}: {', '.join(refused)} is of the benchmarks alone; without --bounds and with --square on a "
                 "GPU it can be measured")
    seed = int(keys.pop("permute", 0))
    settings = [word for key, value in keys.items() for word in ("--set", f"matrix.{key}={value}")]
    if seed:
        planned = json.loads(output_of([options.mspmv, "run", *settings, "--dry-run", "--devices", "host:1", "--json",
                                        "-"]))
        rows = planned["context"]["plan"]["rows"]
        path = os.path.join(options.scratch, "permutation.npy")
        write_permutation(path, rows, seed)
        settings += ["--set", f"matrix.permutation={path}"]
    return settings


def product_command(options, matrix, source, kernel, products):
    """A program that makes so many products, and whatever else, which is always the same."""
    if options.square:
        # The values are random in both.
        return [options.bench, "--devices", options.device, "--kernels", kernel, "--untimed", str(products), matrix]
    settings = {"run.iterations": products, "run.warmup": 0, "kernel.spmv": kernel, "runtime.limit_gbs": 1000,
                "run.verify": "false", "run.vectors": "replicated",
                # As many as the benchmarks announce: both runs are to choose what these do, whatever they make.
                "kernel.expected_applies": 1000,
                # No race of kernels in the applies that are counted.
                "kernel.determinism": "run" if kernel == "auto" else "none"}
    command = [options.mspmv, "run", *source, "--devices", options.device]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    return command


def counted(options, matrix, source, kernel):
    # One pass has both metrics. Clocks change no bytes, and setting them needs rights that many machines withhold.
    ncu = [options.ncu, "--csv", "--metrics", ",".join(METRICS), "--target-processes", "all", "--clock-control", "none",
           "--cache-control", options.cache_control]
    few, more = options.products, options.products + options.further
    first = launches(output_of([*ncu, *product_command(options, matrix, source, kernel, few)]))
    skipped = len(first) if options.skip else 0
    if skipped:
        ncu += ["--launch-skip", str(skipped)]
    second = launches(output_of([*ncu, *product_command(options, matrix, source, kernel, more)]))
    if skipped:
        require_products(options, first, second)
    before, after = total_bytes([] if skipped else first), total_bytes(second)
    read, written = ((after[name] - before[name]) / options.further for name in METRICS)
    return {"measured_bytes": read + written, "measured_bytes_read": read, "measured_bytes_written": written,
            "measured_by": "counters of the GPU", "cache_control": options.cache_control}


def require_products(options, first, second):
    """Ends unless what was not skipped is whole products: as many launches each, with the names of the last ones of the
    shorter run, behind which a program that launches something after its products has other names."""
    each = len(second) // options.further
    last = [name for name, _ in first[len(first) - each:]]
    names = [name for name, _ in second]
    if not each or len(second) % options.further or any(names[i:i + each] != last
                                                        for i in range(0, len(names), each)):
        sys.exit("what the longer run launches more is not whole products of the same kernels: measure without --skip")


def characterized(options, source):
    """What `mspmv characterize` counts on the host."""
    path = os.path.join(options.scratch, "bounds.json")
    output_of([options.mspmv, "characterize", *source, "--devices", "host:1", "--iterations", "0", "--fast-memory",
               str(options.fast_memory), "--line", str(options.line), "--json", path,
               *(["--fine-limit", str(options.fine_limit)] if options.fine_limit is not None else []),
               # Counters have what moves; simulating it takes far longer than the bounds.
               *([] if options.device.startswith("host") else ["--simulate-limit", "0"]),
               *(["--square"] if options.square else [])])
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def simulated(options, found):
    cache = found["bounds"]["cache"]
    return {"measured_bytes": cache["bytes"] if cache else None,
            "measured_by": f"a simulated cache of {options.fast_memory} bytes, lines of {options.line}"}


def measure(options, matrix):
    host = options.device.startswith("host")
    # bench_spgemm takes what it squares as it is.
    source = None if options.square and not host and not options.bounds else source_of(options, matrix)
    found = characterized(options, source) if host or options.bounds else None
    for kernel in options.kernels.split(","):
        one = {"matrix": name_of(matrix), "kernel": kernel, "operation": "C = A A" if options.square else "y = A x",
               **(simulated(options, found) if host else counted(options, matrix, source, kernel))}
        if found:
            options.context = options.context or {**found["context"], "devices": [options.device]}
            one |= {"lower_bytes": found["bounds"]["lower"]["bytes"], "upper_bytes": found["bounds"]["upper"]["bytes"],
                    "flops": found["matrix"]["flops"]}
        yield one


def fill_in(path, found):
    """Adds measured_bytes to what a benchmark kept. An entry is found by the words of its name, between slashes.

    Returns what each of `found` took there in seconds, and the bandwidth beside it, None where that is not said, and
    the benchmark's context."""
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
    return times, data["context"]


def show(found, timed):
    """Figures 3, 5 and 7 of Kurt et al.: measured against bounds, GFLOP/s against what the measured bytes allow."""
    head = ["matrix", "kernel", "lower bound, MB", "upper over lower", "measured over lower"]
    head += ["GFLOP/s", "roofline", "of it"] if timed else []
    print(f"\n| {' | '.join(head)} |\n|---|---|{'--:|' * (len(head) - 2)}")
    for one in found:
        lower, measured = one["lower_bytes"], one["measured_bytes"]
        cells = [one["matrix"], one["kernel"], f"{lower / 1e6:.3f}", f"{one['upper_bytes'] / lower:.2f}",
                 f"{measured / lower:.2f}" if measured else "-"]
        if timed:
            seconds, limit = one.get("seconds"), one.get("limit_gbs")
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
    parser.add_argument("--products", type=int, default=1, help="of the shorter run (1)")
    parser.add_argument("--further", type=int, default=2, help="so many more of the longer run (2)")
    parser.add_argument("--skip", action="store_true")
    parser.add_argument("--cache-control", choices=("all", "none"), default="all",
                        help="ncu's: caches are flushed before each kernel (all), or keep what the one before left")
    parser.add_argument("--into", help="a benchmark's JSON to add measured_bytes to")
    parser.add_argument("--bounds", action="store_true")
    parser.add_argument("--fast-memory", type=int, default=50 << 20, help="bytes; of bounds and the simulated cache")
    parser.add_argument("--line", type=int, default=32, help="bytes of the simulated cache's line")
    parser.add_argument("--fine-limit", type=int, help="most multiplies to partition one by one; as mspmv characterize")
    parser.add_argument("--gbs", type=float, help="bandwidth for the roofline, where the benchmark does not say it")
    options = parser.parse_args()
    options.context = None
    found = []
    with tempfile.TemporaryDirectory() as options.scratch:
        for matrix in options.matrices:
            for one in measure(options, matrix):
                found.append(one)
                size = f"{one['measured_bytes'] / 1e6:.3f} MB" if one["measured_bytes"] else "too large to simulate"
                print(f"{one['matrix']}, {one['kernel']}: {size} a product, by {one['measured_by']}", flush=True)
    times, context = fill_in(options.into, found) if options.into else ({}, options.context)
    for i, (seconds, limit) in times.items():
        found[i] |= {"seconds": seconds, "limit_gbs": options.gbs or limit}
    with open(options.json, "w", encoding="utf-8") as file:
        json.dump({"context": context, "metrics": METRICS, "benchmarks": found}, file, indent=1)
        file.write("\n")
    if found and "lower_bytes" in found[0]:
        show(found, bool(times))


if __name__ == "__main__":
    main()
