"""Tests of iterative solvers and operators that SciPy ships, run on ours: nobody here wrote them."""

import importlib
import inspect
import os

import numpy as np
import pytest
import scipy
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

import rmsp
from rmsp import linalg


def leave_out(why):
    """Skips this file. Continuous integration fails instead, since there scripts/setup chose the SciPy."""
    if os.environ.get("CI"):
        pytest.fail(f"{why}; tests/python/requirements.txt says which SciPy has tests that fit", pytrace=False)
    pytest.skip(why, allow_module_level=True)


try:
    iterative = importlib.import_module("scipy.sparse.linalg._isolve.tests.test_iterative")
    interface = importlib.import_module("scipy.sparse.linalg.tests.test_interface")
except ImportError as error:
    leave_out(f"SciPy {scipy.__version__} does not ship its tests: {error}")
if list(inspect.signature(iterative.test_convergence).parameters) != ["case"]:
    leave_out(f"the tests of SciPy {scipy.__version__} are written for arrays of several packages")


def matrix_of(case):
    return rmsp.Matrix(sp.csr_array(case.A))


REAL = [case for case in iterative.cases if np.dtype(case.A.dtype).kind == "f"]
# SciPy's test of gmres multiplies A by the number that its older callbacks get, which operators do not take.
STEPPED = [case for case in REAL if case.solver.__name__ != "gmres"]
OURS = [case for case in REAL if case.convergence and hasattr(linalg, case.solver.__name__)]


def with_operator(case):
    operator = matrix_of(case).aslinearoperator()
    assert isinstance(operator, LinearOperator)
    return iterative.SingleTest(operator, case.b, case.solver, case.name, case.convergence)


@pytest.mark.parametrize("case", REAL, ids=[case.name for case in REAL])
def test_scipys_solvers_on_our_operator(case):
    iterative.test_convergence(with_operator(case))


@pytest.mark.parametrize("case", STEPPED, ids=[case.name for case in STEPPED])
def test_one_iteration_of_scipys_solvers_on_our_operator(case):
    iterative.test_maxiter(with_operator(case))


@pytest.mark.parametrize("case", OURS, ids=[case.name for case in OURS])
def test_our_solvers_on_scipys_cases(case):
    ours = getattr(linalg, case.solver.__name__)
    iterative.test_convergence(iterative.SingleTest(matrix_of(case), case.b, ours, case.name))


def our_operators():
    """Of SciPy's cases those of a real array or matrix, as operators of ours."""
    suite = interface.TestAsLinearOperator()
    suite.setup_method()
    cases = []
    for given, array in suite.cases:
        if isinstance(given, LinearOperator) or np.dtype(given.dtype).kind == "c":
            continue
        operator = rmsp.Matrix(sp.csr_array(given)).aslinearoperator()
        operator.args = ()
        cases.append((operator, array))
    assert len(cases) == 9  # of integers and of both types of real numbers, as they are and transposed
    suite.cases = cases
    return suite


@pytest.mark.parametrize("test", ["test_basic", "test_dot"])
def test_scipys_tests_of_operators(test):
    getattr(our_operators(), test)()
