"""What docstrings, docs/python.md and the example say is so."""

import doctest
import importlib
import os
import pathlib
import pkgutil
import re
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse.linalg
from conftest import close, poisson

import rmsp

SOURCE = pathlib.Path(os.environ.get("RMSP_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
MODULES = ["rmsp"] + [f"rmsp.{m.name}" for m in pkgutil.iter_modules(rmsp.__path__) if m.name != "__main__"]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    assert doctest.testmod(importlib.import_module(name), extraglobs={"np": np, "rmsp": rmsp}).failed == 0


def test_public_names_have_docstrings():
    for owner in (rmsp, rmsp.linalg):
        for name in owner.__all__:
            thing = getattr(owner, name)
            assert thing.__doc__, name
            if isinstance(thing, type) and not issubclass(thing, tuple):
                missing = [m for m in dir(thing) if m[0] != "_" and callable(getattr(thing, m))
                           and not getattr(thing, m).__doc__]
                assert missing == (["dot"] if thing is rmsp.Matrix else [])


def test_manual():
    result = doctest.testfile(str(SOURCE / "docs/python.md"), module_relative=False)
    assert result.failed == 0 and result.attempted > 10


def test_commands_of_documents():
    """Every line `python -m rmsp ...` of README and docs runs."""
    documents = [SOURCE / "README.md", *(SOURCE / "docs").glob("*.md"), *(SOURCE / "docs/guide").glob("*.md")]
    lines = {line.split("#")[0].strip() for document in documents
             for line in document.read_text().splitlines() if re.match(r" *python3? -m rmsp ", line)}
    assert len(lines) >= 2
    for line in lines:
        output = subprocess.run([sys.executable, *line.split()[1:]], capture_output=True, text=True, timeout=120)
        assert output.returncode == 0 and output.stdout, (line, output)


def test_readme():
    """The Python of README.md, with a matrix and vectors as it takes them for given."""
    blocks = re.findall(r"^```python\n(.*?)^```", (SOURCE / "README.md").read_text(), re.M | re.S)
    assert blocks
    matrix = poisson(8)
    ones = np.ones(matrix.shape[0])
    for block in blocks:
        names = {"rmsp": rmsp, "scipy": scipy, "scipy_csr": matrix, "x": ones, "b": ones}
        exec(compile(block, "README.md", "exec"), names)
        assert close(names["y"], matrix @ ones) and names["info"] == 0
        assert np.allclose(matrix @ names["x"], ones, atol=1e-6)


@pytest.mark.parametrize("example", sorted((SOURCE / "python/examples").glob("*.py")), ids=lambda path: path.name)
def test_examples(example):
    output = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, timeout=120)
    assert output.returncode == 0, output
