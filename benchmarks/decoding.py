"""How much of other people's machine code is known: takes folders of code objects, prints what the interpreter decodes.

Run `python -m benchmarks.decoding [FOLDER ...]` from the repository's root; without a folder, `kernels/compiled` and
`kernels/aiter` of the folder `shared`, beside the checkout or where `ROTA_SHARED` says.  An instruction is counted if a
kernel can come to it, and known if it decodes as a whole, with its operands and modifiers.  What isn't known is listed
by mnemonic, and by what is not known of it.  The exit status is 1 if a code object can't be read, or if the share lies
under `--least` (in percent).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from rota.errors import IsaError, RotaError
from rota.isa.binary.object_file import read_code_object
from rota.isa.binary.toolchain import find_objdump
from rota.isa.code.disassembly import Instruction
from rota.isa.decoded import decode
from rota.isa.wave.skip import without_skipping
from rota.targets.registry import architecture_named

SHARED = Path(os.environ.get("ROTA_SHARED") or Path(__file__).parents[2] / "shared") / "kernels"
SUFFIXES = (".hsaco", ".co")


@dataclass(slots=True, kw_only=True)
class Tally:
    """What was found in one corpus; `unknown` counts mnemonics, `reasons` the messages about them."""

    objects: int = 0
    kernels: int = 0
    whole: int = 0  # kernels of which everything is known
    instructions: int = 0
    known: int = 0
    mnemonics: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, Counter[str]] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)

    @property
    def share(self) -> float:
        """Of the instructions, in percent; 100 if there are none."""
        return 100 * self.known / self.instructions if self.instructions else 100.0


def code_objects(folder: Path) -> list[Path]:
    """All code objects under a folder."""
    return sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES)


def tally(paths: Sequence[Path]) -> Tally:
    """Decodes every kernel of every code object."""
    result, objdump = Tally(), find_objdump()
    for path in paths:
        result.objects += 1
        try:
            code = read_code_object(path.read_bytes(), objdump)
            for kernel in code.kernels:
                _count(result, code.instructions(kernel.name), kernel.arch)
        except RotaError as error:
            result.unread.append(f"{path.name}: {error.findings[0].message}")
    return result


def _count(result: Tally, instructions: Sequence[Instruction], arch: str) -> None:
    architecture = architecture_named(arch)
    assert architecture is not None
    result.kernels += 1
    missing = 0
    count = len(instructions)
    for instruction in without_skipping(instructions)[:count]:
        result.instructions += 1
        result.mnemonics[instruction.opcode] += 1
        try:
            decode(instruction, architecture)
        except IsaError as error:
            missing += 1
            result.unknown[instruction.opcode] += 1
            why = error.findings[0].message.partition("; ")[2] or "the opcode"
            result.reasons.setdefault(instruction.opcode, Counter())[why] += 1
            result.examples.setdefault(instruction.opcode, instruction.text)
    result.known = result.instructions - sum(result.unknown.values())
    result.whole += not missing


def lines_of(name: str, result: Tally) -> Iterator[str]:
    """The table of one corpus."""
    yield f"{name}: {result.objects:,} code objects, {result.kernels:,} kernels, {result.whole:,} known as a whole"
    yield (
        f"  {result.known:,} of {result.instructions:,} instructions known, {result.share:.3f} %; "
        f"{len(result.mnemonics) - len(result.unknown):,} of {len(result.mnemonics):,} mnemonics known in every form"
    )
    for opcode, count in result.unknown.most_common():
        why = "; ".join(reason for reason, _ in result.reasons[opcode].most_common(3))
        yield f"  {count:7,}  {opcode:34} {why:.60}   e.g. {result.examples[opcode]:.80}"
    yield from (f"  not read: {each}" for each in result.unread)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table for each folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--least", type=float, default=0.0, help="share that must be known, in percent")
    parser.add_argument("--draw", type=int, help="so many code objects of each folder, drawn by --seed")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    failed = False
    for folder in options.folders or (SHARED / "compiled", SHARED / "aiter"):
        paths = code_objects(folder)
        if options.draw is not None:
            paths = sorted(Random(options.seed).sample(paths, min(options.draw, len(paths))))
        result = tally(paths)
        print("\n".join(lines_of(folder.name, result)), flush=True)
        failed |= bool(result.unread) or result.share < options.least
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
