"""Small schedules that single findings are shown on: takes ops and knobs, gives a `PipelineSchedule`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from rota import (
    DoubleBufferTag,
    Finding,
    KOffsetKind,
    OpDesc,
    PipelineBody,
    PipelineConfig,
    PipelineProgram,
    PipelineSchedule,
    RotaError,
    ScheduleConfig,
    annotate_ops,
    compile_schedule,
    mi355x_target,
)
from tests.wording.golden import worded

TAGS = DoubleBufferTag


def tile(body: PipelineBody, stage: int, k_offset: KOffsetKind) -> None:
    """A 1x1 partition in a safe order: both fragments, the MMA after them, then the loads of the next tile."""
    body.frag(TAGS.MMA_LOAD_A, channel=0, stage=stage)
    body.frag(TAGS.MMA_LOAD_B, channel=1, stage=stage)
    body.load(TAGS.LOAD_A, channel=0, stage=stage, k_offset=k_offset)
    body.load(TAGS.LOAD_B, channel=1, stage=stage, k_offset=k_offset)
    body.compute(TAGS.MMA)


def two_tiles() -> tuple[OpDesc, ...]:
    """A complete double buffer of two 1x1 partitions, costs attached."""
    body = PipelineBody()
    tile(body, 0, KOffsetKind.K0)
    tile(body, 1, KOffsetKind.K1)
    return annotate_ops(body.build(), mi355x_target().cost_model)


@dataclass
class Small(PipelineSchedule):
    """A double buffer of two 1x1 partitions with any part replaced."""

    ops: Sequence[OpDesc] | None = None
    knobs: ScheduleConfig = ScheduleConfig()
    bootstrap: Sequence[OpDesc] = ()
    explicit: Callable[[PipelineProgram], Sequence[Sequence[OpDesc]]] | None = None
    pipeline: PipelineConfig = PipelineConfig(m_mmas=1, n_mmas=1)

    def config(self) -> PipelineConfig:
        return self.pipeline

    def build_body(self) -> Sequence[OpDesc]:
        return two_tiles() if self.ops is None else self.ops

    def schedule_config(self) -> ScheduleConfig:
        return self.knobs

    def bootstrap_frags(self) -> Sequence[OpDesc]:
        return self.bootstrap

    def build_explicit_blocks(self, body: Sequence[OpDesc], program: PipelineProgram) -> Sequence[Sequence[OpDesc]]:
        return self.explicit(program) if self.explicit else ()


def raised(code: str, call: Callable[[], Any]) -> Finding:
    """The finding that `call` ends in; its text must read as a sentence with its code in front."""
    with pytest.raises(RotaError) as caught:
        call()
    (finding,) = caught.value.findings
    assert finding.code == code
    assert str(caught.value).startswith(f"error[{code}]: ")
    return worded(finding)


def reported(code: str, schedule: PipelineSchedule) -> list[Finding]:
    """The findings with `code` that a compilation attaches; at least one."""
    found = [finding for finding in compile_schedule(schedule, sync="as_written").findings if finding.code == code]
    assert found
    return [worded(finding) for finding in found]
