"""Vector instructions of gfx1250 at random: assembly texts of an opcode, and contents of the registers it reads.

Texts are drawn freely; the assembler refuses some, and then a plainer one is drawn. Sources are v0, v2, v4 and so on,
the target is v8 as a rule.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from tests.isa.plain import numbers as n
from tests.isa.plain.draw import FLOATS, drawn_bits
from tests.isa.plain.machine import WIDTHS
from tests.isa.plain_gfx12.conversions import SCALED
from tests.isa.plain_gfx12.functions import FUNCTIONS, ON_ITSELF, PACKED
from tests.isa.plain_gfx12.machine import LANES, M32
from tests.isa.plain_gfx12.vector import ORDERS, spec_of

KINDS = ("f16", "f32", "f64", "i16", "u16", "i32", "u32", "i64", "u64")
_WHOLE = ("lt", "eq", "le", "gt", "ne", "ge")
COMPARES = {
    f"v_cmp{x}_{order}_{kind}": kind
    for x in ("", "x")
    for kind in KINDS
    for order in (*ORDERS, "class")
    if (order != "ne" if kind[0] == "f" else order in _WHOLE)
}
Kinds = dict[int, str]  # by register number, the type of what it holds
MOST_PLAIN = 3  # the round from which on texts are as plain as can be


class Drawn(NamedTuple):
    """A text, and the types of the registers that it reads."""

    text: str
    kinds: Kinds


def drawn_rows(random: Random, kind: str) -> list[list[int]]:
    """One register's contents per lane, or two registers' for 64 bits; 16 bits fill both halves."""
    values = [drawn_bits(random, kind) for _ in LANES]
    if WIDTHS[kind] == 64:
        return [[value & M32 for value in values], [value >> 32 for value in values]]
    if WIDTHS[kind] == 16:
        return [[value | drawn_bits(random, kind) << 16 for value in values]]
    return [values]


def vector(random: Random, kind: str, row: int) -> str:
    if WIDTHS[kind] == 16:
        return f"v{row}.{random.choice('lh')}"
    return f"v[{row}:{row + 1}]" if WIDTHS[kind] == 64 else f"v{row}"


def scalar(kind: str, row: int) -> str:
    return f"s[{row}:{row + 1}]" if WIDTHS[kind] == 64 else f"s{row}"


def signed(random: Random, text: str, kind: str) -> str:
    if kind not in n.FORMATS or text[0] not in "vs" or random.random() < 0.6:
        return text
    return random.choice((f"-{text}", f"|{text}|", f"-|{text}|"))


def drawn_constant(random: Random, kind: str, *, literal: bool) -> str:
    if literal and random.random() < 0.5:
        if kind in {"f64", "u64", "i64"}:
            return hex(random.getrandbits(64) | 1 << 62)
        return hex(random.getrandbits(15 if WIDTHS[kind] == 16 else 32) | 0x4100)
    floats = (kind in n.FORMATS or kind == "u32") and random.random() < 0.5
    return random.choice(FLOATS) if floats else str(random.randrange(-16, 65))


def anything(random: Random, kind: str, row: int, *, literal: bool = True) -> str:
    """A register of lanes, a scalar one or a constant."""
    choice = random.random()
    if choice < 0.55:
        return vector(random, kind, row)
    if choice < 0.75:
        return scalar(kind, 2 * random.randrange(4))
    return drawn_constant(random, kind, literal=literal)


def crossing(random: Random) -> str:
    """The modifiers of a _dpp instruction."""
    if random.random() < 0.25:
        order = ",".join(str(random.randrange(8)) for _ in range(8))
        return f"dpp8:[{order}]{random.choice(('', ' fi:1'))}"
    form = random.choice((
        f"quad_perm:[{','.join(str(random.randrange(4)) for _ in range(4))}]", f"row_shl:{random.randrange(1, 16)}",
        f"row_shr:{random.randrange(1, 16)}", f"row_ror:{random.randrange(1, 16)}", "row_mirror", "row_half_mirror",
        f"row_share:{random.randrange(16)}", f"row_xmask:{random.randrange(16)}",
    ))  # fmt: skip
    masks = (15, 15) if random.random() < 0.6 else (random.randrange(16), random.randrange(16))
    bound, fetch = random.choice(("", " bound_ctrl:1")), random.choice(("", "", " fi:1"))
    return f"{form} row_mask:{masks[0]:#x} bank_mask:{masks[1]:#x}{bound}{fetch}"


def drawn_text(random: Random, name: str, attempt: int) -> Drawn:
    """One instruction of an opcode; later attempts are plainer."""
    if name in SPECIAL:
        return SPECIAL[name](random, name, attempt)
    if name in COMPARES:
        return _compare(random, name, attempt)
    if name in PACKED or name == "v_pk_fmac_f16":
        return _packed(random, name, attempt)
    return _function(random, name, attempt)


def _function(random: Random, name: str, attempt: int) -> Drawn:
    spec = spec_of(name)
    kinds = spec.sources[:-1] if name in ON_ITSELF else spec.sources
    held = {2 * place: kind for place, kind in enumerate(spec.sources)}
    target = vector(random, spec.result, 8 if random.random() < 0.8 else 0)
    if name in ON_ITSELF:
        target = vector(random, spec.result, 8)
        held[8] = spec.result
    short = spec.encodings in "12" or name in ON_ITSELF
    encoding = random.choice(("_e32", "_e32", "_e64", "_dpp", "_e64_dpp") if short else ("", "", "", "_e64_dpp"))
    if attempt >= MOST_PLAIN:
        sources = [vector(random, kind, 2 * place) for place, kind in enumerate(kinds)]
        return Drawn(f"{name} {', '.join((target, *sources))}", held)
    if "dpp" in encoding:
        sources = [vector(random, kind, 2 * place) for place, kind in enumerate(kinds)]
        sources = [signed(random, each, kind) for each, kind in zip(sources, kinds, strict=True)]
        return Drawn(f"{name}{encoding} {', '.join((target, *sources))} {crossing(random)}", held)
    if encoding == "_e32":
        sources = [vector(random, kind, 2 * place) for place, kind in enumerate(kinds)]
        sources[0] = anything(random, kinds[0], 0)
        return Drawn(f"{name}_e32 {', '.join((target, *sources))}", held)
    sources = _sources(random, kinds)
    clamps = spec.bounded or spec.result in {"f16", "f32", "f64"}
    clamp = " clamp" if clamps and random.random() < 0.2 else ""
    return Drawn(f"{name}{encoding} {', '.join((target, *sources))}{clamp}", held)


def _sources(random: Random, kinds: tuple[str, ...]) -> list[str]:
    """Sources of a long encoding, with signs."""
    texts = [anything(random, kind, 2 * place, literal=place == 1) for place, kind in enumerate(kinds)]
    return [signed(random, text, kind) for text, kind in zip(texts, kinds, strict=True)]


def _compare(random: Random, name: str, attempt: int) -> Drawn:
    kind = COMPARES[name]
    second = ("u16" if kind == "f16" else "u32") if "_class_" in name else kind
    held = {0: kind, 2: second}
    exec_only = name.startswith("v_cmpx")
    if attempt >= MOST_PLAIN or random.random() < 0.4:
        first = vector(random, kind, 0) if attempt else anything(random, kind, 0)
        target = "" if exec_only else "vcc_lo, "
        return Drawn(f"{name}_e32 {target}{first}, {vector(random, second, 2)}", held)
    sources = [signed(random, vector(random, kind, 0), kind), anything(random, second, 2)]
    target = "" if exec_only else random.choice(("s6, ", "vcc_lo, ", "s9, "))
    return Drawn(f"{name}_e64 {target}{', '.join(sources)}", held)


def _packed(random: Random, name: str, attempt: int) -> Drawn:
    spec = PACKED.get(name) or PACKED["v_pk_fma_f16"]
    kinds = spec.sources[:2] if name == "v_pk_fmac_f16" else spec.sources
    held = {2 * place: kind for place, kind in enumerate(spec.sources)}
    if name == "v_pk_fmac_f16":
        return Drawn(f"{name} v8, v0, v2", held | {8: "f16"})
    texts = [f"v{2 * place}" for place in range(len(kinds))]
    if attempt < MOST_PLAIN:
        for place in range(len(kinds)):
            choice = random.random()
            if choice < 0.2:
                texts[place] = f"s{2 * random.randrange(4)}"
            elif choice < 0.35:
                floats = spec.result in n.FORMATS and random.random() < 0.5
                texts[place] = random.choice(FLOATS) if floats else str(random.randrange(-16, 65))
            elif choice < 0.4 and not any(each.startswith("0x") for each in texts):
                texts[place] = hex(random.getrandbits(32) | 1 << 30)
    more = choices(random, len(kinds), signs=spec.result in n.FORMATS) if attempt < MOST_PLAIN else ""
    clamp = " clamp" if random.random() < 0.2 and (spec.bounded or spec.result == "f16") and not attempt else ""
    return Drawn(f"{name} v8, {', '.join(texts)}{more}{clamp}", held)


def choices(random: Random, count: int, *, signs: bool) -> str:
    """op_sel, op_sel_hi and signs of a packed instruction."""
    out = ""
    for name, likely in (("op_sel", 0.4), ("op_sel_hi", 0.4), ("neg_lo", 0.3 * signs), ("neg_hi", 0.3 * signs)):
        if random.random() < likely:
            out += f" {name}:[{','.join(str(random.getrandbits(1)) for _ in range(count))}]"
    return out


# Opcodes that are no function per lane.

Draw = Callable[[Random, str, int], Drawn]


def _fixed(*forms: str, **kinds: str) -> Draw:
    """One of some texts, with the types of registers as v0="f32"; `~v0` may have a sign."""
    held = {int(name[1:]): kind for name, kind in kinds.items()}

    def draw(random: Random, name: str, attempt: int) -> Drawn:
        text = random.choice(forms) if attempt < MOST_PLAIN else forms[0]
        while "~" in text:
            start, _, rest = text.partition("~")
            operand, comma, end = rest.partition(",")
            text = start + random.choice((operand, operand, f"-{operand}", f"|{operand}|")) + comma + end
        while "#" in text:
            text = text.replace("#", random.choice("lh"), 1)
        if "%" in text:
            text = text.replace("%", crossing(random))
        encoding, _, rest = text.partition(" ") if text.startswith("_") else ("", "", text)
        return Drawn(f"{name}{encoding} {rest}", held)

    return draw


def _mixed(random: Random, name: str, attempt: int) -> Drawn:
    short = "bf16" if "bf16" in name else "f16"
    halved = [random.getrandbits(1) for _ in range(3)]
    high = [random.getrandbits(1) & each for each in halved]
    sources = [random.choice((f"v{2 * i}", f"v{2 * i}", f"-v{2 * i}", f"|v{2 * i}|")) for i in range(3)]
    if attempt < MOST_PLAIN and random.random() < 0.3:
        sources[random.randrange(3)] = random.choice(("s2", "1.0", "-2.0"))
    lists = [",".join(map(str, each)) for each in (high, halved)]
    # With a short result: whether it is clamped before it is rounded, no public document says.
    clamp = random.choice(("", "", " clamp")) if not attempt and "_f32" in name else ""
    text = f"{name} v8, {', '.join(sources)} op_sel:[{lists[0]}] op_sel_hi:[{lists[1]}]{clamp}"
    return Drawn(text, {2 * i: short if each else "f32" for i, each in enumerate(halved)})


def _floats_in_pairs(random: Random, name: str, attempt: int) -> Drawn:
    count = 3 if "fma" in name else 2
    sources = [f"v[{2 * i}:{2 * i + 1}]" for i in range(count)]
    if attempt < MOST_PLAIN and random.random() < 0.4:
        sources[random.randrange(count)] = random.choice(("s[2:3]", "s[4:5]", "1.0", "-2.0", "0"))
    more = choices(random, count, signs=True) if attempt < 2 else ""
    clamp = random.choice(("", "", " clamp")) if not attempt else ""
    return Drawn(f"{name} v[8:9], {', '.join(sources)}{more}{clamp}", dict.fromkeys(range(6), "f32"))


def _dot(random: Random, name: str, attempt: int) -> Drawn:
    signs = f" neg_lo:[{random.getrandbits(1)},{random.getrandbits(1)},0]" if attempt < MOST_PLAIN else ""
    return Drawn(f"{name} v8, v0, {random.choice(('v2', 's2'))}, v4{signs}{random.choice(('', ' clamp'))}", {})


def _bits(random: Random, name: str, attempt: int) -> Drawn:
    kind = "u16" if name.endswith("b16") else "u32"
    sources = [anything(random, kind, 2 * i, literal=i == 1) for i in range(3)]
    if attempt >= MOST_PLAIN:
        sources = [vector(random, kind, 2 * i) for i in range(3)]
    crosses = attempt < MOST_PLAIN and random.random() < 0.2
    if crosses:
        sources = [vector(random, kind, 2 * i) for i in range(3)]
    more = f" {crossing(random)}" if crosses else ""
    text = f"{name}{'_e64_dpp' * crosses} {vector(random, kind, 8)}, {', '.join(sources)}"
    return Drawn(f"{text} bitop3:{random.randrange(1, 256):#x}{more}", {})


def _division(kind: str, part: str) -> Draw:
    def draw(random: Random, name: str, attempt: int) -> Drawn:
        del attempt
        names = [vector(random, kind, row) for row in (8, 0, 2, 4)]
        held = {0: kind, 2: kind, 4: kind}
        if part == "scale":
            parts = (names[0], random.choice(("vcc_lo", "s6")), random.choice(names[2:]), *names[2:])
            return Drawn(f"{name} {', '.join(parts)}", held)
        sign = random.choice(("", "", "-"))
        return Drawn(f"{name} {names[0]}, {sign}{names[1]}, {names[2]}, {sign}{names[3]}", held)

    return draw


def _scaled(random: Random, name: str, attempt: int) -> Drawn:
    del attempt
    words = name.split("_")
    many = next(int(word[2:]) for word in words if word.startswith("pk"))
    to, of = words[-2:]
    widths = {"fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6, "fp4": 4, "f32": 32, "f16": 16, "bf16": 16}
    counts = [many * widths[each] // 32 for each in (to, of)]
    target = f"v[40:{39 + counts[0]}]" if counts[0] > 1 else "v40"
    noise = ", v36" if "_sr_" in name else ""
    return Drawn(f"{name} {target}, v[0:{counts[1] - 1}]{noise}, v38", dict.fromkeys(range(counts[1]), of))


SPECIAL: dict[str, Draw] = {
    **{f"v_{name}_co_u32": _fixed("v8, s6, v0, v2", "v8, vcc_lo, v0, 63", "v8, null, v0, s3", v0="u32", v2="u32")
       for name in ("add", "sub", "subrev")},
    **{f"v_{name}_co_ci_u32": _fixed(
        "_e64 v8, s6, v0, v2, s10", "_e32 v8, vcc_lo, v0, v2, vcc_lo", "_e32 v8, vcc_lo, s3, v2, vcc_lo",
        "_dpp v8, vcc_lo, v0, v2, vcc_lo row_shr:3 row_mask:0xf bank_mask:0xf", v0="u32", v2="u32")
       for name in ("add", "sub", "subrev")},
    "v_mad_co_u64_u32": _fixed("v[8:9], s6, v0, v2, v[4:5]", "v[8:9], vcc_lo, s2, v2, 7", v0="u32", v2="u32", v4="u64"),
    "v_mad_co_i64_i32": _fixed("v[8:9], s6, v0, v2, v[4:5]", "v[8:9], null, v0, v2, -3", v0="i32", v2="i32", v4="i64"),
    "v_cndmask_b32": _fixed(
        "_e64 v8, ~v0, ~v2, s10", "_e32 v8, v0, v2, vcc_lo", "_e32 v8, 0x12345, v2, vcc_lo", "_e64 v8, s2, 1.0, vcc_lo",
        "_dpp v8, v0, v2, vcc_lo %", "_e64_dpp v8, v0, v2, s10 %", v0="f32", v2="f32"),
    "v_cndmask_b16": _fixed("v8.#, v0.#, v2.#, s10", "v8.#, s3, 7, vcc_lo", "v8.#, ~v0.#, ~v2.#, s10"),
    **{f"v_pk_{name}_f32": _floats_in_pairs for name in ("add", "mul", "fma")},
    **dict.fromkeys(
        ("v_fma_mix_f32", "v_fma_mixlo_f16", "v_fma_mixhi_f16", "v_fma_mix_f32_bf16", "v_fma_mixlo_bf16",
         "v_fma_mixhi_bf16"), _mixed),
    "v_dot4_i32_iu8": _dot, "v_dot8_i32_iu4": _dot,
    "v_bitop3_b32": _bits, "v_bitop3_b16": _bits,
    **{f"v_cvt_pk_{name}_f32": _fixed("v8, v0, v2", "v8, ~v0, ~v2", "v8, s2, 1.0", "_e64_dpp v8, v0, v2 %",
                                           v0="f32", v2="f32")
       for name in ("f16", "bf16", "rtz_f16")},
    "v_cvt_pk_rtz_f16_f32": _fixed("_e64 v8, v0, v2", "_e64 v8, ~v0, ~v2", "_e32 v8, s2, v2", v0="f32", v2="f32"),
    "v_readlane_b32": _fixed("s6, v0, s2", "s6, v0, m0", "s6, v0, 17", "s6, v0, 63"),
    "v_readfirstlane_b32": _fixed("s6, v0"),
    "v_writelane_b32": _fixed("v8, s2, 17", "v8, -3, s4", "v8, s2, s4", "v8, m0, s3"),
    "v_swap_b32": _fixed("v0, v2"), "v_swap_b16": _fixed("v0.#, v2.#", "v0.l, v0.h"),
    "v_permlane16_swap_b32": _fixed("v0, v2"),
    **{f"v_permlane{x}_b32": _fixed(*(f"v8, v0, {pair}{more}" for pair in ("s2, s3", "s4, 0x12345678", "-1, 17")
                                      for more in ("", " op_sel:[1,0]", " op_sel:[0,1]", " op_sel:[1,1]")))
       for x in ("16", "x16")},
    **{f"v_permlane{x}_var_b32": _fixed(*(f"v8, v0, v2{more}" for more in ("", " op_sel:[1,0]", " op_sel:[0,1]")))
       for x in ("16", "x16")},
    "v_mbcnt_lo_u32_b32": _fixed("v8, v0, v2", "v8, -1, 0", "v8, s2, v2"),
    "v_mbcnt_hi_u32_b32": _fixed("v8, v0, v2", "v8, -1, 0", "v8, s2, v2"),
    **{f"v_s_{name}_{t}": _fixed("s6, s2", "s6, ~s3", "s6, 2.0")
       for name in ("exp", "log", "rcp", "rsq", "sqrt") for t in ("f16", "f32")},
    **{f"v_cvt_pk_{name}_f32": _fixed("v8.#, v0, v2", "v8.#, ~v0, ~v2", "v8.#, s2, v2", v0="f32", v2="f32")
       for name in ("fp8", "bf8")},
    **{f"v_cvt_pk_{name}_f16": _fixed("v8.#, v0", "v8.#, s3", v0="f16") for name in ("fp8", "bf8")},
    **{f"v_cvt_sr_{name}_f32": _fixed(*(f"v8, v0, v2{more}" for more in (" byte_sel:1", "", " byte_sel:3")), v0="f32")
       for name in ("fp8", "bf8")},
    **{f"v_cvt_sr_{name}_f16": _fixed(*(f"v8, v0.#, v2{more}" for more in (" byte_sel:2", "", " byte_sel:3")), v0="f16")
       for name in ("fp8", "bf8")},
    **{f"v_cvt_f32_{name}": _fixed("_e64 v8, v0 byte_sel:2", "_e32 v8, v0", "_e64 v8, v0 byte_sel:3", "_e32 v8, s3",
                                    "_dpp v8, v0 %")
       for name in ("fp8", "bf8")},
    **{f"v_cvt_f16_{name}": _fixed("_e64 v8.#, v0 byte_sel:2", "_e32 v8.#, v0", "_e64 v8.#, v0 byte_sel:1")
       for name in ("fp8", "bf8")},
    **{f"v_cvt_pk_f32_{name}": _fixed("v[8:9], v0.#", "v[8:9], s3") for name in ("fp8", "bf8")},
    **{f"v_cvt_pk_f16_{name}": _fixed("v8, v0.#", "v8, s3") for name in ("fp8", "bf8")},
    **{f"v_div_{part}_{kind}": _division(kind, part)
       for part in ("scale", "fmas", "fixup") for kind in ("f16", "f32", "f64")
       if kind != "f16" or part == "fixup"},
    **dict.fromkeys(SCALED, _scaled),
}  # fmt: skip


def _with_constant(t: str, *, last: bool) -> Draw:
    constant = {"f16": "0x4123", "f32": "0xc1234567", "f64": "0x4012345678123456"}[t]

    def draw(random: Random, name: str, attempt: int) -> Drawn:
        first = anything(random, t, 0, literal=False) if attempt < MOST_PLAIN else vector(random, t, 0)
        second = vector(random, t, 2)
        rest = (second, constant) if last else (constant, second)
        return Drawn(f"{name} {vector(random, t, 8)}, {first}, {', '.join(rest)}", {0: t, 2: t})

    return draw


for _t in ("f16", "f32", "f64"):
    SPECIAL[f"v_fmamk_{_t}"] = _with_constant(_t, last=False)
    SPECIAL[f"v_fmaak_{_t}"] = _with_constant(_t, last=True)

OPCODES = (*FUNCTIONS, *ON_ITSELF, *PACKED, "v_pk_fmac_f16", *SPECIAL, *COMPARES)
"""Vector opcodes that have a text and an oracle here."""


# Pairs.

_LEFT = {
    "v_dual_fmac_f32": 2, "v_dual_mul_f32": 2, "v_dual_add_f32": 2, "v_dual_sub_f32": 2, "v_dual_subrev_f32": 2,
    "v_dual_mul_dx9_zero_f32": 2, "v_dual_mov_b32": 1, "v_dual_cndmask_b32": 2, "v_dual_max_num_f32": 2,
    "v_dual_min_num_f32": 2, "v_dual_fmaak_f32": 2, "v_dual_fmamk_f32": 2, "v_dual_fma_f32": 3,
    "v_dual_add_nc_u32": 2, "v_dual_lshlrev_b32": 2,
}  # fmt: skip
_RIGHT = {
    **_LEFT, "v_dual_bitop2_b32": 2, "v_dual_lshrrev_b32": 2, "v_dual_ashrrev_i32": 2, "v_dual_sub_nc_u32": 2,
    "v_dual_max_i32": 2, "v_dual_min_i32": 2,
}  # fmt: skip


def _fits(left: str, right: str) -> bool:
    """The encoding with a constant has neither three sources, nor integers on the left but for a move."""
    both = left + right
    if "fmaak" not in both and "fmamk" not in both:
        return True
    return not ("v_dual_fma_f32" in both or "bitop2" in both or "add_nc" in left or "lshlrev" in left)


PAIRED = tuple(f"{left}::{right}" for left in _LEFT for right in _RIGHT if _fits(left, right))


def drawn_pair(random: Random, name: str, attempt: int) -> Drawn:
    """Two instructions in one, on registers of which both read some that the other writes."""
    left, right = name.split("::")
    targets = random.choice(((8, 9), (0, 3), (2, 1), (6, 5)))
    halves = [
        _half(random, opcode, target, first, attempt)
        for opcode, target, first in ((left, targets[0], 0), (right, targets[1], 1))
    ]
    if "fmaak" in name or "fmamk" in name:  # its encoding has no place for a mask, and means VCC
        halves = [half.replace(", vcc_lo", "") for half in halves]
    kind = "f32" if "_f32" in name else "u32"
    return Drawn(" :: ".join(halves), dict.fromkeys(range(12), kind))


def _half(random: Random, opcode: str, target: int, first: int, attempt: int) -> str:
    floats = opcode.endswith("f32")
    sources = [f"v{2 * place + first}" for place in range(_RIGHT[opcode])]
    if attempt < MOST_PLAIN and random.random() < 0.3:
        sources[0] = random.choice(("s4", "1.0" if floats else "5", "v6" if first == 0 else "v7", "0x41234567"))
    if "fmamk" in opcode:
        sources.insert(1, "0x41234567")
    if "fmaak" in opcode:
        sources.append("0x41234567")
    if "cndmask" in opcode:
        sources.append("vcc_lo")
    more = f" bitop3:{random.choice((0x14, 0x54, 0x40, 0x50))}" if "bitop2" in opcode else ""
    return f"{opcode} v{target}, {', '.join(sources)}{more}"
