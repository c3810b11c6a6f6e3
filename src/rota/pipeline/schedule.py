"""What a kernel author writes: takes a config and a body, gives every step its input, with defaults for the rest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from rota.order.acyclic.edge import DepEdge
from rota.pipeline.config import PipelineConfig
from rota.pipeline.edges import derive_edges_from_ops
from rota.pipeline.op import OpDesc
from rota.pipeline.pipeline_program import PipelineProgram
from rota.pipeline.schedule_config import ScheduleConfig
from rota.pipeline.schedule_entry import ScheduleEntry
from rota.program.machine import Machine
from rota.targets.default import DEFAULT


class PipelineSchedule(ABC):
    """A pipelined loop: `config` and `build_body` are required, the other methods are hooks with defaults."""

    @abstractmethod
    def config(self) -> PipelineConfig:
        """Depth, MMA grid, partitions."""

    @abstractmethod
    def build_body(self) -> Sequence[OpDesc]:
        """The data ops of one loop iteration, costs attached, in the order in which they are to be issued."""

    def machine(self) -> Machine:
        """The machine that the schedule is for; by default MI355X."""
        return DEFAULT

    def lds_bytes(self) -> int | None:
        """Bytes of LDS that the stages take, if the schedule knows its geometry; by default not stated."""
        return None

    def derive_edges(self, body: Sequence[OpDesc]) -> Sequence[DepEdge]:
        """Dependencies of the body; by default inferred from roles and config."""
        return derive_edges_from_ops(body, self.config())

    def schedule_config(self) -> ScheduleConfig:
        """Knobs for ordering and waits; by default the defaults."""
        return ScheduleConfig()

    def transform_kernel(self, ker: Sequence[ScheduleEntry], body: Sequence[OpDesc]) -> Sequence[ScheduleEntry]:
        """Post-process the kernel's entries, for example append compiler hints; by default unchanged."""
        return ker

    def build_explicit_blocks(self, body: Sequence[OpDesc], program: PipelineProgram) -> Sequence[Sequence[OpDesc]]:
        """One op list per block, to be issued verbatim; an empty list leaves a block to the template."""
        return ()

    def bootstrap_frags(self) -> Sequence[OpDesc]:
        """Fragments to read at the end of the prologue, the i-th after the i-th prefetch has landed."""
        return ()
