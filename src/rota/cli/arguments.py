"""Kernels and settings named on the command line: a name, file.py:Name or package.module:Name."""

from __future__ import annotations

import enum
import importlib
import importlib.machinery
import inspect
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from threading import Thread
from types import ModuleType, NoneType, UnionType
from typing import Any, NamedTuple, TypeVar, Union, get_args, get_origin

import click

import rota
from rota.cli.output import progress, tell
from rota.compiled.compiled_schedule import CompiledSchedule
from rota.errors import RotaError, did_you_mean
from rota.kernels.catalogue import KERNELS, full_names, kernel_named
from rota.kernels.kernel import Kernel, Setting, front_end_of, hints_of
from rota.pipeline.schedule_config import BarrierStrategy, LoadStrategy, ScheduleConfig, WaitStrategy
from rota.program.machine import Machine
from rota.registry import Registry
from rota.solver.limits import Stop
from rota.solver.memory import remembering
from rota.targets import registry

# A search that Ctrl-C ends early.
#
# The first Ctrl-C ends the searches that are in flight, and the work goes on with the best that they found; the
# second ends the command.

T = TypeVar("T")

_TICK = 0.1  # seconds, after which a wait looks around: one without an end would not let Ctrl-C through on Windows


def run_search(doing: str, work: Callable[[], T]) -> T:
    stop = Stop()
    result: Future[T] = Future()
    # A daemon, so that the second Ctrl-C doesn't wait for it.
    Thread(target=_run, args=(work, stop, result), daemon=True).start()
    with progress(doing):
        try:
            return _await_search(result)
        except KeyboardInterrupt:
            tell("\nstopping with the best found so far; Ctrl-C again gives it up")
            return _await_search(result, stop)


def _run(work: Callable[[], T], stop: Stop, result: Future[T]) -> None:
    with stop.governing(), remembering():
        try:
            result.set_result(work())
        except BaseException as error:  # noqa: BLE001  # raised again where the result is asked for
            result.set_exception(error)


def _await_search(result: Future[T], stop: Stop | None = None) -> T:
    """A search may begin just when it is asked to stop, so it is asked until it has."""
    while True:
        if stop is not None:
            stop.ask()
        try:
            return result.result(timeout=_TICK)
        except TimeoutError:
            if result.done():  # it is the work that ran out of time, or it ended just now
                return result.result()


# A setting from the command line.
#
# The fields of the kernel's dataclasses are the options. A field is named by its path or by enough of the path's
# end.

_TRUTH = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_TOO_LARGE = 2**63
_STRATEGIES = {"waits": WaitStrategy, "barriers": BarrierStrategy, "loads": LoadStrategy}
"""Groups of a schedule's knobs, by which they may be named too."""


class Leaf(NamedTuple):
    """A field that can be set: its path, its value, its declared type and other paths to it."""

    path: tuple[str, ...]
    value: object
    kind: Any
    also: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return ".".join(self.path)

    def answers_to(self, name: str) -> bool:
        """True if `name` is this field's path, or the end of it."""
        return any(path == name or path.endswith(f".{name}") for path in (self.name, *self.also))


def with_settings(kernel: Kernel, texts: Sequence[str]) -> Kernel:
    """The kernel with all of them set at once, as some are valid only together.

    Parameters come first: they make the rest.
    """
    parameters = _leaves_of(kernel.parameters)
    own = [text for text in texts if any(leaf.answers_to(_name(text)) for leaf in parameters)]
    for some in (own, [text for text in texts if text not in own]):
        kernel = _with_all(kernel, [_parse_setting(kernel, text) for text in some])
    return kernel


def apply_settings(kernel: Kernel, text: str) -> Kernel:
    return with_settings(kernel, [text])


def has_field(kernel: Kernel, text: str) -> bool:
    """True if field=value names a field of this kernel."""
    return any(leaf.answers_to(_name(text)) for leaf in leaves(kernel))


def _name(text: str) -> str:
    return text.partition("=")[0].strip()


class _Asked(NamedTuple):
    path: tuple[str, ...]
    value: object


def _parse_setting(kernel: Kernel, text: str) -> _Asked:
    name, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"--set {text[:80]}: expected field=value")
    leaf = _leaf(kernel, name.strip())
    try:
        return _Asked(leaf.path, _parse_value(value.strip(), leaf.kind))
    except ValueError as error:
        raise click.UsageError(f"--set {text[:80]}: {error}") from error


def _with_all(kernel: Kernel, asked: Sequence[_Asked]) -> Kernel:
    whole = all(len(path) == 1 for path, _ in asked)  # then it doesn't matter what stood there, nor that it can be made
    settings = {} if whole else kernel.settings()
    for top in dict.fromkeys(path[0] for path, _ in asked):
        inner = [_Asked(path[1:], value) for path, value in asked if path[0] == top]
        kernel = kernel.but(top, _with(None if whole else settings[top].value, inner))
    return kernel


def leaves(kernel: Kernel) -> tuple[Leaf, ...]:
    return _leaves_of(kernel.settings())


def _leaves_of(settings: Mapping[str, Setting]) -> tuple[Leaf, ...]:
    return tuple(leaf for name, setting in settings.items() for leaf in _under((name,), setting.value, setting.kind))


def _leaf(kernel: Kernel, name: str) -> Leaf:
    own = [leaf for leaf in _leaves_of(kernel.parameters) if leaf.name == name]
    if own:  # the rest need not be made to find it
        return own[0]
    known = leaves(kernel)
    exact = [leaf for leaf in known if leaf.name == name]
    matching = exact or [leaf for leaf in known if leaf.answers_to(name)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        several = ", ".join(leaf.name for leaf in matching)
        raise click.UsageError(f"--set {name}: {kernel.name} has several fields of that name: {several}")
    guesses = did_you_mean(name, {end for leaf in known for end in (leaf.name, leaf.path[-1], *leaf.also)})[:-1]
    listed = "`rota kernels KERNEL` lists its fields"
    raise click.UsageError("; ".join([f"--set {name}: {kernel.name} has no such field", *guesses, listed]))


def _under(path: tuple[str, ...], value: object, kind: object) -> Iterator[Leaf]:
    if not is_dataclass(value) or isinstance(value, type | Machine):
        if _parsable(kind):
            yield Leaf(path, value, kind)
        return
    hints = hints_of(type(value))
    for field in fields(value):
        for leaf in _under((*path, field.name), getattr(value, field.name), hints.get(field.name)):
            groups = _STRATEGIES if isinstance(value, ScheduleConfig) else {}
            named = (name for name, group in groups.items() if field.name in {each.name for each in fields(group)})
            yield leaf._replace(also=tuple(f"{name}.{field.name}" for name in named))


def _with(value: Any, asked: Sequence[_Asked]) -> object:  # noqa: ANN401  # some dataclass
    """A value whose fields are changed all at once; what is asked for twice is what was asked for last."""
    whole = [each.value for each in asked if not each.path]
    if whole:
        return whole[-1]
    parts = {
        name: _with(getattr(value, name), [_Asked(path[1:], new) for path, new in asked if path[0] == name])
        for name in dict.fromkeys(path[0] for path, _ in asked)
    }
    return replace(value, **parts)


def _parsable(kind: Any) -> bool:  # noqa: ANN401  # a type hint
    if get_origin(kind) in (Union, UnionType):
        return any(_parsable(member) for member in get_args(kind) if member is not NoneType)
    if get_origin(kind) is tuple:
        return all(member is int for member in get_args(kind))
    return isinstance(kind, type) and (kind in (bool, int, float, str, Machine) or issubclass(kind, enum.Enum))


def _parse_value(text: str, kind: Any) -> object:  # noqa: ANN401  # a type hint
    """The value that a text represents; a ValueError says what was expected."""
    if get_origin(kind) in (Union, UnionType):
        return _first_parsed(text, get_args(kind))
    if get_origin(kind) is tuple:
        return _numbers(text, len(get_args(kind)))
    if kind is str:
        return text
    if kind in (int, float):
        return _number(text, kind)
    return _chosen(text.lower(), kind)


def _number(text: str, kind: type[int | float]) -> float:
    """Python has integers of any size; what a kernel counts fits into a register."""
    try:
        found: float | None = int(text, 0) if kind is int else float(text)
    except ValueError:
        found = None if kind is float or not text.lstrip("+-").isdecimal() else _TOO_LARGE
    if found is None:
        raise ValueError(f"expected {'an integer' if kind is int else 'a number'}, not {text[:40]!r}")
    if kind is int and abs(found) >= _TOO_LARGE:
        raise ValueError(f"expected an integer below 2**63, not {text[:40]!r}")
    return found


def _numbers(text: str, count: int) -> tuple[int, ...]:
    parts = text.replace("x", ",").split(",")
    if len(parts) != count or not all(part.strip().isdecimal() for part in parts):
        raise ValueError(f"expected {count} integers, as {'x'.join(['16'] * count)}, not {text[:40]!r}")
    return tuple(int(_number(part.strip(), int)) for part in parts)


def _first_parsed(text: str, kinds: tuple[Any, ...]) -> object:
    if NoneType in kinds and text.lower() == "none":
        return None
    errors = []
    for kind in kinds:
        if _parsable(kind):
            try:
                return _parse_value(text, kind)
            except ValueError as error:
                errors.append(str(error))
    raise ValueError("; ".join(errors))


def _chosen(text: str, kind: Any) -> object:  # noqa: ANN401  # a truth value, a machine or an enum
    if kind is Machine:
        return _machine(text)
    known: Mapping[str, object] = {bool: _TRUTH}.get(kind, {}) or {
        str(name).lower(): member for member in kind for name in (member.name, member.value)
    }
    if text in known:
        return known[text]
    if kind is bool:
        raise ValueError(f"expected true or false, not {text!r}")
    raise ValueError(f"expected a {kind.__name__}, not {text!r}; " + "; ".join(did_you_mean(text, known)))


def _machine(text: str) -> Machine:
    """A registered device; that one can't be loaded is a finding of its own."""
    known = registry.names()
    if text not in known:
        raise ValueError(f"expected a Machine, not {text!r}; " + "; ".join(did_you_mean(text, known)))
    return registry.device_named(text)


def find_registered(registry: Registry[T], name: str) -> T:
    """What has that name; one that an installed package registers and that can't be used ends in its finding."""
    if not registry.knows(name):
        raise click.UsageError("\n".join(registry.unknown(name)))
    return registry.named(name)


Command = TypeVar("Command", bound=Callable[..., object])


def with_option(command: Command) -> Command:
    return click.option(
        "--with",
        "options",
        multiple=True,
        metavar="NAME=VALUE",
        help="A setting of the form. Of kernel and launcher: output (bf16, f16, fp32), epilogue (steps, with commas "
        "between), xcds, group, persistent, layout, scales. Repeatable.",
    )(command)


def parse_with(options: Sequence[str]) -> dict[str, str]:
    """By name; a usage error if one isn't NAME=VALUE, or is there twice."""
    found: dict[str, str] = {}
    for told in options:
        name, equals, value = told.partition("=")
        if not equals or name in found:
            raise click.UsageError(f"--with {told}: expected NAME=VALUE" + (", once" if equals else ""))
        found[name] = value
    return found


_FOLDERS: set[Path] = set()
"""Of the files that were loaded."""


def kernel_argument(command: Command) -> Command:
    return click.argument("kernel")(command)


def set_option(command: Command) -> Command:
    return click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="FIELD=VALUE",
        help="Change a setting; fields of dataclasses by path, as waits.auto_drain=true. Repeatable.",
    )(command)


def find_kernel(name: str, settings: Sequence[str] = ()) -> Kernel:
    """The kernel of that name with its settings changed; a usage error if there is none."""
    if ":" in name:
        return with_settings(_load_named(name), settings)
    if not KERNELS.knows(name) and name not in full_names():
        own = "or your own: file.py:Name, package.module:Name"
        raise click.UsageError("\n".join((*KERNELS.unknown(name), own)))
    return with_settings(kernel_named(name), settings)


def compile_kernel(kernel: Kernel) -> CompiledSchedule:
    """The kernel's schedule under the name by which it was asked for."""
    fine = kernel.settings().get("instructions")
    hint = " by instruction (--set instructions=false is quicker, and coarser)" if fine and fine.value is True else ""
    return replace(run_search(f"compiling {kernel.name}{hint}", kernel.compile), name=kernel.name)


def find_object(name: str) -> object:
    place, colon, attribute = name.rpartition(":")
    if not colon:
        raise click.UsageError(f"{name!r} names no function: file.py:function, package.module:function")
    module = _module(place)
    if not hasattr(module, attribute):
        own = [key for key, value in vars(module).items() if not key.startswith("_") and inspect.isroutine(value)]
        raise click.UsageError("\n".join((f"{place} has no {attribute!r}", *did_you_mean(attribute, own))))
    return getattr(module, attribute)


def find_function(name: str) -> Callable[[], object]:
    """As `find_object`, for what is called without arguments."""
    found = find_object(name)
    if not callable(found):
        raise click.UsageError(f"{name} is not a function")
    return found


def _load_named(name: str) -> Kernel:
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
        if place.endswith(".py"):
            return _load_file(Path(place))
        sys.path.insert(0, str(Path.cwd()))
        return importlib.import_module(place)
    except RotaError:
        raise
    except Exception as error:
        if authors_line(error):
            raise  # told with that line
        raise click.UsageError(f"{place} can't be loaded: {type(error).__name__}: {error}") from error


def _load_file(path: Path) -> ModuleType:
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
    """True for a kernel's value, or a class or function that was written there rather than imported."""
    if not isinstance(value, type) and front_end_of(value) is not None:
        return True
    return (inspect.isroutine(value) or inspect.isclass(value)) and value.__module__ == module.__name__
