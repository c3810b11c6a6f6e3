"""Waits and barriers that a program can do without: what was put in on top goes, what is needed stays."""

import re
from dataclasses import replace

import pytest

from rota import GFX942, GFX950, Machine, verify
from rota.kernels.gemm import BF16, GemmShape
from rota.program.entry import BARRIER, MEETS, Entry, wait_effect, wait_op
from rota.program.kinds import OpKind, Phase
from rota.program.lowered import number_entries
from rota.sync.needless import derive_needed
from rota.values.compile_loop import compile_loop, drop_needless
from rota.values.compiled_loop import CompiledLoop
from tests.sync.drawn import drawn_loop

pytestmark = pytest.mark.thorough  # runs for seconds

SHAPE = GemmShape(name="small", instruction=BF16, mma=(16, 32), rows=64, columns=64, waves=4)


def plain(machine: Machine = GFX950) -> CompiledLoop:
    return compile_loop(SHAPE.loop(), machine, polish=False)


def with_one_more(loop: CompiledLoop, place: int, *, barrier: bool) -> CompiledLoop:
    """Once more what stands in the kernel at a place, a wait for everything or a barrier."""
    op, effect = (BARRIER, MEETS) if barrier else (wait_op("lgkmcnt", 0), wait_effect("lgkmcnt", 0))
    added = Entry(op=op, effect=effect, time_slot=0, phase=Phase.KERNEL)
    return replace(loop, kernel=number_entries([*loop.kernel[:place], added, *loop.kernel[place:]]), repairs=())


def test_what_is_needed_stays_as_it_is() -> None:
    loop = plain()
    assert all(derive_needed(loop.lowered).values())
    assert drop_needless(loop) is loop


def test_a_barrier_beside_a_barrier_goes() -> None:
    loop = plain()
    place = next(number for number, entry in enumerate(loop.kernel) if entry.op.kind is OpKind.BARRIER)
    more = with_one_more(loop, place, barrier=True)
    assert verify(more).clean
    assert drop_needless(more).kernel == loop.kernel


def test_a_stronger_wait_just_before_makes_the_next_one_needless() -> None:
    loop = plain()
    place = next(
        number
        for number, entry in enumerate(loop.kernel)
        if entry.op.kind is OpKind.WAIT and entry.effect.counter == "lgkmcnt"
    )
    more = with_one_more(loop, place, barrier=False)
    lean = drop_needless(more)
    assert verify(lean).clean
    assert len(lean.kernel) == len(loop.kernel)
    assert not any(each is None for each in derive_needed(lean.lowered).values())


def test_waits_that_are_too_strong_are_weakened_or_go() -> None:
    loop = plain()
    strong = tuple(
        replace(entry, op=wait_op(entry.effect.counter, 0), effect=wait_effect(entry.effect.counter, 0))
        if entry.effect.kind is OpKind.WAIT and entry.effect.counter is not None
        else entry
        for entry in loop.kernel
    )
    assert strong != loop.kernel
    lean = drop_needless(replace(loop, kernel=strong))
    assert verify(lean).clean
    assert drop_needless(lean) is lean
    assert any(entry.effect.wait_value for entry in lean.kernel)
    for repair in lean.repairs:
        assert lean.phase(repair.phase)[repair.slot].op == repair.op


@pytest.mark.parametrize("seed", range(3))
def test_repairs_are_renumbered_with_what_is_left(seed: int) -> None:
    loop = compile_loop(drawn_loop(seed), GFX942, polish=False)
    place = next(number for number, entry in enumerate(loop.kernel) if entry.op.kind is OpKind.BARRIER)
    kept = with_one_more(loop, place, barrier=True)
    behind = [
        replace(each, slot=each.slot + (each.phase is Phase.KERNEL and each.slot >= place)) for each in loop.repairs
    ]
    lean = drop_needless(replace(kept, repairs=tuple(behind)))
    assert lean.kernel == loop.kernel
    assert len(lean.repairs) <= len(loop.repairs)
    for repair in lean.repairs:
        assert lean.phase(repair.phase)[repair.slot].op == repair.op
    places = {f"{entry.op} ({phase.at(entry.time_slot)})" for phase in Phase for entry in lean.phase(phase)}
    for repair in lean.repairs:
        ends = re.findall(r"\(\w+\[\d+\]\)", repair.reason)
        assert len(ends) == 2
        assert all(any(place.endswith(end) and place in repair.reason for place in places) for end in ends)
