from __future__ import annotations

from rota import (
    BlockSizing,
    DoubleBufferTag,
    OpCost,
    OpDesc,
    OpRole,
    ResourceKind,
    TargetCostModel,
    annotate_ops,
    mi355x_single_buffer_target,
    mi355x_target,
)


def test_mi355x_has_the_seeds_numbers() -> None:
    target = mi355x_target()
    load = target.cost_model.cost_of(DoubleBufferTag.LOAD_A)
    fragment = target.cost_model.cost_of(DoubleBufferTag.MMA_LOAD_B)
    mma = target.cost_model.cost_of(DoubleBufferTag.MMA)
    assert load == OpCost(resource=ResourceKind.GLOBAL_MEM, latency=200, role=OpRole.GLOBAL_LOAD)
    assert fragment is not None
    assert (fragment.latency, fragment.vgpr_def) == (20, 8)
    assert mma is not None
    assert (mma.latency, mma.vgpr_def) == (16, 4)
    assert target.pipeline.block_sizing == BlockSizing(heavy=4, light=2, max_globals=1)
    assert mi355x_target(1, 2, 0).pipeline.vm_per_channel(1) == 2


def test_the_single_buffer_target_carries_a_fragment() -> None:
    pipeline = mi355x_single_buffer_target().pipeline
    assert (pipeline.depth, pipeline.num_partitions, pipeline.prologue_fill) == (1, 1, 0)
    assert pipeline.loop_carried.role is OpRole.FRAGMENT_LOAD


def test_a_cost_model_is_a_value() -> None:
    cost = OpCost(resource=ResourceKind.LDS, latency=1, role=OpRole.FRAGMENT_LOAD)
    one, other = TargetCostModel({2: cost, 1: cost}), TargetCostModel({1: cost, 2: cost})
    assert one == other
    assert hash(one) == hash(other)
    changed = one.with_cost(2, latency=9).cost_of(2)
    assert changed is not None
    assert changed.latency == 9
    assert one.cost_of(3) is None


def test_annotation_leaves_framework_ops_alone() -> None:
    (barrier,) = annotate_ops([OpDesc.barrier()], TargetCostModel({}))
    assert barrier is OpDesc.barrier()
