"""One MMA with what surrounds it: takes ops, waits and flags, gives the block's entries by a fixed template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from textwrap import shorten, wrap
from typing import Any, NamedTuple

from rota.check import bad_field, expect
from rota.errors import several
from rota.markup import card
from rota.markup import lines as text_lines
from rota.pipeline.op import OpDesc
from rota.printing import WIDTH, WrappedTuple

_FENCE = OpDesc.schedule_barrier()
# What the template itself issues, each with the knobs that decide it.
_BARRIER_BEFORE = OpDesc.barrier().made_by("a barrier before every MMA", knobs=("minimal_barriers",))
_BARRIER_AFTER = OpDesc.barrier().made_by("a barrier after every MMA", knobs=("minimal_barriers",))
_DRAIN_AFTER_BARRIER = OpDesc.wait_lgkm(0).made_by(
    "LDS reads are over once the barrier is passed", knobs=("minimal_barriers", "lgkm_after_last")
)
_DRAIN_BEFORE_LOADS = OpDesc.wait_lgkm(0).made_by(
    "the block's LDS reads are over before its loads start to write", knobs=("drain_lgkm_mask", "auto_drain")
)
_RAISE_PRIO = OpDesc.set_prio(1).made_by(
    "a raised priority for the MMA", knobs=("minimal_barriers", "omit_mma_set_prio")
)
_LOWER_PRIO = OpDesc.set_prio(0).made_by("the priority goes down after the MMA", knobs=("minimal_barriers",))
_WRAP = _FENCE.made_by("a fence for the compiler around waits and barriers", knobs=("wrap_waits_with_sched_barrier",))
_TRAILING_FENCE = _FENCE.made_by("a fence for the compiler after the block", knobs=("sched_barrier_mask",))
_FENCE_AFTER_BARRIER = _FENCE.made_by("a fence for the compiler after the barrier", hook="build_explicit_blocks")
_FENCE_BETWEEN = _FENCE.made_by(
    "emit_minimal_barrier_block fences fragments and loads from each other", hook="build_explicit_blocks"
)


class BlockPositions(NamedTuple):
    """Positions inside an expanded block; None where the block has no such entry."""

    entry_count: int
    mma: int
    post_barrier_lgkm: int | None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MMABlockSpec:
    """An MMA, the fragments and loads issued before it, and the synchronisation around it.

    `pre_ops` and `global_loads` hold any number of ops; `trailing_ops` are those that the author placed behind the
    body's last compute; `fused_mmas` follow the MMA without synchronisation (epilogue).
    """

    mma: OpDesc
    pre_ops: tuple[OpDesc, ...] = ()
    global_loads: tuple[OpDesc, ...] = ()
    trailing_ops: tuple[OpDesc, ...] = ()
    fused_mmas: tuple[OpDesc, ...] = ()
    entry_wait: OpDesc | None = None
    entry_wait_lgkm: OpDesc | None = None
    pre_sync: OpDesc | None = None
    pre_mma_barrier: bool = True
    pre_mma_set_prio: bool = True
    post_mma_barrier: bool = True
    post_mma_set_prio: bool = True
    post_barrier_lgkm: bool = True
    post_barrier_sched: bool = False
    trailing_sched_barrier: bool = False
    drain_lgkm_before_loads: bool = False
    global_before_frag: bool = False
    barrier_before_pre_ops: bool = False
    wrap_waits_with_sched_barrier: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.mma, OpDesc):
            raise bad_field(self, "mma", self.mma, "an OpDesc")
        for name in ("pre_ops", "global_loads", "trailing_ops", "fused_mmas"):
            if not isinstance(getattr(self, name), tuple):
                raise bad_field(self, name, getattr(self, name), "a tuple of OpDesc")
        for name in ("entry_wait", "entry_wait_lgkm", "pre_sync"):
            if not isinstance(getattr(self, name), OpDesc | None):
                raise bad_field(self, name, getattr(self, name), "an OpDesc or None")

    def but(self, **changes: Any) -> MMABlockSpec:
        """This block with some fields changed."""
        return replace(self, **changes)

    @property
    def data_ops(self) -> tuple[OpDesc, ...]:
        """What the kernel author declared, without the template's synchronisation, in issue order."""
        first, second = self.pre_ops, self.global_loads
        if self.global_before_frag:
            first, second = second, first
        return WrappedTuple((*first, *second, self.mma, *self.fused_mmas, *self.trailing_ops))

    def expand(self) -> tuple[OpDesc, ...]:
        """The block's ops in issue order."""
        return WrappedTuple((*self._before_mma(), *self._from_mma()))

    def __repr__(self) -> str:
        data = shorten(", ".join(map(str, self.data_ops)), WIDTH - 40, placeholder=" ...")
        return f"<MMABlockSpec {data}; {several(len(self.expand()), 'entry')}>".replace("entrys", "entries")

    def __str__(self) -> str:
        sections = [("at entry", self.entry_section()), ("loads", self.load_section()), ("sync", self.sync_section())]
        if self.barrier_before_pre_ops:
            sections.reverse()
            sections.insert(0, sections.pop())
        sections.append(("compute", (*((_RAISE_PRIO,) if self.pre_mma_set_prio else ()), *self._from_mma())))
        lines = [f"block of {self.mma}"]
        for name, ops in sections:
            text = f"  {name:8s}  {', '.join(map(str, ops))}"
            lines += wrap(text, WIDTH, subsequent_indent=" " * 12) if ops else []
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head, _, rest = str(self).partition("\n")
        return card(head, text_lines(rest))

    def positions(self) -> BlockPositions:
        """Counted on the expansion itself, so that they hold for every combination of flags."""
        before = self._before_mma()
        drain = None
        if self.pre_mma_barrier and self.post_barrier_lgkm:
            sync = self.sync_section()
            start = len(self.entry_section()) + (0 if self.barrier_before_pre_ops else len(self.load_section()))
            drain = start + len(sync) - 1 - self.wrap_waits_with_sched_barrier
        return BlockPositions(entry_count=len(before) + len(self._from_mma()), mma=len(before), post_barrier_lgkm=drain)

    def entry_section(self) -> tuple[OpDesc, ...]:
        """What must be complete before the block starts: the entry waits, published by a barrier."""
        group = [op for op in (self.entry_wait, self.entry_wait_lgkm) if op is not None]
        if self.entry_wait is not None:
            rule = "the barrier publishes what the entry wait covers"
            group.append(OpDesc.barrier().made_by(rule, ops=self.entry_wait.body_ops))
        return self.fenced(group)

    def load_section(self) -> tuple[OpDesc, ...]:
        """Fragments and loads, with the optional drain between them."""
        drain = (_DRAIN_BEFORE_LOADS,) if self.drain_lgkm_before_loads else ()
        if self.global_before_frag:
            return (*self.global_loads, *drain, *self.pre_ops)
        return (*self.pre_ops, *drain, *self.global_loads)

    def sync_section(self) -> tuple[OpDesc, ...]:
        """What must be complete before the MMA."""
        group: list[OpDesc] = [self.pre_sync] if self.pre_sync is not None else []
        if self.pre_mma_barrier:
            group.append(_BARRIER_BEFORE)
            if self.post_barrier_sched:
                group.append(_FENCE_AFTER_BARRIER)
            if self.post_barrier_lgkm:
                group.append(_DRAIN_AFTER_BARRIER)
        return self.fenced(group)

    def fenced(self, group: Sequence[OpDesc]) -> tuple[OpDesc, ...]:
        """A non-empty group of waits and barriers between compiler fences, where asked for."""
        if group and self.wrap_waits_with_sched_barrier:
            return (_WRAP, *group, _WRAP)
        return tuple(group)

    def _before_mma(self) -> tuple[OpDesc, ...]:
        prio = (_RAISE_PRIO,) if self.pre_mma_set_prio else ()
        if self.barrier_before_pre_ops:
            return (*self.entry_section(), *self.sync_section(), *self.load_section(), *prio)
        return (*self.entry_section(), *self.load_section(), *self.sync_section(), *prio)

    def _from_mma(self) -> tuple[OpDesc, ...]:
        ops = [self.mma, *self.fused_mmas]
        if self.post_mma_set_prio:
            ops.append(_LOWER_PRIO)
        if self.post_mma_barrier:
            ops.append(_BARRIER_AFTER)
            if self.trailing_sched_barrier:
                ops.append(_TRAILING_FENCE)
        return (*ops, *self.trailing_ops)


def emit_minimal_barrier_block(
    block: MMABlockSpec, wrap_waits: bool, global_before_frag: bool = False
) -> tuple[OpDesc, ...]:
    """The block without priorities and without anything behind its MMA, fragments and loads fenced from each other."""
    shaped = expect("the block", block, MMABlockSpec).but(wrap_waits_with_sched_barrier=wrap_waits)
    fence = (_FENCE_BETWEEN,) if block.pre_ops and block.global_loads else ()
    first, second = block.pre_ops, block.global_loads
    if global_before_frag:
        first, second = second, first
    return (
        *shaped.entry_section(),
        *first,
        *fence,
        *second,
        *shaped.sync_section(),
        block.mma,
        *block.fused_mmas,
        *block.trailing_ops,
    )
