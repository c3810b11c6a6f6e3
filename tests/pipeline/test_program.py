from __future__ import annotations

import pytest

from rota import (
    BarrierStrategy,
    DeclarativeSchedule,
    KernelGeometry,
    LoadStrategy,
    MMABlockSpec,
    OpDesc,
    OpRole,
    Phase,
    Pipeline4Wave,
    PipelineConfig,
    ScheduleConfig,
    ScheduleEntry,
    WaitStrategy,
    WarpStaggerRule,
    build_kernel_program,
    compile_schedule,
    count_sync,
    emit_minimal_barrier_block,
    listing,
)
from rota.pipeline.phases import stagger_index
from tests.findings.smallest import two_tiles

FRAGMENT, _, LOAD, _, MMA = two_tiles()[:5]


def test_the_nineteen_fields_have_the_seeds_defaults() -> None:
    config = ScheduleConfig()
    assert len(ScheduleConfig.__dataclass_fields__) == 19
    assert (config.sched_barrier_mask, config.wait_lgkm_first, config.wait_vm_last) == (85, 8, 6)
    assert (config.max_vgpr, config.auto_waits, config.scheduling) == (999999, True, "IDENTITY")
    assert ScheduleConfig.from_strategies() == config


def test_strategies_spread_into_a_config() -> None:
    config = ScheduleConfig.from_strategies(
        **BarrierStrategy.minimal_no_set_prio(wrap_waits_with_sched_barrier=True),
        **WaitStrategy.auto_with_inter_block_drain(),
        **LoadStrategy.default(),
    )
    assert config == ScheduleConfig(
        minimal_barriers=True, omit_mma_set_prio=True, wrap_waits_with_sched_barrier=True, inter_block_lgkm_drain=True
    )
    assert ScheduleConfig.from_strategies(**BarrierStrategy.default(), **WaitStrategy.default()) == ScheduleConfig()


def texts(ops: tuple[OpDesc, ...]) -> list[str]:
    return [str(op) for op in ops]


def test_a_block_expands_by_the_template() -> None:
    block = MMABlockSpec(
        mma=MMA,
        pre_ops=(FRAGMENT,),
        global_loads=(LOAD,),
        fused_mmas=(MMA,),
        entry_wait=OpDesc.wait_vm(4),
        pre_sync=OpDesc.wait_lgkm(2),
        post_barrier_sched=True,
        trailing_sched_barrier=True,
        drain_lgkm_before_loads=True,
        wrap_waits_with_sched_barrier=True,
    )
    assert texts(block.expand()) == [
        "schedule_barrier",
        "wait_vm(4)",
        "barrier",
        "schedule_barrier",
        "mma_load_a s0 t0",
        "wait_lgkm(0)",
        "load_a s0 t0 k0",
        "schedule_barrier",
        "wait_lgkm(2)",
        "barrier",
        "schedule_barrier",
        "wait_lgkm(0)",
        "schedule_barrier",
        "set_prio(1)",
        "mma[0,0]",
        "mma[0,0]",
        "set_prio(0)",
        "barrier",
        "schedule_barrier",
    ]


@pytest.mark.parametrize("loads_first", [False, True])
def test_the_minimal_block_fences_fragments_from_loads(loads_first: bool) -> None:
    block = MMABlockSpec(mma=MMA, pre_ops=(FRAGMENT,), global_loads=(LOAD,), pre_mma_barrier=False)
    ops = emit_minimal_barrier_block(block, wrap_waits=False, global_before_frag=loads_first)
    first, second = ("load_a s0 t0 k0", "mma_load_a s0 t0") if loads_first else ("mma_load_a s0 t0", "load_a s0 t0 k0")
    assert texts(ops) == [first, "schedule_barrier", second, "mma[0,0]"]


@pytest.mark.parametrize(
    ("rule", "index"), [(WarpStaggerRule.none(), 11), (WarpStaggerRule.auto(), 2), (WarpStaggerRule.fixed(7), 7)]
)
def test_stagger_index(rule: WarpStaggerRule, index: int) -> None:
    assert stagger_index(two_tiles(), 10, PipelineConfig(warp_stagger=rule)) == index


def test_build_kernel_program_derives_edges_itself_when_none_are_given() -> None:
    schedule = DeclarativeSchedule(ScheduleConfig(scheduling="GREEDY"))
    body = schedule.build_body()
    given = build_kernel_program(body, schedule.config(), schedule.schedule_config(), schedule.derive_edges(body))
    assert build_kernel_program(body, schedule.config(), schedule.schedule_config()) == given


def test_places_point_at_the_mmas_also_in_explicit_blocks() -> None:
    for schedule in (Pipeline4Wave(KernelGeometry()), DeclarativeSchedule()):
        compiled = compile_schedule(schedule)
        assert compiled.program is not None
        for place, block in zip(compiled.program.block_places(), compiled.program.blocks, strict=True):
            assert compiled.kernel[place.mma].op == block.mma


def test_the_listing_counts_and_indents_synchronisation() -> None:
    entries = [
        ScheduleEntry(op=op, time_slot=slot, phase=Phase.KERNEL, is_prefetch=op.role is OpRole.GLOBAL_LOAD)
        for slot, op in enumerate((FRAGMENT, LOAD, OpDesc.wait_vm(0), OpDesc.barrier(), OpDesc.set_prio(1), MMA))
    ]
    assert count_sync(entries) == (1, 1, 1)
    assert listing("demo", entries).splitlines() == [
        "demo: 6 entries, 1 wait, 1 barrier, 1 fence",
        "     0  mma_load_a s0 t0",
        "     1  load_a s0 t0 k0  prefetch",
        "     2      wait_vm(0)",
        "     3      barrier",
        "     4      set_prio(1)",
        "     5  mma[0,0]",
    ]
    assert str(entries[1]) == "kernel[1] load_a s0 t0 k0 (prefetch)"
