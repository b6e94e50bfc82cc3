"""Matrices and vectors in GPU memory, where there are a GPU and a package that has arrays on it."""

import inspect

import numpy as np
import pytest
import scipy.sparse as sp
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


def test_out_in_gpu_memory(runtime, arrays):
    a = random_matrix(300, 200)
    A = rmsp.Matrix(a, runtime=runtime, transposed=True)
    x, y = np.arange(200.0), np.arange(300.0)
    out = arrays.to(y)
    assert A.multiply(arrays.to(x), out=out, alpha=2, beta=-1) is out and close(arrays.back(out), 2 * (a @ x) - y)
    back = arrays.to(x)
    A.T.multiply(out, out=back)
    assert close(arrays.back(back), a.T @ (2 * (a @ x) - y))
    with pytest.raises(ValueError, match="out has to be a contiguous vector there"):
        A.multiply(arrays.to(x), out=np.zeros(300))
    with pytest.raises(ValueError, match="out has to be a contiguous vector there"):
        A.multiply(arrays.to(x), out=arrays.to(np.zeros(600))[::2])
    with pytest.raises(ValueError, match="overlap"):
        square = rmsp.Matrix(poisson(4), runtime=runtime)
        z = arrays.to(np.ones(16))
        square.multiply(z, out=z)


def test_blocks_of_vectors(runtime, arrays):
    a = random_matrix(300, 200)
    A = rmsp.Matrix(a, runtime=runtime, transposed=True)
    x, r = np.arange(600.0).reshape(200, 3), np.arange(600.0).reshape(300, 2)
    y = A @ arrays.to(x)
    assert isinstance(y, type(arrays.to(x))) and close(arrays.back(y), a @ x)
    assert close(arrays.back(A @ arrays.to(np.ascontiguousarray(x.T)).T), a @ x)
    assert close(arrays.back(A.T @ arrays.to(r)), a.T @ r)
    assert arrays.back(A @ arrays.to(np.ones((200, 0)))).shape == (300, 0)
    with pytest.raises(ValueError, match="201 rows where 200 are needed"):
        A @ arrays.to(np.ones((201, 2)))


def test_matrices_go_to_the_host_and_back(runtime):
    a = random_matrix(300, 200)
    x = np.arange(200.0)
    host = rmsp.Runtime(devices="host:2x1")
    there = rmsp.Matrix(a, runtime=host).to(runtime)
    assert close(there @ x, a @ x) and (there.tocsr() != a).nnz == 0
    assert close(there.to(host) @ x, a @ x)


def test_a_chain_that_only_streams_order(runtime, arrays):
    a = poisson(60)
    A = rmsp.Matrix(a, runtime=runtime)
    x = np.arange(3600.0) / 3600
    y, expected = arrays.to(x), x
    for _ in range(30):
        y = 0.1 * (A @ y) + y
        expected = 0.1 * (a @ expected) + expected
    assert close(arrays.back(y), expected)


class CupyMatrices:
    def __init__(self):
        self.sparse = pytest.importorskip("cupyx.scipy.sparse")
        self.arrays = Cupy()

    def all(self, a):
        matrix = self.sparse.csr_matrix(sp.csr_matrix(a))
        return [matrix, matrix.tocsc(), matrix.tocoo()]

    def values(self, matrix):
        return matrix.data


class TorchMatrices:
    def __init__(self):
        self.arrays = Torch()

    def all(self, a):
        dense = self.arrays.package.from_numpy(a.toarray()).cuda()
        return [dense.to_sparse_csr(), dense.to_sparse_csc(), dense.to_sparse_coo().coalesce()]

    def values(self, matrix):
        return matrix.values()


@pytest.mark.parametrize("kind", [CupyMatrices, TorchMatrices])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_matrices(runtime, kind, dtype):
    there = kind()
    a = random_matrix(300, 200, dtype=dtype)
    a.sort_indices()
    x = np.arange(200, dtype=dtype)
    for matrix in there.all(a):
        A = rmsp.Matrix(matrix, runtime=runtime, transposed=True)
        assert A.shape == a.shape and A.nnz == a.nnz and A.dtype == dtype
        assert close(A @ x, a @ x)
        y = A @ there.arrays.to(x)
        assert close(there.arrays.back(y), a @ x)
        assert close(A.T @ np.ones(300, dtype), a.T @ np.ones(300, dtype))
    A = rmsp.Matrix(there.all(a)[0], runtime=runtime)
    A.update_values(2 * there.values(there.all(a)[0]))
    assert close(A @ x, 2 * (a @ x))
    A.update_values(a.data)
    assert close(A @ x, a @ x)


@pytest.mark.parametrize("kind", [CupyMatrices, TorchMatrices])
def test_matrices_solve_and_multiply(runtime, kind):
    there = kind()
    a = poisson(20)
    A = rmsp.Matrix(there.all(a)[0], runtime=runtime)
    b = np.ones(400)
    result = linalg.solve(A, there.arrays.to(b), method="cg", preconditioner="jacobi")
    assert result.converged and np.allclose(a @ there.arrays.back(result.x), b, atol=1e-5)
    if kind is CupyMatrices:
        for matrix in there.all(a):  # of columns and coordinates, too
            product = A @ matrix
            assert isinstance(product, there.sparse.csr_matrix) and product.indices.device == matrix.data.device
            assert close(product.get().toarray(), (a @ a).toarray())
            assert close((product @ there.arrays.to(b)).get(), a @ (a @ b))  # cupyx goes on with it
            # and so do we, with what never was on the host
            assert close(rmsp.Matrix(product, runtime=runtime) @ b, a @ (a @ b))
        nothing = A @ there.sparse.csr_matrix((400, 7))
        assert nothing.shape == (400, 7) and nothing.nnz == 0


@pytest.mark.parametrize("blocksize", [(1, 1), (2, 3)])
def test_values_of_blocks(runtime, arrays, blocksize):
    a = random_matrix(12, 18, density=0.3)
    blocks = sp.bsr_array(a, blocksize=blocksize)
    A = rmsp.Matrix(blocks, runtime=runtime)
    A.update_values(arrays.to(2 * blocks.data.reshape(-1)))
    assert close(A @ np.arange(18.0), 2 * (a @ np.arange(18.0)))


def test_matrices_of_several_gpus():
    torch = pytest.importorskip("torch")
    if "CUDA" not in rmsp.__features__ or torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    a = poisson(50)
    x = np.arange(2500.0)
    runtime = rmsp.Runtime(devices="0,1")
    matrix = torch.sparse_csr_tensor(torch.tensor(a.indptr), torch.tensor(a.indices), torch.tensor(a.data), a.shape)
    for where in ("cuda:0", "cuda:1"):
        A = rmsp.Matrix(matrix.to(where), runtime=runtime)
        for to in ("cuda:0", "cuda:1"):
            y = A @ torch.tensor(x, device=to)
            assert y.device == torch.device(to) and close(y.cpu().numpy(), a @ x)


def test_cupyx_solvers_take_our_operator(runtime):
    cupy = pytest.importorskip("cupy")
    cula = pytest.importorskip("cupyx.scipy.sparse.linalg")
    a = poisson(20)
    A = rmsp.Matrix(a, runtime=runtime)
    operator = cula.LinearOperator(A.shape, matvec=lambda x: A @ x.ravel(), dtype=A.dtype)
    for solver in (cula.cg, cula.gmres):
        # CuPy renamed the tolerance as SciPy did.
        name = "rtol" if "rtol" in inspect.signature(solver).parameters else "tol"
        x, info = solver(operator, cupy.ones(400), **{name: 1e-8})
        assert info == 0 and np.allclose(a @ x.get(), 1, atol=1e-5)


def test_host_devices_refuse_gpu_memory(runtime, arrays):
    host = rmsp.Runtime(devices="host:1")
    A = rmsp.Matrix(poisson(4), runtime=host)
    with pytest.raises(ValueError, match="in GPU memory, and the runtime's devices are the host's"):
        A @ arrays.to(np.ones(16))
