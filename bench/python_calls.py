#!/usr/bin/env python3
"""What a call of the Python package takes beyond the C++ call that it makes, and where the first import spends its
time: on a matrix so small that the calls are what takes time. Medians of rounds in which Python and C++ take turns.

usage: bench/python_calls.py [--program PROGRAM] [--devices DEVICES] [--calls N] [--rounds N] [--json FILE]
    PROGRAM   bench_c_calls of the same build, which times the C++ calls; without it Python alone is timed
    DEVICES   as runtime.devices (host:1); of a GPU ("0"), arrays of torch or CuPy on it are timed as well

The package is the one that Python finds: PYTHONPATH=build/python names that of a build tree.
"""
import argparse
import importlib.util
import json
import re
import statistics
import subprocess
import sys
import time

import numpy as np

import rmsp

HOST, STREAM = "product of host arrays", "product in a stream's order"


def seconds_of(call, calls, end=lambda: None):
    """The median over batches of 20 calls, of one call; `end` waits for what a batch left, outside the time."""
    batches = []
    for _ in range(max(1, calls // 20)):
        began = time.perf_counter()
        for _ in range(20):
            call()
        batches.append((time.perf_counter() - began) / 20)
        end()
    return statistics.median(batches)


def calls_of(runtime):
    """Name, which C++ call it makes, the call, and what waits for it."""
    A = rmsp.Matrix(([1.0, 2.0, 3.0], [0, 1, 1], [0, 2, 3]), shape=(2, 2), runtime=runtime)
    x, y = np.ones(2), np.ones(2)
    yield "A @ x", HOST, lambda: A @ x, lambda: None
    yield "A.multiply(x, out=y)", HOST, lambda: A.multiply(x, out=y), lambda: None
    if runtime.devices()[0]["kind"] == "host":
        return
    if importlib.util.find_spec("torch"):
        import torch

        there, result = torch.ones(2, dtype=torch.float64).cuda(), torch.ones(2, dtype=torch.float64).cuda()
        yield "A @ x of torch", STREAM, lambda: A @ there, runtime.synchronize
        yield "A.multiply(x, out=y) of torch", STREAM, lambda: A.multiply(there, out=result), runtime.synchronize
    if importlib.util.find_spec("cupy"):
        import cupy

        ones, out = cupy.ones(2), cupy.ones(2)
        yield "A @ x of CuPy", STREAM, lambda: A @ ones, runtime.synchronize
        yield "A.multiply(x, out=y) of CuPy", STREAM, lambda: A.multiply(ones, out=out), runtime.synchronize


def of_cpp(program, devices, calls):
    """Seconds of the C++ calls, by the words of bench_c_calls."""
    done = subprocess.run([program, "--devices", devices, "--calls", str(calls)], capture_output=True, text=True,
                          check=True)
    return {name: 1e-9 * float(ns) for name, ns in re.findall(r"^(\S.*?)  +C\+\+ +([0-9.]+) ns", done.stdout, re.M)}


def import_seconds():
    """Of a process that imports nothing, NumPy, and the package; medians of seven."""
    def of(program):
        times = []
        for _ in range(7):
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", program], check=True)
            times.append(time.perf_counter() - began)
        return statistics.median(times)

    empty = of("pass")
    return {"numpy": of("import numpy") - empty, "rmsp": of("import rmsp") - empty}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--program")
    parser.add_argument("--devices", default="host:1")
    parser.add_argument("--calls", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json")
    given = parser.parse_args()
    runtime = rmsp.Runtime(devices=given.devices)
    rounds = []
    for _ in range(given.rounds):
        cpp = of_cpp(given.program, given.devices, given.calls) if given.program else {}
        rounds.append({name: (seconds_of(call, given.calls, end), cpp.get(like))
                       for name, like, call, end in calls_of(runtime)})
    found = {"python": sys.version.split()[0], "numpy": np.__version__, "rmsp": rmsp.__version__,
             "commit": rmsp.__commit__, "devices": [device["name"] for device in runtime.devices()], "calls": {}}
    for name in rounds[0]:
        seconds = statistics.median(timed[name][0] for timed in rounds)
        print(f"{name:<30} Python {1e6 * seconds:7.2f} us", end="")
        found["calls"][name] = {"seconds": seconds}
        if rounds[0][name][1] is not None:
            same = statistics.median(timed[name][1] for timed in rounds)
            found["calls"][name]["cpp_seconds"] = same
            print(f", C++ {1e6 * same:7.2f} us, difference {1e6 * (seconds - same):7.2f} us", end="")
        print()
    found["import_seconds"] = import_seconds()
    print(f"import rmsp {found['import_seconds']['rmsp']:.3f} s, of which NumPy takes "
          f"{found['import_seconds']['numpy']:.3f} s")
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
