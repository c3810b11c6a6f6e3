"""How the framework's objects print: short, by name, and, where they are settings, so that they can be pasted back."""

from __future__ import annotations

import copy
import enum
import inspect
import pickle
import re
from collections.abc import Iterator
from random import Random
from types import MappingProxyType

import pytest
from hypothesis import given, strategies as st

import rota
from rota import (
    DOUBLE_BUFFER_RULES,
    SINGLE_BUFFER_RULES,
    BarrierStrategy,
    BlockSizing,
    DeclarativeSchedule,
    DepEdge,
    DepKind,
    DoubleBufferTag,
    FragOrder,
    FrameworkTag,
    InstructionGroup,
    KernelGeometry,
    KOffsetKind,
    LoadStrategy,
    LoopCarriedSpec,
    OpCost,
    OpDesc,
    OpRole,
    OrderProblem,
    Phase,
    Pipeline4Wave,
    PipelineBody,
    PipelineConfig,
    PipelineSchedule,
    Proof,
    ResourceKind,
    SchedGroupHints,
    ScheduleCompiler,
    ScheduleConfig,
    SchedulingStrategy,
    SingleBufferSchedule,
    SingleBufferTag,
    TargetCostModel,
    TargetProfile,
    WaitStrategy,
    WarpStaggerRule,
    compile_loop,
    compile_schedule,
    derive_waits_from_blocks,
    listing,
    mi355x_target,
    verify,
)
from rota.kernels.attention import ATTENTION
from rota.pipeline.compiled_pipeline import CompiledPipeline
from rota.printing import WIDTH, WrappedTuple, show
from tests.oracle.draw_stages import draw_compiled
from tests.wording.golden import mentions, worded

MOST_LINES = 120
NAMES = MappingProxyType({name: getattr(rota, name) for name in rota.__all__})
FOUR_WAVE = compile_schedule(Pipeline4Wave(KernelGeometry()))


def objects_of(compiled: CompiledPipeline) -> Iterator[object]:
    """Everything of a compiled pipeline that a person may print."""
    yield from (compiled.config, compiled.schedule_config, compiled.machine, compiled.certificate, compiled.lowered)
    yield from (compiled, compiled.body, compiled.edges, compiled.graph, compiled.kernel_deps)
    for phase in Phase:
        yield compiled.phase(phase)
        yield from compiled.phase(phase)
    yield from (*compiled.body, *compiled.edges, compiled.repairs, *compiled.repairs, compiled.findings)
    yield OrderProblem(body=compiled.graph)
    if compiled.program is not None:
        assert compiled.ordering is not None
        yield from (compiled.ordering, compiled.ordering.certificate)
        blocks = compiled.program.blocks
        yield from (compiled.program, blocks, *blocks, *(block.positions() for block in blocks))
        yield from (*compiled.program.block_places(), *(block.expand() for block in blocks))
        yield derive_waits_from_blocks(blocks, compiled.config, compiled.schedule_config)


def objects() -> Iterator[object]:
    """What the framework has besides."""
    yield verify(FOUR_WAVE.lowered)
    schedule = Pipeline4Wave(KernelGeometry())
    body = PipelineBody().grid(DoubleBufferTag.MMA, 8, 8)
    yield from (schedule, DeclarativeSchedule(), SingleBufferSchedule(2), schedule.target, mi355x_target(), body)
    yield from (schedule.build_body(), schedule.declare_ops(), schedule.bootstrap_frags(), schedule.target.cost_model)
    yield from (schedule.derive_edges(schedule.build_body()), schedule.config(), schedule.schedule_config())
    yield from (ScheduleConfig(), PipelineConfig(), KernelGeometry(), ScheduleCompiler(), BlockSizing.uniform(3))
    yield from (BarrierStrategy.minimal_no_set_prio(), WaitStrategy.default(), LoadStrategy.default())
    yield from (DOUBLE_BUFFER_RULES, *DOUBLE_BUFFER_RULES, SINGLE_BUFFER_RULES, *SINGLE_BUFFER_RULES)
    kinds = (KOffsetKind, OpRole, ResourceKind, Phase, DepKind, Proof, SchedulingStrategy)
    yield from (member for kind in (*kinds, FrameworkTag, DoubleBufferTag, SingleBufferTag) for member in kind)


def fits(text: str, lines: int = MOST_LINES) -> bool:
    return len(text.splitlines()) <= lines and max(map(len, text.splitlines()), default=0) <= WIDTH


@pytest.mark.parametrize("text", [str, repr])
def test_nothing_of_the_4_wave_kernel_prints_more_than_a_page(text: type[str]) -> None:
    too_long = [text(each) for each in (*objects(), *objects_of(FOUR_WAVE)) if not fits(text(each))]
    assert too_long == []
    assert not fits("x" * 121)
    assert not fits("x\n" * 121)


@pytest.mark.parametrize("seed", range(3))
def test_nothing_of_a_drawn_schedule_prints_wider_than_a_line(seed: int) -> None:
    compiled = draw_compiled(Random(seed))
    entries = sum(len(compiled.phase(phase)) for phase in Phase)
    for each in objects_of(compiled):
        assert fits(str(each), entries + 40), each
        assert fits(repr(each)), each


def test_no_object_prints_as_its_address() -> None:
    for each in (*objects(), *objects_of(FOUR_WAVE)):
        assert " at 0x" not in f"{each!r}{each!s}"


class _Tag(enum.IntEnum):
    OWN = 7


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (SchedulingStrategy.IDENTITY, "SchedulingStrategy.IDENTITY"),
        (KOffsetKind.K0, "KOffsetKind.K0"),
        (OpRole.COMPUTE, "OpRole.COMPUTE"),
        (Phase.KERNEL, "Phase.KERNEL"),
        (FrameworkTag.WAIT_VM, "FrameworkTag.WAIT_VM"),
        (InstructionGroup.MFMA, "InstructionGroup.MFMA"),
        (ScheduleConfig(), "ScheduleConfig()"),
        (ScheduleConfig(sched_barrier_mask=5), "ScheduleConfig(sched_barrier_mask=0b101)"),
        (DepEdge(1, 4), "DepEdge(1, 4)"),
        (DepEdge(1, 4, DepKind.ANTI, 1), "DepEdge(1, 4, DepKind.ANTI, loop_distance=1)"),
        (OpDesc.wait_vm(3), "<wait_vm(3)>"),
        (OpDesc(tag=_Tag.OWN, role=OpRole.GLOBAL_LOAD, vm_cost=2), "<own s0 t0, vm=2>"),
        (FOUR_WAVE.kernel[2], "<kernel[2] barrier>"),
        (PipelineBody().load(_Tag.OWN), "<PipelineBody 1 op>"),
    ],
)
def test_values_are_told_by_name(value: object, text: str) -> None:
    assert repr(value) == text


def test_what_has_no_name_is_described() -> None:
    assert "own s1 t0" in worded(repr(OpDesc.logical(_Tag.OWN, stage=1)))
    assert "EdgeRule" in worded(repr(DOUBLE_BUFFER_RULES[1]))


def test_a_word_stays_a_word_where_it_is_formatted() -> None:
    assert f"{SchedulingStrategy.CSP} {DoubleBufferTag.LOAD_B:02d}" == "CSP 01"
    assert str(SchedulingStrategy.CSP) == "SchedulingStrategy.CSP"


def test_what_is_wrapped_is_still_a_tuple() -> None:
    values = WrappedTuple(range(60))
    assert values == tuple(range(60))
    assert hash(values) == hash(tuple(range(60)))
    assert pickle.loads(pickle.dumps(values)) == values
    assert len(repr(values).splitlines()) > 1
    assert eval(repr(values)) == values
    assert repr(WrappedTuple(["a"])) == "('a',)"
    assert repr(WrappedTuple()) == "()"


# Settings can be pasted back.

counts = st.integers(0, 300)
knobs = st.fixed_dictionaries(
    {},
    optional={
        name: st.booleans() if type(default) is bool else counts
        for name, default in (
            (each.name, each.default) for each in inspect.signature(ScheduleConfig).parameters.values()
        )
        if name != "scheduling"
    }
    | {"scheduling": st.sampled_from([*SchedulingStrategy, "GREEDY", "of_a_third_party"])},
)
configs = st.builds(
    PipelineConfig,
    depth=st.just(2),
    num_partitions=st.sampled_from([2, 4]),
    m_mmas=st.integers(1, 9),
    mma_latency=counts,
    vm_per_load_a=counts,
    mma_serial=st.booleans(),
    loop_carried=st.builds(LoopCarriedSpec, role=st.sampled_from(OpRole), subtile=counts),
    block_sizing=st.builds(BlockSizing, heavy=counts, light=counts, max_globals=counts),
    frag_order=st.builds(FragOrder, b_before_a=st.booleans()),
    warp_stagger=st.sampled_from([WarpStaggerRule.none(), WarpStaggerRule.auto(), WarpStaggerRule.fixed(3)]),
)
costs = st.builds(
    OpCost,
    resource=st.sampled_from(ResourceKind),
    latency=counts,
    role=st.sampled_from(OpRole),
    vgpr_def=counts,
    vgpr_kill=counts,
)
models = st.dictionaries(st.sampled_from([*DoubleBufferTag, 17]), costs).map(TargetCostModel)
settings = st.one_of(
    knobs.map(lambda fields: ScheduleConfig(**fields)),
    configs,
    costs,
    models,
    st.builds(TargetProfile, cost_model=models, pipeline=configs, name=st.text(max_size=9)),
    st.builds(KernelGeometry, BM=st.integers(1, 512), is_fp8=st.booleans(), lgkm_per_load_a=st.none() | counts),
    st.builds(SchedGroupHints, m_mmas=counts, n_mmas=counts, k_mmas=counts),
    st.builds(DepEdge, counts, counts, st.sampled_from(DepKind), counts),
    st.builds(ScheduleCompiler, sync=st.sampled_from(["strict", "repair"]), reentrant=st.booleans()),
    st.builds(BarrierStrategy, minimal_barriers=st.booleans(), sched_barrier_mask=counts),
    st.builds(WaitStrategy, wait_vm_last=counts),
    st.builds(LoadStrategy, lgkm_per_load_b=counts),
)


@given(settings)
def test_settings_can_be_pasted_back(value: object) -> None:
    assert eval(repr(value), dict(NAMES)) == value
    assert fits(repr(value))
    assert str(value) == repr(value) or isinstance(value, DepEdge)


def test_settings_show_only_what_somebody_chose() -> None:
    assert repr(ScheduleConfig(minimal_barriers=True)) == "ScheduleConfig(minimal_barriers=True)"
    assert repr(PipelineConfig(block_sizing=BlockSizing(heavy=4, light=2))) == "PipelineConfig()"
    assert repr(BlockSizing(heavy=4, light=2)) == "BlockSizing(heavy=4, light=2)"  # neither has a default


def test_the_authors_own_tags_are_told_by_name() -> None:
    cost = OpCost(resource=ResourceKind.LDS, latency=1, role=OpRole.COMPUTE)
    assert show(TargetCostModel({_Tag.OWN: cost})).startswith("TargetCostModel({_Tag.OWN: OpCost(")


def test_knobs_survive_copies() -> None:
    chosen = ScheduleConfig(auto_drain=True)
    assert pickle.loads(pickle.dumps(chosen)) == copy.copy(chosen) == chosen


# Schedules, programs, blocks.


class Broken(PipelineSchedule):
    def config(self) -> PipelineConfig:
        raise ZeroDivisionError

    def build_body(self) -> tuple[OpDesc, ...]:
        return ()


def test_a_schedule_prints_what_it_changes() -> None:
    text = repr(Pipeline4Wave(KernelGeometry()))
    assert text.startswith("<Pipeline4Wave on MI355X")
    assert "cross_stage_rotation=True" in text
    assert "partial_prologue_drain=True" in text
    assert "auto_waits" not in text  # as by default


def test_a_schedule_that_isnt_ready_prints_all_the_same() -> None:
    assert mentions(worded(repr(Broken())), "Broken", "ZeroDivisionError")
    assert mentions(worded(repr(object.__new__(Pipeline4Wave))), "Pipeline4Wave", "AttributeError")


def test_a_program_prints_block_by_block() -> None:
    program = FOUR_WAVE.program
    assert program is not None
    lines = str(program).splitlines()
    heads = [line for line in lines if line.startswith("partition")]
    assert [re.findall(r"\d", head) for head in heads] == [["0", "0"], ["1", "1"]]
    heads = [line.strip() for line in lines if line.startswith("  block")]
    assert heads == [f"block {index}, {block.mma}, explicit" for index, block in enumerate(program.blocks)]
    entries = [line.strip() for line in lines if line.startswith("    ")]
    assert [line.split(maxsplit=1) for line in entries] == [
        [str(entry.time_slot), str(entry.op)] for entry in program.expand_to_list()
    ]
    assert listing(program) == str(program)
    assert mentions(worded(repr(program)), "PipelineProgram", 8, 2, 48)


@pytest.mark.parametrize("first", [False, True])
def test_a_block_prints_its_entries_in_order(first: bool) -> None:
    schedule = DeclarativeSchedule(ScheduleConfig(barrier_before_pre_ops=first, wrap_waits_with_sched_barrier=True))
    program = compile_schedule(schedule, sync="as_written").program
    assert program is not None
    for block in program.blocks:
        head, *lines = str(block).splitlines()
        assert mentions(head, block.mma)
        assert ", ".join(line[12:] for line in lines) == ", ".join(map(str, block.expand()))
        assert 2 <= len(lines) <= 4


def test_a_compiled_schedule_marks_what_repair_changed() -> None:
    lines = FOUR_WAVE.listing().splitlines()
    marked = [line.split("  ")[-1] for line in lines if "  + " in line or "  ~ " in line]
    assert marked == [f"~ was {each.before}" if each.before else "+ added" for each in FOUR_WAVE.repairs]
    assert {"+ added", "~ was wait_lgkm(8)"} <= set(marked)
    assert listing(FOUR_WAVE) == str(FOUR_WAVE) == FOUR_WAVE.listing()
    as_written = compile_schedule(Pipeline4Wave(KernelGeometry()), sync="as_written")
    assert "+ added" not in str(as_written)


def test_nothing_is_marked_where_every_wait_is_rotas_own() -> None:
    compiled = compile_loop(ATTENTION.loop(instructions=False))
    assert compiled.repairs
    assert "+ added" not in str(compiled)


def test_a_repair_prints_as_what_it_did() -> None:
    change = FOUR_WAVE.repairs[0]
    assert repr(change) == f"<{change.change}>"
    assert change.sentence == f"{change.change}: {change.reason}"
    assert str(change).split() == change.sentence.split()


def test_phases_are_listed_without_a_title() -> None:
    prologue = FOUR_WAVE.prologue
    titled, plain = listing("first", prologue).splitlines(), listing(prologue).splitlines()
    assert titled[1:] == plain[1:]
    assert titled[0] == f"first: {plain[0]}"
    assert str(FOUR_WAVE.lowered).splitlines()[1] == plain[1]
    with pytest.raises(rota.DeclarationError, match="D104"):
        listing("a title alone")  # type: ignore[arg-type]


def test_a_graph_says_what_an_op_waits_for() -> None:
    lines = str(FOUR_WAVE.graph).splitlines()
    assert len(lines) == len(FOUR_WAVE.body) + 1
    assert lines[3].split() == ["2", "mma[0,0]", "after", "14(-1),", "19(-1),", "22(-1)"]
