"""Compiled loops for the cycle model: takes a name, gives the loop, and its shape if it is declared in tiles."""

from __future__ import annotations

from functools import cache

from rota import GFX950, CompiledSchedule, KernelGeometry, Machine, compile_schedule
from rota.kernels.attention import ATTENTION
from rota.kernels.four_wave import Pipeline4Wave
from rota.kernels.gemm import BF16, GemmShape
from rota.kernels.ping_pong import DeclarativeSchedule, mi355x_target
from rota.kernels.single_buffer import SingleBufferSchedule
from rota.pipeline.geometry import TileShape
from rota.targets.device import rates_of
from rota.values.compile_loop import unroll_bare
from rota.values.loop import Loop
from rota.values.unroll import Placement
from tests.campaigns.schedules.mca import one_after_another

SMALL = GemmShape(name="small", instruction=BF16, mma=(16, 32), rows=64, columns=64, waves=4)
NAMES = ("ping_pong", "four_wave", "single_buffer", "small", "small_by_instruction", "attention")


@cache
def timed(name: str) -> tuple[CompiledSchedule, TileShape | None]:
    """A compiled loop, and its shape if it is declared in tiles."""
    geometry = KernelGeometry()
    eight, four = (TileShape(geometry=geometry, waves=waves, instruction=BF16) for waves in (8, 4))
    if name == "ping_pong":
        return compile_schedule(DeclarativeSchedule(target=mi355x_target(2, 2))), eight
    if name == "four_wave":
        return compile_schedule(Pipeline4Wave(geometry)), four
    if name == "single_buffer":
        return compile_schedule(SingleBufferSchedule(2)), four
    loop = (
        ATTENTION.loop(instructions=False)
        if name == "attention"
        else SMALL.loop(instructions=name == "small_by_instruction")
    )
    return one_after_another(loop), None


def only_mfmas(instruction: str, machine: Machine = GFX950, *, count: int = 64, waves: int = 4) -> CompiledSchedule:
    """A loop that does nothing but add to `count` accumulators, without any synchronisation."""
    loop = Loop("only_mfmas", waves=waves)
    for number in range(count):
        loop.mma(loop.accumulator(f"c{number}", registers=4), instruction=instruction)
    passes = rates_of(machine).passes(instruction)
    starts = tuple(number * passes for number in range(count))
    placement = Placement(interval=count * passes, starts=starts, copies=())
    return unroll_bare(loop.build(), placement, machine=machine)
