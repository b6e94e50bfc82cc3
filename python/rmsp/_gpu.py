"""Arrays in the memory of a GPU: those of CuPy and torch, which are handed over by their addresses."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

_CUDA, _CUDA_MANAGED = 2, 13  # of DLPack


class _Torch:
    """Tensors of torch."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._types = {"d": torch.float64, "f": torch.float32}
        # The handle alone, where torch has it: a torch.cuda.Stream made for each product costs more than the rest.
        self._raw_stream = getattr(getattr(torch, "_C", None), "_cuda_getCurrentRawStream", None)

    def on_gpu(self, x: Any) -> bool:
        return x.is_cuda

    def dtype_of(self, x: Any) -> str:
        return str(x.dtype).removeprefix("torch.")

    def contiguous(self, x: Any, dtype: str) -> Any:
        return x.detach().to(getattr(self._torch, dtype)).contiguous()

    def place_of(self, x: Any) -> tuple[int, int]:
        return x.data_ptr(), x.numel()

    def vector_place(self, x: Any, dtype: np.dtype) -> tuple[int, int] | None:
        if x.is_cuda and x.dtype is self._types[dtype.char] and x.ndim == 1 and x.is_contiguous():
            return x.data_ptr(), x.numel()
        return None

    def stream_of(self, x: Any) -> int:
        if self._raw_stream is not None:
            return self._raw_stream(x.get_device())
        return self._torch.cuda.current_stream(x.device).cuda_stream

    def synchronize(self, x: Any) -> None:
        self._torch.cuda.current_stream(x.device).synchronize()

    def new(self, size: int | tuple[int, int], like: Any, zeros: bool = False) -> Any:
        return like.new_zeros(size) if zeros else like.new_empty(size)

    def from_dlpack(self, y: np.ndarray) -> Any:
        return self._torch.from_dlpack(y)


class _CuPy:
    """Arrays of CuPy."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._device = cupy.cuda.runtime.getDevice

    def on_gpu(self, x: Any) -> bool:
        return True

    def dtype_of(self, x: Any) -> str:
        return x.dtype.name

    def contiguous(self, x: Any, dtype: str) -> Any:
        with x.device:
            return self._cupy.ascontiguousarray(x, dtype)

    def place_of(self, x: Any) -> tuple[int, int]:
        return x.data.ptr, x.size

    def vector_place(self, x: Any, dtype: np.dtype) -> tuple[int, int] | None:
        if x.dtype == dtype and x.ndim == 1 and x.flags.c_contiguous:
            return x.data.ptr, x.size
        return None

    def stream_of(self, x: Any) -> int:
        return self._cupy.cuda.get_current_stream(x.data.device_id).ptr

    def synchronize(self, x: Any) -> None:
        with x.device:
            self._cupy.cuda.get_current_stream().synchronize()

    def new(self, size: int | tuple[int, int], like: Any, zeros: bool = False) -> Any:
        make = self._cupy.zeros if zeros else self._cupy.ndarray  # as empty() makes it
        if like.data.device_id == self._device():
            return make(size, like.dtype)
        with like.device:
            return make(size, like.dtype)


class _Other:
    """Arrays of other packages: taken from host memory, refused in that of a GPU."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._package = sys.modules.get(name)

    def on_gpu(self, x: Any) -> bool:
        if not hasattr(x, "__dlpack_device__") or x.__dlpack_device__()[0] not in (_CUDA, _CUDA_MANAGED):
            return False
        raise ValueError(f"an array of {self._name} in GPU memory, neither of cupy nor of torch")

    def dtype_of(self, x: Any) -> str:
        return str(x.dtype)

    def vector_place(self, x: Any, dtype: np.dtype) -> tuple[int, int] | None:
        return None

    def from_dlpack(self, y: np.ndarray) -> Any:
        return self._package.from_dlpack(y) if hasattr(self._package, "from_dlpack") else y


#: How arrays of a type are used, once it has been found.
packages: dict[type, Any] = {}


def package_of(x: Any) -> Any:
    """How arrays of that type are used: found once a type."""
    kind = type(x)
    package = packages.get(kind)
    if package is None:
        names = [base.__module__.partition(".")[0] for base in kind.__mro__]
        if "torch" in names:
            package = _Torch(sys.modules["torch"])
        elif "cupy" in names:
            package = _CuPy(sys.modules["cupy"])
        else:
            package = _Other(names[0])
        packages[kind] = package
    return package


def on_gpu(x: Any) -> bool:
    """Whether an array is in the memory of a GPU.

    Raises ValueError if it is, and of another package than CuPy and torch.
    """
    return not isinstance(x, np.ndarray) and package_of(x).on_gpu(x)


def dtype_of(x: Any) -> str:
    """The type of the entries, as NumPy calls it."""
    return package_of(x).dtype_of(x)


def contiguous(x: Any, dtype: str) -> Any:
    """x, contiguous and of that type; the same array where it is."""
    return package_of(x).contiguous(x, dtype)


def indices(x: Any) -> Any:
    """x as indices that the library takes."""
    name = dtype_of(x)
    return contiguous(x, name if name in ("int32", "int64") else "int64")


def synchronize(x: Any) -> None:
    """Waits for the current stream of the array's GPU."""
    package_of(x).synchronize(x)


def vector(what: str, x: Any, dtype: np.dtype) -> Any:
    """x, contiguous.

    Raises ValueError for blocks of vectors, and for other types than the matrix's.
    """
    package = package_of(x)
    if package.vector_place(x, dtype) is not None:
        return x
    if x.ndim != 1 or package.dtype_of(x) != dtype.name:
        raise ValueError(f"{what} has {x.ndim} dimensions and type {package.dtype_of(x)}; in GPU memory librmsp takes "
                         f"vectors of the matrix's type, {dtype.name}")
    return package.contiguous(x, dtype.name)


def vectors(what: str, x: Any, dtype: np.dtype, size: int) -> tuple[Any, Any]:
    """x, contiguous, and zeros of so many entries beside it. Waits for the current stream, so that both are there."""
    x = vector(what, x, dtype)
    zeros = package_of(x).new(size, x, zeros=True)
    synchronize(x)
    return x, zeros


def csr_matrix(product: Any, shape: tuple[int, int], like: Any) -> Any:
    """A product of sparse matrices as a csr_matrix of cupyx, on the GPU of an array of CuPy's."""
    import cupy
    from cupyx.scipy import sparse

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
