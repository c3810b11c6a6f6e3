from __future__ import annotations

import pytest

from rota import GFX942, GFX950, Machine
from rota.compiler.loop import compile_loop
from rota.graph.timing import Unit, least_copies, time_loop
from rota.kernels.attention import ATTENTION, MI300X_ATTENTION, AttentionShape
from rota.order.modulo_schedule import ModuloProof
from rota.targets.timing import timing_of


@pytest.mark.parametrize(("shape", "machine"), [(ATTENTION, GFX950), (MI300X_ATTENTION, GFX942)])
def test_attention_is_proved_with_its_least_interval_at_this_grain(shape: AttentionShape, machine: Machine) -> None:
    compiled = compile_loop(shape.loop(instructions=False), machine)
    assert compiled.certificate is not None
    assert compiled.modulo is not None
    assert compiled.modulo.certificate.proof is ModuloProof.REFUTED
    busiest = time_loop(shape.loop(instructions=False), timing_of(machine)).least_interval
    assert busiest <= compiled.modulo.ii < 2 * busiest


def test_the_vector_unit_binds_on_mi355x() -> None:
    assert dict(time_loop(ATTENTION.loop(instructions=False), timing_of(GFX950)).busy) == {
        Unit.MMA: 256,
        Unit.VALU: 336,
        Unit.LDS: 2 * 64 + 64,
        Unit.DMA: 128,
    }


def test_only_the_running_maximum_is_needed_in_two_versions_at_once() -> None:
    copies = least_copies(ATTENTION.loop(instructions=False))
    assert {name for name, count in copies.items() if count > 1} == {"m"}
