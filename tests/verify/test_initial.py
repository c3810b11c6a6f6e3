"""What a carried value holds before the loop: known to the proof and to the executor, each by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rota import Loop, LoopSpec, Read, verify
from rota.compiled.proved import repaired
from rota.execute.executor import execute
from rota.program.entry import Entry
from rota.program.kinds import Home, OpKind
from rota.program.loop_spec import LoopOp, Value
from rota.values.compile_loop import unroll_bare
from rota.values.compiled_loop import CompiledLoop
from rota.values.unroll import Placement

MFMA = "v_mfma_f32_16x16x32_bf16"


def carried(distance: int = 1) -> LoopSpec:
    """`old` is made from the `x` of an iteration before, then `x` anew."""
    loop = Loop("carried", waves=4)
    loop.load(loop.tile("T", size=4096), moved=4096)
    t = loop.fragment("t", "T", registers=4)
    old = loop.valu("old", [Read(value="x", distance=distance), t], registers=4)
    loop.valu("x", [t], registers=4)
    loop.mma(loop.accumulator("c", registers=4), old, t, instruction=MFMA)
    return loop.build()


def staged(spec: LoopSpec, **copies: int) -> CompiledLoop:
    """Computations in the prologue already: the second stage loads and reads, the first computes."""
    counts = {"T": 2, "t": 2, "old": 1, "x": 1} | copies
    starts = (0, 20, 40, 60, 110)
    return unroll_bare(spec, Placement(interval=100, starts=starts, copies=tuple(counts.items())))


def exchanged(entries: Sequence[Entry], first: str, second: str) -> tuple[Entry, ...]:
    places = {entry.op.name: place for place, entry in enumerate(entries)}
    a, b = places[first], places[second]
    swapped = list(entries)
    swapped[a], swapped[b] = swapped[b], swapped[a]
    return tuple(replace(entry, time_slot=slot) for slot, entry in enumerate(swapped))


def test_an_initial_value_overwritten_in_the_prologue_is_refused_and_computes_wrong() -> None:
    spec = carried()
    compiled = repaired(staged(spec))
    assert execute(compiled, 2).right
    wrong = replace(compiled, certificate=None, prologue=exchanged(compiled.prologue, "make_old", "make_x"))
    assert "V106" in {finding.code for finding in verify(wrong).errors}
    done = execute(wrong, 2)
    assert not done.right


def test_two_initial_versions_need_two_copies() -> None:
    """Iteration 0 wants the x of iteration -2 and iteration 1 that of -1: they can't both be in one register."""
    spec = carried(distance=2)
    assert verify(repaired(staged(spec, x=2))).clean
    single = staged(spec, x=1)
    assert "V106" in {finding.code for finding in verify(single).errors}


def test_the_initial_content_of_a_tile_is_known_too() -> None:
    spec = LoopSpec(
        name="tile",
        waves=4,
        values=(
            Value(name="T", home=Home.LDS, size=4096),
            Value(name="t", home=Home.REGISTERS, size=4),
            Value(name="c", home=Home.ACCUMULATOR, size=4),
        ),
        ops=(
            LoopOp(name="read_t", kind=OpKind.LDS_READ, reads=(Read(value="T", distance=1),), writes=("t",)),
            LoopOp(name="load_T", kind=OpKind.DMA, writes=("T",)),
            LoopOp(name="mma_c", kind=OpKind.MMA, reads=(Read(value="t"),), writes=("c",), instruction=MFMA),
        ),
    )
    good = repaired(unroll_bare(spec, Placement(interval=100, starts=(0, 50, 110), copies=(("T", 1), ("t", 2)))))
    assert execute(good, 2).right
    early = replace(good, certificate=None, prologue=exchanged(good.prologue, "read_t", "load_T"))
    assert not verify(early).clean
    assert not execute(early, 2).right
