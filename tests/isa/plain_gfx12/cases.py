"""One memory instruction with all that it starts from and all that it should end in, and the judge of it.

Whoever draws a case fills registers, LDS and memory, calls `begin`, and then changes them as the instruction should,
lane by lane. Lanes use bytes of their own, so the order of lanes doesn't matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from types import MappingProxyType

import numpy as np

from rota.errors import IsaError
from rota.isa.decoded import decode
from rota.isa.disassembly import Instruction
from rota.isa.launch.interleaving import LATEST
from rota.isa.memory.memories import Lds, Memory
from rota.isa.wave.meeting import WaveMeetings
from rota.isa.wave.wave import Faults, Private, Wave
from rota.targets.cdna5 import CDNA5
from tests.isa.plain.judge import Verdict
from tests.isa.plain_gfx12.judge import assembled
from tests.isa.plain_gfx12.machine import EXEC, LANES, M32

ROWS, LDS_BYTES, MEMORY_BYTES, PRIVATE_BYTES = 64, 8192, 8192, 512
BASE = 0x7E00_0001_0000  # where the interpreter puts its first buffer
WAITS = ("s_wait_loadcnt 0x0", "s_wait_storecnt 0x0", "s_wait_dscnt 0x0", "s_wait_kmcnt 0x0", "s_wait_asynccnt 0x0",
         "s_wait_tensorcnt 0x0")  # fmt: skip
_CRASHES = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


@dataclass(slots=True)
class Machine:
    """Registers and memories as integers and bytes."""

    v: list[list[int]]
    s: list[int]
    lds: bytearray
    memory: bytearray
    private: list[bytearray]

    def copy(self) -> Machine:
        private = [bytearray(each) for each in self.private]
        return Machine(
            [row.copy() for row in self.v], self.s.copy(), bytearray(self.lds), bytearray(self.memory), private
        )

    def word(self, row: int, lane: int, count: int = 1) -> int:
        """So many registers of a lane as one integer."""
        return sum(self.v[row + part][lane] << 32 * part for part in range(count))

    def put(self, row: int, lane: int, bits: int, count: int = 1) -> None:
        for part in range(count):
            self.v[row + part][lane] = bits >> 32 * part & M32


@dataclass(slots=True)
class Case:
    """A text, and the machine before and after it; `after` is what whoever draws works on."""

    random: Random
    active: list[bool] = field(init=False)
    after: Machine = field(init=False)
    before: Machine = field(init=False)
    text: str = ""
    poisoned: bool = False  # what is loaded may be anything

    def __post_init__(self) -> None:
        random = self.random
        self.active = [random.random() < 0.8 for _ in LANES]
        self.after = Machine(
            [[random.getrandbits(32) for _ in LANES] for _ in range(ROWS)],
            [random.getrandbits(32) for _ in range(128)],
            bytearray(random.randbytes(LDS_BYTES)),
            bytearray(random.randbytes(MEMORY_BYTES)),
            [bytearray(random.randbytes(PRIVATE_BYTES)) for _ in LANES],
        )

    def lanes(self) -> Iterator[int]:
        """The active ones."""
        return (lane for lane in LANES if self.active[lane])

    def places(self, stride: int, align: int) -> list[int]:
        """A place of its own for each lane, `stride` bytes apart, in any order."""
        order = list(LANES)
        self.random.shuffle(order)
        first = align * self.random.randrange(max(1, stride // 2 // align))
        return [place * stride + first for place in order]

    def begin(self) -> None:
        """Both sides start from here."""
        self.after.s[EXEC] = sum(each << lane for lane, each in enumerate(self.active))
        self.after.s[EXEC + 1] = 0
        self.before = self.after.copy()


Draw = Callable[[Random], Case]


def judge_cases(
    draws: Mapping[str, Draw], random: Random, opcodes: Sequence[str], count: int
) -> Iterator[tuple[str, Verdict]]:
    """Draws so many cases of each opcode, assembles them at once, and runs them."""
    drawn = [(opcode, draws[opcode](random)) for opcode in opcodes for _ in range(count)]
    shown = assembled([*(case.text for _, case in drawn), *WAITS])
    waits = [each for each in shown[len(drawn) :] if each is not None]
    for (opcode, case), instruction in zip(drawn, shown, strict=False):
        if instruction is None:
            yield opcode, Verdict(case.text, "not assembled")
        else:
            yield opcode, Verdict(case.text, run_case(case, instruction, waits))


def wave_of(machine: Machine) -> Wave:
    faults = Faults()
    memory = Memory((np.frombuffer(bytes(machine.memory), np.uint8).copy(),), faults)
    meetings = WaveMeetings(waves=1)
    lds = Lds(len(machine.lds), faults, 1, meetings)
    lds.order._known[:] = True  # as if written
    lds.bytes[:] = np.frombuffer(bytes(machine.lds), np.uint8)
    wave = Wave(
        architecture=CDNA5, number=0, faults=faults, memory=memory, lds=lds, at_issue=LATEST.driver(0).at_issue(),
        meetings=meetings,
    )  # fmt: skip
    wave.private = Private(PRIVATE_BYTES, len(LANES))
    wave.private.bytes[:] = np.array([list(each) for each in machine.private], np.uint8)
    wave.v[:ROWS] = np.array(machine.v, np.uint32)
    wave.s[:128] = machine.s
    wave.update_mask()
    return wave


def run_case(
    case: Case, instruction: Instruction, waits: Sequence[Instruction], rows: Mapping[int, int] = MappingProxyType({})
) -> str:
    """Says "right", "refused" or what is wrong; `rows` says which registers are meant by others."""
    wave = wave_of(case.before)
    for low, high in rows.items():
        wave.v[high] = np.array(case.before.v[low], np.uint32)
    try:
        with np.errstate(all="ignore"):
            step = decode(instruction, CDNA5)
            step.act(wave)
            for each in waits:
                decode(each, CDNA5).act(wave)
    except IsaError:
        return "refused"
    except _CRASHES as error:
        return f"ends in {error!r}"
    for low, high in rows.items():
        wave.v[low] = wave.v[high].copy()
    return compare_machine(wave, case.after)


def compare_machine(wave: Wave, after: Machine) -> str:
    if wave.faults.findings():
        return f"finds {wave.faults.findings()[0].message}"
    for row, lanes in enumerate(after.v):
        found = wave.v[row].tolist()
        if found != lanes:
            lane = next(lane for lane in LANES if found[lane] != lanes[lane])
            return f"v{row} lane {lane} is {found[lane]:#x}, should be {lanes[lane]:#x}"
    for number, wanted in enumerate(after.s):
        if wave.s[number] != wanted:
            return f"s{number} is {wave.s[number]:#x}, should be {wanted:#x}"
    private = b"".join(bytes(each) for each in after.private)
    spaces = (
        ("LDS", wave.lds.bytes.tobytes(), bytes(after.lds)),
        ("memory", wave.memory.contents()[0].tobytes(), bytes(after.memory)),
        ("private memory", wave.private.bytes.tobytes(), private),
    )
    for name, held, due in spaces:
        if held != due:
            place = next(place for place, (one, two) in enumerate(zip(held, due, strict=True)) if one != two)
            return f"{name} at {place} is {held[place]:#x}, should be {due[place]:#x}"
    return "right"
