"""Scalar memory and loads to LDS against plain Python: gives a check per opcode, which takes a seed."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from functools import partial

import numpy as np

from rota.isa.registers import EXEC, M0
from rota.isa.wave.wave import Wave
from tests.isa.plain_memory import LANES, combination
from tests.isa.single import execute, fresh

Check = Callable[[int], None]
_SIZE, _BASE, _M32 = 4096, 0x7E00_0001_0000, 2**32 - 1
_TARGET = 32


class _Draw:
    """Memory, scalar registers, and an address taken apart into a base, a register and a literal."""

    def __init__(self, seed: int, align: int) -> None:
        self.random = random.Random(seed)
        self.memory = bytearray(self.random.randbytes(_SIZE))
        self.place = align * self.random.randrange(256 // align, 2048 // align)
        literal = 4 * self.random.randrange(-8, 8)
        register = 4 * self.random.randrange(16)
        kind = seed % 3
        shown = (f"{literal:#x}", "s9", f"s9 offset:{abs(literal):#x}")[kind]
        added = (literal, register, register + abs(literal))[kind]
        start = _BASE + self.place - added
        self.scalars = {2: start & _M32, 3: start >> 32, 9: register}
        self.scalars |= {_TARGET + number: self.random.getrandbits(32) for number in range(16)}
        self.operand = f"s[2:3], {shown}"

    def run(self, text: str) -> Wave:
        """The wave afterwards; its scalar load is waited for."""
        wave = fresh(None, self.scalars, (np.frombuffer(bytes(self.before), np.uint8).copy(),))
        return execute(f"{text}\ns_waitcnt lgkmcnt(0)", wave)

    def begin(self) -> None:
        """Remembers the memory from which both sides start."""
        self.before = bytes(self.memory)

    def agree(self, wave: Wave, registers: dict[int, int], text: str) -> None:
        """Registers and memory are what they should be."""
        assert wave.faults.findings() == (), text
        for number in range(16):
            due = registers.get(_TARGET + number, self.scalars[_TARGET + number])
            assert wave.s[_TARGET + number] == due, text
        assert wave.memory.contents()[0].tobytes() == bytes(self.memory), text


def _name(count: int) -> str:
    return f"s{_TARGET}" if count == 1 else f"s[{_TARGET}:{_TARGET + count - 1}]"


def _load(opcode: str, count: int, seed: int) -> None:
    draw = _Draw(seed, 4)
    draw.begin()
    words = struct.unpack_from(f"<{count}I", draw.memory, draw.place)
    text = f"{opcode} {_name(count)}, {draw.operand}"
    draw.agree(draw.run(text), {_TARGET + number: word for number, word in enumerate(words)}, text)


def _buffer_load(opcode: str, count: int, seed: int) -> None:
    """Words after the last record are zero."""
    draw = _Draw(3 * seed, 4)  # a literal only
    draw.begin()
    records = draw.random.choice([_SIZE, draw.place + 4 * draw.random.randrange(1, count + 1)])
    draw.scalars |= {4: _BASE & _M32, 5: _BASE >> 32, 6: records, 7: 0x27000}
    words = [
        struct.unpack_from("<I", draw.memory, draw.place + 4 * number)[0]
        if draw.place + 4 * number + 4 <= records
        else 0
        for number in range(count)
    ]
    text = f"{opcode} {_name(count)}, s[4:7], {draw.place:#x}"
    draw.agree(draw.run(text), {_TARGET + number: word for number, word in enumerate(words)}, text)


def _store(opcode: str, count: int, seed: int) -> None:
    draw = _Draw(seed, 4)
    draw.begin()
    struct.pack_into(f"<{count}I", draw.memory, draw.place, *(draw.scalars[_TARGET + n] for n in range(count)))
    text = f"{opcode} {_name(count)}, {draw.operand}"
    draw.agree(draw.run(text), {}, text)


def _atomic(opcode: str, verb: str, size: int, seed: int) -> None:
    draw = _Draw(seed, 8)
    draw.begin()
    count, returns = size // 4, seed % 2
    old = int.from_bytes(draw.memory[draw.place : draw.place + size], "little")
    data = sum(draw.scalars[_TARGET + number] << 32 * number for number in range(count))
    new = combination(verb, size * 8)(old, data)
    draw.memory[draw.place : draw.place + size] = new.to_bytes(size, "little")
    text = f"{opcode} {_name(count)}, {draw.operand}{' glc' if returns else ''}"
    back = {_TARGET + number: old >> 32 * number & _M32 for number in range(count)} if returns else {}
    draw.agree(draw.run(text), back, text)


def _to_lds(opcode: str, size: int, seed: int) -> None:
    """Active lanes lie side by side in LDS, each at its own number; the others leave their place as it is."""
    chooser = random.Random(seed)
    memory = chooser.randbytes(_SIZE)
    places = [4 * chooser.randrange(_SIZE // 4 - 4) for _ in range(LANES)]
    active = [chooser.random() < 0.8 for _ in range(LANES)]
    start, near = 16 * chooser.randrange(60), 4 * chooser.randrange(8)
    bits = sum(1 << lane for lane, each in enumerate(active) if each)
    address = [_BASE + place - near for place in places]
    wave = fresh(
        {0: np.array([each & _M32 for each in address], np.uint32), 1: _BASE >> 32},
        {M0: start, EXEC: bits & _M32, EXEC + 1: bits >> 32},
        (np.frombuffer(memory, np.uint8).copy(),),
    )
    lds = bytearray(wave.lds.bytes.tobytes())
    for lane in range(LANES):
        if active[lane]:
            at = start + near + lane * size
            lds[at : at + size] = memory[places[lane] : places[lane] + size]
    execute(f"{opcode} v[0:1], off offset:{near}\ns_waitcnt vmcnt(0)", wave)
    assert wave.faults.findings() == ()
    assert wave.lds.bytes.tobytes() == bytes(lds)


def _listed() -> dict[str, Check]:
    found: dict[str, Check] = {}
    for count in (1, 2, 4, 8, 16):
        suffix = f"x{count}" if count > 1 else ""
        found[f"s_load_dword{suffix}"] = partial(_load, f"s_load_dword{suffix}", count)
        found[f"s_buffer_load_dword{suffix}"] = partial(_buffer_load, f"s_buffer_load_dword{suffix}", count)
        if count <= 4:
            found[f"s_store_dword{suffix}"] = partial(_store, f"s_store_dword{suffix}", count)
    for verb in ("swap", "add", "sub", "smin", "umin", "smax", "umax", "and", "or", "xor", "inc", "dec"):
        for wide in ("", "_x2"):
            opcode = f"s_atomic_{verb}{wide}"
            found[opcode] = partial(_atomic, opcode, verb, 8 if wide else 4)
    for suffix, size in (("", 4), ("x3", 12), ("x4", 16)):
        found[f"global_load_lds_dword{suffix}"] = partial(_to_lds, f"global_load_lds_dword{suffix}", size)
    return found


CHECKS: dict[str, Check] = _listed()
"""By opcode, a check that takes a seed."""
