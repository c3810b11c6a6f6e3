"""One MMA with what surrounds it: takes ops, waits and flags, gives the block's entries by a fixed template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from rota.check import bad_field, expect
from rota.pipeline.op import OpDesc

_BARRIER = OpDesc.barrier()
_FENCE = OpDesc.schedule_barrier()
_DRAIN_LGKM = OpDesc.wait_lgkm(0)
_RAISE_PRIO = OpDesc.set_prio(1)
_LOWER_PRIO = OpDesc.set_prio(0)


class BlockPositions(NamedTuple):
    """Positions inside an expanded block; None where the block has no such entry."""

    entry_count: int
    mma: int
    post_barrier_lgkm: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
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
            if type(getattr(self, name)) is not tuple:
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
        return (*first, *second, self.mma, *self.fused_mmas, *self.trailing_ops)

    def expand(self) -> tuple[OpDesc, ...]:
        """The block's ops in issue order."""
        return (*self._before_mma(), *self._from_mma())

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
            group.append(_BARRIER)
        return self.fenced(group)

    def load_section(self) -> tuple[OpDesc, ...]:
        """Fragments and loads, with the optional drain between them."""
        drain = (_DRAIN_LGKM,) if self.drain_lgkm_before_loads else ()
        if self.global_before_frag:
            return (*self.global_loads, *drain, *self.pre_ops)
        return (*self.pre_ops, *drain, *self.global_loads)

    def sync_section(self) -> tuple[OpDesc, ...]:
        """What must be complete before the MMA."""
        group: list[OpDesc] = [self.pre_sync] if self.pre_sync is not None else []
        if self.pre_mma_barrier:
            group.append(_BARRIER)
            if self.post_barrier_sched:
                group.append(_FENCE)
            if self.post_barrier_lgkm:
                group.append(_DRAIN_LGKM)
        return self.fenced(group)

    def fenced(self, group: Sequence[OpDesc]) -> tuple[OpDesc, ...]:
        """A non-empty group of waits and barriers between compiler fences, where asked for."""
        if group and self.wrap_waits_with_sched_barrier:
            return (_FENCE, *group, _FENCE)
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
            ops.append(_BARRIER)
            if self.trailing_sched_barrier:
                ops.append(_FENCE)
        return (*ops, *self.trailing_ops)


def emit_minimal_barrier_block(
    block: MMABlockSpec, wrap_waits: bool, global_before_frag: bool = False
) -> tuple[OpDesc, ...]:
    """The block without priorities and without anything behind its MMA, fragments and loads fenced from each other."""
    shaped = expect("the block", block, MMABlockSpec).but(wrap_waits_with_sched_barrier=wrap_waits)
    fence = (_FENCE,) if block.pre_ops and block.global_loads else ()
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
