"""Runtimes, and options by the keys of configurations."""

from __future__ import annotations

import atexit
import json
import os
import threading
from typing import Any, Iterable

from . import _rmsp

_known: dict[str, str] = {}  # every key, and what it means

# Keys of runs of mspmv, for which there are arguments here, or which the library leaves to its callers.
_OF_RUNS = {"run.iterations", "run.warmup", "run.cache", "run.alpha", "run.beta", "run.verify", "run.compare_vendor",
            "solver.rhs", "solver.guess", "solver.output", "solver.inner", "solver.inner_iterations",
            "solver.inner_tolerance"}


def _toml(value: Any) -> str:
    """A value as configurations write it."""
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        value = value.item()
    if isinstance(value, (bool, int, float)):
        return str(value).lower()
    if isinstance(value, (str, os.PathLike)):
        return json.dumps(os.fspath(value), ensure_ascii=False)
    if isinstance(value, Iterable):
        return "[" + ", ".join(_toml(v) for v in value) + "]"
    raise TypeError(f"an option is a number, a text or a list of them, not {type(value).__name__}")


def overrides(sections: tuple[str, ...], keys: dict[str, Any]) -> list[str]:
    """Keyword arguments as "section.key=value"; a keyword is the last word of a key of one of the sections."""
    texts = []
    for name, value in keys.items():
        if not _known:
            _known.update((key, meaning) for key, _, _, meaning in _rmsp.keys())
        # An unknown one keeps the first section: the library then names the nearest key.
        section = next((s for s in sections if f"{s}.{name}" in _known), sections[0])
        if f"{section}.{name}" in _OF_RUNS:
            raise ValueError(f"{name}: the key {section}.{name} is for runs of mspmv alone")
        texts.append(f"{section}.{name}={_toml(value)}")
    return texts


class Runtime(_rmsp.Runtime):
    """The devices of this node: every GPU, or groups of cores where there is none.

    Options are the ``runtime.*`` keys of configurations (docs/configuration.md), over the environment
    (``RMSP_DEVICES`` and the others).

    >>> runtime = rmsp.Runtime(devices="host:2x1")
    >>> [device["kind"] for device in runtime.devices()]
    ['host', 'host']

    Raises ValueError for wrong options, OSError for an unreadable file, RuntimeError if a device cannot be opened.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(overrides(("runtime",), options))

    def __repr__(self) -> str:
        names = ", ".join(device["name"] for device in self.devices())
        return f"<rmsp.Runtime on {names}; transport {self.transport()}>"


_lock = threading.Lock()
_default: Runtime | None = None


def default_runtime() -> Runtime:
    """The runtime of matrices that are given none, made at first use by the environment's options.

    A process that fork() made cannot use its parent's, nor make one: multiprocessing needs "spawn".
    """
    global _default
    with _lock:
        if _default is None:
            _default = Runtime()
        return _default


def _forget() -> None:
    global _default
    _default = None


atexit.register(_forget)
