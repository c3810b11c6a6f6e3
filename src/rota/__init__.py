"""rota makes schedules of GPU kernel loops, and judges kernels: everything an author needs is importable from here.

A name is loaded when it is first asked for, from its home module, which holds the same object: `import rota` costs next
to nothing, and `import rota.isa` loads no scheduler.  `__init__.pyi` lists the names and their homes.
"""

import importlib

from rota.registry import read_stub
from rota.verify.prove import verify as verify  # at once: the folder of that name would take its place
from rota.version import __version__ as __version__

_HOMES = read_stub(__file__)
_DOORS = frozenset({"pipeline", "triton"})  # modules that are asked for by name
__all__ = sorted(_HOMES.keys() - _DOORS)  # noqa: PLE0605  # who reads it without running it reads the stub


def __getattr__(name: str) -> object:
    if name in _DOORS:
        return importlib.import_module(f"rota.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
