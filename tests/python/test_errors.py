"""Failures are Python's exceptions, with words that name what is wrong."""

import subprocess
import sys
import types

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


class _Tensor:
    """What torch says of a vector in the memory of a GPU."""

    __module__ = "torch"
    is_cuda, ndim = True, 1

    def __init__(self, array, dtype):
        self._array, self.dtype, self.shape = array, dtype, array.shape

    def is_contiguous(self):
        return True

    def data_ptr(self):
        return self._array.ctypes.data

    def numel(self):
        return self._array.size

    def get_device(self):
        return 3

    def new_empty(self, size):
        return _Tensor(np.empty(size), self.dtype)

    __dlpack__ = None


@pytest.fixture
def torch(monkeypatch):
    asked = []
    streams = types.SimpleNamespace(_cuda_getCurrentRawStream=lambda device: asked.append(device) or 0)
    module = types.SimpleNamespace(float64="torch.float64", float32="torch.float32", _C=streams, asked=asked)
    monkeypatch.setitem(sys.modules, "torch", module)
    monkeypatch.setattr("rmsp._gpu.packages", {})
    return module


def test_vectors_of_gpus_are_refused_by_host_devices(torch):
    A = rmsp.Matrix(poisson(3), runtime=rmsp.Runtime(devices="host:1"))
    x = _Tensor(np.ones(9), torch.float64)
    for product in (lambda: A @ x, lambda: A.multiply(x), lambda: A.multiply(x, out=x.new_empty(9))):
        with pytest.raises(ValueError, match="x and out are"):
            product()
    assert torch.asked == [3, 3, 3], "the streams of the results"


def test_vectors_of_gpus_have_the_type_of_the_matrix(torch):
    A = rmsp.Matrix(poisson(3), runtime=rmsp.Runtime(devices="host:1"))
    for dtype, words in ((torch.float32, "type float32"), ("torch.int8", "type int8")):
        with pytest.raises(ValueError, match=words):
            A @ _Tensor(np.ones(9), dtype)
        with pytest.raises(ValueError, match=f"out has 1 dimensions and {words}"):
            A.multiply(_Tensor(np.ones(9), torch.float64), out=_Tensor(np.ones(9), dtype))
    with pytest.raises(ValueError, match="out has to be a contiguous vector there"):
        A.multiply(_Tensor(np.ones(9), torch.float64), out=np.ones(9))
    assert torch.asked == []
