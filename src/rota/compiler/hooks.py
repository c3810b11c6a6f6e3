"""Hooks and knobs that the chosen mode would ignore: takes a schedule, gives a finding for each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from rota.compiler.schedule import PipelineSchedule
from rota.declare.config import PipelineConfig
from rota.declare.op import OpDesc
from rota.declare.vocabulary import SchedulingStrategy
from rota.errors import Concern, Finding, Severity, several
from rota.program.config import ScheduleConfig
from rota.program.program import PipelineProgram

_TEMPLATE_ONLY = ("sched_barrier_mask", "global_before_frag", "drain_lgkm_mask", "auto_drain", "lgkm_after_last")
_SEARCH_ONLY = ("max_vgpr", "lds_contention_penalty")
_MANUAL_WAITS = ("wait_lgkm_first", "wait_vm_last")


def dropped_hooks(
    schedule: PipelineSchedule,
    config: PipelineConfig,
    sched: ScheduleConfig,
    bootstrap: tuple[OpDesc, ...],
    program: PipelineProgram | None,
) -> tuple[Finding, ...]:
    """P108 for a hook without effect, P109 (a note) for a knob without effect."""
    return (*_hooks(schedule, config, sched, bootstrap), *_knobs(config, sched, program))


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


def _idle(sched: ScheduleConfig, name: str, why: str) -> Finding:
    return Finding(
        code="P109",
        severity=Severity.NOTE,
        message=f"{name}={getattr(sched, name)!s} has no effect here: {why}",
        concerns=(Concern(label=f"ScheduleConfig.{name}"),),
    )
