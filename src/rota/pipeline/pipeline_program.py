"""The finalized kernel program: takes blocks, gives their entries and where each block stands among them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from rota.check import check_elements, check_types
from rota.pipeline.block import MMABlockSpec
from rota.pipeline.config import PipelineConfig
from rota.pipeline.op import OpDesc
from rota.pipeline.schedule_entry import ScheduleEntry
from rota.program.phase import Phase


class BlockPlace(NamedTuple):
    """A block's first entry and its MMA entry in the kernel."""

    first: int
    mma: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineProgram:
    """One block per MMA in partition order; `explicit_blocks[i]`, when not empty, replaces block i's template."""

    blocks: tuple[MMABlockSpec, ...]
    config: PipelineConfig
    explicit_blocks: tuple[tuple[OpDesc, ...], ...] = ()

    def __post_init__(self) -> None:
        check_elements("PipelineProgram.blocks", self.blocks, MMABlockSpec)
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
        return tuple(entries)

    def with_explicit_blocks(self, explicit_blocks: tuple[tuple[OpDesc, ...], ...]) -> PipelineProgram:
        """This program with the author's own block listings."""
        return replace(self, explicit_blocks=explicit_blocks)

    def _explicit(self, index: int) -> tuple[OpDesc, ...]:
        return self.explicit_blocks[index] if index < len(self.explicit_blocks) else ()
