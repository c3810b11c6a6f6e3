"""Damaged code objects: takes the bytes of whole ones and seeds, gives what became of reading each.

Damage is aimed: at the header, the tables of segments and sections, notes, symbols and their names, line tables, kernel
descriptors and code, each as often as the others.  A case is read to its end: notes and descriptors, the disassembly of
what is executable, the line table, and the steps of every kernel.  Where code and descriptors came through whole, the
listing and the steps are those of a case before, and neither the disassembler nor the decoder runs again.  Children do
it, with a bound on memory, so that a crash is seen as well.  Seconds are those of the processor, the disassembler's
included: a machine may be busy with other things.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from pathlib import Path
from random import Random
from time import process_time
from types import FrameType

from rota.errors import RotaError, Severity
from rota.isa.binary import toolchain
from rota.isa.binary.toolchain import find_objdump, read_code_object
from rota.isa.decoded import load_program
from rota.isa.disassembly import read_listing
from rota.isa.wave.control import check_float_mode
from tests.isa.elf_places import Places, places_of
from tests.isa.single import facts

MOST_SECONDS = 5.0
_HANGS = 60.0  # seconds by the clock
MOST_BYTES = 2**31
_EXTREMES = (0, 1, 0xFF, 0xFFFF, 0x7FFF_FFFF, 0xFFFF_FFFF, 2**40, 2**63 - 1, 2**63, 2**64 - 1)
_MOST_LOADED = 500  # kernels that are remembered
_ROOT = Path(__file__).parents[2]


@dataclass(slots=True, kw_only=True)
class Damage:
    """What became of many cases: `codes` of the first findings, "read" where there is none; `defects` in words.

    `parts` counts where the damage was.
    """

    cases: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    parts: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    most_bytes: int = 0
    defects: list[str] = field(default_factory=list)

    def __add__(self, other: Damage) -> Damage:
        return Damage(
            cases=self.cases + other.cases,
            codes=self.codes + other.codes,
            parts=self.parts + other.parts,
            slowest=max(self.slowest, other.slowest),
            most_bytes=max(self.most_bytes, other.most_bytes),
            defects=self.defects + other.defects,
        )


def damaged(whole: bytes, places: Places, others: Sequence[bytes], random: Random) -> tuple[str, bytes]:
    """Where the damage is, and the bytes: cut short, bits, bytes or numbers changed, or others' bytes spliced in."""
    part = random.choice(sorted(places))
    spans = places[part]
    kind = random.choice(("cut", "bits", "bits", "bytes", "numbers", "numbers", "splice", "shift"))
    start, size = random.choice(spans)
    if kind == "cut":
        return f"cut in {part}", whole[: start + random.randrange(size + 1)]
    if kind == "splice":
        other = random.choice(others)
        taken = _span_of(other, part, random)
        return f"spliced {part}", whole[:start] + taken[:size] + whole[start + len(taken[:size]) :]
    if kind == "shift":  # bytes left out or put in: everything after is elsewhere
        at, count = start + random.randrange(size), random.choice((1, 2, 4, 8, 64))
        put = random.randbytes(count) if random.random() < 0.5 else b""
        return f"shifted from {part}", whole[:at] + put + whole[at + (0 if put else count) :]
    changed = bytearray(whole)
    for _ in range(random.choice((1, 1, 2, 3, 8))):
        start, size = random.choice(spans)
        at = start + random.randrange(size)
        if kind == "bits":
            changed[at] ^= 1 << random.randrange(8)
        elif kind == "bytes":
            changed[at] = random.randrange(256)
        else:
            width = random.choice((2, 4, 8))
            at -= at % width
            number = random.choice((*_EXTREMES, len(whole), at)) & ((1 << 8 * width) - 1)
            changed[at : at + width] = number.to_bytes(width, "little")
    return f"{kind} of {part}", bytes(changed[: len(whole)])


def _span_of(other: bytes, part: str, random: Random) -> bytes:
    spans = places_of(other).get(part)
    if not spans:
        return random.randbytes(64)
    start, size = random.choice(spans)
    return other[start : start + size]


@lru_cache(maxsize=_MOST_LOADED)
def _steps(arch: str, name: str, entry: int | None, listing: str, names: tuple[str, ...]) -> str | None:
    """The code of the finding that `CodeObject.instructions` or `load_program` ends in: all that they look at is here.

    Except the float mode of the descriptor, which is looked at for each kernel.
    """
    try:
        load_program(facts(arch, name=name), read_listing(listing, name, entry=entry, kernels=names))
    except RotaError as error:
        return error.findings[0].code
    return None


def outcome(contents: bytes, objdump: tuple[str, ...]) -> str:
    """The code of the finding that reading ends in, or "read"; any other exception comes through."""
    try:
        code = read_code_object(contents, objdump)
    except RotaError as error:
        return error.findings[0].code
    names = tuple(each.name for each in code.kernels)
    for kernel in code.kernels:
        found = _steps(kernel.arch, kernel.name, kernel.entry, code.disassembly, names)
        unlike = [each.code for each in check_float_mode(kernel) if each.severity is Severity.ERROR]
        if found or unlike:
            return found or unlike[0]
    return "read"


def campaign(paths: Sequence[Path], seeds: range, batch: int = 1000, module: str = "tests.isa.malformed") -> Damage:
    """Draws a file and a damage for each seed; `module` is what children run."""
    result = Damage()
    for first in range(seeds.start, seeds.stop, batch):
        _run(module, paths, range(first, min(first + batch, seeds.stop)), result)
    return result


def _run(module: str, paths: Sequence[Path], seeds: range, result: Damage) -> None:
    """One child; where it dies, the case is a defect, and the next child starts after it."""
    start = seeds.start
    while start < seeds.stop:
        job = json.dumps([[str(path) for path in paths], start, seeds.stop])
        command = (sys.executable, "-m", module)
        child = subprocess.run(
            command, input=job, capture_output=True, text=True, cwd=_ROOT, env=os.environ, check=False
        )
        for line in child.stdout.splitlines():
            seed, part, said, seconds, size = json.loads(line)
            result.cases += 1
            result.codes[said] += 1
            result.parts[part] += 1
            result.slowest, result.most_bytes = max(result.slowest, seconds), max(result.most_bytes, size)
            if said.startswith("!") or seconds > MOST_SECONDS:
                result.defects.append(f"seed {seed}, {part}: {said}, {seconds:.1f} s")
            start = seed + 1
        if start < seeds.stop:
            result.cases += 1
            result.defects.append(f"seed {start}: exit {child.returncode}, {child.stderr.strip()[-200:]}")
            start += 1


def _too_long(_: int, __: FrameType | None) -> None:
    raise TimeoutError(f"more than {_HANGS} s by the clock")


def _seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return process_time() + children.ru_utime + children.ru_stime


def bounded(cases: Callable[[Sequence[str], int], tuple[str, Callable[[], str]]]) -> None:
    """A child: `cases` gives for files and a seed what is damaged, and what tells what becomes of it."""
    names, first, stop = json.load(sys.stdin)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    signal.signal(signal.SIGALRM, _too_long)
    for seed in range(first, stop):
        part, told = cases(names, seed)
        started = _seconds()
        signal.setitimer(signal.ITIMER_REAL, _HANGS)
        try:
            said = told()
        except Exception as error:  # noqa: BLE001  # what this looks for
            said = f"! {type(error).__name__}: {error}"[:200]
        signal.setitimer(signal.ITIMER_REAL, 0)
        size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps([seed, part, said, _seconds() - started, size]), flush=True)


@cache
def contents_of(name: str) -> bytes:
    """A whole file."""
    return Path(name).read_bytes()


def _case(names: Sequence[str], seed: int) -> tuple[str, Callable[[], str]]:
    random = Random(seed)
    whole = contents_of(random.choice(names))
    others = [contents_of(random.choice(names))]
    part, broken = damaged(whole, places_of(whole), others, random)
    return part, partial(outcome, broken, find_objdump())


if __name__ == "__main__":
    toolchain._listing = lru_cache(maxsize=_MOST_LOADED)(toolchain._listing.__wrapped__)  # of every file
    bounded(_case)
