"""Operands after A and B: they are ordered, counted, executed and emitted like these."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rota import CompiledPipeline, OpDesc, OpRole, PipelineConfig, compile_schedule, double_buffer_reorder
from rota.emit.gemm.gemm_binding import GemmBinding
from rota.emit.gemm.gemm_tile import BlockScales, Factor, ScaleDma, ScaleRead, gemm_tile
from rota.execute.executor import execute
from rota.program.lowered import TileSum
from tests.findings.smallest import raised

EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "mx_matmul.py"))
GEOMETRY = EXAMPLE["GEOMETRY"]
BASE: Any = EXAMPLE["MxMatmul"]


def changed(ops: Callable[[OpDesc], tuple[OpDesc, ...]] = lambda op: (op,), **fields: Any) -> CompiledPipeline:
    """The MX matmul with other ops and other channels, as the rules give it."""

    class Changed(BASE):  # type: ignore[misc]  # a class of the example
        def config(self) -> PipelineConfig:
            config: PipelineConfig = super().config()
            return config.but(further_channels=tuple(replace(each, **fields) for each in config.further_channels))

        def build_body(self) -> tuple[OpDesc, ...]:
            return tuple(new for op in super().build_body() for new in ops(op))

    return compile_schedule(Changed(), sync="as_written")


def bound(made: CompiledPipeline) -> GemmBinding:
    return GemmBinding(made, gemm_tile(made, GEOMETRY))


def test_a_product_has_four_operands_two_of_which_scale() -> None:
    semantics = changed().lowered.semantics
    assert isinstance(semantics, TileSum)
    assert semantics.scales == (0, 1)
    assert {tuple(place.copy for place in each.operands) for each in semantics.products} == {
        (0, 0, 0, 0),
        (0, 1, 0, 1),
        (1, 0, 1, 0),
        (1, 1, 1, 1),
    }


def test_a_load_of_a_whole_tile_fills_every_subtile() -> None:
    for entry in changed().lowered.entries:
        if entry.op.name.startswith("load_scales"):
            assert [place.part for place in entry.effect.writes] == [0, 1]
            assert (entry.op.work and entry.op.work.instructions, entry.effect.tokens) == (1, 1)


def test_interleaving_reads_scales_before_the_compute_that_needs_them() -> None:
    made = changed()
    ordered = double_buffer_reorder(made.body, made.config)
    assert sorted(map(str, ordered)) == sorted(map(str, made.body))
    seen: set[tuple[int, int, int]] = set()
    partition = 0
    for index, op in enumerate(ordered):
        partition = made.config.partition_of_index(index, len(ordered))
        if op.role is OpRole.FRAGMENT_LOAD:
            seen.add((op.channel, op.stage, op.subtile))
        if op.role is OpRole.COMPUTE:
            needed = [(each, partition, made.config.compute_match_key(each, op)) for each in made.config.channels]
            assert seen.issuperset(needed)


def test_scales_are_numbers_that_the_executor_multiplies_by() -> None:
    assert all(execute(changed(), trips).right for trips in range(3))
    late = changed(lambda op: (op.but(stage=0) if op.name == "read_scales_b" else op,))
    wrong = execute(late, 1).first_wrong
    assert wrong is not None
    assert "B_scale" in wrong


def test_an_uncounted_channel_is_named() -> None:
    finding = next(iter(changed(vm_per_load=0).uncounted()))
    assert (finding.code, dict(finding.evidence)["not stated"]) == (
        "D110",
        "vm_per_load of A_scale, vm_per_load of B_scale",
    )


def test_scales_bind_to_the_instructions_of_their_parts() -> None:
    made = changed()
    binding = bound(made)
    assert binding.tile.scales is BlockScales.MX
    found = [each for entry in made.lowered.entries for each in binding.instructions(entry)]
    assert {(each.operand, each.part) for each in found if isinstance(each, ScaleRead)} == {
        (operand, part) for operand in Factor for part in range(binding.tile.parts(operand))
    }
    assert {each.operand for each in found if isinstance(each, ScaleDma)} == set(Factor)


def test_a_load_of_some_scales_is_not_written() -> None:
    def both(op: OpDesc) -> tuple[OpDesc, ...]:
        return (op, op.but(subtile=1)) if op.name.startswith("load_scales") else (op,)

    made = changed(both, whole_tile=False)
    assert execute(made, 2).right
    raised("T203", lambda: bound(made))


@pytest.mark.parametrize("knob", ["vm_per_load", "lgkm_per_load"])
def test_scales_that_are_miscounted_are_not_written(knob: str) -> None:
    miscounted: dict[str, Any] = {knob: 3}
    finding = raised("T202", lambda: bound(changed(**miscounted)))
    assert finding.fixes[0].startswith(f"{knob}=")
    assert "A_scale" in finding.fixes[0]


def test_scales_of_other_rows_are_no_product() -> None:
    finding = raised("T206", lambda: bound(changed(match_field=0)))
    assert ("due", "A_scale[0], B_scale[1]") in finding.evidence


def test_operands_of_other_names_are_no_product() -> None:
    class Others(BASE):  # type: ignore[misc]  # a class of the example
        def config(self) -> PipelineConfig:
            config: PipelineConfig = super().config()
            named = (replace(each, name=f"zero_{n}") for n, each in enumerate(config.further_channels))
            return config.but(further_channels=tuple(named))

    made = compile_schedule(Others())
    assert made.certificate is not None
    assert "zero_0" in raised("T206", lambda: bound(made)).message
