"""The code of a page: takes Markdown, gives its blocks in order, each with the output that the page shows for it.

What the pages agree on:

- a `python` block is run, all blocks of a page in one namespace; a finding that ends it counts as its output;
- a `python`, `cpp` or `asm` block whose first line is a comment with a file's name is also saved under that name;
- a `text` block right after a `python` block is what it prints; without one it must print nothing;
- in a `console` block a line after `$ ` is given to the shell, the lines below it are what it prints;
- `...` in an output stands for anything;
- `<!-- not run: reason -->` in the line above excuses a block.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FINDINGS = ROOT / "src" / "rota" / "findings"
PAGES = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if "findings" not in path.parts[:-1]),
    *sorted(FINDINGS.glob("*.md")),
)

_DRAWN_BY = re.compile(r"`rota (show [^`]*--svg (\w+\.svg))`")
PICTURES = {found[2]: found[1] for page in PAGES for found in _DRAWN_BY.finditer(page.read_text("utf-8"))}
"""The pictures in docs/, each with the command that draws it, as the pages say."""

_FENCE = re.compile(
    r"(?:<!-- not run: (?P<excuse>[^\n]+?) -->\n)?^```(?P<language>[^\n]*)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
_FILE = re.compile(r"(?:#|//) ([\w.]+\.\w+)\n")
_DIRECTIVE = re.compile(r"\{\w")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block and where its text stands in the page."""

    language: str
    text: str
    start: int
    end: int
    line: int
    excuse: str | None
    output: Block | None = None

    @property
    def file(self) -> str | None:
        """The name under which it is saved."""
        found = _FILE.match(self.text)
        return found[1] if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A line for the shell, what it prints, and where that stands in the page."""

    line: str
    shown: str
    start: int
    end: int


def blocks_of(page: str) -> list[Block]:
    """The blocks of code; outputs stand with the block that prints them, MyST directives are Sphinx's business."""
    found: list[Block] = []
    previous_end = -1
    for match in _FENCE.finditer(page):
        if _DIRECTIVE.match(match["language"]):
            continue
        block = Block(
            language=match["language"],
            text=match["text"],
            start=match.start("text"),
            end=match.end("text"),
            line=page.count("\n", 0, match.start("text")) + 1,
            excuse=match["excuse"],
        )
        follows = found and previous_end >= 0 and not page[previous_end : match.start()].strip()
        if block.language == "text" and follows and found[-1].language == "python" and found[-1].output is None:
            found[-1] = _with_output(found[-1], block)
        else:
            found.append(block)
        previous_end = match.end()
    return found


def _with_output(block: Block, output: Block) -> Block:
    return Block(
        language=block.language,
        text=block.text,
        start=block.start,
        end=block.end,
        line=block.line,
        excuse=block.excuse,
        output=output,
    )


def commands_of(block: Block) -> list[Command]:
    """The lines for the shell of a `console` block."""
    found: list[Command] = []
    place = block.start
    for line in block.text.splitlines(keepends=True):
        place += len(line)
        if line.startswith("$ "):
            found.append(Command(line=line[2:].strip(), shown="", start=place, end=place))
        else:
            assert found, f"line {block.line}: a console block starts with a command"
            last = found[-1]
            found[-1] = Command(line=last.line, shown=last.shown + line, start=last.start, end=place)
    return found


def matches(shown: str, printed: str) -> bool:
    """Is what was printed what the page shows, where `...` stands for anything?"""
    pattern = ".*?".join(re.escape(part) for part in _stripped(shown).split("..."))
    return re.fullmatch(pattern, _stripped(printed), re.DOTALL) is not None


def _stripped(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())
