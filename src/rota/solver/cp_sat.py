"""The constraint solver's import: takes nothing, makes OR-Tools' `cp_model` ready, without the pandas it seldom needs.

Its module imports pandas for two methods that make series of variables, and pandas takes most of the time of the
import.  So the module is executed with an `import pandas` of its own, which gives it two names to put into annotations;
after that, what it looks up in pandas is looked up in pandas itself, imported then.  Nothing of this is seen outside of
that module: `import pandas` anywhere else, before, after or at the same time, is what it always is.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

from rota.solver.limits import library_missing

_NAME = "ortools.sat.python.cp_model"


class _Postponed(ModuleType):
    """What the solver's module imports as pandas: names for annotations at first, pandas itself afterwards."""

    Index: Any
    Series: Any

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # whatever pandas has
        return getattr(importlib.import_module("pandas"), name)


def make_ready() -> None:
    """Make `import ortools.sat.python.cp_model` quick; D105 if it isn't installed."""
    try:
        if _NAME not in sys.modules and "pandas" not in sys.modules:
            _execute()
        from ortools.sat.python import cp_model  # noqa: F401  # only to see whether it can be imported
    except ImportError as error:
        raise library_missing(error) from error


def _execute() -> None:
    spec = find_spec(_NAME)
    if spec is None or spec.loader is None:
        raise ImportError(f"no module named {_NAME!r}", name=_NAME)
    postponed = _Postponed("pandas")
    postponed.Index, postponed.Series = type("Index", (), {}), type("Series", (), {})

    def own_import(name: str, *arguments: Any) -> Any:  # noqa: ANN401  # as the built-in one
        return postponed if name == "pandas" else builtins.__import__(name, *arguments)

    module = module_from_spec(spec)
    vars(module)["__builtins__"] = {**vars(builtins), "__import__": own_import}
    sys.modules[_NAME] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[_NAME]
        raise
    finally:
        del postponed.Index, postponed.Series
    parent, _, child = _NAME.rpartition(".")
    setattr(sys.modules[parent], child, module)
