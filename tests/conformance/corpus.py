"""The reference's measured behaviour: takes the compressed corpus, gives cases, ops as rows, inputs as schedules.

An op is compared as a row of thirteen columns, in the corpus' own order and spelling.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from rota.kernels.four_wave import Pipeline4Wave
from rota.kernels.ping_pong import DeclarativeSchedule, mi355x_target
from rota.order.acyclic.problem import DepEdge, DepKind
from rota.pipeline.body import double_buffer_reorder
from rota.pipeline.compiler import PipelineSchedule
from rota.pipeline.config import BlockSizing, FragOrder, PipelineConfig, TargetProfile, WarpStaggerRule, annotate_ops
from rota.pipeline.geometry import KernelGeometry
from rota.pipeline.op import DoubleBufferTag, FrameworkTag, KOffsetKind, OpDesc, ScheduleEntry, SingleBufferTag
from rota.pipeline.schedule_config import ScheduleConfig
from rota.program.kinds import OpRole, ResourceKind

DATA = Path(__file__).parent / "data"
DOUBLE_BUFFER_FILES = (
    "four_wave",
    "ping_pong_grid",
    "ping_pong_features",
    "ping_pong_sizing",
    "ping_pong_random",
    "ping_pong_csp",
    "custom_bodies",
)

Case = dict[str, Any]
Row = tuple[Any, ...]

_LATENCY_TAGS = {
    "latency_global": (DoubleBufferTag.LOAD_A, DoubleBufferTag.LOAD_B),
    "latency_frag": (DoubleBufferTag.MMA_LOAD_A, DoubleBufferTag.MMA_LOAD_B),
    "latency_mma": (DoubleBufferTag.MMA, DoubleBufferTag.COMPUTE),
}


@cache
def cases(name: str) -> tuple[Case, ...]:
    """All cases of one corpus file, header left out."""
    with gzip.open(DATA / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return tuple(case for case in map(json.loads, lines) if case["type"] != "header")


def row(op: OpDesc | None) -> Row | None:
    """An op as the corpus writes it; None stays None."""
    if op is None:
        return None
    return (
        getattr(op.tag, "name", op.tag),
        op.stage,
        op.subtile,
        op.k_offset.name,
        op.vm_cost,
        op.lgkm_cost,
        op.wait_value,
        op.resource.name,
        op.latency,
        op.role.name,
        op.channel,
        op.vgpr_def,
        op.vgpr_kill,
    )


def rows(ops: Sequence[OpDesc]) -> list[Row | None]:
    """Ops as rows."""
    return [row(op) for op in ops]


def recorded(case: Case, indices: Sequence[int | None]) -> list[Row | None]:
    """The case's ops at a list of indices, as rows."""
    return [None if index is None else tuple(case["ops"][index]) for index in indices]


def op_from_row(columns: Sequence[Any], tags: type[DoubleBufferTag | SingleBufferTag] = DoubleBufferTag) -> OpDesc:
    """An op of ours from a recorded row."""
    tag, stage, subtile, k, vm, lgkm, wait, resource, latency, role, channel, vgpr_def, vgpr_kill = columns
    return OpDesc(
        tag=FrameworkTag[tag] if tag in FrameworkTag.__members__ else tags[tag],
        stage=stage,
        subtile=subtile,
        k_offset=KOffsetKind[k],
        vm_cost=vm,
        lgkm_cost=lgkm,
        wait_value=wait,
        resource=ResourceKind[resource],
        latency=latency,
        role=OpRole[role],
        channel=channel,
        vgpr_def=vgpr_def,
        vgpr_kill=vgpr_kill,
    )


def recorded_ops(case: Case, indices: Sequence[int]) -> tuple[OpDesc, ...]:
    """The case's ops at a list of indices, as ops of ours."""
    return tuple(op_from_row(case["ops"][index]) for index in indices)


def edge_rows(edges: Sequence[DepEdge]) -> list[list[Any]]:
    """Edges as the corpus writes them."""
    return [[e.producer_idx, e.consumer_idx, e.dep_kind.value, e.loop_distance] for e in edges]


def edges_from_rows(recorded_edges: Sequence[Sequence[Any]]) -> tuple[DepEdge, ...]:
    """Recorded edges as edges of ours."""
    return tuple(DepEdge(p, c, DepKind[kind], distance) for p, c, kind, distance in recorded_edges)


def entry_rows(entries: Sequence[ScheduleEntry]) -> list[tuple[Row | None, int, int]]:
    """Entries as (op row, time slot, prefetch flag)."""
    return [(row(entry.op), entry.time_slot, int(entry.is_prefetch)) for entry in entries]


def recorded_entries(case: Case, name: str) -> list[tuple[Row | None, int, int]]:
    """A recorded phase in the same shape."""
    return [(tuple(case["ops"][op]), slot, prefetch) for op, slot, prefetch in case[name]]


def target_of(given: dict[str, Any]) -> TargetProfile:
    """The MI355X target with the case's pipeline knobs and latencies."""
    target = mi355x_target(given.get("vm_per_load_a", 4), given.get("vm_per_load_b", 4), given.get("max_globals", 1))
    sizing = target.pipeline.block_sizing
    changes: dict[str, Any] = {
        "block_sizing": BlockSizing(
            heavy=given.get("block_heavy", sizing.heavy),
            light=given.get("block_light", sizing.light),
            max_globals=sizing.max_globals,
        ),
        "frag_order": FragOrder(b_before_a=bool(given.get("b_before_a", 1))),
        "lgkm_per_load_a": given.get("pipeline_lgkm_a", 0),
        "lgkm_per_load_b": given.get("pipeline_lgkm_b", 0),
        "cross_stage_rotation": bool(given.get("cross_stage_rotation", 0)),
        "m_mmas": given.get("m_mmas", 2),
        "n_mmas": given.get("n_mmas", 2),
    }
    stagger = given.get("warp_stagger_override")
    if stagger is not None:
        changes["warp_stagger"] = WarpStaggerRule.none() if stagger < 0 else WarpStaggerRule.fixed(stagger)
    model = target.cost_model
    for knob, tags in _LATENCY_TAGS.items():
        for tag in tags if knob in given else ():
            model = model.with_cost(tag, latency=given[knob])
    return TargetProfile(cost_model=model, pipeline=target.pipeline.but(**changes), name=target.name)


def schedule_knobs(given: dict[str, Any]) -> dict[str, Any]:
    """The case's schedule-config fields, flags as truth values."""
    kinds = {field.name: type(field.default) for field in fields(ScheduleConfig)}
    return {name: bool(v) if kinds[name] is bool else v for name, v in given.items() if name in kinds}


class CorpusBody(PipelineSchedule):
    """A custom body of the corpus: its recorded logical ops, annotated and optionally interleaved."""

    def __init__(self, case: Case) -> None:
        given = case["input"]
        self.target = target_of(given)
        self.logical = recorded_ops(case, case["logical"])
        self.interleaves = bool(given.get("double_buffer_reorder"))
        self.sched = ScheduleConfig(
            **schedule_knobs(given), lgkm_per_load_a=given["lgkm_a"], lgkm_per_load_b=given["lgkm_b"]
        )

    def config(self) -> PipelineConfig:
        return self.target.pipeline

    def schedule_config(self) -> ScheduleConfig:
        return self.sched

    def declare_ops(self) -> tuple[OpDesc, ...]:
        return self.logical

    def build_body(self) -> tuple[OpDesc, ...]:
        body = annotate_ops(self.logical, self.target.cost_model)
        return double_buffer_reorder(body, self.config()) if self.interleaves else body


def schedule_of(case: Case) -> Pipeline4Wave | DeclarativeSchedule | CorpusBody:
    """The case's input as one of our schedules."""
    given = case["input"]
    if case["suite"] == "4w":
        geometry = KernelGeometry(lgkm_per_load_a=given["lgkm_a"], lgkm_per_load_b=given["lgkm_b"])
        return Pipeline4Wave(geometry, config=ScheduleConfig(**schedule_knobs(given)), target=target_of(given))
    if case["suite"] == "cb":
        return CorpusBody(case)
    lgkm = {"lgkm_per_load_a": given["lgkm_a"], "lgkm_per_load_b": given["lgkm_b"]}
    return DeclarativeSchedule(config=ScheduleConfig(**schedule_knobs(given), **lgkm), target=target_of(given))


def double_buffer_cases() -> Iterator[Case]:
    """Every double-buffer case of the corpus."""
    for name in DOUBLE_BUFFER_FILES:
        yield from cases(name)
