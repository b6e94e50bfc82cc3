"""Arrays in the memory of a GPU: those of CuPy and torch, which are handed over by DLPack."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

_CUDA, _CUDA_MANAGED = 2, 13  # of DLPack


def on_gpu(x: Any) -> bool:
    """Whether an array is in the memory of a GPU."""
    if isinstance(x, np.ndarray) or not hasattr(x, "__dlpack_device__"):
        return False
    return x.__dlpack_device__()[0] in (_CUDA, _CUDA_MANAGED)


def package_of(x: Any) -> Any:
    """The module that the array's type is of."""
    return sys.modules[type(x).__module__.partition(".")[0]]


def _is_torch(package: Any) -> bool:
    if package.__name__ not in ("torch", "cupy"):
        raise ValueError(f"an array of {package.__name__} in GPU memory, neither of cupy nor of torch")
    return package.__name__ == "torch"


def dtype_of(x: Any) -> str:
    """The type of the entries, as NumPy calls it."""
    return str(x.dtype).removeprefix("torch.")


def contiguous(x: Any, dtype: str) -> Any:
    """x, contiguous and of that type; the same array where it is."""
    package = package_of(x)
    if _is_torch(package):
        return x.detach().to(getattr(package, dtype)).contiguous()
    with x.device:
        return package.ascontiguousarray(x, dtype)


def is_contiguous(x: Any) -> bool:
    """Whether the entries stand one behind the other."""
    return x.is_contiguous() if _is_torch(package_of(x)) else x.flags.c_contiguous


def indices(x: Any) -> Any:
    """x as indices that the library takes."""
    name = dtype_of(x)
    return contiguous(x, name if name in ("int32", "int64") else "int64")


def address_of(x: Any) -> int:
    """Where the entries are."""
    return x.data_ptr() if _is_torch(package_of(x)) else x.data.ptr


def stream_of(x: Any) -> int:
    """The handle of the current stream of the array's GPU."""
    package = package_of(x)
    if _is_torch(package):
        return package.cuda.current_stream(x.device).cuda_stream
    return package.cuda.get_current_stream(x.device.id).ptr


def synchronize(x: Any) -> None:
    """Waits for the current stream of the array's GPU."""
    package = package_of(x)
    if _is_torch(package):
        package.cuda.current_stream(x.device).synchronize()
    else:
        with x.device:
            package.cuda.get_current_stream().synchronize()


def vector(what: str, x: Any, dtype: np.dtype) -> Any:
    """x, contiguous.

    Raises ValueError for blocks of vectors, other types than the matrix's, and other packages.
    """
    same = x.dtype == dtype if isinstance(x.dtype, np.dtype) else dtype_of(x) == dtype.name
    if x.ndim != 1 or not same:
        raise ValueError(f"{what} has {x.ndim} dimensions and type {dtype_of(x)}; in GPU memory librmsp takes vectors "
                         f"of the matrix's type, {dtype.name}")
    return x if is_contiguous(x) else contiguous(x, dtype.name)


def new(size: int | tuple[int, int], like: Any, zeros: bool = False) -> Any:
    """An array beside another one, of its type."""
    package = package_of(like)
    make = package.zeros if zeros else package.empty
    if _is_torch(package):
        return make(size, dtype=like.dtype, device=like.device)
    with like.device:
        return make(size, like.dtype)


def vectors(what: str, x: Any, dtype: np.dtype, size: int) -> tuple[Any, Any]:
    """x, contiguous, and zeros of so many entries beside it. Waits for the current stream, so that both are there."""
    x = vector(what, x, dtype)
    zeros = new(size, x, zeros=True)
    synchronize(x)
    return x, zeros


def csr_matrix(product: Any, shape: tuple[int, int], like: Any) -> Any:
    """A product of sparse matrices as a csr_matrix of cupyx, on the GPU of an array of CuPy's."""
    from cupyx.scipy import sparse

    cupy = package_of(like)
    with like.device:
        indptr = cupy.empty(shape[0] + 1, "int64")
        indices = cupy.empty(product.nnz, "int32")
        data = cupy.empty(product.nnz, like.dtype)
        synchronize(like)  # what used the pool's memory before has ended
        product.download(indptr, indices, data)
        if product.nnz <= np.iinfo(np.int32).max:
            indptr = indptr.astype("int32")  # cupyx's kernels take indices of one type
        matrix = sparse.csr_matrix((data, indices, indptr), shape=shape)
        matrix.has_canonical_format = True  # columns rise, each once
        return matrix
