"""Every opcode of a machine: takes its name, gives one instruction for each, as LLVM's disassembler shows it.

Each opcode field of each encoding is counted through (CDNA3 and CDNA4 ISA, "Microcode Formats"; of gfx12 in
`tests.isa.plain_gfx12.words`), with registers that fit any instruction; what the disassembler refuses isn't there.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from rota.errors import IsaError
from rota.isa.binary.elf import ElfFile, Segment
from rota.isa.binary.toolchain import bare_file, find_objdump
from rota.isa.decoded import decode
from rota.isa.disassembly import Instruction, instruction_of, parse_listing
from rota.targets.registry import architecture_named
from tests.isa.plain_gfx12.words import gfx12_words

ENCODING = re.compile(r"_(e32|e64|dpp|sdwa)$")
_TARGET, _ONE, _TWO, _THREE = 8, 16, 48, 96  # registers: even, and apart
_VECTOR = 256  # in a source of nine bits, the first VGPR
_SLOT = 4  # words for each instruction, filled up with s_nop
_NOP = 0xBF80_0000
_OFF = 0x7F


def _words() -> Iterator[tuple[int, ...]]:
    for op in range(256):
        yield (0xBE80_0000 | _TARGET << 16 | op << 8 | _ONE,)  # SOP1
    for op in range(96):
        yield (0x8000_0000 | op << 23 | _TARGET << 16 | _TWO << 8 | _ONE,)  # SOP2
    for op in range(128):
        yield (0xBF00_0000 | op << 16 | _TWO << 8 | _ONE,)  # SOPC
        yield (0xBF80_0000 | op << 16,)  # SOPP
    for op in range(29):
        yield (0xB000_0000 | op << 23 | _TARGET << 16 | 1,)  # SOPK
    for op in range(256):
        yield (0xC002_0000 | op << 18 | _TARGET << 6 | _ONE >> 1, 0x40)  # SMEM
    for op in range(256):
        yield (0x7E00_0000 | _TARGET << 17 | op << 9 | _VECTOR + _ONE,)  # VOP1
        yield (0x7C00_0000 | op << 17 | _TWO << 9 | _VECTOR + _ONE,)  # VOPC
    for op in range(62):
        yield (
            op << 25 | _TARGET << 17 | _TWO << 9 | _VECTOR + _ONE,
            0x4000_0000,
        )  # VOP2; a constant for those with one
    sources = _VECTOR + _THREE << 18 | _VECTOR + _TWO << 9 | _VECTOR + _ONE
    scalar_third = _THREE << 18 | _VECTOR + _TWO << 9 | _VECTOR + _ONE
    scalar_lane = _VECTOR + _THREE << 18 | _TWO << 9 | _VECTOR + _ONE
    scalars = _TWO << 9 | _ONE
    for op in range(1024):
        for second in (sources, scalar_third, scalar_lane, scalars):
            yield (0xD000_0000 | op << 16 | _TARGET, second)  # VOP3
            yield (0xD000_0000 | op << 16 | 20 << 8 | _TARGET, second)  # VOP3 with a second result
    for op in range(128):
        yield (0xD380_4000 | op << 16 | _TARGET, 0x1800_0000 | sources)  # VOP3P
    for op in range(256):
        for fields in range(8):  # a register that an instruction doesn't have must be 0
            registers = (_TARGET << 24, _TWO << 16, _ONE << 8)
            chosen = sum(each for bit, each in enumerate(registers) if fields >> bit & 1)
            yield (0xD800_0000 | op << 17, chosen | _THREE)  # DS
            yield (0xD800_0000 | op << 17, chosen)
    for op in range(128):
        for segment in range(3):
            saddr = 0 if segment == 0 else _OFF
            yield (0xDC00_0000 | op << 18 | segment << 14, _TARGET << 24 | saddr << 16 | _ONE << 8 | _THREE)  # FLAT
        for lds in (0, 1 << 16):
            second = _ONE << 24 | _TWO >> 2 << 16 | _TARGET << 8 | _THREE
            yield (0xE000_1000 | op << 18 | lds, second)  # MUBUF
    for op in range(16):
        yield (
            0xE800_1000 | 7 << 23 | 4 << 19 | op << 15,
            _ONE << 24 | _TWO >> 2 << 16 | _TARGET << 8 | _THREE,
        )  # MTBUF


@cache
def every_instruction(arch: str) -> dict[str, Instruction]:
    """By opcode without its encoding, one instruction of it; where several forms were tried, one that decodes."""
    architecture = architecture_named(arch)
    assert architecture is not None
    tried = list(gfx12_words() if architecture.split_barrier else _words())
    options = architecture.listing.options if architecture.listing is not None else ()
    code = b"".join(
        b"".join(word.to_bytes(4, "little") for word in (*words, *(_NOP for _ in range(_SLOT - len(words)))))
        for words in tried
    )
    segment = Segment(address=0x1000, contents=code, size=len(code), executable=True)
    machine = architecture.elf_machine
    assert machine is not None
    file = ElfFile(flags=machine.value, segments=(segment,), symbols=(), metadata=None)
    starts = {0x1000 + 4 * _SLOT * number: f"at{number}" for number, _ in enumerate(tried)}
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "code").write_bytes(bare_file(file, starts))
        command = (*find_objdump(), "-d", "--disassemble-zeroes", *options, "code")
        text = subprocess.run(command, cwd=name, capture_output=True, text=True, check=True).stdout
    listing = parse_listing(text)
    found: dict[str, Instruction] = {}
    for start in starts:
        line = listing.lines.get(start)
        if line is None or line.text.startswith((".long", "<unknown>")) or not line.text or "/*Inv" in line.text:
            continue
        instruction = instruction_of(line, start, None if line.target is None else 0)
        opcode = ENCODING.sub("", instruction.opcode)
        if opcode not in found or not executes(found[opcode], arch):
            found[opcode] = instruction
    return found


def executes(instruction: Instruction, arch: str) -> bool:
    """Does the interpreter decode it?"""
    architecture = architecture_named(arch)
    assert architecture is not None
    try:
        decode(instruction, architecture, {instruction.follows or 0: 0})
    except IsaError:
        return False
    return True
