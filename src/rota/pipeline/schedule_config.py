"""The schedule's knobs: takes the reference's nineteen fields, gives a frozen `ScheduleConfig`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from rota.check import check_ints, check_types
from rota.order.acyclic.problem import UNLIMITED_VGPR, SchedulingStrategy

NO_FIRST_WAIT = 255
"""`wait_lgkm_first` with this value asks for no first wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleConfig:
    """Tunable parameters of schedule generation: order, barriers, waits, loads.

    By default wait counts are derived from the program (`auto_waits`); the manual values serve experiments.

    * `scheduling`: which scheduler orders the body (a `SchedulingStrategy`, or the name of a registered one).
    * `sched_barrier_mask`: bit i gives block i a trailing schedule barrier.
    * `auto_waits`: derive wait counts from the blocks.
    * `drain_lgkm_mask`: bit i drains lgkmcnt between block i's fragments and its loads.
    * `auto_drain`: derive that mask from the channels (acts with `auto_waits`).
    * `lds_contention_penalty`: least distance between two ops on the LDS port, in the order search.
    * `wait_lgkm_first`, `wait_vm_last`: manual waits of a partition's first and last block.
    * `lgkm_per_load_a`, `lgkm_per_load_b`: lgkmcnt tokens per load, where the pipeline config has none.
    * `lgkm_after_last`: drain lgkmcnt behind the last block's barrier.
    * `minimal_barriers`: barriers only at a partition's top and at its first cross-stage block.
    * `omit_mma_set_prio`: with minimal barriers, no raised priority around MMAs either.
    * `max_vgpr`: register budget of the order search.
    * `global_before_frag`: a block's loads before its fragments.
    * `barrier_before_pre_ops`: a block's waits and barrier before its fragments and loads.
    * `inter_block_lgkm_drain`: drain lgkmcnt at the entry of inner blocks.
    * `partial_prologue_drain`: keep the prologue's prefetches in flight; drain only for bootstrap fragments.
    * `wrap_waits_with_sched_barrier`: fence each group of waits and barriers for the compiler's scheduler.
    """

    scheduling: SchedulingStrategy | str = SchedulingStrategy.IDENTITY
    sched_barrier_mask: int = 0b01010101
    auto_waits: bool = True
    drain_lgkm_mask: int = 0
    auto_drain: bool = False
    lds_contention_penalty: int = 0
    wait_lgkm_first: int = 8
    wait_vm_last: int = 6
    lgkm_per_load_a: int = 0
    lgkm_per_load_b: int = 0
    lgkm_after_last: bool = False
    minimal_barriers: bool = False
    omit_mma_set_prio: bool = False
    max_vgpr: int = UNLIMITED_VGPR
    global_before_frag: bool = False
    barrier_before_pre_ops: bool = False
    inter_block_lgkm_drain: bool = False
    partial_prologue_drain: bool = False
    wrap_waits_with_sched_barrier: bool = False

    def __post_init__(self) -> None:
        check_types(
            self,
            {
                "scheduling": str,
                "auto_waits": bool,
                "auto_drain": bool,
                "lgkm_after_last": bool,
                "minimal_barriers": bool,
                "omit_mma_set_prio": bool,
                "global_before_frag": bool,
                "barrier_before_pre_ops": bool,
                "inter_block_lgkm_drain": bool,
                "partial_prologue_drain": bool,
                "wrap_waits_with_sched_barrier": bool,
            },
        )
        check_ints(
            self,
            (
                "sched_barrier_mask",
                "drain_lgkm_mask",
                "lds_contention_penalty",
                "wait_lgkm_first",
                "wait_vm_last",
                "lgkm_per_load_a",
                "lgkm_per_load_b",
                "max_vgpr",
            ),
        )

    @classmethod
    def from_strategies(
        cls,
        *,
        scheduling: SchedulingStrategy | str = SchedulingStrategy.IDENTITY,
        max_vgpr: int = UNLIMITED_VGPR,
        lds_contention_penalty: int = 0,
        minimal_barriers: bool = False,
        omit_mma_set_prio: bool = False,
        sched_barrier_mask: int = 0b01010101,
        wrap_waits_with_sched_barrier: bool = False,
        barrier_before_pre_ops: bool = False,
        auto_waits: bool = True,
        drain_lgkm_mask: int = 0,
        auto_drain: bool = False,
        wait_lgkm_first: int = 8,
        wait_vm_last: int = 6,
        lgkm_after_last: bool = False,
        inter_block_lgkm_drain: bool = False,
        partial_prologue_drain: bool = False,
        global_before_frag: bool = False,
        lgkm_per_load_a: int = 0,
        lgkm_per_load_b: int = 0,
    ) -> ScheduleConfig:
        """The same config with its fields grouped by phase: spread the strategies of `pipeline.strategies` into it."""
        return cls(
            scheduling=scheduling,
            max_vgpr=max_vgpr,
            lds_contention_penalty=lds_contention_penalty,
            minimal_barriers=minimal_barriers,
            omit_mma_set_prio=omit_mma_set_prio,
            sched_barrier_mask=sched_barrier_mask,
            wrap_waits_with_sched_barrier=wrap_waits_with_sched_barrier,
            barrier_before_pre_ops=barrier_before_pre_ops,
            auto_waits=auto_waits,
            drain_lgkm_mask=drain_lgkm_mask,
            auto_drain=auto_drain,
            wait_lgkm_first=wait_lgkm_first,
            wait_vm_last=wait_vm_last,
            lgkm_after_last=lgkm_after_last,
            inter_block_lgkm_drain=inter_block_lgkm_drain,
            partial_prologue_drain=partial_prologue_drain,
            global_before_frag=global_before_frag,
            lgkm_per_load_a=lgkm_per_load_a,
            lgkm_per_load_b=lgkm_per_load_b,
        )

    def but(self, **changes: Any) -> ScheduleConfig:
        """This config with some fields changed."""
        return replace(self, **changes)
