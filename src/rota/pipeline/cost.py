"""Costs per op tag, and the target profile that a kernel author picks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rota.check import check_elements, check_ints, check_types, expect, is_int
from rota.errors import DeclarationError
from rota.pipeline.config import PipelineConfig
from rota.pipeline.op import MAX_KERNEL_TAG, OpDesc
from rota.printing import Pasted, WrappedTuple
from rota.program.kinds import OpRole, ResourceKind
from rota.program.machine import Machine
from rota.targets.devices import DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OpCost(Pasted):
    """What an op of some tag occupies, for how long, and which registers it defines and frees."""

    resource: ResourceKind
    latency: int
    role: OpRole
    vgpr_def: int = 0
    vgpr_kill: int = 0

    def __post_init__(self) -> None:
        check_types(self, {"resource": ResourceKind, "role": OpRole})
        check_ints(self, ("latency", "vgpr_def", "vgpr_kill"))


@dataclass(frozen=True, slots=True, repr=False)
class TargetCostModel(Pasted):
    """tag -> OpCost, kept as sorted pairs so that the model is a hashable value."""

    costs: tuple[tuple[int, OpCost], ...]

    def __init__(self, costs: Mapping[int, OpCost]) -> None:
        if not isinstance(costs, Mapping):
            raise DeclarationError.of(
                "D104",
                f"a cost model maps tags to OpCost, got {type(costs).__name__}",
                evidence=(("got", type(costs).__name__), ("expected", "a mapping")),
            )
        for tag in costs:
            if not is_int(tag) or not 0 <= tag <= MAX_KERNEL_TAG:
                raise DeclarationError.of(
                    "D101",
                    f"cost model tag {tag!r} is outside 0..{MAX_KERNEL_TAG}",
                    evidence=(("got", repr(tag)), ("largest kernel tag", MAX_KERNEL_TAG)),
                )
        check_elements("a cost model", costs.values(), OpCost)
        object.__setattr__(self, "costs", tuple(sorted(costs.items(), key=lambda pair: pair[0])))

    def __rich_repr__(self) -> Iterable[object]:
        """The table that it was made from."""
        return (dict(self.costs),)

    def cost_of(self, tag: int) -> OpCost | None:
        """The cost of ops with this tag, or None."""
        return next((cost for known, cost in self.costs if known == tag), None)

    def with_cost(self, tag: int, **changes: Any) -> TargetCostModel:
        """This model with some fields of one tag's cost changed."""
        table = dict(self.costs)
        if tag not in table:
            raise _no_cost(f"tag {tag}", tag, self)
        return TargetCostModel({**table, tag: replace(table[tag], **changes)})


def annotate_ops(ops: Iterable[OpDesc], model: TargetCostModel) -> tuple[OpDesc, ...]:
    """Stamp costs on logical ops; rota's own ops pass through unchanged."""
    table = dict(expect("the cost model", model, TargetCostModel).costs)
    return WrappedTuple(
        op if op.is_framework else _annotate(op, table, model) for op in check_elements("a body", ops, OpDesc)
    )


def _annotate(op: OpDesc, table: Mapping[int, OpCost], model: TargetCostModel) -> OpDesc:
    cost = table.get(op.tag)
    if cost is None:
        error = _no_cost(str(op), op.tag, model)
        raise DeclarationError(replace(error.findings[0], concerns=(op.concern(),)))
    return replace(
        op,
        resource=cost.resource,
        latency=cost.latency,
        role=cost.role,
        vgpr_def=cost.vgpr_def,
        vgpr_kill=cost.vgpr_kill,
    )


def _no_cost(label: str, tag: int, model: TargetCostModel) -> DeclarationError:
    known = ", ".join(str(getattr(t, "name", t)) for t, _ in model.costs)
    return DeclarationError.of(
        "D103",
        f"the cost model has no entry for {label} (tag {int(tag) if is_int(tag) else tag!r})",
        evidence=(("known tags", known or "none"),),
        fixes=("add the tag to the target's cost model: TargetCostModel({tag: OpCost(...), ...})",),
    )


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
