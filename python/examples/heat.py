"""Heat in a plate: implicit steps in time, by conjugate gradients on every GPU, or on the cores of this machine.

RMSP_DEVICES=0,1 or RMSP_DEVICES=host:4 chooses the devices.
"""

import numpy as np
import scipy.sparse as sp

import rmsp

n = 60  # points along a side
line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
identity = sp.eye_array(n)
laplacian = sp.csr_array(sp.kron(line, identity) + sp.kron(identity, line))

A = rmsp.Matrix(sp.csr_array(sp.eye_array(n * n) + 0.5 * laplacian))  # one step: A u_new = u
print(A)

solver = rmsp.linalg.Solver(A, "cg", preconditioner="jacobi", tolerance=1e-10)
u = np.zeros((n, n))
u[20:40, 20:40] = 1.0
u = u.ravel()
for step in range(10):
    result = solver.solve(u, u)  # begins with the last step
    if not result.converged:
        raise SystemExit(result.reason)
    u = result.x
    print(f"step {step}: {result.iterations} iterations, {1e3 * result.seconds:.2f} ms, hottest {u.max():.4f}")

# The same by SciPy's own method, for which our matrix is a LinearOperator.
from scipy.sparse.linalg import cg  # noqa: E402

x, info = cg(A.aslinearoperator(), u, rtol=1e-10)
assert info == 0 and np.allclose(x, solver.solve(u).x)
