from __future__ import annotations

import pytest

from rota.cli.commands.emit import source_of
from tests.cli.command import data, rota
from tests.wording.golden import mentions, worded


@pytest.mark.thorough  # runs for seconds
@pytest.mark.usefixtures("_toolchain")
def test_a_line_for_each_trip_count() -> None:
    result = rota("run gemm_small --trips 1,0,1 --seeds 1")
    assert result.exit_code == 0, result.output
    head, *lines = result.stdout.splitlines()
    assert head.startswith("gemm_small by ")
    assert [line.split(",")[0] for line in lines] == ["  1 trip", "  0 trips"]
    assert all(mentions(worded(line), "11 runs") for line in lines)


@pytest.mark.thorough  # runs for seconds
@pytest.mark.usefixtures("_toolchain")
def test_wrong_machine_code_ends_in_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_a_wait(*arguments: object) -> str:
        source = source_of(*arguments)  # type: ignore[arg-type]
        lines = source.splitlines()
        number = next(number for number, line in enumerate(lines) if line.strip().startswith("ROTA_WAIT_VM("))
        return "\n".join([*lines[:number], *lines[number + 1 :], ""])

    monkeypatch.setattr("rota.cli.code_file.source_of", without_a_wait)
    given = data("run gemm_small --set instructions=false --trips 0 --seeds 0", status=1)
    assert given["ok"] is False
    (run,) = given["runs"]
    assert run["right"] == 0
    assert {"I106", "I109", "I110"} & {finding["code"] for finding in run["findings"]}


@pytest.mark.parametrize("trips", ["x", "1,,2", "-1", "1001", ""])
def test_trips_that_are_no_numbers_are_a_usage_error(trips: str) -> None:
    result = rota(f"run gemm_small --trips '{trips}'")
    assert result.exit_code == 2
    assert "as 0,1,2,5" in result.output


def test_a_compiler_that_is_not_there_is_a_finding() -> None:
    result = rota("run ping_pong --compiler no-such-compiler")
    assert result.exit_code == 1
    assert result.stderr.startswith("error[T101]")
