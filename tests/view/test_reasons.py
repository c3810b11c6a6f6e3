from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from rota import CompiledSchedule, Loop, OpDesc, Phase
from rota.cycles.timeline import Timeline
from rota.program.kinds import OpKind
from rota.values.compile_loop import unroll_bare
from rota.values.compiled_loop import CompiledLoop
from rota.values.unroll import Placement
from rota.view.scene import Key, Reason, reasons_of
from tests.view.kernels import by_values, four_wave, ping_pong
from tests.wording.golden import worded


def _declared(reason: Reason) -> OpDesc:
    """What the author wrote, which reasons don't read."""
    assert isinstance(reason.entry.op.declared, OpDesc)
    return reason.entry.op.declared


@pytest.mark.parametrize("compiled", [ping_pong()[0], four_wave()[0]], ids=["ping_pong", "four_wave"])
def test_computes_need_the_fragments_of_their_row_and_column(compiled: CompiledSchedule) -> None:
    # Said by the grid alone: mma[m,n] multiplies the fragment of A's half m and of B's half n, of one stage.
    reasons = reasons_of(compiled)
    computes = [reason for reason in reasons.values() if reason.entry.op.kind is OpKind.MMA]
    assert len(computes) == 8 + 8
    for reason in computes:
        fragments = [_declared(reasons[key]) for key in reason.needs]
        own = _declared(reason)
        assert {(op.channel, op.subtile) for op in fragments} == {(0, own.stage), (1, own.subtile)}
        assert {op.stage for op in fragments} == {reason.stage}


def test_versions_agree_with_who_is_said_to_have_made_them() -> None:
    # A loop by values says in its effects which version of a value an op wants: an account that reasons don't read.
    compiled, _ = by_values()
    reasons = reasons_of(compiled)
    effects = {Key(entry.phase, entry.time_slot): entry.effect for entry in compiled.lowered.kernel}
    unroll = compiled.lowered.tiles_per_trip
    checked = 0
    for key, effect in effects.items():
        wanted = {(version.name, version.iteration % unroll) for _, version in effect.wants}
        for need in reasons[key].needs:
            if need in effects:
                made = {(version.name, version.iteration % unroll) for _, version in effects[need].makes}
                assert made & wanted
                checked += 1
    assert checked > 20


@pytest.mark.parametrize("kernel", [ping_pong, four_wave, by_values])
def test_every_entry_has_a_reason(kernel: Callable[[], tuple[CompiledSchedule, Timeline]]) -> None:
    compiled, _ = kernel()
    reasons = reasons_of(compiled)
    for entry in compiled.lowered.entries:
        if not entry.listed:
            continue
        reason = reasons[Key(entry.phase, entry.time_slot)]
        assert reason.entry == entry
        assert reason.source == ("/".join(str(entry.op.source).split("/")[-2:]) if entry.op.source else "")


def test_a_source_line_is_told_with_its_folder_and_without_the_machines_path() -> None:
    sources = {reason.source for reason in reasons_of(ping_pong()[0]).values() if not reason.entry.op.is_framework}
    assert sources
    assert all(re.fullmatch(r"kernels/ping_pong\.py:\d+", source) for source in sources)


def test_a_load_says_whose_buffer_it_overwrites() -> None:
    reasons = reasons_of(ping_pong()[0])
    load = next(r for k, r in reasons.items() if k.phase is Phase.KERNEL and str(r.entry.op) == "load_b s0 t0 k0")
    worded(str(load.lines[0]))
    assert "kernel[" in load.lines[0]
    assert load.lines[0].endswith("mma_load_b s0 t0")


def test_an_operand_of_the_trip_before_is_said_to_be() -> None:
    reasons = reasons_of(ping_pong()[0])
    first = reasons[Key(Phase.KERNEL, 0)]
    assert first.lines[0].endswith("of the trip before brings")
    assert first.needs[0].slot > 0
    assert str(first.needs[0]) == f"kernel[{first.needs[0].slot}]"


def test_a_wait_says_what_it_waits_for() -> None:
    # A half of B is 4 reads and one of A 8 (the listing's own order: b, a, then the wait for 8 and the one for 0).
    reasons = reasons_of(ping_pong()[0])
    waits = {key.slot: reason for key, reason in reasons.items() if key.phase is Phase.KERNEL}
    assert [str(waits[slot].entry.op) for slot in (0, 1, 3, 5)] == [
        "mma_load_b s0 t0",
        "mma_load_a s0 t0",
        "wait_lgkm(8)",
        "wait_lgkm(0)",
    ]
    assert waits[3].lines[:-1] == ("waits for kernel[0] mma_load_b s0 t0: 12 of lgkmcnt are pending, 8 may stay",)
    assert waits[5].lines[:-1] == ("waits for kernel[1] mma_load_a s0 t0: 8 of lgkmcnt are pending, 0 may stay",)


def test_a_wait_for_nothing_says_so() -> None:
    # The 4-wave loop's first wait stands right after the wait of the trip's end, with no load between them.
    compiled, _ = four_wave()
    wait = reasons_of(compiled)[Key(Phase.KERNEL, 0)]
    assert str(wait.entry.op) == "wait_vm(16)"
    assert wait.lines[:1] == ("16 of vmcnt are pending here, so it holds nobody up",)


def test_an_added_barrier_says_why_it_was_added() -> None:
    compiled, _ = four_wave()
    assert compiled.repairs
    reasons = reasons_of(compiled)
    for repair in compiled.repairs:
        assert reasons[Key(repair.phase, repair.slot)].lines[0] == f"added: {repair.reason}"


def test_a_planned_op_says_in_which_slot() -> None:
    compiled, _ = by_values()
    assert isinstance(compiled, CompiledLoop)
    starts = dict(zip((op.name for op in compiled.loop.ops), compiled.placement.starts, strict=True))
    for reason in reasons_of(compiled).values():
        if not reason.entry.op.is_framework:
            slot = starts[reason.entry.op.name] % compiled.placement.interval
            assert f"planned at issue slot {slot} of {compiled.placement.interval}" in reason.lines[-1]


def test_long_lists_of_operands_are_cut() -> None:
    loop = Loop("wide", waves=4)
    tiles = [loop.tile(f"A{number}", size=1024) for number in range(7)]
    for tile in tiles:
        loop.load(tile, instructions=1, moved=1024)
    parts = [loop.fragment(tile.lower(), tile, registers=1, instructions=1) for tile in tiles]
    loop.valu("sum", parts, registers=1, instructions=1)
    spec = loop.build()
    placement = Placement(interval=20, starts=tuple(range(len(spec.ops))), copies=())
    lines = [line for reason in reasons_of(unroll_bare(spec, placement)).values() for line in reason.lines]
    assert any(line.startswith("uses what kernel[") and line.endswith(" and 3 more bring") for line in lines)


def test_an_op_planned_many_periods_late_says_how_many() -> None:
    loop = Loop("deep", waves=4)
    loop.load(loop.tile("A", size=1024), instructions=1, moved=1024)
    loop.valu("x", [loop.fragment("a", "A", registers=1, instructions=1)], registers=1, instructions=1)
    spec = loop.build()
    placement = Placement(interval=4, starts=(0, 5, 14), copies=(("A", 3), ("a", 3), ("x", 1)))
    lines = {str(r.entry.op).split(" ")[0]: r.lines[-1] for r in reasons_of(unroll_bare(spec, placement)).values()}
    worded(str(lines["load_A"]))
    worded(str(lines["read_a"]))
    worded(str(lines["make_x"]))
