"""Instructions that say where a wave goes on, what it waits for, or nothing at all: programs of a few lines.

Each program is executed line by line from a drawn state; plain Python says which lines run and what they leave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import NamedTuple

import numpy as np

from rota.errors import IsaError
from rota.isa.decoded import decode
from rota.isa.wave.wave import Wave
from rota.targets.cdna5 import CDNA5
from tests.isa.plain import numbers as n
from tests.isa.plain.judge import Verdict
from tests.isa.plain.numbers import Num
from tests.isa.plain_gfx12.cases import BASE, Case, Machine, compare_machine, wave_of
from tests.isa.plain_gfx12.judge import assembled
from tests.isa.plain_gfx12.lds import arrived
from tests.isa.plain_gfx12.machine import EXEC, LANES, M32, VCC

POISON = M32  # of a register that a load in flight will write


class Program(NamedTuple):
    """Lines, the state they start from, and what is wrong with a wave that ran them."""

    lines: tuple[str, ...]
    machine: Machine
    scc: int
    check: Callable[[Wave, Sequence[int]], str]  # the wave, and the numbers of the lines that ran


def judge_programs(random: Random, arch: str, opcodes: Sequence[str], count: int) -> Iterator[tuple[str, Verdict]]:
    """Draws so many programs of each opcode, and runs them."""
    del arch
    for opcode in opcodes:
        for _ in range(count):
            program = DRAWS[opcode](random, opcode)
            yield opcode, Verdict("; ".join(program.lines), _run(program))


def _run(program: Program) -> str:
    instructions = assembled(program.lines)
    places = {each.address: number for number, each in enumerate(instructions) if each is not None and each.address}
    wave, number, ran = wave_of(program.machine), 0, list[int]()
    wave.scc = program.scc
    try:
        while 0 <= number < len(instructions) and len(ran) < 99:
            instruction = instructions[number]
            if instruction is None:
                return "not assembled"
            with np.errstate(all="ignore"):
                after = decode(instruction, CDNA5, places).act(wave)
            ran.append(number)
            number = number + 1 if after is None else after
    except IsaError:
        return "refused"
    return program.check(wave, ran)


def _drawn(random: Random) -> Case:
    case = Case(random)
    case.begin()
    return case


# Nothing that a program can see.

_HINTS = {
    "s_clause": "0x3", "s_delay_alu": "instid0(VALU_DEP_1)", "s_version": "1", "s_code_end": "",
    "s_prefetch_inst": "s[2:3], 0x10, s4, 3", "s_prefetch_data": "s[2:3], 0x10, s4, 3",
    "s_prefetch_inst_pc_rel": "0x10, s4, 3", "s_prefetch_data_pc_rel": "0x10, s4, 3", "s_sleep_var": "s3",
    "s_monitor_sleep": "3", "s_dcache_inv": "", "s_wait_alu": "0xfffe", "s_nop": "3", "s_sleep": "2", "s_setprio": "3",
    "s_icache_inv": "", "s_incperflevel": "1", "s_decperflevel": "1", "s_ttracedata": "",
    "global_prefetch_b8": "v0, s[2:3] offset:16", "flat_prefetch_b8": "v[0:1]", "global_inv": "scope:SCOPE_DEV",
    "global_wb": "scope:SCOPE_SYS", "global_wbinv": "", "ds_nop": "", "v_nop": "", "s_wait_xcnt": "0x0",
    "s_sendmsg": "sendmsg(MSG_INTERRUPT)",
}  # fmt: skip


def _hint(random: Random, opcode: str) -> Program:
    case, scc = _drawn(random), random.getrandbits(1)

    def check(wave: Wave, ran: Sequence[int]) -> str:
        if wave.scc != scc or list(ran) != [0]:
            return f"scc is {wave.scc}, and lines {list(ran)} ran"
        return compare_machine(wave, case.after)

    return Program((f"{opcode} {_HINTS[opcode]}".strip(),), case.before, scc, check)


# Jumps: a line that is skipped, and one that isn't.


def _ran(expected: Sequence[int]) -> Callable[[Wave, Sequence[int]], str]:
    def check(wave: Wave, ran: Sequence[int]) -> str:
        del wave
        return "right" if list(ran) == list(expected) else f"lines {list(ran)} ran, should be {list(expected)}"

    return check


def _branch(random: Random, opcode: str) -> Program:
    """Its flag is set or not; the upper halves of masks mean nothing to a wave of 32 lanes."""
    case, scc = Case(random), random.getrandbits(1)
    case.begin()
    machine = case.before
    for row in (VCC, EXEC):
        machine.s[row] = random.choice((0, 1 << random.randrange(32)))
    held = {
        "scc0": not scc, "scc1": bool(scc), "vccz": not machine.s[VCC], "vccnz": bool(machine.s[VCC]),
        "execz": not machine.s[EXEC], "execnz": bool(machine.s[EXEC]),
    }[opcode.removeprefix("s_cbranch_")]  # fmt: skip
    lines = (f"{opcode} 1", "s_mov_b32 s8, 1", "s_mov_b32 s9, 2")
    return Program(lines, machine, scc, _ran((0, 2) if held else (0, 1, 2)))


def _jump(random: Random, opcode: str) -> Program:
    """Taken where SCC is set; without that nothing could reach what it skips."""
    del opcode
    lines = ("s_cbranch_scc0 1", "s_branch 1", "s_mov_b32 s8, 1", "s_mov_b32 s9, 2")
    scc = random.getrandbits(1)
    return Program(lines, _drawn(random).before, scc, _ran((0, 1, 3) if scc else (0, 2, 3)))


def _differs(wave: Wave, first: int, second: int, by: int) -> str:
    """Two code addresses in scalar registers, so far apart."""
    one, two = (wave.s[row] | wave.s[row + 1] << 32 for row in (first, second))
    return "right" if two - one == by else f"s[{second}:{second + 1}] is {two - one} after s[{first}:{first + 1}]"


def _call(random: Random, opcode: str) -> Program:
    """Behind the call is where the address in its registers points to."""
    lines = ("s_get_pc_i64 s[12:13]", f"{opcode} s[10:11], 1", "s_mov_b32 s8, 1", "s_mov_b32 s9, 2")

    def check(wave: Wave, ran: Sequence[int]) -> str:
        return _differs(wave, 12, 10, 4) if list(ran) == [0, 1, 3] else f"lines {list(ran)} ran"

    return Program(lines, _drawn(random).before, 0, check)


def _indirect(random: Random, opcode: str) -> Program:
    """To a sum of the address that s_get_pc_i64 gives, which is that of the line after it."""
    swaps, scc = opcode == "s_swap_pc_i64", 1
    last = f"{opcode} s[14:15], s[10:11]" if swaps else f"{opcode} s[10:11]"
    lines = (
        "s_cbranch_scc0 4", "s_get_pc_i64 s[12:13]", "s_add_nc_u64 s[10:11], s[12:13], 12", last, "s_mov_b32 s8, 1",
        "s_mov_b32 s9, 2",
    )  # fmt: skip
    lines = lines if swaps else ("s_cbranch_scc0 3", *lines[1:])

    def check(wave: Wave, ran: Sequence[int]) -> str:
        if list(ran) != [0, 1, 2, 3, 5]:
            return f"lines {list(ran)} ran"
        return _differs(wave, 12, 14, 8) if swaps else _differs(wave, 12, 10, 12)

    return Program(lines, _drawn(random).before, scc, check)


# Waits: some accesses, of which the first have to be over.


class _Kind(NamedTuple):
    """An access of its own, and whether it is over, by the wave and the number of the access."""

    line: str
    is_over: Callable[[Wave, Machine, int], bool]


def _row_is(row: int, of: str) -> Callable[[Wave, Machine, int], bool]:
    """The register has what was loaded, in every lane; else it still is poison."""

    def is_over(wave: Wave, machine: Machine, number: int) -> bool:
        found = wave.v[row + number].tolist()
        held = machine.memory if of == "memory" else machine.lds
        due = [int.from_bytes(held[4 * (lane + 32 * number) :][:4], "little") for lane in LANES]
        assert found in (due, [POISON] * len(LANES))
        return bool(found == due)

    return is_over


def _is_stored(wave: Wave, machine: Machine, number: int) -> bool:
    now = wave.memory.contents()[0].tobytes()[4096 + 128 * number :][:128]
    return now == b"".join(machine.v[40 + number][lane].to_bytes(4, "little") for lane in LANES)


def _is_copied(wave: Wave, machine: Machine, number: int) -> bool:
    return wave.lds.bytes.tobytes()[4096 + 128 * number :][:128] == bytes(machine.memory[128 * number :][:128])


_KINDS = {
    "load": _Kind("global_load_b32 v{row}, v0, s[2:3] offset:{near}", _row_is(8, "memory")),
    "lds": _Kind("ds_load_b32 v{ds}, v0 offset:{near}", _row_is(16, "lds")),
    "store": _Kind("global_store_b32 v0, v{data}, s[2:3] offset:{far}", _is_stored),
    "copy": _Kind("global_load_async_to_lds_b32 v2, v0, s[2:3] offset:{near}", _is_copied),
    "tile": _Kind("tensor_load_to_lds s[{g}:{g3}], s[80:87]", _is_copied),
    "scalar": _Kind("s_load_b32 s{s}, s[2:3], {near}", lambda wave, machine, number: (
        wave.s[100 + number] == int.from_bytes(machine.memory[128 * number :][:4], "little"))),
}  # fmt: skip
_WAITS = {
    "s_wait_loadcnt": ("load",), "s_wait_dscnt": ("lds",), "s_wait_storecnt": ("store",), "s_wait_asynccnt": ("copy",),
    "s_wait_tensorcnt": ("tile",), "s_wait_kmcnt": ("scalar",), "s_wait_loadcnt_dscnt": ("load", "lds"),
    "s_wait_storecnt_dscnt": ("store", "lds"), "s_wait_idle": ("load", "lds", "store", "copy", "tile", "scalar"),
}  # fmt: skip
_MOST = 4


def _wait(random: Random, opcode: str) -> Program:
    """The oldest accesses are over after a wait for so many; in two kinds by two fields. Loads after those aren't."""
    kinds, case = _WAITS[opcode], Case(random)
    case.active = [True] * len(LANES)
    machine = case.after
    machine.v[0], machine.v[2] = [4 * lane for lane in LANES], [4096 + 4 * lane for lane in LANES]
    machine.s[2], machine.s[3] = BASE & M32, BASE >> 32
    for number in range(_MOST):  # descriptors of tiles of 32 words
        machine.s[60 + 4 * number : 64 + 4 * number] = [
            1, 4096 + 128 * number, BASE + 128 * number & M32, BASE >> 32 | 2 << 30,
        ]  # fmt: skip
    machine.s[80:88] = [2 << 16, 32 << 16, 1 << 16, 32 << 16, 1, 32, 0, 0]
    case.begin()
    counts = [random.randrange(1, _MOST) if len(kinds) < 3 else 1 for _ in kinds]
    some = opcode not in {"s_wait_kmcnt", "s_wait_idle"}
    left = [random.randrange(count + 1) if some else 0 for count in counts]
    names = [(kind, number) for kind, count in zip(kinds, counts, strict=True) for number in range(count)]
    lines = [_line(kind, number) for kind, number in names]
    field = left[0] if len(left) == 1 else left[0] << 8 | left[1] if some else 0
    lines.append(opcode if opcode == "s_wait_idle" else f"{opcode} {field:#x}")

    def check(wave: Wave, ran: Sequence[int]) -> str:
        del ran
        for kind, count, later in zip(kinds, counts, left, strict=True):
            over = [_KINDS[kind].is_over(wave, case.before, number) for number in range(count)]
            registers = kind in {"load", "lds"}
            if not all(over[: count - later]) or (registers and any(over[count - later :])):
                return f"of {count} of kind {kind}, with {later} left, these are over: {over}"
        return "right"

    return Program(tuple(lines), case.before, 0, check)


def _line(kind: str, number: int) -> str:
    return _KINDS[kind].line.format(
        row=8 + number, ds=16 + number, data=40 + number, near=128 * number, far=4096 + 128 * number,
        g=60 + 4 * number, g3=63 + 4 * number, s=100 + number,
    )  # fmt: skip


# The mode of floats of 32 bits: whether denormal numbers are zero.


def _mode(random: Random, opcode: str) -> Program:
    """Two bits of it, from the line or from a register whose other bits mean nothing; and a sum that shows them."""
    case, kept = Case(random), random.choice((0, 3))
    tiny = [random.getrandbits(23) | random.getrandbits(1) << 31 for _ in LANES]
    case.after.v[0] = [random.choice((each, 0x3F80_0000 | each)) for each in tiny]
    case.after.v[2] = [each ^ random.getrandbits(12) for each in tiny]
    case.active = [True] * len(LANES)
    case.after.s[2] = kept | random.getrandbits(30) << 2
    case.begin()
    source = "s2" if opcode == "s_setreg_b32" else str(kept)
    target = "s_setreg_b32" if opcode == "s_setreg_b32" else "s_setreg_imm32_b32"
    lines = (
        f"{target} hwreg(HW_REG_WAVE_MODE, 4, 2), {source}", "v_add_f32 v8, v0, v2",
        "s_getreg_b32 s8, hwreg(HW_REG_WAVE_MODE, 4, 3)",
    )  # fmt: skip

    def check(wave: Wave, ran: Sequence[int]) -> str:
        if wave.s[8] != kept | 4 or len(ran) != len(lines):  # those of 16 and 64 bits are kept from the start
            return f"s8 is {wave.s[8]:#x}, should be {kept | 4:#x}"
        for lane in LANES:
            pair = [n.unpack(case.before.v[row][lane], "f32") for row in (0, 2)]
            wanted = _flushed(n.plus(*(_flushed(each, kept) for each in pair)), kept)
            if int(wave.v[8, lane]) != n.pack(wanted, "f32"):
                return f"v8 lane {lane} is {int(wave.v[8, lane]):#x}, should be {n.pack(wanted, 'f32'):#x}"
        return "right"

    return Program(lines, case.before, 0, check)


def _flushed(value: Num, kept: int) -> Num:
    """A zero of its sign instead of a denormal number, unless those are kept."""
    small = value.kind == "finite" and value.size < n.power_of_two(-126)
    return value if kept or not small else n.ZERO._replace(negative=value.negative)


def _arrival_after_copies(random: Random, opcode: str) -> Program:
    """It arrives once the copies before it are done, which a wait for those shows; until then it doesn't."""
    case, copies = Case(random), random.randrange(1, _MOST)
    case.active = [lane == 0 for lane in LANES]
    machine = case.after
    machine.v[0], machine.v[2], machine.v[4] = ([at] * len(LANES) for at in (0, 4096, 64))
    machine.s[2], machine.s[3] = BASE & M32, BASE >> 32
    word = 2 | random.randrange(8) << 29 | 2 << 32
    machine.lds[64:72] = word.to_bytes(8, "little")
    case.begin()
    waits = random.random() < 0.5
    lines = [f"global_load_async_to_lds_b32 v2, v0, s[2:3] offset:{128 * number}" for number in range(copies)]
    lines += [f"{opcode} v4", f"s_wait_asynccnt {0 if waits else copies:#x}"]

    def check(wave: Wave, ran: Sequence[int]) -> str:
        del ran
        found, due = wave.lds.bytes.tobytes()[64:72], arrived(word, int(waits)).to_bytes(8, "little")
        return "right" if found == due else f"the word is {found.hex()}, should be {due.hex()}"

    return Program(tuple(lines), case.before, 0, check)


DRAWS: dict[str, Callable[[Random, str], Program]] = {
    **dict.fromkeys(_HINTS, _hint),
    **{f"s_cbranch_{flag}": _branch for flag in ("scc0", "scc1", "vccz", "vccnz", "execz", "execnz")},
    "s_branch": _jump, "s_call_i64": _call, "s_get_pc_i64": _indirect, "s_set_pc_i64": _indirect,
    "s_swap_pc_i64": _indirect, **dict.fromkeys(_WAITS, _wait),
    **dict.fromkeys(("s_setreg_b32", "s_setreg_imm32_b32", "s_getreg_b32"), _mode),
    "ds_atomic_async_barrier_arrive_b64": _arrival_after_copies,
}  # fmt: skip
DRAWS["s_get_pc_i64"] = lambda random, _: _indirect(random, "s_set_pc_i64")
"""By opcode, what draws a program with it."""
