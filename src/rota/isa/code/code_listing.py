"""A listing, line by line: takes the text of llvm-objdump or of an assembly file, gives a `CodeListing`.

Each instruction has a place: its byte address where the text shows addresses, its number elsewhere.  Labels say where
something begins, never where it ends.  Where a branch goes is read from its encoding, and from its label only in
assembly, which shows none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

_FUNCTION = re.compile(r"^(?P<address>[0-9a-fA-F]+) <(?P<name>.+)>:$")
_ENCODED = re.compile(r"//\s*(?P<address>[0-9A-Fa-f]+):(?P<words>(?: [0-9A-Fa-f]{8})+)")
_LABEL = re.compile(r"^(?P<name>[\w.$@]+):")
_COMMENT = re.compile(r"(?:;|//).*$")
_NUMBERED = re.compile(r"^(?P<name>\d+)(?P<way>[bf])$")  # the label before or after this line
_JUMPS = ("s_branch", "s_cbranch_scc", "s_cbranch_vcc", "s_cbranch_exec", "s_cbranch_cdbg", "s_call_b64")
_DATA = (".long", ".byte", ".short", ".quad", ".ascii", ".asciz", ".zero", ".fill", ".space", ".section", ".rodata",
         ".text", ".data")  # fmt: skip
_WORD = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeLine:
    """One instruction: where it stands in the text, its text, its encoding, and the place that it jumps to.

    `follows` is the place behind it; `label` is what a jump names in assembly.
    """

    number: int
    text: str
    follows: int
    words: tuple[int, ...] = ()
    target: int | None = None
    label: str = ""

    @property
    def opcode(self) -> str:
        """Its first word."""
        return self.text.partition(" ")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeListing:
    """Instructions by place, and the places that have names; `addressed` says that places are byte addresses."""

    lines: Mapping[int, CodeLine]
    names: Mapping[str, int]
    addressed: bool


@lru_cache(maxsize=4)  # kernel after kernel is read from one listing
def parse_listing(text: str) -> CodeListing:
    """Every instruction of a text, of all functions together."""
    lines = text.splitlines()
    return _disassembly(lines) if any(_ENCODED.search(line) for line in lines) else _assembly(lines)


def _disassembly(text: list[str]) -> CodeListing:
    lines: dict[int, CodeLine] = {}
    names: dict[str, int] = {}
    for number, raw in enumerate(text, 1):
        encoded = _ENCODED.search(raw)
        if encoded is None:
            if (function := _FUNCTION.match(raw)) is not None:
                names.setdefault(function["name"], int(function["address"], 16))
            continue
        address = int(encoded["address"], 16)
        words = tuple(int(word, 16) for word in encoded["words"].split())
        code = raw[: encoded.start()].strip()
        follows = address + _WORD * len(words)
        target = None
        if code.startswith(_JUMPS):
            away = words[0] & 0xFFFF
            target = address + _WORD + _WORD * (away - (away >> 15 << 16))
        lines[address] = CodeLine(number=number, text=code, follows=follows, words=words, target=target)
    return CodeListing(lines=MappingProxyType(lines), names=MappingProxyType(names), addressed=True)


def _assembly(text: list[str]) -> CodeListing:
    """Places are numbers; one is left out where data or another section stands, so that nothing runs across it."""
    lines: dict[int, CodeLine] = {}
    labels: dict[str, list[int]] = {}
    place = 0
    for number, raw in enumerate(text, 1):
        code = _COMMENT.sub("", raw).strip()
        while (label := _LABEL.match(code)) is not None:
            labels.setdefault(label["name"], []).append(place)
            code = code[label.end() :].strip()
        if not code:
            continue
        if code.startswith("."):
            place += code.startswith(_DATA) and place - 1 in lines
            continue
        jump = code.rsplit(maxsplit=1)[-1] if code.startswith(_JUMPS) else ""
        lines[place] = CodeLine(number=number, text=code, follows=place + 1, label=jump)
        place += 1
    for at, line in lines.items():
        if line.label:
            target = _labelled(line.label, at, labels)
            lines[at] = CodeLine(number=line.number, text=line.text, follows=at + 1, target=target, label=line.label)
    return CodeListing(lines=lines, names={name: places[0] for name, places in labels.items()}, addressed=False)


def _labelled(label: str, place: int, labels: Mapping[str, list[int]]) -> int | None:
    if (numbered := _NUMBERED.match(label)) is None:
        places = labels.get(label, [])
        return places[0] if len(places) == 1 else None
    found = labels.get(numbered["name"], [])
    before = [each for each in found if each <= place]
    after = [each for each in found if each > place]
    chosen = before[-1:] if numbered["way"] == "b" else after[:1]
    return chosen[0] if chosen else None
