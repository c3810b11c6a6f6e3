"""Global, buffer, private and scalar memory of gfx1250, and copies between memory and LDS: a case of each opcode.

Who draws chooses the byte that a lane shall use, and takes it apart into what the instruction adds up: a pointer or a
scalar base, a register, a literal, a resource. So addresses are never computed as the interpreter computes them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import NamedTuple

from tests.isa.lds_oracle import tame_number
from tests.isa.plain_gfx12.cases import BASE, MEMORY_BYTES, Case, Draw
from tests.isa.plain_gfx12.lds import TRANSPOSED, combined, half_value, registers, short_value, transposed
from tests.isa.plain_gfx12.machine import LANES, M32, M64

TARGET, DATA = 8, 16
NOWHERE = 0x7FFF_FFFF  # an LDS address at which a lane of an asynchronous copy does nothing
HINTS = ("", "", " th:TH_{}_NT", " th:TH_{}_HT", " scope:SCOPE_DEV", " scope:SCOPE_SYS", " scope:SCOPE_SE")


class Place(NamedTuple):
    """The operands that name an address, before and after the data, and the modifiers."""

    vector: str
    rest: str
    modifiers: str


def _addressed(random: Random, space: str, size: int, align: int = 1) -> tuple[Case, list[int], Place]:
    """A case, the byte that each lane uses, and how it is named."""
    case = Case(random)
    stride = 64 if space != "scratch" else 0
    if space in {"scratch", "flat to private"}:
        places = [align * random.randrange(64 // align, 256 // align) for _ in LANES]
    else:
        places = [1024 + each for each in case.places(stride, align)]
    return case, places, _ADDRESSES[space](case, places, size)


def _by_pointer(case: Case, places: list[int], size: int, start: int = BASE) -> Place:
    del size
    near = case.random.randrange(-4000, 4000) if start == BASE else 0
    for lane, place in enumerate(places):
        case.after.put(0, lane, start + place - near & M64, 2)
    return Place("v[0:1]", "off" if start == BASE else "", f"offset:{near}" if near else "")


def _flat(case: Case, places: list[int], size: int) -> Place:
    place = _by_pointer(case, places, size)
    return place._replace(rest="")


def _by_base(case: Case, places: list[int], size: int) -> Place:
    """A scalar base, and a register that is signed; it may count elements instead of bytes."""
    near, shift = case.random.randrange(-600, 600), case.random.randrange(4000)
    unit = size if case.random.random() < 0.4 and size else 1
    base = BASE + shift - near
    if unit > 1:  # every lane by the same rest
        places[:] = [place // unit * unit for place in places]
        base = BASE - near + unit * (shift // unit)
        shift = unit * (shift // unit)
    case.after.s[2], case.after.s[3] = base & M32, base >> 32
    case.after.v[0] = [(place - shift) // unit & M32 for place in places]
    return Place("v0", "s[2:3]", f"offset:{near}" + (" scale_offset" if unit > 1 else ""))


def _resource(case: Case, base: int, records: int) -> None:
    """57 bits of base, 45 of records, and no stride; so clang 22 makes one for gfx1250."""
    word = base | records << 57
    for number in range(4):
        case.after.s[4 + number] = word >> 32 * number & M32


def _in_buffer(case: Case, places: list[int], size: int) -> Place:
    """Some lanes' elements end after the last record."""
    del size
    near, moved = case.random.randrange(400), 4 * case.random.randrange(40)
    _resource(case, BASE, MEMORY_BYTES)
    case.after.s[8] = moved
    case.after.v[0] = [place - near - moved for place in places]
    return Place("v0", "s[4:7], s8", f"offen offset:{near}")


def _in_buffer_together(case: Case, places: list[int], size: int) -> Place:
    """All lanes load the same element."""
    del size
    near = case.random.randrange(400)
    _resource(case, BASE, MEMORY_BYTES)
    places[:] = [places[0]] * len(LANES)
    case.after.s[8] = places[0] - near
    if case.random.random() < 0.5:
        _resource(case, BASE + places[0] - near, MEMORY_BYTES - places[0] + near)
        return Place("off", "s[4:7], null", f"offset:{near}")
    return Place("off", "s[4:7], s8", f"offset:{near}")


def _in_private(case: Case, places: list[int], size: int) -> Place:
    del size
    near, moved = case.random.randrange(16), case.random.randrange(16)
    case.after.s[2] = moved
    case.after.v[0] = [place - near - moved for place in places]
    return Place("v0", "s2", f"offset:{near}")


_ADDRESSES: dict[str, Callable[[Case, list[int], int], Place]] = {
    "global": _by_pointer,
    "global by base": _by_base,
    "flat": _flat,
    "flat by base": _by_base,
    "buffer": _in_buffer,
    "buffer together": _in_buffer_together,
    "scratch": _in_private,
}
SPACES = {
    "global": ("global", "global by base"), "flat": ("flat", "flat by base"), "buffer": ("buffer",),
    "scratch": ("scratch",), "cluster": ("global", "global by base"),
}  # fmt: skip


def _bytes(case: Case, space: str, lane: int) -> bytearray:
    return case.after.private[lane] if space == "scratch" else case.after.memory


def _written(opcode: str, operands: list[str], modifiers: str) -> str:
    return f"{opcode} {', '.join(each for each in operands if each)} {modifiers}"


def _hint(random: Random, kind: str) -> str:
    return random.choice(HINTS).format(kind)


class Width(NamedTuple):
    """Bytes, whether they are signed, and the half of a register that they go to, if to one."""

    size: int
    signed: bool = False
    half: str = ""


LOADS = {
    **{f"b{8 * size}": Width(size) for size in (4, 8, 12, 16)},
    "u8": Width(1), "i8": Width(1, True), "u16": Width(2), "i16": Width(2, True),
    "d16_u8": Width(1, half="low"), "d16_i8": Width(1, True, "low"), "d16_b16": Width(2, half="low"),
    "d16_hi_u8": Width(1, half="high"), "d16_hi_i8": Width(1, True, "high"), "d16_hi_b16": Width(2, half="high"),
}  # fmt: skip
STORES = {
    **{f"b{8 * size}": Width(size) for size in (1, 2, 4, 8, 12, 16)},
    "d16_hi_b8": Width(1, half="high"), "d16_hi_b16": Width(2, half="high"),
}  # fmt: skip


def _load(opcode: str, width: Width, random: Random) -> Case:
    prefix = opcode.split("_", maxsplit=1)[0]
    space = random.choice((*SPACES[prefix], *(("buffer together",) if prefix == "buffer" else ())))
    align = min(width.size, 4) if width.size != 12 else 4
    case, places, place = _addressed(random, space, width.size, align)
    case.begin()
    for lane in case.lanes():
        octets = bytes(_bytes(case, space, lane)[places[lane] : places[lane] + width.size])
        if width.size >= 4:
            case.after.put(TARGET, lane, int.from_bytes(octets, "little"), width.size // 4)
        elif width.half:
            case.after.put(TARGET, lane, half_value(octets, signed=width.signed, high=width.half == "high"))
        else:
            case.after.put(TARGET, lane, short_value(octets, signed=width.signed))
    operands = [registers(TARGET, width.size), place.vector, place.rest]
    case.text = _written(opcode, operands, place.modifiers + _hint(random, "LOAD"))
    return case


def _outside(opcode: str, width: Width, random: Random) -> Case:
    """A buffer load past the last record gives zero."""
    case = _load(opcode, width, random)
    if width.half or "offen" not in case.text or random.random() < 0.5:
        return case
    records = random.randrange(1024, 1024 + 64 * 32)
    for machine in (case.before, case.after):
        machine.s[5] = machine.s[5] & (1 << 25) - 1 | records << 25 & M32
        machine.s[6] = records >> 7
    moved, near = case.before.s[8], int(case.text.partition("offset:")[2].split()[0])
    for lane in case.lanes():
        at = case.before.v[0][lane] + moved + near
        for word in range(max(1, width.size // 4)):
            if at + 4 * word + min(width.size, 4) > records:
                case.after.v[TARGET + word][lane] = 0
    return case


def _store(opcode: str, width: Width, random: Random) -> Case:
    prefix = opcode.split("_", maxsplit=1)[0]
    space = random.choice(SPACES[prefix])
    align = min(width.size, 4) if width.size != 12 else 4
    case, places, place = _addressed(random, space, width.size, align)
    case.begin()
    for lane in case.lanes():
        bits = case.after.word(DATA, lane, max(width.size // 4, 1)) >> (16 if width.half else 0)
        octets = (bits & (1 << 8 * width.size) - 1).to_bytes(width.size, "little")
        _bytes(case, space, lane)[places[lane] : places[lane] + width.size] = octets
    data = registers(DATA, width.size)
    first = [data, place.vector] if prefix == "buffer" else [place.vector, data]
    case.text = _written(opcode, [*first, place.rest], place.modifiers + _hint(random, "STORE"))
    return case


def _atomic(opcode: str, verb: str, size: int, random: Random) -> Case:
    prefix = opcode.split("_", maxsplit=1)[0]
    space = random.choice(SPACES[prefix])
    case, places, place = _addressed(random, space, size, 8)
    count, returns = size // 4, random.random() < 0.5
    kind = verb.rsplit("_", 1)[-1]
    for lane in LANES:
        at = places[lane]
        if kind in {"f32", "f64", "f16", "bf16"}:
            case.after.memory[at : at + size] = tame_number(random, kind, size)
            case.after.put(DATA, lane, int.from_bytes(tame_number(random, kind, size), "little"), count)
        if verb == "cmpswap" and lane % 2:
            case.after.put(DATA + count, lane, int.from_bytes(case.after.memory[at : at + size], "little"), count)
    case.begin()
    target = DATA if prefix == "buffer" else TARGET
    for lane in case.lanes():
        at = places[lane]
        old = int.from_bytes(case.after.memory[at : at + size], "little")
        starts = (DATA, DATA + count)[: 2 if verb == "cmpswap" else 1]
        data = [case.before.word(row, lane, count) for row in starts]
        case.after.memory[at : at + size] = combined(verb, 8 * size, old, *data).to_bytes(size, "little")
        if returns:
            case.after.put(target, lane, old, count)
    data_text = registers(DATA, size * (2 if verb == "cmpswap" else 1))
    operands = [data_text, place.vector] if prefix == "buffer" else [place.vector, data_text]
    if returns and prefix != "buffer":
        operands.insert(0, registers(TARGET, size))
    more = " th:TH_ATOMIC_RETURN" if returns else ""
    case.text = _written(opcode, [*operands, place.rest], place.modifiers + more)
    return case


def _transposing(name: str, random: Random) -> Case:
    """From memory; every lane takes part."""
    size = TRANSPOSED[name][0]
    space = random.choice(SPACES["global"])
    case, places, place = _addressed(random, space, 0, 16)
    case.active = [True] * len(LANES)
    case.begin()
    runs = [bytes(case.after.memory[at : at + size]) for at in places]
    for lane, bits in enumerate(transposed(runs, name)):
        case.after.put(TARGET, lane, bits, size // 4)
    operands = [registers(TARGET, size), place.vector, place.rest]
    case.text = _written(f"global_load_{name}", operands, place.modifiers)
    return case


def _copy(opcode: str, size: int, random: Random) -> Case:
    """Between memory and LDS; the literal is added on both sides, and some lanes have no place in LDS."""
    loads = "_load_" in opcode
    space = random.choice(SPACES["global"])
    case, places, place = _addressed(random, space, 0, max(size, 4))
    near = int((place.modifiers or "offset:0").partition(":")[2])
    in_lds = [4096 + each for each in case.places(32, max(size, 4))]
    idle = [not near and random.random() < 0.2 for _ in LANES]
    rows = zip(in_lds, idle, strict=True)
    case.after.v[4] = [NOWHERE if alone else (each - near) & M32 for each, alone in rows]
    case.begin()
    for lane in case.lanes():
        if not idle[lane]:
            there, here = places[lane], in_lds[lane]
            if loads:
                case.after.lds[here : here + size] = case.before.memory[there : there + size]
            else:
                case.after.memory[there : there + size] = case.before.lds[here : here + size]
    operands = ["v4", place.vector, place.rest] if loads else [place.vector, "v4", place.rest]
    case.text = _written(opcode, operands, place.modifiers)
    return case


# Scalar memory.


def _scalar_load(opcode: str, width: Width, random: Random) -> Case:
    case = Case(random)
    align = min(width.size, 4)
    at = align * random.randrange(1024 // align, 4096 // align)
    literal, register = align * random.randrange(-64, 64), 4 * random.randrange(64)
    both = register + abs(literal)
    scaled = f"s9 offset:{abs(literal):#x} scale_offset"
    forms = (
        (f"{literal:#x}", literal), ("s9 offset:0x0", register), (f"s9 offset:{abs(literal):#x}", both),
        (scaled, register * width.size + abs(literal)),
    )  # fmt: skip
    buffer = opcode.startswith("s_buffer")
    shown, added = random.choice(forms[:3] if buffer else forms)
    if buffer and added < 0:
        shown, added = "s9 offset:0x0", register
    case.after.s[9] = register
    start = BASE + at - added
    if buffer:
        _resource(case, start, MEMORY_BYTES - at + added)
    else:
        case.after.s[2], case.after.s[3] = start & M32, start >> 32
    case.begin()
    octets = bytes(case.after.memory[at : at + width.size])
    count = max(width.size // 4, 1)
    value = int.from_bytes(octets, "little", signed=width.signed) & (1 << 32 * count) - 1
    for number in range(count):
        case.after.s[32 + number] = value >> 32 * number & M32
    target = "s32" if count == 1 else f"s[32:{31 + count}]"
    case.text = f"{opcode} {target}, {'s[4:7]' if buffer else 's[2:3]'}, {shown}"
    return case


INTEGERS = {
    "swap_b": "swap", "cmpswap_b": "cmpswap", "add_u": "add", "sub_u": "sub", "min_i": "smin", "min_u": "umin",
    "max_i": "smax", "max_u": "umax", "and_b": "and", "or_b": "or", "xor_b": "xor", "inc_u": "inc", "dec_u": "dec",
}  # fmt: skip
FLOATS = {
    "add_f32": ("add_f32", 4), "add_f64": ("add_f64", 8), "min_num_f32": ("min_f32", 4), "max_num_f32": ("max_f32", 4),
    "min_num_f64": ("min_f64", 8), "max_num_f64": ("max_f64", 8), "pk_add_f16": ("pk_add_f16", 4),
    "pk_add_bf16": ("pk_add_bf16", 4), "cond_sub_u32": ("cond_sub", 4), "sub_clamp_u32": ("sub_clamp", 4),
}  # fmt: skip


def _listed() -> dict[str, Draw]:
    found: dict[str, Draw] = {}
    for prefix in ("global", "flat", "buffer", "scratch"):
        load = _outside if prefix == "buffer" else _load
        for name, width in LOADS.items():
            found[f"{prefix}_load_{name}"] = partial(load, f"{prefix}_load_{name}", width)
        for name, width in STORES.items():
            found[f"{prefix}_store_{name}"] = partial(_store, f"{prefix}_store_{name}", width)
    for prefix in ("global", "flat", "buffer"):
        for name, verb in INTEGERS.items():
            for bits in (32, 64):
                opcode = f"{prefix}_atomic_{name}{bits}"
                found[opcode] = partial(_atomic, opcode, verb, bits // 8)
        for name, (verb, size) in FLOATS.items():
            found[f"{prefix}_atomic_{name}"] = partial(_atomic, f"{prefix}_atomic_{name}", verb, size)
    for name in TRANSPOSED:
        found[f"global_load_{name}"] = partial(_transposing, name)
    for size in (1, 4, 8, 16):
        for opcode in ("global_load_async_to_lds", "global_store_async_from_lds"):
            found[f"{opcode}_b{8 * size}"] = partial(_copy, f"{opcode}_b{8 * size}", size)
    for words in (1, 2, 3, 4, 8, 16):
        for opcode in (f"s_load_b{32 * words}", f"s_buffer_load_b{32 * words}"):
            found[opcode] = partial(_scalar_load, opcode, Width(4 * words))
    for name in ("u8", "i8", "u16", "i16"):
        for opcode in (f"s_load_{name}", f"s_buffer_load_{name}"):
            found[opcode] = partial(_scalar_load, opcode, LOADS[name])
    return found


DRAWS: dict[str, Draw] = _listed()
"""By opcode, what draws a case of it."""
