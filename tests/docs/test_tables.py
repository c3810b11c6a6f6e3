"""Tables of the documentation that are quick to make are what the code gives."""

from __future__ import annotations

import pytest

from rota import GFX942, GFX950, Machine
from rota.cycles.predict import predict
from rota.isa.binary.toolchain import find_toolchains
from rota.targets.device import timing_of
from tests.campaigns.pages import naive, reference_tables
from tests.campaigns.pages.predict import Row, line, rows
from tests.cycles.test_predict import INSTRUCTIONS, PUBLISHED
from tests.cycles.timed_loops import only_mfmas
from tests.docs.blocks import ROOT

pytestmark = pytest.mark.no_cover  # what pages run counts as covered where it is tested by itself

CYCLES, EMISSION = ((ROOT / "docs" / name).read_text("utf-8") for name in ("cycles.md", "emission.md"))


@pytest.mark.parametrize(("machine", "instruction"), INSTRUCTIONS)
def test_peaks_of_the_model(machine: Machine, instruction: str) -> None:
    published = PUBLISHED[machine.arch, instruction.rsplit("_", 1)[1]]
    reached = [predict(only_mfmas(instruction, machine, waves=waves), band=False).ceiling_tflops for waves in (4, 8)]
    figures = (f"{published}", *(f"{each:.1f}" for each in reached), f"{min(reached) / published - 1:+.2%}")
    assert f"| {machine.name} | `{instruction}` | {' | '.join(figures)} |\n" in CYCLES


@pytest.mark.parametrize("machine", [GFX950, GFX942])
def test_estimates_of_the_model(machine: Machine) -> None:
    for name, estimate in timing_of(machine).estimates:
        shown = f"| `{name}` | {estimate.fact.value} |", f"| `{name}` ({machine.name}) | {estimate.fact.value} |"
        (row,) = [line for line in CYCLES.splitlines() if line.startswith(shown)]
        span = f"{estimate.low} to {estimate.high}"
        assert row.split(" | ")[2].startswith(span), name


QUICK = ("ping_pong", "four_wave", "single_buffer", "gemm_bf16_128x128x64_4wave, in tiles")


@pytest.mark.parametrize("row", [row for row in rows() if row.name in QUICK], ids=lambda row: row.name)
def test_predictions_of_the_shipped_loops(row: Row) -> None:
    assert line(row) in CYCLES.splitlines()


@pytest.mark.skipif(not any(find_toolchains()), reason="no compiler for AMD GPUs")
def test_what_the_compiler_makes_of_naive_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert naive.main([]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("| ---")]
    assert len(rows) == 7
    assert "\n".join(rows[1:]) in EMISSION


def test_the_tables_of_the_reference_are_what_the_code_says() -> None:
    kept = (ROOT / "docs" / "reference_tables.md").read_text("utf-8")
    assert kept == reference_tables.page(), "python -m benchmarks.reference_tables > docs/reference_tables.md"
