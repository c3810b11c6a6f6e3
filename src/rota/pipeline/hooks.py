"""Hooks and knobs that the chosen mode would ignore: takes a schedule, gives a finding for each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from rota.errors import Concern, Finding, Severity, several
from rota.order.acyclic.problem import SchedulingStrategy
from rota.pipeline.config import PipelineConfig
from rota.pipeline.geometry import KernelGeometry
from rota.pipeline.op import OpDesc
from rota.pipeline.pipeline_program import PipelineProgram
from rota.pipeline.schedule import PipelineSchedule
from rota.pipeline.schedule_config import ScheduleConfig

_TEMPLATE_ONLY = ("sched_barrier_mask", "global_before_frag", "drain_lgkm_mask", "auto_drain", "lgkm_after_last")
_SEARCH_ONLY = ("max_vgpr", "lds_contention_penalty")
_MANUAL_WAITS = ("wait_lgkm_first", "wait_vm_last")
_DESCRIBED = {
    "prefetch": "how far loads run ahead is what their k_offset says",
    "drain_passes": "the epilogue computes what the prologue and the loop have loaded",
    "prologue_fill": "the prologue loads what the body's prefetches leave open",
    "mma_serial": "an order's matrix unit always takes one op at a time",
    "mma_latency": "an op's own latency counts",
}


def dropped_hooks(
    schedule: PipelineSchedule,
    config: PipelineConfig,
    sched: ScheduleConfig,
    bootstrap: tuple[OpDesc, ...],
    program: PipelineProgram | None,
) -> tuple[Finding, ...]:
    """P108 for a hook without effect, P109 (a note) for a knob without effect."""
    return (
        *_hooks(schedule, config, sched, bootstrap),
        *_knobs(config, sched, program),
        *_shape(config),
        *_geometry(schedule, config),
    )


def _hooks(
    schedule: PipelineSchedule, config: PipelineConfig, sched: ScheduleConfig, bootstrap: tuple[OpDesc, ...]
) -> Iterator[Finding]:
    if bootstrap and (config.depth < 2 or not sched.partial_prologue_drain):
        why = "a single buffer's prologue reads its carried fragment itself"
        fix = "remove bootstrap_frags()"
        if config.depth >= 2:
            why = "the prologue drains every prefetch, and the loop reads its fragments itself"
            fix = "partial_prologue_drain=True emits them, each behind its own wait"
        yield Finding(
            code="P108",
            message=f"bootstrap_frags() gives {several(len(bootstrap), 'fragment')} that this mode never reads: {why}",
            concerns=tuple(op.concern(index) for index, op in enumerate(bootstrap)),
            evidence=(("depth", config.depth), ("partial_prologue_drain", str(sched.partial_prologue_drain))),
            fixes=(fix,),
        )
    if config.depth < 2 and type(schedule).build_explicit_blocks is not PipelineSchedule.build_explicit_blocks:
        yield Finding(
            code="P108",
            message="build_explicit_blocks() is never asked: a single buffer's kernel is its body, not blocks",
            concerns=(Concern(label=f"{type(schedule).__name__}.build_explicit_blocks"),),
            evidence=(("depth", config.depth), ("least depth with blocks", 2)),
            fixes=("transform_kernel() can rewrite the kernel's entries",),
        )


def _knobs(config: PipelineConfig, sched: ScheduleConfig, program: PipelineProgram | None) -> Iterator[Finding]:
    changed = [field.name for field in fields(ScheduleConfig) if getattr(sched, field.name) != field.default]
    if config.depth < 2:
        yield from (_idle(sched, name, "a single buffer is not cut into blocks") for name in changed)
        return
    searching = sched.scheduling not in (SchedulingStrategy.IDENTITY, SchedulingStrategy.GREEDY)
    idle = {
        **{name: f"{sched.scheduling} does not search" for name in _SEARCH_ONLY if not searching},
        **{name: "auto_waits derives the waits" for name in _MANUAL_WAITS if sched.auto_waits},
    }
    if not sched.auto_waits:
        idle["auto_drain"] = "it acts only together with auto_waits"
    if not sched.minimal_barriers:
        idle["omit_mma_set_prio"] = "it acts only together with minimal_barriers"
    if program is not None and program.explicit_blocks and all(program.explicit_blocks):
        idle |= dict.fromkeys(_TEMPLATE_ONLY, "explicit blocks replace the template that reads it")
    yield from (_idle(sched, name, idle[name]) for name in changed if name in idle)


def _shape(config: PipelineConfig) -> Iterator[Finding]:
    """Fields that describe a pipeline's shape to a reader; what they say follows from the body."""
    for name, why in _DESCRIBED.items():
        shipped = {PipelineConfig.__dataclass_fields__[name].default}
        if name == "prologue_fill" and config.depth < 2:
            shipped = {0}  # as the targets of a single buffer state it
        if getattr(config, name) not in shipped:
            yield _idle(config, name, why)


def _geometry(schedule: PipelineSchedule, config: PipelineConfig) -> Iterator[Finding]:
    """What a kernel's geometry states and its target overrides, or nothing reads."""
    geometry = getattr(schedule, "geometry", None)
    if not isinstance(geometry, KernelGeometry):
        return
    if geometry.simd_width != KernelGeometry.__dataclass_fields__["simd_width"].default:
        yield _idle(geometry, "simd_width", "loads and reads are 16 bytes wide")
    for name in ("vm_per_load_a", "vm_per_load_b"):
        if getattr(geometry, name) != getattr(config, name):
            yield _idle(geometry, name, f"the target that was given states {getattr(config, name)}")


def _idle(owner: object, name: str, why: str) -> Finding:
    return Finding(
        code="P109",
        severity=Severity.NOTE,
        message=f"{name}={getattr(owner, name)!s} has no effect here: {why}",
        concerns=(Concern(label=f"{type(owner).__name__}.{name}"),),
    )
