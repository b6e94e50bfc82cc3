#!/usr/bin/env python3
"""Prints one line for each benchmark of mspmv's JSON reports: name, devices, time, GFLOP/s, share of the limit, verified."""
import json
import pathlib
import sys

for path in sys.argv[1:]:
    report = json.loads(pathlib.Path(path).read_text())
    tag = pathlib.Path(path).stem
    for b in report["benchmarks"]:
        print(f'{tag:34} {b["name"]:44} {b["real_time"]:10.2f} {b["time_unit"]} {b["gflops"]:8.1f} GFLOP/s '
              f'{b["bytes_per_second"] * 1e-9:8.1f} GB/s {100 * b["share_of_limit"]:5.1f} % '
              f'verified={b.get("verified")}')
