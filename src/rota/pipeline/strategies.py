"""Named groups of knobs: takes the few choices that matter, gives values that spread into a `ScheduleConfig`.

`ScheduleConfig.from_strategies(**BarrierStrategy.minimal_no_set_prio(), **WaitStrategy.default())`
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from rota.printing import Pasted


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class _Spreadable(Pasted):
    """A dataclass that `**` can spread: keys are its fields."""

    def keys(self) -> tuple[str, ...]:
        """Field names."""
        return tuple(field.name for field in fields(self))

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401  # a spread field may be a flag or a number
        return getattr(self, name)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BarrierStrategy(_Spreadable):
    """Where barriers, priorities and compiler fences stand."""

    minimal_barriers: bool = False
    omit_mma_set_prio: bool = False
    sched_barrier_mask: int = 0b01010101
    wrap_waits_with_sched_barrier: bool = False
    barrier_before_pre_ops: bool = False

    @classmethod
    def default(cls) -> BarrierStrategy:
        """A barrier and a priority pair around every MMA."""
        return cls()

    @classmethod
    def minimal_no_set_prio(
        cls,
        *,
        sched_barrier_mask: int = 0b01010101,
        wrap_waits_with_sched_barrier: bool = False,
        barrier_before_pre_ops: bool = False,
    ) -> BarrierStrategy:
        """Barriers only where stages change hands, no priorities."""
        return cls(
            minimal_barriers=True,
            omit_mma_set_prio=True,
            sched_barrier_mask=sched_barrier_mask,
            wrap_waits_with_sched_barrier=wrap_waits_with_sched_barrier,
            barrier_before_pre_ops=barrier_before_pre_ops,
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class WaitStrategy(_Spreadable):
    """How wait counts come about."""

    auto_waits: bool = True
    drain_lgkm_mask: int = 0
    auto_drain: bool = False
    wait_lgkm_first: int = 8
    wait_vm_last: int = 6
    lgkm_after_last: bool = False
    inter_block_lgkm_drain: bool = False
    partial_prologue_drain: bool = False

    @classmethod
    def default(cls) -> WaitStrategy:
        """Derived from the program."""
        return cls()

    @classmethod
    def auto_with_inter_block_drain(cls, *, partial_prologue_drain: bool = False) -> WaitStrategy:
        """Derived, with lgkmcnt drained at the entry of inner blocks."""
        return cls(inter_block_lgkm_drain=True, partial_prologue_drain=partial_prologue_drain)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LoadStrategy(_Spreadable):
    """How loads stand in a block, and what they cost on lgkmcnt."""

    global_before_frag: bool = False
    lgkm_per_load_a: int = 0
    lgkm_per_load_b: int = 0

    @classmethod
    def default(cls) -> LoadStrategy:
        """Fragments before loads."""
        return cls()
