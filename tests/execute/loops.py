"""Loops to execute: takes ops or shipped schedules, gives right ones, and what edits of them give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from rota import (
    GFX950,
    DeclarativeSchedule,
    KernelGeometry,
    KOffsetKind,
    Machine,
    OpDesc,
    OpRole,
    Phase,
    Pipeline4Wave,
    PipelineConfig,
    PipelineSchedule,
    ScheduleConfig,
    ScheduleEntry,
    SingleBufferSchedule,
    WarpStaggerRule,
    compile_schedule,
    mi355x_target,
)
from rota.pipeline.compiled_pipeline import CompiledPipeline, lower
from rota.pipeline.op import entries_of
from rota.program.entry import Entry
from rota.program.lowered import Lowerable, LoweredProgram

BARRIER, VM, LGKM = OpDesc.barrier(), OpDesc.wait_vm(0), OpDesc.wait_lgkm(0)
FULL = (VM, LGKM, BARRIER)
PHASES = {"prologue": Phase.PROLOGUE, "kernel": Phase.KERNEL, "epilogue": Phase.EPILOGUE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """The least that can be lowered."""

    prologue: tuple[ScheduleEntry, ...]
    kernel: tuple[ScheduleEntry, ...]
    epilogue: tuple[ScheduleEntry, ...]
    config: PipelineConfig = PipelineConfig(m_mmas=1, n_mmas=1)
    schedule_config: ScheduleConfig = ScheduleConfig()
    warp_stagger_index: int = 0
    compiler_tracks_registers: bool = True
    reentrant: bool = False
    name: str = "loop"
    machine: Machine = GFX950
    body: tuple[OpDesc, ...] = ()
    lds_bytes: int | None = None
    registers: int | None = None
    register_limit: int = 512

    @property
    def lowered(self) -> LoweredProgram:
        return lower(self)  # type: ignore[arg-type]  # it has what lowering reads


@dataclass(frozen=True, slots=True, kw_only=True)
class Witnessed:
    trip_count: int
    ahead: int = 0
    behind: int = 0
    kind: str = "RAW"


def load(channel: int, stage: int, k_offset: KOffsetKind) -> OpDesc:
    return OpDesc(tag=channel, role=OpRole.GLOBAL_LOAD, channel=channel, stage=stage, k_offset=k_offset, vm_cost=1)


def frag(channel: int, stage: int) -> OpDesc:
    return OpDesc(tag=2 + channel, role=OpRole.FRAGMENT_LOAD, channel=channel, stage=stage, lgkm_cost=1)


MMA = OpDesc(tag=4, role=OpRole.COMPUTE)


def tiny_ops() -> dict[str, list[OpDesc]]:
    """The data ops of a 1x1 double buffer."""
    offsets = (KOffsetKind.K0, KOffsetKind.K1)
    fills = [[load(0, stage, k), load(1, stage, k)] for stage, k in enumerate(offsets)]
    computes = [[frag(0, stage), frag(1, stage), MMA] for stage in range(2)]
    return {
        "prologue": [*fills[0], *fills[1]],
        "kernel": [*computes[0], *fills[0], *computes[1], *fills[1]],
        "epilogue": [*computes[0], *computes[1]],
    }


def with_syncs(syncs: Sequence[Sequence[OpDesc]], *, stagger: bool = False) -> Loop:
    """The tiny double buffer with the n-th group of waits and barriers after its n-th data op."""
    behind = iter(syncs)
    phases: dict[str, Any] = {
        name: entries_of([op for data in ops for op in (data, *next(behind))], PHASES[name])
        for name, ops in tiny_ops().items()
    }
    rule = WarpStaggerRule.fixed(0) if stagger else WarpStaggerRule.none()
    return Loop(**phases, config=PipelineConfig(m_mmas=1, n_mmas=1, warp_stagger=rule))


SLOTS = sum(map(len, tiny_ops().values()))


def edited(loop: CompiledPipeline, phase: str, edit: Callable[[list[OpDesc]], Iterable[OpDesc]]) -> CompiledPipeline:
    """One phase with its ops edited, numbered again."""
    ops = [entry.op for entry in getattr(loop, phase)]
    changes: dict[str, Any] = {phase: entries_of(edit(ops), PHASES[phase])}
    return replace(loop, **changes)


def without(loop: CompiledPipeline, phase: str, slot: int, op: OpDesc) -> CompiledPipeline:
    """One entry removed; it must be the expected one."""
    assert getattr(loop, phase)[slot].op == op
    return edited(loop, phase, lambda ops: ops[:slot] + ops[slot + 1 :])


def changed(loop: Lowerable, phase: str, change: Callable[[Entry], Entry]) -> LoweredProgram:
    """One phase of the program with every entry that the schedule lists changed."""
    program = loop.lowered
    entries = [change(entry) if entry.listed else entry for entry in program.phase(PHASES[phase])]
    return program.with_phases({PHASES[phase]: entries})


def as_written(schedule: PipelineSchedule) -> CompiledPipeline:
    return compile_schedule(schedule, sync="as_written")


@cache
def ping_pong(scheduling: str, max_globals: int) -> CompiledPipeline:
    knobs = ScheduleConfig(scheduling=scheduling, lgkm_per_load_a=8, lgkm_per_load_b=4)
    return as_written(DeclarativeSchedule(knobs, mi355x_target(max_globals=max_globals)))


@cache
def four_wave() -> CompiledPipeline:
    """With reads that nobody counts: waits for them are full drains."""
    return as_written(Pipeline4Wave(KernelGeometry(lgkm_per_load_a=0, lgkm_per_load_b=0)))


@cache
def drained_four_wave() -> CompiledPipeline:
    return edited(four_wave(), "epilogue", lambda ops: [*FULL, *ops])


@cache
def single_buffer(tiles: int) -> CompiledPipeline:
    return as_written(SingleBufferSchedule(tiles))


@cache
def waiting_single_buffer(tiles: int) -> CompiledPipeline:
    """LDS accesses are complete before each barrier."""

    def waits(ops: list[OpDesc]) -> list[OpDesc]:
        return [each for op in ops for each in ((LGKM, op) if op == BARRIER else (op,))]

    loop = single_buffer(tiles)
    for phase in PHASES:
        loop = edited(loop, phase, waits)
    return loop
