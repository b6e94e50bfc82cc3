"""What type checkers are told is what there is: the stubs of the extension, and annotations of the Python modules."""

import ast
import inspect
import pathlib
import re

import pytest

import rmsp
from rmsp import _rmsp

FOLDER = pathlib.Path(_rmsp.__file__).parent
STUB = ast.parse((FOLDER / "_rmsp.pyi").read_text())


def simple(annotation):
    """A type as text, without the modules that its parts are of; an array by the type of its entries."""
    if "NDArray" in annotation or "ndarray" in annotation:
        entries = re.search(r"(?:NDArray\[(?:\w+\.)*|dtype=['\"]?|ndarray_)(\w+)", annotation)
        return f"array of {entries[1] if entries else 'anything'}"
    return re.sub(r"\b(?:\w+\.)+", "", annotation).replace("'", '"')


def described(function):
    """Names, types and defaults of a function's parameters, and what it returns, of its syntax tree."""
    given = function.args
    assert not given.vararg and not given.kwarg and not given.kwonlyargs
    parameters = [(a.arg, simple(ast.unparse(a.annotation)) if a.annotation else "") for a in
                  given.posonlyargs + given.args]
    return parameters, [ast.unparse(d) for d in given.defaults], simple(ast.unparse(function.returns))


def declared(body, prefix=""):
    """What the stub has: functions, methods and properties by name, those that are overloaded with each signature."""
    found = {}
    for node in body:
        if isinstance(node, ast.ClassDef):
            found[prefix + node.name] = ["class"]
            found.update(declared(node.body, f"{prefix}{node.name}."))
        elif isinstance(node, ast.FunctionDef):
            found.setdefault(prefix + node.name, []).append(described(node))
        elif isinstance(node, ast.AnnAssign):
            found[prefix + node.target.id] = [simple(ast.unparse(node.annotation))]
    return found


def signatures(function, name):
    """As nanobind made them: "def f(x: ndarray[dtype=float64, shape=(*)]) -> None"."""
    texts = []
    for text, _, defaults in function.__nb_signature__:
        assert defaults is None, f"{name} has defaults: compare them here"
        text = re.sub(r"^def *\w*\(", f"def {name.rpartition('.')[2]}(", text)
        text = re.sub(r"ndarray\[(?:dtype=(\w+))?[^\]]*\]", lambda m: f"ndarray_{m[1] or 'anything'}", text)
        texts.append(described(ast.parse(text + ": ...").body[0]))
    return texts


def present(owner, prefix=""):
    """The same of what the extension has."""
    found = {}
    for name, thing in vars(owner).items():
        if hasattr(thing, "__nb_signature__"):
            found[prefix + name] = signatures(thing, prefix + name)
        elif isinstance(thing, property):
            found[prefix + name] = signatures(thing.fget, prefix + name)
        elif isinstance(thing, type) and thing.__module__ == _rmsp.__name__:
            found[prefix + name] = ["class"]
            found.update(present(thing, f"{prefix}{name}."))
        elif not name.startswith("__"):
            found[prefix + name] = [type(thing).__name__]
    return found


def test_stubs_are_what_the_extension_has():
    there, told = present(_rmsp), declared(STUB.body)
    assert sorted(there) == sorted(told)
    assert len([name for name in there if "." in name]) > 60
    for name, signature in there.items():
        assert told[name] == signature, name


def test_a_wrong_stub_is_noticed():
    """The comparison above finds a parameter that has another name or type, and a result of another type."""
    true = present(_rmsp)["MatrixFloat64.apply"]
    for wrong in ("def apply(self, alpha: float, z: NDArray[float64], beta: float, y: NDArray[float64], "
                  "transposed: bool) -> None: ...",
                  "def apply(self, alpha: float, x: NDArray[float32], beta: float, y: NDArray[float64], "
                  "transposed: bool) -> None: ...",
                  "def apply(self, alpha: float, x: NDArray[float64], beta: float, y: NDArray[float64], "
                  "transposed: bool) -> int: ..."):
        assert [described(ast.parse(wrong).body[0])] != true
    assert [described(ast.parse("def apply(self, alpha: float, x: NDArray[numpy.float64], beta: float, "
                                "y: NDArray[float64], transposed: bool) -> None: ...").body[0])] == true


def public():
    for owner in (rmsp, rmsp.linalg):
        for name in owner.__all__:
            thing = getattr(owner, name)
            if inspect.isclass(thing) and not issubclass(thing, tuple):
                members = inspect.getmembers(thing, inspect.isfunction)
                yield from ((f"{name}.{m}", f) for m, f in members if m == "__init__" or not m.startswith("_"))
            elif inspect.isfunction(thing):
                yield name, thing


@pytest.mark.parametrize("name, function", list(public()), ids=[name for name, _ in public()])
def test_public_functions_are_annotated(name, function):
    """The package is marked as typed, so what it exports says its types."""
    assert (FOLDER / "py.typed").exists()
    signature = inspect.signature(function)
    bare = [p for p in signature.parameters.values() if p.name != "self" and p.annotation is p.empty]
    assert bare == [] and signature.return_annotation is not signature.empty
    assert function.__doc__ or name.endswith("__init__") or name.endswith(".dot")
