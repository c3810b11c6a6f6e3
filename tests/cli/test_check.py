from __future__ import annotations

import re
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import pytest

from rota import KernelGeometry, Pipeline4Wave, compile_schedule
from rota.cli.commands.check import summarise
from rota.errors import Finding, Severity
from rota.kernels.catalogue import shipped_kernels
from rota.order.modulo.modulo_problem import ModuloProof
from rota.values.compiled_loop import CompiledLoop, describe_grain
from tests.campaigns.undisturbed import slowdown
from tests.cli.command import data, rota
from tests.wording.golden import mentions, worded

MOST_SECONDS = 0.7


def test_all_is_well_in_one_line() -> None:
    result = rota("check ping_pong")
    assert result.exit_code == 0
    assert result.stderr == ""
    (line,) = result.stdout.splitlines()
    worded(line)
    assert mentions(line, "ping_pong", "24")
    assert "24" in line


def test_a_loop_by_values_tells_its_interval_and_budgets() -> None:
    # A wave computes 64x64 of 128x128, 64 deep: 4 x 4 x 2 MFMAs of 16x16x32, each of 4 passes of 4 clk.
    line = rota("check gemm_small --set instructions=false").stdout
    worded(line)
    assert mentions(line, "12", "512")
    summary = data("check gemm_small --set instructions=false")["summary"]
    assert summary["lds_bytes"] % (2 * 128 * 64 * 2) == 0  # whole copies of a tile of A and one of B
    assert summary["registers"] >= 128 * 128 // 4 // 64  # the accumulators alone
    assert summary["register_limit"] == 512
    assert summary["lds_limit"] == 160 * 1024


def test_the_best_schedule_is_the_default_and_the_line_says_which_it_is() -> None:
    # 4 x 2 DMAs, 16 LDS reads and 32 MFMAs of one wave, each an op.
    assert mentions(worded(rota("check gemm_small").stdout), "56", "512")
    assert data("check gemm_small --set instructions=false")["summary"]["grain"] == "in tiles"
    assert data("check ping_pong")["summary"]["grain"] is None


@pytest.mark.parametrize("name", [name for name, kernel in shipped_kernels().items() if hasattr(kernel.source, "loop")])
def test_every_shipped_loop_by_values_is_by_instruction(name: str) -> None:
    kernel = shipped_kernels()[name]
    assert kernel.settings()["instructions"].value is True
    source: Any = kernel.source
    fine, coarse = source.loop(), source.loop(instructions=False)
    assert (describe_grain(fine), describe_grain(coarse)) == ("by instruction", "in tiles")


def test_an_order_is_called_by_who_made_it() -> None:
    assert mentions(worded(rota("check ping_pong --set scheduling=greedy").output), "420", "24")
    assert "420" in worded(rota("check ping_pong --set scheduling=identity").output)


def test_an_interval_that_may_not_be_the_least_says_so() -> None:
    compiled = shipped_kernels()["gemm_small"].but("instructions", value=False).compile()
    assert isinstance(compiled, CompiledLoop)
    assert compiled.modulo is not None
    certificate = replace(compiled.modulo.certificate, proof=ModuloProof.OPEN, lower=100)
    line = str(summarise("k", replace(compiled, modulo=replace(compiled.modulo, certificate=certificate))))
    worded(line)
    assert mentions(line, "512", "400")


def test_a_warning_is_not_called_a_note_and_greedy_is_not_called_the_author() -> None:
    compiled = shipped_kernels()["four_wave"].compile()
    assert "24" in worded(str(summarise("k", compiled)))
    findings = tuple(Finding("P105", "", severity=severity) for severity in Severity)
    worded(str(summarise("k", replace(compiled, findings=findings))))
    assert "24" in worded(rota("check ping_pong --set config.scheduling=GREEDY").stdout)


def test_strict_findings_are_the_answer_and_end_in_status_1() -> None:
    result = rota("check four_wave --set sync=strict")
    assert result.exit_code == 1
    assert result.stdout.startswith("error[R10")
    given = data("check four_wave --set sync=strict", status=1)
    assert given["ok"] is False
    codes = {finding["code"] for finding in given["findings"]}
    assert "R102" in codes
    severities = [finding["severity"] for finding in given["findings"]]
    assert severities[0] == "error"
    assert severities == sorted(severities)  # errors, then the notes that explain them


def test_notes_repairs_and_certificate_on_request() -> None:
    brief, full = rota("check four_wave").stdout, rota("check four_wave --notes").stdout
    assert full.startswith(brief.rstrip())
    worded(brief)
    assert sum("wait_lgkm" in line or "added" in line for line in full.splitlines()[1:]) >= 4
    compiled = compile_schedule(Pipeline4Wave(KernelGeometry()))
    assert compiled.certificate is not None
    assert all(each in full for each in compiled.certificate.assumptions)


def test_as_written_is_not_called_proved() -> None:
    result = rota("check four_wave --set sync=as_written")
    assert result.exit_code == 0
    worded(result.stdout.rstrip())


def test_a_witness_is_replayed_and_computes_something_wrong() -> None:
    result = rota("check four_wave --replay r102")
    assert result.exit_code == 1
    worded(result.stdout)
    assert "R102" in result.stdout
    assert result.stderr.startswith("error[R102]")
    assert data("check four_wave --replay R102", status=1)["right"] is False


@pytest.mark.parametrize("kernel", ["ping_pong", "gemm_small --set instructions=false"])
def test_there_is_nothing_to_replay_in_a_proved_kernel(kernel: str) -> None:
    result = rota(f"check {kernel} --replay R102")
    assert result.exit_code == 2
    worded(result.output)
    assert "R102" in result.output


def test_replay_names_the_codes_that_can_be() -> None:
    assert "known: R102" in rota("check four_wave --replay R101").output


def test_a_misspelt_kernel_is_a_usage_error_with_a_guess() -> None:
    result = rota("check four_waves")
    assert result.exit_code == 2
    worded(result.output)
    assert "four_wave" in result.output


def test_kernels_are_listed_with_what_they_are() -> None:
    listed = data("kernels")
    assert [kernel["name"] for kernel in listed] == list(shipped_kernels())
    assert rota("kernels").output.split()[0] == "four_wave"
    full = {kernel["also"]: kernel["name"] for kernel in listed if kernel["also"]}
    assert full["gemm_bf16_128x128x64_4wave"] == "gemm_small"
    full_name, short = (f"{name} --set instructions=false" for name in ("gemm_bf16_128x128x64_4wave", "gemm_small"))
    assert rota(f"check {full_name}").output == rota(f"check {short}").output


CHECK = """
import sys
from rota.cli.main import main
main(["check", "ping_pong"], standalone_mode=False)
assert "ortools" not in sys.modules, "a solver was loaded"
assert "numpy" not in sys.modules
"""


@pytest.mark.thorough  # compiles, or starts commands
def test_a_check_without_a_solver_takes_at_most_0_7_seconds_start_up_included() -> None:
    command = [sys.executable, "-c", CHECK]
    times = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append((time.perf_counter() - start) / slowdown())
    # Noise only ever adds time.
    assert min(times) <= MOST_SECONDS


def test_registers_that_values_share_are_counted_once() -> None:
    shown = rota("check attention --set instructions=false").stdout
    used, limit = map(int, re.findall(r"VGPR (\d+)/(\d+)", shown)[0])
    assert used <= limit == 512
