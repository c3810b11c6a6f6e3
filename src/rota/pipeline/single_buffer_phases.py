"""The phases of a single buffer: takes the body, gives prologue, kernel and epilogue entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rota.errors import Finding, ProgramError
from rota.pipeline.config import PipelineConfig
from rota.pipeline.op import OpDesc
from rota.pipeline.schedule_entry import ScheduleEntry, entries_of
from rota.program.kinds import OpRole
from rota.program.phase import Phase


class SingleBufferPhases(NamedTuple):
    """The three parts of the pipelined loop."""

    prologue: tuple[ScheduleEntry, ...]
    kernel: tuple[ScheduleEntry, ...]
    epilogue: tuple[ScheduleEntry, ...]


def derive_single_buffer_phases(body: Sequence[OpDesc], config: PipelineConfig) -> SingleBufferPhases:
    """One tile in LDS, one in registers: the prologue stages two tiles, the epilogue computes the last two."""
    loads = [op for op in body if op.role is OpRole.GLOBAL_LOAD]
    stores = [op for op in body if op.role is OpRole.SHARED_STORE]
    fragments = [op for op in body if op.role is OpRole.FRAGMENT_LOAD]
    computes = [op for op in body if op.role is OpRole.COMPUTE]
    for name, found in (
        ("global load", loads),
        ("shared store", stores),
        ("fragment load", fragments),
        ("compute", computes),
    ):
        if not found:
            raise ProgramError(
                Finding(
                    code="P112",
                    message=f"a single-buffer body needs a {name}; this one has none",
                    evidence=((f"{name}s", 0), ("ops in the body", len(body))),
                )
            )
    for load in loads:
        if all(store.channel != load.channel for store in stores):
            raise ProgramError(
                Finding(
                    code="P116",
                    message=f"{load} fills the staging registers of channel {load.channel}; no store takes them to LDS",
                    concerns=(load.concern(list(body).index(load)), *(store.concern() for store in stores)),
                    evidence=(
                        ("channel of the load", load.channel),
                        ("channels of the stores", ", ".join(sorted({str(store.channel) for store in stores}))),
                    ),
                    fixes=(f"a store with channel={load.channel}", "leave the load out"),
                )
            )
    carried = [op for op in fragments if config.loop_carried.carries(op)]
    others = [op for op in fragments if not config.loop_carried.carries(op)]
    fence = OpDesc.schedule_barrier().made_by("a fence for the compiler between phases", knobs=("depth",))
    barrier = OpDesc.barrier().made_by("a barrier between the store and the reads of one buffer", knobs=("depth",))
    prologue = [*loads, *stores, barrier, *loads, *carried, fence]
    epilogue = [fence, *others, barrier, *stores, *computes, fence, barrier, *fragments, *computes, fence]
    return SingleBufferPhases(
        prologue=entries_of(prologue, Phase.PROLOGUE),
        kernel=entries_of(body, Phase.KERNEL),
        epilogue=entries_of(epilogue, Phase.EPILOGUE),
    )
