from __future__ import annotations

import pytest
from click.testing import CliRunner, Result

from rota import __version__
from rota.cli.main import main


def run(*words: str) -> Result:
    return CliRunner().invoke(main, words)


def test_version() -> None:
    assert run("--version").output.strip() == f"rota, version {__version__}"


def test_kernels_are_listed_and_each_can_be_shown() -> None:
    names = run("kernels").output.split()
    assert names == ["four_wave", "ping_pong", "single_buffer"]
    for name in names:
        shown = run("show", name)
        assert shown.exit_code == 0
        assert "kernel:" in shown.output


def test_a_misspelt_kernel_is_a_usage_error_with_a_guess() -> None:
    result = run("show", "four_waves")
    assert result.exit_code == 2
    assert "did you mean 'four_wave'?" in result.output


def test_explain_says_what_a_code_means() -> None:
    assert run("explain", "G103").output.startswith("G103: ops depend on each other in a circle")
    assert run("explain", "X999").exit_code == 2


@pytest.mark.parametrize("command", ["show", "kernels", "explain"])
def test_every_command_has_help(command: str) -> None:
    assert run(command, "--help").exit_code == 0
