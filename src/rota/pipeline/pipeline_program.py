"""The finalized kernel program: takes blocks, gives their entries and where each block stands among them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from rota.check import check_elements, check_types
from rota.errors import several
from rota.markup import boxes, card
from rota.pipeline.block import MMABlockSpec
from rota.pipeline.config import PipelineConfig
from rota.pipeline.op import OpDesc
from rota.pipeline.schedule_entry import ScheduleEntry
from rota.printing import WrappedTuple
from rota.program.listing import count_text, entry_lines
from rota.program.phase import Phase


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
        """Where each block starts and where its MMA stands in the expanded kernel."""
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
                        op=op,
                        time_slot=len(entries),
                        phase=Phase.KERNEL,
                        is_prefetch=template and op.is_prefetch_load,
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
