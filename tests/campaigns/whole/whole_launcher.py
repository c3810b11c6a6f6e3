"""The launcher of a whole kernel, tried on the host: takes its header, gives what it says of problems it must refuse.

The header is compiled against a stand-in for HIP's, which records launches.  Every check can be skipped by its number,
so that one program shows both: that each wrong problem is refused for its own reason, and that without that check it
isn't.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rota.emit.whole.whole_options import PARAMETERS
from rota.isa.binary.toolchain import Toolchain

STAND_IN = Path(__file__).parents[2] / "emit" / "hip_stand_in"
_CHECK = re.compile(r"^  if \((!\(.*\)|.*overlap\(.*\))\) return \"(.*)\";$", re.MULTILINE)


class Case(NamedTuple):
    """A problem that must be refused: what is set, and the words of the refusal."""

    edit: str
    words: str


CASES: tuple[Case, ...] = (
    *(Case(f"p.{size} = 0;", "M and N are at least 1") for size in "MN"),
    Case("p.K = -1;", "K is at least 0: a sum of nothing is zero"),
    Case("p.M = INT_MAX;", "M and N leave room for a tile"),
    Case("p.N = INT_MAX - 5; p.d_stride = p.c_stride = 0;", "M and N leave room for a tile"),
    Case("p.K = (1 << 30) + 1; p.a_stride = p.b_stride = 0;", "K is at most 1073741824"),
    *(Case(f"p.batches = {count};", "batches are 1 to 65535") for count in (0, -3, 65536)),
    *(Case(f"p.splits = {count};", "splits are 1 to 65535") for count in (0, -1, 65536)),
    Case("p.M = p.N = INT_MAX - 300; p.d_stride = p.c_stride = 0;", "the grid has less than 2^32 threads"),
    *(
        case
        for name, letter in (("A", "a"), ("B", "b"))
        for case in (
            Case(f"p.{name} = nullptr;", f"{name} is given"),
            Case(f"p.{name} = (const char*)p.{name} + 1;", f"{name} is aligned to its elements"),
            Case(f"p.{letter}_stride = p.K - 1;", f"rows of {name} are at least K elements apart"),
            Case(f"p.{letter}_stride = 1 << 23;", f"128 rows of {name} take less than 2 GiB"),
            Case(f"p.{letter}_batch = -1;", f"matrices of {name} follow one another"),
        )
    ),
    Case("p.D = nullptr;", "D is given"),
    Case("p.D = (char*)p.D + 1;", "D is aligned to its elements"),
    Case("p.d_stride = p.N - 1;", "rows of D are at least N elements apart"),
    Case("p.d_stride = 1LL << 22; p.d_batch = 1LL << 50;", "256 rows of D take less than 2 GiB"),
    Case("p.d_batch = 1LL << 56;", "strides of D don't overflow"),
    Case("p.d_batch = (p.M - 1) * p.d_stride + p.N - 1;", "matrices of D don't overlap"),
    Case("p.C = nullptr;", "C is given"),
    Case("p.C = (const char*)p.C + 1;", "C is aligned to its elements"),
    Case("p.c_stride = p.N - 1;", "rows of C are at least N elements apart"),
    Case("p.c_batch = -1;", "matrices of C follow one another"),
    Case("p.bias = nullptr;", "bias is given, and aligned to its elements"),
    Case("p.row_scale = nullptr;", "row_scale is given, and aligned to its elements"),
    Case("p.column_scale = (const float*)((const char*)p.column_scale + 2);",
         "column_scale is given, and aligned to its elements"),
    Case("p.partial = nullptr;", "splits have a workspace, aligned to 16 bytes"),
    Case("p.partial = p.partial + 1;", "splits have a workspace, aligned to 16 bytes"),
    Case("p.M = 1; p.N = (1 << 22) - 1; p.d_stride = p.c_stride = 0; p.d_batch = p.c_batch = 0;",
         "128 rows of a split's sums take less than 2 GiB"),
    Case("p.M = 1 << 19; p.N = 1 << 17; p.d_stride = p.c_stride = 0; p.d_batch = p.c_batch = 0;",
         "the sums of splits have less than 2^32 runs of columns"),
    Case("p.D = const_cast<void*>(p.A);", "D overlaps A"),
    Case("p.D = (char*)p.A - 2;", "D overlaps A"),
    Case("p.D = (char*)const_cast<void*>(p.B) + 20000;", "D overlaps B"),
    Case("p.C = (const char*)p.D + 2;", "D overlaps C without being C"),
    Case("p.C = p.D; p.c_stride = p.d_stride + 1;", "D overlaps C without being C"),
)  # fmt: skip
"""For a bf16 kernel of 128 x 128 tiles with the epilogue alpha, row_scale, column_scale, column_bias, beta."""

COLUMNS = "p.b_stride = 208, p.b_batch = 100 * 208;"
"""What is different for B as K x N."""

NARROW_CASES: tuple[Case, ...] = (
    Case("p.K = 99;", "K is a multiple of 2, the elements of a byte"),
    Case("p.a_stride = 105;", "rows and matrices of A begin at bytes, of 2 elements each"),
    Case("p.a_batch += 1;", "rows and matrices of A begin at bytes, of 2 elements each"),
    Case("p.b_stride = 105;", "rows and matrices of B begin at bytes, of 2 elements each"),
    Case("p.b_stride = 1LL << 25;", "128 rows of B take less than 2 GiB"),
    Case("p.D = (char*)p.A + 300 * 104 - 16;", "D overlaps A"),
)
"""For a kernel of fp4."""

SCALED_CASES: tuple[Case, ...] = (
    Case("p.K = 100;", "K is a multiple of 32, a block that has a scale"),
    *(
        case
        for name, letter in (("A", "a"), ("B", "b"))
        for case in (
            Case(f"p.{name}_scale = nullptr;", f"{name}_scale is given"),
            Case(
                f"p.{letter}_scale_stride = 2;",
                f"rows of {name}_scale are at least K / 32 bytes apart, 128 of them less than 2 GiB",
            ),
            Case(
                f"p.{letter}_scale_stride = 1 << 24;",
                f"rows of {name}_scale are at least K / 32 bytes apart, 128 of them less than 2 GiB",
            ),
            Case(f"p.{letter}_scale_batch = -1;", f"matrices of {name}_scale follow one another"),
        )
    ),
    Case("p.D = (char*)p.A_scale + 600;", "D overlaps A_scale"),
    Case("p.D = (char*)p.B_scale + 400;", "D overlaps B_scale"),
)
"""For a kernel with scales of blocks, of 64 x 128 tiles, whose K is 96."""

FLOAT_CASES: tuple[Case, ...] = (
    *(
        case
        for name, letter in (("A", "a"), ("B", "b"))
        for far in (f"rows of {name}_scale are at least ceil(K / 128) floats apart, 256 of them less than 2 GiB",)
        for case in (
            Case(f"p.{name}_scale = nullptr;", f"{name}_scale is given"),
            Case(f"p.{name}_scale = (const char*)p.{name}_scale + 2;", f"{name}_scale is aligned to its elements"),
            Case(f"p.{letter}_scale_stride = 1;", far),
            Case(f"p.{letter}_scale_stride = 1 << 21;", far),
            Case(f"p.{letter}_scale_batch = -1;", f"matrices of {name}_scale follow one another"),
        )
    ),
    Case("p.D = (char*)p.A_scale + 1600;", "D overlaps A_scale"),
    Case("p.D = (char*)p.B_scale + 1200;", "D overlaps B_scale"),
)
"""For one with scales in fp32, whose K is 200."""


def cases_by_columns() -> Iterator[Case]:
    """The same for B as K x N."""
    for edit, words in CASES:
        if words == "rows of B are at least K elements apart":
            yield Case("p.b_stride = p.N - 1;", "rows of B are at least N elements apart")
        elif words == "128 rows of B take less than 2 GiB":
            yield Case("p.b_stride = 1 << 24;", "the rows of B that a split sums take less than 2 GiB")
            yield Case(
                "p.K = 1 << 22; p.a_stride = 0; p.b_stride = 1024;",
                "the rows of B that a split sums take less than 2 GiB",
            )
        else:
            wide = "p.N = 1" in edit or "p.N = (1" in edit
            yield Case(f"p.b_stride = p.b_batch = 0; {edit}" if wide else edit, words)


RIGHT: tuple[tuple[str, str], ...] = (
    ("", "launch 6x2x2 of 256, launch 30x1x2 of 256"),
    ("p.splits = 1;", "launch 6x1x2 of 256"),
    ("p.splits = 1; p.partial = nullptr; p.batches = 1;", "launch 6x1x1 of 256"),
    ("p.C = p.D; p.c_stride = p.d_stride; p.c_batch = p.d_batch; p.splits = 1;", "launch 6x1x2 of 256"),
    ("p.a_stride = p.b_stride = p.c_stride = p.d_stride = 0; p.a_batch = p.b_batch = p.c_batch = p.d_batch = 0;",
     "launch 6x2x2 of 256, launch 30x1x2 of 256"),
    ("p.M = p.N = p.K = 1; p.splits = 1;", "launch 1x1x2 of 256"),
    ("p.M = p.N = 1; p.K = 0; p.splits = 1;", "launch 1x1x2 of 256"),
)  # fmt: skip
"""Problems that must be launched, and how."""


def program(header: str, name: str, cases: Sequence[Case] = CASES, given: str = "") -> tuple[str, list[str]]:
    """A program that tries every case, with the checks of a header numbered; and the words of each check.

    `given` is what the problem that all cases begin with has besides.
    """
    words = [match[2] for match in _CHECK.finditer(header)]
    numbers = iter(range(len(words)))
    numbered = _CHECK.sub(
        lambda match: f'  if (skipped != {next(numbers)} && ({match[1]})) return "{match[2]}";', header
    )
    parameters = ", ".join(each.type for each in PARAMETERS)
    lines = ["#include <cstdio>", "static int skipped = -1;", numbered.replace("#pragma once", "")]
    lines += [f'extern "C" void {kernel}({parameters}) {{}}' for kernel in (name, f"{name}_reduce")]
    lines += [*_base(name, given), *_tried(name, cases), "int main(int count, char** words) {"]
    lines += [
        "  if (count > 1) skipped = std::atoi(words[1]);",
        "  if (skipped < 0) right();",
        "  return wrong();",
        "}",
    ]
    return "\n".join([*lines, ""]), words


def _base(name: str, given: str) -> Iterator[str]:
    yield f"static {name}_problem base() {{"
    yield "  alignas(256) static char memory[8][1 << 20];"
    yield f"  {name}_problem p;"
    yield "  p.M = 300, p.N = 200, p.K = 100, p.batches = 2, p.splits = 2;"
    yield "  p.a_stride = p.b_stride = 104, p.c_stride = p.d_stride = 208;"
    yield "  p.a_batch = 300 * 104, p.b_batch = 200 * 104, p.c_batch = p.d_batch = 300 * 208;"
    yield "  p.A = memory[0] + 1024, p.B = memory[1] + 1024, p.C = memory[2] + 1024, p.bias = memory[3];"
    yield "  p.row_scale = (const float*)memory[4], p.column_scale = (const float*)memory[5], p.D = memory[6] + 1024;"
    yield f"  p.partial = (float*)memory[7]; {given}"
    yield "  return p;"
    yield "}"


def _tried(name: str, cases: Sequence[Case]) -> Iterator[str]:
    yield "static void right() {"
    for edit, _ in RIGHT:
        yield f"  {{ auto p = base(); {edit} stand_in_launches().clear(); const char* why = nullptr;"
        yield f'    if ({name}_launch(p, nullptr, &why) != hipSuccess) std::printf("refused: %s", why);'
        yield '    const char* between = "";'
        yield "    for (const auto& each : stand_in_launches()) {"
        yield "      const auto grid = each.grid;"
        yield '      std::printf("%slaunch %ux%ux%u of %u", between, grid.x, grid.y, grid.z, each.block.x);'
        yield '      between = ", ";'
        yield "    }"
        yield '    std::printf("\\n"); }'
    yield "}"
    yield "static int wrong() {"
    for edit, _ in cases:
        yield f"  {{ auto p = base(); {edit} stand_in_launches().clear(); const char* why = nullptr;"
        yield f"    const bool done = {name}_launch(p, nullptr, &why) == hipSuccess || !stand_in_launches().empty();"
        yield '    std::printf("%s\\n", done ? "launched" : why); }'
    yield "  return 0;"
    yield "}"


def compiled(toolchain: Toolchain, source: str, folder: Path, *include: Path) -> Path:
    """A program of the host, warnings being errors."""
    (folder / "program.cpp").write_text(source, "utf-8")
    flags = (
        "-x",
        "c++",
        "-std=c++17",
        "-Wall",
        "-Wextra",
        "-Werror",
        f"-I{STAND_IN}",
        *(f"-I{each}" for each in include),
    )
    command = (*toolchain.compiler, *flags, "program.cpp", "-o", "program")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return folder / "program"


def said(program_: Path, skipped: int | None = None) -> list[str]:
    """The lines of a run, with a check skipped or without."""
    words = () if skipped is None else (str(skipped),)
    done = subprocess.run((str(program_), *words), capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def missed(program_: Path, words: Sequence[str], cases: Sequence[Case] = CASES) -> list[str]:
    """Right problems that aren't launched, wrong ones that are, and checks whose absence nothing shows."""
    lines = said(program_)
    due = [*(how for _, how in RIGHT), *(case.words for case in cases)]
    found = [f"due {want!r}, said {line!r}" for line, want in zip(lines, due, strict=True) if line != want]
    whole = lines[len(RIGHT) :]
    return found + [
        f"nothing shows that {name!r} is gone" for number, name in enumerate(words) if said(program_, number) == whole
    ]
