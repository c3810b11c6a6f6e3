"""How much of other people's machine code is known: takes folders of code objects, prints what the interpreter decodes.

Run `python -m benchmarks.decoding [FOLDER ...]` from the repository's root; without a folder, `kernels/compiled` and
`kernels/aiter` of the folder `shared`, beside the checkout or where `ROTA_SHARED` says.  A bare git
directory does as well, by its newest commit.  An instruction is counted if a kernel can come to it, and known if it
decodes as a whole, with its operands and modifiers.  What isn't known is listed by mnemonic, and by what is not known
of it.  Code objects of machines that the interpreter doesn't have are counted apart, and drawn anew with --draw.  The
exit status is 1 if another one can't be read, or if the share lies under `--least` (in percent).
"""

from __future__ import annotations

import argparse
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from random import Random

from rota.errors import IsaError, RotaError
from rota.isa.binary.toolchain import find_objdump, read_code_object
from rota.isa.decoded import decode
from rota.isa.disassembly import Instruction, expand_vskip
from rota.targets.registry import architecture_named
from tests.campaigns.shared_folder import shared_folder

SHARED = shared_folder("kernels")
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
    elsewhere: int = 0  # code objects of machines that the interpreter doesn't have

    @property
    def share(self) -> float:
        """Of the instructions, in percent; 100 if there are none."""
        return 100 * self.known / self.instructions if self.instructions else 100.0


def code_objects(folder: Path) -> list[Path]:
    """All code objects under a folder."""
    return sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES)


def found_in(folder: Path) -> list[tuple[str, Callable[[], bytes]]]:
    """All code objects of a folder, or of the newest commit of a bare git directory: names, and what reads them."""
    if not (folder / "HEAD").is_file():
        return [(path.name, path.read_bytes) for path in code_objects(folder)]
    listed = _git(folder, "ls-tree", "-r", "HEAD").decode().splitlines()
    entries = (line.split(maxsplit=3) for line in listed if line.endswith(SUFFIXES))
    return [(path, partial(_git, folder, "cat-file", "blob", blob)) for _, _, blob, path in entries]


def _git(folder: Path, *command: str) -> bytes:
    return subprocess.run(("git", "--git-dir", folder, *command), capture_output=True, check=True).stdout


def tally(paths: Sequence[Path]) -> Tally:
    """Decodes every kernel of every code object."""
    return tally_of((path.name, path.read_bytes) for path in paths)


def tally_of(objects: Iterable[tuple[str, Callable[[], bytes]]], most: int | None = None) -> Tally:
    """Decodes every kernel of every code object, until so many were looked at."""
    result, objdump = Tally(), find_objdump()
    for name, read in objects:
        try:
            code = read_code_object(read(), objdump)
            architecture = architecture_named(code.arch)
            if architecture is None or architecture.unmodelled:
                result.elsewhere += 1
                continue
            for kernel in code.kernels:
                _count(result, code.instructions(kernel.name), kernel.arch)
        except subprocess.CalledProcessError:
            result.unread.append(f"{name}: the snapshot doesn't hold it")
        except RotaError as error:
            if error.findings[0].code == "I111":
                result.elsewhere += 1
                continue
            result.unread.append(f"{name}: {error.findings[0].message}")
        result.objects += 1
        if result.objects == most:
            break
    return result


def _count(result: Tally, instructions: Sequence[Instruction], arch: str) -> None:
    result.kernels += 1
    missing = 0
    count = len(instructions)
    for instruction in expand_vskip(instructions)[:count]:
        result.instructions += 1
        result.mnemonics[instruction.opcode] += 1
        why = _unknown(_anywhere(instruction), arch)
        if why is not None:
            missing += 1
            result.unknown[instruction.opcode] += 1
            result.reasons.setdefault(instruction.opcode, Counter())[why] += 1
            result.examples.setdefault(instruction.opcode, instruction.text)
    result.known = result.instructions - sum(result.unknown.values())
    result.whole += not missing


def _anywhere(instruction: Instruction) -> Instruction:
    """The instruction without where it stands."""
    target = None if instruction.target is None else 0
    return replace(instruction, line=0, address=None, target=target, symbol=None, source=None)


@lru_cache(maxsize=1 << 18)
def _unknown(instruction: Instruction, arch: str) -> str | None:
    """What isn't known of an instruction, or None; where it stands makes no difference."""
    architecture = architecture_named(arch)
    assert architecture is not None
    try:
        decode(instruction, architecture)
    except IsaError as error:
        return error.findings[0].message.partition("; ")[2] or "the opcode"
    return None


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
    if result.elsewhere:
        yield f"  {result.elsewhere:,} more are for machines that the interpreter doesn't have"


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
        objects = found_in(folder)
        if options.draw is not None:
            Random(options.seed).shuffle(objects)
        result = tally_of(objects, options.draw)
        print("\n".join(lines_of(folder.name, result)), flush=True)
        failed |= bool(result.unread) or result.share < options.least
    return int(failed)
