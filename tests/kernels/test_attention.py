from __future__ import annotations

import pytest

from rota import GFX942, GFX950, Machine
from rota.kernels.attention import ATTENTION, MI300X_ATTENTION, AttentionShape
from rota.program.kinds import Unit
from rota.targets.device import timing_of
from rota.values.compile_loop import compile_loop
from rota.values.op_times import least_copies, time_loop


@pytest.mark.parametrize(("shape", "machine"), [(ATTENTION, GFX950), (MI300X_ATTENTION, GFX942)])
def test_attention_in_tiles_is_proved_and_near_its_bound(shape: AttentionShape, machine: Machine) -> None:
    compiled = compile_loop(shape.loop(instructions=False), machine)
    assert compiled.certificate is not None
    assert compiled.modulo is not None
    busiest = time_loop(shape.loop(instructions=False), timing_of(machine)).least_interval
    assert busiest <= compiled.modulo.ii < 1.3 * busiest
    assert compiled.modulo.certificate.optimal == (compiled.modulo.ii == busiest)


def test_issue_turns_bind_on_mi355x() -> None:
    assert dict(time_loop(ATTENTION.loop(instructions=False), timing_of(GFX950)).busy) == {
        Unit.MMA: 256,
        Unit.VALU: 336,
        Unit.LDS: 2 * 64 + 64,
        Unit.DMA: 128,
        Unit.ISSUE: 456,
    }


def test_only_the_running_maximum_is_needed_in_two_versions_at_once() -> None:
    copies = least_copies(ATTENTION.loop(instructions=False))
    assert {name for name, count in copies.items() if count > 1} == {"m"}
