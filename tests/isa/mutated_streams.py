"""Kernels with changed instructions, executed: takes launches that are known and seeds, gives what became of each.

An instruction gets other bits, is replaced by another one of its kernel or by a jump, or a jump goes elsewhere.  What
then runs must end: right, wrong or in a finding, in seconds, whatever loop it is caught in; and nothing may crash, the
native core included.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from random import Random

from rota import load_kernel
from rota.errors import RotaError
from rota.isa.binary.code_object import read_kernels
from rota.isa.binary.elf import read_elf
from rota.isa.launch.processes import time_limit
from tests.isa.corpus.cases import Case
from tests.isa.malformed import bounded, contents_of

SECONDS = 3.0  # by the clock, of a launch
MOST_INSTRUCTIONS = 100_000  # of a wave
_JUMPS = range(0xBF82, 0xBF8A)  # s_branch and s_cbranch_*, in the high half of a word
_BRANCH, _BARRIER, _NOP = 0xBF82_0000, 0xBF8A_0000, 0xBF80_0000


@cache
def _words(name: str) -> tuple[int, ...]:
    """Where in the file the first kernel's instructions may stand: the words after its entry, up to 2 KiB."""
    whole = contents_of(name)
    entry = read_kernels(whole)[0].entry
    assert entry is not None
    segment = next(each for each in read_elf(whole).segments if each.executable and each.holds(entry))
    start = whole.index(segment.contents) + entry - segment.address
    size = min(len(segment.contents) - (entry - segment.address), 2048)
    return tuple(range(start, start + size - size % 4, 4))


def mutated(name: str, random: Random) -> tuple[str, bytes]:
    """What was done, and the file."""
    changed, words = bytearray(contents_of(name)), _words(name)
    used = [at for at in words if any(changed[at : at + 4])]
    jumps = [at for at in used if int.from_bytes(changed[at + 2 : at + 4], "little") in _JUMPS]
    kind = random.choice(
        ("bits", "bits", "other word", "jump back", "barrier", "nop", *(("jump",) * 2 if jumps else ()))
    )
    at = random.choice(used)
    if kind == "bits":
        for _ in range(random.choice((1, 1, 2, 4))):
            changed[at + random.randrange(4)] ^= 1 << random.randrange(8)
    elif kind == "other word":
        other = random.choice(used)
        changed[at : at + 4] = changed[other : other + 4]
    elif kind == "jump":
        at = random.choice(jumps)
        changed[at : at + 2] = random.randrange(-40, 40).to_bytes(2, "little", signed=True)
    else:
        word = {"jump back": _BRANCH | random.randrange(1, 60) ^ 0xFFFF, "barrier": _BARRIER, "nop": _NOP}[kind]
        changed[at : at + 4] = word.to_bytes(4, "little")
    return kind, bytes(changed)


def outcome(name: str, contents: bytes) -> str:
    """The code of the first finding, "wrong" or "right"; any exception that isn't rota's comes through."""
    path = Path(name)
    inside = f"{path.parent.name}/" if path.parent.name != "compiled" else ""
    problem = Case(path=path, name=inside + path.name.removesuffix(".hsaco")).problem()
    try:
        with time_limit(SECONDS):
            result = load_kernel(contents).launch(
                *problem.args,
                grid=problem.grid,
                block=problem.block,
                dynamic_lds=problem.dynamic_lds,
                orders=1,
                check=False,
                most_instructions=MOST_INSTRUCTIONS,
            )
    except RotaError as error:
        return error.findings[0].code
    if result.findings:
        return result.findings[0].code
    return "right" if problem.off() <= 1 else "wrong"


def _case(names: Sequence[str], seed: int) -> tuple[str, Callable[[], str]]:
    random = Random(f"streams {seed}")
    name = random.choice(names)
    kind, contents = mutated(name, random)
    return kind, partial(outcome, name, contents)


if __name__ == "__main__":
    bounded(_case)
