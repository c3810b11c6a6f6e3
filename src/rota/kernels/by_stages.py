"""A kernel by stages: takes a `PipelineSchedule`, gives its settings and its compiled schedule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from rota.check import expect
from rota.compiled.compiled_schedule import CompiledSchedule
from rota.errors import Concern, DeclarationError, Finding, RotaError, Severity
from rota.kernels.front_end import FrontEnd
from rota.kernels.gemm import BF16
from rota.kernels.setting import OBLIGATIONS, Setting, parameters_of
from rota.pipeline.compiler import ScheduleCompiler
from rota.pipeline.config import PipelineConfig
from rota.pipeline.geometry import KernelGeometry
from rota.pipeline.profile import TargetProfile
from rota.pipeline.schedule import PipelineSchedule
from rota.pipeline.schedule_config import ScheduleConfig
from rota.program.lowered import LoweredProgram

if TYPE_CHECKING:
    from rota.kernels.kernel import Kernel
    from rota.pipeline.tile_shape import TileShape


_FOR_PREDICTIONS = frozenset(
    {"waves", "instruction", "BM", "BN", "BK", "MMA_M", "MMA_N", "MMA_K", "elem_bytes", "packed"}
)
"""What says how many instructions the ops of a body declared in tiles stand for."""


class ByStages(FrontEnd):
    """Compiles schedules by stages."""

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
        """Is it a schedule?"""
        return isinstance(made, PipelineSchedule)

    def compiled(self, sync: str) -> CompiledSchedule:
        """The schedule, compiled."""
        changes = self.kernel.changes
        asked: dict[str, Any] = {name: changes[name] for name in OBLIGATIONS if name in changes}
        found = ScheduleCompiler(sync=sync, **asked).compile(self.schedule)
        idle = tuple(self._idle())
        return replace(found, findings=(*found.findings, *idle)) if idle else found

    def _idle(self) -> Iterator[Finding]:
        """P109 for each setting that the schedule is the same without; its knobs have notes of their own."""
        changes = dict(self.kernel.changes)
        names = [name for name in changes if name not in ("sync", "config", *OBLIGATIONS)]
        mine = _lowered(self.schedule) if names else None
        for name in names:
            before = replace(self.kernel, changes={key: value for key, value in changes.items() if key != name})
            with suppress(RotaError):  # without it there is no schedule at all: it was needed
                other = before.written()
                if isinstance(other, ByStages) and _lowered(other.schedule) == mine:
                    known = before.settings().get(name)
                    yield from _without_effect(name, known and known.value, changes[name])

    def settings(self, parameters: Mapping[str, Setting]) -> dict[str, Setting]:
        """Knobs, target, and what the ops of a body declared in tiles stand for."""
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
        """What the ops stand for, as it is set."""
        from rota.pipeline.tile_shape import TileShape

        settings = self.kernel.settings()
        chosen: dict[str, Any] = {name: settings[name].value for name in ("geometry", "waves", "instruction")}
        return TileShape(**chosen)


def _lowered(schedule: PipelineSchedule) -> LoweredProgram:
    """The schedule as its rules derive it."""
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
            code="P109",
            severity=Severity.NOTE,
            message=f"{path}={value!s} has no effect on the schedule: {reader}",
            concerns=(Concern(label=path),),
        )


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
