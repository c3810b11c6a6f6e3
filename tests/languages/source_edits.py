"""Faults in sources of other languages: takes a language, changes its source a line at a time, says who notices.

A change is judged as a user would see it: the compiler refuses it, the audit finds the machine code to differ, its
proof fails, or a run is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from rota.errors import RotaError
from rota.isa.launch.interleaving import some_interleavings
from tests.emit.kernels import SMALL, Emitted, by_values

Edit = Callable[[str], str]


class Words(NamedTuple):
    """How a language writes what is changed: where its loop stands, and a pattern for each kind of line.

    The first group of a pattern is the number that a fault changes.
    """

    begin: str
    end: str
    vm: str
    lgkm: str
    barrier: str
    load: str
    read: str
    compute: str


WORDS = {
    "gluon": Words(
        begin="# kernel",
        end="k += ",
        vm=r"vmcnt\((\d+)\)",
        lgkm=r"lgkmcnt\((\d+)\)",
        barrier=r"gl\.barrier\(\)",
        load=r"_to\.index\((\d+)\)",
        read=r"_from\.index\((\d+)\)",
        compute=r"cdna4\.mfma\([a-z]\d_(\d+)",
    ),
    "flydsl": Words(
        begin="# kernel",
        end="state = yield",
        vm=r"vmcnt=(\d+)",
        lgkm=r"lgkmcnt=(\d+)",
        barrier=r"s_barrier\(\)",
        load=r"dma\(lds, (\d+)",
        read=r"read\(\w+, (\d+)",
        compute=r"mma\(\w+, [a-z]\d_(\d+)",
    ),
    "mojo": Words(
        begin="def kernel()",
        end="return table",
        vm=r"WAIT_VM, 0, 0, K_OFFSET_NONE, 0, 0, (\d+)",
        lgkm=r"WAIT_LGKM, 0, 0, K_OFFSET_NONE, 0, 0, (\d+)",
        barrier=r"OpDesc\(BARRIER",
        load=r"OpDesc\(LOAD_[AB], (\d+)",
        read=r"OpDesc\(MMA_LOAD_[AB], (\d+)",
        compute=r"OpDesc\(MMA, (\d+)",
    ),
}
_SPACE = {"flydsl": 16384}  # in bytes where the others count in tiles


def edits(language: str) -> dict[str, Edit]:
    """Every fault by name."""
    words, step = WORDS[language], _SPACE.get(language, 1)
    return {
        "first vm wait weakened by 1": _renumbered(words, words.vm, 1),
        "last vm wait weakened by 1": _renumbered(words, words.vm, 1, nth=-1),
        "vm wait dropped": _dropped(words, words.vm),
        "lgkm wait weakened by 1": _renumbered(words, words.lgkm, 1, nth=1),
        "lgkm wait dropped": _dropped(words, words.lgkm, nth=1),
        "first barrier dropped": _dropped(words, words.barrier),
        "last barrier dropped": _dropped(words, words.barrier, nth=-1),
        "load into another place": _renumbered(words, words.load, step),
        "read of another place": _renumbered(words, words.read, step),
        "two loads exchanged": _exchanged(words, words.load, 0, 3),
        "read moved over the barrier before it": _moved(words),
        "compute with other rows": _renumbered(words, words.compute, 1),
    }


def missed(language: str, compile_: Callable[..., Any]) -> int:
    """Print who notices each fault in the small GEMM; how many nobody did."""
    emitted = by_values(SMALL)
    count = 0
    print("| language | fault | noticed by |\n| --- | --- | --- |")
    for name, edit in edits(language).items():
        who = noticed(emitted, compile_, edit)
        count += not who
        print(f"| {language} | {name} | {who or 'nobody'} |", flush=True)
    return count


def noticed(emitted: Emitted, compile_: Callable[..., Any], edit: Edit) -> str:
    """Who notices a fault first, with the code of what it says; empty if nobody does."""
    try:
        made = compile_(*emitted, edit=edit)
        audit = made.audit()
    except RotaError as error:
        return f"compiler or audit ({error.findings[0].code})"
    if not audit.exact:
        proof = "" if audit.certificate else " and proof"
        return f"audit{proof} ({', '.join(sorted({finding.code for finding in audit.findings}))})"
    return next(_wrong_runs(made.program()), "")


def _wrong_runs(program: Any) -> Iterator[str]:  # a launch of any language
    for trips in (1, 0):
        for order in some_interleavings(program.waves, 5):
            result = program.launch(trips, order)
            if not result.right:
                yield f"execution ({result.findings[0].code})"


def _numbers(words: Words, lines: list[str], pattern: str) -> list[int]:
    """The lines of the loop that a pattern fits."""
    first = next(number for number, line in enumerate(lines) if words.begin in line)
    last = next(number for number, line in enumerate(lines) if number > first and words.end in line)
    return [number for number in range(first, last) if re.search(pattern, lines[number])]


def _renumbered(words: Words, pattern: str, more: int, nth: int = 0) -> Edit:
    def change(source: str) -> str:
        lines = source.splitlines()
        number = _numbers(words, lines, pattern)[nth]
        found = re.search(pattern, lines[number])
        assert found
        old, (start, end) = int(found[1]), found.span(1)
        lines[number] = f"{lines[number][:start]}{old - more if old >= more > 1 else old + more}{lines[number][end:]}"
        return "\n".join(lines)

    return change


def _dropped(words: Words, pattern: str, nth: int = 0) -> Edit:
    def change(source: str) -> str:
        lines = source.splitlines()
        del lines[_numbers(words, lines, pattern)[nth]]
        return "\n".join(lines)

    return change


def _exchanged(words: Words, pattern: str, first: int, second: int) -> Edit:
    def change(source: str) -> str:
        lines = source.splitlines()
        numbers = _numbers(words, lines, pattern)
        one, other = numbers[first], numbers[second]
        lines[one], lines[other] = lines[other], lines[one]
        return "\n".join(lines)

    return change


def _moved(words: Words) -> Edit:
    def change(source: str) -> str:
        lines = source.splitlines()
        barrier = _numbers(words, lines, words.barrier)[0]
        read = next(number for number in _numbers(words, lines, words.read) if number > barrier)
        lines.insert(barrier, lines.pop(read))
        return "\n".join(lines)

    return change
