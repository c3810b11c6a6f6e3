"""The shipped loops by values on real numbers: equal to A @ B, or to a NumPy softmax attention, at every trip count."""

from __future__ import annotations

import pytest

from rota import GFX942, GFX950, Machine
from rota.execute.clock import Earliest, Latest, Random
from rota.execute.executor import execute
from rota.execute.semantics import Attention, AttentionInstructions, Gemm, Semantics
from rota.kernels.attention import ATTENTION, MI300X_ATTENTION, AttentionShape
from rota.kernels.gemm import GEMM_SHAPES, MI300X_GEMM_SHAPES
from rota.program.loop_spec import LoopSpec
from rota.values.compile_loop import compile_loop

pytestmark = pytest.mark.no_cover  # long executions, which the tests of the executor cover shortly

GEMMS = [(shape.loop(instructions=False), GFX950) for shape in GEMM_SHAPES] + [
    (shape.loop(instructions=False), GFX942) for shape in MI300X_GEMM_SHAPES
]
LOOPS: list[tuple[LoopSpec, Machine, Semantics]] = [
    *((spec, machine, Gemm(spec=spec)) for spec, machine in GEMMS),
    (ATTENTION.loop(instructions=False), GFX950, Attention()),
    (MI300X_ATTENTION.loop(instructions=False), GFX942, Attention()),
]


@pytest.mark.parametrize(("spec", "machine", "semantics"), LOOPS, ids=[spec.name for spec, *_ in LOOPS])
def test_a_shipped_loop_computes_what_it_should(spec: LoopSpec, machine: Machine, semantics: Semantics) -> None:
    compiled = compile_loop(spec, machine)
    for trips in range(9):
        ran = execute(compiled, trips, policy=(Latest(), Earliest(), Random(seeds=20)), semantics=semantics)
        assert ran.right, (trips, ran.first_wrong)


FINE: list[tuple[LoopSpec, Machine]] = [
    (GEMM_SHAPES[0].loop(instructions=True), GFX950),
    (GEMM_SHAPES[2].loop(instructions=True), GFX950),
    (GEMM_SHAPES[3].loop(instructions=True), GFX950),
]


@pytest.mark.parametrize(("spec", "machine"), FINE, ids=[spec.name for spec, _ in FINE])
@pytest.mark.parametrize("stagger", [False, True])
def test_single_instructions_compute_the_same(spec: LoopSpec, machine: Machine, *, stagger: bool) -> None:
    if stagger and spec.waves < 8:
        pytest.skip("four waves make no two groups on one SIMD")
    compiled = compile_loop(spec, machine, stagger=stagger)
    for trips in (0, 1, 2, 5):
        ran = execute(compiled, trips, policy=(Latest(), Earliest(), Random(seeds=3)))
        assert ran.right, (trips, ran.first_wrong)


@pytest.mark.parametrize(
    ("shape", "machine"), [(ATTENTION, GFX950), pytest.param(MI300X_ATTENTION, GFX942, marks=pytest.mark.slow)]
)
def test_attention_in_single_instructions_is_a_softmax(shape: AttentionShape, machine: Machine) -> None:
    spec = shape.loop(instructions=True)
    compiled = compile_loop(spec, machine)
    assert compiled.modulo is not None
    assert compiled.modulo.ii == compiled.modulo.certificate.mii.ii
    for trips in (0, 2):
        policy = (Latest(), Earliest(), Random(seeds=1))
        ran = execute(compiled, trips, policy=policy, semantics=AttentionInstructions(spec=spec))
        assert ran.right, (trips, ran.first_wrong)
