"""LDS instructions of gfx1250: draws a case of each opcode, with its result made lane by lane."""

from __future__ import annotations

import struct
from functools import partial
from random import Random

from tests.isa.lds_oracle import tame_number
from tests.isa.plain_gfx12.cases import LDS_BYTES, Case, Draw
from tests.isa.plain_gfx12.machine import LANES, M32, M64
from tests.isa.plain_memory import combination

ADDRESS, TARGET, DATA = 2, 8, 16


def registers(first: int, size: int) -> str:
    count = max(size // 4, 1)
    return f"v{first}" if count == 1 else f"v[{first}:{first + count - 1}]"


def _addressed(random: Random, stride: int, align: int, *, everyone: bool = False) -> Case:
    """A case whose lanes have addresses in LDS."""
    case = Case(random)
    if everyone:
        case.active = [True] * len(LANES)
    case.after.v[ADDRESS] = case.places(stride, align)
    return case


def _load(opcode: str, parts: list[tuple[int, int]], modifiers: str, random: Random) -> Case:
    """`parts` are offsets and sizes, read one after the other."""
    case = _addressed(random, 64, random.choice((4, 8)) if len(parts) > 1 else 4)
    case.begin()
    size = sum(part for _, part in parts)
    for lane in case.lanes():
        at = case.after.v[ADDRESS][lane]
        octets = b"".join(bytes(case.after.lds[at + offset : at + offset + part]) for offset, part in parts)
        case.after.put(TARGET, lane, int.from_bytes(octets, "little"), size // 4)
    case.text = f"{opcode} {registers(TARGET, size)}, v{ADDRESS} {modifiers}"
    return case


def _store(opcode: str, parts: list[tuple[int, int]], modifiers: str, random: Random) -> Case:
    far = max(offset for offset, _ in parts)
    case = _addressed(random, far // len(LANES) if far > 64 else 64, 8)
    case.begin()
    operands, row = [], DATA
    for offset, size in parts:
        operands.append(registers(row, size))
        for lane in case.lanes():
            at = case.after.v[ADDRESS][lane] + offset
            case.after.lds[at : at + size] = case.after.word(row, lane, size // 4).to_bytes(size, "little")
        row += 4
    case.text = f"{opcode} v{ADDRESS}, {', '.join(operands)} {modifiers}"
    return case


def short_value(octets: bytes, *, signed: bool) -> int:
    return int.from_bytes(octets, "little", signed=signed) & M32


def half_value(octets: bytes, *, signed: bool, high: bool) -> int:
    """One half of a register; on a machine with SRAM-ECC the other one is poison."""
    new = short_value(octets, signed=signed) & 0xFFFF
    return new << 16 | 0xFFFF if high else 0xFFFF_0000 | new


def _short_load(opcode: str, form: tuple[int, bool, str], random: Random) -> Case:
    size, signed, part = form
    case = _addressed(random, 16, size)
    case.begin()
    for lane in case.lanes():
        at = case.after.v[ADDRESS][lane] + 2
        octets = bytes(case.after.lds[at : at + size])
        value = half_value(octets, signed=signed, high=part == "high") if part else short_value(octets, signed=signed)
        case.after.put(TARGET, lane, value)
    case.text = f"{opcode} v{TARGET}, v{ADDRESS} offset:2"
    return case


def _short_store(opcode: str, size: int, high: bool, random: Random) -> Case:
    case = _addressed(random, 16, size)
    case.begin()
    for lane in case.lanes():
        at = case.after.v[ADDRESS][lane] + 4
        bits = case.after.v[DATA][lane] >> (16 if high else 0)
        case.after.lds[at : at + size] = (bits & (1 << 8 * size) - 1).to_bytes(size, "little")
    case.text = f"{opcode} v{ADDRESS}, v{DATA} offset:4"
    return case


def combined(verb: str, bits: int, old: int, *data: int) -> int:
    """What an atomic leaves; data come as they are named."""
    if verb == "cond_sub":
        return old - data[0] if old >= data[0] else old
    if verb == "sub_clamp":
        return max(old - data[0], 0)
    return int(combination(verb, bits)(old, *data))


def _atomic(opcode: str, verb: str, size: int, random: Random) -> Case:
    case = _addressed(random, 32, 8)
    count, returns = size // 4, "_rtn" in opcode
    floats = verb.rsplit("_", 1)[-1] if verb.rsplit("_", 1)[-1] in {"f32", "f64", "f16", "bf16"} else ""
    if floats:
        case.after.lds[:] = tame_number(random, floats, LDS_BYTES)
        for lane in LANES:
            case.after.put(DATA, lane, int.from_bytes(tame_number(random, floats, size), "little"), count)
    elif random.random() < 0.3:
        for lane in LANES:
            case.after.put(DATA, lane, random.randrange(4), count)
    sources = [DATA, DATA + 2][: 2 if verb in {"cmpswap", "mskor"} else 1]
    for lane in LANES if verb == "cmpswap" else ():
        if lane % 2:  # half of them find what they expect, which is named last
            at = case.after.v[ADDRESS][lane] + 8
            case.after.put(DATA + 2, lane, int.from_bytes(case.after.lds[at : at + size], "little"), count)
    case.begin()
    for lane in case.lanes():
        at = case.after.v[ADDRESS][lane] + 8
        old = int.from_bytes(case.after.lds[at : at + size], "little")
        data = [case.before.word(row, lane, count) for row in sources]
        case.after.lds[at : at + size] = combined(verb, 8 * size, old, *data).to_bytes(size, "little")
        if returns:
            case.after.put(TARGET, lane, old, count)
    names = [registers(row, size) for row in ([TARGET] if returns else []) + sources]
    names.insert(1 if returns else 0, f"v{ADDRESS}")
    case.text = f"{opcode} {', '.join(names)} offset:8"
    return case


def _exchange_two(opcode: str, size: int, unit: int, random: Random) -> Case:
    """Two places of a lane at once; the data in two operands, the old values side by side."""
    case = _addressed(random, 64 if unit == size else 2 * size, size)
    far = [unit, 2 * unit] if unit == size else [0, unit]
    case.begin()
    count = size // 4
    for lane in case.lanes():
        for number, offset in enumerate(far):
            at = case.before.v[ADDRESS][lane] + offset
            old = int.from_bytes(case.after.lds[at : at + size], "little")
            data = case.before.word(DATA + 4 * number, lane, count)
            case.after.lds[at : at + size] = data.to_bytes(size, "little")
            case.after.put(TARGET + number * count, lane, old, count)
    shown = "offset0:1 offset1:2" if unit == size else "offset1:1"
    data_names = f"{registers(DATA, size)}, {registers(DATA + 4, size)}"
    case.text = f"{opcode} {registers(TARGET, 2 * size)}, v{ADDRESS}, {data_names} {shown}"
    return case


def _permute(opcode: str, random: Random) -> Case:
    case = Case(random)
    chosen = [random.randrange(32) for _ in LANES]
    if opcode == "ds_permute_b32":
        random.shuffle(chosen := list(LANES))
    shift = 4 * random.randrange(8)
    case.after.v[ADDRESS] = [
        (4 * lane - shift + random.randrange(4) + 128 * random.randrange(9)) & M32 for lane in chosen
    ]
    case.begin()
    data, result = case.before.v[DATA], [0] * 32
    for lane in LANES:
        if opcode == "ds_permute_b32" and case.active[lane]:
            result[chosen[lane]] = data[lane]
        elif opcode != "ds_permute_b32":
            result[lane] = data[chosen[lane]] if case.active[chosen[lane]] or "_fi_" in opcode else 0
    for lane in case.lanes():
        case.after.v[TARGET][lane] = result[lane]
    case.text = f"{opcode} v{TARGET}, v{ADDRESS}, v{DATA} offset:{shift}"
    return case


def _swizzle(random: Random) -> Case:
    case = Case(random)
    case.begin()
    if random.random() < 0.5:
        order = [random.randrange(4) for _ in range(4)]
        source = [lane // 4 * 4 + order[lane % 4] for lane in LANES]
        shown = f"swizzle(QUAD_PERM,{','.join(map(str, order))})"
    else:
        pattern = "".join(random.choice("01pi") for _ in range(5))
        source = []
        for lane in LANES:
            pairs = zip(pattern, f"{lane:05b}", strict=True)
            new = "".join({"0": "0", "1": "1", "p": bit, "i": "10"[int(bit)]}[how] for how, bit in pairs)
            source.append(int(new, 2))
        shown = f'swizzle(BITMASK_PERM,"{pattern}")'
    for lane in case.lanes():
        case.after.v[TARGET][lane] = case.before.v[DATA][source[lane]] if case.active[source[lane]] else 0
    case.text = f"ds_swizzle_b32 v{TARGET}, v{DATA} offset:{shown}"
    return case


# Transposing reads. A lane gives the address of a run of elements. Of a result's lane, the lowest bits say which
# element of a run it gets; which run each of its elements is from, by these bits of lane ("l") and element ("r"), the
# lowest first.

TRANSPOSED = {
    "tr16_b128": (16, 16, ("r0", "r1", "r2", "l3", "l4")),
    "tr8_b64": (8, 8, ("r0", "r1", "l3", "r2", "l4")),
    "tr4_b64": (8, 4, ("r0", "r1", "r2", "l4", "r3")),
    "tr6_b96": (12, 6, ("r0", "r1", "l4", "r2", "r3")),  # by AMD's emulator rocJITsu; Triton has none
}
"""Bytes of a run, bits of an element, and the bits of the lane that gives the run's address."""


def transposed(runs: list[bytes], name: str) -> list[int]:
    """What each lane gets, as one integer, of the runs by the lanes that gave their addresses."""
    size, width, run_bits = TRANSPOSED[name]
    count = 8 * size // width
    out = []
    for lane in LANES:
        joined = 0
        for element in range(count):
            numbers = {"l": lane, "r": element}
            run = sum((numbers[each[0]] >> int(each[1]) & 1) << place for place, each in enumerate(run_bits))
            value = int.from_bytes(runs[run], "little") >> width * (lane % count) & (1 << width) - 1
            joined |= value << width * element
        out.append(joined)
    return out


def _transposing(name: str, random: Random) -> Case:
    size = TRANSPOSED[name][0]
    case = _addressed(random, 64, 16, everyone=True)
    case.begin()
    runs = [bytes(case.after.lds[at + 16 : at + 16 + size]) for at in case.after.v[ADDRESS]]
    for lane, bits in enumerate(transposed(runs, name)):
        case.after.put(TARGET, lane, bits, size // 4)
    case.text = f"ds_load_{name} {registers(TARGET, size)}, v{ADDRESS} offset:16"
    return case


def arrived(word: int, by: int) -> int:
    """A barrier in LDS after so many arrivals: pending in bits 28:0, phase above, what pending begins with from 32 on.

    Both counts are one less than the arrivals they stand for; below none the phase turns and pending begins anew.
    """
    pending, phase, start = word & (1 << 29) - 1, word >> 29 & 7, word >> 32 & (1 << 29) - 1
    for _ in range(by):
        if pending == 0:
            pending, phase = start, phase + 1 & 7
        else:
            pending -= 1
    return pending | phase << 29 | word >> 32 << 32


def _arrival(random: Random) -> Case:
    """Each active lane arrives once, or by the number that it gives, at a barrier of its own."""
    case = _addressed(random, 64, 8)
    for lane in LANES:
        at = case.after.v[ADDRESS][lane] + 8
        start = random.randrange(1, 9)
        word = random.randrange(start + 1) | random.randrange(8) << 29 | start << 32
        struct.pack_into("<Q", case.after.lds, at, word & M64)
        case.after.put(DATA, lane, random.choice((1, 1, 2)) if word & 15 else 1, 2)
    case.begin()
    for lane in case.lanes():
        at = case.after.v[ADDRESS][lane] + 8
        old = struct.unpack_from("<Q", case.after.lds, at)[0]
        struct.pack_into("<Q", case.after.lds, at, arrived(old, case.before.v[DATA][lane]))
        case.after.put(TARGET, lane, old, 2)
    pair = f"v[{TARGET}:{TARGET + 1}]"
    case.text = f"ds_atomic_barrier_arrive_rtn_b64 {pair}, v{ADDRESS}, v[{DATA}:{DATA + 1}] offset:8"
    return case


def _loads_and_stores() -> dict[str, Draw]:
    found: dict[str, Draw] = {}
    for bits in (32, 64, 96, 128):
        size = bits // 8
        found[f"ds_load_b{bits}"] = partial(_load, f"ds_load_b{bits}", [(12, size)], "offset:12")
        found[f"ds_store_b{bits}"] = partial(_store, f"ds_store_b{bits}", [(4, size)], "offset:4")
    for bits in (32, 64):
        size = bits // 8
        near, far = [(size, size), (2 * size, size)], [(0, size), (2 * 64 * size, size)]
        for word, parts, text in (("", near, "offset0:1 offset1:2"), ("_stride64", far, "offset1:2")):
            found[f"ds_load_2addr{word}_b{bits}"] = partial(_load, f"ds_load_2addr{word}_b{bits}", parts, text)
            found[f"ds_store_2addr{word}_b{bits}"] = partial(_store, f"ds_store_2addr{word}_b{bits}", parts, text)
            opcode = f"ds_storexchg_2addr{word}_rtn_b{bits}"
            found[opcode] = partial(_exchange_two, opcode, size, 64 * size if word else size)
    for size, bits in ((1, 8), (2, 16)):
        for sign in "ui":
            for suffix, part in (("", ""), ("_d16", "low"), ("_d16_hi", "high")):
                opcode = f"ds_load_{sign}{bits}{suffix}"
                if not (bits == 16 and suffix and sign == "i"):
                    found[opcode] = partial(_short_load, opcode, (size, sign == "i", part))
        found[f"ds_store_b{bits}"] = partial(_short_store, f"ds_store_b{bits}", size, False)
        found[f"ds_store_b{bits}_d16_hi"] = partial(_short_store, f"ds_store_b{bits}_d16_hi", size, True)
    return found


def _atomics() -> dict[str, Draw]:
    found: dict[str, Draw] = {}
    kinds = {
        "add": ("u", "add"), "sub": ("u", "sub"), "rsub": ("u", "rsub"), "inc": ("u", "inc"), "dec": ("u", "dec"),
        "and": ("b", "and"), "or": ("b", "or"), "xor": ("b", "xor"), "mskor": ("b", "mskor"),
        "cmpstore": ("b", "cmpswap"),
    }  # fmt: skip
    for bits in (32, 64):
        named = {f"{name}{{}}_{letter}{bits}": verb for name, (letter, verb) in kinds.items()}
        for name in ("min", "max"):
            named |= {f"{name}{{}}_{sign}{bits}": f"{'s' if sign == 'i' else 'u'}{name}" for sign in "iu"}
            named[f"{name}_num{{}}_f{bits}"] = f"{name}_f{bits}"
        named[f"add{{}}_f{bits}"] = f"add_f{bits}"
        if bits == 32:
            named |= {f"pk_add{{}}_{kind}": f"pk_add_{kind}" for kind in ("f16", "bf16")}
            named |= {"cond_sub{}_u32": "cond_sub", "sub_clamp{}_u32": "sub_clamp"}
        for pattern, verb in named.items():
            for rtn in ("", "_rtn"):
                opcode = f"ds_{pattern.format(rtn)}"
                found[opcode] = partial(_atomic, opcode, verb, bits // 8)
        found[f"ds_storexchg_rtn_b{bits}"] = partial(_atomic, f"ds_storexchg_rtn_b{bits}", "swap", bits // 8)
    return found


DRAWS: dict[str, Draw] = {
    **_loads_and_stores(), **_atomics(),
    **{f"ds_load_{name}": partial(_transposing, name) for name in TRANSPOSED},
    **{f"ds_{name}_b32": partial(_permute, f"ds_{name}_b32") for name in ("permute", "bpermute", "bpermute_fi")},
    "ds_swizzle_b32": _swizzle, "ds_atomic_barrier_arrive_rtn_b64": _arrival,
}  # fmt: skip
