"""Every code block and command of the README, the site and the finding pages runs and prints what the page shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from rota.cli.main import main
from rota.errors import CODES
from rota.isa.binary.toolchain import find_toolchains
from tests.cli.command import rota
from tests.docs.blocks import FINDINGS, PAGES, ROOT, blocks_of, commands_of, matches
from tests.docs.running import run_page

pytestmark = pytest.mark.no_cover  # what pages run counts as covered where it is tested by itself

_COMPILER = re.compile(r"find_toolchain\(\)|rota (?:audit|run)|clang")
_INLINE = re.compile(r"`(rota [a-z][^`]+)`")
_PLACEHOLDER = re.compile(r"\b(?:CODE|KERNEL)\b|my_kernel\.py|examples/|--svg")  # pictures are drawn by test_pictures
_MODULE = re.compile(r"python -m ((?:benchmarks|tests)(?:\.\w+)+)")


# Those of the README and of the page of commands are run with the command's own tests.
IN_TEXT = list(
    dict.fromkeys(
        line
        for page in PAGES
        if page.name not in ("README.md", "commands.md")
        for line in _INLINE.findall(page.read_text("utf-8"))
    )
)


def _named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _complete(line: str) -> bool:
    return len(line.split()) > 2 and not _PLACEHOLDER.search(line)


@pytest.mark.parametrize("page", PAGES, ids=_named)
def test_a_page_prints_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    text = page.read_text("utf-8")
    if _COMPILER.search(text) and not any(find_toolchains()):
        pytest.skip("no compiler for AMD GPUs")
    monkeypatch.syspath_prepend(ROOT)
    shown = list(run_page(page, tmp_path))
    wrong = [f"{_named(page)}:{each.line}: {each.what}\n{each.printed}" for each in shown if not each.right]
    assert wrong == [], "\n".join(wrong)
    commands = sum(each.what.startswith("$ ") for each in shown)
    excused = sum(block.excuse is not None for block in blocks_of(text))
    record_property("documentation", (len(shown) - commands, commands, excused))


@pytest.mark.parametrize("line", IN_TEXT)
def test_a_command_in_running_text_exists(line: str) -> None:
    command = main.get_command(click.Context(main), line.split()[1])
    assert command is not None
    known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    assert set(re.findall(r"--\w+", line)) <= known


@pytest.mark.parametrize("line", [line for line in IN_TEXT if _complete(line)])
def test_a_complete_command_in_running_text_runs(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    if _COMPILER.search(line) and not any(find_toolchains()):
        pytest.skip("no compiler for AMD GPUs")
    monkeypatch.chdir(tmp_path)
    result = rota(line.removeprefix("rota "))
    assert result.exit_code == (1 if "--replay" in line or "sync=strict" in line else 0), result.output
    record_property("documentation", (0, 1, 0))


@pytest.mark.parametrize("page", PAGES, ids=_named)
def test_a_module_that_a_page_names_is_there(page: Path) -> None:
    for module in _MODULE.findall(page.read_text("utf-8")):
        file = ROOT / Path(*module.split("."))
        assert file.with_suffix(".py").is_file() or file.is_dir(), module


@pytest.mark.parametrize("code", CODES)
def test_a_code_has_a_page_with_its_smallest_example(code: str) -> None:
    page = (FINDINGS / f"{code}.md").read_text("utf-8")
    assert page.startswith(f"# {code}: {CODES[code]}\n\n")
    (example, *_) = blocks_of(page)
    assert example.output is not None
    assert f"[{code}]: " in example.output.text
    assert "**Fix it.** " in page
    assert rota(f"explain {code}").output == page.removeprefix("# ")


def test_a_page_has_a_code() -> None:
    assert {file.stem for file in FINDINGS.glob("*.md")} == set(CODES)


def test_what_differs_from_a_page_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nprint('one')\n```\n\n```text\ntwo\n```\n\n"
        "```console\n$ echo three\nfour\n$ echo five six\nfive ...\n```\n",
        "utf-8",
    )
    assert [each.right for each in run_page(page, tmp_path)] == [False, False, True]


@pytest.mark.parametrize("block", ["```\nsomething\n```\n", "```cpp\nint x;\n```\n", "```text\nalone\n```\n"])
def test_a_block_that_nobody_runs_is_refused(block: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(block, "utf-8")
    with pytest.raises(AssertionError, match="neither run nor excused"):
        list(run_page(page, tmp_path))
    page.write_text(f"<!-- not run: it is an example -->\n{block}", "utf-8")
    assert list(run_page(page, tmp_path)) == []


def test_an_output_without_its_command_is_refused() -> None:
    (block,) = blocks_of("```console\nno command\n```\n")
    with pytest.raises(AssertionError, match="starts with a command"):
        commands_of(block)


def test_dots_stand_for_anything_and_nothing_else_does() -> None:
    assert matches("a ... c\n", "a b\nb c")
    assert not matches("a.c", "abc")
    assert not matches("a ... c", "a b d")
