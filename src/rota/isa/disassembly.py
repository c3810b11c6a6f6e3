"""The instructions of a kernel: takes the text of llvm-objdump or of an assembly file, gives `Instruction` values.

Both texts are read by one reader, so that a toolchain without a disassembler serves as well: an instruction's place is
its number in the listing, and a branch names the number of the instruction it goes to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rota.errors import Concern, Finding, IsaError

_FUNCTION = re.compile(r"^[0-9a-f]+ <(?P<name>[^>]+)>:")
_LABEL = re.compile(r"^(?P<name>[\w.$]+):")
_ENCODED = re.compile(r"//\s*(?P<address>[0-9A-Fa-f]+):")
_TARGET = re.compile(r"<(?P<function>[^>+]+)(?:\+0x(?P<offset>[0-9a-f]+))?>\s*$")
_OPERANDS = re.compile(r",\s*(?![^\[\]]*\])")
_COMMENT = re.compile(r"(?:;|//).*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One instruction: its opcode, its operands, the modifiers that follow them, and where it stands.

    `address` is the byte address in the code object, if the listing says it; `target` the number of the instruction
    that a branch goes to.
    """

    opcode: str
    operands: tuple[str, ...]
    modifiers: tuple[str, ...]
    text: str
    line: int
    address: int | None = None
    target: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    number: int
    text: str
    address: int | None
    target: int | str | None  # an address, or a label


def read_listing(text: str, kernel: str) -> tuple[Instruction, ...]:
    """The instructions of `kernel`, from its label to its last instruction, padding left out."""
    lines, places = _lines_of(text, kernel)
    if not lines:
        raise IsaError(
            Finding(
                code="I101",
                message=f"the listing has no instructions of a kernel named {kernel!r}",
                evidence=(("looked for", f"<{kernel}>: or {kernel}:"), ("lines", len(text.splitlines()))),
            )
        )
    return tuple(_instruction(line, places) for line in lines)


def _lines_of(text: str, kernel: str) -> tuple[list[_Line], dict[int | str, int]]:
    """The kernel's lines, and the instruction number of each address and label among them."""
    lines: list[_Line] = []
    places: dict[int | str, int] = {}
    inside, start = False, 0
    for number, raw in enumerate(text.splitlines(), 1):
        if (function := _FUNCTION.match(raw)) is not None:
            inside, start = function["name"] == kernel, int(raw.split()[0], 16)
            continue
        code = _COMMENT.sub("", raw).strip()
        if (label := _LABEL.match(code)) is not None:
            inside = label["name"] == kernel or (inside and label["name"].startswith((".LBB", ".Ltmp", "BB")))
            places[label["name"]] = len(lines)
            code = code[label.end() :].strip()
        if not inside or not code:
            continue
        if code.startswith("."):
            inside = not code.startswith((".section", ".rodata"))
            continue
        address = int(encoded["address"], 16) if (encoded := _ENCODED.search(raw)) else None
        if address is not None:
            places[address] = len(lines)
        lines.append(_Line(number=number, text=code, address=address, target=_target_of(raw, code, start)))
    while len(lines) > 1 and lines[-1].text.split()[0] in {"s_nop", "s_code_end"}:
        lines.pop()
    return lines, places


def _target_of(raw: str, code: str, start: int) -> int | str | None:
    if not code.startswith(("s_branch", "s_cbranch")):
        return None
    shown = _TARGET.search(raw)
    return start + int(shown["offset"] or "0", 16) if shown else code.rsplit(maxsplit=1)[-1]


def _instruction(line: _Line, places: dict[int | str, int]) -> Instruction:
    opcode, _, rest = line.text.partition(" ")
    operands = [part.strip() for part in _OPERANDS.split(rest.strip())] if rest.strip() else []
    modifiers: tuple[str, ...] = ()
    if operands and " " in operands[-1] and opcode != "s_waitcnt":
        operands[-1], *trailing = operands[-1].split()
        modifiers = tuple(trailing)
    if line.target is not None and line.target not in places:
        raise IsaError(
            Finding(
                code="I101",
                message=f"{line.text!r} branches to a place that the listing doesn't show",
                concerns=(Concern(label=line.text, index=line.number, role="line of the listing"),),
            )
        )
    return Instruction(
        opcode=opcode,
        operands=tuple(operands),
        modifiers=modifiers,
        text=line.text,
        line=line.number,
        address=line.address,
        target=None if line.target is None else places[line.target],
    )
