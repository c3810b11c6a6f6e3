"""The cycle model on a few instructions, against clocks counted by hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from rota import GFX950
from rota.cycles.instructions import CODE, NOBODY, Arbitration, ModelInstruction
from rota.cycles.model import Steady, run
from rota.cycles.timeline import Cause, MeasuredRun, wait_for
from rota.program.kinds import OpKind
from tests.cycles.programs import (
    BARRIER,
    DMA,
    LGKMCNT,
    MFMA,
    PARAMETERS,
    READ,
    SCALAR,
    VALU,
    VMCNT,
    priority,
    program,
    wait_lgkm,
    wait_vm,
)

FOUR, EIGHT = (0,) * 4, (0,) * 8
WAIT_VM, WAIT_LGKM = wait_for("vmcnt"), wait_for("lgkmcnt")


def lost(result: MeasuredRun, wave: int = 0, trip: int = 0) -> dict[str, int]:
    total: Counter[str] = Counter()
    for (_, cause), clocks in result.lost[wave][trip].items():
        total[result.causes[cause]] += clocks
    return dict(total)


def first_trip(result: MeasuredRun, wave: int = 0) -> int:
    return result.edges[wave][1] - result.edges[wave][0]


def test_an_mfma_holds_its_unit_for_its_passes() -> None:
    result = run(program([MFMA] * 5), PARAMETERS, trips=4)
    # 4 passes of 4 clocks each, back to back; the edge is seen a turn after the last one was issued.
    assert result.edges[0] == (0, 4 * 16 + 4, 9 * 16 + 4, 14 * 16 + 4, 19 * 16 + 4)
    assert lost(result, trip=1) == {Cause.MMA_BUSY: 5 * 12}


def test_valu_ops_run_beside_an_mfma() -> None:
    result = run(program([MFMA, VALU, VALU, VALU]), PARAMETERS, trips=3)
    assert result.edges[0] == (0, 16, 32, 48)
    assert lost(result, trip=2) == {}


def test_a_dma_passes_the_path_then_the_latency_then_the_lds_port() -> None:
    result = run(program([DMA, wait_vm(0)]), PARAMETERS, trips=1)
    landed = 16 + 800 + 8
    assert first_trip(result) == landed + 4  # the wait itself takes a turn
    assert lost(result) == {WAIT_VM: landed - 4}


def test_dmas_queue_for_the_path_and_the_queue_is_named() -> None:
    result = run(program([DMA, DMA, DMA, wait_vm(0)]), PARAMETERS, trips=1)
    landed = 3 * 16 + 800 + 8
    assert first_trip(result) == landed + 4
    assert lost(result) == {Cause.DMA_PATH: 2 * 16 - 8, WAIT_VM: landed - 12 - (2 * 16 - 8)}


def test_a_wait_for_some_leaves_the_younger_under_way() -> None:
    result = run(program([DMA, DMA, DMA, wait_vm(2)]), PARAMETERS, trips=1)
    assert first_trip(result) == 16 + 800 + 8 + 4


@pytest.mark.parametrize(
    ("waits", "behind"), [((wait_vm(0), wait_lgkm(0)), 6), ((wait_lgkm(0), wait_vm(0)), 5)], ids=["vm", "lgkm"]
)
def test_waits_side_by_side_are_one_instruction_where_it_has_a_field_for_each(
    waits: tuple[ModelInstruction, ModelInstruction], behind: int
) -> None:
    code = program([DMA, READ, *waits, VALU, waits[0], VALU, waits[1]])
    landed = 16 + 800 + 8
    apart, fused = (run(replace(code, fused_waits=each), PARAMETERS, trips=1) for each in (False, True))
    assert first_trip(apart) == landed + behind * 4  # the second wait's turn counts if it comes after the landing
    assert first_trip(fused) == landed + 5 * 4  # the two that stand alone keep their turns
    assert (fused.issued, sum(lost(fused).values())) == (apart.issued - 1, landed - 2 * 4)


def test_a_read_passes_the_port_then_the_latency() -> None:
    result = run(program([READ, wait_lgkm(0)]), PARAMETERS, trips=1)
    assert first_trip(result) == 4 + 60 + 4
    assert lost(result) == {WAIT_LGKM: 60}


def test_waves_queue_for_the_lds_port_and_the_queue_is_named() -> None:
    result = run(program([READ, READ, wait_lgkm(0)], roles=FOUR), PARAMETERS, trips=1)
    # Wave 3 issues its second read at clock 7 as the last of eight, 4 clocks each, and waits from clock 11 on.
    done = 8 * 4 + 60
    turn = done + 3  # its SIMD has its turns at 3, 7, 11, ...
    assert lost(result, wave=3) == {Cause.LDS_PORT: 7 * 4 - 7, WAIT_LGKM: turn - 11 - 21}


@pytest.mark.parametrize(("waves", "reads"), [(FOUR, 16), (EIGHT, 12)])
def test_the_port_bounds_reads(waves: tuple[int, ...], reads: int) -> None:
    result = run(program([READ] * reads, roles=waves), PARAMETERS, trips=30)
    assert result.clocks_per_trip == pytest.approx(len(waves) * reads * 4, rel=0.02)


def test_what_dmas_bring_takes_the_port_from_reads() -> None:
    alone = run(program([READ] * 16, roles=FOUR), PARAMETERS, trips=30).clocks_per_trip
    both = run(program([READ] * 16 + [DMA] * 4, roles=FOUR), PARAMETERS, trips=30).clocks_per_trip
    assert alone == pytest.approx(4 * 16 * 4, rel=0.02)
    assert both == pytest.approx(4 * (16 * 4 + 4 * 8), rel=0.05)


def test_the_path_bounds_dmas() -> None:
    result = run(program([DMA] * 8, roles=FOUR), PARAMETERS, trips=60)
    assert result.clocks_per_trip == pytest.approx(4 * 8 * 16, rel=0.02)


def test_the_sixteenth_read_waits_for_the_first() -> None:
    result = run(program([READ] * 17), PARAMETERS, trips=1)
    # The 16th would issue at 60; the first is there at 64, the second, which the 17th waits for, at 68.
    assert lost(result) == {Cause.COUNTER_FULL: 4}


def test_a_full_vmcnt_stops_the_wave() -> None:
    vmcnt, lgkmcnt = GFX950.counters
    narrow = replace(vmcnt, holds=vmcnt.holds._replace(value=2))
    result = run(program([DMA] * 3, counters=[narrow, lgkmcnt]), PARAMETERS, trips=1)
    assert lost(result) == {Cause.COUNTER_FULL: 16 + 800 + 8 - 8}


def test_a_valu_op_waits_for_an_mfma_result() -> None:
    made = MFMA._replace(makes=(0,))
    result = run(program([made, VALU._replace(needs=((0, 0),))], producers=[NOBODY]), PARAMETERS, trips=1)
    # 4 passes and 4 more wait states lie between the two: turns 1 to 8.
    assert lost(result) == {Cause.DEPENDENCY: 9 * 4 - 4}


@pytest.mark.parametrize("waves", [(0,), EIGHT])
def test_an_mfma_waits_for_a_valu_result(waves: tuple[int, ...]) -> None:
    made = VALU._replace(makes=(0,))
    result = run(program([made, MFMA._replace(needs=((0, 8),))], roles=waves, producers=[NOBODY]), PARAMETERS, trips=1)
    assert lost(result) == {Cause.DEPENDENCY: 2 * 4}


def test_registers_from_global_memory_hold_up_their_use() -> None:
    load = ModelInstruction(CODE[OpKind.GLOBAL_LOAD], 0, 16, 0, (), (0,), VMCNT)
    store = ModelInstruction(CODE[OpKind.LDS_WRITE], 0, 8, 60, ((0, 0),), (), LGKMCNT)
    result = run(program([load, store], producers=[VMCNT]), PARAMETERS, trips=1)
    assert lost(result) == {WAIT_VM: 16 + 800 - 4}


def test_a_barrier_holds_all_until_the_last_has_come() -> None:
    result = run(program([VALU] * 4 + [BARRIER], [BARRIER], roles=(0, 1)), PARAMETERS, trips=1)
    release = 16 + 8
    assert lost(result, wave=0) == {Cause.BARRIER: release - 16 - 4}
    assert lost(result, wave=1) == {Cause.BARRIER: release + 1 - 1 - 4}  # SIMD 1 has its turn a clock later


def test_a_wave_that_has_ended_is_not_waited_for() -> None:
    result = run(program([VALU] * 9, [BARRIER], roles=(0, 1)), PARAMETERS, trips=1)
    assert result.edges[1][1] >= result.edges[0][1]


def test_fair_waves_alternate_and_the_oldest_goes_first() -> None:
    code = program([MFMA] * 6, roles=EIGHT)
    fair = run(code, PARAMETERS, trips=1)
    oldest = run(code, PARAMETERS.but(arbitration=Arbitration.OLDEST), trips=1)
    assert first_trip(fair, 0) == 10 * 16 + 4
    assert first_trip(fair, 4) == 11 * 16 + 4
    assert first_trip(oldest, 0) == 5 * 16 + 4
    assert first_trip(oldest, 4) == 11 * 16 + 4


def test_fairness_remembers_who_had_the_unit_before_a_barrier() -> None:
    late, early = [SCALAR] * 8 + [VALU, BARRIER, MFMA], [VALU, BARRIER, MFMA]
    code = program(late, early, roles=(0,) * 4 + (1,) * 4)
    fair = run(code, PARAMETERS, trips=1)
    oldest = run(code, PARAMETERS.but(arbitration=Arbitration.OLDEST), trips=1)
    assert fair.edges[4][1] < fair.edges[0][1]
    assert oldest.edges[0][1] < oldest.edges[4][1]


def test_priority_goes_before_age() -> None:
    kernel = [MFMA] * 6
    code = program(kernel, kernel, roles=(0,) * 4 + (1,) * 4, prologues=[(), (priority(3),)])
    result = run(code, PARAMETERS.but(arbitration=Arbitration.OLDEST), trips=1)
    # Wave 0 gets the first turn, while wave 4 sets its priority; then wave 4 gets all of its own.
    assert result.edges[4][1] == 6 * 16 + 4
    assert result.edges[0][1] == 11 * 16 + 4


def test_a_simd_issues_one_instruction_of_each_class_a_turn() -> None:
    code = program([VALU] * 8, [SCALAR] * 8, roles=(0,) * 4 + (1,) * 4)
    assert first_trip(run(code, PARAMETERS, trips=1), 4) == 32
    single = run(code, PARAMETERS.but(issue_classes=1), trips=1)
    assert max(single.edges[0][1], single.edges[4][1]) == 64


def test_waves_of_one_class_share_turns() -> None:
    result = run(program([VALU] * 8, roles=EIGHT), PARAMETERS, trips=1)
    assert max(edges[1] - edges[0] for edges in result.edges) == 64
    assert lost(result, wave=4) == {Cause.ISSUE: 4 * 8}


def test_the_loop_edge_takes_turns() -> None:
    slow = run(program([VALU] * 4), PARAMETERS.but(loop_edge=3), trips=3)
    assert slow.edges[0] == (0, 16, 44, 72)


def test_jitter_is_bounded_and_repeatable() -> None:
    code = program([DMA, wait_vm(0)])
    uneven = PARAMETERS.but(dma_jitter=400)
    results = [run(code, uneven.but(seed=seed), trips=40, until=Steady.ACCOUNTS) for seed in (1, 1, 2)]
    assert results[0] == results[1] != results[2]
    even = run(code, PARAMETERS, trips=1).clocks_per_trip
    waits = [b - a for a, b in zip(results[0].edges[0], results[0].edges[0][1:], strict=False)]
    assert even <= min(waits) < max(waits) <= even + 400
    assert even + 120 < results[0].clocks_per_trip < even + 280
    assert results[0].period == 0


def test_tokens_complete_in_order_however_the_data_comes() -> None:
    code = program([DMA] * 6 + [wait_vm(5)])
    ends = {run(code, PARAMETERS.but(dma_jitter=400, seed=seed), trips=1).edges[0][1] for seed in range(9)}
    all_first = [
        run(program([DMA, wait_vm(0)]), PARAMETERS.but(dma_jitter=400, seed=seed), trips=1) for seed in range(9)
    ]
    # The wait is for the first token alone, so the other five change nothing but the turns spent on their issue.
    assert ends == {each.edges[0][1] for each in all_first}


def test_a_wait_for_all_ends_with_the_last_to_come() -> None:
    for seed in range(12):
        uneven = PARAMETERS.but(dma_jitter=400, seed=seed)
        first = run(program([DMA, wait_vm(0)]), uneven, trips=1).edges[0][1]
        both = run(program([DMA, DMA, wait_vm(0)]), uneven, trips=1).edges[0][1]
        assert both >= first


def test_the_run_stops_when_the_state_repeats() -> None:
    code = program([MFMA, VALU, DMA, READ, wait_lgkm(0), wait_vm(1)], roles=EIGHT)
    short = run(code, PARAMETERS, trips=60, until=Steady.ACCOUNTS)
    long = run(code, PARAMETERS, trips=60)
    assert short.period
    assert len(short.edges[0]) < 30
    assert short.clocks_per_trip == pytest.approx(long.clocks_per_trip, rel=0.002)


@pytest.mark.parametrize("classes", [1, 4])
@pytest.mark.parametrize("arbitration", Arbitration)
def test_every_clock_is_issue_or_attributed(classes: int, arbitration: Arbitration) -> None:
    parameters = PARAMETERS.but(issue_classes=classes, arbitration=arbitration, loop_edge=5, dma_jitter=90)
    kernel = [
        DMA,
        READ,
        READ,
        wait_lgkm(0),
        MFMA,
        BARRIER,
        VALU,
        MFMA,
        priority(1),
        MFMA,
        priority(0),
        wait_vm(1),
        SCALAR,
    ]
    result = run(program(kernel, roles=EIGHT), parameters, trips=20)
    for edges, trips in zip(result.edges, result.lost, strict=True):
        for start, end, each in zip(edges[1:-1], edges[2:], trips[1:], strict=True):
            assert end - start == 4 * (len(kernel) + 5) + sum(each.values())
