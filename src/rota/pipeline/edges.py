"""Edge derivation: takes a body and its pipeline config, gives the default dependency edges."""

from __future__ import annotations

from collections.abc import Iterable

from rota.check import check_elements, expect
from rota.order.acyclic.edge import DepEdge
from rota.pipeline.config import PipelineConfig
from rota.pipeline.op import OpDesc
from rota.pipeline.rules import DOUBLE_BUFFER_RULES, SINGLE_BUFFER_RULES, evaluate_rules
from rota.printing import WrappedTuple


def derive_edges_from_ops(body: Iterable[OpDesc], config: PipelineConfig) -> tuple[DepEdge, ...]:
    """The rule table that fits the config's depth, evaluated on the body."""
    ops = check_elements("a body", body, OpDesc)
    expect("the pipeline config", config, PipelineConfig)
    rules = DOUBLE_BUFFER_RULES if config.depth >= 2 else SINGLE_BUFFER_RULES
    return WrappedTuple(evaluate_rules(rules, ops, config))
