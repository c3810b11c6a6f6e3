from __future__ import annotations

from dataclasses import fields, replace

import pytest

from rota import GFX942, GFX950, Machine, compile_loop
from rota.emit.gemm.gemm_tile import Element, GemmTile
from rota.emit.gemm.lds_layout import free_layout
from rota.kernels.gemm import GEMM_SHAPES
from rota.pipeline.geometry import KernelGeometry
from rota.targets.architecture import architecture_of
from rota.targets.device import rates_of, registers_per_lane, timing_of
from tests.findings.smallest import raised

BARE = Machine(**{each.name: getattr(GFX950, each.name) for each in fields(Machine)})


@pytest.mark.parametrize("machine", [BARE, GFX950.architecture])
def test_a_machine_that_is_no_device_has_no_rates_and_no_times(machine: Machine) -> None:
    for ask in (rates_of, timing_of, lambda machine: registers_per_lane(machine, 4)):
        finding = raised("D114", lambda ask=ask: ask(machine))  # type: ignore[misc]
        assert "lacks" in dict(finding.evidence)
    raised("D114", lambda: compile_loop(GEMM_SHAPES[0].loop(), machine))


def test_a_bare_machine_has_no_instruction_set() -> None:
    assert architecture_of(GFX950.architecture).arch == GFX950.arch
    finding = raised("D114", lambda: architecture_of(BARE))
    assert "lacks" in dict(finding.evidence)


def test_how_lds_serves_reads_of_another_size_is_not_made_up() -> None:
    tile = GemmTile(geometry=KernelGeometry(), waves=8, element=Element.BF16, machine=GFX950)
    assert free_layout(tile).row_bytes == tile.row_bytes
    forgetful = replace(GFX950, bank_rules=GFX942.bank_rules[1:])
    finding = raised("D114", lambda: free_layout(replace(tile, machine=forgetful)))
    assert ("known for bytes a lane", "8, 4") in finding.evidence
