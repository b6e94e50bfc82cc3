"""Iterative solvers of A x = b and A v = lambda v on all devices of a runtime.

The functions that SciPy has as well (:func:`cg`, :func:`gmres` and so on) have its signatures and return what it does.
What it lacks is in :func:`solve`, whose result says how the solve went, and in :class:`Solver`, which stays ready
for further solves. ``methods()`` and ``preconditioners()`` list what there is; docs/solvers.md says how to choose.

Wherever a matrix is taken, so is what :class:`rmsp.Matrix` takes, which is then distributed for the call. Solutions
have the matrix's dtype. Control-C cancels a solve. Callbacks are called now and then, not after each iteration, with
a :class:`Progress`, since the iterate stays on the devices; one that returns False cancels.
"""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

import numpy as np

from . import _gpu, _rmsp
from ._matrix import Matrix, Transposed
from ._runtime import overrides

__all__ = ["Preconditioner", "Progress", "SolveResult", "Solver", "bicg", "bicgstab", "cg", "cgs", "eigsh", "gmres",
           "lsqr", "methods", "minres", "preconditioners", "solve"]


class Progress(NamedTuple):
    """What callbacks are told."""

    iteration: int
    residual: float  #: norm of b - A x, as the method's recurrence has it
    target: float  #: which residual is asked for
    seconds: float  #: since the solve began


class SolveResult:
    """How a solve ended.

    ``x``; ``outcome``: "converged", "iterations", "time", "stagnation", "breakdown", "diverged", "not finite" or
    "cancelled"; ``converged``; ``reason``: a sentence on other outcomes; ``method``, what "auto" became;
    ``iterations``; ``residual`` by the method's recurrence; ``true_residual``, the norm of b - A x computed from x;
    ``normal_residual`` of lsqr, the norm of A^T (b - A x); ``target``, the residual asked for; ``rhs_norm``;
    ``history``, the residual before the first iteration and after each; ``restarts``; ``seconds``.
    """

    x: Any
    method: str
    outcome: str
    code: int
    reason: str
    iterations: int
    residual: float
    true_residual: float
    normal_residual: float
    target: float
    rhs_norm: float
    history: np.ndarray
    restarts: int
    seconds: float
    __slots__ = ("x", "method", "outcome", "code", "reason", "iterations", "residual", "true_residual",
                 "normal_residual", "target", "rhs_norm", "history", "restarts", "seconds")

    def __init__(self, x: Any, facts: dict[str, Any]) -> None:
        self.x = x
        for name, value in facts.items():
            setattr(self, name, value)

    @property
    def converged(self) -> bool:
        """Whether the residual asked for was reached, by the true residual too."""
        return self.outcome == "converged"

    @property
    def info(self) -> int:
        """What SciPy's functions return: 0 if converged, below 0 where the method cannot go on, else the iterations."""
        if self.converged:
            return 0
        return -self.code if self.outcome in ("breakdown", "diverged", "not finite") else max(self.iterations, 1)

    def __repr__(self) -> str:
        why = "" if self.converged else f": {self.reason}"
        return (f"<SolveResult {self.outcome} after {self.iterations} iterations, |b - A x| = {self.true_residual:.3g} "
                f"of {self.target:.3g} asked for{why}>")


def methods() -> list[dict[str, Any]]:
    """Every method, with its description and which matrices it needs.

    >>> [m["name"] for m in rmsp.linalg.methods() if m["rectangular"]]
    ['lsqr']
    """
    return _rmsp.solvers()


def preconditioners() -> list[dict[str, Any]]:
    """Every preconditioner, with its description."""
    return _rmsp.preconditioners()


def _matrix(A: Any) -> Matrix:
    if isinstance(A, Transposed):
        raise ValueError("a transposed matrix; make rmsp.Matrix of the transpose")
    return A if isinstance(A, Matrix) else Matrix(A)


class Preconditioner:
    """z = M r with M about A^-1, by a name of preconditioners(), for one matrix.

    Options are those ``solver.*`` keys of configurations that are of preconditioners: ``block_size``,
    ``pattern_power``, ``degree`` and so on.

    >>> A = rmsp.Matrix(([4.0, 1.0, 1.0, 3.0], [0, 1, 0, 1], [0, 2, 4]), shape=(2, 2))
    >>> M = rmsp.linalg.Preconditioner(A, "jacobi")
    >>> M.report()["name"]
    'jacobi'
    >>> rmsp.linalg.cg(A, [1.0, 2.0], M=M)[1]
    0
    """

    __slots__ = ("matrix", "_handle")

    def __init__(self, A: Any, name: str, **options: Any) -> None:
        self.matrix = _matrix(A)
        make = getattr(_rmsp, f"preconditioner_{self.matrix.dtype.name}")
        self._handle = make(self.matrix._handle, name, overrides(("solver",), options))

    @property
    def name(self) -> str:
        """Its name."""
        return self._handle.name

    def renew(self) -> None:
        """After Matrix.update_values(): is made for the new values."""
        self._handle.renew()

    def report(self) -> dict[str, Any]:
        """What it cost: seconds and bytes, and what is to be known of it."""
        return self._handle.report()

    def __repr__(self) -> str:
        return f"<rmsp.linalg.Preconditioner {self.name}>"


def _handle_of(preconditioner: Preconditioner, matrix: Matrix) -> Any:
    if preconditioner.matrix.dtype != matrix.dtype:
        raise ValueError(f"the preconditioner is of {preconditioner.matrix.dtype}, the matrix of {matrix.dtype}")
    return preconditioner._handle


def _told(callback: Callable[[Progress], Any] | None) -> Any:
    return None if callback is None else lambda *progress: callback(Progress(*progress))


class Solver:
    """A method made ready for a matrix: what it needs on the devices stays for any number of solves.

    ``method``: a name of methods(); "auto": a variant of conjugate gradients, see choice(). ``preconditioner``: None, a
    name of preconditioners(), or a Preconditioner. Options are the ``solver.*`` keys of configurations: ``tolerance``,
    ``absolute_tolerance``, ``max_iterations``, ``max_seconds``, ``restart`` and so on.

    >>> A = rmsp.Matrix(([4.0, 1.0, 1.0, 3.0], [0, 1, 0, 1], [0, 2, 4]), shape=(2, 2))
    >>> solver = rmsp.linalg.Solver(A, "cg", preconditioner="jacobi", tolerance=1e-12)
    >>> solver.solve([6.0, 7.0]).x.round(6)
    array([1., 2.])
    >>> A.update_values([2.0, 0.0, 0.0, 2.0])
    >>> solver.renew()
    >>> solver.solve([6.0, 7.0]).x.round(6)
    array([3. , 3.5])

    Raises ValueError for unknown names and matrices that the method is not for, MemoryError, and RuntimeError for what
    a device reports. Solves of one solver are done one after the other, those of several may go on at the same time.
    """

    __slots__ = ("matrix", "_handle")

    def __init__(self, A: Any, method: str = "cg", *, preconditioner: str | Preconditioner | None = None,
                 **options: Any) -> None:
        self.matrix = _matrix(A)
        handle = None
        if isinstance(preconditioner, Preconditioner):
            handle = _handle_of(preconditioner, self.matrix)
        elif isinstance(preconditioner, str):
            options["preconditioner"] = preconditioner
        elif preconditioner is not None:
            raise TypeError(f"a preconditioner is a name or rmsp.linalg.Preconditioner, not "
                            f"{type(preconditioner).__name__}")
        make = getattr(_rmsp, f"solver_{self.matrix.dtype.name}")
        self._handle = make(self.matrix._handle, handle, overrides(("solver",), {"method": method, **options}))

    def solve(self, b: Any, x0: Any = None, *, callback: Callable[[Progress], Any] | None = None) -> SolveResult:
        """Solves A x = b, beginning with ``x0``, or zeros. Numerical failure is an outcome of the result.

        Where b is a vector of CuPy or torch in GPU memory, so is x.
        """
        rows, cols = self.matrix.shape
        dtype = self.matrix.dtype
        if _gpu.on_gpu(b):
            b, x = _gpu.vectors("b", b, dtype, cols)
            if x0 is not None:
                x[:] = _gpu.vectors("x0", x0, dtype, 0)[0]
                _gpu.vectors("x0", x, dtype, 0)  # waits for the copy
        else:
            b = _vector("b", b, rows, dtype)
            x = np.zeros(cols, dtype) if x0 is None else _vector("x0", x0, cols, dtype).copy()
        return SolveResult(x, self._handle.solve(b, x, _told(callback)))

    def choice(self) -> dict[str, Any]:
        """Which method it is, which "auto" has become, and why: ``method``, ``reason``, and the ``candidates`` with the
        seconds that an iteration of each is expected to take.

        >>> A = rmsp.Matrix(([4.0, 1.0, 1.0, 3.0], [0, 1, 0, 1], [0, 2, 4]), shape=(2, 2))
        >>> [c["method"] for c in rmsp.linalg.Solver(A, "auto").choice()["candidates"]]
        ['cg', 'cg_single', 'cg_pipelined']
        """
        return self._handle.choice()

    def renew(self) -> None:
        """After Matrix.update_values(): the preconditioner is made for the new values, everything else stays."""
        self._handle.renew()


def _vector(what: str, values: Any, size: int, dtype: np.dtype) -> np.ndarray:
    values = np.asarray(values)
    if values.dtype.kind == "c":
        raise ValueError(f"{what} is complex; librmsp solves with real numbers")
    if values.shape not in ((size,), (size, 1)):
        raise ValueError(f"{what} has shape {values.shape} where ({size},) is needed")
    return np.ascontiguousarray(values, dtype).reshape(size)


def solve(A: Any, b: Any, *, method: str | None = None, preconditioner: str | Preconditioner | None = None,
          x0: Any = None, callback: Callable[[Progress], Any] | None = None, **options: Any) -> SolveResult:
    """Solves A x = b, and says how that went.

    ``method``: a name of methods(); None: gmres, or lsqr if A is not square. Symmetric positive definite matrices are
    solved faster by "cg". Options are those of Solver, ``tolerance`` (1e-8 of the norm of b) first of all.

    >>> A = ([4.0, 1.0, 1.0, 3.0], [0, 1, 0, 1], [0, 2, 4])
    >>> result = rmsp.linalg.solve(rmsp.Matrix(A, shape=(2, 2)), [6.0, 7.0], method="cg")
    >>> result.outcome, result.iterations, result.x.round(6)
    ('converged', 2, array([1., 2.]))
    """
    A = _matrix(A)
    if method is None:
        method = "gmres" if A.shape[0] == A.shape[1] else "lsqr"
    return Solver(A, method, preconditioner=preconditioner, **options).solve(b, x0, callback=callback)


def _as_scipy(method: str, A: Any, b: Any, x0: Any, rtol: float, atol: float, most: int, M: Any, callback: Any,
              **options: Any) -> tuple[np.ndarray, int]:
    result = solve(A, b, method=method, preconditioner=M, x0=x0, callback=callback, tolerance=rtol,
                   absolute_tolerance=atol, max_iterations=most, **options)
    return result.x, result.info


def cg(A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: int | None = None,
       M: str | Preconditioner | None = None,
       callback: Callable[[Progress], Any] | None = None) -> tuple[np.ndarray, int]:
    """Conjugate gradients, for symmetric positive definite matrices: (x, info), as scipy.sparse.linalg.cg.

    ``info``: 0 if the norm of b - A x is at most max(rtol |b|, atol), below 0 where the method cannot go on, else the
    number of iterations. ``M``: a name of preconditioners(), or a Preconditioner.

    >>> A = rmsp.Matrix(([4.0, 1.0, 1.0, 3.0], [0, 1, 0, 1], [0, 2, 4]), shape=(2, 2))
    >>> x, info = rmsp.linalg.cg(A, [6.0, 7.0])
    >>> info, x.round(6)
    (0, array([1., 2.]))
    """
    A = _matrix(A)
    return _as_scipy("cg", A, b, x0, rtol, atol, 10 * A.shape[0] if maxiter is None else maxiter, M, callback)


def bicg(A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: int | None = None,
         M: str | Preconditioner | None = None,
         callback: Callable[[Progress], Any] | None = None) -> tuple[np.ndarray, int]:
    """Biconjugate gradients, for any square matrix: (x, info), as cg()."""
    A = _matrix(A)
    return _as_scipy("bicg", A, b, x0, rtol, atol, 10 * A.shape[0] if maxiter is None else maxiter, M, callback)


def bicgstab(A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: int | None = None,
             M: str | Preconditioner | None = None,
             callback: Callable[[Progress], Any] | None = None) -> tuple[np.ndarray, int]:
    """Stabilised biconjugate gradients, for any square matrix: (x, info), as cg()."""
    A = _matrix(A)
    return _as_scipy("bicgstab", A, b, x0, rtol, atol, 10 * A.shape[0] if maxiter is None else maxiter, M, callback)


def cgs(A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: int | None = None,
        M: str | Preconditioner | None = None,
        callback: Callable[[Progress], Any] | None = None) -> tuple[np.ndarray, int]:
    """Conjugate gradients squared, for any square matrix: (x, info), as cg()."""
    A = _matrix(A)
    return _as_scipy("cgs", A, b, x0, rtol, atol, 10 * A.shape[0] if maxiter is None else maxiter, M, callback)


def minres(A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: int | None = None,
           M: str | Preconditioner | None = None,
           callback: Callable[[Progress], Any] | None = None) -> tuple[np.ndarray, int]:
    """Minimal residuals, for symmetric matrices, definite or not: (x, info), as cg().

    ``rtol`` is of the norm of b, where SciPy's minres takes a sum of norms.
    """
    A = _matrix(A)
    return _as_scipy("minres", A, b, x0, rtol, atol, 5 * A.shape[0] if maxiter is None else maxiter, M, callback)


def gmres(A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, restart: int | None = None,
          maxiter: int | None = None, M: str | Preconditioner | None = None,
          callback: Callable[[Progress], Any] | None = None) -> tuple[np.ndarray, int]:
    """Generalised minimal residuals, for any square matrix: (x, info), as cg().

    As in SciPy, it begins again after ``restart`` iterations (20), and ``maxiter`` (10 for each row) counts these
    beginnings.
    """
    A = _matrix(A)
    restart = max(1, min(20 if restart is None else restart, max(A.shape[0], 1)))
    cycles = 10 * A.shape[0] if maxiter is None else maxiter
    return _as_scipy("gmres", A, b, x0, rtol, atol, cycles * restart, M, callback, restart=restart)


def lsqr(A: Any, b: Any, damp: float = 0.0, atol: float = 1e-6, btol: float = 1e-6, conlim: float = 1e8,
         iter_lim: int | None = None, show: bool = False, calc_var: bool = False, x0: Any = None, *,
         callback: Callable[[Progress], Any] | None = None) -> tuple:
    """Least squares for any matrix, as scipy.sparse.linalg.lsqr: (x, istop, itn, r1norm, r2norm, anorm, acond,
    arnorm, xnorm, var).

    It stops where the norm of r = b - A x is at most ``btol`` |b| (istop 1), that of A^T r at most ``atol`` |A| |r|
    (istop 2), or after ``iter_lim`` iterations, 2 for each column (istop 7). ``anorm`` and ``acond`` are not estimated
    and are NaN; ``conlim`` counts for nothing. Raises ValueError for ``damp`` and ``calc_var``, which it lacks.
    """
    if damp != 0 or calc_var:
        raise ValueError("lsqr without damping and variances only: damp=0, calc_var=False")
    A = _matrix(A)
    most = 2 * A.shape[1] if iter_lim is None else iter_lim
    result = solve(A, b, method="lsqr", x0=x0, callback=callback, tolerance=btol, normal_tolerance=atol,
                   max_iterations=most)
    if show:
        print(result)
    istop = 7
    if result.converged:
        istop = 0 if result.iterations == 0 else 1 if result.true_residual <= result.target else 2
    nan = float("nan")
    return (result.x, istop, result.iterations, result.true_residual, result.true_residual, nan, nan,
            result.normal_residual, float(np.linalg.norm(result.x)), np.zeros(0))


def eigsh(A: Any, k: int = 6, *, which: str = "LA", ncv: int | None = None, maxiter: int | None = None,
          tol: float = 0, return_eigenvectors: bool = True, method: str | None = None,
          preconditioner: str | Preconditioner | None = None,
          callback: Callable[[Progress], Any] | None = None) -> Any:
    """``k`` eigenvalues of a symmetric matrix and their vectors: (w, v), w rising, v of shape (rows, k).

    ``which``: "LA", the largest ones, or "SA", the smallest. ``method``: "lanczos", of ``ncv`` vectors, or "lobpcg",
    which takes a preconditioner; None: lobpcg if there is one. Stops where the norm of A v - w v is at most ``tol``
    times the largest magnitude of an eigenvalue found; 0: 1e-8, float32 1e-4. Raises RuntimeError where ``maxiter``
    iterations (1000) do not suffice. As scipy.sparse.linalg.eigsh, without generalised problems and shifts.

    >>> A = rmsp.Matrix(([1.0, 2.0, 3.0, 4.0], [0, 1, 2, 3], [0, 1, 2, 3, 4]), shape=(4, 4))
    >>> rmsp.linalg.eigsh(A, 2, which="SA", return_eigenvectors=False).round(6)
    array([1., 2.])
    """
    A = _matrix(A)
    if which not in ("LA", "SA"):
        raise ValueError(f'which is "{which}"; librmsp finds "LA", the largest, and "SA", the smallest eigenvalues')
    if isinstance(preconditioner, str):
        preconditioner = Preconditioner(A, preconditioner)
    handle = None if preconditioner is None else _handle_of(preconditioner, A)
    if method is None:
        method = "lanczos" if handle is None else "lobpcg"
    find = getattr(_rmsp, f"eigenpairs_{A.dtype.name}")
    found = find(A._handle, method, which == "LA", k, tol or (1e-8 if A.dtype == np.float64 else 1e-4),
                 1000 if maxiter is None else maxiter, ncv or 0, handle, _told(callback))
    if found["outcome"] != "converged":
        raise RuntimeError(f"eigsh: {found['outcome']} after {found['iterations']} iterations: {found['reason']}")
    order = np.argsort(found["values"], kind="stable")
    values = found["values"][order].astype(A.dtype, copy=False)
    if not return_eigenvectors:
        return values
    return values, found["vectors"].reshape(len(values), -1)[order].T
