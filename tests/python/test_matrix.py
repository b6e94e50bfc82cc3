"""Products equal those of SciPy, for each format, type and kind of operand."""

import itertools
from xml.etree import ElementTree

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import close, poisson, random_matrix

import rmsp
from rmsp import _html

FORMATS = ["csr", "csc", "coo", "bsr", "dia", "lil"]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_formats_and_types(format, dtype, kind):
    a = (random_matrix(60, 48) * 10).astype(dtype).asformat(format)
    if kind == "matrix":
        a = getattr(sp, f"{format}_matrix")(a)
    A = rmsp.Matrix(a)
    assert A.shape == a.shape and A.nnz == (a.nnz if format != "dia" else a.tocsr().nnz)
    assert A.dtype == (np.float32 if dtype == np.float32 else np.float64)
    rng = np.random.default_rng(2)
    x, r, X = (rng.random(shape).astype(A.dtype) for shape in (48, 60, (48, 3)))
    for ours, theirs in [(A @ x, a @ x), (A.T @ r, a.T @ r), (A @ X, a @ X), (r @ A, a.T @ r), (A.dot(x), a @ x)]:
        assert ours.dtype == A.dtype and close(ours, theirs)


@pytest.mark.parametrize("pointers, indices", [*itertools.product([np.int32, np.int64], repeat=2)])
def test_index_types_and_tuples(pointers, indices):
    a = random_matrix(30, 40)
    parts = (a.data, a.indices.astype(indices), a.indptr.astype(pointers))
    x = np.arange(40.0)
    assert close(rmsp.Matrix(parts, shape=a.shape) @ x, a @ x)
    c = a.tocsc()
    parts = (c.data, c.indices.astype(indices), c.indptr.astype(pointers))
    assert close(rmsp.Matrix(parts, shape=a.shape, format="csc") @ x, a @ x)
    o = a.tocoo()
    assert close(rmsp.Matrix((o.data, (o.row, o.col)), shape=a.shape) @ x, a @ x)


@pytest.mark.parametrize("rows, cols", [(0, 0), (0, 5), (5, 0), (1, 1), (1, 9), (9, 1)])
def test_small_and_empty(rows, cols):
    a = random_matrix(rows, cols, density=0.5)
    A = rmsp.Matrix(a)
    x, r = np.ones(cols), np.ones(rows)
    assert close(A @ x, a @ x) and close(A.T @ r, a.T @ r) and close(A @ np.ones((cols, 2)), a @ np.ones((cols, 2)))


def test_operands_of_all_kinds():
    a = random_matrix(20, 30)
    A = rmsp.Matrix(a)
    x = np.arange(30.0)
    wide = np.arange(60.0).reshape(30, 2)
    for operand in (x.astype(int), list(x), x[::-1], wide[:, 1], wide, np.asfortranarray(wide), wide[:, :1],
                    x + 1j * x[::-1], x > 3):
        assert close(A @ operand, a @ np.asarray(operand))
    assert close(wide.T @ A.T, (a @ wide).T)
    assert close(A.T.T @ x, a @ x)
    assert close((x @ A.T).ravel(), a @ x)


def test_multiply_into_out():
    a = random_matrix(20, 30)
    A = rmsp.Matrix(a)
    x, y = np.arange(30.0), np.ones(20)
    expected = 2 * (a @ x) - 3 * y
    assert A.multiply(x, out=y, alpha=2, beta=-3) is y and close(y, expected)
    y[:] = np.nan  # not read where beta is 0
    assert close(A.multiply(x, out=y), a @ x)
    assert close(A.T.multiply(np.ones(20)), a.T @ np.ones(20))
    both = np.zeros(50)
    for out in (np.ones(20, np.float32), np.ones(19), np.ones(40)[::2], np.ones((20, 1)), [0] * 20, both[30:40]):
        with pytest.raises(ValueError, match="out"):
            A.multiply(x, out=out)
    with pytest.raises(ValueError, match="overlap"):
        A.multiply(both[:30], out=both[20:40])
    with pytest.raises(ValueError, match="beta without out"):
        A.multiply(x, beta=1)
    frozen = np.ones(20)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        A.multiply(x, out=frozen)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_products(dtype):
    a, b = random_matrix(40, 50, dtype=dtype), random_matrix(50, 30, seed=2, dtype=dtype)
    A = rmsp.Matrix(a)
    for product in (A @ b, A @ b.tocoo(), A @ rmsp.Matrix(b), sp.csr_array(a) @ rmsp.Matrix(b)):
        assert product.format == "csr" and product.dtype == dtype and product.shape == (40, 30)
        product.check_format()
        assert close(product.toarray(), (a @ b).toarray())
    with pytest.raises(ValueError, match="B has 40 rows where 50 are needed"):
        A @ rmsp.Matrix(a)
    with pytest.raises(ValueError, match="transposed"):
        A.T @ b


def test_update_values_and_diagonal():
    a = poisson(8)
    A = rmsp.Matrix(a)
    assert close(A.diagonal(), a.diagonal())
    b = a.copy()
    b.data = np.random.default_rng(3).random(a.nnz)
    A.update_values(b.data)
    assert close(A @ np.ones(64), b @ np.ones(64)) and close(A.diagonal(), b.diagonal())
    with pytest.raises(ValueError, match="288 are needed"):
        A.update_values(b.data[1:])
    with pytest.raises(ValueError, match="no values"):
        A.update_values()
    with pytest.raises(ValueError):
        rmsp.Matrix(random_matrix(3, 4)).diagonal()


def test_unsorted_and_repeated_entries():
    o = random_matrix(40, 40).tocoo()
    order = np.random.default_rng(4).permutation(o.nnz)
    shuffled = sp.coo_array((o.data[order], (o.row[order], o.col[order])), shape=o.shape)
    x = np.arange(40.0)
    assert close(rmsp.Matrix(shuffled) @ x, o @ x)
    assert close(rmsp.Matrix(shuffled, unsorted="split") @ x, o @ x)
    with pytest.raises(ValueError, match="sorted"):
        rmsp.Matrix(shuffled, unsorted="refuse")
    assert rmsp.Matrix(([1.0, 2.0], ([0, 0], [0, 0])), shape=(1, 1)) @ np.ones(1) == [3]


def test_arrays_longer_than_the_pointers_say():
    a = random_matrix(10, 10)
    long = (np.append(a.data, 7.0), np.append(a.indices, 0), a.indptr)
    assert close(rmsp.Matrix(long, shape=a.shape) @ np.ones(10), a @ np.ones(10))


def test_plan_and_report():
    A = rmsp.Matrix(poisson(8))
    plan = A.plan()
    assert (plan.rows, plan.cols, plan.nnz, plan.format, plan.devices) == (64, 64, 288, "csr", 2)
    assert sum(shard.nnz for shard in plan.shards) == 288
    assert str(plan).rstrip() in repr(A) and "csr" in repr(A.T)
    A = rmsp.Matrix(poisson(8), runtime=rmsp.Runtime(limit_gbs=10))  # given, so that it is not measured
    report = A.measure(iterations=2, warmup=1)
    assert report["benchmarks"][0]["iterations"] == 2 and report == A.report()
    shown = A._repr_html_()
    assert "<table>" in shown and "of the bandwidth limit" in shown and shown.count("<circle") == 1
    assert A.runtime.peak_gflops("double") == 0  # nothing is kept, so the roof is the bandwidth alone
    for vectors in ("host", "rows"):
        A.measure(np.ones(64), vectors=vectors, iterations=1, warmup=0)
    with pytest.raises(ValueError, match='vectors is "gpu"'):
        A.measure(vectors="gpu")


@pytest.mark.parametrize("options, attribute", [
    ({"spmv": "csr-reference"}, lambda p: all(s.kernel == "csr-reference" for s in p.shards)),
    ({"mode": "streamed"}, lambda p: p.mode == "streamed"),
    ({"devices": 1}, lambda p: p.devices == 1),
    ({"determinism": "run", "transposed": True}, lambda p: p.rows == 64),
])
def test_options(options, attribute):
    a = poisson(8)
    A = rmsp.Matrix(a, **options)
    assert attribute(A.plan()) and close(A @ np.ones(64), a @ np.ones(64))


@pytest.mark.parametrize("peak", [0, 200, 1e9])
def test_roofline(peak):
    points = [("a <name>", 0.1, 3.0), ("b", 0.2, 15.0)]
    svg = ElementTree.fromstring(_html.roofline(points, 100, peak))
    roof = [tuple(map(float, p.split(","))) for p in svg.find("{*}polyline").get("points").split()]
    dots = [(float(c.get("cx")), float(c.get("cy"))) for c in svg.findall("{*}circle")]
    assert len(dots) == 2
    (x0, y0), (x1, y1) = roof[:2]
    assert y1 < y0  # y grows downwards
    octave = dots[1][0] - dots[0][0]  # along x; the roof rises by as many octaves as it is long
    octaves = np.log2((2 if peak == 200 else 0.8) / 0.025)
    assert abs((x1 - x0) / octave - octaves) < 0.01
    for (x, y), (_, intensity, gflops) in zip(dots, points):
        above = y - (y0 + (x - x0) * (y1 - y0) / (x1 - x0))
        assert abs(above * octaves / (y0 - y1) - np.log2(100 * intensity / gflops)) < 0.01
    assert len(roof) == (3 if peak == 200 else 2)  # a peak that is far away is not shown
    assert peak != 200 or roof[2][1] == roof[1][1]


def test_blocks_of_vectors_of_any_order():
    a = random_matrix(60, 48)
    A = rmsp.Matrix(a)
    x = np.arange(48.0 * 7).reshape(48, 7)
    for operand in (x, np.asfortranarray(x), x[::-1], x[:, ::2], x.astype(np.float32), x[:, :0], 1j * x):
        y = A @ operand
        assert close(y, a @ operand) and y.shape == (60, operand.shape[1])
    assert close(A.T @ np.ones((60, 3)), a.T @ np.ones((60, 3)))
    nothing = rmsp.Matrix(sp.csr_array((0, 5)))
    assert (nothing @ np.ones((5, 2))).shape == (0, 2) and close(nothing.T @ np.ones((0, 2)), np.zeros((5, 2)))
    with pytest.raises(ValueError, match="47 rows where 48 are needed"):
        A @ x[:-1]


def test_runtimes():
    runtime = rmsp.Runtime(devices="host:3x1", weights=[1, 1, 2], bind="none")
    assert len(runtime.devices()) == 3 and runtime.transport().startswith("shared")
    assert rmsp.Matrix(poisson(8), runtime=runtime).plan().devices == 3
    runtime.synchronize()
    assert len(runtime.measure_limits()) == 3
    assert rmsp.default_runtime() is rmsp.default_runtime() is rmsp.Matrix(poisson(3)).runtime


def test_torch():
    torch = pytest.importorskip("torch")
    a = random_matrix(20, 30)
    x = torch.arange(30, dtype=torch.float64)
    csr = torch.sparse_csr_tensor(*map(torch.from_numpy, (a.indptr, a.indices, a.data)), a.shape)
    for tensor in (csr, csr.to_sparse_coo(), csr.to_sparse_csc()):
        y = rmsp.Matrix(tensor) @ x
        assert isinstance(y, torch.Tensor) and close(y.numpy(), a @ x.numpy())


class Tensor:
    """An array of a package that speaks DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_dlpack():
    a = random_matrix(20, 30)
    y = rmsp.Matrix(a) @ Tensor(np.arange(30.0))
    assert close(np.from_dlpack(y), a @ np.arange(30.0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks(dtype):
    rng = np.random.default_rng(3)
    blocks = sp.bsr_array((rng.standard_normal((4, 2, 3)).astype(dtype), [1, 0, 2, 1], [0, 2, 2, 4]), shape=(6, 9))
    A = rmsp.Matrix(blocks)
    x = np.arange(9, dtype=dtype)
    assert A.nnz == 24 and A.dtype == dtype and close(A @ x, blocks @ x)
    assert close(A.T @ np.ones(6, dtype), blocks.T @ np.ones(6, dtype))
    A.update_values(2 * blocks.data)
    assert close(A @ x, 2 * (blocks @ x))
    streamed = rmsp.Matrix(blocks, mode="streamed")
    assert close(streamed @ x, blocks @ x)
    with pytest.raises(ValueError, match="borrow"):
        rmsp.Matrix(blocks, borrow=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_goes_to_other_devices(form, dtype):
    a = random_matrix(60, 40, dtype=dtype)
    x = np.arange(40, dtype=dtype)
    A = rmsp.Matrix(a.asformat(form))
    B = A.to(rmsp.Runtime(devices="host:3x1"), transposed=True, spmv="csr-reference")
    assert B.plan().devices == 3 and B.plan().shards[0].kernel == "csr-reference"
    assert (B.shape, B.nnz, B.dtype) == (A.shape, A.nnz, A.dtype)
    del A
    assert close(B @ x, a @ x) and close(B.T @ np.ones(60, dtype), a.T @ np.ones(60, dtype))
    back = B.tocsr()
    assert back.dtype == dtype and (back != a).nnz == 0
    B.update_values(2 * back.data)
    assert close(B @ x, 2 * (a @ x)) and close((B.tocsr() @ x), 2 * (a @ x))


def test_goes_nowhere_by_wrong_options():
    A = rmsp.Matrix(random_matrix(6, 4))
    with pytest.raises(ValueError, match="cannot be streamed"):
        A.to(A.runtime, mode="streamed")
    with pytest.raises(ValueError, match='nearest known key is "partition.devices"'):
        A.to(A.runtime, device=1)
    with pytest.raises(TypeError):
        A.to(None)
