"""Vectors in the memory of a GPU: arrays of CuPy and tensors of torch, which are handed over by DLPack."""

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


def vectors(what: str, x: Any, dtype: np.dtype, size: int) -> tuple[Any, Any]:
    """x, contiguous, and zeros of so many entries beside it. Waits for the current stream, so that both are there.

    Raises ValueError for blocks of vectors, other types than the matrix's, and other packages.
    """
    package = package_of(x)
    name = str(x.dtype).removeprefix("torch.")
    if x.ndim != 1 or name != dtype.name:
        raise ValueError(f"{what} has {x.ndim} dimensions and type {name}; in GPU memory librmsp takes vectors of the "
                         f"matrix's type, {dtype.name}")
    if package.__name__ == "torch":
        x = x.detach().contiguous()
        zeros = package.zeros(size, dtype=x.dtype, device=x.device)
        package.cuda.current_stream(x.device).synchronize()
    elif package.__name__ == "cupy":
        with x.device:
            x = package.ascontiguousarray(x)
            zeros = package.zeros(size, x.dtype)
            package.cuda.get_current_stream().synchronize()
    else:
        raise ValueError(f"{what} is an array of {package.__name__} in GPU memory, neither of cupy nor of torch")
    return x, zeros
