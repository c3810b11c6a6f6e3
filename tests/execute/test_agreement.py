"""The batched executor and a machine that is stepped op by op agree on random loops, in both directions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from rota import OpDesc
from rota.execute.clock import Clock, Earliest, Latest, Policy, Random, Scripted, Together, barrier_order, run_clock
from rota.execute.executor import Setup, execute
from rota.execute.wave_trace import Line, Workgroup
from rota.program.entry import Entry
from rota.program.kinds import OpKind
from rota.program.lowered import Lowerable, LoweredProgram, TileProduct, TileSum
from tests.execute.loops import (
    BARRIER,
    FULL,
    LGKM,
    PHASES,
    SLOTS,
    VM,
    Witnessed,
    changed,
    edited,
    waiting_single_buffer,
    with_syncs,
)
from tests.execute.stepping import Machine, random_run
from tests.programs.producer_consumer import producer_consumer

STEPPED_RUNS = 12
EVERYTHING: tuple[Policy, ...] = (
    Latest(),
    Earliest(),
    Random(seeds=60),
    Scripted(witness=Witnessed(trip_count=0)),
    Scripted(witness=Witnessed(trip_count=0, kind="WAW")),
)
FEW = Together(policies=(*EVERYTHING[:2], Random(seeds=4), *EVERYTHING[3:]))

# Mostly enough synchronisation, so that many loops are right and the wrong ones are wrong in one place.
SYNCS = st.sampled_from(
    [*[FULL] * 6, (LGKM, BARRIER), (VM, BARRIER), (BARRIER,), (VM, LGKM), (OpDesc.wait_vm(1), LGKM, BARRIER), ()]
)


@st.composite
def handed_over(draw: st.DrawFn) -> Lowerable:
    """The producer and the consumer as a sum over K-tiles, often with an entry lost or swapped with the next."""
    program = by_tiles(producer_consumer())
    phase = draw(st.sampled_from(list(PHASES.values())))
    entries = program.phase(phase)
    slot = draw(st.integers(0, len(entries) - 2))
    edited = draw(
        st.sampled_from(
            [
                entries,
                (*entries[:slot], *entries[slot + 1 :]),
                (*entries[:slot], entries[slot + 1], entries[slot], *entries[slot + 2 :]),
            ]
        )
    )
    return program.with_phases({phase: edited})


def by_tiles(program: LoweredProgram) -> LoweredProgram:
    """The same entries, but told by the K-tiles that the loads fetch."""

    def fetching(entry: Entry) -> Entry:
        fetches = entry.effect.instance.iteration if entry.effect.kind is OpKind.DMA else None
        return dataclasses.replace(entry, effect=dataclasses.replace(entry.effect, fetches=fetches))

    (mma,) = {(e.effect.writes, e.effect.reads) for e in program.kernel if e.effect.kind is OpKind.MMA}
    told = dataclasses.replace(program, semantics=TileSum(products=(TileProduct(mma[0][0], mma[1]),), grid=(1, 1)))
    return told.with_phases({phase: [fetching(entry) for entry in program.phase(phase)] for phase in PHASES.values()})


@st.composite
def loops(draw: st.DrawFn) -> Lowerable:
    """A tiny double buffer with gaps in its synchronisation, or another loop that lost or swapped an entry.

    That is a single buffer, or one of which a producer fills the tiles and a consumer reads them.
    """
    if draw(st.integers(0, 2)) == 0:
        return draw(handed_over())
    if draw(st.booleans()):
        stagger = draw(st.booleans())
        syncs = [(*draw(SYNCS), *([BARRIER] if stagger else [])) for _ in range(SLOTS)]
        return with_syncs(syncs, stagger=stagger)
    loop = waiting_single_buffer(draw(st.integers(1, 2)))
    phase = draw(st.sampled_from(list(PHASES)))
    slot = draw(st.integers(0, len(getattr(loop, phase)) - 2))
    edit: Callable[[list[OpDesc]], list[OpDesc]] = draw(
        st.sampled_from(
            [
                lambda ops: ops,
                lambda ops: ops[:slot] + ops[slot + 1 :],
                lambda ops: [*ops[:slot], ops[slot + 1], ops[slot], *ops[slot + 2 :]],
            ]
        )
    )
    return edited(loop, phase, edit)


def workgroup(loop: Lowerable, trip_count: int, *, compiler_waits: bool) -> Workgroup:
    setup = Setup(trip_count=trip_count, waves_per_role=2, compiler_waits=compiler_waits)
    return setup.workgroup(loop.lowered)


@settings(deadline=None, max_examples=30, derandomize=True)
@given(loop=loops(), trip_count=st.integers(0, 2), compiler_waits=st.booleans())
def test_what_goes_wrong_step_by_step_goes_wrong_in_the_executor(
    loop: Lowerable, trip_count: int, compiler_waits: bool
) -> None:
    done = execute(loop, trip_count, policy=EVERYTHING, waves_per_role=2, compiler_waits=compiler_waits)
    for seed in range(STEPPED_RUNS):
        stepped = random_run(Machine(loop, trip_count, 2, compiler_waits), seed)
        if stepped is None:
            assert done.deadlock
        elif not stepped:
            assert not done.right, f"seed {seed} of the stepped machine"


@settings(deadline=None, max_examples=30, derandomize=True)
@given(loop=loops(), trip_count=st.integers(0, 2), compiler_waits=st.booleans())
def test_every_run_is_a_legal_one_with_the_same_result_step_by_step(
    loop: Lowerable, trip_count: int, compiler_waits: bool
) -> None:
    group = workgroup(loop, trip_count, compiler_waits=compiler_waits)
    order = barrier_order(group)
    if order is not None and order.stuck:
        return
    clock = run_clock(group, FEW)
    done = execute(loop, trip_count, policy=FEW, waves_per_role=2, compiler_waits=compiler_waits)
    for number, run in enumerate(FEW.runs()):
        right = timed_run(Machine(loop, trip_count, 2, compiler_waits), group, clock, number)
        assert right is (run.label not in done.wrong_runs), run.label


def timed_run(machine: Machine, group: Workgroup, clock: Clock, run: int) -> bool:
    """Step the machine through the clock's times; it refuses what the model doesn't allow."""
    issued = {OpKind.GLOBAL_LOAD: 0, OpKind.DMA: 2, OpKind.LDS_READ: 2, OpKind.LDS_WRITE: 2}
    landed = {OpKind.GLOBAL_LOAD: 1, OpKind.DMA: 3, OpKind.LDS_WRITE: 3, OpKind.LDS_READ: 4}
    events: list[tuple[float, int, int, int, bool]] = []
    for wave, program in enumerate(machine.programs):
        trace = group.trace_of(wave)
        for ordinal, (step, _) in enumerate(program):
            rank = issued.get(step.effect.kind, 5)
            events.append((float(clock.steps[run, wave, ordinal]), rank, ordinal, wave, False))
        for number, op in enumerate(trace.memory):
            action = trace.steps[op.step][0].effect.kind
            events.append((float(clock.land[run, wave, number]), landed[action], number, wave, True))
    for _, _, number, wave, lands in sorted(events):
        if lands:
            machine.land(machine.flights[wave][number])
        else:
            machine.execute(wave)
    return machine.right()


@pytest.mark.parametrize("policy", EVERYTHING, ids=lambda policy: policy.runs()[0].label)
def test_orderly_lines_land_in_program_order_and_by_their_cover(policy: Policy) -> None:
    group = workgroup(waiting_single_buffer(3), 3, compiler_waits=True)
    clock = run_clock(group, policy)
    (trace,) = group.traces
    for line in (Line.DS, Line.REGISTER):
        ops = [number for number, op in enumerate(trace.memory) if op.line is line]
        assert (np.diff(clock.land[:, :, ops], axis=2) >= 0).all()
    covered = [number for number, op in enumerate(trace.memory) if op.cover < len(trace.steps)]
    assert covered
    assert (clock.land[:, :, :-1] >= clock.issue[:, :, :-1]).all()
    for number in covered:
        assert (clock.land[:, :, number] <= clock.steps[:, :, trace.memory[number].cover]).all()


def test_random_waves_overtake_each_other_by_whole_epochs() -> None:
    """In some runs a wave has finished an epoch before another starts it, and the other way round in others."""
    group = workgroup(with_syncs([FULL] * SLOTS), 1, compiler_waits=True)
    clock = run_clock(group, Random(seeds=50))
    first, last = group.traces[0].barriers[4] + 1, group.traces[0].barriers[5]
    ends_first = clock.steps[:, 0, last] < clock.steps[:, 1, first]
    ends_last = clock.steps[:, 1, last] < clock.steps[:, 0, first]
    assert ends_first.sum() >= 5
    assert ends_last.sum() >= 5


def test_a_wait_that_is_left_out_by_one_group_only_weakens_that_group() -> None:
    """Waits may be a group's own as well; the stepped machine sees the same."""
    loop = with_syncs([(*FULL, BARRIER)] * SLOTS, stagger=True)

    def own(entry: Entry) -> Entry:
        reads = entry.effect.kind is OpKind.WAIT and entry.effect.counter == "lgkmcnt"
        return dataclasses.replace(entry, roles=(1,)) if reads else entry

    racy = changed(loop, "kernel", own)
    assert not execute(racy, 2, waves_per_role=2, compiler_waits=False).right
    assert not all(random_run(Machine(racy, 2, 2, compiler_waits=False), seed) for seed in range(10))
