"""Attention in single instructions equals a softmax over all keys, and any instruction left out shows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rota import GFX950
from rota.compiled.proved import repaired
from rota.execute.clock import Latest
from rota.execute.executor import execute
from rota.execute.semantics import AttentionInstructions, run_plainly
from rota.kernels.attention import ATTENTION, MI300X_ATTENTION, AttentionShape
from rota.kernels.gemm import GEMM_SHAPES
from rota.program.kinds import OpKind
from rota.program.loop_spec import LoopSpec
from rota.values.compile_loop import unroll_bare
from rota.values.compiled_loop import CompiledLoop
from rota.values.unroll import Placement
from tests.findings.smallest import raised

SMALL = replace(ATTENTION, rows=16, keys=32, head=32, waves=2, dma_bytes=4)


@pytest.mark.parametrize("shape", [ATTENTION, MI300X_ATTENTION, SMALL], ids=["MI355X", "MI300X", "small"])
@pytest.mark.parametrize("total", [1, 3])
def test_one_iteration_after_the_other_is_a_softmax(shape: AttentionShape, total: int) -> None:
    spec = shape.loop(instructions=True)
    semantics = AttentionInstructions(spec=spec)
    plain = run_plainly(spec, semantics, total, spec.waves)
    due = semantics.compute_expected(total, spec.waves)
    assert len(due) == len([value for value in spec.values if is_carried(spec, value.name)])
    for name, right in due.items():
        made = next(made for version, made in plain.made.items() if version == (name, total - 1))
        assert abs(made[0] - right).max() < 1e-12 * abs(right).max()


def is_carried(spec: LoopSpec, name: str) -> bool:
    return any(read.value == name and read.distance for op in spec.ops for read in op.reads)


def one_after_another(spec: LoopSpec) -> CompiledLoop:
    """Every op in its own slot, one iteration at a time: nothing overlaps."""
    starts = tuple(range(len(spec.ops)))
    copies = tuple((value.name, 2 if value.name == "m0_0_0" else 1) for value in spec.values if not value.into)
    return repaired(unroll_bare(spec, Placement(interval=len(spec.ops), starts=starts, copies=copies)))


@pytest.mark.thorough  # runs for seconds
def test_an_instruction_left_out_shows() -> None:
    spec = SMALL.loop(instructions=True)
    semantics = AttentionInstructions(spec=spec)
    compiled = one_after_another(spec)
    assert compiled.machine == GFX950
    assert execute(compiled, 2, policy=Latest(), semantics=semantics).right
    # A maximum changes nothing where another column has the largest score.
    vector = [op.name for op in spec.ops if op.kind in (OpKind.VALU, OpKind.MMA) and not op.name.startswith("make_m")]
    assert len(vector) > 30
    for name in vector[::5]:
        kernel = tuple(entry for entry in compiled.kernel if entry.op.name != name)
        kernel = tuple(replace(entry, time_slot=slot) for slot, entry in enumerate(kernel))
        assert not execute(replace(compiled, kernel=kernel), 3, policy=Latest(), semantics=semantics).right, name


def test_another_loop_is_refused() -> None:
    finding = raised("D102", lambda: AttentionInstructions(spec=GEMM_SHAPES[0].loop(instructions=False)))
    assert "attention" in str(finding)
