"""Malformed inputs end in a finding: never in a bare exception, never in silence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import rota
from rota import (
    BlockSizing,
    ChannelSpec,
    DepEdge,
    FragOrder,
    KernelGeometry,
    LoopBody,
    LoopCarriedSpec,
    MMABlockSpec,
    OpCost,
    OpDesc,
    OpRole,
    OrderProblem,
    Phase,
    PipelineConfig,
    PipelineProgram,
    ResourceKind,
    RotaError,
    SchedGroupHints,
    ScheduleConfig,
    ScheduleEntry,
    TargetProfile,
    WarpStaggerRule,
    compile_schedule,
    mi355x_target,
)
from tests.findings.smallest import Small, two_tiles

pytestmark = pytest.mark.no_cover  # many cases: what they run is covered where it is tested by itself

MMA = two_tiles()[-1]
VALID: list[Any] = [
    OpDesc.logical(3),
    OpCost(resource=ResourceKind.LDS, latency=1, role=OpRole.FRAGMENT_LOAD),
    BlockSizing.default_2x2(),
    FragOrder.a_first(),
    LoopCarriedSpec.fragment_zero(),
    WarpStaggerRule.auto(),
    ChannelSpec(name="S", match_field=0),
    PipelineConfig(),
    ScheduleConfig(),
    KernelGeometry(),
    SchedGroupHints(m_mmas=1, n_mmas=1, k_mmas=1),
    mi355x_target(),
    DepEdge(0, 1),
    ScheduleEntry(op=MMA, time_slot=0, phase=Phase.KERNEL),
    MMABlockSpec(mma=MMA),
    PipelineProgram(blocks=(MMABlockSpec(mma=MMA),), config=PipelineConfig()),
    OrderProblem(body=LoopBody([MMA], [])),
]
UNCHECKED = {  # not validated, because any value of it is harmless
    (OpDesc, "source"),
    *((MMABlockSpec, field.name) for field in fields(MMABlockSpec) if field.type == "bool"),
    (PipelineProgram, "explicit_blocks"),
}
JUNK = st.one_of(
    st.none(),
    st.floats(allow_nan=True),
    st.complex_numbers(),
    st.binary(max_size=3),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=1),
    st.just(object()),
    st.integers(max_value=-2),
)


def ends_in_a_finding(call: Callable[[], object]) -> None:
    with pytest.raises(RotaError) as caught:
        call()
    assert caught.value.findings
    for finding in caught.value.findings:
        assert finding.code in rota.CODES
        assert finding.message
        assert str(finding)


@st.composite
def corrupted(draw: st.DrawFn) -> tuple[type, dict[str, object]]:
    value = draw(st.sampled_from(VALID))
    names = [field.name for field in fields(value) if field.init and (type(value), field.name) not in UNCHECKED]
    name = draw(st.sampled_from(names))
    current = getattr(value, name)
    junk = draw(JUNK.filter(lambda bad: not _acceptable(type(value), name, bad, current)))
    arguments = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
    return type(value), {**arguments, name: junk}


def _acceptable(kind: type, name: str, bad: object, current: object) -> bool:
    optional = {
        OpDesc: {"origin"},
        MMABlockSpec: {"entry_wait", "entry_wait_lgkm", "pre_sync"},
        ScheduleEntry: {"group", "effect"},
        KernelGeometry: {"lgkm_per_load_a", "lgkm_per_load_b"},
    }
    may_be_absent = name in optional.get(kind, set())
    signed = kind is DepEdge and isinstance(current, int)
    empty_program = name == "blocks" and bad in ([], {}, b"")
    return (may_be_absent and bad is None) or (signed and isinstance(bad, int)) or empty_program


@settings(max_examples=400, deadline=None)
@given(corrupted())
def test_a_corrupted_field_is_refused(case: tuple[type, dict[str, object]]) -> None:
    kind, arguments = case
    ends_in_a_finding(lambda: kind(**arguments))


@st.composite
def bad_edges(draw: st.DrawFn) -> tuple[int, list[DepEdge]]:
    """A graph with one edge too many: out of range, into itself, back in time, or closing a cycle."""
    size = draw(st.integers(2, 6))
    forward = [DepEdge(a, b) for a in range(size) for b in range(a + 1, size) if draw(st.booleans())]
    index = st.integers(0, size - 1)
    bad = draw(
        st.one_of(
            st.builds(DepEdge, st.integers(max_value=-1), index),
            st.builds(DepEdge, index, st.integers(min_value=size)),
            index.map(lambda i: DepEdge(i, i)),
            st.builds(DepEdge, index, index, st.just(rota.DepKind.ANTI), st.integers(max_value=-1)),
            st.just(None),
        )
    )
    if bad is None:
        first, second = sorted(draw(st.lists(index, min_size=2, max_size=2, unique=True)))
        forward += [DepEdge(first, second), DepEdge(second, first)]
        return size, draw(st.permutations(forward))
    return size, draw(st.permutations([*forward, bad]))


@settings(max_examples=200, deadline=None)
@given(bad_edges())
def test_a_malformed_graph_is_refused(case: tuple[int, list[DepEdge]]) -> None:
    size, edges = case
    ends_in_a_finding(lambda: LoopBody([OpDesc.logical(1)] * size, edges))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_body_with_the_wrong_number_of_computes_is_refused(data: st.DataObject) -> None:
    ops = data.draw(st.lists(st.sampled_from(two_tiles()), max_size=12))
    if sum(op.role is OpRole.COMPUTE for op in ops) == 2:
        ops.append(MMA)
    ends_in_a_finding(lambda: compile_schedule(Small(ops=ops)))


PUBLIC_CALLS: list[Callable[[Any], object]] = [
    lambda junk: rota.annotate_ops(two_tiles(), junk),
    lambda junk: rota.build_kernel_program(two_tiles(), junk),
    lambda junk: rota.build_kernel_program(two_tiles(), PipelineConfig(m_mmas=1, n_mmas=1), junk),
    lambda junk: rota.compile_schedule(junk),
    lambda junk: rota.compile_schedule(Small(), sync=junk),
    lambda junk: rota.derive_cross_stage_rotation_edges(two_tiles(), junk),
    lambda junk: rota.derive_edges_from_ops(two_tiles(), junk),
    lambda junk: rota.derive_epilogue_from_program(junk, PipelineConfig()),
    lambda junk: rota.derive_prologue_from_program(junk, PipelineConfig()),
    lambda junk: rota.derive_waits_from_blocks([junk], PipelineConfig(), ScheduleConfig()),
    lambda junk: rota.derive_drain_mask([junk]),
    lambda junk: rota.double_buffer_reorder(two_tiles(), junk),
    lambda junk: rota.single_buffer_reorder(two_tiles(), junk),
    lambda junk: rota.mma_block_interleave_list(two_tiles(), junk),
    lambda junk: rota.filter_spurious_cross_stage_flow([junk], two_tiles(), PipelineConfig()),
    lambda junk: rota.emit_minimal_barrier_block(junk, wrap_waits=False),
    lambda junk: rota.optimal_schedule(junk),
    lambda junk: rota.optimal_schedule_with_halves(junk),
    lambda junk: rota.greedy_schedule(junk),
    lambda junk: rota.simple_greedy_schedule(junk),
    lambda junk: rota.optimize_within_barriers([junk], []),
    lambda junk: rota.evaluate_order(junk, (0,)),
    lambda junk: rota.makespan_lower_bound(junk),
    lambda junk: rota.scheduler_named(junk),
    lambda junk: rota.verify_schedule(junk, ScheduleConfig()),
    lambda junk: rota.Pipeline4Wave(junk),
    lambda junk: rota.DeclarativeSchedule(target=[junk]),  # type: ignore[arg-type]
    lambda junk: rota.SingleBufferSchedule(2, hints=[junk]),  # type: ignore[arg-type]
    lambda junk: OpDesc.wait_vm(junk),
    lambda junk: OpDesc.set_prio(junk),
    lambda junk: rota.TargetCostModel({0: junk}),
    lambda junk: TargetProfile(cost_model=junk, pipeline=PipelineConfig()),
]


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(PUBLIC_CALLS), JUNK)
def test_a_public_function_refuses_junk(call: Callable[[Any], object], junk: object) -> None:
    ends_in_a_finding(lambda: call(junk))
