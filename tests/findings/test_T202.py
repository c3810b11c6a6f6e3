from __future__ import annotations

from dataclasses import replace

import pytest

from rota import DeclarativeSchedule, KernelGeometry, compile_schedule, mi355x_target
from rota.emit.forms import check_calls
from rota.emit.gemm.gemm_binding import GemmBinding
from rota.emit.gemm.gemm_tile import Element, GemmTile, gemm_tile
from rota.emit.gemm.hip_gemm import emit_gemm
from rota.emit.gemm.program_form import form_of
from rota.errors import EmissionError, Finding
from rota.program.loop_spec import LoopSpec
from rota.targets.devices import GFX942
from rota.values.compile_loop import compile_loop, unroll_bare
from rota.values.unroll import Placement
from tests.emit.gemm_oracle import GEOMETRY, SHAPE
from tests.emit.kernels import SHAPES, SMALL_MI300X
from tests.findings.smallest import raised
from tests.wording.golden import mentions


def test_tokens_that_are_not_the_emitted_instructions_are_refused() -> None:
    finding = raised("T202", lambda: emit_gemm(compile_schedule(DeclarativeSchedule()), KernelGeometry()))
    rows, bytes_a_row, waves, lanes, bytes_a_lane = 128, 128, 8, 64, 16
    assert ("declared", 4) in finding.evidence
    assert ("needed", rows * bytes_a_row // (waves * lanes * bytes_a_lane)) in finding.evidence
    assert finding.fixes[0].startswith("vm_per_load_b=2 ")


@pytest.mark.thorough  # runs for seconds
def test_matrix_instructions_that_are_not_the_emitted_ones_are_refused() -> None:
    shape = SHAPES[SMALL_MI300X]
    spec = shape.loop(instructions=False)
    ops = tuple(replace(op, instructions=op.instructions - 1) if op.instruction else op for op in spec.ops)
    finding = raised("T202", lambda: emit_gemm(compile_loop(replace(spec, ops=ops), GFX942), shape.geometry))
    parts, steps = 2 * 2, 64 // 16
    assert finding.evidence[:2] == (("declared", parts * steps - 1), ("needed", parts * steps))
    assert finding.fixes[0] == f"instructions={parts * steps}"


def test_the_fix_of_a_body_by_stages_is_written() -> None:
    """Each finding's first help in turn, until there is none."""
    knobs: dict[str, int] = {"vm_per_load_a": 4, "vm_per_load_b": 4, "lgkm_per_load_a": 8, "lgkm_per_load_b": 4}
    for _ in knobs:
        target = mi355x_target(2, 2, 1)
        target = replace(target, pipeline=target.pipeline.but(**knobs))
        compiled = compile_schedule(DeclarativeSchedule(target=target), sync="as_written")
        tile = GemmTile(geometry=KernelGeometry(), waves=8, element=Element.BF16, machine=compiled.machine)
        try:
            GemmBinding(compiled, tile)
        except EmissionError as error:
            name, _, value = error.findings[0].fixes[0].split(" ")[0].partition("=")
            knobs[name] = int(value)
        else:
            break
    assert knobs == {"vm_per_load_a": 2, "vm_per_load_b": 2, "lgkm_per_load_a": 8, "lgkm_per_load_b": 4}


def test_one_call_for_ops_on_different_places_is_refused() -> None:
    """Functions of a skeleton are known by their names and numbers; what one call does must be one thing."""
    program = compile_schedule(DeclarativeSchedule()).lowered
    first, second = (entry for entry in program.prologue[:2])
    assert first.effect.writes != second.effect.writes
    finding = raised("T202", lambda: check_calls(form_of(program), [first, replace(second, op=first.op)]))
    assert finding.evidence[0] == ("call", "ops.template load_b<0, 0>(k);")
    check_calls(form_of(program), [first, second, first])


def declared_otherwise(loop: LoopSpec) -> Finding:
    count = len(loop.ops)
    compiled = unroll_bare(loop, Placement(interval=count, starts=tuple(range(count)), copies=()))
    return raised("T202", lambda: GemmBinding(compiled, gemm_tile(compiled, GEOMETRY)))


def test_bytes_that_the_dmas_do_not_move_are_refused() -> None:
    loop = SHAPE.loop(instructions=False)
    first, *others = loop.ops
    finding = declared_otherwise(replace(loop, ops=(replace(first, moved=first.moved // 2), *others)))
    assert mentions(finding.message, "load_A0", "2048", "4096")
    assert finding.fixes == (f"moved={first.moved}",)


@pytest.mark.parametrize("name", ["a0", "c00"])
def test_registers_that_do_not_hold_what_they_are_for_are_refused(name: str) -> None:
    loop = SHAPE.loop(instructions=False)
    size = loop.value(name).size
    values = tuple(replace(value, size=2 * size) if value.name == name else value for value in loop.values)
    finding = declared_otherwise(replace(loop, values=values))
    assert finding.evidence == (("declared", 2 * size), ("taken", size))
