"""What docstrings, docs/python.md and the example say is so."""

import doctest
import importlib
import os
import pathlib
import pkgutil
import subprocess
import sys

import numpy as np
import pytest

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


@pytest.mark.parametrize("example", sorted((SOURCE / "python/examples").glob("*.py")), ids=lambda path: path.name)
def test_examples(example):
    output = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, timeout=120)
    assert output.returncode == 0, output
