"""LDS instructions against plain Python: gives a check per opcode, which takes a seed and fails if they differ."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from functools import partial

import numpy as np

from rota.isa.registers import EXEC
from tests.isa.plain_memory import LANES, Rows, combination, extended, half
from tests.isa.single import LDS_BYTES, execute, fresh

Check = Callable[[int], None]
_ROWS = 40  # registers that are compared
_ADDRESS, _TARGET, _DATA = 2, 8, 16
_WAIT = "s_waitcnt lgkmcnt(0)"
_FIELDS = {"f32": (32, 23), "f64": (64, 52), "f16": (16, 10), "bf16": (16, 7)}
_LETTERS = {4: "<I", 8: "<Q"}


class _Draw:
    """Random registers, LDS and lanes; addresses of lanes don't overlap."""

    def __init__(self, seed: int, *, stride: int, align: int, everyone: bool = False) -> None:
        self.random = random.Random(seed)  # reproducible, not secret
        self.rows: Rows = [[self.random.getrandbits(32) for _ in range(LANES)] for _ in range(_ROWS)]
        self.lds = bytearray(self.random.randbytes(LDS_BYTES))
        self.active = [everyone or self.random.random() < 0.8 for _ in range(LANES)]
        places = list(range(LANES))
        self.random.shuffle(places)
        first = align * self.random.randrange(0, stride // align)
        self.rows[_ADDRESS] = [place * stride + first for place in places]

    def compare(self, text: str) -> None:
        """Runs the line in the interpreter from the state before; the state now is what it should end in."""
        bits = sum(1 << lane for lane, each in enumerate(self.active) if each)
        wave = fresh(dict(enumerate(np.array(self.before, np.uint32))), {EXEC: bits % 2**32, EXEC + 1: bits >> 32})
        wave.lds.bytes[:] = np.frombuffer(self.lds_before, np.uint8)
        execute(f"{text}\n{_WAIT}", wave)
        assert wave.faults.findings() == (), text
        assert wave.v[:_ROWS].tolist() == self.rows, text
        assert wave.lds.bytes.tobytes() == bytes(self.lds), text

    def begin(self) -> None:
        """Remembers the state from which both sides start."""
        self.before = [row.copy() for row in self.rows]
        self.lds_before = bytes(self.lds)


def _words(octets: bytes) -> list[int]:
    return [int(each) for each in struct.unpack(f"<{len(octets) // 4}I", octets)]


def _read(opcode: str, parts: list[tuple[int, int]], modifiers: str, seed: int) -> None:
    """`parts` are offsets and sizes, read one after the other."""
    draw = _Draw(seed, stride=32, align=random.Random(seed).choice([1, 4]))
    draw.rows[_ADDRESS] = [at % (LDS_BYTES // 4) for at in draw.rows[_ADDRESS]]
    draw.begin()
    size = sum(part for _, part in parts)
    for lane in range(LANES):
        if draw.active[lane]:
            at = draw.rows[_ADDRESS][lane]
            octets = b"".join(bytes(draw.lds[at + offset : at + offset + part]) for offset, part in parts)
            for number, word in enumerate(_words(octets)):
                draw.rows[_TARGET + number][lane] = word
    target = f"v{_TARGET}" if size == 4 else f"v[{_TARGET}:{_TARGET + size // 4 - 1}]"
    draw.compare(f"{opcode} {target}, v{_ADDRESS} {modifiers}")


def _write(opcode: str, parts: list[tuple[int, int]], modifiers: str, seed: int) -> None:
    far = max(offset for offset, _ in parts)  # the second part of a lane stays clear of all first ones
    draw = _Draw(seed, stride=far // LANES if far > LANES else 32, align=4 if far > LANES else 1)
    draw.begin()
    operands, row = [], _DATA
    for offset, size in parts:
        count = size // 4
        operands.append(f"v{row}" if count == 1 else f"v[{row}:{row + count - 1}]")
        for lane in range(LANES):
            if draw.active[lane]:
                at = draw.rows[_ADDRESS][lane] + offset
                draw.lds[at : at + size] = b"".join(
                    struct.pack("<I", draw.rows[row + number][lane]) for number in range(count)
                )
        row += count + count % 2
    draw.compare(f"{opcode} v{_ADDRESS}, {', '.join(operands)} {modifiers}")


def _short_read(opcode: str, size: int, signed: bool, part: str, seed: int) -> None:
    draw = _Draw(seed, stride=8, align=1)
    draw.begin()
    for lane in range(LANES):
        if draw.active[lane]:
            at = draw.rows[_ADDRESS][lane] + 3
            octets = bytes(draw.lds[at : at + size])
            draw.rows[_TARGET][lane] = (
                half(octets, signed=signed, high=part == "high") if part else extended(octets, signed=signed)
            )
    draw.compare(f"{opcode} v{_TARGET}, v{_ADDRESS} offset:3")


def _short_write(opcode: str, size: int, high: bool, seed: int) -> None:
    draw = _Draw(seed, stride=8, align=1)
    draw.begin()
    for lane in range(LANES):
        if draw.active[lane]:
            at = draw.rows[_ADDRESS][lane] + 5
            octets = struct.pack("<I", draw.rows[_DATA][lane])
            draw.lds[at : at + size] = octets[2 if high else 0 :][:size]
    draw.compare(f"{opcode} v{_ADDRESS}, v{_DATA} offset:5")


def _atomic(opcode: str, verb: str, size: int, seed: int) -> None:
    draw = _Draw(seed, stride=16, align=8)
    floats = verb.rsplit("_", maxsplit=1)[-1] if "f" in verb.rsplit("_", maxsplit=1)[-1] and "_" in verb else ""
    _tame(draw, floats)
    draw.begin()
    function, letter, returns = combination(verb, size * 8), _LETTERS[size], "_rtn" in opcode
    two = verb in {"cmpswap", "mskor"}
    sources = [_DATA, _DATA + 2][: 2 if two else 1]
    count = size // 4
    for lane in range(LANES):
        if not draw.active[lane]:
            continue
        at = draw.rows[_ADDRESS][lane] + 8
        old = struct.unpack(letter, draw.lds[at : at + size])[0]
        data = [sum(draw.rows[row + n][lane] << 32 * n for n in range(count)) for row in sources]
        if verb == "cmpswap":
            if lane % 2:  # half of them find what they expect
                for number in range(count):
                    draw.before[_DATA + number][lane] = draw.rows[_DATA + number][lane] = old >> 32 * number & 2**32 - 1
                data[0] = old
            data.reverse()  # expected, then new
        draw.lds[at : at + size] = struct.pack(letter, function(old, *data))
        for number in range(count if returns else 0):
            draw.rows[_TARGET + number][lane] = old >> 32 * number & 2**32 - 1
    names = [f"v{row}" if count == 1 else f"v[{row}:{row + 1}]" for row in ([_TARGET] if returns else []) + sources]
    names.insert(1 if returns else 0, f"v{_ADDRESS}")
    draw.compare(f"{opcode} {', '.join(names)} offset:8")


def _tame(draw: _Draw, floats: str) -> None:
    """No NaN and no infinity where numbers are floats; small ones among them."""
    if not floats:
        return
    size = 8 if floats == "f64" else 4
    draw.lds[:] = tame_number(draw.random, floats, LDS_BYTES)
    for lane in range(LANES):
        for number, word in enumerate(_words(tame_number(draw.random, floats, size))):
            draw.rows[_DATA + number][lane] = word


def tame_number(chooser: random.Random, kind: str, size: int) -> bytes:
    """So many bytes of finite floats of that kind."""
    width, mantissa = _FIELDS[kind]
    return b"".join(_finite(chooser, width, mantissa).to_bytes(width // 8, "little") for _ in range(size * 8 // width))


def _finite(chooser: random.Random, width: int, mantissa: int) -> int:
    exponents = width - mantissa - 1
    exponent: int = chooser.choice(
        [0, 1, chooser.randrange(2**exponents - 1), 2 ** (exponents - 1) + chooser.randrange(4)]
    )
    return int(chooser.getrandbits(1) << width - 1 | exponent << mantissa | chooser.getrandbits(mantissa))


def _transposed(opcode: str, size: int, element: int, seed: int) -> None:
    """Lane l of sixteen gets element l of each column; lanes that read one column stand side by side."""
    draw = _Draw(seed, stride=16, align=16, everyone=True)
    draw.begin()
    count = size * 8 // element
    for team in range(0, LANES, 16):
        matrix: list[list[int]] = []  # columns of sixteen elements
        elements: list[int] = []
        for lane in range(team, team + 16):
            at = draw.rows[_ADDRESS][lane]
            number = int.from_bytes(draw.lds[at : at + size], "little")
            elements += [number >> element * place & 2**element - 1 for place in range(count)]
        matrix = [elements[start : start + 16] for start in range(0, len(elements), 16)]
        for member in range(16):
            row = sum(column[member] << element * place for place, column in enumerate(matrix))
            for number in range(size // 4):
                draw.rows[_TARGET + number][team + member] = row >> 32 * number & 2**32 - 1
    draw.compare(f"{opcode} v[{_TARGET}:{_TARGET + size // 4 - 1}], v{_ADDRESS}")


def _permute(opcode: str, seed: int) -> None:
    draw = _Draw(seed, stride=4, align=4)
    chosen = [draw.random.randrange(LANES) for _ in range(LANES)]
    if opcode == "ds_permute_b32":
        draw.random.shuffle(chosen := list(range(LANES)))
    draw.rows[_ADDRESS] = [lane * 4 + draw.random.randrange(4) + 256 * draw.random.randrange(9) for lane in chosen]
    draw.begin()
    data, result = draw.before[_DATA], [0] * LANES
    for lane in range(LANES):
        if opcode == "ds_permute_b32" and draw.active[lane]:
            result[chosen[lane]] = data[lane]
        elif opcode == "ds_bpermute_b32":
            result[lane] = data[chosen[lane]] if draw.active[chosen[lane]] else 0
    draw.rows[_TARGET] = [result[i] if draw.active[i] else draw.before[_TARGET][i] for i in range(LANES)]
    draw.compare(f"{opcode} v{_TARGET}, v{_ADDRESS}, v{_DATA}")


def _swizzle(seed: int) -> None:
    draw = _Draw(seed, stride=4, align=4)
    draw.begin()
    if seed % 2:
        order = [draw.random.randrange(4) for _ in range(4)]
        source = [lane // 4 * 4 + order[lane % 4] for lane in range(LANES)]
        shown = f"swizzle(QUAD_PERM,{','.join(map(str, order))})"
    else:
        pattern = "".join(draw.random.choice("01pi") for _ in range(5))
        source = []
        for lane in range(LANES):
            bits = f"{lane % 32:05b}"
            new = "".join(
                {"0": "0", "1": "1", "p": bit, "i": "10"[int(bit)]}[how] for how, bit in zip(pattern, bits, strict=True)
            )
            source.append(lane // 32 * 32 + int(new, 2))
        shown = f'swizzle(BITMASK_PERM,"{pattern}")'
    for lane in range(LANES):
        if draw.active[lane]:
            draw.rows[_TARGET][lane] = draw.before[_DATA][source[lane]] if draw.active[source[lane]] else 0
    draw.compare(f"ds_swizzle_b32 v{_TARGET}, v{_DATA} offset:{shown}")


def _listed() -> dict[str, Check]:
    found: dict[str, Check] = {}
    for bits in (32, 64, 96, 128):
        size = bits // 8
        found[f"ds_read_b{bits}"] = partial(_read, f"ds_read_b{bits}", [(12, size)], "offset:12")
        found[f"ds_write_b{bits}"] = partial(_write, f"ds_write_b{bits}", [(4, size)], "offset:4")
    for bits in (32, 64):
        size = bits // 8
        near, far = [(size, size), (2 * size, size)], [(0, size), (2 * 64 * size, size)]
        for far_name, parts, text in (("", near, "offset0:1 offset1:2"), ("st64", far, "offset1:2")):
            for verb, check in (("read", _read), ("write", _write)):
                opcode = f"ds_{verb}2{far_name}_b{bits}"
                found[opcode] = partial(check, opcode, parts, text)
    for size, bits in ((1, 8), (2, 16)):
        for sign in "ui":
            for suffix, part in (("", ""), ("_d16", "low"), ("_d16_hi", "high")):
                opcode = f"ds_read_{sign}{bits}{suffix}"
                if not (bits == 16 and suffix and sign == "i"):
                    found[opcode] = partial(_short_read, opcode, size, sign == "i", part)
        found[f"ds_write_b{bits}"] = partial(_short_write, f"ds_write_b{bits}", size, False)
        found[f"ds_write_b{bits}_d16_hi"] = partial(_short_write, f"ds_write_b{bits}_d16_hi", size, True)
    for bits, element in ((64, 4), (96, 6), (64, 8), (64, 16)):
        opcode = f"ds_read_b{bits}_tr_b{element}"
        found[opcode] = partial(_transposed, opcode, bits // 8, element)
    for opcode in ("ds_permute_b32", "ds_bpermute_b32"):
        found[opcode] = partial(_permute, opcode)
    found["ds_swizzle_b32"] = _swizzle
    return found | _atomics()


def _atomics() -> dict[str, Check]:
    found: dict[str, Check] = {}
    kinds = {
        "add": ("u", "add"), "sub": ("u", "sub"), "rsub": ("u", "rsub"), "inc": ("u", "inc"), "dec": ("u", "dec"),
        "and": ("b", "and"), "or": ("b", "or"), "xor": ("b", "xor"), "mskor": ("b", "mskor"), "cmpst": ("b", "cmpswap"),
    }  # fmt: skip
    for bits in (32, 64):
        named = {f"{name}{{}}_{letter}{bits}": verb for name, (letter, verb) in kinds.items()}
        named |= {
            f"{name}{{}}_{sign}{bits}": f"{'s' if sign == 'i' else 'u'}{name}"
            for name in ("min", "max")
            for sign in "iu"
        }
        named |= {f"{name}{{}}_f{bits}": f"{name}_f{bits}" for name in ("add", "min", "max")}
        if bits == 32:
            named |= {f"pk_add{{}}_{kind}": f"pk_add_{kind}" for kind in ("f16", "bf16")}
        for pattern, verb in named.items():
            for rtn in ("", "_rtn"):
                opcode = f"ds_{pattern.format(rtn)}"
                found[opcode] = partial(_atomic, opcode, verb, bits // 8)
        found[f"ds_wrxchg_rtn_b{bits}"] = partial(_atomic, f"ds_wrxchg_rtn_b{bits}", "swap", bits // 8)
    return found


CHECKS: dict[str, Check] = _listed()
"""By opcode, a check that takes a seed."""
