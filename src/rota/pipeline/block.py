"""Blocks: one MMA with the fragment reads, loads, waits and barriers around it, by a fixed template."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from textwrap import shorten, wrap
from typing import Any, NamedTuple

from rota.check import bad_field, check_elements, check_types, expect
from rota.errors import several
from rota.markup import boxes, card, lines as text_lines
from rota.pipeline.config import PipelineConfig
from rota.pipeline.op import OpDesc, ScheduleEntry
from rota.pipeline.schedule_config import ScheduleConfig
from rota.printing import WIDTH, WrappedTuple
from rota.program.kinds import OpRole, Phase
from rota.program.lowered import count_text, entry_lines

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

    `pre_ops` and `global_loads` hold any number of ops; `trailing_ops` are those that the author placed after the
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
    """The block without priorities and without anything after its MMA, fragments and loads fenced from each other."""
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


class DerivedWaits(NamedTuple):
    """The lgkm wait of a partition's first block and the vm wait of its last."""

    lgkm: int
    vm: int


def derive_main_wait_vm(ordered: Iterable[OpDesc], config: PipelineConfig) -> int:
    """How many tokens an entry wait leaves in flight: all prefetches but one partition's share."""
    total = sum(config.vm_tokens(op) for op in ordered if op.is_prefetch_load)
    return total - total // config.num_partitions


def derive_waits_from_blocks(
    blocks: Sequence[MMABlockSpec], config: PipelineConfig, sched: ScheduleConfig
) -> DerivedWaits:
    """The waits of a partition's first and last block, equal for all partitions.

    First-block lgkm: the most that the loads of a partition's first block cost.  Last-block vm: the least, over the
    partitions, that is left of a partition's loads without those that complete another partition's stage.
    Counting loads without looking at their order is the reference's rule, reproduced for `as_written`.
    """
    check_elements("the blocks", blocks, MMABlockSpec)
    expect("the schedule config", sched, ScheduleConfig)
    size = expect("the pipeline config", config, PipelineConfig).blocks_per_partition
    lgkm: list[int] = []
    vm: list[int] = []
    for partition in range(config.num_partitions):
        part = blocks[partition * size : (partition + 1) * size]
        own = config.stage_of_partition(partition)
        lgkm.append(sum(lgkm_cost(op, config, sched) for op in part[0].global_loads))
        vm.append(sum(config.vm_tokens(op) for b in part for op in b.global_loads if op.stage == own))
    return DerivedWaits(lgkm=max(lgkm), vm=min(vm))


def derive_drain_mask(blocks: Sequence[MMABlockSpec]) -> int:
    """Bit i: block i has a fragment on a channel other than its first load's, so both queue on the LDS port."""
    return sum(
        1 << index
        for index, block in enumerate(check_elements("the blocks", blocks, MMABlockSpec))
        if block.global_loads
        and any(op.role is OpRole.FRAGMENT_LOAD and op.channel != block.global_loads[0].channel for op in block.pre_ops)
    )


def patch_waits(
    blocks: Sequence[MMABlockSpec], waits: DerivedWaits, config: PipelineConfig, sched: ScheduleConfig
) -> tuple[MMABlockSpec, ...]:
    """Put the derived waits into every partition's first and last block."""
    size = config.blocks_per_partition
    lgkm = OpDesc.wait_lgkm(0 if sched.barrier_before_pre_ops else waits.lgkm)
    vm = OpDesc.wait_vm(waits.vm).made_by(
        "a partition's last block leaves its own prefetches in flight", knobs=("auto_waits", "wait_vm_last")
    )
    knobs = ("auto_waits", "wait_lgkm_first", *drains_otherwise(sched))
    patched = list(blocks)
    for partition in range(config.num_partitions):
        first, last = partition * size, (partition + 1) * size - 1
        entry = patched[first].entry_wait
        if sched.minimal_barriers and entry is not None:
            rule = "LDS reads are over before the entry wait's barrier, but for as many as the block's loads cost"
            wait = lgkm.made_by(rule, ops=entry.body_ops, knobs=knobs)
            patched[first] = patched[first].but(entry_wait_lgkm=wait, pre_sync=None)
        else:
            rule = "a partition's first block waits for its fragments"
            readers = entry.body_ops if entry else ()
            patched[first] = patched[first].but(pre_sync=lgkm.made_by(rule, ops=readers, knobs=knobs))
        patched[last] = patched[last].but(pre_sync=vm)
    return tuple(patched)


def drains_otherwise(sched: ScheduleConfig) -> tuple[str, ...]:
    """The knob that drains lgkmcnt at the entry of a block that has no other wait."""
    return ("inter_block_lgkm_drain",) if sched.inter_block_lgkm_drain else ()


def lgkm_cost(op: OpDesc, config: PipelineConfig, sched: ScheduleConfig) -> int:
    """lgkmcnt tokens of one load: its own count, else the pipeline config's, else the schedule config's."""
    return config.lgkm_tokens(op, sched.lgkm_per_load_a, sched.lgkm_per_load_b)


class BlockPlace(NamedTuple):
    """A block's first entry and its MMA entry in the kernel."""

    first: int
    mma: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PipelineProgram:
    """One block per MMA in partition order; `explicit_blocks[i]`, when not empty, replaces block i's template."""

    blocks: tuple[MMABlockSpec, ...]
    config: PipelineConfig
    explicit_blocks: tuple[tuple[OpDesc, ...], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "blocks", check_elements("PipelineProgram.blocks", self.blocks, MMABlockSpec))
        check_types(self, {"config": PipelineConfig})

    @property
    def blocks_per_partition(self) -> int:
        """Blocks that one K-tile takes."""
        return self.config.blocks_per_partition

    def partition_of_block(self, index: int) -> int:
        """The K-tile a block belongs to."""
        return index // self.blocks_per_partition

    def partition_blocks(self, partition: int) -> tuple[MMABlockSpec, ...]:
        """The blocks of one K-tile."""
        size = self.blocks_per_partition
        return self.blocks[partition * size : (partition + 1) * size]

    def block_ops(self, index: int) -> tuple[OpDesc, ...]:
        """The ops block `index` issues."""
        return self._explicit(index) or self.blocks[index].expand()

    def block_places(self) -> tuple[BlockPlace, ...]:
        """Where each block starts and where its MMA is in the expanded kernel."""
        places: list[BlockPlace] = []
        start = 0
        for index, block in enumerate(self.blocks):
            ops = self.block_ops(index)
            explicit = bool(self._explicit(index))
            mma = ops.index(block.mma) if explicit and block.mma in ops else block.positions().mma
            places.append(BlockPlace(start, start + mma))
            start += len(ops)
        return tuple(places)

    @property
    def total_entries(self) -> int:
        """Length of the expanded kernel."""
        return sum(len(self.block_ops(index)) for index in range(len(self.blocks)))

    def expand_to_list(self) -> tuple[ScheduleEntry, ...]:
        """The kernel's entries. What an explicit block lists is never marked as a prefetch."""
        entries: list[ScheduleEntry] = []
        for index in range(len(self.blocks)):
            template = not self._explicit(index)
            for op in self.block_ops(index):
                entries.append(
                    ScheduleEntry(
                        op=op, time_slot=len(entries), phase=Phase.KERNEL, is_prefetch=template and op.is_prefetch_load
                    )
                )
        return WrappedTuple(entries)

    def listing(self) -> str:
        """The kernel, partition by partition and block by block, one entry a line.

        >>> program = compile_schedule(Pipeline4Wave(KernelGeometry())).program
        >>> print(*program.listing().splitlines()[:6], sep=chr(10))
        PipelineProgram: 48 entries, 12 waits, 4 barriers, 8 fences
        partition 0, stage 0
          block 0, mma[0,0], explicit
             0      wait_vm(16)
             1      wait_lgkm(8)
             2      barrier
        """
        lines = [f"PipelineProgram: {count_text(self.expand_to_list())}"]
        for partition, blocks in self._partitions():
            lines.append(partition)
            for name, entries in blocks:
                lines += [f"  {name}", *entry_lines(entries)]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.listing()

    def __repr__(self) -> str:
        counts = f"{several(len(self.blocks), 'block')} in {several(self.config.num_partitions, 'partition')}"
        return f"<PipelineProgram {counts}, {self.total_entries} entries>"

    def _repr_html_(self) -> str:
        rows = [
            (
                name,
                [
                    (head, [(f"{entry.time_slot} {entry.op}", not entry.op.kind.synchronises) for entry in entries])
                    for head, entries in blocks
                ],
            )
            for name, blocks in self._partitions()
        ]
        return card(repr(self).strip("<>"), boxes(rows))

    def _partitions(self) -> Iterator[tuple[str, list[tuple[str, tuple[ScheduleEntry, ...]]]]]:
        """The name of each partition, and its blocks with their names and entries."""
        entries, start, size = self.expand_to_list(), 0, self.blocks_per_partition
        named: list[tuple[str, tuple[ScheduleEntry, ...]]] = []
        for index, block in enumerate(self.blocks):
            stop = start + len(self.block_ops(index))
            author = ", explicit" if self._explicit(index) else ""
            named.append((f"block {index}, {block.mma}{author}", entries[start:stop]))
            start = stop
        for partition in range(0, len(named), size):
            number = partition // size
            stage = self.config.stage_of_partition(number)
            yield f"partition {number}, stage {stage}", named[partition : partition + size]

    def with_explicit_blocks(self, explicit_blocks: tuple[tuple[OpDesc, ...], ...]) -> PipelineProgram:
        """This program with the author's own block listings."""
        return replace(self, explicit_blocks=explicit_blocks)

    def _explicit(self, index: int) -> tuple[OpDesc, ...]:
        return self.explicit_blocks[index] if index < len(self.explicit_blocks) else ()
