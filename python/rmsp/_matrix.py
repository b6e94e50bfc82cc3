"""Sparse matrices on the devices of a runtime."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy import empty, ndarray

from . import _arrays, _gpu, _rmsp
from ._runtime import Runtime, default_runtime, overrides

_SECTIONS = ("partition", "kernel", "run", "stream")  # whose keys are options of a matrix


class Operator:
    """What matrices and their transposes have in common: products, by the names of SciPy's LinearOperator."""

    __slots__ = ()
    __array_ufunc__ = None  # NumPy leaves x @ A to us
    ndim = 2

    shape: tuple[int, int]
    dtype: np.dtype
    _handle: Any
    _transposed: bool

    def multiply(self, x: Any, out: ndarray | None = None, *, alpha: float = 1.0, beta: float = 0.0) -> ndarray:
        """alpha A x + beta out, for a vector x of shape (columns,); in ``out`` if it is given.

        ``out``: a contiguous array of the matrix's dtype and shape (rows,) that does not overlap x; it is returned. x
        and ``out`` may both be in GPU memory; the current stream of ``out``'s GPU is waited for, and waits.

        >>> A = rmsp.Matrix(([2.0, 3.0], [0, 1], [0, 1, 2]), shape=(2, 2))
        >>> y = np.ones(2)
        >>> A.multiply(np.ones(2), out=y, alpha=10, beta=1)
        array([21., 31.])
        """
        if out is None and beta != 0:
            raise ValueError("beta without out: what is beta to be multiplied with?")
        if not isinstance(x, ndarray) and _gpu.on_gpu(x):
            return self._multiply_on_gpu(x, out, alpha, beta)
        if out is None:
            out = empty(self.shape[0], self.dtype)
        elif not isinstance(out, ndarray) or out.dtype != self.dtype or not out.flags.c_contiguous or out.ndim != 1:
            raise ValueError(f"out is no contiguous NumPy array of {self.dtype} and one dimension")
        elif not out.flags.writeable:
            raise ValueError("out is read-only")
        x = np.ascontiguousarray(x, self.dtype)
        if x.ndim != 1:
            raise ValueError(f"x has {x.ndim} dimensions; a vector has one")
        self._handle.apply(alpha, x, beta, out, self._transposed)
        return out

    def _multiply_on_gpu(self, x: Any, out: Any, alpha: float, beta: float) -> Any:
        """In the order of the current stream of the GPU that has the result, without waiting."""
        package = to = _gpu.package_of(x)
        place = package.vector_place(x, self.dtype)
        if place is None:
            x = _gpu.vector("x", x, self.dtype)
            place = package.place_of(x)
        if out is None:
            out = package.new(self.shape[0], x)
            out_place = package.place_of(out)
        else:
            to = _gpu.package_of(out)
            out_place = to.vector_place(out, self.dtype)
            if out_place is None:
                if _gpu.on_gpu(out):
                    _gpu.vector("out", out, self.dtype)
                raise ValueError("x is in GPU memory; out has to be a contiguous vector there, too")
        self._handle.apply_on_gpu(alpha, *place, beta, *out_place, self._transposed, to.stream_of(out))
        return out

    def _block_on_gpu(self, x: Any) -> Any:
        """A X for X of shape (columns, k), one column after the other, in the order of the current stream."""
        if x.shape[0] != self.shape[1]:
            raise ValueError(f"x has {x.shape[0]} rows where {self.shape[1]} are needed")
        package = _gpu.package_of(x)
        columns = package.contiguous(x.T, self.dtype.name)
        y = package.new((x.shape[1], self.shape[0]), columns)
        self._handle.apply_block_on_gpu(x.shape[1], package.place_of(columns)[0], x.shape[0], package.place_of(y)[0],
                                        self.shape[0], self._transposed, package.stream_of(y))
        return y.T

    def __matmul__(self, x: Any) -> Any:
        if type(x) is ndarray and x.dtype == self.dtype and x.ndim == 1 and x.flags.c_contiguous:
            y = empty(self.shape[0], self.dtype)
            self._handle.apply(1.0, x, 0.0, y, self._transposed)
            return y
        # As _multiply_on_gpu() does it, without what is nothing here: a call takes as long as a small product.
        package = _gpu.packages.get(type(x))
        place = None if package is None else package.vector_place(x, self.dtype)
        if place is None:
            return self._product(x)
        y = package.new(self.shape[0], x)
        self._handle.apply_on_gpu(1.0, *place, 0.0, *package.place_of(y), self._transposed, package.stream_of(y))
        return y

    dot = __matmul__

    def __rmatmul__(self, x: Any) -> Any:
        if _arrays.is_sparse(x):
            return Matrix(x, dtype=self.dtype, runtime=self.runtime) @ self  # type: ignore[attr-defined]
        x = np.asarray(x)
        return self.T._product(x.T).T  # type: ignore[attr-defined]

    def _product(self, x: Any) -> Any:
        if not isinstance(x, ndarray) and hasattr(x, "__dlpack__"):
            return self._tensor_product(x)
        if isinstance(x, Operator) or _arrays.is_sparse(x):
            return self._sparse_product(x)
        x = np.asarray(x)
        if x.dtype.kind not in "fiubc":
            raise ValueError(f"x has entries of type {x.dtype}, which are no numbers")
        if x.ndim not in (1, 2):
            raise ValueError(f"x has {x.ndim} dimensions; vectors have one, blocks of vectors two")
        if x.shape[0] != self.shape[1]:
            raise ValueError(f"x has {x.shape[0]} rows where {self.shape[1]} are needed")
        if x.dtype.kind == "c":
            return self._product(x.real) + 1j * self._product(x.imag)
        if x.ndim == 1:
            return self.multiply(x)
        y = empty((x.shape[1], self.shape[0]), self.dtype)
        self._handle.apply_block(np.ascontiguousarray(x.T, self.dtype), y, self._transposed)
        return y.T

    def _sparse_product(self, other: Any) -> Any:
        raise ValueError("the product of a transposed matrix with a sparse one: make rmsp.Matrix of the transpose")

    def _tensor_product(self, x: Any) -> Any:
        """Tensors of torch and arrays of CuPy, through DLPack: the result is one of the same package and device."""
        package = _gpu.package_of(x)
        if package.on_gpu(x):
            return self._block_on_gpu(x) if x.ndim == 2 else self._multiply_on_gpu(x, None, 1.0, 0.0)
        y = self._product(np.from_dlpack(x.detach() if hasattr(x, "detach") else x))
        return package.from_dlpack(y)

    def matvec(self, x: Any) -> ndarray:
        """A x for x of shape (columns,) or (columns, 1), whose result has the same number of dimensions."""
        return self @ x

    def rmatvec(self, x: Any) -> ndarray:
        """A^T x, as matvec() takes and returns them."""
        return self.T @ x  # type: ignore[attr-defined]

    def matmat(self, x: Any) -> ndarray:
        """A X for X of shape (columns, k), one column after the other."""
        return self @ x

    def rmatmat(self, x: Any) -> ndarray:
        """A^T X for X of shape (rows, k)."""
        return self.T @ x  # type: ignore[attr-defined]

    def aslinearoperator(self) -> Any:
        """A scipy.sparse.linalg.LinearOperator of this matrix, for whatever takes one."""
        from scipy.sparse.linalg import LinearOperator

        return LinearOperator(self.shape, self.matvec, rmatvec=self.rmatvec, matmat=self.matmat, rmatmat=self.rmatmat,
                              dtype=self.dtype)


class Transposed(Operator):
    """A^T of a Matrix, whose arrays it shares."""

    __slots__ = ("T", "shape", "dtype", "_handle")
    _transposed = True

    def __init__(self, matrix: Matrix) -> None:
        self.T = matrix
        self.shape = (matrix.shape[1], matrix.shape[0])
        self.dtype = matrix.dtype
        self._handle = matrix._handle

    H = property(lambda self: self.T, doc="The transpose: matrices are real.")
    nnz = property(lambda self: self.T.nnz, doc="Number of stored entries.")
    runtime = property(lambda self: self.T.runtime, doc="The runtime that holds the matrix.")

    def __repr__(self) -> str:
        return f"<transpose of {repr(self.T)[1:]}"


class Matrix(Operator):
    """A sparse matrix, split over the devices of a runtime.

    ``A``: a csr, csc, coo or bsr array or matrix of SciPy (other formats are converted to csr), a csr or csc matrix of
    cupyx (others are converted on the GPU), a sparse tensor of torch in host or GPU memory, or the arrays (data,
    indices, indptr) or (data, (rows, columns)) with ``shape``; ``format="csc"`` says that the three arrays are by
    columns. float32 stays float32; other real values become float64, or ``dtype``. Of bsr all values of a block are
    entries.

    The devices get copies; the arrays are not needed afterwards. With ``borrow=True`` host devices use them in place,
    and with ``mode="streamed"`` they stay in host memory: the matrix then keeps them alive, and sees what is written
    to them after update_values().

    ``transposed=True`` makes A^T x ready as well, rather than at the first call. Further keywords are the last words
    of the keys ``partition.*``, ``kernel.*``, ``run.*`` and ``stream.*`` of configurations (docs/configuration.md):
    ``spmv="..."`` names the kernel, ``determinism="run"`` asks for the same bits from call to call. Unsorted
    coordinates are sorted, unless ``unsorted`` says otherwise.

    >>> A = rmsp.Matrix(([10.0, 20.0, 30.0, 40.0], [0, 2, 1, 2], [0, 2, 2, 4]), shape=(3, 3))
    >>> A @ np.array([1.0, 2.0, 3.0])
    array([ 70.,   0., 180.])
    >>> A.T @ np.array([1.0, 2.0, 3.0])
    array([ 10.,  90., 140.])
    >>> A.shape, A.nnz, A.dtype
    ((3, 3), 4, dtype('float64'))

    Functions release the interpreter's lock while they work, and may be called from several threads. They raise
    ValueError for wrong use, MemoryError, and RuntimeError for what a device reports.
    """

    __slots__ = ("runtime", "shape", "dtype", "nnz", "_handle", "_kept", "__weakref__")
    _transposed = False

    def __init__(self, A: Any, *, shape: tuple[int, int] | None = None, dtype: Any = None, format: str = "csr",
                 runtime: Runtime | None = None, borrow: bool = False, transposed: bool = False,
                 **options: Any) -> None:
        arrays = _arrays.take(A, shape, dtype, format)
        if arrays.block is not None and options.get("mode") == "streamed":
            arrays = _arrays.take(A.tocsr(), shape, dtype)
        if borrow and arrays.copied:
            raise ValueError("borrow=True, but the arrays have to be converted: librmsp takes contiguous arrays of "
                             "float32 or float64 with indices of int32 or int64, as csr, csc or coo")
        texts = overrides(_SECTIONS, options)
        if arrays.format == "coo" and "unsorted" not in options:
            texts.append('partition.unsorted="sort"')
        self.runtime = default_runtime() if runtime is None else runtime
        self.shape = arrays.shape
        self.dtype = np.dtype(_gpu.dtype_of(arrays.values))
        if arrays.block is None:
            distribute = getattr(_rmsp, f"distribute_{self.dtype.name}")
            self._handle = distribute(self.runtime, arrays.format, *arrays.shape, arrays.pointers, arrays.indices,
                                      arrays.values, texts, borrow, transposed)
        else:
            height, width = arrays.block
            distribute = getattr(_rmsp, f"distribute_blocks_{self.dtype.name}")
            self._handle = distribute(self.runtime, arrays.shape[0] // height, arrays.shape[1] // width, height, width,
                                      arrays.pointers, arrays.indices, arrays.values, texts, transposed)
        self.nnz = self._handle.nnz
        # Where new values are written, if the matrix goes on using the caller's array.
        self._kept = arrays.values if borrow or options.get("mode") == "streamed" else None

    @property
    def T(self) -> Transposed:
        """A^T, without a copy."""
        return Transposed(self)

    H = T

    def _sparse_product(self, other: Any) -> Any:
        """A csr_array of SciPy, or, where B is cupyx's, a csr_matrix of cupyx on the same GPU."""
        from scipy.sparse import csr_array

        if isinstance(other, Transposed):
            raise ValueError("the product with a transposed matrix: make rmsp.Matrix of the transpose")
        if other.shape[0] != self.shape[1]:
            raise ValueError(f"B has {other.shape[0]} rows where {self.shape[1]} are needed")
        if isinstance(other, Matrix):
            if other.dtype != self.dtype:
                raise ValueError(f"A is of {self.dtype}, B of {other.dtype}; a product has one type")
            product = self._handle.multiply_matrix(other._handle, [])
        else:
            b = _arrays.take(other.tocsr(), dtype=self.dtype)
            product = self._handle.multiply_csr(*b.shape, b.pointers, b.indices, b.values, [])
            if _gpu.on_gpu(b.values):
                return _gpu.csr_matrix(product, (self.shape[0], other.shape[1]), b.values)
        indptr, indices, data = product.arrays()
        product = csr_array((data, indices, indptr), shape=(self.shape[0], other.shape[1]))
        product.has_canonical_format = True  # columns rise, each once
        return product

    def update_values(self, values: Any = None) -> None:
        """New values in the same structure: nnz entries in the order of the arrays that the matrix was made of (of
        bsr: its ``data``, in one dimension). Those in GPU memory go from GPU to GPU.

        Nothing is partitioned anew. A matrix that goes on using the caller's array (``borrow``, ``mode="streamed"``)
        takes no other one: write the values there and call this without an argument.

        >>> A = rmsp.Matrix(([2.0, 3.0], [0, 1], [0, 1, 2]), shape=(2, 2))
        >>> A.update_values([5.0, 7.0])
        >>> A @ np.ones(2)
        array([5., 7.])
        """
        if values is None:
            if self._kept is None:
                raise ValueError("no values: only matrices that use the caller's array are updated without")
            values = self._kept
        if _gpu.on_gpu(values):
            values = _gpu.contiguous(values, self.dtype.name)
            _gpu.synchronize(values)
            self._handle.update_values(values)
            return
        self._handle.update_values(np.ascontiguousarray(values, self.dtype).reshape(-1))

    def tocsr(self) -> Any:
        """The matrix as the devices hold it, with the values that it has now: a csr_array of SciPy.

        The entries of a row are in the order in which they were given, by column where A was given by columns.

        >>> A = rmsp.Matrix(([2.0, 3.0], [0, 1], [0, 1, 2]), shape=(2, 2))
        >>> A.update_values([5.0, 7.0])
        >>> A.tocsr().toarray()
        array([[5., 0.],
               [0., 7.]])
        """
        from scipy.sparse import csr_array

        indptr, indices, data = self._handle.to_csr()
        return csr_array((data, indices, indptr), shape=self.shape)

    def to(self, runtime: Runtime, *, transposed: bool = False, **options: Any) -> Matrix:
        """The same matrix on the devices of another runtime, or of the same one with other options: those of Matrix.

        The arrays that this one was made of are not needed: what the devices hold goes through host memory. New values
        of the result are in the order of tocsr(). Raises ValueError for ``mode="streamed"``.

        >>> A = rmsp.Matrix(([2.0, 3.0], [0, 1], [0, 1, 2]), shape=(2, 2))
        >>> B = A.to(rmsp.Runtime(devices="host:1"), determinism="run")
        >>> B @ np.ones(2)
        array([2., 3.])
        """
        moved = Matrix.__new__(Matrix)
        moved.runtime = runtime
        moved.shape, moved.dtype, moved._kept = self.shape, self.dtype, None
        moved._handle = self._handle.transfer(runtime, overrides(_SECTIONS, options), transposed)
        moved.nnz = moved._handle.nnz
        return moved

    def diagonal(self) -> ndarray:
        """The entries a_ii of a square matrix, computed on the devices from what they hold."""
        return self._handle.diagonal()

    def plan(self) -> _rmsp.Plan:
        """Which part is where, and what multiplies it: str() of it is the whole plan."""
        return self._handle.plan()

    def measure(self, x: Any = None, *, vectors: str = "replicated", iterations: int = 100, warmup: int = 10) -> dict:
        """Times products with vectors that are in ``host`` memory, ``replicated`` on the devices, or split by
        ``rows``, and returns report(), which has the figures from now on."""
        x = np.ones(self.shape[1], self.dtype) if x is None else np.ascontiguousarray(x, self.dtype)
        self._handle.measure(x, vectors, warmup, iterations)
        return self.report()

    def report(self) -> dict:
        """Plan, set-up times and what was measured, as docs/report.md describes the JSON."""
        return json.loads(self._handle.report()[1])

    def __repr__(self) -> str:
        rows, cols = self.shape
        return f"<rmsp.Matrix of {rows} x {cols}, {self.nnz} nonzeros, {self.dtype}\n{str(self.plan()).rstrip()}>"

    def _repr_html_(self) -> str:
        from ._html import html

        return html(self)
