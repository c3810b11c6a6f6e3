"""A code object made ready to run: takes the schedule and geometry it was emitted from, gives a `GemmProgram`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.audit.descriptor import misfits
from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.gemm.gemm_factors import Element, Factor
from rota.emit.gemm.gemm_tile import gemm_tile
from rota.errors import IsaError
from rota.isa.binary.code_object import CodeObject
from rota.pipeline.geometry import KernelGeometry

if TYPE_CHECKING:
    from rota.audit.gemm_launch import GemmProgram


def load_emitted(
    compiled: CompiledSchedule,
    geometry: KernelGeometry,
    code: CodeObject,
    *,
    element: Element | None = None,
    waves: int | None = None,
    kernel: str | None = None,
    dynamic_lds: int = 0,
) -> GemmProgram:
    """The emitted GEMM, or the one of that name where there are several; it must fit its descriptor and machine."""
    from rota.audit.gemm_launch import load_gemm

    tile = gemm_tile(compiled, geometry, element=element, waves=waves)
    facts, instructions = code.kernel(kernel), code.instructions(kernel)
    if wrong := misfits(facts, instructions, compiled.machine):
        raise IsaError(*wrong)
    return load_gemm(
        compiled,
        geometry,
        facts,
        instructions,
        element=tile.element.value,
        waves=tile.waves,
        dynamic_lds=dynamic_lds,
        b_by_columns=tile.by_columns(Factor.B),
    )
