from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from rota import (
    BlockSizing,
    KernelGeometry,
    Loop,
    OpDesc,
    PipelineBody,
    PipelineConfig,
    ScheduleConfig,
    SingleBufferSchedule,
)
from rota.kernels.attention import ATTENTION
from rota.kernels.gemm import GEMM_SHAPES
from tests.findings.smallest import raised

GEMM = GEMM_SHAPES[0]
WRONG: Any = cast("Any", "two")


@pytest.mark.parametrize(
    "call",
    [
        lambda: OpDesc.logical(1, stage=-1),
        lambda: OpDesc.logical(1, stage=WRONG),
        lambda: OpDesc.logical(WRONG),
        lambda: OpDesc.logical(1, channel=-2),
        lambda: OpDesc.logical(1, k_offset=WRONG),
        lambda: OpDesc(tag=1, role=WRONG),
        lambda: OpDesc(tag=1, resource=WRONG),
        lambda: OpDesc.wait_vm(WRONG),
        lambda: OpDesc.wait_lgkm(-1),
        lambda: OpDesc.sched_group_barrier(WRONG, 1),
        lambda: PipelineConfig(depth=0),
        lambda: PipelineConfig(ch0_match_field=2),
        lambda: PipelineConfig(block_sizing=WRONG),
        lambda: BlockSizing(heavy=-1, light=1),
        lambda: ScheduleConfig(auto_waits=WRONG),
        lambda: ScheduleConfig(max_vgpr=-1),
        lambda: KernelGeometry(BM=0),
        lambda: PipelineBody().grid(1, WRONG, 2),
        lambda: SingleBufferSchedule(0),
        lambda: replace(GEMM, rows=100).loop(instructions=False),
        lambda: replace(GEMM, columns=96).loop(instructions=True),
        lambda: replace(GEMM, depth=48).loop(instructions=False),
        lambda: replace(GEMM, dma_bytes=2).loop(instructions=False),  # DMAs move registers
        lambda: replace(GEMM, mma=(16, 16)).loop(instructions=False),
        lambda: replace(ATTENTION, keys=40).loop(instructions=False),
        lambda: replace(ATTENTION, mma=(32, 8)).loop(instructions=True),
    ],
)
def test_a_field_out_of_range_is_refused_by_name(call: Any) -> None:
    raised("D102", call)


def test_the_text_names_field_value_and_range() -> None:
    finding = raised("D102", lambda: PipelineConfig(depth=0))
    assert "PipelineConfig.depth" in finding.message


@pytest.mark.parametrize("waves", [None, 0, True, "4"])
def test_a_loops_waves_are_checked_where_they_are_given(waves: Any) -> None:
    finding = raised("D102", lambda: Loop("l", waves=waves).fragment("a", "A", registers=1))
    assert finding.concerns[0].source is not None
    assert finding.concerns[0].source.file == __file__
