"""Failures are Python's exceptions, with words that name what is wrong."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import poisson, random_matrix

import rmsp


@pytest.mark.parametrize("make, kind, words", [
    (lambda: rmsp.Matrix(np.eye(3)), ValueError, "dense array"),
    (lambda: rmsp.Matrix("matrix.mtx"), TypeError, "str is no sparse matrix"),
    (lambda: rmsp.Matrix(sp.eye_array(3, dtype=complex, format="csr")), ValueError, "complex128"),
    (lambda: rmsp.Matrix(([1.0], [0], [0, 1])), ValueError, "give shape="),
    (lambda: rmsp.Matrix(([1.0], [0], [0, 1]), shape=(2, 2)), ValueError, "2 entries where 3 are needed"),
    (lambda: rmsp.Matrix(([1.0], [5], [0, 1]), shape=(1, 2)), ValueError, "5"),
    (lambda: rmsp.Matrix(([1.0, 1.0], [0], [0, 1]), shape=(1, 1)), None, ""),
    (lambda: rmsp.Matrix(([1.0], [0, 1], [0, 2]), shape=(1, 2)), ValueError, "1 are needed"),
    (lambda: rmsp.Matrix(([1.0], [0.5], [0, 1]), shape=(1, 1)), ValueError, "indices have type float64"),
    (lambda: rmsp.Matrix(([], [], [0]), shape=(-1, 2)), ValueError, "-1 x 2"),
    (lambda: rmsp.Matrix(([1.0], [0]), shape=(1, 1)), ValueError, "2 arrays"),
    (lambda: rmsp.Matrix(([1.0], [0], [0, 1]), shape=(1, 1), format="ell"), ValueError, '"ell"'),
    (lambda: rmsp.Matrix(poisson(3), shape=(3, 3)), ValueError, "shape"),
    (lambda: rmsp.Matrix(poisson(3), spvm="auto"), ValueError, "spvm"),
    (lambda: rmsp.Matrix(poisson(3), iterations=5), ValueError, "run.iterations is for runs of mspmv"),
    (lambda: rmsp.linalg.solve(poisson(3), np.ones(9), output="x.npy"), ValueError, "solver.output is for runs"),
    (lambda: rmsp.Matrix(poisson(3), spmv="fastest"), ValueError, "fastest"),
    (lambda: rmsp.Matrix(poisson(3), determinism=1), ValueError, "determinism"),
    (lambda: rmsp.Matrix(poisson(3), borrow=True, dtype=np.float32), ValueError, "borrow=True"),
    (lambda: rmsp.Runtime(devices="hot:2"), ValueError, "hot:2"),
    (lambda: rmsp.Runtime(device="host:2"), ValueError, "runtime.devices"),
    (lambda: rmsp.Runtime(devices="host:2", topology="missing.toml"), OSError, "missing.toml"),
])
def test_making(make, kind, words):
    if kind is None:
        make()
        return
    with pytest.raises(kind) as caught:
        make()
    assert words in str(caught.value)


@pytest.mark.parametrize("x, words", [
    (np.ones(9), "9 rows where 30 are needed"),
    (np.ones(31), "31 entries where 30 are needed"),
    (np.ones((31, 2)), "31 rows"),
    (np.ones((30, 1, 1)), "3 dimensions"),
    (1.0, "0 dimensions"),
    (np.array(["a"] * 30), "no numbers"),
])
def test_operands(x, words):
    A = rmsp.Matrix(random_matrix(20, 30))
    with pytest.raises(ValueError) as caught:
        A @ x
    assert "needed" in words and "needed" in str(caught.value) or words in str(caught.value)


def test_memory_error():
    """In a process whose memory ends where the matrix would be copied."""
    program = """
import resource
import numpy as np, rmsp
runtime = rmsp.Runtime()
n = 10_000_000
arrays = np.ones(n), np.zeros(n, np.int32), np.array([0, n], np.int32)
kept = rmsp.Matrix(arrays, shape=(1, 1), runtime=runtime)  # starts all threads
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (8 << 20), resource.RLIM_INFINITY))
try:
    rmsp.Matrix(arrays, shape=(1, 1), runtime=runtime)
except MemoryError as error:
    print("caught", error)
"""
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert output.stdout.startswith("caught"), output


def test_matrices_outlive_nothing_they_need():
    runtime = rmsp.Runtime(devices="host:2x1")
    A = rmsp.Matrix(poisson(4), runtime=runtime)
    del runtime
    assert (A @ np.zeros(16) == 0).all()
