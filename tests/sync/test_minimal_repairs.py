"""Repairs are the least there is: no cheaper one by full enumeration, and nothing in them can be done without."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rota import DoubleBufferTag, OpDesc, OpRole, PipelineConfig, ResourceKind, verify
from rota.kernels.gemm import GEMM_SHAPES
from rota.pipeline.compiled_pipeline import CompiledPipeline
from rota.program.entry import Entry
from rota.sync.repair import repair
from rota.values.compile_loop import compile_loop
from tests.findings.proofs import fragment, load, loop, mma
from tests.sync.brute_force import Program, cheapest, races
from tests.sync.drawn import drawn
from tests.sync.minimality import cost_of, judged, mended, racy_by_proof, with_less

pytestmark = pytest.mark.no_cover  # many cases: what they run is covered where it is tested by itself

BLOCK = 12


def single(ops: list[OpDesc]) -> CompiledPipeline:
    return replace(loop(prologue=ops), config=PipelineConfig(depth=1, num_partitions=1))


def op(role: OpRole, channel: int = 0) -> OpDesc:
    unit = ResourceKind.MMA_UNIT if role is OpRole.COMPUTE else ResourceKind.NONE
    return OpDesc(tag=DoubleBufferTag.MMA, role=role, channel=channel, resource=unit)


def without_sync(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    return tuple(entry for entry in entries if not entry.op.is_framework)


def test_one_wait_is_shared_by_two_loads_that_must_not_overtake_themselves() -> None:
    fixed = mended(loop(kernel=[load(0), load(1)]))
    assert [str(change.op) for change in fixed.repairs] == ["wait_vm(0)"]
    assert cost_of(fixed.lowered, fixed.repairs) == cheapest(loop(kernel=[load(0), load(1)]))


def test_the_compilers_wait_for_a_younger_read_covers_an_older_store() -> None:
    roles = [(OpRole.SHARED_STORE, 1), (OpRole.FRAGMENT_LOAD, 0), (OpRole.COMPUTE, 0)]
    ops = [*(op(*each) for each in roles), OpDesc.barrier(), op(OpRole.FRAGMENT_LOAD, 1)]
    assert mended(single(ops)).repairs == ()
    assert not races(Program(single(ops)))
    assert not racy_by_proof(single(ops))


@pytest.mark.parametrize(
    "ops",
    [
        [load(0), fragment(0)],
        [load(0), OpDesc.barrier(), fragment(0)],
        [load(0), load(1), OpDesc.wait_vm(6), OpDesc.barrier(), fragment(0), fragment(1)],
        [load(0), OpDesc.wait_vm(0), OpDesc.barrier(), fragment(0), load(0)],
        [fragment(0), fragment(0, channel=1), mma()],
    ],
)
@pytest.mark.parametrize("compiler_waits", [True, False])
@pytest.mark.parametrize("stagger", [None, 0, 1])
def test_a_straight_program_is_mended_at_the_least_cost(
    ops: list[OpDesc], stagger: int | None, *, compiler_waits: bool
) -> None:
    made = replace(loop(prologue=ops, stagger=stagger), compiler_tracks_registers=compiler_waits)
    fixed = mended(made)
    assert not racy_by_proof(fixed)
    assert cost_of(fixed.lowered, fixed.repairs) == cheapest(made)


@pytest.mark.parametrize("block", range(10))
def test_no_cheaper_repair_exists_of_a_drawn_program(block: int) -> None:
    """A share of what `python -m benchmarks.repairs` compares."""
    seeds = range(block * BLOCK, (block + 1) * BLOCK)
    verdicts = {seed: judged(seed, longest=6) for seed in seeds}
    assert {seed: each.complaint for seed, each in verdicts.items() if each.complaint} == {}
    assert any(each.racy and each.tried for each in verdicts.values())


@pytest.mark.parametrize("effort", [1e-9, 1e-3, 1e-2])
def test_a_search_that_was_cut_short_says_so_and_leaves_nothing_needless(
    effort: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = compile_loop(GEMM_SHAPES[0].loop(instructions=False))
    bare = replace(
        compiled,
        prologue=without_sync(compiled.prologue),
        kernel=without_sync(compiled.kernel),
        epilogue=without_sync(compiled.epilogue),
        repairs=(),
        certificate=None,
    )
    least = mended(bare)
    monkeypatch.setattr("rota.sync.repair.EFFORT", effort)
    done = repair(bare.lowered)
    fixed = bare.synchronised(done)
    assert done.cut_short or cost_of(fixed.lowered, done.repairs) == cost_of(least.lowered, least.repairs)
    assert done.cut_short or effort > 1e-9
    assert verify(fixed).clean
    for change, variant in with_less(fixed):
        assert not verify(variant).clean, str(change)


@pytest.mark.parametrize("block", range(5))
def test_nothing_that_a_repair_of_a_drawn_program_adds_can_be_left_out_or_weakened(block: int) -> None:
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        fixed = mended(drawn(seed, longest=15))
        assert not racy_by_proof(fixed)
        for change, variant in with_less(fixed):
            assert racy_by_proof(variant), (seed, str(change))
