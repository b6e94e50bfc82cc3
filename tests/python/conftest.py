"""What the tests share: devices that every machine has, and matrices from fixed seeds."""

import os
import signal

signal.signal(signal.SIGINT, signal.default_int_handler)  # which the shell's background jobs ignore
os.environ.setdefault("RMSP_DEVICES", "host:2x1")
os.environ["RMSP_CACHE_DIR"] = "off"

import numpy as np
import scipy.sparse as sp


def close(y, expected):
    """Whether y is what SciPy computed, within the rounding errors of long rows."""
    eps = np.finfo(np.asarray(y).dtype).eps
    scale = np.abs(expected).max(initial=1)
    return np.shape(y) == np.shape(expected) and np.allclose(y, expected, rtol=1e3 * eps, atol=1e3 * eps * scale)


def random_matrix(rows, cols, density=0.05, seed=1, dtype=np.float64):
    return sp.random_array((rows, cols), density=density, format="csr", dtype=dtype, rng=np.random.default_rng(seed))


def poisson(n, dtype=np.float64):
    """The 5-point stencil of an n x n grid: symmetric positive definite."""
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    identity = sp.eye_array(n)
    return sp.csr_array(sp.kron(line, identity) + sp.kron(identity, line), dtype=dtype)


def pytest_unconfigure(config):
    """Puts each element of a report on a line of its own, as GoogleTest does: scripts/check counts these lines."""
    path = config.option.xmlpath
    if path and os.path.exists(path):
        with open(path) as report:
            text = report.read()
        with open(path, "w") as report:
            report.write(text.replace("><", ">\n<"))
