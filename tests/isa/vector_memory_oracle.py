"""Vector and scalar memory instructions against plain Python: gives a check per opcode, which takes a seed.

The test chooses the byte that each lane shall use, and then takes it apart into what the instruction adds up: a
pointer, a scalar base, a resource, an index and a stride, a literal.  So addresses are never computed the way the
interpreter computes them.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from rota.isa.registers import EXEC
from rota.isa.wave.operand import PRIVATE_BASE, SHARED_BASE
from rota.isa.wave.wave import Private
from tests.isa.lds_oracle import tame_number
from tests.isa.plain_memory import LANES, Rows, combination, extended, half
from tests.isa.single import execute, fresh

Check = Callable[[int], None]
_ROWS, _SIZE = 40, 4096
_TARGET, _DATA = 8, 16
_M32 = 2**32 - 1
_WIDTHS = {"dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16}
_SHORTS = {"ubyte": (1, False), "sbyte": (1, True), "ushort": (2, False), "sshort": (2, True), "short": (2, False)}


@dataclass(slots=True)
class _Draw:
    """Registers, memory of one space and the byte that each lane uses; lanes don't overlap."""

    seed: int
    space: str
    size: int
    align: int = 1
    random: random.Random = field(init=False)
    rows: Rows = field(init=False)
    scalars: dict[int, int] = field(default_factory=dict)
    memory: list[bytearray] = field(init=False)  # one, or one per lane
    places: list[int] = field(init=False)
    active: list[bool] = field(init=False)

    def __post_init__(self) -> None:
        self.random = random.Random(f"{self.seed} {self.space}")  # reproducible, not secret
        self.rows = [[self.random.getrandbits(32) for _ in range(LANES)] for _ in range(_ROWS)]
        copies = LANES if self.space in {"scratch", "flat to private"} else 1
        self.memory = [bytearray(self.random.randbytes(_SIZE)) for _ in range(copies)]
        order = list(range(LANES))
        self.random.shuffle(order)
        self.places = [place * 32 + 128 + self.align * self.random.randrange(16 // self.align) for place in order]
        self.active = [self.random.random() < 0.8 for _ in range(LANES)]

    def bytes_of(self, lane: int) -> bytearray:
        return self.memory[lane if len(self.memory) > 1 else 0]


def _address(draw: _Draw) -> tuple[tuple[str, str], str]:
    """Fills registers so that each lane means its place; gives the operands that say so, and the modifiers."""
    near = draw.random.randrange(-64, 64)
    base = 0x7E00_0001_0000  # where the interpreter puts its first buffer
    if draw.space in {"global", "flat", "flat to lds", "flat to private"}:
        start = {"flat to lds": SHARED_BASE, "flat to private": PRIVATE_BASE}.get(draw.space, base)
        near = abs(near) if draw.space != "global" else near
        for lane, place in enumerate(draw.places):
            address = start + place - near
            draw.rows[0][lane], draw.rows[1][lane] = address & _M32, address >> 32
        return ("v[0:1]", "off") if draw.space == "global" else ("v[0:1]", ""), f"offset:{near}"
    if draw.space == "global by base":
        shift = draw.random.randrange(32)
        address = base - near + shift
        draw.scalars |= {2: address & _M32, 3: address >> 32}
        draw.rows[0] = [place - shift for place in draw.places]
        return ("v0", "s[2:3]"), f"offset:{near}"
    if draw.space == "scratch":
        shift = draw.random.randrange(32)
        draw.scalars |= {2: 32 - shift}
        draw.rows[0] = [place - near - 32 + shift for place in draw.places]
        return ("v0", "s2"), f"offset:{near}"
    return _in_buffer(draw, base)


def _in_buffer(draw: _Draw, base: int) -> tuple[tuple[str, str], str]:
    near, moved = draw.random.randrange(16), 4 * draw.random.randrange(4)
    shift = near + moved
    draw.scalars |= {4: base & _M32, 5: base >> 32, 6: _SIZE, 7: 0x27000, 8: moved}
    if draw.space == "buffer":
        draw.rows[0] = [place - shift for place in draw.places]
        return ("v0", "s[4:7], s8"), f"offen offset:{near}"
    stride = draw.random.choice([8, 20])
    draw.scalars[5] |= stride << 16
    draw.rows[0] = [(place - shift) // stride for place in draw.places]
    draw.rows[1] = [(place - shift) % stride for place in draw.places]
    return ("v[0:1]", "s[4:7], s8"), f"idxen offen offset:{near}"


def _registers(first: int, size: int) -> str:
    count = max(size // 4, 1)
    return f"v{first}" if count == 1 else f"v[{first}:{first + count - 1}]"


def _compare(draw: _Draw, before: Rows, memory: list[bytearray], text: str) -> None:
    """Runs the line from the state before; the drawn state now is what it should end in."""
    bits = sum(1 << lane for lane, each in enumerate(draw.active) if each)
    held = np.frombuffer(memory[0], np.uint8).copy() if len(memory) == 1 and draw.space != "flat to lds" else None
    wave = fresh(
        dict(enumerate(np.array(before, np.uint32))),
        {**draw.scalars, EXEC: bits & _M32, EXEC + 1: bits >> 32},
        (np.zeros(4, np.uint8) if held is None else held,),
    )
    wave.private = Private(_SIZE, LANES)
    if len(memory) > 1:
        wave.private.bytes[:] = np.array([list(each) for each in memory], np.uint8)
    elif held is None:
        wave.lds.bytes[:] = np.frombuffer(memory[0], np.uint8)
    execute(f"{text}\ns_waitcnt vmcnt(0) lgkmcnt(0)", wave)
    assert wave.faults.findings() == (), text
    assert wave.v[:_ROWS].tolist() == draw.rows, text
    if len(memory) > 1:
        assert [bytes(each) for each in draw.memory] == [row.tobytes() for row in wave.private.bytes], text
    else:
        now = wave.lds.bytes if held is None else wave.memory.contents()[0]
        assert now.tobytes() == bytes(draw.memory[0]), text


def _load(prefix: str, space: str, width: str, seed: int) -> None:
    name, _, suffix = width.partition("_")
    size = _WIDTHS.get(name) or _SHORTS[name][0]
    draw = _Draw(seed, space, size)
    (address, base), modifiers = _address(draw)
    before, memory = [row.copy() for row in draw.rows], [bytearray(each) for each in draw.memory]
    for lane in range(LANES):
        if not draw.active[lane]:
            continue
        octets = bytes(draw.bytes_of(lane)[draw.places[lane] : draw.places[lane] + size])
        if name in _WIDTHS:
            for number, word in enumerate(struct.unpack(f"<{size // 4}I", octets)):
                draw.rows[_TARGET + number][lane] = word
        else:
            signed = _SHORTS[name][1]
            draw.rows[_TARGET][lane] = (
                half(octets, signed=signed, high="hi" in suffix) if suffix else extended(octets, signed=signed)
            )
    operands = ", ".join(each for each in (_registers(_TARGET, size), address, base) if each)
    _compare(draw, before, memory, f"{prefix}_load_{width} {operands} {modifiers}")


def _store(prefix: str, space: str, width: str, seed: int) -> None:
    name, _, suffix = width.partition("_")
    size = _WIDTHS.get(name) or {"byte": 1, "short": 2}[name]
    draw = _Draw(seed, space, size)
    (address, base), modifiers = _address(draw)
    before, memory = [row.copy() for row in draw.rows], [bytearray(each) for each in draw.memory]
    for lane in range(LANES):
        if draw.active[lane]:
            words = [draw.rows[_DATA + number][lane] for number in range(max(size // 4, 1))]
            octets = struct.pack(f"<{len(words)}I", *words)[2 if suffix else 0 :][:size]
            draw.bytes_of(lane)[draw.places[lane] : draw.places[lane] + size] = octets
    data = _registers(_DATA, size)
    first = (data, address) if prefix == "buffer" else (address, data)
    operands = ", ".join(each for each in (*first, base) if each)
    _compare(draw, before, memory, f"{prefix}_store_{width} {operands} {modifiers}")


def _atomic(prefix: str, space: str, opcode: str, verb: str, seed: int) -> None:
    size = 8 if opcode.endswith("_x2") or verb.endswith("f64") else 4
    draw = _Draw(seed, space, size, align=8)
    (address, base), modifiers = _address(draw)
    count, compares, returns = size // 4, verb == "cmpswap", bool(seed % 2)
    floats = verb.rpartition("_")[2] if "_" in verb else ""
    for lane in range(LANES):
        place = draw.places[lane]
        if floats:
            draw.bytes_of(lane)[place : place + size] = tame_number(draw.random, floats, size)
            words = struct.unpack(f"<{count}I", tame_number(draw.random, floats, size))
            for number, word in enumerate(words):
                draw.rows[_DATA + number][lane] = word
        if compares and lane % 2:
            words = struct.unpack(f"<{count}I", draw.bytes_of(lane)[place : place + size])
            for number, word in enumerate(words):
                draw.rows[_DATA + count + number][lane] = word
    before, memory = [row.copy() for row in draw.rows], [bytearray(each) for each in draw.memory]
    function = combination(verb, size * 8)
    target = _DATA if prefix == "buffer" else _TARGET
    for lane in range(LANES):
        if not draw.active[lane]:
            continue
        place = draw.places[lane]
        old = int.from_bytes(draw.bytes_of(lane)[place : place + size], "little")
        starts = [_DATA, _DATA + count][: 2 if compares else 1]
        data = [sum(before[row + n][lane] << 32 * n for n in range(count)) for row in starts]
        draw.bytes_of(lane)[place : place + size] = function(old, *data).to_bytes(size, "little")
        for number in range(count if returns else 0):
            draw.rows[target + number][lane] = old >> 32 * number & _M32
    data_text = _registers(_DATA, size * (2 if compares else 1))
    parts = [data_text, address, base] if prefix == "buffer" else [address, data_text, base]
    if returns and prefix != "buffer":
        parts.insert(0, _registers(_TARGET, size))
    operands = ", ".join(each for each in parts if each)
    _compare(draw, before, memory, f"{opcode} {operands} {modifiers}{' sc0' if returns else ''}")


_SPACES = {
    "global": ("global", "global by base"),
    "flat": ("flat", "flat to lds", "flat to private"),
    "buffer": ("buffer", "buffer by index"),
    "scratch": ("scratch",),
}
_LOADS = (*_WIDTHS, "ubyte", "sbyte", "ushort", "sshort", *(
    f"{name}_d16{suffix}" for name in ("ubyte", "sbyte", "short") for suffix in ("", "_hi")
))  # fmt: skip
_STORES = (*_WIDTHS, "byte", "short", "byte_d16_hi", "short_d16_hi")
_INTEGERS = ("swap", "cmpswap", "add", "sub", "smin", "umin", "smax", "umax", "and", "or", "xor", "inc", "dec")
_FLOATS = ("add_f32", "pk_add_f16", "pk_add_bf16", "add_f64", "min_f64", "max_f64")


def _through(check: Callable[..., None], spaces: tuple[str, ...], seed: int) -> None:
    """One instruction in every way to name its address."""
    for space in spaces:
        check(space, seed)


def _listed() -> dict[str, Check]:
    found: dict[str, Check] = {}

    def add(prefix: str, opcode: str, function: Callable[..., None], *more: str, spaces: tuple[str, ...] = ()) -> None:
        def check(space: str, seed: int) -> None:
            function(prefix, space, *more, seed)

        found[opcode] = partial(_through, check, spaces or _SPACES[prefix])

    for prefix in _SPACES:
        for width in _LOADS:
            add(prefix, f"{prefix}_load_{width}", _load, width)
        for width in _STORES:
            add(prefix, f"{prefix}_store_{width}", _store, width)
    for prefix in ("global", "flat", "buffer"):
        reached = tuple(space for space in _SPACES[prefix] if space not in {"flat to private", "buffer by index"})
        names = [(verb + wide, verb) for verb in _INTEGERS for wide in ("", "_x2")]
        for name, verb in (*names, *((each, each) for each in _FLOATS)):
            opcode = f"{prefix}_atomic_{name}"
            add(prefix, opcode, _atomic, opcode, verb, spaces=reached)
    return found


CHECKS: dict[str, Check] = _listed()
"""By opcode, a check that takes a seed."""
