"""Threads, Control-C, lifetimes, forked processes, the commands, and what importing loads."""

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from conftest import close, poisson, random_matrix

import rmsp
from rmsp import linalg
from rmsp.__main__ import main


def test_threads():
    a, b = random_matrix(300, 300), poisson(12)
    A, B = rmsp.Matrix(a), rmsp.Matrix(b)
    rng = np.random.default_rng(5)
    vectors = [rng.random(300) for _ in range(20)]

    def work(x):
        y, info = linalg.cg(B, x[:144], rtol=1e-8)
        return A @ x, A.T @ x, y, info

    with ThreadPoolExecutor(4) as pool:
        for x, (y, t, z, info) in zip(vectors, pool.map(work, vectors)):
            assert close(y, a @ x) and close(t, a.T @ x) and info == 0 and np.allclose(b @ z, x[:144], atol=1e-5)


def forever(A):
    """A solve that only a callback ends."""
    return linalg.Solver(A, "minres", tolerance=0, max_iterations=10**9, stagnation=0, divergence=1e300)


def test_lock_is_released():
    """Another thread gets on while a solve goes on, and ends it."""
    A = rmsp.Matrix(random_symmetric())
    began, stop, results = threading.Event(), threading.Event(), []

    def told(progress):
        began.set()
        return not stop.is_set()

    thread = threading.Thread(target=lambda: results.append(forever(A).solve(np.ones(200), callback=told)))
    thread.start()
    assert began.wait(60)
    stop.set()
    thread.join(60)
    assert results[0].outcome == "cancelled"


def random_symmetric():
    a = random_matrix(200, 200, density=0.3)
    return a - a.T  # minres finds nothing to converge to: skew-symmetric


def test_control_c():
    A = rmsp.Matrix(random_symmetric())
    solver = forever(A)
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        solver.solve(np.ones(200))
    assert time.monotonic() - began < 30
    assert (A @ np.zeros(200) == 0).all()  # and everything stays usable


def test_control_c_ends_a_block_of_vectors():
    entries = 2_000_000  # that repeat in one row, so that a product takes milliseconds, and a million of them forever
    A = rmsp.Matrix((np.ones(entries), np.zeros(entries, np.int32), np.array([0, entries])), shape=(1, 1))
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        A @ np.ones((1, 1_000_000))
    assert 0.2 < time.monotonic() - began < 30
    assert A @ np.ones(1) == [entries]


@pytest.mark.parametrize("options", [{"borrow": True}, {"mode": "streamed"}, {"borrow": True, "mode": "streamed"}])
def test_arrays_in_use_stay(options):
    a = random_matrix(50, 50)
    x = np.arange(50.0)
    expected = a @ x
    parts = [array.copy() for array in (a.data, a.indices, a.indptr)]
    alive = [weakref.ref(part) for part in parts]
    A = rmsp.Matrix(tuple(parts), shape=a.shape, **options)
    data = parts[0]
    del parts
    gc.collect()
    assert all(reference() is not None for reference in alive)
    assert close(A @ x, expected)
    data *= 2  # the matrix uses this array itself
    A.update_values()
    assert close(A @ x, 2 * expected)
    with pytest.raises(ValueError):
        A.update_values(data.copy())
    solver = linalg.Solver(A, "gmres") if "mode" not in options else A.T
    del data, A
    gc.collect()
    assert all(reference() is not None for reference in alive)  # a solver and a transpose keep the matrix
    del solver
    gc.collect()
    assert all(reference() is None for reference in alive)


def test_arrays_that_were_copied_go():
    a = random_matrix(50, 50)
    parts = [array.copy() for array in (a.data, a.indices, a.indptr)]
    alive = [weakref.ref(part) for part in parts]
    A = rmsp.Matrix(tuple(parts), shape=a.shape)
    del parts
    gc.collect()
    assert all(reference() is None for reference in alive)
    assert close(A @ np.ones(50), a @ np.ones(50))


def test_everything_is_freed():
    runtime = rmsp.Runtime(devices="host:2x1")
    A = rmsp.Matrix(poisson(8), runtime=runtime)
    M = linalg.Preconditioner(A, "jacobi")
    solver = linalg.Solver(A, preconditioner=M)
    result = solver.solve(np.ones(64), callback=lambda progress: True)
    alive = [weakref.ref(A), weakref.ref(runtime), weakref.ref(A._handle)]
    x, y = np.ones(64), np.ones(64)
    counts = sys.getrefcount(x), sys.getrefcount(y)
    for _ in range(100):
        A.multiply(x, out=y)
        A @ x
    assert (sys.getrefcount(x), sys.getrefcount(y)) == counts
    del A, M, runtime
    gc.collect()
    assert all(reference() is not None for reference in alive)  # the solver has them
    del solver
    gc.collect()
    assert all(reference() is None for reference in alive) and result.converged


def test_memory_of_results_does_not_pile_up():
    A = rmsp.Matrix(random_matrix(200, 200, density=0.2))
    before = None
    for i in range(30):
        A @ A, A.diagonal(), linalg.solve(A, np.ones(200), max_iterations=2).history
        if i == 10:
            before = resident()
    assert resident() - before < 4 << 20


def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def python(program, *arguments, **environment):
    return subprocess.run([sys.executable, *arguments, *(["-c", program] if program else [])], capture_output=True,
                          text=True, timeout=120, env={**os.environ, **environment})


def test_forked_processes_are_told():
    output = python("""
import os, sys, numpy as np, rmsp
A = rmsp.Matrix(([2.0], [0], [0, 1]), shape=(1, 1))
child = os.fork()
if child == 0:
    told = 0
    for use in (lambda: A @ np.ones(1), lambda: rmsp.Matrix(([3.0], [0], [0, 1]), shape=(1, 1)), rmsp.Runtime):
        try:
            use()
        except ValueError as error:
            told += "fork()" in str(error)
    del A
    os._exit(0 if told == 3 else 1)
assert os.waitpid(child, 0)[1] == 0 and (A @ np.ones(1)).tolist() == [2]
""")
    assert output.returncode == 0, output


def test_ends_quietly():
    output = python("import numpy as np, rmsp; A = rmsp.Matrix(([2.0], [0], [0, 1]), shape=(1, 1)); y = A @ np.ones(1)")
    assert (output.returncode, output.stdout, output.stderr) == (0, "", "")


def test_import_is_light():
    output = python("import sys, rmsp; print([m for m in ('scipy', 'torch', 'cupy') if m in sys.modules])")
    assert output.stdout.strip() == "[]", output


def test_environment_names_the_devices():
    output = python("import rmsp; print(len(rmsp.default_runtime().devices()))", RMSP_DEVICES="host:3x1")
    assert output.stdout.strip() == "3"
    assert "nine" in python("import rmsp; rmsp.default_runtime()", RMSP_DEVICES="nine").stderr


def test_info(capsys):
    assert main(["info", "--devices", "host:2x1"]) == 0
    shown = capsys.readouterr().out
    assert rmsp.__version__ in shown and "host:1" in shown and "gmres" in shown
    assert main(["info", "--devices", "hot"]) == 2 and "hot" in capsys.readouterr().err


def test_doctor(capsys):
    assert main(["doctor", "--devices", "host:2x1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)
    output = python(None, "-m", "rmsp", "--help")
    assert output.returncode == 0 and "doctor" in output.stdout
