from __future__ import annotations

from dataclasses import replace

import pytest

from rota import GFX950, verify
from rota.errors import GraphError
from rota.kernels.gemm import GEMM_SHAPES
from rota.order.modulo.modulo_problem import ModuloProof
from rota.program.kinds import Home, OpKind
from rota.program.loop_spec import LoopOp, LoopSpec, Read, Value
from rota.solver.limits import Stop
from rota.targets.device import timing_of
from rota.values.buffer_depth import (
    bound_interval,
    derive_allowances,
    derive_precedences,
    modulo_problem,
    select_depths,
)
from rota.values.compile_loop import compile_loop
from rota.values.loop import Loop
from rota.values.op_times import least_copies, time_loop
from tests.findings.smallest import raised


def test_a_stopped_search_gives_a_proved_schedule_all_the_same() -> None:
    """Lists place it at a longer interval; with one copy of each tile loads and reads would take turns."""
    stop = Stop()
    stop.ask()
    with stop.governing():
        found = compile_loop(GEMM_SHAPES[2].loop(instructions=False))
    assert found.certificate is not None
    assert found.modulo is not None
    assert found.modulo.certificate.proof is ModuloProof.OPEN
    assert found.placement is not None
    assert dict(found.placement.copies)["A0"] > 1


def reads_older_versions() -> Loop:
    """b of an op's own iteration, and an older c, where c is made of an older b: each alone does with fewer copies."""
    loop = Loop("older", waves=4)
    tile = loop.tile("A", size=4096)
    loop.load(tile, moved=4096)
    b = loop.fragment("b", tile, registers=1)
    c = loop.valu("c", [Read(value=b, distance=2)], registers=1)
    loop.valu("d", [b, Read(value=c, distance=1)], registers=1)
    return loop


def test_older_versions_need_copies_of_their_own() -> None:
    assert least_copies(reads_older_versions().build()) == {"A": 1, "b": 2, "c": 1, "d": 1}
    compiled = compile_loop(reads_older_versions().build())
    assert compiled.placement is not None
    assert dict(compiled.placement.copies)["b"] >= 2
    assert verify(compiled).clean


def test_copies_that_leave_no_order_are_passed_over() -> None:
    spec = reads_older_versions().build()
    times = time_loop(spec, timing_of(GFX950))
    deep, _ = derive_allowances(spec, GFX950, times)
    with pytest.raises(GraphError, match="G103"):
        modulo_problem(spec, times, least_copies(spec))
    assert all(modulo_problem(spec, times, copies) for copies in select_depths(300, deep, times))


def uneven(small: int, large: int) -> LoopSpec:
    """A small tile that is read three iterations later, and a large one of which two copies fill LDS."""
    loop = Loop("uneven", waves=4)
    for name, size in (("S", small), ("L", large)):
        loop.load(loop.tile(name, size=size), moved=size, instructions=-(-size // 4096))
    b = loop.fragment("b", "L", registers=4)
    loop.valu("total", [b, Read(value="total", distance=1)], registers=1)
    spec = loop.build()
    older = LoopOp(name="read_a", kind=OpKind.LDS_READ, reads=(Read(value="S", distance=3),), writes=("a",), moved=4096)
    return replace(spec, values=(*spec.values, Value(name="a", home=Home.REGISTERS, size=4)), ops=(*spec.ops, older))


def test_a_value_may_have_copies_that_the_others_have_no_room_for() -> None:
    """Alike, both tiles would need four copies, which don't fit; they were refused as if one of each didn't."""
    spec = uneven(4096, 65536)
    compiled = compile_loop(spec)
    assert compiled.placement is not None
    copies = dict(compiled.placement.copies)
    assert copies["S"] >= 3 > copies["L"]
    assert compiled.lds_bytes is not None
    assert compiled.lds_bytes <= GFX950.lds_bytes.value
    assert verify(compiled).clean


def test_what_is_too_large_even_with_the_fewest_copies_is_refused_with_their_size() -> None:
    finding = raised("L103", lambda: compile_loop(uneven(50_000, 65536)))
    assert ("bytes", 3 * 50_000 + 65536) in finding.evidence


def test_no_copies_bear_less_than_the_least_interval() -> None:
    spec = uneven(4096, 100_000)  # of the larger tile there is one copy
    times = time_loop(spec, timing_of(GFX950))
    for allowed in derive_allowances(spec, GFX950, times):
        least = bound_interval(derive_precedences(spec, times), allowed, times.least_interval)
        assert least > times.least_interval
        assert select_depths(least, allowed, times)
        assert select_depths(least - 1, allowed, times) == ()


def test_loads_and_reads_of_a_tile_that_lds_holds_once_take_turns() -> None:
    """No cycle of two ops says that: between the first load's start and the last read's end all others have theirs."""
    loop = Loop("once", waves=4)
    tile = loop.tile("T", size=100_000)
    for number in range(4):
        loop.load(tile, name=f"load{number}", moved=4096)
    for number in range(3):
        loop.fragment(f"f{number}", tile, registers=4)
    spec = loop.build()
    times = time_loop(spec, timing_of(GFX950))
    load, read = times.timings[0], times.timings[-1]
    chain = 3 * load.occupancy + load.latency + 2 * read.occupancy + read.latency
    deep, _ = derive_allowances(spec, GFX950, times)
    assert bound_interval(derive_precedences(spec, times), deep, times.least_interval) == chain
    assert chain > times.least_interval
    made = compile_loop(spec)
    assert made.modulo is not None
    assert made.modulo.certificate.lower == chain


def test_a_cycle_of_the_authors_own_is_reported_all_the_same() -> None:
    values = tuple(Value(name=name, home=Home.REGISTERS, size=1) for name in "pq")
    ops = tuple(
        LoopOp(name=f"make_{made}", kind=OpKind.VALU, reads=(Read(value=used),), writes=(made,))
        for made, used in ("pq", "qp")
    )
    raised("G103", lambda: compile_loop(LoopSpec(name="cycle", waves=4, values=values, ops=ops)))


def deep_in_registers() -> LoopSpec:
    """A tile is read into registers, and values of older iterations are multiplied: deep copies leave no barriers."""
    loop = Loop("older", waves=8)
    loop.load(loop.tile("T", size=1024), moved=1024)
    loop.input("i", registers=8)
    loop.fragment("f", "T", registers=8)
    loop.fragment("g", "T", registers=8)
    loop.valu("v", ["f", "i"], registers=8)
    spec = loop.build()
    own = {"x": "", "y": "g", "z": "", "w": ""}
    loads = {"x": 1, "y": 2, "z": 1, "w": 2}
    sums = {"c": (("y", 1), ("z", 0)), "d": (("x", 2), ("z", 1))}
    values = (
        *(replace(value, size=8) if value.home is Home.REGISTERS else value for value in spec.values),
        *(Value(name=name, home=Home.REGISTERS, size=8, into=into) for name, into in own.items()),
        *(Value(name=name, home=Home.ACCUMULATOR, size=8) for name in sums),
    )
    ops = (
        *(replace(op, moved=512) if op.kind is OpKind.LDS_READ else op for op in spec.ops),
        *(
            LoopOp(name=f"load_{name}", kind=OpKind.GLOBAL_LOAD, writes=(name,), instructions=count, moved=256)
            for name, count in loads.items()
        ),
        *(
            LoopOp(
                name=f"mma_{name}",
                kind=OpKind.MMA,
                reads=tuple(Read(value=value, distance=distance) for value, distance in reads),
                writes=(name,),
                instruction="v_mfma_f32_16x16x32_bf16",
            )
            for name, reads in sums.items()
        ),
    )
    return LoopSpec(name="older", waves=8, values=values, ops=ops)


@pytest.mark.thorough  # runs for seconds
def test_no_setting_that_restricts_wins() -> None:
    """Where the deepest copies leave no room for barriers, those that `most_copies` would allow are tried too."""
    loop = deep_in_registers()
    free = compile_loop(loop, GFX950).modulo
    capped = [compile_loop(loop, GFX950, most_copies=most).modulo for most in (2, 3, 4, 8)]
    assert free is not None
    assert free.ii <= min(each.ii for each in capped if each is not None)


def test_a_schedule_is_the_least_only_of_those_that_it_belongs_to() -> None:
    """Its own copies are more than the few that a search refuted smaller intervals for."""
    found = compile_loop(deep_in_registers(), GFX950)
    assert found.modulo is not None
    copies = dict(found.placement.copies)
    for text in found.modulo.certificate.limits:
        if text.startswith("at most"):
            count, names = text.removeprefix("at most ").split(" copies of ")
            assert all(copies.get(name, 1) <= int(count) for name in names.replace(" and ", ", ").split(", "))
