"""Counters of any name, number and width; stores, atomics and slow vector ops."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rota import GFX950
from rota.cycles.instructions import CODE, ModelInstruction, encode, nominal
from rota.cycles.model import Steady, run
from rota.cycles.predict import predict
from rota.cycles.record import record
from rota.cycles.timeline import Cause, Lane, wait_for
from rota.program.entry import Effect, Entry, Op, Place, Space, Work, wait_effect, wait_op
from rota.program.kinds import OpKind, Phase
from rota.program.lowered import LoweredProgram
from rota.program.machine import Confidence, Counter, Fact
from tests.campaigns.schedules.mca import one_after_another
from tests.cycles.programs import DMA, MFMA, PARAMETERS, READ, VALU, program
from tests.cycles.test_cycles import lost
from tests.cycles.timed_loops import SMALL
from tests.cycles.two_roles import producer_consumer


def counter(name: str, holds: int, *kinds: OpKind, in_order: bool = True) -> Counter:
    fact = Fact(holds, "tokens", Confidence.ESTIMATE, "made up")
    return Counter(name=name, holds=fact, counts=frozenset(kinds), in_order=in_order)


LDS_KINDS = (OpKind.LDS_READ, OpKind.LDS_READ_TRANSPOSED, OpKind.LDS_WRITE)
COUNTERS = (
    counter("loads", 9, OpKind.DMA, OpKind.GLOBAL_LOAD),
    counter("stores", 3, OpKind.GLOBAL_STORE, OpKind.ATOMIC, in_order=False),
    counter("local", 6, *LDS_KINDS),
)
LOADS, STORES, LOCAL = range(3)
MADE_UP = replace(GFX950, name="made up", counters=COUNTERS, queues=(), split_barrier=True)

STORE = ModelInstruction(CODE[OpKind.GLOBAL_STORE], 0, 16, 0, counter=STORES)
WRITE = ModelInstruction(CODE[OpKind.LDS_WRITE], 0, 8, 60, counter=LOCAL)


def wait(number: int, count: int) -> ModelInstruction:
    return ModelInstruction(CODE[OpKind.WAIT], 0, count, counter=number)


def on(number: int, instruction: ModelInstruction) -> ModelInstruction:
    return instruction._replace(counter=number)


def test_each_counter_counts_its_own() -> None:
    kernel = [on(LOADS, DMA), STORE, on(LOCAL, READ), wait(LOCAL, 0), wait(STORES, 0), wait(LOADS, 0)]
    result = run(program(kernel, counters=COUNTERS), PARAMETERS, trips=1)
    read = 8 + 4 + 60
    load = 16 + 800 + 8
    store = load - 8 + 16  # after the load on the path; nothing lands in LDS
    assert lost(result) == {
        wait_for("local"): read - 12,
        wait_for("stores"): store - (read + 4) - (16 - 4),
        Cause.DMA_PATH: 16 - 4,
    }


def test_a_counter_is_full_when_it_holds_what_it_can() -> None:
    result = run(program([STORE] * 4, counters=COUNTERS), PARAMETERS, trips=1)
    assert lost(result) == {Cause.COUNTER_FULL: 16 + 800 - 12}


@pytest.mark.parametrize("in_order", [True, False])
def test_without_order_a_wait_is_over_when_as_many_have_come_as_it_asks_for(in_order: bool) -> None:
    both = counter("all", 20, OpKind.GLOBAL_STORE, *LDS_KINDS, in_order=in_order)
    kernel = [on(0, STORE), on(0, READ), wait(0, 1)]
    result = run(program(kernel, counters=[both]), PARAMETERS, trips=1)
    store, read = 16 + 800, 4 + 4 + 60
    assert result.edges[0][1] == (store if in_order else read) + 4


def test_without_order_a_wait_for_none_is_for_all() -> None:
    both = counter("all", 20, OpKind.GLOBAL_STORE, *LDS_KINDS, in_order=False)
    result = run(program([on(0, STORE), on(0, READ), wait(0, 0)], counters=[both]), PARAMETERS, trips=1)
    assert result.edges[0][1] == 16 + 800 + 4


@pytest.mark.parametrize("in_order", [True, False])
def test_what_has_repeated_goes_on_repeating(in_order: bool) -> None:
    both = counter("all", 7, OpKind.GLOBAL_STORE, *LDS_KINDS, in_order=in_order)
    code = program([on(0, STORE), on(0, READ), MFMA, wait(0, 3)], counters=[both])
    short = run(code, PARAMETERS, trips=300, until=Steady.ACCOUNTS)
    assert short.period
    long = run(code, PARAMETERS, trips=300)
    clocks = short.edges[0][-1] - short.edges[0][-1 - short.period]
    assert long.edges[0][-1] - long.edges[0][-1 - short.period] == clocks


def test_what_nothing_counts_is_not_waited_for() -> None:
    none = ModelInstruction(CODE[OpKind.ATOMIC], 0, 16, 0)
    result = run(program([none] * 90, counters=COUNTERS), PARAMETERS, trips=1)
    assert lost(result) == {}


def test_a_whole_loop_on_a_made_up_machine() -> None:
    compiled = one_after_another(SMALL.loop(instructions=False), MADE_UP)
    barriers = [entry.effect for entry in compiled.lowered.kernel if entry.op.kind is OpKind.BARRIER]
    assert barriers
    assert all((each.arrives is None) != (each.awaits is None) for each in barriers)
    found = predict(compiled, band=False)
    names = {cause for cause, _ in found.causes}
    assert not any("cnt" in name for name in names)
    assert names & {wait_for("loads"), wait_for("local")}
    timeline = record(compiled, trips=3)
    assert timeline.counter_limits == (("loads", 9), ("stores", 3), ("local", 6))
    assert {level.counter for level in timeline.levels} == {"loads", "local"}
    limits = dict(timeline.counter_limits)
    assert all(0 <= level.tokens <= limits[level.counter] for level in timeline.levels)
    by_wave = [[each for each in timeline.crossings if each.wave == wave] for wave in range(timeline.waves)]
    assert all(sum(each.arrives for each in own) == sum(each.awaits for each in own) > 0 for own in by_wave)


def with_store(kind: OpKind, *, counted: bool = True) -> LoweredProgram:
    """The consumer also stores its sum, in every trip."""
    given = producer_consumer(machine=MADE_UP)
    total = Place(Space.ACCUMULATOR, "c")
    effect = Effect(
        kind=kind,
        counter="stores" if counted else None,
        tokens=2 if counted else 0,
        reads=(total,),
        writes=(Place(Space.MEMORY, "out"),),
    )
    store = Entry(
        op=Op(kind=kind, name="put", work=Work(2, 256)), effect=effect, time_slot=0, phase=Phase.KERNEL, roles=(1,)
    )
    drain = Entry(op=wait_op("stores", 0), effect=wait_effect("stores", 0), time_slot=0, phase=Phase.KERNEL, roles=(1,))
    return given.with_phases({Phase.KERNEL: [*given.kernel, store, *([drain] if counted else [])]})


@pytest.mark.parametrize("kind", [OpKind.GLOBAL_STORE, OpKind.ATOMIC])
def test_stores_take_the_path_and_wait_for_the_sum(kind: OpKind) -> None:
    parameters = nominal(MADE_UP)
    plain, stored = encode(producer_consumer(machine=MADE_UP), parameters), encode(with_store(kind), parameters)
    assert stored.load.dma_clocks - plain.load.dma_clocks == 2 * 256 // 64
    assert stored.load.lds_clocks == plain.load.lds_clocks
    timeline = record(with_store(kind), trips=3)
    puts = [each for each in timeline.slices if each.label == "put"]
    assert len(puts) == 3
    assert {each.lane for each in puts} == {Lane.GLOBAL}
    for put in puts:
        sums = [each for each in timeline.slices if each.lane is Lane.MMA and each.at.trip == put.at.trip]
        assert put.start >= max(each.done for each in sums)
    assert {level.counter for level in timeline.levels if level.wave == 1} == {"local", "stores"}
    assert any(stall.cause == wait_for("stores") for stall in timeline.stalls)


def test_a_store_that_nothing_counts_holds_nobody_up() -> None:
    timeline = record(with_store(OpKind.GLOBAL_STORE, counted=False), trips=3)
    assert {level.counter for level in timeline.levels if level.wave == 1} == {"local"}
    assert not any(stall.cause == wait_for("stores") for stall in timeline.stalls)


def test_a_transposed_read_costs_what_a_read_costs() -> None:
    given = producer_consumer()
    turned = [
        replace(
            entry,
            op=replace(entry.op, kind=OpKind.LDS_READ_TRANSPOSED),
            effect=replace(entry.effect, kind=OpKind.LDS_READ_TRANSPOSED),
        )
        if entry.op.kind is OpKind.LDS_READ
        else entry
        for entry in given.kernel
    ]
    changed = given.with_phases({Phase.KERNEL: turned})
    assert predict(changed, band=False) == predict(given, band=False)


SLOW = ModelInstruction(CODE[OpKind.TRANSCENDENTAL], 0, 16, 16)


def test_a_transcendental_op_holds_the_vector_unit_and_not_the_matrix_unit() -> None:
    result = run(program([SLOW, SLOW, VALU]), PARAMETERS, trips=1)
    assert lost(result) == {Cause.VALU_BUSY: 2 * 12}
    assert lost(run(program([SLOW, MFMA, MFMA]), PARAMETERS, trips=1)) == {Cause.MMA_BUSY: 12}


def test_waves_of_one_simd_share_a_slow_vector_unit() -> None:
    result = run(program([SLOW] * 4, roles=(0,) * 8), PARAMETERS, trips=1)
    assert max(edges[1] - edges[0] for edges in result.edges) == 7 * 16 + 4
