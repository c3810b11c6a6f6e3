from __future__ import annotations

from itertools import pairwise

import pytest

from rota import (
    BlockSizing,
    ChannelSpec,
    DeclarationError,
    DeclarativeSchedule,
    FragOrder,
    KernelGeometry,
    KOffsetKind,
    LoopCarriedSpec,
    OpDesc,
    OpRole,
    Pipeline4Wave,
    PipelineBody,
    PipelineConfig,
    SingleBufferSchedule,
    WarpStaggerRule,
    derive_edges_from_ops,
)


def test_factories_hold_the_documented_values() -> None:
    assert BlockSizing.default_2x2() == BlockSizing(heavy=4, light=2, max_globals=0)
    assert BlockSizing.uniform(3) == BlockSizing(heavy=3, light=3, max_globals=0)
    assert FragOrder.b_first().b_before_a
    assert not FragOrder.a_first().b_before_a
    assert not WarpStaggerRule.none().enabled
    assert WarpStaggerRule.auto().compute_from_body
    assert WarpStaggerRule.fixed(5).fixed_amount == 5
    assert LoopCarriedSpec.fragment_zero().role is OpRole.FRAGMENT_LOAD
    assert LoopCarriedSpec.none().role is OpRole.NONE


def test_counts_of_a_2x3_grid_in_two_partitions() -> None:
    config = PipelineConfig(m_mmas=2, n_mmas=3)
    assert (config.mmas_per_partition, config.globals_per_partition, config.frags_per_partition) == (6, 5, 5)
    assert (config.ops_per_partition, config.blocks_per_partition) == (16, 6)
    assert (config.total_mmas, config.total_globals, config.total_frags) == (12, 10, 10)
    assert (config.total_ops, config.total_blocks) == (32, 12)


@pytest.mark.parametrize(("length", "partitions", "parts"), [(7, 2, "0001111"), (6, 3, "001122"), (5, 3, "01122")])
def test_a_list_is_cut_evenly(length: int, partitions: int, parts: str) -> None:
    config = PipelineConfig(depth=1, num_partitions=partitions)
    cut = [config.partition_of_index(index, length) for index in range(length)]
    assert "".join(map(str, cut)) == parts
    bounds = [length * part // partitions for part in range(partitions + 1)]
    assert [cut.count(part) for part in range(partitions)] == [b - a for a, b in pairwise(bounds)]


def test_match_fields_pick_row_or_column() -> None:
    compute = OpDesc.logical(5, stage=1, subtile=2)
    plain, swapped = PipelineConfig(), PipelineConfig(ch0_match_field=1, ch1_match_field=0)
    assert [plain.compute_match_key(channel, compute) for channel in (0, 1)] == [1, 2]
    assert [swapped.compute_match_key(channel, compute) for channel in (0, 1)] == [2, 1]


def test_costs_per_channel_fall_back_to_the_schedule_config() -> None:
    config = PipelineConfig(vm_per_load_a=3, vm_per_load_b=5, lgkm_per_load_b=7)
    assert [config.vm_per_channel(channel) for channel in (0, 1)] == [3, 5]
    assert [config.lgkm_per_channel(channel, 8, 4) for channel in (0, 1)] == [8, 7]


def test_further_channels_have_names_fields_and_tokens_of_their_own() -> None:
    rows = ChannelSpec(name="A_scale", match_field=0, vm_per_load=1, lgkm_per_load=6, whole_tile=True)
    columns = ChannelSpec(name="B_scale", match_field=1)
    config = PipelineConfig(m_mmas=3, n_mmas=2, lgkm_per_load_b=7, further_channels=(rows, columns))
    compute = OpDesc.logical(5, stage=1, subtile=2)
    assert [config.operand_name(channel) for channel in (0, 1, 2, 3, 4)] == ["A", "B", "A_scale", "B_scale", "4"]
    assert [config.compute_match_key(channel, compute) for channel in config.channels] == [1, 2, 1, 2]
    assert [config.vm_per_channel(channel) for channel in config.channels] == [4, 4, 1, 0]
    assert [config.lgkm_per_channel(channel, 8, 9) for channel in config.channels] == [8, 7, 6, 0]
    assert (config.globals_per_partition, config.frags_per_partition) == (3 + 2 + 1 + 2, 3 + 2 + 3 + 2)


@pytest.mark.parametrize("further", [(False, False), (True, True), (True, False)])
def test_edges_of_further_channels_are_counted(*, further: tuple[bool, bool]) -> None:
    specs = tuple(
        ChannelSpec(name=f"S{field}", match_field=field, whole_tile=whole) for field, whole in enumerate(further)
    )
    config = PipelineConfig(m_mmas=2, n_mmas=3, further_channels=specs)
    body = PipelineBody()
    for stage, k in enumerate((KOffsetKind.K0, KOffsetKind.K1)):
        for channel, parts in enumerate((2, 3, 2, 3)):
            for tile in range(parts):
                body.frag(channel, channel=channel, stage=stage, subtile=tile)
                if tile == 0 or channel < 2 or not further[channel - 2]:
                    body.load(4 + channel, channel=channel, stage=stage, subtile=tile, k_offset=k)
        body.grid(8, 2, 3)
    roles = [OpRole.FRAGMENT_LOAD] * 4 + [OpRole.GLOBAL_LOAD] * 4 + [OpRole.COMPUTE]
    ops = [op.but(role=roles[op.tag]) for op in body.build()]
    assert len(ops) == config.total_ops
    canonical = config.m_mmas  # one load of A completes a tile, and so has no ANTI edges; this body's doesn't
    assert len(derive_edges_from_ops(ops, config)) == config.total_edges + canonical


@pytest.mark.parametrize("name", ["A", "B", "", "two words", "2"])
def test_a_further_channel_has_a_name_that_is_free(name: str) -> None:
    with pytest.raises(DeclarationError, match="D102"):
        ChannelSpec(name=name, match_field=0)


def test_further_channels_differ_and_need_two_stages() -> None:
    spec = ChannelSpec(name="S", match_field=0)
    with pytest.raises(DeclarationError, match="D102"):
        PipelineConfig(further_channels=(spec, spec))
    with pytest.raises(DeclarationError, match="D106"):
        PipelineConfig(depth=1, num_partitions=1, further_channels=(spec,))
    with pytest.raises(DeclarationError, match="D104"):
        PipelineConfig(further_channels=("S",))  # type: ignore[arg-type]


def test_three_stages_fill_with_three_offsets() -> None:
    config = PipelineConfig(depth=3, num_partitions=3)
    assert [config.stage_k_offset(stage) for stage in range(3)] == [KOffsetKind.K0, KOffsetKind.K1, KOffsetKind.K_NEXT]


@pytest.mark.parametrize(
    "schedule", [Pipeline4Wave(KernelGeometry()), DeclarativeSchedule(), SingleBufferSchedule(num_k_tiles=4)]
)
def test_total_edges_counts_what_the_rules_derive(
    schedule: Pipeline4Wave | DeclarativeSchedule | SingleBufferSchedule,
) -> None:
    body = schedule.build_body()
    assert schedule.config().total_edges == len(schedule.derive_edges(body))
    if not schedule.config().cross_stage_rotation:
        assert tuple(schedule.derive_edges(body)) == derive_edges_from_ops(body, schedule.config())
