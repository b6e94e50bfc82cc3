#!/usr/bin/env python3
"""A dot for each matrix and kernel: GFLOP/s over nonzeros, beside what the measured bandwidth BW allows a CSR (BW / 6
in double precision: 12 bytes for 2 operations) and a COO matrix (BW / 8): Figure 9 of the paper on Ginkgo's
portability. Says how near the best of each kernel comes. L2 flushed; needs nothing but Python.

usage: bench/plot_dots.py OUT.svg LINES... [--precision double|float] [--kernels a,b]
  LINES  of bench_spmv --lines (.xz too), or its JSON
"""
import argparse
import json
import lzma
import math
import pathlib
import statistics
import sys

COLOURS = ("#08519c", "#d08020", "#2a8f4f", "#a03070", "#777777", "#20a0a0", "#c03030", "#806040")


def read_benchmarks(paths):
    for path in paths:
        text = (lzma.open(path, "rt") if str(path).endswith(".xz") else open(path, encoding="utf-8")).read()
        try:
            yield from json.loads(text).get("benchmarks", [])
            continue
        except json.JSONDecodeError:
            pass  # a document a line
        for line in text.splitlines():
            try:
                yield from json.loads(line).get("benchmarks", [])
            except json.JSONDecodeError:
                continue  # cut off with its program


def draw(dots, bandwidth, bytes_of_value, out):
    width, height, left, top = 640, 400, 60, 20
    w, h = width - left - 170, height - top - 50
    everything = [d for of in dots.values() for d in of]
    low, high = (math.floor(math.log10(min(n for n, _ in everything))),
                 math.ceil(math.log10(max(n for n, _ in everything))))
    limits = [(f"BW / {(bytes_of_value + b) // 2}", 2 * bandwidth / (bytes_of_value + b)) for b in (4, 8)]
    most = 1.05 * max([g for _, g in everything] + [g for _, g in limits])

    def x(n):
        return left + w * (math.log10(n) - low) / (high - low)

    def y(g):
        return top + h * (1 - g / most)

    parts = [f'<path d="M{left} {top}V{top + h}H{left + w}" fill="none" stroke="#000"/>']
    for decade in range(low, high + 1):
        parts.append(f'<text x="{x(10 ** decade):.1f}" y="{top + h + 16}" text-anchor="middle">1e{decade}</text>')
    step = 10 ** math.floor(math.log10(most / 2))
    step *= next(f for f in (1, 2, 5) if most / (step * f) <= 8)
    for i in range(int(most / step) + 1):
        parts.append(f'<path d="M{left} {y(i * step):.1f}h{w}" stroke="#ddd"/>'
                     f'<text x="{left - 6}" y="{y(i * step) + 4:.1f}" text-anchor="end">{i * step:g}</text>')
    for name, g in limits:
        parts.append(f'<path d="M{left} {y(g):.1f}h{w}" stroke="#000" stroke-dasharray="5 3"/>'
                     f'<text x="{left + 4}" y="{y(g) - 4:.1f}">{name} = {g:.0f}</text>')
    for i, (kernel, of) in enumerate(dots.items()):
        colour = COLOURS[i % len(COLOURS)]
        parts += [f'<circle cx="{x(n):.1f}" cy="{y(g):.1f}" r="2.2" fill="{colour}" fill-opacity="0.7"/>'
                  for n, g in of]
        parts.append(f'<circle cx="{left + w + 20}" cy="{top + 14 * i + 10}" r="3" fill="{colour}"/>'
                     f'<text x="{left + w + 30}" y="{top + 14 * i + 14}">{kernel}</text>')
    parts.append(f'<text x="{left + w / 2}" y="{height - 14}" text-anchor="middle">nonzeros</text>'
                 f'<text x="14" y="{top + h / 2}" text-anchor="middle" transform="rotate(-90 14 {top + h / 2})">'
                 "GFLOP/s</text>")
    pathlib.Path(out).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
        f'font-size="11"><rect width="100%" height="100%" fill="#fff"/>' + "\n".join(parts) + "</svg>\n",
        encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("lines", nargs="+")
    parser.add_argument("--precision", choices=("double", "float"), default="double")
    parser.add_argument("--kernels", default="csr-row-vector,csr-nnz-split,coo-atomic,csc-atomic,cusparse-csr-alg1,"
                                             "cusparse-csr-alg2,cusparse-coo-alg1,auto")
    options = parser.parse_args()
    wanted = options.kernels.split(",")
    dots = {kernel: [] for kernel in wanted}
    limits = []
    for b in read_benchmarks(options.lines):
        if not b.get("error_occurred") and b["kernel"] in dots and b.get("cache") == "cold" and \
                b["precision"] == options.precision and b["device_count"] == 1:
            dots[b["kernel"]].append((b["nonzeros"], b["gflops"]))
            limits.append(b["limit_gbs"])
    dots = {kernel: of for kernel, of in dots.items() if of}
    if not dots:
        sys.exit("no such measurements, caches flushed, on one device")
    bandwidth = statistics.median(limits)
    bytes_of_value = 8 if options.precision == "double" else 4
    draw(dots, bandwidth, bytes_of_value, options.out)
    print(f"{options.precision}, BW = {bandwidth:.0f} GB/s")
    print("| kernel | matrices | most, GFLOP/s | of what CSR is allowed |\n|---|--:|--:|--:|")
    for kernel, of in dots.items():
        most = max(g for _, g in of)
        print(f"| {kernel} | {len(of)} | {most:.0f} | {100 * most * (bytes_of_value + 4) / 2 / bandwidth:.0f} % |")


if __name__ == "__main__":
    main()
