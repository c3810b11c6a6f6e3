"""Instructions and registers at random: takes a seed, gives assembly texts of an opcode and contents of registers."""

from __future__ import annotations

import struct
from random import Random

from tests.isa.plain.functions import Spec
from tests.isa.plain.machine import FUNCTIONS, LANES, ON_ITSELF, PACKED, WIDTHS

FLOATS = ("0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0")
_EDGES = {
    "f16": (0, 1, 0x3FF, 0x400, 0x3C00, 0x3C01, 0x3BFF, 0x7BFF, 0x7C00, 0x7E00, 0x7D01, 0x3800, 0x4248, 0x0200),
    "bf16": (0, 1, 0x7F, 0x80, 0x3F80, 0x7F7F, 0x7F80, 0x7FC0, 0x7F81),
    "f32": (0, 1, 0x7F_FFFF, 0x80_0000, 0x3F80_0000, 0x3F80_0001, 0x3F7F_FFFF, 0x7F7F_FFFF, 0x7F80_0000, 0x7FC0_0000,
            0x7F80_0001, 0x4F00_0000, 0x4F80_0000, 0x4EFF_FFFF, 0x3F00_0000, 0x3FC0_0000, 0x4020_0000, 0x477F_F000,
            0x4380_0000, 0x3300_0000, 0x437F_8000),
    "f64": (0, 1, (1 << 52) - 1, 1 << 52, 0x3FF0 << 48, (0x3FF0 << 48) + 1, 0x7FEF_FFFF_FFFF_FFFF, 0x7FF0 << 48,
            0x7FF8 << 48, (0x7FF0 << 48) + 1, 0x41E0 << 48, 0x41EF_FFFF_FFE0_0000, 0x3FE0 << 48, 0x47EF_FFFF_E000_0000),
    "u16": (0, 1, 0x7FFF, 0x8000, 0xFFFF, 15, 16, 255, 256),
    "u32": (0, 1, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, 31, 32, 0xFF, 0xFFFF, 0xFF_FFFF, 0x80_0000, 0x0C0D_0908),
    "u64": (0, 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 63, 64, 0xFFFF_FFFF),
}  # fmt: skip


def drawn_bits(random: Random, kind: str) -> int:
    """The bits of one value: an edge, a number of everyday size, or anything."""
    width = WIDTHS[kind]
    edges = _EDGES[kind if kind in _EDGES else f"u{width}"]
    choice = random.random()
    if choice < 0.3:
        return random.choice(edges) | (
            random.getrandbits(1) << width - 1 if kind in {"f16", "bf16", "f32", "f64"} else 0
        )
    if choice < 0.6 and kind in {"f16", "f32", "f64"}:
        form = {"f16": "<e", "f32": "<f", "f64": "<d"}[kind]
        size = random.choice((1.0, 10.0, 300.0, 1e-3, 6e4))
        return int.from_bytes(struct.pack(form, random.uniform(-size, size)), "little")
    return random.getrandbits(width) >> (random.randrange(width) if choice < 0.75 else 0)


def drawn_rows(random: Random, kind: str) -> list[list[int]]:
    """One register's contents per lane, or two registers' for 64 bits; 16 bits fill both halves."""
    if WIDTHS[kind] == 64:
        values = [drawn_bits(random, kind) for _ in LANES]
        return [[value & 0xFFFF_FFFF for value in values], [value >> 32 for value in values]]
    if WIDTHS[kind] == 16:
        return [[drawn_bits(random, kind) | drawn_bits(random, kind) << 16 for _ in LANES]]
    return [[drawn_bits(random, kind) for _ in LANES]]


def vector(kind: str, row: int) -> str:
    return f"v[{row}:{row + 1}]" if WIDTHS[kind] == 64 else f"v{row}"


def scalar(kind: str, row: int) -> str:
    return f"s[{row}:{row + 1}]" if WIDTHS[kind] == 64 else f"s{row}"


def spec_of(name: str) -> Spec:
    """The types of an opcode that computes a function."""
    return FUNCTIONS[ON_ITSELF.get(name, name)]


def drawn_text(random: Random, name: str) -> str:
    """One instruction of an opcode that computes a function per lane, in one of its encodings."""
    if name in PACKED:
        return _packed_text(random, name)
    spec = spec_of(name)
    kinds = spec.sources[:-1] if name in ON_ITSELF else spec.sources
    target = vector(spec.result, 8 if random.random() < 0.8 else 0)
    short = spec.encodings in "12" or name in ON_ITSELF
    encoding = random.choice(("e32", "e32", "e64", "e64", "dpp", "sdwa")) if short else ""
    if encoding == "dpp":
        return f"{name}_dpp {', '.join((target, *_registers(random, kinds)))} {drawn_crossing(random)}"
    if encoding == "sdwa":
        return f"{name}_sdwa {target}, {_selected(random, spec, kinds)}"
    if encoding == "e32":
        rest = [vector(kind, 2 * place) for place, kind in enumerate(kinds)]
        rest[0] = _anything(random, kinds[0], rest[0], literal=True)
        return f"{name}_e32 {', '.join((target, *rest))}"
    modifiers = ""
    if random.random() < 0.2 and (spec.bounded or spec.result in {"f16", "f32", "f64"}):
        modifiers += " clamp"
    sources = _sources(random, kinds)
    if spec.halves and random.random() < 0.6:
        chosen = [random.getrandbits(1) if "v" in each else 0 for each in sources]
        modifiers = f" op_sel:[{','.join(map(str, (*chosen, random.getrandbits(1))))}]" + modifiers
    suffix = f"_{encoding}" if encoding else ""
    return f"{name}{suffix} {', '.join((target, *sources))}{modifiers}"


def _registers(random: Random, kinds: tuple[str, ...]) -> list[str]:
    return [_signed(random, vector(kind, 2 * place), kind) for place, kind in enumerate(kinds)]


def _signed(random: Random, text: str, kind: str) -> str:
    if kind not in {"f16", "f32", "f64"} or random.random() < 0.6:
        return text
    return random.choice((f"-{text}", f"|{text}|", f"-|{text}|"))


def _anything(random: Random, kind: str, register: str, *, literal: bool) -> str:
    """A register of lanes, a scalar one or a constant."""
    choice = random.random()
    if choice < 0.5:
        return register
    if choice < 0.7:
        return scalar(kind, 2 * random.randrange(4))
    if choice < 0.85 or not literal:
        floats = kind in {"f16", "f32", "f64", "u32"} and random.random() < 0.5
        return random.choice(FLOATS) if floats else str(random.randrange(-16, 65))
    return hex(random.getrandbits(16 if WIDTHS[kind] == 16 else 32) | 0x4100)


def _sources(random: Random, kinds: tuple[str, ...]) -> list[str]:
    """Sources of a long encoding: at most one scalar register, no literal."""
    texts, scalars = [], 0
    for place, kind in enumerate(kinds):
        text = _anything(random, kind, vector(kind, 2 * place), literal=False)
        if text.startswith("s"):
            text = vector(kind, 2 * place) if scalars else text
            scalars = 1
        texts.append(_signed(random, text, kind) if text[0] in "vs" else text)
    return texts


def drawn_crossing(random: Random) -> str:
    """The modifiers of a _dpp instruction."""
    form = random.choice((
        f"quad_perm:[{','.join(str(random.randrange(4)) for _ in range(4))}]", f"row_shl:{random.randrange(1, 16)}",
        f"row_shr:{random.randrange(1, 16)}", f"row_ror:{random.randrange(1, 16)}", "wave_shl:1", "wave_rol:1",
        "wave_shr:1", "wave_ror:1", "row_mirror", "row_half_mirror", "row_bcast:15", "row_bcast:31",
        f"row_newbcast:{random.randrange(16)}", f"row_newbcast:{random.randrange(16)}",
    ))  # fmt: skip
    masks = (15, 15) if random.random() < 0.6 else (random.randrange(16), random.randrange(16))
    bound = random.choice(("", " bound_ctrl:1"))
    return f"{form} row_mask:{masks[0]:#x} bank_mask:{masks[1]:#x}{bound}"


PARTS = ("BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD")


def _selected(random: Random, spec: Spec, kinds: tuple[str, ...]) -> str:
    texts: list[str] = []
    selections: list[str] = []
    for place, kind in enumerate(kinds):
        part = random.choice(PARTS)
        text = vector(kind, 2 * place)
        if kind in {"f16", "f32"}:
            part = random.choice(("WORD_0", "WORD_1") if kind == "f16" else ("DWORD",))
            text = _signed(random, text, kind)
        elif random.random() < 0.3:
            text = f"sext({text})"
        if random.random() < 0.1 and not any(each.startswith("s") for each in texts):
            text = "s2"
        texts.append(text)
        selections.append(f"src{place}_sel:{part}")
    where = random.choice(PARTS)
    unused = random.choice(("UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"))
    if spec.result in {"f16", "f32"}:  # of a NaN only that it is one is known, so that its bits aren't taken apart
        where = random.choice(("WORD_0", "WORD_1", "DWORD")) if spec.result == "f16" else "DWORD"
        unused = random.choice(("UNUSED_PAD", "UNUSED_PRESERVE"))
    clamp = " clamp" if spec.result in {"f16", "f32"} and random.random() < 0.2 else ""
    return f"{', '.join(texts)}{clamp} dst_sel:{where} dst_unused:{unused} {' '.join(selections)}"


def _packed_text(random: Random, name: str) -> str:
    spec = PACKED[name]
    count = len(spec.sources) - ("fmac" in name)
    texts = [_anything(random, "u32", f"v{2 * place}", literal=False) for place in range(count)]
    used = False
    for place, text in enumerate(texts):
        if text.startswith("s"):
            texts[place] = f"v{2 * place}" if used else text
            used = True
        if "." in text and spec.result not in {"f16", "f32"}:
            texts[place] = "3"
    if "fmac" in name:
        return f"{name}_e32 v8, v0, v2"
    return f"{name} v8, {', '.join(texts)}{drawn_choices(random, count, signs=spec.result in {'f16', 'f32'})}" + (
        " clamp" if random.random() < 0.2 and (spec.bounded or spec.result == "f16") else ""
    )


def drawn_choices(random: Random, count: int, *, signs: bool) -> str:
    """op_sel, op_sel_hi and signs of a packed instruction."""
    out = ""
    for name, likely in (("op_sel", 0.4), ("op_sel_hi", 0.4), ("neg_lo", 0.3 * signs), ("neg_hi", 0.3 * signs)):
        if random.random() < likely:
            out += f" {name}:[{','.join(str(random.getrandbits(1)) for _ in range(count))}]"
    return out
