"""A code object from a file: takes its bytes and a disassembler, gives a `CodeObject` with its instructions.

The sweep of a disassembler goes astray behind data that looks like the first half of an instruction.  So it is asked
again, with every place that code leads to as a further start, until no jump goes between two instructions.
"""

from __future__ import annotations

from rota.isa.binary.bundle import unbundled
from rota.isa.binary.code_object import CodeObject, kernels_of
from rota.isa.binary.disassembler import disassemble
from rota.isa.binary.elf import ElfFile, read_elf
from rota.isa.binary.kernel_facts import KernelFacts
from rota.isa.binary.line_table import read_lines
from rota.isa.code.code_listing import parse_listing
from rota.isa.code.flow import derive_flow

_MOST_SWEEPS = 8


def read_code_object(
    contents: bytes, objdump: tuple[str, ...], *, arch: str | None = None, toolchain: str = "", assembly: str = ""
) -> CodeObject:
    """What the bytes of a code object say, whoever made them; of a bundle, the one for `arch` is taken."""
    hsaco = unbundled(contents, arch)
    file = read_elf(hsaco)
    kernels = kernels_of(file)
    return CodeObject(
        arch=kernels[0].arch,
        toolchain=toolchain,
        hsaco=hsaco,
        assembly=assembly,
        disassembly=_swept(file, kernels, objdump),
        kernels=kernels,
        lines=read_lines(hsaco),
    )


def _swept(file: ElfFile, kernels: tuple[KernelFacts, ...], objdump: tuple[str, ...]) -> str:
    starts = {
        symbol.address: symbol.name for symbol in file.symbols if symbol.function and file.code_at(symbol.address)
    }
    names = {kernel.name for kernel in kernels}
    functions = [place for place, name in starts.items() if name not in names]
    entries = {kernel.entry: kernel.name for kernel in kernels if kernel.entry is not None}
    starts = {**{entry: name for entry, name in entries.items() if not _inside(entry, file)}, **starts}
    for _ in range(_MOST_SWEEPS):
        text = disassemble(file, starts, objdump)
        listing = parse_listing(text)
        astray = {
            to
            for entry in entries
            for _, to in derive_flow(listing, entry, functions).missing
            if file.code_at(to) and to not in starts
        }
        astray |= {entry for entry in entries if entry not in listing.lines and entry not in starts}
        if not astray:
            break
        starts |= {place: f"code_{place:x}" for place in astray}
    return text


def _inside(address: int, file: ElfFile) -> bool:
    """Does it lie within a function, as an entry behind the loads of preloaded arguments does?"""
    return any(each.function and each.address < address < each.address + each.size for each in file.symbols)
