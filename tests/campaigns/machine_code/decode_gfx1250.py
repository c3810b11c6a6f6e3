"""How much of gfx1250's machine code is read: prints for each folder what is known and what is refused.

Run `python -m benchmarks.decode_gfx1250 [FOLDER]` from the repository's root; without a folder, `kernels/gfx1250` of
the folder `shared`, beside the checkout or where `ROTA_SHARED` says.  An instruction is counted if a kernel can reach
it.  It is known if the table of opcodes has its roles; of those, proof and interpreter refuse by name what they have no
semantics for.  The numbers of vector registers are compared with those that llvm-objdump follows in straight code, from
an `s_set_vgpr_msb` to the next branch or label.  The exit status is 1 if an object can't be read, or if these differ.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rota.errors import RotaError
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.toolchain import read_object
from rota.isa.disassembly import Instruction, name_in
from rota.isa.opcodes import IsaFlow, opcode_named
from tests.campaigns.shared_folder import shared_folder

FOLDERS = ("hip", "gluon", "triton", "aiter")
_SUFFIXES = (".hsaco", ".co")
_ADDRESS = re.compile(r"//\s*([0-9A-F]+): ")
_GUESS = re.compile(r"v(?:\d+|\[\d+:\d+\])(?:\.[lh])?\s*/\*(v(?:\d+|\[\d+:\d+\]))(?:\.[lh])?\*/")
_VECTOR = re.compile(r"(?<![\w.])v(?:\d+|\[\d+:\d+\])")
_STRAIGHT = frozenset({IsaFlow.NEXT, IsaFlow.WAIT, IsaFlow.SIGNAL, IsaFlow.JOIN})


@dataclass(slots=True, kw_only=True)
class Read:
    """What was read of one folder; `refused` counts findings by code, `unknown` and `unmodelled` opcodes by name."""

    objects: int = 0
    instructions: int = 0
    opcodes: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    unmodelled: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    compared: int = 0
    unlike: int = 0


def found_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix in _SUFFIXES)


def tally(paths: Iterable[Path]) -> Read:
    """Reads all kernels of all objects."""
    result = Read()
    for path in paths:
        result.objects += 1
        try:
            code = read_object(path)
            for kernel in code.kernels:
                _count(result, code, code.instructions(kernel.name))
        except RotaError as error:
            result.refused[error.findings[0].code] += 1
    return result


def _count(result: Read, code: CodeObject, instructions: Sequence[Instruction]) -> None:
    for each in instructions:
        name = name_in(each.text)  # that of a selection of banks, too, which has no effect any more
        spec = opcode_named(name)
        result.instructions += 1
        result.opcodes[name] += 1
        if not spec.known:
            result.unknown[name] += 1
        elif not spec.modelled and each.opcode == name:
            result.unmodelled[name] += 1
    for ours, theirs in _straight(code, instructions):
        result.compared += 1
        result.unlike += ours != theirs


def _straight(code: CodeObject, instructions: Sequence[Instruction]) -> Iterator[tuple[list[str], list[str]]]:
    """The vector registers of instructions whose banks llvm-objdump knows, as rota and as it names them."""
    lines = {int(found[1], 16): line for line in code.disassembly.splitlines() if (found := _ADDRESS.search(line))}
    targets, known = {each.target for each in instructions}, False
    for number, each in enumerate(instructions):
        line = lines[each.address or 0].split("// ")[0]
        known = known and number not in targets
        if known:
            theirs = _GUESS.sub(r"\1", line)
            yield _VECTOR.findall(each.text), _VECTOR.findall(theirs)
        known = (known or each.text.startswith("s_set_vgpr_msb")) and each.spec.flow in _STRAIGHT


def lines_of(name: str, result: Read) -> Iterator[str]:
    known = result.instructions - result.unknown.total()
    yield (
        f"{name}: {result.objects} objects, {result.instructions:,} instructions, {known:,} known, of "
        f"{len(result.opcodes)} opcodes {len(result.opcodes) - len(result.unknown)}"
    )
    yield f"  {result.compared:,} compared with llvm-objdump's own registers, {result.unlike} unlike"
    for what, counts in (("unknown", result.unknown), ("no semantics yet", result.unmodelled)):
        yield from (f"  {count:7,}  {what}: {opcode}" for opcode, count in counts.most_common())
    yield from (f"  {count} objects refused: {code}" for code, count in result.refused.items())


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the folders of a corpus."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=shared_folder("kernels") / "gfx1250")
    folder = parser.parse_args(arguments).folder
    failed = False
    for name in FOLDERS:
        result = tally(found_in(folder / name))
        print("\n".join(lines_of(name, result)), flush=True)
        failed |= bool(result.refused) or bool(result.unlike)
    return int(failed)
