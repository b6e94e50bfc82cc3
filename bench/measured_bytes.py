#!/usr/bin/env python3
"""Bytes that a product moves between one GPU and its memory, counted by the GPU: `mspmv run` under Nsight Compute.

Each kernel is run twice, with a few applies and with more; what more the counters show, divided by the applies more, is
one product's. Preparation, verification and the measurement of limits are in both and cancel. Needs `ncu` and the right
to read counters; one GPU, since ncu runs kernels one at a time and GPUs that exchange wait for each other.

usage: bench/measured_bytes.py --json OUT.json [--mspmv build/bin/mspmv] [--kernels a,b] [--into BENCH.json] GENERATE...
  GENERATE  a description that `mspmv generate` takes, "stencil27 200 200 200", or a matrix file
  --into    a JSON of bench_spmv or `mspmv run`, in which entries of the same matrix and kernel get `measured_bytes`
"""
import argparse
import csv
import json
import os
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


def profiled(options, matrix, kernel, iterations, scratch):
    source = ["--matrix", matrix] if os.path.exists(matrix) else ["--set", f"matrix.generate={matrix}"]
    report = os.path.join(scratch, "run.json")
    command = [options.ncu, "--csv", "--metrics", ",".join(METRICS), "--target-processes", "all",
               options.mspmv, "run", *source, "--devices", options.device, "--json", report]
    settings = {"run.iterations": iterations, "run.warmup": 0, "kernel.spmv": kernel, "runtime.limit_gbs": 1000,
                "run.verify": "false", "run.vectors": "replicated",
                # No race of kernels in the applies that are counted.
                "kernel.determinism": "run" if kernel == "auto" else "none"}
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "RMSP_CACHE_DIR": "off"})
    if run.returncode != 0:
        said = run.stdout[-2000:] + run.stderr[-2000:]
        sys.exit(f"{' '.join(command)}\nended with exit code {run.returncode}:\n{said}")
    with open(report, encoding="utf-8") as file:
        return total_bytes(run.stdout), json.load(file)


def measure(options, matrix, kernel):
    few, more = options.applies, 3 * options.applies
    with tempfile.TemporaryDirectory() as scratch:
        first, _ = profiled(options, matrix, kernel, few, scratch)
        second, report = profiled(options, matrix, kernel, more, scratch)
    entry = report["benchmarks"][0]
    read, written = ((second[name] - first[name]) / (more - few) for name in METRICS)
    return {"matrix": matrix, "kernel": kernel, "measured_bytes": read + written, "measured_bytes_read": read,
            "measured_bytes_written": written,
            "least_bytes": entry.get("bytes_per_second", 0) * entry["real_time"] * 1e-6}


def fill_in(path, found):
    """Adds measured_bytes to what a benchmark kept. An entry is found by the words of its name, between slashes."""
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    filled = 0
    for entry in data["benchmarks"]:
        words = entry["name"].split("/")
        for one in found:
            matrix = entry.get("matrix", one["matrix"] if one["matrix"] in words else None)
            kernel = entry.get("kernel", one["kernel"] if one["kernel"] in words else None)
            if (matrix, kernel) == (one["matrix"], one["kernel"]):
                entry["measured_bytes"] = one["measured_bytes"]
                filled += 1
    with open(path, "w", encoding="utf-8") as file:
        json.dump(data, file, indent=1)
        file.write("\n")
    print(f"{path}: {filled} entries have measured_bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("matrices", nargs="+", metavar="GENERATE")
    parser.add_argument("--json", required=True, help="file to write")
    parser.add_argument("--mspmv", default="build/bin/mspmv")
    parser.add_argument("--ncu", default="ncu")
    parser.add_argument("--device", default="0", help="CUDA ordinal")
    parser.add_argument("--kernels", default="auto", help="names of `mspmv kernels`, with commas")
    parser.add_argument("--applies", type=int, default=5, help="of the shorter run; the longer one has 3 times as many")
    parser.add_argument("--into", help="a benchmark's JSON to add measured_bytes to")
    options = parser.parse_args()
    found = []
    for matrix in options.matrices:
        for kernel in options.kernels.split(","):
            found.append(measure(options, matrix, kernel))
            one = found[-1]
            print(f"{matrix}, {kernel}: {one['measured_bytes'] / 1e6:.3f} MB a product, at least "
                  f"{one['least_bytes'] / 1e6:.3f} by the model")
    with open(options.json, "w", encoding="utf-8") as file:
        json.dump({"metrics": METRICS, "benchmarks": found}, file, indent=1)
        file.write("\n")
    if options.into:
        fill_in(options.into, found)


if __name__ == "__main__":
    main()
