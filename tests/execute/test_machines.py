"""Counters, widths, orders and barriers are the machine's: one that was made up runs by its own facts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import pytest

from rota import GFX950, KOffsetKind, OpDesc
from rota.execute.clock import Earliest, Latest, Policy, Random
from rota.execute.executor import execute
from rota.program.entry import ARRIVE, AWAIT, Entry, Op, barrier_ops, wait_effect, wait_op
from rota.program.kinds import Home, OpKind, Phase
from rota.program.loop_spec import LoopOp, LoopSpec, Read, Value
from rota.program.lowered import LoweredProgram
from rota.program.machine import Machine
from tests.execute.declared_loops import bare, gemm, gemm_placement, mended_gemm, placed
from tests.execute.loops import BARRIER, FULL, LGKM, SLOTS, VM, frag, load, with_syncs
from tests.programs.made_up_machine import MADE_UP
from tests.programs.producer_consumer import producer_consumer

TRIPS = range(5)
POLICIES: tuple[Policy, ...] = (Latest(), Earliest(), Random())
ORDERLY = replace(MADE_UP, counters=tuple(replace(counter, in_order=True) for counter in MADE_UP.counters))


def on(machine: Machine, program: LoweredProgram, *, full: bool) -> LoweredProgram:
    """The same entries on another machine: its counters, its barrier; waits for loads count, or are for all of them."""
    names = {"vmcnt": machine.counter_of(OpKind.DMA), "lgkmcnt": machine.counter_of(OpKind.LDS_READ)}

    def translated(entry: Entry) -> Iterator[Entry]:
        effect, counter = entry.effect, names.get(entry.effect.counter or "")
        if effect.kind is OpKind.BARRIER:
            for op, half in barrier_ops(split=machine.split_barrier):
                yield replace(entry, op=op, effect=half)
        elif effect.kind is OpKind.WAIT and counter is not None:
            count = 0 if full and effect.counter == "vmcnt" else effect.wait_value
            yield replace(entry, op=wait_op(counter, count), effect=wait_effect(counter, count))
        else:
            yield replace(entry, effect=replace(effect, counter=counter))

    prologue, kernel, epilogue = (
        tuple(each for entry in program.phase(phase) for each in translated(entry)) for phase in Phase
    )
    return replace(program, machine=machine, prologue=prologue, kernel=kernel, epilogue=epilogue)


def right(program: LoweredProgram) -> bool:
    return all(execute(program, trips, policy=POLICIES).right for trips in TRIPS)


# Order


def counted() -> LoweredProgram:
    """A double buffer whose waits for loads leave those of the other stage in flight."""
    landed, has_read = (OpDesc.wait_vm(2), BARRIER), (LGKM, BARRIER)
    behind = {3: landed, 5: has_read, 8: landed, 10: has_read, 13: landed, 15: (LGKM,), 16: (VM, BARRIER), 18: (LGKM,)}
    return with_syncs([behind.get(slot, ()) for slot in range(SLOTS)]).lowered


def test_only_waits_for_all_cover_anything_on_a_counter_out_of_order() -> None:
    assert right(on(MADE_UP, counted(), full=True))
    assert right(on(ORDERLY, counted(), full=False))
    assert not right(on(MADE_UP, counted(), full=False))


def test_the_machine_that_doubts_vmcnt_is_such_a_machine() -> None:
    program = counted()
    assert right(program)
    assert not right(replace(program, machine=GFX950.doubting("vmcnt")))
    assert right(replace(program, machine=GFX950.doubting("lgkmcnt")))  # whose waits are all for 0


def test_a_producer_out_of_order_waits_for_all_of_its_loads() -> None:
    assert right(producer_consumer(MADE_UP, left=0))
    assert right(producer_consumer(ORDERLY))
    assert not right(producer_consumer(MADE_UP))


def loaded_registers(machine: Machine, left: int) -> LoweredProgram:
    """Two loads into registers and a sum of the first; the wait between leaves some tokens in flight."""
    names = ("x", "y")
    spec = LoopSpec(
        name="loaded",
        waves=4,
        values=(
            *(Value(name=name, home=Home.REGISTERS, size=1) for name in names),
            Value(name="c", home=Home.ACCUMULATOR, size=1),
        ),
        ops=(
            *(LoopOp(name=f"load_{name}", kind=OpKind.GLOBAL_LOAD, writes=(name,)) for name in names),
            LoopOp(name="sum_x", kind=OpKind.VALU, reads=(Read(value="x"),), writes=("c",)),
        ),
    )
    program = replace(bare(spec, placed((0, 1, 2), interval=10)), compiler_tracks_registers=False).lowered
    counter = machine.counter_of(OpKind.GLOBAL_LOAD)
    assert counter is not None
    entries = list(program.kernel)
    entries[:2] = [replace(entry, effect=replace(entry.effect, counter=counter)) for entry in entries[:2]]
    wait = replace(entries[2], op=wait_op(counter, left), effect=wait_effect(counter, left))
    return replace(program, machine=machine, kernel=(*entries[:2], wait, entries[2]))


def test_loads_into_registers_land_in_the_order_that_their_counter_keeps() -> None:
    unordered = replace(
        MADE_UP, counters=tuple(replace(each, in_order=each.name != "global") for each in MADE_UP.counters)
    )
    assert right(loaded_registers(MADE_UP, 1))
    assert not right(loaded_registers(MADE_UP, 2))
    assert right(loaded_registers(unordered, 0))
    assert not right(loaded_registers(unordered, 1))


# Widths


@pytest.mark.parametrize(("count", "covers"), [(0, True), (15, True), (30, True), (31, False), (40, False)])
def test_thirty_one_tokens_are_no_wait_for_lds(count: int, covers: bool) -> None:
    """40 younger tokens stand after the fragments, so that every real wait covers them."""
    younger = frag(2, 0).but(lgkm_cost=40)
    waits = {5: (younger, OpDesc.wait_lgkm(count))}  # after the loop's second fragment
    loop = with_syncs([waits.get(slot, () if slot == 4 else FULL) for slot in range(SLOTS)])
    assert execute(replace(loop, machine=MADE_UP), 2, compiler_waits=False).right is covers


@pytest.mark.parametrize(("count", "covers"), [(0, True), (6, True), (7, False), (62, False)])
def test_seven_tokens_are_no_wait_for_tiles(count: int, covers: bool) -> None:
    """70 younger tokens stand after the prologue's loads; the counter is one that keeps its order."""
    younger = load(2, 0, KOffsetKind.K0).but(vm_cost=70)
    waits = {3: (younger, OpDesc.wait_vm(count), BARRIER)}
    loop = with_syncs([waits.get(slot, () if slot < 3 else FULL) for slot in range(SLOTS)])
    assert execute(replace(loop, machine=ORDERLY), 0).right is covers


# A split barrier


def test_a_barrier_in_two_instructions_is_a_barrier() -> None:
    assert right(on(ORDERLY, with_syncs([FULL] * SLOTS).lowered, full=False))
    assert right(on(MADE_UP, mended_gemm("two stages").lowered, full=True))
    assert right(on(MADE_UP, with_syncs([(*FULL, BARRIER)] * SLOTS, stagger=True).lowered, full=True))


def swapped(program: LoweredProgram, first: str, second: str) -> LoweredProgram:
    """The kernel with the first two neighbours of these names the other way round."""
    entries, names = program.kernel, [entry.op.name for entry in program.kernel]
    slot = next(n for n, pair in enumerate(pairwise(names)) if pair == (first, second))
    kernel = (*entries[:slot], entries[slot + 1], entries[slot], *entries[slot + 2 :])
    return program.with_phases({Phase.KERNEL: kernel})


def test_a_wait_behind_the_arrival_comes_too_late() -> None:
    """A wave says that it is there before its loads have landed."""
    program = on(MADE_UP, mended_gemm("one stage").lowered, full=True)
    assert right(program)
    assert not right(swapped(program, "wait_tiles(0)", ARRIVE.name))


def test_a_read_between_arrival_and_wait_is_not_behind_the_barrier() -> None:
    program = on(MADE_UP, mended_gemm("one stage").lowered, full=True)
    assert not right(swapped(program, AWAIT.name, "read_a"))


@pytest.mark.parametrize("op", [ARRIVE, AWAIT], ids=str)
def test_half_a_barrier_is_none(op: Op) -> None:
    program = on(MADE_UP, mended_gemm("one stage").lowered, full=True)
    (slot, *_) = (n for n, e in enumerate(program.kernel) if e.op == op)
    half = program.with_phases({Phase.KERNEL: (*program.kernel[:slot], *program.kernel[slot + 1 :])})
    done = [execute(half, trips, policy=POLICIES) for trips in (1, 2, 3)]
    assert not all(each.right for each in done)
    assert any(each.deadlock for each in done) is (op is ARRIVE)


# Kinds of op


def stored(kind: OpKind = OpKind.GLOBAL_STORE, read: OpKind = OpKind.LDS_READ) -> LoopSpec:
    """A tile is read, and what comes of it put into memory."""
    homes = {"T": Home.LDS, "r": Home.REGISTERS, "e": Home.REGISTERS, "out": Home.MEMORY}
    return LoopSpec(
        name="stored",
        waves=4,
        values=tuple(Value(name=name, home=home, size=1) for name, home in homes.items()),
        ops=(
            LoopOp(name="load", kind=OpKind.DMA, writes=("T",)),
            LoopOp(name="read", kind=read, reads=(Read(value="T"),), writes=("r",)),
            LoopOp(name="exp", kind=OpKind.TRANSCENDENTAL, reads=(Read(value="r"),), writes=("e",)),
            LoopOp(name="put", kind=kind, reads=(Read(value="e"),), writes=("out",)),
        ),
    )


def in_step(spec: LoopSpec) -> LoweredProgram:
    """One op after the other, all waves meeting after each, and everything waited for."""
    made = bare(spec, placed((0, 1, 2, 3), interval=10), remainder=1)
    program = replace(made, compiler_tracks_registers=False).lowered
    (meet,) = barrier_ops(split=False)

    def waited(entry: Entry) -> Iterator[Entry]:
        yield entry
        for op, effect in (*((wait_op(c, 0), wait_effect(c, 0)) for c in ("vmcnt", "lgkmcnt")), meet):
            yield replace(entry, op=op, effect=effect)

    phases = {phase: [each for entry in program.phase(phase) for each in waited(entry)] for phase in Phase}
    return program.with_phases(phases)


def slot_of(program: LoweredProgram, name: str) -> int:
    return next(n for n, e in enumerate(program.kernel) if e.op.name == name)


def with_kernel(program: LoweredProgram, *entries: Entry) -> LoweredProgram:
    return program.with_phases({Phase.KERNEL: entries})


@pytest.mark.parametrize("kind", [OpKind.GLOBAL_STORE, OpKind.ATOMIC])
@pytest.mark.parametrize("read", [OpKind.LDS_READ, OpKind.LDS_READ_TRANSPOSED])
def test_what_is_put_into_memory_is_compared(kind: OpKind, read: OpKind) -> None:
    program = in_step(stored(kind, read))
    assert right(program)
    for name in ("load", "read", "exp", "put"):
        slot = slot_of(program, name)
        lost = with_kernel(program, *program.kernel[:slot], *program.kernel[slot + 1 :])
        assert not execute(lost, 2, policy=Latest()).right, name
    read_slot = slot_of(program, "read")
    assert program.kernel[read_slot + 2].op == wait_op("lgkmcnt", 0)
    early = with_kernel(program, *program.kernel[: read_slot + 2], *program.kernel[read_slot + 3 :])
    assert not execute(early, 2, policy=POLICIES).right


def test_a_store_may_be_repeated_and_an_atomic_may_not() -> None:
    for kind, harmless in ((OpKind.GLOBAL_STORE, True), (OpKind.ATOMIC, False)):
        program = in_step(stored(kind))
        slot = slot_of(program, "put")
        twice = with_kernel(program, *program.kernel[: slot + 1], *program.kernel[slot:])
        assert execute(twice, 2, policy=Latest()).right is harmless


def test_a_store_of_an_iteration_that_does_not_exist_is_wrong() -> None:
    program = in_step(stored())
    slot = slot_of(program, "put")
    effect = program.kernel[slot].effect
    assert effect.instance is not None
    beyond = replace(effect, instance=effect.instance._replace(iteration=effect.instance.iteration + 9))
    extra = replace(program.kernel[slot], effect=beyond)
    wrong = with_kernel(program, *program.kernel[: slot + 1], extra, *program.kernel[slot + 1 :])
    assert not execute(wrong, 1, policy=Earliest()).right


@pytest.mark.parametrize(("count", "covers"), [(0, True), (1, True), (2, False)])
def test_a_store_has_a_token_on_its_counter(count: int, covers: bool) -> None:
    """A wait that leaves one token leaves the store that is issued after the load.

    That store takes what its register holds by then; the one after it puts the right data in its place.
    """
    program = in_step(stored())
    load_slot, put = slot_of(program, "load"), program.kernel[slot_of(program, "put")]
    before, (first, full, *rest) = program.kernel[:load_slot], program.kernel[load_slot:]
    assert full.op == wait_op("vmcnt", 0)
    wait = replace(full, op=wait_op("vmcnt", count), effect=wait_effect("vmcnt", count))
    assert execute(with_kernel(program, *before, first, put, wait, *rest), 3, policy=POLICIES).right is covers


def test_the_gemm_without_waits_is_wrong_on_any_machine() -> None:
    for machine in (MADE_UP, ORDERLY):
        assert not right(on(machine, bare(gemm(), gemm_placement("two stages")).lowered, full=True))
