"""A kernel with its settings, whichever way its author wrote it.

An author writes a `PipelineSchedule` class or value, a `LoopSpec`, a value with a `loop()` such as `GemmShape`, a value
with a `compile_for(machine)`, or a function that returns one of these. The parameters of the class or function are
settings, and so are the fields of every dataclass among them. A machine that the author names, in a field, a parameter
or a method `machine`, holds until a setting replaces it.
"""

from __future__ import annotations

import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, fields, is_dataclass, replace
from types import MappingProxyType, SimpleNamespace, UnionType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, get_args, get_type_hints, runtime_checkable

from rota.check import bad_field, expect, look_up
from rota.compiled.compiled_schedule import CompiledSchedule
from rota.compiled.proved import CompiledProgram, proved, repaired
from rota.errors import Concern, DeclarationError, Finding, RotaError, Severity
from rota.kernels.gemm import BF16
from rota.pipeline.compiler import PipelineSchedule, ScheduleCompiler
from rota.pipeline.config import PipelineConfig, TargetProfile
from rota.pipeline.geometry import KernelGeometry
from rota.pipeline.schedule_config import ScheduleConfig
from rota.program.loop_spec import LoopSpec
from rota.program.lowered import LoweredProgram
from rota.program.machine import Machine
from rota.targets.device import rates_of
from rota.targets.devices import DEFAULT
from rota.targets.registry import known_devices

if TYPE_CHECKING:
    from rota.pipeline.geometry import TileShape


# The settings of a kernel's source.
#
# The parameters of a class or function are settings, and so are the fields of every dataclass among them.


class Setting(NamedTuple):
    value: object
    kind: Any


OBLIGATIONS = {"reentrant": Setting(value=False, kind=bool), "vmcnt_in_order": Setting(value=True, kind=bool)}
"""What can be asked of a proof beyond its own: see docs/machine_model.md."""


def same_kind(parameter: Setting | None, setting: Setting) -> bool:
    """True if one of the author's parameters already says what a setting of that name would."""
    return parameter is not None and isinstance(parameter.value, setting.kind)


def is_maker(source: object) -> bool:
    """True for a class or function, which makes a kernel rather than being one."""
    return inspect.isclass(source) or inspect.isroutine(source)


def parameters_of(source: object) -> dict[str, Setting]:
    """Parameters of a class or function; one that wants a dataclass with defaults has these as its default."""
    annotated: Any = source.__init__ if inspect.isclass(source) else source
    if not callable(source) or not is_maker(source):
        return {}
    hints = hints_of(annotated)
    found = {}
    for name, parameter in inspect.signature(source).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        value = parameter.default
        told = object if value is None or value is parameter.empty else type(value)
        kind = hints.get(name, told)
        members = tuple(member for member in get_args(kind) if member is not type(None))
        if isinstance(kind, UnionType) and len(members) == 1:
            kind = members[0]
        if value is parameter.empty and is_dataclass(kind) and isinstance(kind, type):
            with suppress(TypeError):  # some field has no default
                value = kind()
        found[name] = Setting(value, kind)
    return found


def call(source: Any, changes: Mapping[str, object], owner: str) -> Any:  # noqa: ANN401  # whatever it makes
    """What a class or function makes of the parameters that were changed or have no default."""
    if inspect.isabstract(source):
        missing = ", ".join(sorted(source.__abstractmethods__))
        raise DeclarationError.of(
            "D104",
            f"{owner} is an abstract class; a kernel is a class that has {missing}",
            evidence=(("class", source.__name__), ("without", missing)),
        )
    given = dict(_find_given(source, changes, owner))
    placed = []
    for name, parameter in inspect.signature(source).parameters.items():
        if parameter.kind is parameter.POSITIONAL_ONLY:
            placed.append(given.pop(name, parameter.default))
    return source(*placed, **given)


def _find_given(source: object, changes: Mapping[str, object], owner: str) -> Mapping[str, object]:
    given = {}
    required = inspect.signature(source).parameters if callable(source) else {}
    for name, setting in parameters_of(source).items():
        if name in changes:
            given[name] = changes[name]
        elif required[name].default is inspect.Parameter.empty:
            if setting.value is inspect.Parameter.empty:
                raise DeclarationError.of(
                    "D102",
                    f"{owner} needs a value for its parameter {name}",
                    fixes=(
                        f"--set {name}=VALUE, if it is declared as a bool, int, float, str or enum",
                        f"give {name} a default",
                    ),
                )
            given[name] = setting.value
    return given


def hints_of(owner: Any) -> dict[str, Any]:  # noqa: ANN401  # a class or something that can be called
    """Declared types by name, except those that can't be resolved: imports for type checkers don't run."""
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


def own_machine(value: object) -> Machine | None:
    """What a field, a property or a method `machine` says; None where there is none, or a field left open."""
    said = getattr(value, "machine", None)
    if callable(said):
        said = said()
        if said is None:
            raise bad_field(value, "machine()", said, "a Machine")
    if said is not None and not isinstance(said, Machine):
        raise bad_field(value, "machine", said, "a Machine")
    return said


def has_machine_field(value: object) -> bool:
    """True if its machine is a dataclass field, which can be set like the others."""
    return is_dataclass(value) and any(field.name == "machine" for field in fields(value))


def check_instructions(loop: LoopSpec, machine: Machine) -> None:
    """A loop whose matrix instructions another machine has is likely meant for that one."""
    has = rates_of(machine).mfma_passes
    lacking = next((op for op in loop.ops if op.instruction and op.instruction not in has), None)
    if lacking is None:
        return
    used = {op.instruction for op in loop.ops if op.instruction}
    has_all = next((other for other in known_devices().devices if used <= other.rates.mfma_passes.keys()), None)
    if has_all is None:
        return
    raise DeclarationError.of(
        "D105",
        f"{machine.arch} has no matrix instruction {lacking.instruction!r} that rota knows; "
        f"{has_all.arch} has all that {loop.name} uses",
        concerns=(Concern(label=lacking.name, source=lacking.source),),
        evidence=(("compiled for", machine.name), ("has it", has_all.name)),
        fixes=(
            f"--set machine={has_all.name.lower()}",
            f"let the kernel say it: a field, parameter or method `machine` that gives {has_all.name}",
        ),
    )


class FrontEnd(ABC):
    """A kernel and what its source made, in the terms of the way in which it was written."""

    accepted: ClassVar[str]
    """What it accepts, in words."""

    def __init__(self, kernel: Kernel, made: object) -> None:
        self.kernel = kernel

    @classmethod
    @abstractmethod
    def accepts(cls, made: object) -> bool:
        """True if this was written for this front end."""

    @abstractmethod
    def settings(self, parameters: Mapping[str, Setting]) -> dict[str, Setting]:
        """The settings that a kernel of this kind has beside its parameters."""

    @abstractmethod
    def compile(self, sync: str) -> CompiledSchedule:
        """The schedule; `sync` says what to do about missing waits and barriers."""

    def geometry(self) -> KernelGeometry:
        """The workgroup's tile and the matrix instruction, for a GEMM to be emitted: the setting of that name."""
        settings = self.kernel.settings()
        given = settings["geometry"].value if "geometry" in settings else None
        return given if isinstance(given, KernelGeometry) else KernelGeometry()

    def shape(self) -> TileShape | None:
        """What a prediction needs for a body declared in tiles; other programs say it themselves."""
        return None


# A kernel that compiles itself.
#
# This is how other front ends plug in: they lower whatever they declare, and rota proves, repairs, predicts, draws
# and emits the program.

_SYNC: dict[str, Callable[[CompiledSchedule], CompiledSchedule]] = {
    "as_written": lambda written: written,
    "repair": repaired,
    "strict": proved,
}


@runtime_checkable
class CompilesItself(Protocol):
    """Anything that knows how to become a program."""

    def compile_for(self, machine: Machine) -> CompiledSchedule | LoweredProgram:
        """The program for a machine: lowered, or as a compiled schedule of one of rota's own front ends."""
        ...


class ByItsAuthor(FrontEnd):
    accepted = "a value with a compile_for(machine)"

    def __init__(self, kernel: Kernel, made: CompilesItself) -> None:
        super().__init__(kernel, made)
        self.made = made

    @classmethod
    def accepts(cls, made: object) -> bool:
        return callable(getattr(made, "compile_for", None))

    def settings(self, parameters: Mapping[str, Setting]) -> dict[str, Setting]:
        found = {"sync": Setting("repair", str), **OBLIGATIONS}
        if not has_machine_field(self.made):
            found["machine"] = Setting(own_machine(self.made) or self.kernel.machine, Machine)
        return found

    def compile(self, sync: str) -> CompiledSchedule:
        treated = look_up(sync, _SYNC, f"sync={sync!r} is not a way to treat synchronisation")
        name, settings = self.kernel.name, {name: each.value for name, each in self.kernel.settings().items()}
        machine = expect(
            f"the machine of {name}", settings.get("machine") or own_machine(self.made) or self.kernel.machine, Machine
        )
        if not settings["vmcnt_in_order"]:
            machine = machine.doubting_dmas()
        written = _as_schedule(f"compile_for() of {name}", self.made.compile_for(machine))
        if "machine" in self.kernel.changes:
            self._check_machine(written.machine, machine)
        if not settings["vmcnt_in_order"]:  # a method that brings a machine of its own doesn't know of the doubt
            written = replace(written, machine=written.machine.doubting_dmas())
        if settings["reentrant"]:
            written = replace(written, reentrant=True)
        return written if written.certificate is not None else treated(written)

    def _check_machine(self, used: Machine, asked: Machine) -> None:
        """A method may bring a machine of its own, but not against one that the user asked for."""
        if (used.name, used.arch) != (asked.name, asked.arch):
            raise DeclarationError.of(
                "D105",
                f"compile_for() of {self.kernel.name} gives a program for another machine than was set",
                evidence=(("set", f"{asked.name} ({asked.arch})"), ("given", f"{used.name} ({used.arch})")),
                fixes=("let compile_for(machine) lower for the machine that it is given",),
            )


def _as_schedule(what: str, given: Any) -> CompiledSchedule:  # noqa: ANN401  # whatever the author's method gives
    if isinstance(given, LoweredProgram):
        return CompiledProgram.of(given)
    if isinstance(given, CompiledSchedule):
        return given
    raise DeclarationError.of(
        "D104",
        f"{what} is {type(given).__name__}; expected a LoweredProgram or a CompiledSchedule",
        evidence=(("got", repr(given)[:80]),),
    )


_FOR_PREDICTIONS = frozenset(
    {"waves", "instruction", "BM", "BN", "BK", "MMA_M", "MMA_N", "MMA_K", "elem_bytes", "packed"}
)
"""What says how many instructions the ops of a body declared in tiles represent."""


class ByStages(FrontEnd):
    accepted = "a PipelineSchedule"

    def __init__(self, kernel: Kernel, made: PipelineSchedule) -> None:
        super().__init__(kernel, made)
        if "config" in kernel.changes and "config" not in parameters_of(kernel.source):
            knobs = kernel.changes["config"]
            made = copy(made)  # the author's value stays as it is
            vars(made)["schedule_config"] = lambda: knobs
        if isinstance(asked := kernel.changes.get("config"), ScheduleConfig):
            _check_taken(kernel.name, asked, made.schedule_config())
        self.schedule = made

    @classmethod
    def accepts(cls, made: object) -> bool:
        return isinstance(made, PipelineSchedule)

    def compile(self, sync: str) -> CompiledSchedule:
        changes = self.kernel.changes
        asked: dict[str, Any] = {name: changes[name] for name in OBLIGATIONS if name in changes}
        found = ScheduleCompiler(sync=sync, **asked).compile(self.schedule)
        idle = tuple(self._idle())
        return replace(found, findings=(*found.findings, *idle)) if idle else found

    def _idle(self) -> Iterator[Finding]:
        """P109 for each setting that the schedule is the same without; its knobs have notes of their own."""
        changes = dict(self.kernel.changes)
        names = [name for name in changes if name not in ("sync", "config", *OBLIGATIONS)]
        mine = _lower(self.schedule) if names else None
        for name in names:
            before = replace(self.kernel, changes={key: value for key, value in changes.items() if key != name})
            with suppress(RotaError):  # without it there is no schedule at all: it was needed
                other = before.front_end()
                if isinstance(other, ByStages) and _lower(other.schedule) == mine:
                    known = before.settings().get(name)
                    yield from _without_effect(name, known and known.value, changes[name])

    def settings(self, parameters: Mapping[str, Setting]) -> dict[str, Setting]:
        """Knobs, target, and what the ops of a body declared in tiles are in instructions."""
        made = self.schedule
        found = {"config": Setting(expect("schedule_config()", made.schedule_config(), ScheduleConfig), ScheduleConfig)}
        target = getattr(made, "target", None)
        if "target" in parameters and isinstance(target, TargetProfile):
            found["target"] = Setting(target, TargetProfile)
        geometry = getattr(made, "geometry", None)
        if not isinstance(geometry, KernelGeometry):
            geometry = KernelGeometry()
        config = expect("config()", made.config(), PipelineConfig)
        waves = self.kernel.waves or (8 if config.warp_stagger.enabled else 4)
        return found | {
            "geometry": Setting(geometry, KernelGeometry),
            "waves": Setting(waves, int),
            "instruction": Setting(BF16, str),
            "sync": Setting("repair", str),
            **OBLIGATIONS,
        }

    def shape(self) -> TileShape:
        from rota.pipeline.geometry import TileShape

        settings = self.kernel.settings()
        chosen: dict[str, Any] = {name: settings[name].value for name in ("geometry", "waves", "instruction")}
        return TileShape(**chosen)


def _lower(schedule: PipelineSchedule) -> LoweredProgram:
    return ScheduleCompiler(sync="as_written").compile(schedule).lowered


def _without_effect(name: str, before: object, after: object) -> Iterator[Finding]:
    """One note for each field in which two values differ."""
    changed = {name: (before, after)}
    if is_dataclass(before) and isinstance(after, type(before)):
        values = {field.name: (getattr(before, field.name), getattr(after, field.name)) for field in fields(before)}
        changed = {f"{name}.{field}": pair for field, pair in values.items() if pair[0] != pair[1]}
    for path, (_, value) in changed.items():
        predicted = path.rpartition(".")[2] in _FOR_PREDICTIONS
        reader = "predictions and emission alone read it" if predicted else "nothing in this schedule reads it"
        yield Finding(
            "P109",
            f"{path}={value!s} has no effect on the schedule: {reader}",
            severity=Severity.NOTE,
            concerns=(Concern(label=path),),
        )


def _check_taken(owner: str, asked: ScheduleConfig, taken: ScheduleConfig) -> None:
    """A schedule may set knobs itself, whatever it is given."""
    for knob in fields(asked):
        wanted, kept = getattr(asked, knob.name), getattr(taken, knob.name)
        if wanted != kept:
            raise DeclarationError.of(
                "D102",
                f"{owner} sets {knob.name} itself and doesn't take another",
                evidence=(("asked", str(wanted)), ("kept", str(kept))),
            )


class ByValues(FrontEnd):
    accepted = "a LoopSpec"

    def __init__(self, kernel: Kernel, made: object) -> None:
        super().__init__(kernel, made)
        self.made: Any = kernel.changes.get("loop", made)

    @classmethod
    def accepts(cls, made: object) -> bool:
        return isinstance(made, LoopSpec)

    def loop(self) -> LoopSpec:
        return expect(f"the loop of {self.kernel.name}", self.made, LoopSpec)

    def settings(self, parameters: Mapping[str, Setting]) -> dict[str, Setting]:
        from rota.order.modulo.scheduler import ModuloScheduler

        found = self._list_declared()
        if not has_machine_field(self.made):
            found["machine"] = Setting(own_machine(self.made) or self.kernel.machine, Machine)
        return found | {
            "stagger": Setting(value=False, kind=bool),
            "remainder": Setting(0, int),
            "scheduler": Setting(ModuloScheduler(), ModuloScheduler),
            **OBLIGATIONS,
        }

    def _list_declared(self) -> dict[str, Setting]:
        return {"loop": Setting(self.made, LoopSpec)}

    def compile(self, sync: str) -> CompiledSchedule:
        from rota.values.compile_loop import compile_loop

        kernel, settings = self.kernel, self.kernel.settings()
        asked = {name: kernel.changes[name] for name in OBLIGATIONS if name in kernel.changes}
        options: dict[str, Any] = {name: settings[name].value for name in ("remainder", "stagger", "scheduler")} | asked
        loop = self.loop()
        said = settings["machine"].value if "machine" in settings else own_machine(self.made)
        machine = expect(f"the machine of {kernel.name}", said or kernel.machine, Machine)
        check_instructions(loop, machine)
        return compile_loop(loop, machine, **options)


class ByShape(ByValues):
    accepted = "a value with a loop()"

    def __init__(self, kernel: Kernel, made: object) -> None:
        super().__init__(kernel, made)
        self.made = kernel.changes.get("shape", made)

    @classmethod
    def accepts(cls, made: object) -> bool:
        return callable(getattr(made, "loop", None))

    def loop(self) -> LoopSpec:
        """What the shape gives for the parameters that are set."""
        name = self.kernel.name
        return expect(f"what {name} gives", call(self.made.loop, self.kernel.changes, f"loop() of {name}"), LoopSpec)

    def _list_declared(self) -> dict[str, Setting]:
        found = parameters_of(self.made.loop)
        if inspect.isclass(self.kernel.source):  # its parameters are the shape's fields
            return found
        return {"shape": Setting(self.made, type(self.made)), **found}

    def geometry(self) -> KernelGeometry:
        """The shape's own, if it says one; else the setting of that name."""
        own = getattr(self.made, "geometry", None)
        return own if isinstance(own, KernelGeometry) else super().geometry()


FRONT_ENDS: tuple[type[FrontEnd], ...] = (ByStages, ByValues, ByItsAuthor, ByShape)
"""The ways in which a kernel can be written; the first that accepts it takes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """What can be compiled; `changes` are settings that differ from what the author wrote.

    `machine` is for a loop whose author names none.  `geometry` and `waves` say what the ops of a body declared in
    tiles represent, for predictions alone.
    """

    name: str
    source: object
    about: str = ""
    machine: Machine = DEFAULT
    waves: int | None = None
    changes: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))

    def but(self, name: str, value: object) -> Kernel:
        """The same kernel with one setting changed."""
        return replace(self, changes=MappingProxyType({**self.changes, name: value}))

    @property
    def parameters(self) -> dict[str, Setting]:
        """The current settings from which the source makes everything."""
        found = parameters_of(self.source)
        return {name: setting._replace(value=self.changes.get(name, setting.value)) for name, setting in found.items()}

    def settings(self) -> dict[str, Setting]:
        """Every setting by name, with its current value."""
        found = parameters_of(self.source)
        missing = [name for name, setting in found.items() if setting.value is inspect.Parameter.empty]
        if not any(name not in self.changes for name in missing):
            further = self.front_end().settings(found)
            found |= {name: each for name, each in further.items() if not same_kind(found.get(name), each)}
        return {name: setting._replace(value=self.changes.get(name, setting.value)) for name, setting in found.items()}

    def compile(self) -> CompiledSchedule:
        """The schedule, proved; wrong ones end in a `RotaError`."""
        return self.front_end().compile(str(self.changes.get("sync", "repair")))

    def as_written(self) -> CompiledSchedule:
        """The schedule as its author wrote it, unproved; a loop by values is synchronised by rota in any case."""
        return self.front_end().compile("as_written")

    def shape(self) -> TileShape | None:
        """What a prediction needs for a body declared in tiles; loops by values say it themselves."""
        return self.front_end().shape()

    def geometry(self) -> KernelGeometry:
        """The workgroup's tile and the matrix instruction, for a GEMM to be emitted."""
        return self.front_end().geometry()

    def front_end(self) -> FrontEnd:
        """What the source makes of the parameters that were changed or have no default, as its front end sees it."""
        made = call(self.source, self.changes, self.name) if is_maker(self.source) else self.source
        front_end = front_end_of(made)
        if front_end is None:
            ways = ", ".join(each.accepted for each in FRONT_ENDS)
            raise DeclarationError.of(
                "D104",
                f"{self.name} is {type(made).__name__}; expected {ways}, or a class or function that gives one",
                evidence=(("got", repr(made)[:80]),),
            )
        return front_end(self, made)


def front_end_of(made: object) -> type[FrontEnd] | None:
    return next((each for each in FRONT_ENDS if each.accepts(made)), None)
