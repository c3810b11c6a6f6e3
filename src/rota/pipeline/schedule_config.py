"""The schedule's knobs: the reference's nineteen fields, each declared once with its type, default and help."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from rota.check import check_ints, check_types
from rota.order.acyclic.problem import UNLIMITED_VGPR, SchedulingStrategy
from rota.printing import Pasted

NO_FIRST_WAIT = 255
"""`wait_lgkm_first` with this value asks for no first wait."""

T = TypeVar("T")


def _knob(*, default: T, doc: str, bits: bool = False) -> T:
    """A field: its default, which is of its type, and what `help` says about it; a mask prints as `bits`."""
    return field(default=default, metadata={"doc": inspect.cleandoc(doc), "bits": bits})


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ScheduleConfig(Pasted):
    """Tunable parameters of schedule generation: order, waits, barriers, loads.

    By default wait counts are derived from the program (`auto_waits`); the manual values serve experiments.  A config
    prints as what differs from the defaults.  `help(ScheduleConfig.minimal_barriers)` explains a field, with an example
    in which `body` and `config` are those of a ping-pong GEMM, two partitions of four blocks:

    >>> gemm = DeclarativeSchedule()
    >>> body, config = gemm.build_body(), gemm.config()
    >>> ScheduleConfig(minimal_barriers=True).but(auto_drain=True)
    ScheduleConfig(auto_drain=True, minimal_barriers=True)
    """

    scheduling: SchedulingStrategy | str = _knob(
        default=SchedulingStrategy.IDENTITY,
        doc="""Which scheduler orders the body: a `SchedulingStrategy`, or the name of a registered one.

        `IDENTITY` keeps the order that the author declared, `GREEDY` always takes the lowest-index op that is ready,
        `CSP` searches for the least makespan in the cost model, with the partitions kept apart.

        >>> for order in (SchedulingStrategy.IDENTITY, SchedulingStrategy.GREEDY):
        ...     print(build_kernel_program(body, config, ScheduleConfig(scheduling=order)).blocks[1].global_loads)
        (<load_a s0 t0 k0>,)
        (<load_b s0 t0 k0>,)
        """,
    )
    sched_barrier_mask: int = _knob(
        default=0b01010101,
        doc="""Bit i puts a fence for the compiler's scheduler at the end of block i; by default at every other block.

        The fence is after the barrier that follows the block's MMA, so blocks without that barrier have none: the
        mask does nothing with `minimal_barriers`, nor where explicit blocks replace the template.

        >>> fenced = build_kernel_program(body, config, ScheduleConfig(sched_barrier_mask=0b0001))
        >>> [block.trailing_sched_barrier for block in fenced.partition_blocks(0)]
        [True, False, False, False]
        """,
        bits=True,
    )
    auto_waits: bool = _knob(
        default=True,
        doc="""Derive the two wait counts of a partition from its blocks.

        The first block's `wait_lgkm` leaves in flight what that block's loads cost on lgkmcnt, the last block's
        `wait_vm` what the partition's own loads cost on vmcnt.  Without it `wait_lgkm_first` and `wait_vm_last` are
        taken as they are.

        >>> for auto in (True, False):
        ...     blocks = build_kernel_program(body, config, ScheduleConfig(auto_waits=auto)).blocks
        ...     print(blocks[0].pre_sync, blocks[3].pre_sync)
        wait_lgkm(0) wait_vm(12)
        wait_lgkm(8) wait_vm(6)
        """,
    )
    drain_lgkm_mask: int = _knob(
        default=0,
        doc="""Bit i puts a `wait_lgkm(0)` between the fragments and the loads of block i.

        Its LDS reads are then over before its loads start to write.  A block that has only fragments or only loads
        ignores its bit, and `auto_drain` replaces the whole mask.

        >>> print(build_kernel_program(body, config, ScheduleConfig(drain_lgkm_mask=0b0001)).blocks[0])
        block of mma[0,0]
          loads     mma_load_b s0 t0, mma_load_a s0 t0, wait_lgkm(0), load_a s1 t1 k_prev
          sync      wait_lgkm(0), barrier, wait_lgkm(0)
          compute   set_prio(1), mma[0,0], set_prio(0), barrier, schedule_barrier
        """,
        bits=True,
    )
    auto_drain: bool = _knob(
        default=False,
        doc="""Derive `drain_lgkm_mask` from the channels.

        A block gets a drain if it reads a fragment of one operand and its first load fetches the other one: both queue
        on the LDS port.  It acts only together with `auto_waits`.

        >>> program = build_kernel_program(body, config, ScheduleConfig(auto_drain=True))
        >>> [block.drain_lgkm_before_loads for block in program.partition_blocks(0)]
        [True, True, True, False]
        """,
    )
    lds_contention_penalty: int = _knob(
        default=0,
        doc="""The least number of cycles between two ops on the LDS port, in the order search.

        Fragments and loads share that port.  Orders are judged with that distance between any two of them, so a large
        one favours orders that spread them; without a search it changes what an order costs, and no order:

        >>> graph = LoopBody(body, derive_edges_from_ops(body, config))
        >>> [greedy_schedule(graph, lds_contention_penalty=gap).makespan for gap in (0, 40)]
        [420, 800]
        """,
    )
    wait_lgkm_first: int = _knob(
        default=8,
        doc="""The count of `wait_lgkm` in a partition's first block, if `auto_waits` is off; 255 asks for none.

        So many lgkmcnt tokens may still be pending when the block's MMA starts: a count that is too large lets the MMA
        read fragments that haven't arrived, which the proof reports and repair corrects.

        >>> manual = ScheduleConfig(auto_waits=False, wait_lgkm_first=4)
        >>> print(build_kernel_program(body, config, manual).blocks[0].pre_sync)
        wait_lgkm(4)
        """,
    )
    wait_vm_last: int = _knob(
        default=6,
        doc="""The count of `wait_vm` in a partition's last block, if `auto_waits` is off.

        So many vmcnt tokens may still be pending when the partition ends; the next one reads what has landed by then.

        >>> manual = ScheduleConfig(auto_waits=False, wait_vm_last=2)
        >>> print(build_kernel_program(body, config, manual).blocks[3].pre_sync)
        wait_vm(2)
        """,
    )
    lgkm_per_load_a: int = _knob(
        default=0,
        doc="""lgkmcnt tokens of one load of A, where the pipeline config states none.

        `auto_waits` adds them up over a partition's first block: this much may stay in flight at its `wait_lgkm`.
        `PipelineConfig` has a field of the same name, which comes first.

        >>> print(build_kernel_program(body, config, ScheduleConfig(lgkm_per_load_a=8)).blocks[0].pre_sync)
        wait_lgkm(8)
        """,
    )
    lgkm_per_load_b: int = _knob(
        default=0,
        doc="""lgkmcnt tokens of one load of B, where the pipeline config states none; see `lgkm_per_load_a`.

        It changes nothing where no partition's first block holds a load of B, as in a ping-pong GEMM:

        >>> print(build_kernel_program(body, config, ScheduleConfig(lgkm_per_load_b=4)).blocks[0].pre_sync)
        wait_lgkm(0)
        """,
    )
    lgkm_after_last: bool = _knob(
        default=False,
        doc="""Drain lgkmcnt after the barrier of a partition's last block, as the other blocks do anyway.

        It does nothing with `minimal_barriers`, which leaves that barrier out.

        >>> print(build_kernel_program(body, config, ScheduleConfig(lgkm_after_last=True)).blocks[3])
        block of mma[1,1]
          loads     load_b s0 t1 k0
          sync      wait_vm(12), barrier, wait_lgkm(0)
          compute   set_prio(1), mma[1,1], set_prio(0), barrier
        """,
    )
    minimal_barriers: bool = _knob(
        default=False,
        doc="""No barriers and priorities around each MMA.

        What remains are the barriers that publish an entry wait: at a partition's top and at its first block that reads
        another stage.  Only a body with rotating fragments has entry waits; in any other body no barrier is left, and
        repair puts back what the proof needs.

        >>> rotating = Pipeline4Wave(KernelGeometry())
        >>> for schedule in (gemm, rotating):
        ...     knobs = ScheduleConfig(minimal_barriers=True)
        ...     program = build_kernel_program(schedule.build_body(), schedule.config(), knobs)
        ...     print(count_sync(program.expand_to_list()))
        SyncCounts(waits=4, barriers=0, fences=2)
        SyncCounts(waits=10, barriers=4, fences=4)
        """,
    )
    omit_mma_set_prio: bool = _knob(
        default=False,
        doc="""With `minimal_barriers`, drop the raised priority before a partition's first MMA, too.

        LLVM reuses no registers across `s_setprio`, so leaving it out may save some.

        >>> for omit in (False, True):
        ...     knobs = ScheduleConfig(minimal_barriers=True, omit_mma_set_prio=omit)
        ...     print(build_kernel_program(body, config, knobs).blocks[0].pre_mma_set_prio)
        True
        False
        """,
    )
    max_vgpr: int = _knob(
        default=UNLIMITED_VGPR,
        doc="""The most registers that an order may need at its peak, by the cost model.

        A search that finds no such order ends in O201.  Without a search nothing reads it.

        >>> build_kernel_program(body, config, ScheduleConfig(scheduling="CSP", max_vgpr=8))
        Traceback (most recent call last):
        ...
        rota.errors.OrderError: error[O201]: ...
        """,
    )
    global_before_frag: bool = _knob(
        default=False,
        doc="""A block's loads before its fragments, instead of after them.

        The addresses of the loads are computed while the LDS port is free.  Use it only where a block's loads don't
        overwrite what its fragments read; the proof reports the others.

        >>> print(build_kernel_program(body, config, ScheduleConfig(global_before_frag=True)).blocks[0])
        block of mma[0,0]
          loads     load_a s1 t1 k_prev, mma_load_b s0 t0, mma_load_a s0 t0
          sync      wait_lgkm(0), barrier, wait_lgkm(0)
          compute   set_prio(1), mma[0,0], set_prio(0), barrier, schedule_barrier
        """,
    )
    barrier_before_pre_ops: bool = _knob(
        default=False,
        doc="""A block's wait and barrier before its fragments and loads, instead of before its MMA.

        Then they order what follows them in the block, not the MMA's inputs.  The derived first wait becomes
        `wait_lgkm(0)`.

        >>> print(build_kernel_program(body, config, ScheduleConfig(barrier_before_pre_ops=True)).blocks[0])
        block of mma[0,0]
          sync      wait_lgkm(0), barrier, wait_lgkm(0)
          loads     mma_load_b s0 t0, mma_load_a s0 t0, load_a s1 t1 k_prev
          compute   set_prio(1), mma[0,0], set_prio(0), barrier, schedule_barrier
        """,
    )
    inter_block_lgkm_drain: bool = _knob(
        default=False,
        doc="""A `wait_lgkm(0)` at the entry of every inner block.

        The LDS reads of one MMA are then over before the next block begins.  A partition's first and last block, and
        the first that reads another stage, have waits of their own.

        >>> program = build_kernel_program(body, config, ScheduleConfig(inter_block_lgkm_drain=True))
        >>> [str(block.entry_wait_lgkm) for block in program.partition_blocks(0)]
        ['None', 'wait_lgkm(0)', 'wait_lgkm(0)', 'None']
        """,
    )
    partial_prologue_drain: bool = _knob(
        default=False,
        doc="""Keep the prologue's prefetches in flight: no `wait_vm(0)` and no barrier between its stages.

        Each of the schedule's `bootstrap_frags()` then waits for its own prefetch and no other.

        >>> for partial in (False, True):
        ...     knobs = ScheduleConfig(partial_prologue_drain=partial)
        ...     program = build_kernel_program(body, config, knobs)
        ...     print(count_sync(derive_prologue_from_program(program, config, knobs)))
        SyncCounts(waits=2, barriers=1, fences=0)
        SyncCounts(waits=0, barriers=0, fences=0)
        """,
    )
    wrap_waits_with_sched_barrier: bool = _knob(
        default=False,
        doc="""A fence for the compiler's scheduler on both sides of every group of waits and barriers.

        LLVM then leaves the group where it is.

        >>> print(build_kernel_program(body, config, ScheduleConfig(wrap_waits_with_sched_barrier=True)).blocks[1])
        block of mma[0,1]
          loads     mma_load_b s0 t1, load_a s0 t0 k0
          sync      schedule_barrier, barrier, wait_lgkm(0), schedule_barrier
          compute   set_prio(1), mma[0,1], set_prio(0), barrier
        """,
    )

    def __post_init__(self) -> None:
        kinds = {each.name: type(each.default) for each in fields(self)}
        check_types(self, {"scheduling": str} | {name: bool for name, kind in kinds.items() if kind is bool})
        check_ints(self, [name for name, kind in kinds.items() if kind is int])

    if TYPE_CHECKING:
        from_strategies: ClassVar[type[ScheduleConfig]]  # the constructor's own keywords
    else:

        @classmethod
        def from_strategies(cls, **knobs: object) -> ScheduleConfig:
            """The same config with its fields grouped by phase: spread the strategies of `pipeline.strategies` into it.

            >>> ScheduleConfig.from_strategies(**BarrierStrategy.minimal_no_set_prio(), **WaitStrategy.default())
            ScheduleConfig(minimal_barriers=True, omit_mma_set_prio=True)
            """
            return cls(**knobs)

    def but(self, **changes: Any) -> ScheduleConfig:
        """This config with some fields changed."""
        return replace(self, **changes)


def _document() -> None:
    """Give every field its documentation where `help` looks for it, and `from_strategies` the fields as keywords."""
    slots = {each.name: each.metadata["doc"] for each in fields(ScheduleConfig)}
    ScheduleConfig.__slots__ = slots  # type: ignore[assignment]  # help() reads the values of a dict
    summary = "\n".join(f"    * `{name}`: {doc.splitlines()[0]}" for name, doc in slots.items())
    ScheduleConfig.__doc__ = f"{ScheduleConfig.__doc__}\n{summary}\n    "
    made = ScheduleConfig.from_strategies.__func__  # type: ignore[attr-defined]  # a class method
    made.__signature__ = inspect.signature(ScheduleConfig.__init__)


_document()


# Named groups of knobs.
#
# `ScheduleConfig.from_strategies(**BarrierStrategy.minimal_no_set_prio(), **WaitStrategy.default())`


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class _Spreadable(Pasted):
    """A dataclass that `**` can spread: keys are its fields."""

    def keys(self) -> tuple[str, ...]:
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
    """How loads are in a block, and what they cost on lgkmcnt."""

    global_before_frag: bool = False
    lgkm_per_load_a: int = 0
    lgkm_per_load_b: int = 0

    @classmethod
    def default(cls) -> LoadStrategy:
        """Fragments before loads."""
        return cls()
