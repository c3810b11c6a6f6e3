"""Lowering gives every op of a drawn pipeline the effect that its role and config say, and every phase its entries."""

from __future__ import annotations

from random import Random

import pytest

from rota.program.kinds import Phase
from rota.program.lowered import TileSum
from tests.oracle.by_stages import Stages
from tests.oracle.draw_stages import draw_compiled


@pytest.mark.thorough  # runs for seconds
def test_what_is_lowered_does_what_the_op_says() -> None:
    seen = set()
    for seed in range(60):
        compiled = draw_compiled(Random(seed))
        knobs, config = compiled.schedule_config, compiled.config
        stages = Stages(config, (knobs.lgkm_per_load_a, knobs.lgkm_per_load_b))
        for phase in Phase:
            entries, lowered = compiled.phase(phase), compiled.lowered.phase(phase)
            listed = [entry for entry in lowered if entry.listed]
            assert [str(entry.op) for entry in listed] == [str(entry.op) for entry in entries]
            assert [entry.effect for entry in listed] == [stages.effect(entry.op) for entry in entries]
            assert len(lowered) == len(listed) or config.warp_stagger.enabled
            seen |= {entry.effect.kind for entry in listed}
    assert len(seen) >= 7


@pytest.mark.thorough  # runs for seconds
def test_what_is_declared_is_the_grid_or_every_slice_of_k() -> None:
    for seed in range(60):
        compiled = draw_compiled(Random(seed))
        config, semantics = compiled.config, compiled.lowered.semantics
        assert isinstance(semantics, TileSum)
        stages = Stages(config, (0, 0))
        computed = {(e.writes[0], e.reads) for e in map(stages.effect, compiled.body) if e.kind.computes}
        assert {(each.accumulator, each.operands) for each in semantics.products} >= computed
        slices = {op.subtile for op in compiled.body if not op.is_framework and stages.effect(op).kind.computes}
        size = len(slices) if config.depth == 1 else config.m_mmas * config.n_mmas
        assert len(semantics.products) == size
        per = config.num_partitions
        trip = (compiled.lowered.tiles_per_trip, compiled.lowered.tiles_outside)
        assert trip == ((1, 2) if config.depth == 1 else (per, per))
