"""Every command that a help text, the README or the page of commands names is run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from rota.cli.main import main
from rota.isa.binary.toolchain import find_toolchains
from tests.cli.command import rota
from tests.shared import shared

ROOT = Path(__file__).parents[2]
NAMED = "".join((ROOT / page).read_text("utf-8") for page in ("README.md", "docs/commands.md"))


def examples(command: click.Command | None) -> Iterator[str]:
    assert command is not None
    for line in (command.epilog or "").splitlines():
        if line.startswith("  rota "):
            yield line.strip()


COMMANDS = {name: main.get_command(click.Context(main), name) for name in main.list_commands(click.Context(main))}
IN_HELP = [example for command in COMMANDS.values() for example in examples(command)]
IN_PAGES = re.findall(r"`(rota [a-z][^`]+)`", NAMED)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_help_with_an_example_that_names_it(name: str) -> None:
    result = rota(f"{name} --help")
    assert result.exit_code == 0
    assert f"\n    rota {name}" in result.output
    assert "--json" in result.output


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize("line", list(dict.fromkeys([*IN_HELP, *IN_PAGES])))
def test_an_example_runs(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _skip_without_a_compiler(line)
    _make_kernels(tmp_path, line)
    words = line.removeprefix("rota ")
    result = rota(words)
    assert result.exit_code == (1 if "--replay" in words or "sync=strict" in words else 0), result.output
    for file in re.findall(r"(?:-o|--html|--svg) (\S+)", words):
        assert (tmp_path / file).stat().st_size > 0


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize("name", COMMANDS)
def test_json_is_all_that_stands_on_stdout(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = next(examples(COMMANDS[name])).removeprefix("rota ")
    _make_kernels(tmp_path, first)
    _skip_without_a_compiler(f"rota {first}")
    json.loads(rota(f"{first} --json").stdout)


def _make_kernels(folder: Path, line: str) -> None:
    """The files that an example names."""
    right = shared("kernels/compiled/races/raw_sync_ok.gfx950.hsaco").read_bytes()
    (folder / "build/kernels").mkdir(parents=True)
    for name in ("kernel.hsaco", "new.hsaco", "old.hsaco", "build/kernels/one.hsaco", "build/kernels/two.hsaco"):
        (folder / name).write_bytes(right)
    if line.startswith(("rota improve", "improve")):  # it needs a loop
        (folder / "kernel.hsaco").write_bytes(shared("kernels/compiled/t_matmul_fp32.gfx942.hsaco").read_bytes())
    (folder / "kernel.hip").write_text('extern "C" __attribute__((global)) void k(float* x) { *x = 1; }')
    if "report" in line:
        assert rota("check build/kernels --store verdicts").exit_code == 0
        (folder / "known.toml").write_text('[[cause]]\nfiles = ["*"]\ncode = "I109"\nsays = "disputed"\ntext = "why"\n')


def _skip_without_a_compiler(line: str) -> None:
    if line.startswith(("rota audit", "rota run")) and not any(find_toolchains()):
        pytest.skip("no compiler for AMD GPUs")


def test_the_page_of_commands_names_every_command() -> None:
    assert {line.split()[1] for line in IN_PAGES} >= set(COMMANDS)
