"""Compiled schedules and toy timelines of them, made once."""

from __future__ import annotations

from functools import cache

from rota import CompiledSchedule, DeclarativeSchedule, KernelGeometry, Pipeline4Wave, compile_loop, compile_schedule
from rota.cycles.timeline import Timeline
from rota.kernels.gemm import GEMM_SHAPES
from tests.view.toy_machine import run

_QUADRANT = {f"mma[{row},{column}]": 256 for row in range(2) for column in range(2)}


@cache
def ping_pong() -> tuple[CompiledSchedule, Timeline]:
    """Two staggered groups of four waves."""
    compiled = compile_schedule(DeclarativeSchedule())
    return compiled, run(compiled, held=_QUADRANT)


@cache
def four_wave() -> tuple[CompiledSchedule, Timeline]:
    """One group of four waves."""
    compiled = compile_schedule(Pipeline4Wave(KernelGeometry()))
    return compiled, run(compiled, held=_QUADRANT)


@cache
def by_values() -> tuple[CompiledSchedule, Timeline]:
    """A loop by values: eight waves in lockstep."""
    compiled = compile_loop(GEMM_SHAPES[0].loop(instructions=False))
    return compiled, run(compiled)
