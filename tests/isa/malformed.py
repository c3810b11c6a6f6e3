"""Damaged code objects: takes the bytes of whole ones and seeds, gives what became of reading each.

A case is read to its end: notes and descriptors, the disassembly of what is executable, the line table, and the steps
of every kernel.  Children do it, with a bound on memory, so that a crash is seen as well.  Seconds are those of the
processor, the disassembler's included: a machine may be busy with other things.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import process_time
from types import FrameType

from rota.errors import RotaError
from rota.isa.binary.object_file import read_code_object
from rota.isa.binary.toolchain import find_objdump
from rota.isa.decoded import load_program

MOST_SECONDS = 5.0
_HANGS = 60.0  # seconds by the clock
MOST_BYTES = 2**31
_EXTREMES = (0, 1, 0xFF, 0xFFFF, 0x7FFF_FFFF, 0xFFFF_FFFF, 2**40, 2**63 - 1, 2**63, 2**64 - 1)
_HEADS = 0x1000  # headers, notes and dynamic symbols lie here, section headers as far from the end
_ROOT = Path(__file__).parents[2]


@dataclass(slots=True, kw_only=True)
class Damage:
    """What became of many cases: `codes` of the first findings, "read" where there is none; `defects` in words."""

    cases: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    most_bytes: int = 0
    defects: list[str] = field(default_factory=list)

    def __add__(self, other: Damage) -> Damage:
        return Damage(
            cases=self.cases + other.cases,
            codes=self.codes + other.codes,
            slowest=max(self.slowest, other.slowest),
            most_bytes=max(self.most_bytes, other.most_bytes),
            defects=self.defects + other.defects,
        )


def damaged(whole: bytes, random: Random) -> bytes:
    """The bytes cut short, with bits flipped, or with numbers that are as large or small as they can be."""
    kind = random.randrange(5)
    if kind == 0:
        return whole[: random.randrange(len(whole))]
    changed = bytearray(whole)
    for _ in range(random.choice((1, 1, 2, 3, 8))):
        at = _place(len(whole), random)
        if kind <= 2:
            changed[at] ^= 1 << random.randrange(8)
        elif kind == 3:
            changed[at] = random.randrange(256)
        else:
            size = random.choice((2, 4, 8))
            at -= at % size
            number = random.choice((*_EXTREMES, len(whole), at)) & ((1 << 8 * size) - 1)
            changed[at : at + size] = number.to_bytes(size, "little")
    return bytes(changed[: len(whole)])


def _place(size: int, random: Random) -> int:
    return random.choice(
        (random.randrange(min(size, _HEADS)), size - 1 - random.randrange(min(size, _HEADS)), random.randrange(size))
    )


def outcome(contents: bytes, objdump: tuple[str, ...]) -> str:
    """The code of the finding that reading ends in, or "read"; any other exception comes through."""
    try:
        code = read_code_object(contents, objdump)
        for kernel in code.kernels:
            load_program(kernel, code.instructions(kernel.name))
    except RotaError as error:
        return error.findings[0].code
    return "read"


def campaign(paths: Sequence[Path], seeds: range, batch: int = 250) -> Damage:
    """Draws a file and a damage for each seed."""
    result = Damage()
    for first in range(seeds.start, seeds.stop, batch):
        _run(paths, range(first, min(first + batch, seeds.stop)), result)
    return result


def _run(paths: Sequence[Path], seeds: range, result: Damage) -> None:
    """One child; where it dies, the case is a defect, and the next child starts behind it."""
    start = seeds.start
    while start < seeds.stop:
        job = json.dumps([[str(path) for path in paths], start, seeds.stop])
        command = (sys.executable, "-m", "tests.isa.malformed")
        child = subprocess.run(
            command, input=job, capture_output=True, text=True, cwd=_ROOT, env=os.environ, check=False
        )
        for line in child.stdout.splitlines():
            seed, said, seconds, size = json.loads(line)
            result.cases += 1
            result.codes[said] += 1
            result.slowest, result.most_bytes = max(result.slowest, seconds), max(result.most_bytes, size)
            if said.startswith("!") or seconds > MOST_SECONDS:
                result.defects.append(f"seed {seed}: {said}, {seconds:.1f} s")
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


def _child() -> None:
    names, first, stop = json.load(sys.stdin)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    signal.signal(signal.SIGALRM, _too_long)
    objdump = find_objdump()
    for seed in range(first, stop):
        random = Random(seed)
        contents = damaged(Path(random.choice(names)).read_bytes(), random)
        started = _seconds()
        signal.setitimer(signal.ITIMER_REAL, _HANGS)
        try:
            said = outcome(contents, objdump)
        except Exception as error:  # noqa: BLE001  # what this looks for
            said = f"! {type(error).__name__}: {error}"[:200]
        signal.setitimer(signal.ITIMER_REAL, 0)
        size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps([seed, said, _seconds() - started, size]), flush=True)


if __name__ == "__main__":
    _child()
