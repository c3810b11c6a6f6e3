"""A schedule as Mojo: its tables are the schedule's entries, its machine code the schedule, and C is right."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from rota import CompiledSchedule
from rota.emit.gemm.gemm_plan import gemm_plan
from rota.errors import EmissionError, ToolchainError
from rota.isa.launch.interleaving import some_interleavings
from rota.languages.language_code import LanguageCode
from rota.languages.mojo import compile_mojo, read_assembly, table_rows, tables_by_mojo
from rota.pipeline.op import OpDesc
from rota.program.kinds import Phase
from tests.emit.kernels import SMALL, Emitted, by_values, four_wave, ping_pong

pytestmark = pytest.mark.thorough  # compiles kernels


@cache
def staggered() -> LanguageCode:
    return compile_mojo(*ping_pong())


def test_mojo_lowers_as_it_did_when_this_was_written() -> None:
    """A version that adds or moves anything fails here."""
    audit = staggered().audit()
    assert audit.exact, "\n\n".join(map(str, audit.findings))
    assert audit.certificate is not None


def test_c_is_right() -> None:
    program = staggered().program()
    for order in some_interleavings(program.waves, 2):
        assert program.launch(1, order).right


def test_mojo_reads_the_table_that_was_written() -> None:
    compiled, geometry = four_wave()
    assert tables_by_mojo(compiled, geometry) == table_rows(gemm_plan(compiled, geometry))


@pytest.mark.parametrize("emitted", [ping_pong, four_wave])
def test_the_rows_of_a_schedule_by_stages_are_its_entries_field_by_field(emitted: object) -> None:
    compiled, geometry = emitted()  # type: ignore[operator]
    rows = table_rows(gemm_plan(compiled, geometry))
    planned: CompiledSchedule = gemm_plan(compiled, geometry).compiled
    for phase in Phase:
        assert len(rows[phase]) == len(planned.phase(phase)) > 0
        for row, entry in zip(rows[phase], planned.phase(phase), strict=True):
            op: OpDesc = entry.op
            assert row[:3] == (op.tag, op.stage, op.subtile)
            assert row.k_offset == op.k_offset.value
            assert row[4:7] == (op.vm_cost, op.lgkm_cost, op.wait_value)
            assert (row.resource, row.role) == (op.resource.name, op.role.name)
            assert row[10:13] == (op.channel, op.vgpr_def, op.vgpr_kill)
            assert (row.latency, row.time_slot, row.phase) == (op.latency, entry.time_slot, phase.name)
            assert row.is_prefetch is entry.is_prefetch


@pytest.mark.parametrize("emitted", [by_values("gemm_bf16_256x256x64_8wave")], ids=["gemm_8wave"])
def test_the_rows_of_a_loop_by_values_say_what_its_entries_do(emitted: Emitted) -> None:
    plan = gemm_plan(*emitted)
    rows = table_rows(plan)
    for phase in Phase:
        for row, entry in zip(rows[phase], plan.program.phase(phase), strict=True):
            effect = entry.effect
            assert row.time_slot == entry.time_slot
            if entry.op.is_framework:
                assert row.wait_value == effect.wait_value
            else:
                assert row.vm_cost == (effect.tokens if effect.counter == "vmcnt" else 0)
                assert row.lgkm_cost == (effect.tokens if effect.counter == "lgkmcnt" else 0)


def test_an_op_that_is_less_than_a_slice_has_no_row() -> None:
    with pytest.raises(EmissionError) as caught:
        table_rows(gemm_plan(*by_values(SMALL, instructions=True)))
    assert caught.value.findings[0].code == "T203"


def test_a_folder_without_assembly_says_so(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError) as caught:
        read_assembly(tmp_path, "gfx950")
    assert caught.value.findings[0].code == "T103"
