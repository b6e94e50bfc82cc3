"""python -m rmsp info, python -m rmsp doctor."""

from __future__ import annotations

import argparse
import sys

from . import Runtime, __commit__, __features__, __version__, _rmsp
from ._runtime import overrides


def _info(options: dict[str, str]) -> int:
    print(f"librmsp {__version__} (commit {__commit__}; {__features__})")
    print(f"Python {sys.version.split()[0]}, extension {_rmsp.__file__}")
    runtime = Runtime(**options)
    for device in runtime.devices():
        print(f"{device['kind']}:{device['index']}  {device['name']}")
    print(f"transport  {runtime.transport()}")
    print("kernels    " + ", ".join(k["name"] for k in _rmsp.kernels() if k["compiled"]))
    print("methods    " + ", ".join(m["name"] for m in _rmsp.solvers()))
    print("preconditioners  " + ", ".join(p["name"] for p in _rmsp.preconditioners()))
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Runs a command. Returns the exit code, with those of ``mspmv``: 2 for wrong use, 5 if a test failed."""
    parser = argparse.ArgumentParser(prog="python -m rmsp", description="What librmsp is and has on this machine.")
    commands = parser.add_subparsers(dest="command", required=True)
    info = commands.add_parser("info", help="version, devices, kernels, methods")
    doctor = commands.add_parser("doctor", help="test every device and link, with data and for speed")
    for command in (info, doctor):
        command.add_argument("--devices", help='these: auto, CUDA ordinals ("0,1"), host devices ("host:4")')
    doctor.add_argument("--refresh", action="store_true", help="test anew, even if a result is kept")
    doctor.add_argument("--json", action="store_true", help="print the result as JSON")
    given = parser.parse_args(arguments)
    options = {} if given.devices is None else {"devices": given.devices}
    try:
        if given.command == "info":
            return _info(options)
        text, result, failures = _rmsp.doctor(overrides(("runtime",), options), given.refresh)
    except (ValueError, OSError, RuntimeError) as error:
        print(f"rmsp: error: {error}", file=sys.stderr)
        return 2 if isinstance(error, ValueError) else 3 if isinstance(error, OSError) else 5
    print(result if given.json else text.rstrip())
    return 5 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
