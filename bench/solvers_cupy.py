#!/usr/bin/env python3
"""Conjugate gradients on one GPU: mspmv solve, CuPy's cupyx.scipy.sparse.linalg.cg, and a loop over cuSPARSE and cuBLAS
whose scalars stay on the device, on the same matrices, one after the other in one run. Milliseconds an iteration at a
fixed number of iterations, and seconds to a relative residual; the best of some turns, without set-up and copies.

usage: bench/solvers_cupy.py MSPMV [--json FILE] [--iterations N] [--turns N] [--tolerance T] [CASE...]
    MSPMV   the program                    CASE   poisson7:N or poisson27:N, an N x N x N grid, or poisson5:N, N x N

The matrices are written in SciPy's format for mspmv, into a folder that is removed again.
"""
import argparse
import inspect
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import cupy
import numpy
from cupy import cublas
from cupyx import cusparse
from cupyx.scipy import sparse
from cupyx.scipy.sparse.linalg import cg

CASES = ("poisson5:1500", "poisson7:128", "poisson27:100")


def generate(program, case, path):
    """The Laplacian on a grid, zero at its boundary, as mspmv and CuPy get it."""
    kind, size = case.split(":")
    points, of_three = {"poisson5": ("stencil7", False), "poisson7": ("stencil7", True),
                        "poisson27": ("stencil27", True)}.get(kind, (None, False))
    if points is None:
        sys.exit(f"{case}: not a case; poisson5:N, poisson7:N or poisson27:N")
    subprocess.run([program, "generate", points, size, size, size if of_three else "1", "--values", "poisson",
                    "-o", str(path)], check=True, capture_output=True)
    file = numpy.load(path)
    arrays = [cupy.asarray(file[name]) for name in ("data", "indices", "indptr")]
    return sparse.csr_matrix(tuple(arrays), shape=tuple(int(n) for n in file["shape"]))


def best(turns, run):
    seconds = []
    for _ in range(turns + 1):  # the first one warms up
        cupy.cuda.Device().synchronize()
        began = time.perf_counter()
        run()
        cupy.cuda.Device().synchronize()
        seconds.append(time.perf_counter() - began)
    return min(seconds[1:])


def cupy_cg(a, b, iterations, tolerance, callback=None):
    relative = "rtol" if "rtol" in inspect.signature(cg).parameters else "tol"
    return cg(a, b, maxiter=iterations, atol=0.0, callback=callback, **{relative: tolerance})[0]


def library_cg(a, b, iterations, tolerance, look_every=10):
    """cuSPARSE's product and cuBLAS's vectors; the host looks at the residual every few iterations."""
    x, r, p, q = cupy.zeros_like(b), b.copy(), b.copy(), cupy.empty_like(b)
    rho = cublas.dotc(r, r)
    target = tolerance ** 2 * float(rho)
    done = 0
    while done < iterations:
        cusparse.spmv(a, p, q)
        alpha = rho / cublas.dotc(p, q)
        cublas.axpy(alpha, p, x)
        cublas.axpy(-alpha, q, r)
        before, rho = rho, cublas.dotc(r, r)
        cublas.scal(rho / before, p)
        cublas.axpy(1.0, r, p)
        done += 1
        if target > 0 and done % look_every == 0 and float(rho) <= target:
            break
    return x, done


def mspmv_solve(program, matrix, method, iterations, tolerance, folder):
    report = folder / "report.json"
    command = [program, "solve", "--matrix", str(matrix), "--devices", "0", "--rhs", "ones", "--method", method,
               "--json", str(report), "--set", f"solver.max_iterations={iterations}",
               "--set", f"solver.tolerance={float(tolerance)}", "--set", "solver.stagnation=0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 6):  # 6: not converged, as with a fixed number of iterations
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    result = json.loads(report.read_text())["benchmarks"][0]
    return result["solver_iterations"], result["iteration_time"] * 1e-6


def compare(case, arguments, folder):
    matrix = folder / f"{case.replace(':', '-')}.npz"
    a = generate(arguments.mspmv, case, matrix)
    b = cupy.ones(a.shape[0])
    fixed, turns, tolerance = arguments.iterations, arguments.turns, arguments.tolerance
    most = 20000
    rows = []

    def add(who, fixed_seconds, iterations, seconds):
        rows.append({"case": case, "rows": a.shape[0], "nonzeros": int(a.nnz), "solver": who,
                     "ms_an_iteration": fixed_seconds / fixed * 1e3, "iterations": iterations, "seconds": seconds})
        print(f"{case:15} {who:22} {rows[-1]['ms_an_iteration']:9.4f} ms an iteration   "
              f"{iterations:6} iterations, {seconds:8.4f} s to {tolerance:g}", flush=True)

    for method in ("cg", "cg_single", "cg_pipelined", "auto"):
        runs = [mspmv_solve(arguments.mspmv, matrix, method, fixed, 0, folder) for _ in range(turns)]
        to_end = [mspmv_solve(arguments.mspmv, matrix, method, most, tolerance, folder) for _ in range(turns)]
        iterations = to_end[0][0]
        add(f"mspmv {method}", fixed * min(each for _, each in runs), iterations,
            iterations * min(each for _, each in to_end))
    steps = []
    cupy_cg(a, b, most, tolerance, lambda _: steps.append(1))
    add("CuPy cg", best(turns, lambda: cupy_cg(a, b, fixed, 0.0)), len(steps),
        best(turns, lambda: cupy_cg(a, b, most, tolerance)))
    x, done = library_cg(a, b, most, tolerance)
    residual = float(cupy.linalg.norm(b - a @ x) / cupy.linalg.norm(b))
    if not residual <= 2 * tolerance:
        sys.exit(f"{case}: the loop over cuSPARSE and cuBLAS ends with {residual:g}, {tolerance:g} was asked for")
    add("cuSPARSE and cuBLAS", best(turns, lambda: library_cg(a, b, fixed, 0.0)), done,
        best(turns, lambda: library_cg(a, b, most, tolerance)))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("mspmv")
    parser.add_argument("cases", nargs="*", default=CASES)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--iterations", type=int, default=300)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--tolerance", type=float, default=1e-8)
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for case in arguments.cases:
            rows += compare(case, arguments, pathlib.Path(folder))
    if arguments.json:
        device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
        about = {"gpu": device, "cupy": cupy.__version__, "cuda": cupy.cuda.runtime.runtimeGetVersion(),
                 "iterations": arguments.iterations, "tolerance": arguments.tolerance, "turns": arguments.turns}
        arguments.json.write_text(json.dumps({"context": about, "benchmarks": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
