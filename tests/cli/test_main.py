from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import click
import pytest

from rota import ProofError, __version__
from rota.cli import main as command
from rota.errors import CODES
from tests.cli.command import data, rota
from tests.wording.golden import mentions, worded


def test_version() -> None:
    assert rota("--version").output.split()[-1] == __version__


def test_help_lists_every_command_once_and_schedule_making_first() -> None:
    shown = re.findall(r"^  (\w+)  +\S", rota("--help").output, re.MULTILINE)
    assert shown == list(command.COMMANDS)
    assert len(set(shown)) == len(shown)
    assert shown[:3] == ["kernels", "check", "show"]


def test_a_misspelt_command_is_a_usage_error() -> None:
    result = rota("chek ping_pong")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert mentions(result.stderr, "chek", "'check'")  # of all commands this one alone is quoted


@pytest.mark.parametrize("line", ["xyzzy", "--chek"])
def test_what_resembles_no_command_is_a_usage_error(line: str) -> None:
    result = rota(line)
    assert (result.exit_code, "'check'" in result.stderr) == (2, False)


def test_the_shell_completes_commands_and_options() -> None:
    for words, number, completed in (("rota ch", 1, "check"), ("rota check --repl", 2, "--replay")):
        result = rota("", _ROTA_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(number))
        assert result.output.split() == [f"plain,{completed}"]


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """A command `fail` that raises what it is told to, from a line of rota's own."""

    def install(error: BaseException) -> None:
        def fail() -> NoReturn:
            raise error

        monkeypatch.setitem(command.main.commands, "fail", click.Command("fail", callback=fail))
        monkeypatch.setattr(command, "authors_line", lambda _: None)

    return install


def test_findings_end_in_status_1(failing: Callable[[BaseException], None]) -> None:
    failing(ProofError.of("R102", "too early"))
    result = rota("fail")
    assert (result.exit_code, result.stdout) == (1, "")
    worded(result.stderr)
    assert "error[R102]" in result.stderr


def test_an_unexpected_error_ends_in_status_3_and_one_line(failing: Callable[[BaseException], None]) -> None:
    failing(RuntimeError("lost"))
    result = rota("fail")
    assert (result.exit_code, result.stdout) == (3, "")
    worded(result.stderr)
    assert "ROTA_DEBUG=1" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_library_fails_on_behalf_of_rota(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "rota.cli.commands.look_up.give", shutil.copy2
    )  # called with a text and a dict, it fails deep inside
    result = rota("explain R102")
    assert result.exit_code == 3
    worded(result.stderr)


def test_the_traceback_is_there_when_asked_for(failing: Callable[[BaseException], None]) -> None:
    failing(RuntimeError("lost"))
    result = rota("fail", ROTA_DEBUG="1")
    assert result.exit_code == 3
    assert "Traceback" in result.stderr


def test_ctrl_c_ends_in_the_shells_status(failing: Callable[[BaseException], None]) -> None:
    failing(KeyboardInterrupt())
    assert rota("fail").exit_code == 130


def test_a_reader_that_went_away_is_no_internal_error() -> None:
    line = "from rota.cli.main import main; main(['explain'])"
    with subprocess.Popen([sys.executable, "-c", line], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        _, stderr = process.communicate()
    assert b"internal error" not in stderr
    assert b"Traceback" not in stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_no_internal_error() -> None:
    line = "from rota.cli.main import main; main(['explain'])"
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-c", line], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert ended.returncode == 2
    worded(ended.stderr)


@pytest.mark.parametrize(("environment", "styled"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_no_color_is_respected(environment: dict[str, str], styled: bool) -> None:
    from click.testing import CliRunner

    result = CliRunner(env=environment).invoke(command.main, ["check", "ping_pong"], color=True)
    assert result.exit_code == 0
    assert ("\x1b[" in result.output) is styled


def test_explain_says_what_a_code_means() -> None:
    assert rota("explain g103").output.startswith(f"G103: {CODES['G103']}\n")
    assert data("explain R102")["family"] == "races"
    assert rota("explain R10").exit_code == 2
    worded(rota("explain X999").output)


def test_explain_lists_every_code() -> None:
    from rota import CODES

    lines = rota("explain").output.splitlines()
    assert [line[:4] for line in lines] == list(CODES)
    assert data("explain") == dict(CODES)


def test_targets_gives_facts_with_confidence_and_source() -> None:
    machines = {machine["name"]: machine for machine in data("targets")}
    assert list(machines) == ["MI355X", "MI300X", "MI350X", "MI325X", "MI300A"]
    facts = {fact["name"]: fact for fact in machines["MI300X"]["facts"]}
    assert (facts["lds_bytes"]["value"], facts["lds_bytes"]["confidence"]) == (65536, "documented")
    assert facts["dma_latency"]["low"] < facts["dma_latency"]["value"] < facts["dma_latency"]["high"]
    assert all(fact["source"] for fact in facts.values())
    names = [fact["name"] for fact in machines["MI300X"]["facts"]]
    assert len(names) == len(set(names))


def test_targets_shows_one_machine_by_either_name() -> None:
    assert rota("targets mi355x").output == rota("targets gfx950").output
    assert "MI300X" not in rota("targets MI355X").output
    refused = rota("targets mi35x")
    assert refused.exit_code == 2
    worded(refused.output)
    assert "mi355x" in refused.output
