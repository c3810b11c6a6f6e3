"""The front end by stages, which makes a `CompiledPipeline` of a `PipelineSchedule`: all of the reference's framework.

Every name of the reference is importable from here, as it is from `rota`; `__init__.pyi` lists them.
"""

import importlib

from rota.registry import read_stub

_MODULES = frozenset({"phase_derivation", "strategies"})  # as the reference's pages name them
__all__ = sorted(read_stub(__file__).keys() - _MODULES)  # noqa: PLE0605  # the stub is for who doesn't run it


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module("rota"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
