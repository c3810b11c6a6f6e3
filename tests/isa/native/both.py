"""Instructions on both engines: takes a program and a wave, gives what NumPy and the native core leave behind.

`compared` does it for a program that somebody else is about to run on NumPy; `watching` does it for whatever the checks
of `tests.isa` execute, so that the cases that they draw are judged on the core as well.
"""

from __future__ import annotations

import ctypes
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from unittest.mock import patch

import numpy as np

from rota.errors import IsaError
from rota.isa.decoded import KernelProgram, load_program
from rota.isa.disassembly import Instruction, read_listing
from rota.isa.launch.interleaving import LATEST
from rota.isa.launch.run import WaveGroup, _run_wave
from rota.isa.native import workgroups
from rota.isa.native.records import _BY_NUMPY, library, opcodes, pack
from rota.isa.valu.floating import APPROXIMATE
from rota.isa.wave.wave import Wave
from rota.targets.registry import architecture_named
from tests.isa import lds_oracle, matrix_checks, scalar_memory_oracle, single, vector_memory_oracle
from tests.isa.plain import families
from tests.isa.plain.judge import Verdict, wave_of
from tests.isa.plain.machine import State

ROWS, SCALARS, MOST = 512, 128, 1000
HALVES = re.compile(r"f16|pk_|scalef32|fp8|bf8|sdwa|bf16")
ENCODING = re.compile(r"_(e32|e64|sdwa|dpp)$")
END = read_listing("k:\n\ts_endpgm\n", "k")[0]
ORACLES = (lds_oracle, matrix_checks, scalar_memory_oracle, vector_memory_oracle)


@dataclass(slots=True)
class Tally:
    """By opcode, how often both engines ran it, how often NumPy did it for the core, and what was refused."""

    ran: Counter[str] = field(default_factory=Counter)
    by_numpy: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    different: list[tuple[str, str]] = field(default_factory=list)


def on_core(program: KernelProgram, wave: Wave) -> tuple[np.ndarray, np.ndarray, int, np.ndarray, bool] | None:
    """Vectors, scalars, SCC and LDS after the last instruction, and whether it was clean; None if it was refused.

    The wave's memory is changed in place.
    """
    packed, core = pack(program), library()
    if packed is None:
        return None
    assert core is not None
    waves = WaveGroup(number=0, waves=[wave], driver=LATEST.driver(0), steps=program.steps, faults=wave.faults)
    with (
        workgroups._Core(program, packed, wave.memory, waves) as running,
        patch.object(workgroups, "_STARTING_ROWS", ROWS),
    ):
        begin = core.rota_group_order

        def filled(group: int, *rest: object) -> None:
            """LDS as the wave has it, after the start of the workgroup."""
            at = core.rota_lds(group, int(wave.lds.order._known.all()))
            ctypes.memmove(at, wave.lds.bytes.ctypes.data, wave.lds.size)
            private = np.ascontiguousarray(wave.private.bytes[:, : wave.private.size])
            ctypes.memmove(core.rota_private(group), private.ctypes.data, private.nbytes)
            begin(group, *rest)

        with patch.object(core, "rota_group_order", filled):
            clean = running.run(waves, LATEST, MOST)
        vectors, scalars = (each.copy() for each in running._registers(0))
        size = 64 * wave.private.size
        wave.private.bytes[:, : wave.private.size] = np.frombuffer(
            ctypes.string_at(core.rota_private(running._group), size), np.uint8
        ).reshape(64, -1)
        known = int(wave.lds.order._known.all())
        lds = np.frombuffer(ctypes.string_at(core.rota_lds(running._group, known), wave.lds.size), np.uint8)
        return vectors, scalars, core.rota_scc(running._group, 0), lds, clean


def compared(program: KernelProgram, before: Wave, tally: Tally) -> int:
    """Runs the program from the wave's state on both, and notes the opcode of its first instruction.

    Returns the number of findings that both have.
    """
    opcode = ENCODING.sub("", program.steps[0].instruction.opcode)
    one, two = _copied(before), _copied(before)
    with np.errstate(all="ignore"):
        try:
            _run_wave(program.steps, one, None)
        except IsaError:
            one.faults.add("I102", program.steps[0].instruction, "refused while it ran")
    left = on_core(program, two)
    if left is None:
        tally.refused[opcode] += 1
        return 0
    packed = pack(program)
    assert packed is not None
    by_numpy = packed.ops["opcode"][0] == opcodes()[_BY_NUMPY][0]
    (tally.by_numpy if by_numpy else tally.ran)[opcode] += 1
    wrong = difference(opcode, one, two, left)
    if wrong:
        tally.different.append((opcode, f"{program.steps[0].instruction.text}: {wrong}"))
    return len(two.faults.findings()) if left[-1] else 0


def difference(opcode: str, one: Wave, two: Wave, left: tuple[np.ndarray, np.ndarray, int, np.ndarray, bool]) -> str:
    vectors, scalars, scc, lds, clean = left
    found, noted = one.faults.findings(), two.faults.findings()
    if (clean and found != noted) or not (clean or found):
        return f"NumPy found {[str(each.message) for each in found]}, the core was clean: {clean}, and found {noted}"
    if not clean:
        return ""  # NumPy runs it again and says what was wrong
    alike = same(one.v, vectors, opcode)
    if not alike.all():
        row, lane = np.argwhere(~alike)[0]
        return f"v{row} lane {lane} is {vectors[row, lane]:#x}, in NumPy {one.v[row, lane]:#x}"
    if scalars.tolist() != one.s:
        at = next(n for n in range(SCALARS) if int(scalars[n]) != one.s[n])
        return f"s{at} is {int(scalars[at]):#x}, in NumPy {one.s[at]:#x}"
    if scc != one.scc:
        return f"scc is {scc}"
    if lds.tobytes() != one.lds.bytes[: one.lds.size].tobytes() and not same_bytes(lds, one.lds.bytes[: one.lds.size]):
        return "LDS differs"
    if not np.array_equal(one.private.bytes, two.private.bytes):
        return "private memory differs"
    return "" if same_bytes(two.memory.block, one.memory.block) else "memory differs"


def same_bytes(one: np.ndarray, two: np.ndarray) -> bool:
    if np.array_equal(one, two):
        return True
    whole = len(one) // 8 * 8
    nans = [np.isnan(each[:whole].view(kind)) for kind in (np.float16, np.float32, np.float64) for each in (one, two)]
    alike = one[:whole] == two[:whole]
    for number, size in enumerate((2, 4, 8)):
        alike |= (nans[2 * number] & nans[2 * number + 1]).repeat(size)
    return bool(alike.all())


def same(one: np.ndarray, two: np.ndarray, opcode: str) -> np.ndarray:
    """Any NaN equals any NaN: which bits it has nobody relies on.  Roots, logarithms and the like are rounded twice."""
    alike = (one == two) | (np.isnan(one.view(np.float32)) & np.isnan(two.view(np.float32)))
    if HALVES.search(opcode):
        nans = [np.isnan(each.view(np.float16)) for each in (one, two)]
        alike |= (
            ((one.view(np.uint16) == two.view(np.uint16)) | (nans[0] & nans[1])).reshape(*one.shape, 2).all(axis=-1)
        )
    if "64" in opcode:
        pairs = [np.stack((each[:-1], each[1:]), axis=-1).view(np.float64)[..., 0] for each in (one, two)]
        nan = np.isnan(pairs[0]) & np.isnan(pairs[1])
        alike[:-1] |= nan
        alike[1:] |= nan
    if opcode in APPROXIMATE:
        alike |= np.abs(one.astype(np.int64) - two.astype(np.int64)) <= 1
    return np.asarray(alike)


def _copied(wave: Wave) -> Wave:
    fresh = single.fresh(lds=deepcopy(wave.lds))
    fresh.memory = deepcopy(wave.memory)
    fresh.faults = fresh.lds._faults
    fresh.memory.faults = fresh.faults
    fresh.memory._words, fresh.lds.words = fresh.memory.block.view(np.uint32), fresh.lds.bytes.view(np.uint32)
    fresh.architecture, fresh.scc, fresh.mode, fresh.private = (
        wave.architecture,
        wave.scc,
        wave.mode,
        deepcopy(wave.private),
    )
    fresh.v[:], fresh.s = wave.v, wave.s.copy()
    fresh.lds.order._faults = fresh.faults
    fresh.memory.order._faults = fresh.faults
    fresh.update_mask()
    return fresh


@contextmanager
def watching(tally: Tally) -> Iterator[None]:
    """Whatever the checks of `tests.isa` execute meanwhile is compared on both engines."""
    execute = single.execute

    def also(text: str, wave: Wave, arch: str = "gfx950") -> Wave:
        program = single.loaded(text, arch)
        wave.architecture = program.architecture
        compared(program, wave, tally)
        return execute(text, wave, arch)

    def judged(text: str, instruction: Instruction, state: State, arch: str, _: object) -> Verdict:
        architecture = architecture_named(arch)
        assert architecture is not None
        try:
            program = load_program(single.facts(arch), (instruction, END))
        except IsaError:
            return Verdict(text, "refused")
        compared(program, wave_of(state, architecture), tally)
        return Verdict(text, "right")

    with patch.object(families, "judged", judged):
        patches = [patch.object(each, "execute", also) for each in ORACLES]
        for each in patches:
            each.start()
        try:
            yield
        finally:
            for each in patches:
                each.stop()
