"""Sparse matrices on all the GPUs of a node, or on its cores, for NumPy and SciPy.

>>> import numpy as np, rmsp
>>> A = rmsp.Matrix(([4.0, 1.0, 1.0, 3.0], [0, 1, 0, 1], [0, 2, 4]), shape=(2, 2))
>>> A @ np.array([1.0, 2.0])
array([6., 7.])
>>> x, info = rmsp.linalg.cg(A, np.array([6.0, 7.0]), rtol=1e-10)
>>> info, x.round(6)
(0, array([1., 2.]))
"""

from . import linalg
from ._matrix import Matrix
from ._rmsp import commit as __commit__
from ._rmsp import features as __features__
from ._rmsp import version as __version__
from ._runtime import Runtime, default_runtime

__all__ = ["Matrix", "Runtime", "default_runtime", "linalg"]
