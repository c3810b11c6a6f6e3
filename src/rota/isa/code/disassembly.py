"""The instructions of a kernel: takes the text of llvm-objdump or of an assembly file, gives `Instruction` values.

Both texts are read by one reader, so that a toolchain without a disassembler serves as well.  A kernel is what can be
come to from its first instruction, wherever it stands: labels and symbols inside it, data and padding don't matter.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rota.errors import Concern, Finding, IsaError, SourceLine
from rota.isa.code.code_listing import CodeLine, CodeListing, parse_listing
from rota.isa.code.flow import CodeFlow, derive_flow, falls_through

if TYPE_CHECKING:
    from rota.isa.binary.line_table import LineTable

_OPERANDS = re.compile(r",\s*(?![^\[\]]*\])(?![^()]*\))")
_LITERAL = re.compile(r"^lit\(([^()]+)\)$")
_SPACES = re.compile(r"\s+(?![^()]*\))")
_ENCODING = re.compile(r"_(e32|e64|dpp|sdwa)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One instruction: its opcode, its operands, the modifiers that follow them, and where it stands.

    `line` is that of the listing, `address` the byte address in the code object, if the listing says it, `target` the
    number of the instruction that a branch goes to.  `symbol` is the function that it stands in, `source` the line that
    it was compiled from, `encoding` its words.
    """

    opcode: str
    operands: tuple[str, ...]
    modifiers: tuple[str, ...]
    text: str
    line: int
    address: int | None = None
    target: int | None = None
    symbol: str | None = None
    source: SourceLine | None = None
    encoding: tuple[int, ...] = ()

    @property
    def mnemonic(self) -> str:
        """The opcode without the encoding that it ends with."""
        return _ENCODING.sub("", self.opcode)

    def concern(self, role: str = "line of the listing") -> Concern:
        """This instruction as one end of a finding."""
        return Concern(label=self.text, index=self.line, role=role, source=self.source)

    @property
    def follows(self) -> int | None:
        """The address behind it, if its own is known."""
        return None if self.address is None else self.address + 4 * len(self.encoding)


def read_listing(
    text: str,
    kernel: str,
    *,
    entry: int | None = None,
    kernels: Collection[str] = (),
    lines: LineTable | None = None,
) -> tuple[Instruction, ...]:
    """The instructions of `kernel`, the one at its entry first, in the order of their addresses, then those before it.

    `entry` is the address of the first one, where the name isn't enough.  A jump that isn't understood may go to any
    function that the listing names, but to none of the `kernels`: those are launched, not called.
    """
    listing = parse_listing(text)
    start = entry if entry is not None and listing.addressed else listing.names.get(kernel)
    if start is None or start not in listing.lines:
        raise IsaError(
            Finding(
                code="I101",
                message=f"the listing has no instructions of a kernel named {kernel!r}",
                evidence=(
                    ("looked for", f"<{kernel}>: or {kernel}:" if start is None else f"{start:#x}"),
                    ("lines", len(text.splitlines())),
                ),
            )
        )
    functions = [place for name, place in listing.names.items() if listing.addressed and name not in kernels]
    flow = derive_flow(listing, start, functions)
    if flow.missing or _lost(listing, flow):
        raise IsaError(_astray(listing, flow))
    return tuple(_instructions(listing, flow, start, lines))


def _lost(listing: CodeListing, flow: CodeFlow) -> list[int]:
    """Branches of assembly to labels that aren't there."""
    return [
        place for place in sorted(flow.places) if listing.lines[place].label and listing.lines[place].target is None
    ]


def _astray(listing: CodeListing, flow: CodeFlow) -> Finding:
    """The finding about code that leads to where no instruction is shown."""
    lost = _lost(listing, flow)
    place = lost[0] if lost else flow.missing[0][0]
    line = listing.lines[place]
    branches = lost or line.follows != flow.missing[0][1]
    what = "branches to a place that the listing doesn't show" if branches else "runs into a place without instructions"
    return Finding(
        code="I101",
        message=f"{line.text!r} {what}",
        concerns=(_concern(line),),
        evidence=() if lost or not listing.addressed else (("place", f"{flow.missing[0][1]:#x}"),),
    )


def _concern(line: CodeLine) -> Concern:
    return Concern(label=line.text, index=line.number, role="line of the listing")


def _instructions(listing: CodeListing, flow: CodeFlow, start: int, lines: LineTable | None) -> Iterable[Instruction]:
    before = sorted(place for place in flow.places if place < start)
    order = [*sorted(place for place in flow.places if place >= start), *before]
    if before and falls_through((last := listing.lines[before[-1]]).opcode) and last.follows == start:
        message = f"{last.text!r} runs into the beginning of its own kernel"
        raise IsaError(Finding(code="I101", message=message, concerns=(_concern(last),)))
    numbers = {place: number for number, place in enumerate(order)}
    names = sorted((place, name) for name, place in listing.names.items()) if listing.addressed else []
    starts = [place for place, _ in names]
    for place in order:
        line = listing.lines[place]
        at = bisect_right(starts, place) - 1
        yield instruction_of(
            line,
            place if listing.addressed else None,
            None if line.target is None else numbers[line.target],
            names[at][1] if at >= 0 else None,
            None if lines is None or not listing.addressed else lines.at(place),
        )


def instruction_of(
    line: CodeLine,
    address: int | None = None,
    target: int | None = None,
    symbol: str | None = None,
    source: SourceLine | None = None,
) -> Instruction:
    """One line of a listing, with where it stands as far as that is known."""
    opcode, _, rest = line.text.partition(" ")
    operands = [part.strip() for part in _OPERANDS.split(rest.strip())] if rest.strip() else []
    modifiers: tuple[str, ...] = ()
    if operands and " " in operands[-1] and opcode != "s_waitcnt":
        operands[-1], *trailing = _SPACES.split(operands[-1])
        modifiers = tuple(trailing)
    if not opcode.endswith("64"):  # of 32 bits, a number is the same wherever it is encoded
        operands = [_LITERAL.sub(r"\1", operand) for operand in operands]
    return Instruction(
        opcode=opcode,
        operands=tuple(operands),
        modifiers=modifiers,
        text=line.text,
        line=line.number,
        address=address,
        target=target,
        symbol=symbol,
        source=source,
        encoding=line.words,
    )
