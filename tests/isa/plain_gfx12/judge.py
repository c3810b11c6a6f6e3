"""The interpreter against plain registers: assembles texts for gfx1250, runs each both ways, says what differs."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from copy import deepcopy
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
from rota.targets.cdna5 import CDNA5
from tests.isa.plain.judge import Verdict, _is_nan, _width
from tests.isa.plain_gfx12.machine import ANY_HALF, LANES, M32, Loose, State

ARCH = "gfx1250"
ROWS, SCALARS = 64, 128
_ERROR = re.compile(r"^k\.s:(\d+):\d+: error:", re.MULTILINE)
_HALVES = ("-Xclangas", "-target-feature", "-Xclangas", "+real-true16")

_CRASHES = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def assembler() -> tuple[str, ...]:
    """The command, without files."""
    target = ("-x", "assembler", "--target=amdgcn-amd-amdhsa", f"-mcpu={ARCH}")
    return (*find_toolchain().compiler, *target, *_HALVES)


def assembled(texts: Sequence[str]) -> list[Instruction | None]:
    """The instructions as they are disassembled; None for a text that the assembler refuses."""
    toolchain = find_toolchain()
    assert toolchain.objdump is not None
    assert CDNA5.listing is not None
    good = list(range(len(texts)))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        while True:
            (folder / "k.s").write_text("k:\n" + "".join(f"{texts[number]}\n" for number in good) + "s_endpgm\n")
            built = (*assembler(), "-ferror-limit=0", "-c", "k.s", "-o", "k.o")
            done = subprocess.run(built, cwd=folder, capture_output=True, text=True, check=False)
            bad = {int(line) - 2 for line in _ERROR.findall(done.stderr)}
            if done.returncode == 0:
                break
            assert bad, done.stderr
            good = [number for place, number in enumerate(good) if place not in bad]
        shown = (*toolchain.objdump, "-d", *CDNA5.listing.options, "k.o")
        listing = subprocess.run(shown, cwd=folder, capture_output=True, text=True, check=True).stdout
    found = read_listing(listing, "k")
    assert len(found) == len(good) + 1, "a text became more than one instruction"
    out: list[Instruction | None] = [None] * len(texts)
    for number, instruction in zip(good, found, strict=False):
        out[number] = instruction
    return out


def wave_of(state: State) -> Wave:
    faults = Faults()
    wave = Wave(
        architecture=CDNA5,
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
    text: str, instruction: Instruction, state: State, expected: Callable[[str, State], None], *, declared: bool = True
) -> Verdict:
    """Runs an instruction both ways from one state and compares all registers, and what it says that it writes."""
    wave, plain = wave_of(state), deepcopy(state)
    try:
        step = decode(instruction, CDNA5)
        with np.errstate(all="ignore"):
            step.act(wave)
    except IsaError:
        return Verdict(text, "refused")
    except _CRASHES as error:
        return Verdict(text, f"ends in {error!r}")
    expected(text, plain)
    wrong = _difference(wave, plain, state) or (_undeclared(step.results, state, wave) if declared else "")
    return Verdict(text, wrong or "right")


def _difference(wave: Wave, plain: State, before: State) -> str:
    if wave.scc != plain.scc:
        return f"scc is {wave.scc}, should be {plain.scc}"
    for number, (found, wanted) in enumerate(zip(wave.s, plain.s, strict=True)):
        if found != wanted and not alike(int(found), wanted, plain.loose_scalars.get(number, [])):
            return f"s{number} is {found:#x}, should be {wanted:#x}"
    if [bool(each) for each in wave.active] != [plain.active(lane) for lane in LANES]:
        return "the active lanes aren't those of exec_lo"
    for row, lanes in enumerate(plain.v):
        for lane, wanted in enumerate(lanes):
            found = int(wave.v[row, lane])
            if found != wanted and not _alike_lane(wave, plain, row, lane):
                was = before.v[row][lane]
                return f"v{row} lane {lane} is {found:#x}, should be {wanted:#x}, was {was:#x}"
    return ""


def _undeclared(results: frozenset[int], before: State, wave: Wave) -> str:
    """A register that changed has to be among those that the step says it writes."""
    for row, lanes in enumerate(before.v):
        if row not in results and wave.v[row].tolist() != lanes:
            return f"v{row} changed, but isn't among what the step writes"
    return ""


def alike(found: int, wanted: int, loose: Loose) -> bool:
    """Do both hold a NaN, or numbers as near as is asked for?  Everything else has to be the same."""
    for shift, form, ulps in loose:
        if form == ANY_HALF:
            found, wanted = found & ~(0xFFFF << shift), wanted & ~(0xFFFF << shift)
            continue
        mask = (1 << _width(form)) - 1 << shift
        a, b = (found & mask) >> shift, (wanted & mask) >> shift
        nans = [_is_nan(each, form) for each in (a, b)]
        if all(nans) or (not any(nans) and abs(a - b) <= ulps):
            found, wanted = found & ~mask, wanted & ~mask
    return found == wanted


def _alike_lane(wave: Wave, plain: State, row: int, lane: int) -> bool:
    for first in (row, row - 1):
        loose = plain.loose.get((first, lane), [])
        wide = any(_width(form) == 64 for _, form, _ in loose)
        if loose and (first == row or wide):
            found, wanted = (
                sum(int(each[first + part][lane]) << 32 * part for part in range(1 + wide))
                for each in (wave.v, plain.v)
            )
            return alike(found, wanted, loose)
    return False


def fresh_state(random: Random, rows: dict[int, list[int]] | None = None, count: int = ROWS) -> State:
    """A state with rows as given, anything elsewhere, and most lanes active."""
    vectors = [[random.getrandbits(32) for _ in LANES] for _ in range(count)]
    for row, lanes in (rows or {}).items():
        vectors[row] = lanes
    scalars = [random.getrandbits(32) for _ in range(SCALARS)]
    scalars[126] = random.choice((M32, M32, M32, M32, random.getrandbits(32), random.getrandbits(32), 0))
    return State(vectors, scalars, random.getrandbits(1))
