"""Hooks and knobs that the chosen mode would ignore: takes a schedule, gives a finding for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import NamedTuple

from rota.errors import Concern, Finding, Severity, several
from rota.order.acyclic.problem import SchedulingStrategy
from rota.pipeline.block import MMABlockSpec
from rota.pipeline.build import OrderedProgram, derive_program
from rota.pipeline.config import PipelineConfig
from rota.pipeline.geometry import KernelGeometry
from rota.pipeline.op import OpDesc
from rota.pipeline.phases import derive_epilogue_blocks
from rota.pipeline.pipeline_program import PipelineProgram
from rota.pipeline.schedule import PipelineSchedule
from rota.pipeline.schedule_config import ScheduleConfig
from rota.pipeline.vocabulary import CHANNEL_A, CHANNEL_B
from rota.program.kinds import OpKind, OpRole

_SEARCH_ONLY = ("max_vgpr", "lds_contention_penalty")
_MANUAL_WAITS = ("wait_lgkm_first", "wait_vm_last")
_ORDERS = ("scheduling", *_SEARCH_ONLY)
_LGKM = {"lgkm_per_load_a": CHANNEL_A, "lgkm_per_load_b": CHANNEL_B}
_COUNTED = (OpRole.SHARED_STORE, OpRole.FRAGMENT_LOAD)
_ALWAYS_ACTS = ("minimal_barriers", "partial_prologue_drain")
_DEFAULTS = {field.name: field.default for field in fields(ScheduleConfig)}
_DESCRIBED = {
    "prefetch": "how far loads run ahead is what their k_offset says",
    "drain_passes": "the epilogue computes what the prologue and the loop have loaded",
    "prologue_fill": "the prologue loads what the body's prefetches leave open",
    "mma_serial": "an order's matrix unit always takes one op at a time",
    "mma_latency": "an op's own latency counts",
}


class _Subject(NamedTuple):
    """A double buffer's ops in order, and the program that was built of them."""

    ordered: tuple[OpDesc, ...]
    program: PipelineProgram


def dropped_hooks(
    schedule: PipelineSchedule,
    config: PipelineConfig,
    sched: ScheduleConfig,
    body: tuple[OpDesc, ...],
    bootstrap: tuple[OpDesc, ...],
    *,
    built: OrderedProgram | None,
) -> tuple[Finding, ...]:
    """P108 for a hook without effect, P109 (a note) for a knob without effect, P117 for a loop without barriers.

    `built` is None for a single buffer.
    """
    subject = built and _Subject(tuple(body[index] for index in built.ordering.order), built.program)
    return (
        *_hooks(schedule, config, sched, bootstrap),
        *_knobs(config, sched, subject),
        *_replaced(schedule, sched),
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


def _knobs(config: PipelineConfig, sched: ScheduleConfig, built: _Subject | None) -> Iterator[Finding]:
    changed = [field.name for field in fields(ScheduleConfig) if getattr(sched, field.name) != field.default]
    if built is None:
        yield from (_idle(sched, name, "a single buffer is not cut into blocks") for name in changed)
        return
    searching = sched.scheduling not in (SchedulingStrategy.IDENTITY, SchedulingStrategy.GREEDY)
    for name in changed:
        if name in _ORDERS:
            if name in _SEARCH_ONLY and not searching:
                yield _idle(sched, name, f"{sched.scheduling} does not search")
        elif name in _LGKM:
            if why := _uncounted(name, config, sched, built):
                yield _idle(sched, name, why)
        elif _changes_nothing(name, config, sched, built):
            yield _idle(sched, name, _why_idle(name, sched, built))
    if sched.minimal_barriers and not _has_barrier(built.program):
        yield Finding(
            code="P117",
            severity=Severity.NOTE,
            message="minimal_barriers leaves the loop without a barrier: no block reads a stage that isn't its own",
            concerns=(Concern(label="ScheduleConfig.minimal_barriers"),),
            evidence=(("blocks with an entry wait", 0), ("blocks", len(built.program.blocks))),
            fixes=(
                'sync="repair" adds the barriers that the proof needs',
                "minimal_barriers=False puts two around every MMA",
            ),
        )


def _has_barrier(program: PipelineProgram) -> bool:
    return any(op.kind is OpKind.BARRIER for index in range(len(program.blocks)) for op in program.block_ops(index))


def _changes_nothing(name: str, config: PipelineConfig, sched: ScheduleConfig, built: _Subject) -> bool:
    """True if the schedule is the same with the knob at its default.

    Blocks decide everything but how the prologue ends.  Where the author lists every block, what a listing might have
    read of a block counts as an effect.
    """
    if name in _ALWAYS_ACTS:
        return False
    if name == "inter_block_lgkm_drain" and any(
        block.entry_wait_lgkm and name in block.entry_wait_lgkm.knobs for block in built.program.blocks
    ):
        return False
    listings = built.program.explicit_blocks
    explicit = bool(listings) and not any(
        listing in ((), block.expand()) for listing, block in zip(listings, built.program.blocks, strict=True)
    )
    before = derive_program(built.ordered, config, sched.but(**{name: _DEFAULTS[name]})).blocks
    after = built.program.blocks
    if before == after:
        return True
    seen: Callable[[MMABlockSpec], object] = _without_template if explicit else MMABlockSpec.expand
    if any(seen(one) != seen(other) for one, other in zip(before, after, strict=True)):
        return False
    programs = (PipelineProgram(blocks=blocks, config=config) for blocks in (before, after))
    one, other = (derive_epilogue_blocks(program, config) for program in programs)
    return [block.expand() for block in one] == [block.expand() for block in other]


def _without_template(block: MMABlockSpec) -> MMABlockSpec:
    """The block without the flags that only the template reads."""
    drains = block.post_barrier_lgkm and block.pre_mma_barrier
    return block.but(
        trailing_sched_barrier=False,
        global_before_frag=False,
        drain_lgkm_before_loads=False,
        post_barrier_lgkm=drains,
        pre_mma_set_prio=False,
        post_mma_set_prio=False,
    )


def _uncounted(name: str, config: PipelineConfig, sched: ScheduleConfig, built: _Subject) -> str:
    """Why a schedule's count of lgkmcnt tokens is never read; nothing if it is."""
    if getattr(config, name):
        return f"the pipeline config states {getattr(config, name)}"
    counted = (op for op in built.ordered if op.role in _COUNTED and op.channel == _LGKM[name])
    if any(not op.lgkm_cost for op in counted) or not _changes_nothing(name, config, sched, built):
        return ""
    return "every op of that operand states its own count"


def _why_idle(name: str, sched: ScheduleConfig, built: _Subject) -> str:
    """What stands in the way of a knob that changes nothing."""
    reasons = (
        (name in _MANUAL_WAITS and sched.auto_waits, "auto_waits derives the waits"),
        (name == "auto_drain" and not sched.auto_waits, "it acts only together with auto_waits"),
        (name == "omit_mma_set_prio" and not sched.minimal_barriers, "it acts only together with minimal_barriers"),
        (bool(built.program.explicit_blocks), "explicit blocks replace the template that reads it"),
        (
            name in ("sched_barrier_mask", "lgkm_after_last") and sched.minimal_barriers,
            "minimal_barriers leaves out the barrier that it follows",
        ),
    )
    default = _DEFAULTS[name]
    return next((why for holds, why in reasons if holds), f"the entries are the same with {name}={default}")


def _replaced(schedule: PipelineSchedule, sched: ScheduleConfig) -> Iterator[Finding]:
    """What a schedule sets itself, whatever config it was given."""
    asked = getattr(schedule, "asked", None)
    if not isinstance(asked, ScheduleConfig):
        return
    kept = [field.name for field in fields(ScheduleConfig) if getattr(asked, field.name) != getattr(sched, field.name)]
    if kept:
        owner = type(schedule).__name__
        yield Finding(
            code="P109",
            severity=Severity.NOTE,
            message=f"{', '.join(kept)}: {owner} sets {'these' if kept[1:] else 'this'} itself, whatever it is given",
            concerns=tuple(Concern(label=f"ScheduleConfig.{name}") for name in kept),
            evidence=tuple((name, f"given {getattr(asked, name)!s}, kept {getattr(sched, name)!s}") for name in kept),
        )


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
