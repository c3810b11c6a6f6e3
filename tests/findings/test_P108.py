from __future__ import annotations

from collections.abc import Sequence

import pytest

from rota import OpDesc, PipelineProgram, ProofError, ScheduleConfig, SingleBufferSchedule, compile_schedule
from tests.findings.smallest import Small, reported, two_tiles
from tests.programs.ported import Rotating


class ExplicitSingleBuffer(SingleBufferSchedule):
    def build_explicit_blocks(self, body: Sequence[OpDesc], program: PipelineProgram) -> Sequence[Sequence[OpDesc]]:
        return [[*body]]


class BootstrappedSingleBuffer(SingleBufferSchedule):
    def bootstrap_frags(self) -> Sequence[OpDesc]:
        return two_tiles()[:1]


def test_bootstrap_fragments_without_partial_drain_are_reported() -> None:
    (finding,) = reported("P108", Small(bootstrap=two_tiles()[:2]))
    assert "partial_prologue_drain=True" in finding.fixes[0]


def test_the_offered_fix_works() -> None:
    mended = Small(bootstrap=two_tiles()[:2], knobs=ScheduleConfig(partial_prologue_drain=True))
    compiled = compile_schedule(mended)
    assert "P108" not in {finding.code for finding in compiled.findings}
    assert [entry.op for entry in compiled.prologue if not entry.op.is_framework][-2:] != []


def test_the_cause_comes_before_the_wrong_values_that_follow_from_it() -> None:
    with pytest.raises(ProofError) as caught:
        compile_schedule(Rotating(partial_prologue_drain=False))
    codes = [finding.code for finding in caught.value.findings]
    assert codes[0] == "P108"
    assert codes[1].startswith("V")


def test_bootstrap_fragments_of_a_single_buffer_are_reported() -> None:
    reported("P108", BootstrappedSingleBuffer(2))


def test_explicit_blocks_of_a_single_buffer_are_reported() -> None:
    reported("P108", ExplicitSingleBuffer(2))
