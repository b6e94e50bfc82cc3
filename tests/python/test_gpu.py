"""Vectors in GPU memory, where there are a GPU and a package that has arrays on it."""

import numpy as np
import pytest
import scipy.sparse.linalg as spla
from conftest import close, poisson, random_matrix

import rmsp
from rmsp import linalg


@pytest.fixture(scope="module")
def runtime():
    if "CUDA" not in rmsp.__features__:
        pytest.skip("librmsp was built without CUDA")
    try:
        return rmsp.Runtime(devices="0")
    except RuntimeError as error:
        pytest.skip(str(error))


class Cupy:
    def __init__(self):
        self.package = pytest.importorskip("cupy")

    def to(self, x):
        return self.package.asarray(x)

    def back(self, x):
        return x.get()


class Torch:
    def __init__(self):
        self.package = pytest.importorskip("torch")

    def to(self, x):
        return self.package.from_numpy(x).cuda()

    def back(self, x):
        return x.cpu().numpy()


@pytest.fixture(params=[Cupy, Torch])
def arrays(request, runtime):
    return request.param()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products(runtime, arrays, dtype):
    a = random_matrix(300, 200, dtype=dtype)
    A = rmsp.Matrix(a, runtime=runtime, transposed=True)
    x, r = np.arange(200, dtype=dtype), np.arange(300, dtype=dtype)
    y = A @ arrays.to(x)
    assert isinstance(y, type(arrays.to(x))) and close(arrays.back(y), a @ x)
    assert close(arrays.back(A.T @ arrays.to(r)), a.T @ r)
    assert close(arrays.back(A @ (2 * arrays.to(x))), 2 * (a @ x))  # what the stream has yet to compute
    assert close(arrays.back(A @ arrays.to(np.repeat(x, 2))[::2]), a @ x)
    with pytest.raises(ValueError, match="vectors of the matrix's type"):
        A @ arrays.to(x.astype(np.int32))
    with pytest.raises(ValueError, match="301 entries"):
        A.T @ arrays.to(np.ones(301, dtype))


def test_solves(runtime, arrays):
    a = poisson(20)
    A = rmsp.Matrix(a, runtime=runtime)
    b = np.ones(400)
    result = linalg.solve(A, arrays.to(b), method="cg", preconditioner="jacobi")
    assert result.converged and np.allclose(a @ arrays.back(result.x), b, atol=1e-5)
    again = linalg.solve(A, arrays.to(b), method="cg", x0=result.x)
    assert again.iterations <= 1
    x, info = linalg.gmres(A, arrays.to(b), rtol=1e-8)
    assert info == 0 and np.allclose(a @ arrays.back(x), b, atol=1e-5)


def test_host_vectors_and_scipy(runtime):
    a = poisson(20)
    A = rmsp.Matrix(a, runtime=runtime)
    x, info = spla.cg(A.aslinearoperator(), np.ones(400), rtol=1e-8)
    assert info == 0 and np.allclose(a @ x, 1, atol=1e-5)


def test_matrices_in_gpu_memory_are_refused(runtime):
    sparse = pytest.importorskip("cupyx.scipy.sparse")
    with pytest.raises(ValueError, match=r"A\.get\(\)"):
        rmsp.Matrix(sparse.csr_matrix(poisson(4)), runtime=runtime)
    torch = pytest.importorskip("torch")
    with pytest.raises(ValueError, match=r"A\.cpu\(\)"):
        rmsp.Matrix(torch.eye(4, device="cuda").to_sparse_csr(), runtime=runtime)
