from __future__ import annotations

from rota import (
    DepEdge,
    DepKind,
    KernelGeometry,
    LoopBody,
    OpDesc,
    OpRole,
    Pipeline4Wave,
    PipelineConfig,
    ResourceKind,
    derive_cross_stage_rotation_edges,
    derive_edges_from_ops,
)


def op(latency: int) -> OpDesc:
    return OpDesc(tag=1, latency=latency, resource=ResourceKind.LDS, role=OpRole.FRAGMENT_LOAD)


def test_starts_follow_the_longest_chain() -> None:
    body = LoopBody([op(5), op(7), op(1), op(2)], [DepEdge(0, 2), DepEdge(1, 2), DepEdge(2, 3)])
    assert body.compute_asap() == (0, 0, 7, 8)
    assert body.critical_path() == 10
    assert body.compute_alap(10) == (2, 0, 7, 8)


def test_loop_carried_edges_do_not_delay_an_iteration() -> None:
    body = LoopBody([op(5), op(7)], [DepEdge(0, 1, DepKind.FLOW, 1), DepEdge(1, 0, DepKind.OUTPUT, 2)])
    assert body.compute_asap() == (0, 0)


def test_equal_bodies_are_equal_values() -> None:
    assert LoopBody([op(1)], []) == LoopBody([op(1)], [])
    assert hash(LoopBody([op(1)], [])) == hash(LoopBody([op(1)], []))


def test_three_partitions_pass_their_accumulators_round() -> None:
    computes = [OpDesc(tag=5, role=OpRole.COMPUTE)] * 3
    edges = derive_edges_from_ops(computes, PipelineConfig(depth=3, num_partitions=3, m_mmas=1, n_mmas=1))
    assert edges == (DepEdge(0, 1), DepEdge(1, 2), DepEdge(2, 0, DepKind.FLOW, 1))


def test_a_rotating_fragment_feeds_the_next_partition_that_computes_from_its_stage() -> None:
    config = PipelineConfig(depth=3, num_partitions=3, m_mmas=1, n_mmas=1, cross_stage_rotation=True)
    compute = OpDesc(tag=5, role=OpRole.COMPUTE)
    body = []
    for partition in range(3):
        ahead = OpDesc(tag=3, role=OpRole.FRAGMENT_LOAD, channel=0, stage=(partition + 2) % 3)
        body += [compute, ahead]
    assert config.rotates(body[1], 0)
    flow = [e for e in derive_cross_stage_rotation_edges(body, config) if e.dep_kind is DepKind.FLOW]
    assert flow == [DepEdge(1, 4), DepEdge(3, 0, DepKind.FLOW, 1), DepEdge(5, 2, DepKind.FLOW, 1)]


def test_the_4_wave_edges_have_no_flow_from_a_rotating_fragment_inside_its_partition() -> None:
    schedule = Pipeline4Wave(KernelGeometry())
    body, config = schedule.build_body(), schedule.config()
    for edge in schedule.derive_edges(body):
        producer = body[edge.producer_idx]
        part = config.partition_of_index(edge.producer_idx, len(body))
        if edge.dep_kind is DepKind.FLOW and config.rotates(producer, part):
            consumer = config.partition_of_index(edge.consumer_idx, len(body))
            assert consumer != part


def test_a_fragment_of_a_stage_no_partition_computes_from_feeds_its_own_partition_next_time() -> None:
    config = PipelineConfig(depth=2, num_partitions=2, m_mmas=1, n_mmas=1)
    body = [OpDesc(tag=3, role=OpRole.FRAGMENT_LOAD, channel=0, stage=5), OpDesc(tag=5, role=OpRole.COMPUTE)] * 2
    edges = derive_cross_stage_rotation_edges(body, config)
    assert {edge.dep_kind for edge in edges} == {DepKind.ANTI}
