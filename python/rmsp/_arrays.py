"""Takes the arrays out of sparse matrices of other packages, without importing them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from . import _gpu


class Arrays(NamedTuple):
    """What the library takes: coordinates have rows in the place of pointers."""

    format: str
    shape: tuple[int, int]
    pointers: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    copied: bool  # whether any array had to be converted
    block: tuple[int, int] | None = None  # of bsr: height and width


def _package(a: Any) -> str:
    return type(a).__module__.partition(".")[0]


def is_sparse(a: Any) -> bool:
    """Whether it looks like a sparse matrix of SciPy or CuPy."""
    return hasattr(a, "tocsr") and hasattr(a, "format")


def value_type(dtype: Any) -> np.dtype:
    """float32 stays, other real numbers are multiplied in float64."""
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        raise ValueError(f"the matrix has values of type {dtype}; librmsp multiplies float32 and float64")
    if dtype.kind not in "fiub":
        raise ValueError(f"the matrix has values of type {dtype}, which are no real numbers")
    return np.dtype(np.float32 if dtype == np.float32 else np.float64)


def _indices(array: Any) -> np.ndarray:
    array = np.asarray(array)
    if array.dtype.kind not in "iu" and array.size > 0:
        raise ValueError(f"indices have type {array.dtype}; they are integers")
    narrow = array.dtype == np.int32 or array.dtype.itemsize < 4 or array.size == 0
    return np.ascontiguousarray(array, np.int32 if narrow else np.int64)


def _finish(format: str, shape: Any, first: Any, second: Any, values: Any, dtype: Any) -> Arrays:
    if shape is None:
        raise ValueError("arrays without a shape: give shape=(rows, columns)")
    rows, cols = (int(n) for n in shape)
    given = (np.asarray(first), np.asarray(second), np.asarray(values))
    if any(array.ndim != 1 for array in given):
        raise ValueError(f"the arrays of a matrix have {[array.ndim for array in given]} dimensions; each has one")
    pointers, indices = _indices(given[0]), _indices(given[1])
    data = np.ascontiguousarray(given[2], value_type(given[2].dtype if dtype is None else dtype))
    if format != "coo" and len(pointers) > 0:
        # SciPy lets the arrays be longer than what the pointers say.
        nnz = max(int(pointers[-1]), 0)
        indices, data = indices[:nnz], data[:nnz]
    taken = (pointers, indices, data)
    copied = any(len(old) > 0 and not np.may_share_memory(new, old) for new, old in zip(taken, given))
    return Arrays(format, (rows, cols), pointers, indices, data, copied)


def _on_gpu(format: str, shape: Any, first: Any, second: Any, values: Any, dtype: Any) -> Arrays:
    """Arrays in GPU memory, which stay there. Waits for the current stream, on which they may be being written."""
    wanted = value_type(_gpu.dtype_of(values) if dtype is None else dtype)
    taken = (_gpu.indices(first), _gpu.indices(second), _gpu.contiguous(values, wanted.name))
    _gpu.synchronize(values)
    rows, cols = (int(n) for n in shape)
    return Arrays(format, (rows, cols), *taken, True)


def _bsr(a: Any, dtype: Any) -> Arrays:
    arrays = _finish("csr", a.shape, a.indptr, a.indices, np.zeros(0, np.float64), np.float64)
    stored = int(arrays.pointers[-1]) if len(arrays.pointers) > 0 else 0
    height, width = (int(n) for n in a.blocksize)
    data = np.ascontiguousarray(a.data[:stored], value_type(a.data.dtype if dtype is None else dtype)).reshape(-1)
    return arrays._replace(format="bsr", values=data, copied=True, block=(height, width))


def _torch(a: Any, dtype: Any) -> Arrays:
    layout = str(a.layout)
    a = a.detach()
    if a.device.type == "cuda":
        finish = _on_gpu
    elif a.device.type == "cpu":
        finish = _finish
    else:
        raise ValueError(f"the tensor is on {a.device}; librmsp takes matrices from host memory and that of CUDA GPUs")
    if layout == "torch.sparse_csr":
        return finish("csr", a.shape, a.crow_indices(), a.col_indices(), a.values(), dtype)
    if layout == "torch.sparse_csc":
        return finish("csc", a.shape, a.ccol_indices(), a.row_indices(), a.values(), dtype)
    if layout == "torch.sparse_coo":
        a = a.coalesce()
        return finish("coo", a.shape, a.indices()[0], a.indices()[1], a.values(), dtype)
    raise ValueError(f"a tensor of layout {layout}; librmsp takes sparse_csr, sparse_csc and sparse_coo")


def take(a: Any, shape: Any = None, dtype: Any = None, format: str = "csr") -> Arrays:
    """The arrays of ``a``, in place where their types allow it."""
    if isinstance(a, tuple):
        if len(a) == 2 and len(a[1]) == 2:  # as SciPy's coo_array takes them
            return _finish("coo", shape, a[1][0], a[1][1], a[0], dtype)
        if len(a) != 3:
            raise ValueError(f"{len(a)} arrays; a matrix has (data, indices, indptr), or (data, (rows, columns))")
        if format not in ("csr", "csc"):
            raise ValueError(f'format is "{format}"; arrays (data, indices, indptr) are csr or csc')
        return _finish(format, shape, a[2], a[1], a[0], dtype)
    if shape is not None and tuple(shape) != tuple(getattr(a, "shape", shape)):
        raise ValueError(f"the matrix has shape {tuple(a.shape)}, shape says {tuple(shape)}")
    if _package(a) == "torch":
        return _torch(a, dtype)
    if not is_sparse(a):
        if hasattr(a, "__array__"):
            raise ValueError("a dense array; scipy.sparse.csr_array(A) makes a sparse matrix of it")
        raise TypeError(f"{type(a).__name__} is no sparse matrix: csr, csc, coo and bsr of SciPy are, "
                        "sparse tensors of torch, and (data, indices, indptr)")
    if len(a.shape) != 2:
        raise ValueError(f"a sparse array of {len(a.shape)} dimensions; a matrix has 2")
    if _package(a) in ("cupyx", "cupy"):
        a = a if a.format in ("csr", "csc") else a.tocsr()  # which sorts, on the GPU
        return _on_gpu(a.format, a.shape, a.indptr, a.indices, a.data, dtype)
    if a.format == "bsr":
        return _bsr(a, dtype)
    if a.format == "coo":
        return _finish("coo", a.shape, a.row, a.col, a.data, dtype)
    if a.format not in ("csr", "csc"):
        converted = a.tocsr()
        return _finish("csr", a.shape, converted.indptr, converted.indices, converted.data, dtype)._replace(copied=True)
    return _finish(a.format, a.shape, a.indptr, a.indices, a.data, dtype)
