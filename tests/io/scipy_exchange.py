"""Checks files of librmsp with SciPy, and writes files for librmsp. Exits with 77 where SciPy is missing."""
import sys

try:
    import numpy as np
    import scipy.io
    import scipy.sparse as sp
except ImportError:
    sys.exit(77)

folder = sys.argv[1]
expected = scipy.io.mmread(f"{folder}/expected.mtx").tocsr()
for name in ("rmsp.npz", "rmsp64.npz"):
    read = sp.load_npz(f"{folder}/{name}")
    assert read.format == "csr" and read.shape == expected.shape and read.has_sorted_indices, name
    assert (read != expected).nnz == 0 and read.nnz == expected.nnz, name
for name in ("rmsp.mtx.gz",):
    assert (scipy.io.mmread(f"{folder}/{name}").tocsr() != expected).nnz == 0, name

for form in ("csr", "csc", "coo"):
    for compressed in (False, True):
        sp.save_npz(f"{folder}/scipy-{form}-{int(compressed)}.npz", expected.asformat(form), compressed=compressed)
sp.save_npz(f"{folder}/scipy-bsr.npz", sp.bsr_matrix(np.eye(4)))
sp.save_npz(f"{folder}/scipy-complex.npz", sp.csr_matrix(np.eye(2) * 1j))
for kind in ("int8", "uint16", "int64", "bool", "float32"):
    sp.save_npz(f"{folder}/scipy-{kind}.npz", sp.csr_matrix(np.eye(3)).astype(kind))
