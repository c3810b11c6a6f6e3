from __future__ import annotations

from collections.abc import Sequence

from rota import ScheduleEntry
from rota.pipeline.block import PipelineProgram
from rota.pipeline.op import OpDesc
from tests.findings.smallest import Small, reported


def only_mmas(program: PipelineProgram) -> Sequence[Sequence[OpDesc]]:
    return [[block.mma] for block in program.blocks]


class Trimmed(Small):
    def transform_kernel(self, ker: Sequence[ScheduleEntry], body: Sequence[OpDesc]) -> Sequence[ScheduleEntry]:
        return ker[1:]


def test_explicit_blocks_that_drop_ops_are_reported() -> None:
    (finding,) = reported("P102", Small(explicit=only_mmas))
    assert ("declared", 10) in finding.evidence
    assert ("issued", 2) in finding.evidence


def test_a_transform_that_drops_an_op_is_reported() -> None:
    (finding,) = reported("P102", Trimmed())
    assert finding.concerns[0].role == "declared, not issued"
