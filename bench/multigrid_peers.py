#!/usr/bin/env python3
"""pyamg on the cases that bench_multigrid wrote (--matrices FOLDER), with the same strength, smoother, sweeps, size of
the last matrix, right-hand side and tolerance: PMIS with classical and with direct interpolation, and smoothed
aggregation. Iterations are what is compared; its seconds are those of Python.

usage: bench/multigrid_peers.py FOLDER RESULTS [--json FILE]
    FOLDER   of --matrices          RESULTS  the JSON of bench_multigrid, whose cases are taken
"""
import argparse
import json
import pathlib
import sys
import time

import numpy
import pyamg
import scipy.sparse

MOST = 1000
LAST_ROWS = 256


def l1_jacobi(level_matrix):
    inverse = 1 / numpy.asarray(abs(scipy.sparse.csr_matrix(level_matrix)).sum(axis=1)).ravel()

    def smooth(A, x, b):
        x += inverse * (b - A @ x)
    return smooth


def with_smoother(hierarchy):
    for level in hierarchy.levels[:-1]:
        level.presmoother = level.postsmoother = l1_jacobi(level.A)
    return hierarchy


def conjugate_gradients(A, b, M, tolerance):
    """Iterations to |b - A x| <= tolerance |b|; None: not in MOST."""
    x = numpy.zeros_like(b)
    r = b.copy()
    target = tolerance * numpy.linalg.norm(b)
    z = M @ r
    p = z.copy()
    rho = r @ z
    for iteration in range(1, MOST + 1):
        q = A @ p
        alpha = rho / (p @ q)
        x += alpha * p
        r -= alpha * q
        if numpy.linalg.norm(r) <= target:
            return iteration
        z = M @ r
        rho, before = r @ z, rho
        p = z + rho / before * p
    return None


def gmres(A, b, M, tolerance):
    """The same by GMRES of 30 vectors, preconditioned from the right."""
    residuals = []
    pyamg.krylov.fgmres(A, b, tol=tolerance, restart=30, maxiter=MOST // 30, M=M, residuals=residuals)
    target = tolerance * numpy.linalg.norm(b)
    return next((i for i, residual in enumerate(residuals) if residual <= target), None)


def classical(A, interpolation):
    return pyamg.ruge_stuben_solver(A, strength=("classical", {"theta": 0.25}), CF="PMIS",
                                    interpolation=interpolation, max_coarse=LAST_ROWS, max_levels=25,
                                    coarse_solver="pinv")


def smoothed_aggregation(A, near):
    strength = [("symmetric", {"theta": 0.08 * 0.5 ** level}) for level in range(25)]
    if near is not None:
        A = A.tobsr((3, 3))
    return pyamg.smoothed_aggregation_solver(A, B=near, strength=strength, aggregate="standard", smooth="jacobi",
                                             improve_candidates=None, max_coarse=LAST_ROWS, max_levels=25,
                                             coarse_solver="pinv")


def measured(folder, case, method, tolerance):
    stem = folder / case.replace(":", "-")
    A = scipy.sparse.load_npz(f"{stem}.npz").tocsr()
    A.sort_indices()
    b = numpy.load(f"{stem}.b.npy")
    near = pathlib.Path(f"{stem}.near.npy")
    near = numpy.load(near).reshape(A.shape[0], 6) if near.exists() else None
    ways = {"smoothed aggregation": lambda: smoothed_aggregation(A, near)}
    if near is None:
        ways["PMIS, classical interpolation"] = lambda: classical(A, "classical")
        ways["PMIS, direct interpolation"] = lambda: classical(A, "direct")
    for name, make in ways.items():
        began = time.perf_counter()
        hierarchy = with_smoother(make())
        setup = time.perf_counter() - began
        solve = conjugate_gradients if method == "cg" else gmres
        began = time.perf_counter()
        iterations = solve(A, b, hierarchy.aspreconditioner(cycle="V"), tolerance)
        print(f"{case:16} pyamg {name:30} {len(hierarchy.levels)} levels, {hierarchy.operator_complexity():.2f}, "
              f"{iterations} iterations", file=sys.stderr)
        yield {"name": f"{case}/pyamg/{name}", "case": case, "preconditioner": name, "method": method,
               "tolerance": tolerance, "rows": A.shape[0], "nonzeros": int(A.nnz),
               "hierarchy": {"levels": [{"rows": level.A.shape[0], "nonzeros": int(level.A.nnz)}
                                        for level in hierarchy.levels],
                             "operator_complexity": hierarchy.operator_complexity(),
                             "grid_complexity": hierarchy.grid_complexity()},
               "setup_seconds": {"least": setup}, "solve_seconds": {"least": time.perf_counter() - began},
               "solver_iterations": iterations}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path, help="file; default: standard output")
    options = parser.parse_args()
    cases = {}
    for found in json.loads(options.results.read_text())["benchmarks"]:
        cases[found["case"]] = (found["method"], found["tolerance"])
    benchmarks = [found for case, (method, tolerance) in cases.items()
                  for found in measured(options.folder, case, method, tolerance)]
    text = json.dumps({"context": {"pyamg": pyamg.__version__, "scipy": scipy.__version__,
                                   "numpy": numpy.__version__}, "benchmarks": benchmarks}, indent=2) + "\n"
    if options.json:
        options.json.write_text(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
