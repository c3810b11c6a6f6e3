"""A target as a kernel author picks it: takes a cost model and a pipeline shape, gives a frozen `TargetProfile`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from rota.check import check_types
from rota.pipeline.config import PipelineConfig
from rota.pipeline.cost import TargetCostModel
from rota.printing import Pasted
from rota.program.machine import Machine
from rota.targets.default import DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TargetProfile(Pasted):
    """Costs per op, the pipeline configuration that suits the device, and the machine itself."""

    cost_model: TargetCostModel
    pipeline: PipelineConfig
    name: str = "custom"
    machine: Machine = DEFAULT

    def __post_init__(self) -> None:
        check_types(self, {"cost_model": TargetCostModel, "pipeline": PipelineConfig, "name": str, "machine": Machine})

    def with_pipeline(self, **changes: Any) -> TargetProfile:
        """This target with some pipeline fields changed."""
        return replace(self, pipeline=self.pipeline.but(**changes))
