"""The launcher of a whole attention kernel, tried on the host: takes its header, gives what it says of wrong problems.

As `whole_launcher` does for GEMMs: every check can be skipped by its number, and then a problem must slip through.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from rota.emit.attention.attention_kernel import ATTENTION_PARAMETERS
from rota.isa.binary.toolchain import find_toolchain
from tests.campaigns.whole.whole_launcher import Case, compiled, said

_CHECK = re.compile(r"^  if \((!\(.*\))\) return \"(.*)\";$", re.MULTILINE)

CASES: tuple[Case, ...] = (
    *(Case(f"p.queries = {count};", "queries are 1 to 1073741824") for count in (0, -1, (1 << 30) + 1)),
    *(Case(f"p.keys = {count};", "keys are 1 to 1073741824") for count in (0, (1 << 30) + 1)),
    *(Case(f"p.heads = {count}; p.kv_heads = 1;", "heads are 1 to 65535") for count in (0, 65536)),
    *(Case(f"p.batches = {count};", "batches are 1 to 65535") for count in (0, 65536)),
    *(Case(f"p.kv_heads = {count};", "heads of Q are a multiple of those of K and V") for count in (0, 4, 12)),
    *(Case(f"p.shift = {count};", "shift is at most 1073741824 either way") for count in ("INT_MIN", "INT_MAX")),
    *(Case(f"p.scale = {value};", "scale is a number more than 0") for value in ("-1", "INFINITY", "NAN")),
    *(
        case
        for name in "QKVO"
        for case in (
            Case(f"p.{name} = nullptr;", f"{name} is given"),
            Case(f"p.{name} = (char*)const_cast<void*>(p.{name}) + 8;", f"{name} is aligned to 16 bytes"),
            *(
                Case(f"p.{name.lower()}_{what} += 4;", f"strides of {name} are multiples of 8 elements")
                for what in ("row", "head", "batch")
            ),
            Case(f"p.{name.lower()}_row -= 8;", f"rows of {name} are at least 64 elements apart"),
            Case(f"p.{name.lower()}_row = 1LL << 34;", f"the rows of one head of {name} take less than 2 GiB"),
            Case(f"p.{name.lower()}_head = -8;", f"strides of {name} are at least 0, and less than 2^44"),
            Case(f"p.{name.lower()}_batch = 1LL << 44;", f"strides of {name} are at least 0, and less than 2^44"),
        )
    ),
    Case("p.L = (float*)((char*)p.L + 2);", "L is aligned to its elements"),
)
"""For a head size of 64, and 64 rows a workgroup."""

RIGHT: tuple[tuple[str, str], ...] = (
    ("", "launch 3x6x2 of 256"),
    ("p.L = nullptr; p.queries = 1; p.keys = 1;", "launch 1x6x2 of 256"),
    ("p.queries = 64; p.batches = 1;", "launch 1x6x1 of 256"),
    ("p.queries = 65; p.causal = 1; p.shift = -5; p.scale = 0.1f;", "launch 2x6x2 of 256"),
    (" ".join(f"p.{each}_row = p.{each}_head = p.{each}_batch = 0;" for each in "qkvo"), "launch 3x6x2 of 256"),
)
"""Problems that must be launched, and how."""


def attention_launcher_missed(header: str, name: str, folder: Path) -> tuple[list[str], list[str]]:
    """The words of all checks; and what is wrong with them."""
    words = [match[2] for match in _CHECK.finditer(header)]
    numbers = iter(range(len(words)))
    numbered = _CHECK.sub(
        lambda match: f'  if (skipped != {next(numbers)} && ({match[1]})) return "{match[2]}";', header
    )
    lines = ["#include <cstdio>", "static int skipped = -1;", numbered.replace("#pragma once", "")]
    lines += [*_program(name, CASES)]
    tried = compiled(find_toolchain(), "\n".join([*lines, ""]), folder)
    whole = said(tried)
    due = [*(how for _, how in RIGHT), *(case.words for case in CASES)]
    found = [f"due {want!r}, said {line!r}" for line, want in zip(whole, due, strict=True) if line != want]
    return words, found + [
        f"nothing shows that {each!r} is gone" for number, each in enumerate(words) if said(tried, number) == whole
    ]


def _program(name: str, cases: Sequence[Case]) -> Iterator[str]:
    yield f'extern "C" void {name}({", ".join(each.type for each in ATTENTION_PARAMETERS)}) {{}}'
    yield f"static {name}_problem base() {{"
    yield "  alignas(256) static char memory[5][1 << 12];"
    yield f"  {name}_problem p;"
    yield "  p.queries = 130, p.keys = 100, p.heads = 6, p.kv_heads = 2, p.batches = 2;"
    for letter in "qkvo":
        yield f"  p.{letter}_row = 64, p.{letter}_head = 64 * 130, p.{letter}_batch = 64 * 130 * 6;"
    yield "  p.Q = memory[0], p.K = memory[1], p.V = memory[2], p.O = memory[3], p.L = (float*)memory[4];"
    yield "  return p;"
    yield "}"
    yield "int main(int count, char** words) {"
    yield "  if (count > 1) skipped = std::atoi(words[1]);"
    for edit in (*(edit for edit, _ in RIGHT), *(case.edit for case in cases)):
        yield f"  {{ auto p = base(); {edit} stand_in_launches().clear(); const char* why = nullptr;"
        yield f"    const bool done = {name}_launch(p, nullptr, &why) == hipSuccess;"
        yield "    for (const auto& each : stand_in_launches())"
        yield '      std::printf("launch %ux%ux%u of %u", each.grid.x, each.grid.y, each.grid.z, each.block.x);'
        yield '    std::printf("%s\\n", done ? "" : why); }'
    yield "  return 0;"
    yield "}"
