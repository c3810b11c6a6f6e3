from __future__ import annotations

from collections.abc import Sequence

import pytest

from rota import KernelGeometry, OpDesc, Pipeline4Wave, ScheduleEntry, SingleBufferSchedule, compile_schedule
from rota.pipeline.op import entries_of
from rota.program.kinds import Phase
from tests.findings.smallest import Small, reported


class Backwards(Small):
    """Issues the fragment of B in front of that of A, and the load of B in front of that of A."""

    def transform_kernel(self, ker: Sequence[ScheduleEntry], body: Sequence[OpDesc]) -> Sequence[ScheduleEntry]:
        ops = [entry.op for entry in ker]
        for index, op in enumerate(ops[:-1]):
            if op in (body[0], body[2]):
                ops[index], ops[index + 1] = ops[index + 1], op
        return entries_of(ops, Phase.KERNEL)


class LastFirst(SingleBufferSchedule):
    def transform_kernel(self, ker: Sequence[ScheduleEntry], body: Sequence[OpDesc]) -> tuple[ScheduleEntry, ...]:
        return entries_of([ker[-1].op, *(entry.op for entry in ker[:-1])], Phase.KERNEL)


def test_explicit_blocks_that_reorder_are_told() -> None:
    (finding,) = reported("P115", Pipeline4Wave(KernelGeometry()))
    assert [end.index for end in finding.concerns] == [0, 3, 6, 9, 12, 15, 18, 21]  # every load, after its fragment
    assert finding.concerns[0].role == "declared in front of mma_load_b s0 t1 (#1), issued after it"


def test_a_transformed_kernel_is_told_of_fragments_and_loads_alike() -> None:
    (finding,) = reported("P115", Backwards())
    passed = [(end.label, end.role) for end in finding.concerns]
    assert passed == [
        ("mma_load_b s0 t0", "declared after mma_load_a s0 t0 (#0), issued before it"),
        ("load_b s0 t0 k0", "declared after load_a s0 t0 k0 (#2), issued before it"),
    ]


@pytest.mark.parametrize("tiles", [2, 3])
def test_a_single_buffers_kernel_is_its_body_unless_a_hook_says_otherwise(tiles: int) -> None:
    (finding,) = reported("P115", LastFirst(tiles))
    assert len(finding.concerns) == 1
    written = compile_schedule(SingleBufferSchedule(tiles), sync="as_written")
    assert not [each for each in written.findings if each.code == "P115"]
