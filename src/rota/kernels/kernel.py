"""A kernel with its settings: takes what an author wrote, gives a `Kernel` that can be changed and compiled.

An author writes a `PipelineSchedule` class or value, a `LoopSpec`, a value with a `loop()` such as `GemmShape`, or a
function that returns one of these.  The parameters of the class or function are settings, and so are the fields of
every dataclass among them.  A machine that the author names, in a field, a parameter or a method `machine`, stands
until a setting says otherwise.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, fields, is_dataclass, replace
from types import MappingProxyType, SimpleNamespace, UnionType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, get_args, get_type_hints, runtime_checkable

from rota.compiler.compile import ScheduleCompiler
from rota.compiler.compiled import CompiledSchedule
from rota.compiler.schedule import PipelineSchedule
from rota.declare.check import expect
from rota.declare.config import PipelineConfig
from rota.declare.geometry import KernelGeometry
from rota.declare.values import LoopSpec
from rota.errors import DeclarationError, Finding
from rota.kernels.gemm import BF16, GemmShape
from rota.kernels.own_machine import check_instructions, has_machine_field, own_machine
from rota.program.config import ScheduleConfig
from rota.targets.machine import GFX950, Machine
from rota.targets.profile import TargetProfile

if TYPE_CHECKING:
    from rota.simulate.work import TileShape


class Setting(NamedTuple):
    """A value and its declared type."""

    value: object
    kind: Any


@runtime_checkable
class LoopShape(Protocol):
    """A value that gives a loop, as `GemmShape` does."""

    @property
    def loop(self) -> Callable[..., LoopSpec]:
        """Makes the loop; its keyword parameters are settings."""
        ...


_OBLIGATIONS = {
    "reentrant": Setting(value=False, kind=bool),
    "vmcnt_in_order": Setting(value=True, kind=bool),
}
"""What can be asked of a proof beyond its own: see docs/machine_model.md."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """What can be compiled; `changes` are settings that differ from what the author wrote.

    `machine` is for a loop whose author names none.  `geometry` and `waves` say what the ops of a body declared in
    tiles stand for, for predictions alone.
    """

    name: str
    source: object
    about: str = ""
    machine: Machine = GFX950
    waves: int | None = None
    changes: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))

    def but(self, name: str, value: object) -> Kernel:
        """The same kernel with one setting changed."""
        return replace(self, changes=MappingProxyType({**self.changes, name: value}))

    @property
    def parameters(self) -> dict[str, Setting]:
        """The settings from which the source makes everything anew, as they stand."""
        found = _parameters(self.source)
        return {name: setting._replace(value=self.changes.get(name, setting.value)) for name, setting in found.items()}

    def settings(self) -> dict[str, Setting]:
        """Every setting by name, as it stands."""
        found = _parameters(self.source)
        missing = [name for name, setting in found.items() if setting.value is inspect.Parameter.empty]
        if not any(name not in self.changes for name in missing):
            further = self._settings_of(self._made(), found)
            found |= {name: each for name, each in further.items() if not _same_kind(found.get(name), each)}
        return {name: setting._replace(value=self.changes.get(name, setting.value)) for name, setting in found.items()}

    def compile(self) -> CompiledSchedule:
        """The schedule, proved; wrong ones end in a `RotaError`."""
        return self._compiled(str(self.changes.get("sync", "repair")))

    def as_written(self) -> CompiledSchedule:
        """The schedule as its author wrote it, unproved; a loop by values is synchronised by rota in any case."""
        return self._compiled("as_written")

    def shape(self) -> TileShape | None:
        """What a prediction needs for a body declared in tiles; loops by values say it themselves."""
        settings = self.settings()
        if "instruction" not in settings or "sync" not in settings:
            return None
        from rota.simulate.work import TileShape

        chosen: dict[str, Any] = {name: settings[name].value for name in ("geometry", "waves", "instruction")}
        return TileShape(**chosen)

    def geometry(self) -> KernelGeometry:
        """The workgroup's tile and the matrix instruction, for a GEMM to be emitted."""
        made = self._made()
        if isinstance(made, GemmShape):
            return made.geometry
        settings = self.settings()
        given = settings["geometry"].value if "geometry" in settings else None
        return given if isinstance(given, KernelGeometry) else KernelGeometry()

    def _compiled(self, sync: str) -> CompiledSchedule:
        made = self._made()
        asked: dict[str, Any] = {name: self.changes[name] for name in _OBLIGATIONS if name in self.changes}
        if isinstance(made, PipelineSchedule):
            return ScheduleCompiler(sync=sync, **asked).compile(made)
        from rota.compiler.loop import compile_loop

        settings = self.settings()
        options: dict[str, Any] = {name: settings[name].value for name in ("remainder", "stagger", "scheduler")} | asked
        loop = self._loop(made)
        machine: Any = (settings["machine"].value if "machine" in settings else own_machine(made)) or self.machine
        check_instructions(loop, expect(f"the machine of {self.name}", machine, Machine))
        return compile_loop(loop, machine, **options)

    def _made(self) -> PipelineSchedule | LoopSpec | LoopShape:
        """The source called with the parameters that were changed or have no default."""
        made = _called(self.source, self.changes, self.name) if _is_maker(self.source) else self.source
        if isinstance(made, PipelineSchedule) and "config" in self.changes and "config" not in _parameters(self.source):
            knobs = self.changes["config"]
            made = copy(made)  # the author's value stays as it is
            vars(made)["schedule_config"] = lambda: knobs
        if isinstance(made, PipelineSchedule) and isinstance(asked := self.changes.get("config"), ScheduleConfig):
            _check_taken(self.name, asked, made.schedule_config())
        if not isinstance(made, PipelineSchedule | LoopSpec) and not callable(getattr(made, "loop", None)):
            raise DeclarationError(
                Finding(
                    code="D104",
                    message=f"{self.name} is {type(made).__name__}; expected a PipelineSchedule, a LoopSpec, a value "
                    "with a loop(), or a class or function that gives one",
                    evidence=(("got", repr(made)[:80]),),
                )
            )
        changed: Any = self.changes.get("shape" if isinstance(made, LoopShape) else "loop", made)
        return made if isinstance(made, PipelineSchedule) else changed

    def _loop(self, made: LoopSpec | LoopShape) -> LoopSpec:
        if isinstance(made, LoopSpec):
            return made
        return expect(f"what {self.name} gives", _called(made.loop, self.changes, f"loop() of {self.name}"), LoopSpec)

    def _settings_of(
        self, made: PipelineSchedule | LoopSpec | LoopShape, parameters: Mapping[str, Setting]
    ) -> dict[str, Setting]:
        """The settings that a kernel of this kind has beside its parameters."""
        if isinstance(made, PipelineSchedule):
            return self._of_schedule(made, parameters)
        from rota.order.modulo import ModuloScheduler

        found = {"loop": Setting(made, LoopSpec)}
        if not isinstance(made, LoopSpec):
            found = _parameters(made.loop)
            if not inspect.isclass(self.source):  # else its parameters are the shape's fields
                found = {"shape": Setting(made, type(made)), **found}
        if not has_machine_field(made):
            found["machine"] = Setting(own_machine(made) or self.machine, Machine)
        return found | {
            "stagger": Setting(value=False, kind=bool),
            "remainder": Setting(0, int),
            "scheduler": Setting(ModuloScheduler(), ModuloScheduler),
            **_OBLIGATIONS,
        }

    def _of_schedule(self, made: PipelineSchedule, parameters: Mapping[str, Setting]) -> dict[str, Setting]:
        found = {"config": Setting(expect("schedule_config()", made.schedule_config(), ScheduleConfig), ScheduleConfig)}
        target = getattr(made, "target", None)
        if "target" in parameters and isinstance(target, TargetProfile):
            found["target"] = Setting(target, TargetProfile)
        geometry = getattr(made, "geometry", None)
        if not isinstance(geometry, KernelGeometry):
            geometry = KernelGeometry()
        config = expect("config()", made.config(), PipelineConfig)
        waves = self.waves or (8 if config.warp_stagger.enabled else 4)
        return found | {
            "geometry": Setting(geometry, KernelGeometry),
            "waves": Setting(waves, int),
            "instruction": Setting(BF16, str),
            "sync": Setting("repair", str),
            **_OBLIGATIONS,
        }


def _same_kind(parameter: Setting | None, setting: Setting) -> bool:
    """Does a parameter of the author's say already what a setting of that name would?"""
    return parameter is not None and isinstance(parameter.value, setting.kind)


def _is_maker(source: object) -> bool:
    return inspect.isclass(source) or inspect.isroutine(source)


def _parameters(source: object) -> dict[str, Setting]:
    """Parameters of a class or function; one that wants a dataclass with defaults has these as its default."""
    annotated: Any = source.__init__ if inspect.isclass(source) else source
    if not callable(source) or not _is_maker(source):
        return {}
    hints = hints_of(annotated)
    found = {}
    for name, parameter in inspect.signature(source).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        value = parameter.default
        told = object if value is None or value is parameter.empty else type(value)
        kind = _without_none(hints.get(name, told))
        if value is parameter.empty and is_dataclass(kind) and isinstance(kind, type):
            value = _default_of(kind)
        found[name] = Setting(value, kind)
    return found


def _called(source: Any, changes: Mapping[str, object], owner: str) -> Any:  # noqa: ANN401  # whatever it makes
    """What a class or function makes of the parameters that were changed or have no default."""
    if inspect.isabstract(source):
        missing = ", ".join(sorted(source.__abstractmethods__))
        raise DeclarationError(
            Finding(
                code="D104",
                message=f"{owner} is an abstract class; a kernel is a class that has {missing}",
                evidence=(("class", source.__name__), ("without", missing)),
            )
        )
    given = dict(_given(source, changes, owner))
    placed = []
    for name, parameter in inspect.signature(source).parameters.items():
        if parameter.kind is parameter.POSITIONAL_ONLY:
            placed.append(given.pop(name, parameter.default))
    return source(*placed, **given)


def _given(source: object, changes: Mapping[str, object], owner: str) -> Mapping[str, object]:
    given = {}
    required = inspect.signature(source).parameters if callable(source) else {}
    for name, setting in _parameters(source).items():
        if name in changes:
            given[name] = changes[name]
        elif required[name].default is inspect.Parameter.empty:
            if setting.value is inspect.Parameter.empty:
                raise DeclarationError(
                    Finding(
                        code="D102",
                        message=f"{owner} needs a value for its parameter {name}",
                        fixes=(
                            f"--set {name}=VALUE, if it is declared as a bool, int, float, str or enum",
                            f"give {name} a default",
                        ),
                    )
                )
            given[name] = setting.value
    return given


def hints_of(owner: Any) -> dict[str, Any]:  # noqa: ANN401  # a class or something that can be called
    """Declared types by name, but those that can't be resolved: a type checker's imports are not made at run time."""
    found: dict[str, Any] = {}
    for layer in reversed(owner.__mro__) if inspect.isclass(owner) else (inspect.unwrap(owner),):
        names = _names_around(layer)
        for name, annotation in getattr(layer, "__annotations__", {}).items():
            with suppress(NameError, AttributeError, TypeError, SyntaxError):
                found |= get_type_hints(SimpleNamespace(__annotations__={name: annotation}), names)
    return found


def _names_around(owner: Any) -> dict[str, Any]:  # noqa: ANN401  # a class or a function
    """The globals of its file; its functions keep them when another file of that name has been loaded since."""
    for each in (owner, *(vars(owner).values() if inspect.isclass(owner) else ())):
        if inspect.isfunction(each):
            return each.__globals__
    module = sys.modules.get(getattr(owner, "__module__", ""))
    return vars(module) if module else {}


def _check_taken(owner: str, asked: ScheduleConfig, taken: ScheduleConfig) -> None:
    """A schedule may set knobs itself, whatever it is given."""
    for knob in fields(asked):
        wanted, kept = getattr(asked, knob.name), getattr(taken, knob.name)
        if wanted != kept:
            raise DeclarationError(
                Finding(
                    code="D102",
                    message=f"{owner} sets {knob.name} itself and doesn't take another",
                    evidence=(("asked", str(wanted)), ("kept", str(kept))),
                )
            )


def _default_of(kind: type) -> object:
    try:
        return kind()
    except TypeError:  # some field has no default
        return inspect.Parameter.empty


def _without_none(kind: Any) -> Any:  # noqa: ANN401  # a type hint has no type of its own
    members = tuple(member for member in get_args(kind) if member is not type(None))
    return members[0] if isinstance(kind, UnionType) and len(members) == 1 else kind
