"""Polish: faster by the cycle model, the same entries, proved, and the same every time."""

import re
from collections import Counter
from dataclasses import replace
from functools import cache
from random import Random

import pytest

from rota import GFX950, verify
from rota.cycles.instructions import encode, in_order, nominal
from rota.cycles.predict import clocks_of, clocks_per_tile
from rota.execute.executor import execute
from rota.execute.semantics import Mixing
from rota.kernels.gemm import BF16, GemmShape
from rota.program.entry import Entry, wait_effect, wait_op
from rota.program.kinds import OpKind, Phase
from rota.targets.device import device_of, timing_of
from rota.values.compile_loop import compile_loop
from rota.values.compiled_loop import CompiledLoop
from rota.values.op_times import time_loop
from rota.values.placement import wanted_landing_slack
from rota.values.polish import FastOrder, find_faster_order, reorder

pytestmark = pytest.mark.thorough  # searches

SHAPE = GemmShape(name="crowded", instruction=BF16, mma=(16, 32), rows=128, columns=96, waves=4)


SLACK = wanted_landing_slack(time_loop(SHAPE.loop(), timing_of(GFX950)))


@cache
def compiled(*, polish: bool) -> CompiledLoop:
    """With the slack that is wished for anyway: where it is asked for, no other placement is tried."""
    return compile_loop(SHAPE.loop(), GFX950, polish=polish, slack=SLACK)


def test_it_is_faster_and_proved() -> None:
    plain, better = compiled(polish=False), compiled(polish=True)
    assert clocks_per_tile(better) < clocks_per_tile(plain)
    assert better.certificate is not None
    assert verify(better).clean


def test_an_order_is_judged_without_encoding_it_again() -> None:
    plain = compiled(polish=False)
    parameters = nominal(device_of(plain.machine))
    code = encode(plain.lowered, parameters)
    for seed in range(5):
        order = Random(seed).sample(range(len(plain.kernel)), len(plain.kernel))
        assert clocks_of(in_order(code, order), parameters) == clocks_per_tile(reorder(plain, order))


def test_it_computes_the_same() -> None:
    for trips in range(4):
        assert execute(compiled(polish=True), trips, semantics=Mixing()).right


def test_only_the_order_of_the_kernel_and_its_waits_differ() -> None:
    plain, better = compiled(polish=False), compiled(polish=True)
    assert plain.placement == better.placement
    for phase in Phase:
        own = [Counter(_stripped(entry) for entry in each.phase(phase)) for each in (plain, better)]
        assert own[1] <= own[0]
        assert all(entry.op.is_framework for entry in own[0] - own[1])
    assert [entry.time_slot for entry in better.kernel] == list(range(len(better.kernel)))


def _stripped(entry: Entry) -> Entry:
    """Without its place; of waits, without the count."""
    counter = entry.effect.counter
    if entry.op.kind is OpKind.WAIT and counter is not None:
        entry = replace(entry, op=wait_op(counter, 0), effect=wait_effect(counter, 0))
    return replace(entry, time_slot=0)


def test_without_it_entries_stand_in_the_order_of_their_starts() -> None:
    plain = compiled(polish=False)
    slots = {
        op.name: start % plain.placement.interval
        for op, start in zip(SHAPE.loop().ops, plain.placement.starts, strict=True)
    }
    period = [slots[entry.op.name] for entry in plain.kernel if not entry.op.is_framework]
    assert period == sorted(slots.values()) * plain.placement.unroll


def test_its_repairs_name_the_entries_where_they_stand() -> None:
    better = compiled(polish=True)
    for repair in better.repairs:
        assert better.phase(repair.phase)[repair.slot].op == repair.op
    places = {f"{entry.op} (kernel[{entry.time_slot}])" for entry in better.kernel}
    ends = [(each.reason, end) for each in better.repairs for end in re.findall(r"\(kernel\[\d+\]\)", each.reason)]
    assert ends
    assert all(any(place.endswith(end) and place in reason for place in places) for reason, end in ends)
    assert [(list(Phase).index(each.phase), each.slot) for each in better.repairs] == sorted(
        (list(Phase).index(each.phase), each.slot) for each in better.repairs
    )


def test_again_gives_the_same() -> None:
    plain = compiled(polish=False)
    assert find_faster_order(plain) == find_faster_order(plain) is not None


def test_an_order_that_is_not_proved_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = compiled(polish=False)
    backwards = tuple(reversed(range(len(plain.kernel))))
    monkeypatch.setattr("rota.values.compile_loop.find_faster_order", lambda _: FastOrder(backwards, 0.0, 0.0))
    kept = compile_loop(SHAPE.loop(), GFX950, slack=SLACK)
    assert kept.kernel == plain.kernel
    assert kept.certificate is not None


def test_two_groups_of_waves_keep_their_order() -> None:
    shape = replace(SHAPE, rows=128, columns=128, waves=8)
    turns = compile_loop(shape.loop(), GFX950, stagger=True, polish=False)
    assert find_faster_order(turns) is None
