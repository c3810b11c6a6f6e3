"""A target as a kernel author picks it: takes a cost model and a pipeline shape, gives a frozen `TargetProfile`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from rota.declare.check import check_types
from rota.declare.config import PipelineConfig
from rota.targets.cost import TargetCostModel
from rota.targets.machine import GFX950, Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetProfile:
    """Costs per op, the pipeline configuration that suits the device, and the machine itself."""

    cost_model: TargetCostModel
    pipeline: PipelineConfig
    name: str = "custom"
    machine: Machine = GFX950

    def __post_init__(self) -> None:
        check_types(self, {"cost_model": TargetCostModel, "pipeline": PipelineConfig, "name": str, "machine": Machine})

    def with_pipeline(self, **changes: Any) -> TargetProfile:
        """This target with some pipeline fields changed."""
        return replace(self, pipeline=self.pipeline.but(**changes))
