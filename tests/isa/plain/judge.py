"""The interpreter against the plain machine: takes assembly texts, gives what each of them did wrong, if anything.

Texts are assembled and disassembled in one go; the interpreter gets what the disassembler prints, the plain machine
what was written.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

from rota.errors import IsaError
from rota.isa.binary.toolchain import find_toolchain
from rota.isa.decoded import decode
from rota.isa.disassembly import Instruction, read_listing
from rota.isa.launch.interleaving import LATEST
from rota.isa.memory.memories import Lds, Memory
from rota.isa.wave.wave import Faults, Wave
from rota.targets.architecture import Architecture
from rota.targets.registry import architecture_named
from tests.isa.plain.machine import State
from tests.isa.plain.numbers import BITS, is_nan
from tests.isa.plain.small import FORMATS, is_small_nan

ROWS, SCALARS = 48, 128
_ERROR = re.compile(r"^k\.s:(\d+):\d+: error:", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one instruction: "right", "refused" by the interpreter, or what is wrong."""

    text: str
    outcome: str


def assembled(texts: Sequence[str], arch: str) -> list[Instruction | None]:
    """The instructions as they are disassembled; None for a text that the assembler refuses."""
    toolchain = find_toolchain()
    assert toolchain.objdump is not None
    good = list(range(len(texts)))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        while True:
            (folder / "k.s").write_text("k:\n" + "".join(f"{texts[number]}\n" for number in good) + "s_endpgm\n")
            command = (*toolchain.compiler, "-x", "assembler", "--target=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-c")
            done = subprocess.run(
                (*command, "k.s", "-o", "k.o"), cwd=folder, capture_output=True, text=True, check=False
            )
            bad = {int(line) - 2 for line in _ERROR.findall(done.stderr)}
            if done.returncode == 0:
                break
            assert bad, done.stderr
            good = [number for place, number in enumerate(good) if place not in bad]
        shown = subprocess.run(
            (*toolchain.objdump, "-d", "k.o"), cwd=folder, capture_output=True, text=True, check=True
        ).stdout
    found = read_listing(shown, "k")
    assert len(found) == len(good) + 1
    out: list[Instruction | None] = [None] * len(texts)
    for number, instruction in zip(good, found, strict=False):
        out[number] = instruction
    return out


def wave_of(state: State, architecture: Architecture) -> Wave:
    faults = Faults()
    wave = Wave(
        architecture=architecture,
        number=0,
        faults=faults,
        memory=Memory((), faults),
        lds=Lds(0, faults),
        at_issue=LATEST.driver(0).at_issue(),
    )
    wave.v[: len(state.v)] = np.array(state.v, np.uint32)
    wave.s[: len(state.s)] = state.s
    wave.scc = state.scc
    wave.update_mask()
    return wave


def judged(
    text: str, instruction: Instruction, state: State, arch: str, expected: Callable[[str, State], None]
) -> Verdict:
    """Runs an instruction both ways from one state and compares all registers."""
    architecture = architecture_named(arch)
    assert architecture is not None
    try:
        step = decode(instruction, architecture)
    except IsaError:
        return Verdict(text, "refused")
    wave, plain = wave_of(state, architecture), deepcopy(state)
    with np.errstate(all="ignore"):
        step.act(wave)
    expected(text, plain)
    return Verdict(text, _difference(wave, plain) or _undeclared(step.results, state, wave) or "right")


def _difference(wave: Wave, plain: State) -> str:
    if wave.scc != plain.scc:
        return f"scc is {wave.scc}, should be {plain.scc}"
    for number, (found, wanted) in enumerate(zip(wave.s, plain.s, strict=True)):
        if found != wanted:
            return f"s{number} is {found:#x}, should be {wanted:#x}"
    for row, lanes in enumerate(plain.v):
        for lane, wanted in enumerate(lanes):
            found = int(wave.v[row, lane])
            if found != wanted and not _alike(wave, plain, row, lane):
                return f"v{row} lane {lane} is {found:#x}, should be {wanted:#x}"
    return ""


def _undeclared(results: frozenset[int], before: State, wave: Wave) -> str:
    """A register that changed has to be among those that the step says it writes."""
    for row, lanes in enumerate(before.v):
        if row not in results and wave.v[row].tolist() != lanes:
            return f"v{row} changed, but isn't among what the step writes"
    return ""


def _alike(wave: Wave, plain: State, row: int, lane: int) -> bool:
    """Do both hold a NaN, or numbers as near as is asked for?  Everything else has to be the same."""
    for first in (row, row - 1):
        loose = plain.loose.get((first, lane), [])
        wide = any(_width(form) == 64 for _, form, _ in loose)
        if loose and (first == row or wide):
            found, wanted = (
                sum(int(each[first + part][lane]) << 32 * part for part in range(1 + wide))
                for each in (wave.v, plain.v)
            )
            for shift, form, ulps in loose:
                mask = (1 << _width(form)) - 1 << shift
                a, b = (found & mask) >> shift, (wanted & mask) >> shift
                nans = [_is_nan(each, form) for each in (a, b)]
                if all(nans) or (not any(nans) and abs(a - b) <= ulps):
                    found, wanted = found & ~mask, wanted & ~mask
            return found == wanted
    return False


def _width(form: str) -> int:
    return BITS[form] if form in BITS else 1 + FORMATS[form].exponent + FORMATS[form].mantissa


def _is_nan(bits: int, form: str) -> bool:
    return is_nan(bits, form) if form in BITS else is_small_nan(bits, form)


def fresh_state(random: Random, arch: str, rows: dict[int, list[int]] | None = None) -> State:
    """A state with rows as given, anything elsewhere, and most lanes active."""
    vectors = [[random.getrandbits(32) for _ in range(64)] for _ in range(ROWS)]
    for row, lanes in (rows or {}).items():
        vectors[row] = lanes
    scalars = [random.getrandbits(32) for _ in range(SCALARS)]
    mask = (1 << 64) - 1 if random.random() < 0.6 else random.getrandbits(64)
    scalars[126], scalars[127] = mask & 0xFFFF_FFFF, mask >> 32
    return State(vectors, scalars, random.getrandbits(1), arch)
