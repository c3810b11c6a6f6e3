"""Registers above v255: what LLVM's disassembler says of each operand, against what the interpreter takes it for.

In a straight line of code the disassembler follows s_set_vgpr_msb itself, and prints `v8 /*v264*/`.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from rota.isa.binary.toolchain import find_toolchain
from rota.isa.disassembly import Instruction, read_listing
from rota.isa.register_banks import select_banks
from rota.targets.cdna5 import CDNA5
from tests.isa.every_opcode import executes
from tests.isa.plain_gfx12 import lds, memory
from tests.isa.plain_gfx12.cases import WAITS, Draw, run_case
from tests.isa.plain_gfx12.draw import MOST_PLAIN, OPCODES, PAIRED, drawn_pair, drawn_rows, drawn_text
from tests.isa.plain_gfx12.judge import ARCH, assembled, assembler, fresh_state, judged
from tests.isa.plain_gfx12.vector import run_vector
from tests.isa.wmma_oracle import OPCODES as PRODUCTS, drawn_product, text_of

_MEANT = re.compile(r"v(?:\d+|\[\d+:\d+\])(?:\.[lh])? ?/\*(v(?:\d+|\[\d+:\d+\])(?:\.[lh])?)\*/")
ALL = 1024  # registers of a lane
_PLACE = re.compile(r"// [0-9A-F]{12}: ")
_REGISTER = re.compile(r"(?<![\w.])v(?:\d+|\[\d+:\d+\])(?:\.[lh])?")


def drawn_texts(random: Random) -> list[str]:
    """A text of each opcode that names vector registers, and that the interpreter executes."""
    texts = [drawn_text(random, opcode, MOST_PLAIN).text for opcode in OPCODES if not opcode.startswith("v_cmpx")]
    texts += [drawn_pair(random, opcode, MOST_PLAIN).text for opcode in PAIRED]
    texts += [draw(random).text for draw in (*lds.DRAWS.values(), *memory.DRAWS.values())]
    texts += [text_of(drawn_product(random, opcode)) for opcode in PRODUCTS]
    pairs = zip(texts, assembled(texts), strict=True)
    return [text for text, shown in pairs if shown is not None and executes(shown, ARCH)]


def _selected(random: Random, texts: Sequence[str]) -> list[tuple[str, Instruction]]:
    """Each text in banks of its own: as LLVM's disassembler means it, and as the interpreter reads it."""
    toolchain = find_toolchain()
    assert toolchain.objdump is not None
    assert CDNA5.listing is not None
    lines = [line for text in texts for line in (f"s_set_vgpr_msb {random.randrange(1, 256):#x}", text)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "k.s").write_text("k:\n" + "\n".join(lines) + "\ns_endpgm\n")
        subprocess.run((*assembler(), "-c", "k.s", "-o", "k.o"), cwd=folder, check=True)
        command = (*toolchain.objdump, "-d", *CDNA5.listing.options, "k.o")
        listing = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    found = select_banks(read_listing(listing, "k"), banked=True)
    shown = [_PLACE.split(line)[0].strip() for line in listing.splitlines() if _PLACE.search(line)]
    assert len(shown) == len(found) == len(lines) + 1
    return [(_MEANT.sub(r"\1", line), each) for line, each in zip(shown[1::2], found[1::2], strict=False)]


def named_differently(random: Random, texts: Sequence[str]) -> Iterator[str]:
    """Texts whose registers the two name differently."""
    for line, instruction in _selected(random, texts):
        wanted = _REGISTER.findall(line.partition(" ")[2])
        given = _REGISTER.findall(", ".join(instruction.operands))
        if sorted(wanted) != sorted(given):  # both targets of a pair come first
            yield f"{line}: {given}"


def executed_differently(random: Random, opcodes: Sequence[str]) -> Iterator[str]:
    """Texts that do something else with registers above v255."""
    drawn = [drawn_text(random, opcode, MOST_PLAIN) for opcode in opcodes]
    pairs = zip(drawn, assembled([each.text for each in drawn]), strict=True)
    drawn = [each for each, shown in pairs if shown is not None and executes(shown, ARCH)]
    for each, (line, instruction) in zip(drawn, _selected(random, [each.text for each in drawn]), strict=True):
        state = fresh_state(random, count=ALL)
        for first, kind in each.kinds.items():
            for bank in range(0, ALL, 256):
                for part, lanes in enumerate(drawn_rows(random, kind)):
                    state.v[bank + first + part] = lanes
        verdict = judged(line, instruction, state, run_vector, declared=False)
        if verdict.outcome != "right":
            yield f"{verdict.text}: {verdict.outcome}"


def accessed_differently(random: Random, draws: Sequence[Draw]) -> Iterator[str]:
    """Accesses that do something else with registers above v255."""
    cases = [draw(random) for draw in draws]
    shown = assembled([*(case.text for case in cases), *WAITS])
    waits = [each for each in shown[len(cases) :] if each is not None]
    pairs = zip(cases, shown, strict=False)
    cases = [case for case, each in pairs if each is not None and executes(each, ARCH)]
    for case, (line, instruction) in zip(cases, _selected(random, [case.text for case in cases]), strict=True):
        low, high = (_REGISTER.findall(text.partition(" ")[2]) for text in (case.text, line))
        rows = {
            one: other for pair in zip(low, high, strict=True) for one, other in zip(*map(_rows, pair), strict=True)
        }
        outcome = run_case(case, instruction, waits, {one: other for one, other in rows.items() if other != one})
        if outcome not in {"right", "refused"}:
            yield f"{line}: {outcome}"


def _rows(name: str) -> range:
    first, _, last = name.removeprefix("v").strip("[]").partition(":")
    return range(int(first), int(last or first) + 1)
