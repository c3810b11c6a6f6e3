"""A kernel named on the command line: takes a name, file.py:Name or package.module:Name, gives a `Kernel`."""

from __future__ import annotations

import importlib
import importlib.machinery
import inspect
import sys
import sysconfig
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TypeVar

import click

import rota
from rota.cli.search import searched
from rota.cli.set_values import with_settings
from rota.compiled.compiled_schedule import CompiledSchedule
from rota.errors import RotaError, did_you_mean
from rota.kernels.catalogue import KERNELS, full_names, kernel_named
from rota.kernels.kernel import Kernel, front_end_of

Command = TypeVar("Command", bound=Callable[..., object])

_FOLDERS: set[Path] = set()
"""Of the files that were loaded."""


def kernel_argument(command: Command) -> Command:
    """Adds KERNEL."""
    return click.argument("kernel")(command)


def set_option(command: Command) -> Command:
    """Adds `--set`."""
    return click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="FIELD=VALUE",
        help="Change a setting; fields of dataclasses by path, as waits.auto_drain=true. Repeatable.",
    )(command)


def find_kernel(name: str, settings: Sequence[str] = ()) -> Kernel:
    """The kernel of that name with its settings changed; a usage error if there is none."""
    return with_settings(_written(name) if ":" in name else _registered(name), settings)


def compiled_kernel(kernel: Kernel) -> CompiledSchedule:
    """The kernel's schedule under the name by which it was asked for."""
    fine = kernel.settings().get("instructions")
    hint = " by instruction (--set instructions=false is quicker, and coarser)" if fine and fine.value is True else ""
    return replace(searched(f"compiling {kernel.name}{hint}", kernel.compile), name=kernel.name)


def _registered(name: str) -> Kernel:
    """A kernel that rota ships or an installed package registers."""
    if KERNELS.knows(name) or name in full_names():
        return kernel_named(name)
    own = "or your own: file.py:Name, package.module:Name"
    raise click.UsageError("\n".join((*KERNELS.unknown(name), own)))


def named_object(name: str) -> object:
    """What file.py:Name or package.module:Name stands for."""
    place, colon, attribute = name.rpartition(":")
    if not colon:
        raise click.UsageError(f"{name!r} names no function: file.py:function, package.module:function")
    module = _module(place)
    if not hasattr(module, attribute):
        own = [key for key, value in vars(module).items() if not key.startswith("_") and inspect.isroutine(value)]
        raise click.UsageError("\n".join((f"{place} has no {attribute!r}", *did_you_mean(attribute, own))))
    return getattr(module, attribute)


def _written(name: str) -> Kernel:
    place, _, attribute = name.rpartition(":")
    module = _module(place)
    if not hasattr(module, attribute):
        own = [key for key, value in vars(module).items() if not key.startswith("_") and _may_be_meant(module, value)]
        guesses = did_you_mean(attribute, own) or ("nothing in it could be a kernel",)
        raise click.UsageError(f"{place} has no {attribute!r}\n" + "\n".join(guesses))
    return Kernel(name=attribute, source=getattr(module, attribute))


def _module(place: str) -> ModuleType:
    """A file is loaded as itself, with its folder open to imports, as `python file.py` does."""
    if place.endswith(".py") and not Path(place).is_file():
        raise click.UsageError(f"there is no file {place}")
    try:
        return _loaded(Path(place)) if place.endswith(".py") else _imported(place)
    except RotaError:
        raise
    except Exception as error:
        if authors_line(error):
            raise  # told with that line
        raise click.UsageError(f"{place} can't be loaded: {type(error).__name__}: {error}") from error


def _imported(name: str) -> ModuleType:
    sys.path.insert(0, str(Path.cwd()))
    return importlib.import_module(name)


def _loaded(path: Path) -> ModuleType:
    folder = path.parent.resolve()
    _forget_neighbours(folder)
    sys.path.insert(0, str(folder))
    loader = importlib.machinery.SourceFileLoader(path.stem, str(path))
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    sys.modules[path.stem] = module  # dataclasses look their module up
    loader.exec_module(module)
    return module


def _forget_neighbours(folder: Path) -> None:
    """Modules beside files loaded before: two folders may each have a `common.py`, and a file means its own."""
    others = _FOLDERS - {folder}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file is not None and Path(file).resolve().parent in others:
            del sys.modules[name]
    _FOLDERS.add(folder)


def authors_line(error: BaseException) -> str | None:
    """Where a kernel's own code failed, if it wasn't rota's; libraries fail on behalf of who called them."""
    package = str(Path(rota.__file__).parent)
    libraries = ("<", *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")))
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.startswith(package):
            return None
        if not frame.filename.startswith(libraries):
            return f"{frame.filename}:{frame.lineno}"
    return None


def _may_be_meant(module: ModuleType, value: object) -> bool:
    """Is it a kernel's value, or a class or function that was written there rather than imported?"""
    if not isinstance(value, type) and front_end_of(value) is not None:
        return True
    return (inspect.isroutine(value) or inspect.isclass(value)) and value.__module__ == module.__name__
