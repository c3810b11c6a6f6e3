"""Loops by values, from declaration to proof."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any, cast

import pytest

from rota import GFX942, GFX950, Machine, ModuloScheduler, count_sync, verify
from rota.kernels.attention import ATTENTION
from rota.kernels.gemm import BF16, GEMM_SHAPES, MI300X_GEMM_SHAPES, GemmShape
from rota.order.modulo.modulo_problem import ModuloProof
from rota.program.loop_spec import LoopSpec, Read
from rota.solver.limits import spent
from rota.values.buffer_depth import Deadline
from rota.values.compile_loop import compile_loop
from rota.values.loop import Loop
from tests.findings.smallest import raised
from tests.wording.golden import mentions, worded

pytestmark = pytest.mark.thorough  # runs for seconds

SHIPPED = [(shape, GFX950) for shape in GEMM_SHAPES] + [(shape, GFX942) for shape in MI300X_GEMM_SHAPES]


@pytest.mark.parametrize(("shape", "machine"), SHIPPED, ids=lambda value: getattr(value, "name", ""))
def test_a_gemm_reaches_the_bound_of_its_mma_unit_and_is_proved(shape: GemmShape, machine: Machine) -> None:
    compiled = compile_loop(shape.loop(instructions=False), machine)
    assert compiled.modulo is not None
    assert compiled.modulo.certificate.proof is ModuloProof.MEETS_BOUND
    worded(str(compiled.modulo.certificate.mii))
    assert compiled.certificate is not None
    assert compiled.lds_bytes is not None
    assert compiled.lds_bytes <= machine.lds_bytes.value
    assert compiled.trip_tiles is not None
    most = 2 if machine is GFX950 else 3  # less LDS leaves fewer copies, and loads wait for more reads
    assert count_sync(compiled.kernel).barriers <= most * compiled.trip_tiles[0]


def test_single_instructions_reach_the_same_interval() -> None:
    compiled = compile_loop(MI300X_GEMM_SHAPES[0].loop(instructions=True), GFX942)
    assert compiled.modulo is not None
    assert compiled.modulo.ii == 1024
    assert verify(compiled).clean


def test_the_fewest_barriers_at_all_leave_loads_no_slack() -> None:
    # With two copies one meeting hands the landed copy over and the copy that was read back.
    loop = GEMM_SHAPES[0].loop(instructions=False)
    fewest, roomy = compile_loop(loop, fewest_barriers=True), compile_loop(loop)
    for compiled in (fewest, roomy):
        assert compiled.modulo is not None
        assert compiled.modulo.certificate.proof is ModuloProof.MEETS_BOUND
        assert verify(compiled).clean
    assert fewest.placement is not None
    assert roomy.placement is not None
    assert fewest.trip_tiles is not None
    assert count_sync(fewest.kernel).barriers == fewest.trip_tiles[0]
    assert len(fewest.placement.barriers) < len(roomy.placement.barriers)
    assert fewest.placement.landing_slack < roomy.placement.landing_slack


def test_without_time_to_search_the_heuristic_still_leads_to_a_proved_loop() -> None:
    compiled = compile_loop(carried(500), scheduler=ModuloScheduler(time_limit=0))
    assert verify(compiled).clean
    assert compiled.placement is not None
    assert compiled.placement.barriers == ()  # those it has were found by the repair


def test_one_time_limit_holds_for_all_searches_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each search had the whole limit, and a compilation many searches."""
    asked: list[float] = []
    search = ModuloScheduler._search

    def watched(self: ModuloScheduler, *given: Any) -> Any:
        asked.append(self.time_limit)
        return search(self, *given)

    monkeypatch.setattr(ModuloScheduler, "_search", watched)
    spec, started = ATTENTION.loop(instructions=False), perf_counter()
    compiled = compile_loop(spec, GFX950, scheduler=ModuloScheduler(time_limit=1, workers=16))
    assert perf_counter() - started < 60  # the proof and the repair have limits of their own
    assert all(seconds <= 1 for seconds in asked)
    assert verify(compiled).clean


def test_patience_runs_out() -> None:
    deadline = Deadline(asked=ModuloScheduler(time_limit=5), started=spent() - 4)
    assert deadline.left == pytest.approx(1)
    assert deadline.scheduler().time_limit == pytest.approx(1)
    assert deadline.scheduler(0.25).time_limit == 0.25
    over = Deadline(asked=ModuloScheduler(time_limit=5), started=spent() - 9)
    assert (over.left, over.scheduler().time_limit) == (0, 0)


def test_the_certificate_speaks_of_versions_and_knows_the_registers() -> None:
    compiled = compile_loop(carried(8))
    assert compiled.placement is not None
    copies = dict(compiled.placement.copies)
    assert compiled.registers is not None
    assert 4 + 1 <= compiled.registers <= 4 * copies.get("a", 1) + copies.get("total", 1)
    assert compiled.certificate is not None
    assert compiled.certificate.not_stated == ()
    (values,) = [text for text in compiled.certificate.obligations if text.startswith("values: ")]
    assert "version" in values  # there is neither an accumulator nor a product in it


@pytest.mark.parametrize("remainder", [0, 1, 2])
def test_iterations_that_do_not_divide_run_outside_the_loop(remainder: int) -> None:
    compiled = compile_loop(GEMM_SHAPES[2].loop(instructions=False), remainder=remainder)
    assert compiled.modulo is not None
    assert compiled.placement is not None
    unroll = dict(compiled.placement.copies)["A0"]
    assert unroll >= 3  # a load of 232 slots with time to spare outlives two intervals of 128
    assert compiled.trip_tiles == (unroll, compiled.modulo.stage_count - 1 + remainder)


def carried(instructions: int) -> LoopSpec:
    """A recurrence: each iteration's sum needs the one before."""
    loop = Loop("scan", waves=4)
    tile = loop.tile("A", size=4096)
    loop.load(tile, moved=4096)
    a = loop.fragment("a", tile, registers=4, instructions=2)
    loop.valu("total", [a, Read(value="total", distance=1)], registers=1, instructions=instructions)
    return loop.build()


def test_a_recurrence_bounds_the_interval_and_is_named() -> None:
    loop = Loop("chain", waves=4)
    tile = loop.tile("A", size=4096)
    loop.load(tile, moved=4096)
    a = loop.fragment("a", tile, registers=4)
    loop.product("c", [a, Read(value="c", distance=1)], registers=4, instruction=BF16, instructions=100)
    compiled = compile_loop(loop.build())
    assert compiled.modulo is not None
    assert compiled.modulo.ii == 400 + 4  # passes, and the wait states until another op may use the result
    assert mentions(worded(str(compiled.modulo)), "mma_c", "404")
    assert compiled.certificate is not None


def test_every_instruction_of_a_tile_takes_a_turn_of_its_wave() -> None:
    """500 vector instructions, 2 reads, and a load with what sets it up."""
    compiled = compile_loop(carried(500))
    assert compiled.modulo is not None
    assert compiled.modulo.ii == 500 + 2 + 3
    assert "505" in worded(str(compiled.modulo))


def test_tiles_that_fit_no_lds_are_refused() -> None:
    huge = replace(GEMM_SHAPES[0], rows=1024, columns=1024)
    finding = raised("L104", lambda: compile_loop(huge.loop(instructions=False)))
    assert ("limit", 256) in finding.evidence
    tiny = replace(GFX950, lds_bytes=GFX950.lds_bytes._replace(value=1024))
    finding = raised("L103", lambda: compile_loop(GEMM_SHAPES[0].loop(instructions=False), tiny))
    assert ("limit", 1024) in finding.evidence
    assert ("bytes", 65536) in finding.evidence


def test_less_lds_means_fewer_copies_and_says_so() -> None:
    wide, narrow = (
        compile_loop(GEMM_SHAPES[2].loop(instructions=False)),
        compile_loop(MI300X_GEMM_SHAPES[2].loop(instructions=False), GFX942),
    )
    assert wide.lds_bytes is not None
    assert wide.lds_bytes >= 3 * 32 * 1024
    assert narrow.lds_bytes == 2 * 32 * 1024


@pytest.mark.parametrize("junk", [None, 3, "gemm"])
def test_junk_is_refused(junk: object) -> None:
    raised("D104", lambda: compile_loop(cast("Any", junk)))
    raised("D104", lambda: compile_loop(carried(1), cast("Any", junk)))


def test_a_negative_remainder_is_refused() -> None:
    raised("D102", lambda: compile_loop(carried(1), remainder=-1))


def test_an_instruction_that_the_machine_lacks_is_refused() -> None:
    loop = Loop("gemm", waves=4)
    tile = loop.tile("A", size=4096)
    loop.load(tile, moved=4096, instructions=4)
    loop.mma(loop.accumulator("c", registers=4), loop.fragment("a", tile, registers=4), instruction=BF16)
    raised("D105", lambda: compile_loop(loop.build(), GFX942))


@pytest.mark.parametrize("length", [2, 5, 6])
def test_values_that_take_over_registers_one_after_the_other_come_in_turn(length: int) -> None:
    """Nobody but the next one reads them, so nothing else keeps the next iteration's first from coming early."""
    loop = Loop("chain", waves=4)
    loop.load(loop.tile("T", size=4096), moved=4096)
    t = loop.fragment("t", "T", registers=4)
    value = loop.valu("v0", [t], registers=4)
    for number in range(1, length):
        value = loop.valu(f"v{number}", [value], registers=4, into=value)
    loop.mma(loop.accumulator("c", registers=4), t, instruction="v_mfma_f32_16x16x32_bf16")
    assert compile_loop(loop.build()).certificate is not None
