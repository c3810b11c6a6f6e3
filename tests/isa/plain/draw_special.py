"""Instructions of opcodes that are no function per lane, at random: takes an opcode, gives its text and its types."""

from __future__ import annotations

from random import Random

from tests.isa.plain.draw import PARTS, drawn_choices, drawn_crossing, scalar, vector
from tests.isa.plain.special import ORDERS

KINDS = ("f16", "f32", "f64", "i16", "u16", "i32", "u32", "i64", "u64")
COMPARES = {
    f"v_cmp{x}_{order}_{kind}": kind
    for x in ("", "x")
    for kind in KINDS
    for order in (*ORDERS, "class")
    if (kind[0] == "f" and order not in {"ne", "t"})
    or (kind[0] != "f" and order in {"f", "lt", "eq", "le", "gt", "ne", "ge", "t"})
}
_CARRIES = ("v_add_co_u32", "v_sub_co_u32", "v_subrev_co_u32")
_CARRIED = ("v_addc_co_u32", "v_subb_co_u32", "v_subbrev_co_u32")
_SMALL = {
    "v_cvt_scalef32_pk_{n}_f32": "v8, v0, v2, {s}|0001", "v_cvt_scalef32_sr_{n}_f32": "v8, v0, v6, {s}|0011",
    "v_cvt_scalef32_pk_f32_{n}": "v[8:9], v4, {s}|1_0", "v_cvt_scalef32_f32_{n}": "v8, v4, {s}|11_0",
    "v_cvt_scalef32_pk_{n}_f16": "v8, v16, {s}|0_1", "v_cvt_scalef32_pk_{n}_bf16": "v8, v17, {s}|0_1",
    "v_cvt_scalef32_sr_{n}_f16": "v8, v16, v6, {s}|0011", "v_cvt_scalef32_sr_{n}_bf16": "v8, v17, v6, {s}|0011",
    "v_cvt_scalef32_pk_f16_{n}": "v8, v4, {s}|1_0", "v_cvt_scalef32_pk_bf16_{n}": "v8, v4, {s}|1_0",
    "v_cvt_scalef32_f16_{n}": "v8, v4, {s}|11_1",
}  # fmt: skip
_FOUR = {
    "v_cvt_scalef32_pk_fp4_f32": "v8, v0, v2, {s}|0011", "v_cvt_scalef32_sr_pk_fp4_f32": "v8, v[0:1], v6, {s}|0011",
    "v_cvt_scalef32_pk_f32_fp4": "v[8:9], v4, {s}|11_0", "v_cvt_scalef32_pk_fp4_f16": "v8, v16, {s}|0011",
    "v_cvt_scalef32_pk_fp4_bf16": "v8, v17, {s}|0011", "v_cvt_scalef32_sr_pk_fp4_f16": "v8, v16, v6, {s}|0011",
    "v_cvt_scalef32_sr_pk_fp4_bf16": "v8, v17, v6, {s}|0011", "v_cvt_scalef32_pk_f16_fp4": "v8, v4, {s}|11_0",
    "v_cvt_scalef32_pk_bf16_fp4": "v8, v4, {s}|11_0",
}  # fmt: skip
_SIX = {
    "v_cvt_scalef32_2xpk16_{n}_f32": "v[36:41], v[0:15], v[16:31], {s}|",
    "v_cvt_scalef32_sr_pk32_{n}_f32": "v[36:41], v[0:31], v34, {s}|",
    "v_cvt_scalef32_pk32_f32_{n}": "v[0:31], v[36:41], {s}|",
    "v_cvt_scalef32_pk32_{n}_f16": "v[36:41], v[0:15], {s}|", "v_cvt_scalef32_pk32_{n}_bf16": "v[36:41], v[0:15], {s}|",
    "v_cvt_scalef32_sr_pk32_{n}_f16": "v[36:41], v[0:15], v34, {s}|",
    "v_cvt_scalef32_sr_pk32_{n}_bf16": "v[36:41], v[0:15], v34, {s}|",
    "v_cvt_scalef32_pk32_f16_{n}": "v[0:15], v[36:41], {s}|", "v_cvt_scalef32_pk32_bf16_{n}": "v[0:15], v[36:41], {s}|",
}  # fmt: skip
SCALED = {
    **{name.format(n=small): rest for name, rest in _SMALL.items() for small in ("fp8", "bf8")},
    **_FOUR,
    **{name.format(n=small): rest for name, rest in _SIX.items() for small in ("fp6", "bf6")},
}


def _four(random: Random) -> str:
    return ",".join(str(random.getrandbits(1)) for _ in range(4))


def special_text(random: Random, name: str) -> tuple[str, dict[int, str]]:
    """A text of the opcode, and the types of the registers that it reads, by their numbers."""
    if name in COMPARES:
        return _compare(random, name, COMPARES[name])
    if name in SCALED:
        return _scaled(random, name)
    sign = random.choice(("", "", "-"))
    made: dict[str, tuple[str, dict[int, str]]] = {
        "v_mad_u64_u32": ("v[8:9], s[6:7], v0, v2, v[4:5]", {0: "u32", 2: "u32", 4: "u64"}),
        "v_mad_i64_i32": ("v[8:9], vcc, v0, v2, v[4:5]", {0: "i32", 2: "i32", 4: "i64"}),
        "v_readfirstlane_b32": ("s6, v0", {0: "u32"}),
        "v_readlane_b32": (f"s6, v0, {random.choice(('s2', 'm0', '17', '63'))}", {0: "u32"}),
        "v_writelane_b32": (f"v8, {random.choice(('s2', '5', '-3'))}, {random.choice(('s2', '17'))}", {}),
        "v_swap_b32": ("v0, v2", {}),
        "v_permlane16_swap_b32": ("v0, v2", {}),
        "v_permlane32_swap_b32": ("v0, v2", {}),
        "v_mbcnt_lo_u32_b32": (f"v8, {random.choice(('s2', '-1', 'v0'))}, v2", {0: "u32"}),
        "v_mbcnt_hi_u32_b32": (f"v8, {random.choice(('s2', '-1', 'v0'))}, v2", {0: "u32"}),
        "v_bitop3_b32": (f"v8, v0, {random.choice(('v2', 's2'))}, v4 bitop3:{random.randrange(1, 256):#x}", {}),
        "v_bitop3_b16": (f"v8, v0, v2, v4 bitop3:{random.randrange(1, 256):#x} op_sel:[{_four(random)}]", {}),
        "v_pack_b32_f16": (f"v8, v0, v2 op_sel:[{random.getrandbits(1)},{random.getrandbits(1)},0]", {}),
        "v_pk_mov_b32": (f"v[8:9], v[0:1], v[2:3] op_sel:[{random.getrandbits(1)},{random.getrandbits(1)}]", {}),
        "v_cndmask_b32": _conditional(random),
        "v_fmamk_f32": (f"v8, {random.choice(('v0', '0.5', '-3'))}, 0x41234567, v2", {0: "f32", 2: "f32"}),
        "v_fmaak_f32": (f"v8, {random.choice(('v0', '0.5', '-3'))}, v2, 0x3f812345", {0: "f32", 2: "f32"}),
        **{
            f"v_div_scale_{kind}": (
                ", ".join(
                    (
                        vector(kind, 8),
                        random.choice(("vcc", "s[6:7]")),
                        vector(kind, random.choice((2, 4))),
                        vector(kind, 2),
                        vector(kind, 4),
                    )
                ),
                {2: kind, 4: kind},
            )
            for kind in ("f32", "f64")
        },
        **{
            f"v_div_{part}_{kind}": (
                f"{vector(kind, 8)}, {sign}{vector(kind, 0)}, {vector(kind, 2)}, {sign}{vector(kind, 4)}",
                {0: kind, 2: kind, 4: kind},
            )
            for part in ("fmas", "fixup", "fixup_legacy")
            for kind in ("f16", "f32", "f64")
        },
        **{f"v_cvt_pk_{kind}_f32": (f"v8, {sign}v0, v2", {0: "f32", 2: "f32"}) for kind in ("f16", "bf16")},
        "v_cvt_pkrtz_f16_f32": (f"v8, {sign}v0, v2", {0: "f32", 2: "f32"}),
        **{
            f"v_cvt_pk_{kind}_f32": (f"v8, v0, {sign}v2 op_sel:[0,0,{random.getrandbits(1)}]", {0: "f32", 2: "f32"})
            for kind in ("fp8", "bf8")
        },
        **{
            f"v_cvt_sr_{kind}_f32": (
                f"v8, {sign}v0, v2 op_sel:[0,0,{random.getrandbits(1)},{random.getrandbits(1)}]",
                {0: "f32"},
            )
            for kind in ("fp8", "bf8")
        },
        **{
            f"v_cvt_sr_{kind}_f32": (f"v8, v0, v2 op_sel:[0,0,{random.getrandbits(1)}]", {0: "f32"})
            for kind in ("f16", "bf16")
        },
        **{f"v_dot2_f32_{kind}": ("v8, v0, v2, v4", {0: kind, 2: kind, 4: "f32"}) for kind in ("f16", "bf16")},
        **{f"v_dot2c_f32_{kind}": ("v8, v0, v2", {0: kind, 2: kind, 8: "f32"}) for kind in ("f16", "bf16")},
    }
    for kind in ("fp8", "bf8"):
        made[f"v_cvt_f32_{kind}"] = (f"v8, v0 src0_sel:BYTE_{random.randrange(4)}", {})
        made[f"v_cvt_pk_f32_{kind}"] = (f"v[8:9], v0 src0_sel:WORD_{random.randrange(2)}", {})
    for each in ("add", "mul", "fma"):
        count = 3 if each == "fma" else 2
        sources = [
            random.choice((f"v[{2 * i}:{2 * i + 1}]", f"v[{2 * i}:{2 * i + 1}]", "s[2:3]")) for i in range(count)
        ]
        sources = [
            text if text[0] == "v" or "s[2:3]" not in sources[:i] else "v[0:1]" for i, text in enumerate(sources)
        ]
        rest = f"v[8:9], {', '.join(sources)}{drawn_choices(random, count, signs=True)}"
        made[f"v_pk_{each}_f32"] = rest + random.choice(("", "", " clamp")), dict.fromkeys(range(6), "f32")
    if name in {"v_fma_mix_f32", "v_fma_mixlo_f16", "v_fma_mixhi_f16"}:
        return _mixed(random, name)
    if name in _CARRIES or name in _CARRIED:
        return _carried(random, name)
    rest, kinds = made[name]
    sdwa = "_sdwa" if "src0_sel" in rest else "_e32" if "2c_f32" in name else ""
    if name == "v_cndmask_b32":
        return rest, kinds
    return f"{name}{sdwa} {rest}", kinds


SPECIALS = (
    "v_mad_u64_u32", "v_mad_i64_i32", "v_readfirstlane_b32", "v_readlane_b32", "v_writelane_b32", "v_swap_b32",
    "v_permlane16_swap_b32", "v_permlane32_swap_b32", "v_mbcnt_lo_u32_b32", "v_mbcnt_hi_u32_b32", "v_bitop3_b32",
    "v_bitop3_b16", "v_pack_b32_f16", "v_pk_mov_b32", "v_cndmask_b32", "v_div_scale_f32", "v_div_scale_f64",
    "v_div_fmas_f32", "v_div_fmas_f64", "v_div_fixup_f32", "v_div_fixup_f64", "v_div_fixup_f16",
    "v_div_fixup_legacy_f16", "v_cvt_pk_f16_f32", "v_cvt_pk_bf16_f32", "v_cvt_pkrtz_f16_f32", "v_cvt_pk_fp8_f32",
    "v_cvt_pk_bf8_f32", "v_cvt_sr_fp8_f32", "v_cvt_sr_bf8_f32", "v_cvt_sr_f16_f32", "v_cvt_sr_bf16_f32",
    "v_dot2_f32_f16", "v_dot2_f32_bf16", "v_dot2c_f32_f16", "v_dot2c_f32_bf16", "v_cvt_f32_fp8", "v_cvt_f32_bf8",
    "v_cvt_pk_f32_fp8", "v_cvt_pk_f32_bf8", "v_pk_add_f32", "v_pk_mul_f32", "v_pk_fma_f32", "v_fma_mix_f32",
    "v_fma_mixlo_f16", "v_fma_mixhi_f16", "v_fmamk_f32", "v_fmaak_f32", *_CARRIES, *_CARRIED,
)  # fmt: skip


def _compare(random: Random, name: str, kind: str) -> tuple[str, dict[int, str]]:
    second = "u32" if "_class_" in name else kind
    kinds = {0: kind, 2: second}
    choice = random.random()
    if choice < 0.3:
        first = random.choice((vector(kind, 0), scalar(kind, 2), "1" if kind[0] != "f" else "0.5"))
        return f"{name}_e32 vcc, {first}, {vector(second, 2)}", kinds
    if choice < 0.5 and kind[1:] != "64" and "_class_" not in name:
        parts = ("DWORD",) if kind == "f32" else ("WORD_0", "WORD_1") if kind == "f16" else PARTS
        chosen = f"src0_sel:{random.choice(parts)} src1_sel:{random.choice(parts)}"
        return f"{name}_sdwa {random.choice(('vcc', 's[6:7]'))}, v0, v2 {chosen}", kinds
    first = vector(kind, 0)
    first = random.choice((first, f"-{first}", f"|{first}|")) if kind[0] == "f" else first
    return f"{name}_e64 s[6:7], {first}, {random.choice((vector(second, 2), scalar(second, 2)))}", kinds


def _carried(random: Random, name: str) -> tuple[str, dict[int, str]]:
    into = name in _CARRIED
    kinds = {0: "u32", 2: "u32"}
    choice = random.random()
    if choice < 0.4:
        return f"{name}_e32 v8, vcc, {random.choice(('v0', '-1'))}, v2{', vcc' * into}", kinds
    if choice < 0.6:
        parts = " ".join(f"src{i}_sel:{random.choice(PARTS)}" for i in (0, 1))
        return f"{name}_sdwa v8, vcc, v0, v2{', vcc' * into} dst_sel:DWORD dst_unused:UNUSED_PAD {parts}", kinds
    return f"{name}_e64 v8, s[6:7], v0, {random.choice(('v2', '63'))}{', s[10:11]' * into}", kinds


def _conditional(random: Random) -> tuple[str, dict[int, str]]:
    kinds = {0: "u32", 2: "u32"}
    choice = random.random()
    if choice < 0.25:
        return f"v_cndmask_b32_e32 v8, {random.choice(('v0', '1.0', '0x12345'))}, v2, vcc", kinds
    if choice < 0.5:
        return f"v_cndmask_b32_dpp v8, v0, v2, vcc {drawn_crossing(random)}", kinds
    if choice < 0.65:
        parts = " ".join(f"src{i}_sel:{random.choice(PARTS)}" for i in (0, 1))
        return f"v_cndmask_b32_sdwa v8, v0, v2, vcc dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE {parts}", kinds
    no, yes = random.choice(("v0", "-v0", "|v0|", "-|v0|")), random.choice(("v2", "-v2", "1.0"))
    return f"v_cndmask_b32_e64 v8, {no}, {yes}, s[10:11]", kinds


def _mixed(random: Random, name: str) -> tuple[str, dict[int, str]]:
    halved = [random.getrandbits(1) for _ in range(3)]
    high = [random.getrandbits(1) & each for each in halved]
    sources = [random.choice((f"v{2 * i}", f"v{2 * i}", f"-v{2 * i}", f"|v{2 * i}|")) for i in range(3)]
    text = f"{name} v8, {', '.join(sources)} op_sel:{high} op_sel_hi:{halved}".replace(", 0", ",0").replace(", 1", ",1")
    kinds = {2 * i: "f16" if each else "f32" for i, each in enumerate(halved)}
    return text + random.choice(("", "", " clamp")), kinds


def _scaled(random: Random, name: str) -> tuple[str, dict[int, str]]:
    rest, _, bits = SCALED[name].partition("|")
    source = name.rsplit("_", 1)[1]
    wide = source if source in {"f16", "bf16", "f32"} else "u32"
    kinds = dict.fromkeys(range(32), wide) | {4: "u32", 16: "f16", 17: "bf16"}
    if "pk32" in name or "2xpk16" in name:
        kinds = dict.fromkeys(range(32), wide)
    chosen = [int(each) and random.getrandbits(1) for each in bits.replace("_", "")]
    shown = f" op_sel:[{','.join(map(str, _listed(bits, chosen)))}]" if bits else ""
    return f"{name} {rest.format(s='v35')}{shown}", kinds


def _listed(bits: str, chosen: list[int]) -> list[int]:
    """op_sel as it is written: sources first, the destination last."""
    if "_" not in bits:
        return chosen
    first, last = bits.split("_")
    sources = chosen[: len(first)]
    return [*sources, *[0] * (2 - len(sources)), chosen[-1]] if last else sources
