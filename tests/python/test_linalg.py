"""Solvers, by SciPy's signatures and by our own; SciPy's solvers and other packages on our operator."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from conftest import close, poisson, random_matrix

import rmsp
from rmsp import linalg


def nonsymmetric(n=200):
    return sp.csr_array(random_matrix(n, n, density=0.02) * 0.5 + 4 * sp.eye_array(n))


SQUARE = ["cg", "bicg", "bicgstab", "cgs", "gmres", "minres"]


@pytest.mark.parametrize("name", SQUARE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_as_scipy(name, dtype):
    a = poisson(10, dtype)
    b = np.arange(100, dtype=dtype)
    x, info = getattr(linalg, name)(rmsp.Matrix(a), b, rtol=1e-4)
    assert info == 0 and x.dtype == dtype and x.shape == (100,)
    assert np.linalg.norm(b - a @ x) <= 1.01e-4 * np.linalg.norm(b)
    y, info = getattr(linalg, name)(a, b[:, None], x, rtol=1e-4, M="jacobi")  # of SciPy's matrix, from the solution
    assert info == 0 and np.allclose(x, y, rtol=1e-2)
    cycles = {"restart": 2} if name == "gmres" else {}
    x, info = getattr(linalg, name)(rmsp.Matrix(a), b, rtol=1e-6, maxiter=1, **cycles)
    assert info == (2 if name == "gmres" else 1)


def test_zero_right_hand_side():
    x, info = linalg.cg(poisson(4), np.zeros(16))
    assert info == 0 and not x.any()


def test_absolute_tolerance_and_information():
    a = poisson(10)
    b = np.ones(100)
    x, info = linalg.cg(a, b, rtol=0, atol=0.5)
    assert info == 0 and 0.01 < np.linalg.norm(b - a @ x) <= 0.5
    x, info = linalg.cg(sp.csr_array(-poisson(4)), np.ones(16))  # not positive definite
    assert info < 0


def test_lsqr():
    a = random_matrix(80, 30, density=0.2)
    b = np.arange(80.0)
    ours, theirs = (f(m, b, atol=1e-10, btol=1e-10) for f, m in ((linalg.lsqr, rmsp.Matrix(a)), (spla.lsqr, a)))
    assert len(ours) == len(theirs) and ours[1] == theirs[1] == 2
    assert np.allclose(ours[0], theirs[0]) and np.allclose([ours[3], ours[8]], [theirs[3], theirs[8]])
    assert linalg.lsqr(a, np.zeros(80))[1] == 0 and linalg.lsqr(a, b, iter_lim=1)[1] == 7
    assert linalg.lsqr(a, a @ np.ones(30), atol=1e-12, btol=1e-8)[1] == 1
    with pytest.raises(ValueError, match="damp"):
        linalg.lsqr(a, b, damp=1.0)


def test_lsqr_takes_the_iterations_of_scipy():
    # To the residual alone: SciPy's test of A^T r takes the Frobenius norm for |A|, which is larger.
    for a in (nonsymmetric(), poisson(12), random_matrix(60, 40, density=0.2)):
        b = a @ np.sin(np.arange(1.0, a.shape[1] + 1))
        ours, theirs = (f(a, b, atol=0, btol=1e-8)[2] for f in (linalg.lsqr, spla.lsqr))
        assert abs(ours - theirs) <= 1


@pytest.mark.parametrize("method", [m["name"] for m in linalg.methods()])
def test_every_method(method):
    a = poisson(8)
    preconditioner = "jacobi" if method == "ir" else None
    result = linalg.solve(a, np.ones(64), method=method, preconditioner=preconditioner, tolerance=1e-6)
    assert result.converged and result.outcome == "converged" and result.info == 0 and result.reason == ""
    assert np.allclose(a @ result.x, 1, atol=1e-4) and f"{result.iterations} iterations" in repr(result)
    assert result.true_residual <= result.target * 1.01 or method == "lsqr"
    assert len(result.history) == result.iterations + 1 and result.rhs_norm == 8


@pytest.mark.parametrize("name", [p["name"] for p in linalg.preconditioners()])
def test_every_preconditioner(name):
    a = poisson(8)
    by_name = linalg.solve(a, np.ones(64), method="gmres", preconditioner=name)
    A = rmsp.Matrix(a)
    made = linalg.Preconditioner(A, name)
    given = linalg.solve(A, np.ones(64), method="gmres", preconditioner=made)
    assert by_name.converged and given.converged and np.allclose(by_name.x, given.x)
    assert made.name.startswith(name[:4]) and made.report()["name"] and name[:4] in repr(made)
    made.renew()


def test_outcomes():
    a = poisson(10)
    result = linalg.solve(a, np.ones(100), method="cg", max_iterations=2)
    assert result.outcome == "iterations" and not result.converged and result.info == 2 and result.reason
    assert linalg.solve(a, np.full(100, np.nan)).info < 0
    assert linalg.solve(random_matrix(20, 10, density=0.5), np.ones(20)).converged  # lsqr
    x0 = np.ones(100)
    result = linalg.solve(a, a @ x0, x0=x0)
    assert result.iterations == 0 and (x0 == 1).all() and result.x is not x0


def test_solver_is_renewed():
    a = poisson(8)
    A = rmsp.Matrix(a)
    solver = linalg.Solver(A, "cg", preconditioner="block-jacobi", block_size=4, tolerance=1e-10)
    first = solver.solve(np.ones(64))
    A.update_values(2 * a.data)
    solver.renew()
    second = solver.solve(np.ones(64))
    assert np.allclose(first.x, 2 * second.x) and first.iterations == second.iterations


@pytest.mark.parametrize("which", ["LA", "SA"])
@pytest.mark.parametrize("method", [None, "lanczos", "lobpcg"])
def test_eigsh(which, method):
    a = poisson(9)
    w, v = linalg.eigsh(a, 3, which=which, method=method)
    expected = spla.eigsh(a, 3, which=which, return_eigenvectors=False)
    assert np.allclose(w, np.sort(expected)) and v.shape == (81, 3)
    assert np.allclose(a @ v, v * w, atol=1e-6) and np.allclose(v.T @ v, np.eye(3), atol=1e-6)


@pytest.mark.parametrize("which", ["LA", "SA"])
@pytest.mark.parametrize("k", [1, 4, 6])
def test_eigsh_takes_the_iterations_of_scipy(which, k):
    # Of a rectangle no eigenvalue is multiple: ours begins anew for each that is, ARPACK waits for rounding errors.
    lines = [sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)) for n in (31, 26)]
    a = sp.csr_array(sp.kron(lines[0], sp.eye_array(26)) + 0.7 * sp.kron(sp.eye_array(31), lines[1]))
    norm = spla.eigsh(a, 1, which="LA", return_eigenvectors=False)[0]
    # As many vectors, to the same residuals: ARPACK's are relative to each eigenvalue, ours to |A|.
    ncv = max(20, 2 * k + 10)
    nearest_zero = np.abs(spla.eigsh(a, k, which=which, return_eigenvectors=False)).max()
    products = []
    operator = spla.LinearOperator(a.shape, matvec=lambda x: products.append(1) or a @ x, dtype=float)
    spla.eigsh(operator, k, which=which, ncv=ncv, tol=1e-8 * norm / nearest_zero, return_eigenvectors=False)
    # Another basis at most begins beside what has converged, to see whether an eigenvalue is multiple.
    linalg.eigsh(a, k, which=which, ncv=ncv, tol=1e-8, method="lanczos", maxiter=len(products) + ncv)
    start = np.random.default_rng(1).uniform(-1, 1, (a.shape[0], k))
    residuals = spla.lobpcg(a, start, tol=1e-6 * norm, largest=which == "LA", maxiter=1000,
                            retResidualNormsHistory=True)[2]
    linalg.eigsh(a, k, which=which, tol=1e-6, method="lobpcg", maxiter=len(residuals))


def test_eigsh_options():
    a = poisson(9)
    w = linalg.eigsh(a, 2, which="SA", preconditioner="fsai", return_eigenvectors=False)
    assert np.allclose(w, np.sort(spla.eigsh(a, 2, which="SA", return_eigenvectors=False)))
    assert linalg.eigsh(poisson(9, np.float32), 1)[1].dtype == np.float32
    with pytest.raises(RuntimeError, match="eigsh: iterations after 3"):
        linalg.eigsh(a, 4, which="SA", method="lobpcg", maxiter=3)
    with pytest.raises(ValueError, match='which is "LM"'):
        linalg.eigsh(a, 1, which="LM")


@pytest.mark.parametrize("call, kind, words", [
    (lambda a: linalg.solve(a, np.ones(15)), ValueError, r"b has shape \(15,\) where \(16,\)"),
    (lambda a: linalg.solve(a, np.ones(16), x0=np.ones(3)), ValueError, "x0"),
    (lambda a: linalg.solve(a, np.ones(16, complex)), ValueError, "complex"),
    (lambda a: linalg.solve(a, np.ones(16), method="cgg"), ValueError, "cgg"),
    (lambda a: linalg.solve(a, np.ones(16), preconditioner="ilu"), ValueError, "ilu"),
    (lambda a: linalg.solve(a, np.ones(16), tolerence=1), ValueError, "solver.tolerance"),
    (lambda a: linalg.solve(a, np.ones(16), preconditioner=a), TypeError, "a preconditioner is a name"),
    (lambda a: linalg.solve(rmsp.Matrix(a).T, np.ones(16)), ValueError, "transposed"),
    (lambda a: linalg.cg(a[:, :3], np.ones(16)), ValueError, "square"),
    (lambda a: linalg.solve(a, np.ones(16), preconditioner=linalg.Preconditioner(poisson(4, np.float32), "jacobi")),
     ValueError, "float32"),
])
def test_errors(call, kind, words):
    with pytest.raises(kind, match=words):
        call(poisson(4))


def test_callback():
    told = []
    a = poisson(40)
    result = linalg.solve(a, np.ones(1600), method="cg", callback=told.append)
    assert result.converged and told and told[-1].iteration <= result.iterations and told[-1].seconds <= result.seconds
    assert all(p.target == result.target for p in told)
    cancelled = linalg.solve(a, np.ones(1600), method="cg", callback=lambda progress: False)
    assert cancelled.outcome == "cancelled" and cancelled.info > 0

    def fails(progress):
        raise KeyError("of the callback")

    with pytest.raises(KeyError, match="of the callback"):
        linalg.cg(a, np.ones(1600), callback=fails)
    with pytest.raises(KeyError, match="of the callback"):
        linalg.eigsh(a, 2, which="SA", callback=fails)
    assert linalg.cg(a, np.ones(1600))[1] == 0


# SciPy's own methods, and other packages', take the matrix as it is.

@pytest.mark.parametrize("wrap", [lambda A: A, lambda A: A.aslinearoperator(), spla.aslinearoperator])
def test_scipy_takes_the_operator(wrap):
    a, A = poisson(10), rmsp.Matrix(poisson(10))
    operator = wrap(A)
    b = np.arange(100.0)
    for method in (spla.cg, spla.gmres, spla.bicgstab, spla.minres):
        x, info = method(operator, b, rtol=1e-8)
        assert info == 0 and np.allclose(x, method(a, b, rtol=1e-8)[0], rtol=1e-6)
    if isinstance(operator, spla.LinearOperator):
        assert np.allclose(spla.lsqr(operator, b, atol=1e-10, btol=1e-10)[0], x, atol=1e-4)
        assert close((2 * operator + operator.T).matmat(np.ones((100, 2))), 3 * a @ np.ones((100, 2)))
    assert np.allclose(spla.eigsh(operator, 3, which="LA", return_eigenvectors=False),
                       spla.eigsh(a, 3, which="LA", return_eigenvectors=False))


def test_linear_operator():
    a = random_matrix(30, 20)
    operator = rmsp.Matrix(a).aslinearoperator()
    assert isinstance(operator, spla.LinearOperator)
    assert operator.shape == (30, 20) and operator.dtype == np.float64
    x, y = np.arange(20.0), np.arange(30.0)
    assert close(operator.matvec(x), a @ x) and close(operator.matvec(x[:, None]), (a @ x)[:, None])
    assert close(operator.rmatvec(y), a.T @ y) and close(operator.matvec(x + 1j), a @ (x + 1j))
    assert close(operator.matmat(np.ones((20, 3))), a @ np.ones((20, 3)))
    assert close(operator.rmatmat(np.ones((30, 3))), a.T @ np.ones((30, 3)))
    assert close(operator.H.matvec(y), a.T @ y)
    assert close(rmsp.Matrix(a).T.aslinearoperator().matvec(y), a.T @ y)


def test_pyamg():
    pyamg = pytest.importorskip("pyamg")
    a = sp.csr_matrix(poisson(20))
    a.indices, a.indptr = a.indices.astype(np.int32), a.indptr.astype(np.int32)
    levels = pyamg.ruge_stuben_solver(a, max_coarse=20)
    operator = rmsp.Matrix(a).aslinearoperator()
    b = np.ones(400)
    residuals = []
    x, info = pyamg.krylov.cg(operator, b, tol=1e-10, M=levels.aspreconditioner(), residuals=residuals)
    assert info == 0 and len(residuals) < 20 and np.linalg.norm(a @ x - b) < 1e-8
    x, info = pyamg.krylov.gmres(operator, b, tol=1e-8, M=levels.aspreconditioner())
    assert info == 0 and np.allclose(x, pyamg.krylov.gmres(a, b, tol=1e-8, M=levels.aspreconditioner())[0])


def test_pylops():
    pylops = pytest.importorskip("pylops")
    a = random_matrix(40, 30, density=0.2)
    operator = pylops.aslinearoperator(rmsp.Matrix(a).aslinearoperator())
    assert pylops.utils.dottest(operator, 40, 30, rtol=1e-9)
    x = np.arange(30.0)
    smooth = pylops.SecondDerivative(30)
    stacked = pylops.VStack([operator, 0.1 * smooth])
    data = np.concatenate([a @ x, np.zeros(30)])
    found = pylops.optimization.basic.cgls(stacked, data, niter=200, tol=1e-12)[0]
    dense = np.vstack([a.toarray(), 0.1 * smooth.todense()])
    assert np.allclose(found, np.linalg.lstsq(dense, data, rcond=None)[0], atol=1e-5)
