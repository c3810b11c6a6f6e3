"""A kernel by stages: takes a `PipelineSchedule`, gives its settings and its compiled schedule."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from rota.check import expect
from rota.compiled.compiled_schedule import CompiledSchedule
from rota.errors import DeclarationError, Finding
from rota.kernels.front_end import FrontEnd
from rota.kernels.gemm import BF16
from rota.kernels.setting import OBLIGATIONS, Setting, parameters_of
from rota.pipeline.compiler import ScheduleCompiler
from rota.pipeline.config import PipelineConfig
from rota.pipeline.geometry import KernelGeometry
from rota.pipeline.profile import TargetProfile
from rota.pipeline.schedule import PipelineSchedule
from rota.pipeline.schedule_config import ScheduleConfig

if TYPE_CHECKING:
    from rota.kernels.kernel import Kernel
    from rota.pipeline.tile_shape import TileShape


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
        return ScheduleCompiler(sync=sync, **asked).compile(self.schedule)

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
