"""GEMM and attention on real numbers: pipelined loops compute A @ B and softmax attention."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rota import RotaError
from rota.compiled.proved import repaired
from rota.execute.clock import Latest
from rota.execute.executor import execute
from rota.execute.semantics import Attention, Gemm, Mixing, Semantics, run_plainly
from rota.program.kinds import Home, OpKind
from rota.program.loop_spec import LoopOp, LoopSpec, Read, Value
from rota.values.loop import Loop
from rota.values.unroll import Placement
from tests.execute.declared_loops import (
    GEMM_PLACEMENTS,
    MFMA,
    POLICIES,
    attention,
    bare,
    gemm,
    gemm_placement,
    mended_gemm,
    placed,
)

# Loads, reads and computes in one period; the scores a period after the loads; the output two periods after them.
ATTENTION_PLACEMENTS = {
    "one stage": placed((0, 10, 20, 30, 40, 50, 60, 70, 80, 85, 90), m=2),
    "two stages": placed((0, 10, 120, 130, 140, 150, 160, 170, 180, 185, 190), K=2, V=2, m=2),
    "three stages": placed(
        (0, 50, 120, 160, 140, 150, 160, 170, 180, 205, 260), K=2, V=2, m=3, v=2, p=2, alpha=2, scaled=2
    ),
}


def split_gemm() -> LoopSpec:
    """A is loaded in two parts and read as two fragments, each of which has an accumulator of its own."""
    loop = Loop("split", waves=4)
    a, b = (loop.tile(name, size=16384) for name in ("A", "B"))
    loop.load(a, name="load_top", moved=8192, instructions=2)
    loop.load(a, name="load_bottom", moved=8192, instructions=2)
    loop.load(b, moved=16384, instructions=4)
    tops = [loop.fragment(name, a, registers=8, instructions=2) for name in ("a0", "a1")]
    right = loop.fragment("b", b, registers=8, instructions=2)
    for number, top in enumerate(tops):
        loop.mma(loop.accumulator(f"c{number}", registers=32), top, right, instruction=MFMA)
    return loop.build()


@pytest.mark.parametrize("name", GEMM_PLACEMENTS)
def test_a_pipelined_gemm_computes_a_times_b(name: str) -> None:
    spec = gemm()
    for trips in (0, 1, 4):
        done = execute(mended_gemm(name, 1), trips, policy=POLICIES, semantics=Gemm(spec=spec))
        assert done.right, done.first_wrong
    done = execute(bare(spec, gemm_placement(name), 1), 2, semantics=Gemm(spec=spec))
    assert not done.right


def test_parts_and_shares_of_a_tile_are_told_apart() -> None:
    spec = split_gemm()
    semantics = Gemm(spec=spec, rows=1, depth=3)
    compiled = repaired(bare(spec, placed((0, 10, 20, 120, 130, 140, 150, 160), A=2, B=2)))
    for trips in (0, 1, 3):
        done = execute(compiled, trips, policy=POLICIES, semantics=semantics)
        assert done.right, done.first_wrong
    expected = semantics.compute_expected(3, 4)
    assert expected["c0"].shape == (4, 8, 4)
    assert not np.array_equal(expected["c0"], expected["c1"])


def test_what_a_gemm_expects_is_what_its_iterations_add_up_to() -> None:
    spec = split_gemm()
    semantics = Gemm(spec=spec)
    plain = run_plainly(spec, semantics, 5, 4)
    for name, product in semantics.compute_expected(5, 4).items():
        assert np.array_equal(plain.sums[name][0], product)


def test_a_gemm_with_its_operands_swapped_is_wrong() -> None:
    spec = split_gemm()
    swapped = replace(spec, ops=tuple(replace(op, reads=op.reads[::-1]) for op in spec.ops))
    compiled = repaired(bare(swapped, placed((0, 10, 20, 120, 130, 140, 150, 160), A=2, B=2)))
    assert execute(compiled, 1, policy=Latest()).right
    assert not execute(replace(compiled.lowered, semantics=spec), 1, policy=Latest()).right


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize("name", ATTENTION_PLACEMENTS)
@pytest.mark.parametrize("remainder", [0, 1])
def test_pipelined_attention_is_softmax_attention(name: str, remainder: int) -> None:
    spec = attention()
    compiled = repaired(bare(spec, ATTENTION_PLACEMENTS[name], remainder))
    for trips in (0, 1, 2, 4):
        for semantics in (Attention(), None):
            done = execute(compiled, trips, policy=POLICIES, semantics=semantics)
            assert done.right, done.first_wrong
    assert not execute(bare(spec, ATTENTION_PLACEMENTS[name], remainder), 2, semantics=Attention()).right


def test_attention_with_tiles_in_parts() -> None:
    spec = attention(parts=2)
    starts = (0, 5, 10, 15, 120, 130, 140, 150, 160, 170, 180, 185, 190)
    compiled = repaired(bare(spec, placed(starts, K=2, V=2, m=2)))
    done = execute(compiled, 2, policy=POLICIES, semantics=Attention(parts=2, rows=3, keys=1))
    assert done.right, done.first_wrong


def test_the_online_softmax_ends_as_softmax_attention() -> None:
    """Written out once more: the output divided by the sum is softmax(Q K^T / sqrt(d)) V to 1e-9."""
    semantics, waves, total = Attention(rows=4, keys=3, depth=5, width=6), 4, 9
    plain = run_plainly(attention(), semantics, total, waves)
    last = {version.name: value[0] for version, value in plain.made.items() if version.iteration == total - 1}
    k, v = (np.concatenate([semantics.load(name, 0, n, waves) for n in range(total)]) for name in ("K", "V"))
    scores = semantics.queries(waves) @ k.reshape(-1, 5).T
    weights = np.exp(scores) / np.exp(scores).sum(axis=2, keepdims=True)
    output = last["o"] / last["l"][..., np.newaxis]
    np.testing.assert_allclose(output, weights @ v.reshape(-1, 6), rtol=1e-9)
    np.testing.assert_allclose(semantics.softmax_attention(total, waves), output, rtol=1e-9)
    assert not np.allclose(output[0], output[1])  # every wave has queries of its own


def test_a_maximum_that_is_overwritten_too_early_is_wrong() -> None:
    """alpha needs the maximum of the iteration before: one copy of m is too few, in the proof and in the numbers."""
    spec = attention()
    one_copy = placed((0, 10, 20, 30, 40, 50, 60, 70, 80, 85, 90))
    with pytest.raises(RotaError) as caught:
        repaired(bare(spec, one_copy))
    assert {finding.code for finding in caught.value.findings} == {"V106"}
    good = repaired(bare(spec, ATTENTION_PLACEMENTS["one stage"]))
    in_place = {
        place: place._replace(copy=0) for entry in good.kernel for place in (*entry.effect.reads, *entry.effect.writes)
    }
    kernel = tuple(
        replace(
            entry,
            effect=replace(
                entry.effect,
                reads=tuple(in_place[place] for place in entry.effect.reads),
                writes=tuple(in_place[place] for place in entry.effect.writes),
            ),
        )
        for entry in good.kernel
    )
    done = execute(replace(good, kernel=kernel), 2, policy=Latest(), semantics=Attention())
    assert done.first_wrong is not None
    assert "wants m of iteration -1 and finds m of iteration 0" in done.first_wrong


def test_results_may_be_off_by_the_tolerance_and_no_more() -> None:
    spec, total = attention(), 3
    compiled = repaired(bare(spec, ATTENTION_PLACEMENTS["one stage"], 1))

    class Off(Attention):
        __slots__ = ()
        share = 0.0

        def compute_expected(self, total: int, waves: int) -> dict[str, Any]:
            right = Attention.compute_expected(self, total, waves)
            return {name: value * (1 + self.share) for name, value in right.items()}

    for share, right in ((1e-11, True), (1e-7, False)):
        Off.share = share
        done = execute(compiled, total, policy=Latest(), semantics=Off())
        assert done.right is right
        if not right:
            assert done.first_wrong is not None
            assert " is due" in done.first_wrong


def test_all_semantics_are_semantics() -> None:
    for semantics in (Mixing(), Attention(), Gemm(spec=gemm())):
        assert isinstance(semantics, Semantics)


def spec_of(*ops: LoopOp, **homes: Home) -> LoopSpec:
    return LoopSpec(
        name="small",
        waves=4,
        values=tuple(Value(name=name, home=home, size=1) for name, home in homes.items()),
        ops=ops,
    )


LOAD = LoopOp(name="load", kind=OpKind.DMA, writes=("T",))
FRAGMENT = LoopOp(name="frag", kind=OpKind.LDS_READ, reads=(Read(value="T"),), writes=("r",))


@pytest.mark.parametrize(
    ("code", "make"),
    [
        ("D102", lambda: Gemm(spec=attention())),
        ("D102", lambda: Gemm(spec=None)),  # type: ignore[arg-type]
        ("D102", lambda: Gemm(spec=gemm(), rows=0)),
        ("D102", lambda: Gemm(spec=gemm()).initial("c", -1)),
        ("D102", lambda: Attention(keys=0)),
    ],
)
def test_a_loop_of_another_kind_is_refused(code: str, make: Any) -> None:
    with pytest.raises(RotaError) as caught:
        make()
    assert caught.value.findings[0].code == code


def test_attention_knows_its_ops_by_name() -> None:
    spec = spec_of(LOAD, FRAGMENT, T=Home.LDS, r=Home.REGISTERS)
    made = bare(spec, Placement(interval=10, starts=(0, 5), copies=()))
    with pytest.raises(RotaError) as caught:
        execute(made, 1, semantics=Attention())
    (finding,) = caught.value.findings
    assert finding.code == "D105"
    assert "frag" in finding.message


def test_a_product_is_an_mma_that_makes_registers() -> None:
    spec = attention()
    (op,) = spec.writers("o")
    assert (op.name, op.kind, op.instruction) == ("mma_o", OpKind.MMA, MFMA)
    assert op.reads == (Read(value="p"), Read(value="v"), Read(value="scaled"))
    assert spec.value("o") == Value(name="o", home=Home.REGISTERS, size=4)
    assert op.source is not None
    assert op.source.file.endswith("declared_loops.py")
    with pytest.raises(RotaError) as caught:
        Loop("bad", waves=4).product("o", 5, registers=1, instruction=MFMA)  # type: ignore[arg-type]
    assert caught.value.findings[0].code == "D104"
