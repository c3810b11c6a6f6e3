"""Small kernels drawn at random: takes a source of choices, gives a kernel and the arguments to launch it with.

Scalar and vector instructions that the proof evaluates, on registers that hold constants, lanes, arguments and loaded
words; EXEC is narrowed and given back, branches skip or repeat a few lines, and LDS is read and written at whatever
address came about, cut to what there is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import numpy as np

from rota.isa.binary.kernel_facts import Argument, Descriptor, KernelFacts
from rota.isa.decoded import KernelProgram, load_program
from tests.campaigns.machine_code.value_record import Launch

LDS_BYTES = 4096
ARGUMENTS = 6
WORDS = 512
_EDGES = (0, 1, 2, 3, 4, 7, 8, 31, 32, 63, 64, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000,
          0x80000001, 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFF, 0x800000)  # fmt: skip
_INLINE = ("0", "1", "2", "3", "4", "8", "16", "31", "32", "64", "-1", "-2", "-16")

_S2 = (
    "s_add_u32", "s_sub_u32", "s_add_i32", "s_sub_i32", "s_addc_u32", "s_subb_u32", "s_mul_i32", "s_mul_hi_u32",
    "s_mul_hi_i32", "s_and_b32", "s_or_b32", "s_xor_b32", "s_andn2_b32", "s_orn2_b32", "s_nand_b32", "s_nor_b32",
    "s_xnor_b32", "s_lshl_b32", "s_lshr_b32", "s_ashr_i32", "s_min_u32", "s_max_u32", "s_min_i32", "s_max_i32",
    "s_bfm_b32", "s_cselect_b32", "s_pack_ll_b32_b16", "s_pack_lh_b32_b16", "s_pack_hh_b32_b16", "s_lshl1_add_u32",
    "s_lshl2_add_u32", "s_lshl3_add_u32", "s_lshl4_add_u32", "s_bfe_u32", "s_bfe_i32", "s_absdiff_i32",
)  # fmt: skip
_S1 = (
    "s_mov_b32", "s_not_b32", "s_brev_b32", "s_abs_i32", "s_sext_i32_i8", "s_sext_i32_i16", "s_cmov_b32",
    "s_bcnt1_i32_b32", "s_bcnt0_i32_b32", "s_ff1_i32_b32", "s_flbit_i32_b32", "s_bitset0_b32", "s_bitset1_b32",
    "s_wqm_b32", "s_quadmask_b32",
)  # fmt: skip
_SC = (
    *(f"s_cmp_{kind}_{sign}32" for kind in ("eq", "lg", "lt", "gt", "ge", "le") for sign in "ui"),
    "s_bitcmp0_b32", "s_bitcmp1_b32",
)  # fmt: skip
_SK = tuple(f"s_cmpk_{kind}_{sign}32" for kind in ("eq", "lg", "lt", "gt", "ge", "le") for sign in "ui")
_S2_64 = (
    "s_and_b64", "s_or_b64", "s_xor_b64", "s_andn2_b64", "s_orn2_b64", "s_nand_b64", "s_nor_b64", "s_xnor_b64",
    "s_cselect_b64",
)  # fmt: skip
_S1_64 = ("s_mov_b64", "s_not_b64", "s_cmov_b64", "s_wqm_b64")
_SAVE = tuple(
    f"s_{each}_saveexec_b64" for each in ("and", "or", "xor", "andn2", "orn2", "nand", "nor", "xnor", "andn1", "orn1")
)
_V2 = (
    "v_add_u32_e64", "v_sub_u32_e64", "v_subrev_u32_e64", "v_mul_lo_u32", "v_mul_hi_u32", "v_mul_u32_u24_e64",
    "v_mul_i32_i24_e64", "v_and_b32_e64", "v_or_b32_e64", "v_xor_b32_e64", "v_xnor_b32_e64", "v_min_u32_e64",
    "v_max_u32_e64", "v_min_i32_e64", "v_max_i32_e64", "v_lshlrev_b32_e64", "v_lshrrev_b32_e64", "v_ashrrev_i32_e64",
    "v_bfm_b32", "v_add_i32", "v_sub_i32", "v_mul_hi_i32", "v_bcnt_u32_b32", "v_cvt_pk_u16_u32", "v_add_u16_e64",
    "v_lshlrev_b16_e64", "v_mbcnt_lo_u32_b32", "v_mbcnt_hi_u32_b32",
)  # fmt: skip
_V3 = (
    "v_bfe_u32", "v_bfe_i32", "v_bfi_b32", "v_perm_b32", "v_alignbit_b32", "v_alignbyte_b32", "v_add3_u32",
    "v_or3_b32", "v_and_or_b32", "v_lshl_or_b32", "v_lshl_add_u32", "v_add_lshl_u32", "v_xad_u32", "v_mad_u32_u24",
    "v_mad_i32_i24", "v_mad_u16", "v_med3_i32", "v_med3_u32", "v_max3_u32", "v_min3_i32", "v_sad_u32",
)  # fmt: skip
_V1 = ("v_mov_b32_e32", "v_not_b32_e32", "v_bfrev_b32_e32", "v_ffbh_u32_e32", "v_ffbl_b32_e32", "v_cvt_f32_u32_e32")
_VC = tuple(f"v_cmp_{kind}_{sign}32_e64" for kind in ("eq", "ne", "lt", "gt", "ge", "le") for sign in "ui")
_CARRY = ("v_add_co_u32_e64", "v_sub_co_u32_e64", "v_subrev_co_u32_e64")
_CARRIES = ("v_addc_co_u32_e64", "v_subb_co_u32_e64", "v_subbrev_co_u32_e64")
_ODD = (
    "v_mov_b32_dpp {v}, {w} quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf",
    "v_add_u32_dpp {v}, {w}, {u} row_shr:1 row_mask:0xf bank_mask:0xf",
    "v_add_u32_sdwa {v}, {w}, {u} dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD",
    "v_mov_b32_sdwa {v}, {w} dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_0",
    "v_mov_b32_sdwa {v}, {w} dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_3",
    "v_lshlrev_b32_sdwa {v}, {w}, {u} dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_2 src1_sel:BYTE_0",
    "v_add_u32_e64 {v}, {w}, {u} clamp",
    "v_sub_u32_e64 {v}, {w}, {u} clamp",
    "v_subrev_u32_e64 {v}, {w}, {u} clamp",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A kernel's text, decoded, and a launch of it."""

    text: str
    program: KernelProgram
    launch: Launch


def facts(waves: int) -> KernelFacts:
    """A kernel of so many waves, whose arguments s[0:1] points to: numbers, and an array after them."""
    arguments = tuple(
        Argument(name=f"n{place}", offset=4 * place, size=4, kind="by_value") for place in range(ARGUMENTS)
    )
    array = Argument(name="words", offset=4 * ARGUMENTS, size=8, kind="global_buffer")
    size = 4 * ARGUMENTS + 8
    descriptor = Descriptor(
        lds_bytes=LDS_BYTES, private_bytes=0, kernarg_bytes=size, vgprs=64, sgprs=100, user_sgprs=2, accum_offset=64,
        tg_split=False,
    )  # fmt: skip
    return KernelFacts(
        name="k", arch="gfx950", vgprs=64, agprs=0, sgprs=100, vgpr_spills=0, sgpr_spills=0, lds_bytes=LDS_BYTES,
        private_bytes=0, kernarg_bytes=size, max_workgroup=64 * waves, arguments=(*arguments, array),
        user_sgprs=(("kernarg_segment_ptr", 2),), workgroup_ids=(True, False, False), workitem_ids=0,
        descriptor=descriptor, required_workgroup=(64 * waves, 1, 1),
    )  # fmt: skip


class _Writer:
    """Writes lines; `pick` chooses."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.lines: list[str] = []
        self._labels = 0

    def s(self) -> str:
        return f"s{self.random.randrange(3, 20)}"

    def s64(self) -> str:
        low = 2 * self.random.randrange(2, 10)
        return self.random.choice((f"s[{low}:{low + 1}]",) * 4 + ("vcc",))

    def v(self) -> str:
        return f"v{self.random.randrange(0, 14)}"

    def literal(self) -> str:
        return hex(self.random.choice(_EDGES) if self.random.random() < 0.6 else self.random.getrandbits(32))

    def ssrc(self, literals: bool = True) -> str:
        roll = self.random.random()
        if roll < 0.55:
            return self.s()
        if roll < 0.8 or not literals:
            return self.random.choice(_INLINE)
        return self.random.choice(("vcc_lo", "exec_lo", "exec_hi", "m0")) if roll < 0.85 else self.literal()

    def vsrc(self) -> str:
        roll = self.random.random()
        return self.v() if roll < 0.65 else self.random.choice(_INLINE)

    def vsrcs(self, count: int) -> str:
        """At most one scalar register among them, as the encoding allows."""
        found = [self.vsrc() for _ in range(count)]
        if self.random.random() < 0.35:
            found[self.random.randrange(count)] = self.s()
        return ", ".join(found)

    def line(self) -> None:
        """One more, or a few that belong together."""
        total = sum(weight for weight, _ in _LINES)
        roll = self.random.uniform(0, total)
        for weight, write in _LINES:
            roll -= weight
            if roll <= 0:
                write(self)
                return

    def put(self, text: str) -> None:
        self.lines.append(text)

    def label(self) -> str:
        self._labels += 1
        return f"l{self._labels}"


def _scalar(one: _Writer) -> None:
    op = one.random.choice(_S2)
    first = one.ssrc()
    second = one.ssrc(literals=not first.startswith("0x"))
    if op.startswith("s_bfe") and one.random.random() < 0.7:
        second = hex(one.random.randrange(0, 33) << 16 | one.random.randrange(32))
        first = one.s()
    one.put(f"{op} {one.s()}, {first}, {second}")


def _scalar_one(one: _Writer) -> None:
    one.put(f"{one.random.choice(_S1)} {one.s()}, {one.ssrc()}")


def _scalar_k(one: _Writer) -> None:
    if one.random.random() < 0.5:
        one.put(f"{one.random.choice(_SK)} {one.s()}, {hex(one.random.choice((0, 1, 0x7FFF, 0x8000, 0xFFFF, 64)))}")
    else:
        op = one.random.choice(("s_addk_i32", "s_mulk_i32", "s_movk_i32", "s_cmovk_i32"))
        one.put(f"{op} {one.s()}, {hex(one.random.choice((0, 1, 3, 0x7FFF, 0x8000, 0xFFFF, 64)))}")


def _compare(one: _Writer) -> None:
    first = one.ssrc()
    one.put(f"{one.random.choice(_SC)} {first}, {one.ssrc(literals=not first.startswith('0x'))}")


def _compare_wide(one: _Writer) -> None:
    one.put(f"s_cmp_{one.random.choice(('eq', 'lg'))}_u64 {one.s64()}, {one.s64()}")


def _scalar_wide(one: _Writer) -> None:
    roll = one.random.random()
    source = one.random.choice((one.s64(), one.s64(), "exec", *_INLINE[:4], "-1"))
    if roll < 0.5:
        one.put(f"{one.random.choice(_S2_64)} {one.s64()}, {one.s64()}, {source}")
    elif roll < 0.75:
        one.put(f"{one.random.choice(_S1_64)} {one.s64()}, {source}")
    elif roll < 0.9:
        op = one.random.choice(("s_lshl_b64", "s_lshr_b64", "s_ashr_i64"))
        one.put(f"{op} {one.s64()}, {one.s64()}, {one.ssrc(literals=False)}")
    else:
        one.put(f"{one.random.choice(('s_bitset0_b64', 's_bitset1_b64'))} {one.s64()}, {one.ssrc(literals=False)}")


def _vector(one: _Writer) -> None:
    roll = one.random.random()
    if roll < 0.5:
        one.put(f"{one.random.choice(_V2)} {one.v()}, {one.vsrcs(2)}")
    elif roll < 0.85:
        op = one.random.choice(_V3)
        text = one.vsrcs(3)
        if op == "v_perm_b32" and one.random.random() < 0.7:
            one.put(f"s_mov_b32 s21, {hex(one.random.choice((0x0C0C0100, 0x07060302, 0x05040100, 0x0C000C04)))}")
            text = f"{one.v()}, {one.v()}, s21"
        one.put(f"{op} {one.v()}, {text}")
    else:
        one.put(f"{one.random.choice(_V1)} {one.v()}, {one.random.choice((one.v(), one.ssrc()))}")


def _bitop(one: _Writer) -> None:
    one.put(f"v_bitop3_b32 {one.v()}, {one.vsrcs(3)} bitop3:{hex(one.random.randrange(256))}")


def _vector_compare(one: _Writer) -> None:
    one.put(f"{one.random.choice(_VC)} {one.s64()}, {one.vsrcs(2)}")


def _choose(one: _Writer) -> None:
    one.put(f"v_cndmask_b32_e64 {one.v()}, {one.vsrc()}, {one.vsrc()}, {one.s64()}")


def _carry(one: _Writer) -> None:
    if one.random.random() < 0.5:
        one.put(f"{one.random.choice(_CARRY)} {one.v()}, {one.s64()}, {one.vsrc()}, {one.vsrc()}")
    else:
        one.put(f"{one.random.choice(_CARRIES)} {one.v()}, {one.s64()}, {one.vsrc()}, {one.vsrc()}, {one.s64()}")


def _wide(one: _Writer) -> None:
    low, other = (2 * one.random.randrange(0, 6) for _ in range(2))
    pair, source = f"v[{low}:{low + 1}]", one.random.choice((f"v[{other}:{other + 1}]", "0", "-1", "3"))
    roll = one.random.random()
    if roll < 0.3:
        one.put(f"v_mov_b64_e32 {pair}, {source}")
    elif roll < 0.6:
        shift = one.random.choice(("0", "1", "2", "3", "4"))
        one.put(f"v_lshl_add_u64 {pair}, v[{other}:{other + 1}], {shift}, {source}")
    else:
        op = one.random.choice(("v_mad_u64_u32", "v_mad_u64_u32", "v_mad_i64_i32"))
        one.put(f"{op} {pair}, {one.s64()}, {one.v()}, {one.vsrc()}, {source}")


def _lanes(one: _Writer) -> None:
    roll = one.random.random()
    lane = one.random.choice((*map(str, (0, 1, 5, 31, 63)), one.s()))
    if roll < 0.45:
        one.put(f"v_readfirstlane_b32 {one.s()}, {one.v()}")
    elif roll < 0.5:
        _pass_on(one)
    elif roll < 0.6:
        one.put(f"v_swap_b32 {one.v()}, {one.v()}")
    elif roll < 0.85:
        one.put(f"v_readlane_b32 {one.s()}, {one.v()}, {lane}")
    else:
        one.put(
            f"v_writelane_b32 {one.v()}, {one.random.choice((one.s(), '7'))}, {one.random.choice(('0', '1', '63'))}"
        )


def _odd(one: _Writer) -> None:
    one.put(one.random.choice(_ODD).format(v=one.v(), w=one.v(), u=one.v()))


def _rows(one: _Writer) -> None:
    """Rows of lanes change places, which they do while all lanes are active."""
    one.put("s_or_saveexec_b64 s[24:25], -1")
    for _ in range(one.random.randrange(1, 3)):
        if one.random.random() < 0.6:
            one.put(f"v_permlane{one.random.choice((16, 32))}_swap_b32_e32 {one.v()}, {one.v()}")
        else:
            _pass_on(one)
    one.put("s_mov_b64 exec, s[24:25]")


def _pass_on(one: _Writer) -> None:
    """Each lane reads a register of another."""
    one.put(f"v_mov_b32_e32 v15, {one.v()}")
    one.put(f"ds_bpermute_b32 {one.v()}, v15, {one.v()}{one.random.choice(('', '', ' offset:8'))}")
    one.put("s_waitcnt lgkmcnt(0)")


def _m0(one: _Writer) -> None:
    one.put(one.random.choice(("s_mov_b32 m0, {}", "s_add_u32 m0, m0, {}", "s_lshl_b32 m0, {}, 4")).format(one.s()))


def _exec(one: _Writer) -> None:
    """Narrows EXEC for a few lines, and gives it back, or changes it for good."""
    roll = one.random.random()
    if roll < 0.75:
        kept, mask = "s[24:25]", one.s64()
        if one.random.random() < 0.7:
            one.put(f"{one.random.choice(_VC)} {mask}, {one.vsrcs(2)}")
        one.put(f"{one.random.choice(_SAVE)} {kept}, {mask}")
        for _ in range(one.random.randrange(1, 5)):
            one.random.choice((_vector, _vector, _choose, _carry, _lanes, _wide))(one)
        if one.random.random() < 0.3:
            one.put("s_xor_b64 exec, exec, s[24:25]")
            _vector(one)
        one.put(one.random.choice(("s_mov_b64 exec, s[24:25]", "s_or_b64 exec, exec, s[24:25]", "s_mov_b64 exec, -1")))
        return
    if roll < 0.85:
        one.put(f"s_{one.random.choice(('andn1', 'andn2'))}_wrexec_b64 s[26:27], {one.s64()}")
        _vector(one)
    elif roll < 0.9:
        one.put(f"v_cmpx_{one.random.choice(('lt', 'ge', 'ne'))}_u32_e32 vcc, {one.random.choice(_INLINE)}, {one.v()}")
        _vector(one)
    else:
        one.put(f"s_and_b64 exec, {one.random.choice(('exec', '-1'))}, {one.s64()}")
        for _ in range(one.random.randrange(1, 4)):
            one.put(f"s_mov_b32 exec_{one.random.choice(('lo', 'hi'))}, {one.ssrc()}")
            _vector(one)
    halves = ("s_mov_b32 exec_lo, -1", "s_mov_b32 exec_hi, -1")
    one.lines += one.random.choice((halves, halves[::-1], ("s_mov_b64 exec, -1",)))


def _skip(one: _Writer) -> None:
    """A branch over a few lines."""
    label = one.label()
    kind = one.random.choice(("scc0", "scc1", "vccz", "vccnz", "execz", "execnz"))
    if kind.startswith("scc"):
        _compare(one)
    elif kind.startswith("vcc"):
        one.put(f"{one.random.choice(_VC)} vcc, {one.vsrcs(2)}")
    one.put(f"s_cbranch_{kind} {label}")
    for _ in range(one.random.randrange(1, 5)):
        one.random.choice((_scalar, _vector, _vector, _choose, _lds))(one)
    one.put(f"{label}:")


def _repeat(one: _Writer) -> None:
    """A few rounds, as many as an argument's low bits say."""
    label = one.label()
    one.put(f"s_and_b32 s22, {one.s()}, 3")
    one.put("s_mov_b32 s23, 0")
    one.put(f"{label}:")
    for _ in range(one.random.randrange(1, 6)):
        one.random.choice((_scalar, _vector, _vector, _choose, _lds, _compare, _lanes, _wide))(one)
    one.put("s_add_u32 s23, s23, 1")
    one.put(f"s_cmp_{one.random.choice(('le_u32', 'le_i32'))} s23, s22")
    one.put(f"s_cbranch_scc1 {label}")


def _lds(one: _Writer) -> None:
    """LDS at an address that came about, cut to what there is."""
    one.put(f"v_and_b32_e32 v15, {hex(one.random.choice((0xFFC, 0xFF8, 0x7FC, 0x3C0)))}, {one.v()}")
    offset = one.random.choice(("", "", " offset:64", " offset:1020"))
    if offset:
        one.put("v_and_b32_e32 v15, 0xbfc, v15")
    roll = one.random.random()
    if roll < 0.45:
        one.put(f"ds_write_b32 v15, {one.v()}{offset}")
    elif roll < 0.9:
        one.put(f"ds_read_b32 {one.v()}, v15{offset}")
    else:
        one.put(f"ds_add_rtn_u32 {one.v()}, v15, {one.v()}")
    one.put("s_waitcnt lgkmcnt(0)")


def _load(one: _Writer) -> None:
    one.put(f"v_and_b32_e32 v15, 0x7fc, {one.v()}")
    one.put(f"global_load_dword {one.v()}, v15, s[28:29]")
    one.put("s_waitcnt vmcnt(0)")


_LINES: tuple[tuple[float, Callable[[_Writer], None]], ...] = (
    (5, _scalar), (2, _scalar_one), (2, _scalar_k), (2, _compare), (0.5, _compare_wide), (2.5, _scalar_wide),
    (9, _vector), (1, _bitop), (2, _vector_compare), (2.5, _choose), (2, _carry), (1.5, _wide), (2, _lanes),
    (0.6, _odd), (0.7, _rows), (0.6, _m0), (2.7, _exec), (1.6, _skip), (0.8, _repeat), (2, _lds),
    (0.7, _load), (0.6, lambda one: one.put("s_barrier")),
)  # fmt: skip


def drawn(random: Random, lines: int) -> Drawn:
    """A kernel of about so many lines."""
    one = _Writer(random)
    one.put("s_load_dwordx4 s[4:7], s[0:1], 0x0")
    one.put("s_load_dwordx2 s[8:9], s[0:1], 0x10")
    one.put("s_load_dwordx2 s[28:29], s[0:1], 0x18")
    one.put("s_waitcnt lgkmcnt(0)")
    for row in range(10, 20):
        one.put(f"s_mov_b32 s{row}, {random.choice((one.literal(), f's{random.randrange(4, 10)}', str(row)))}")
    one.put("s_mov_b32 s3, s2")
    one.put("v_mbcnt_lo_u32_b32 v1, -1, 0")
    one.put("v_mbcnt_hi_u32_b32 v1, -1, v1")
    one.put("v_readfirstlane_b32 s19, v0")
    for row in range(2, 14):
        source = random.choice(("v0", "v0", "v1", f"s{random.randrange(4, 20)}", str(random.randrange(65))))
        op = random.choice(("v_mov_b32_e32 v{}, {}", "v_lshlrev_b32_e64 v{}, 2, {}", "v_mul_u32_u24_e64 v{}, {}, 12"))
        one.put(op.format(row, source))
    for _ in range(lines):
        one.line()
    waves = random.choice((1, 2, 2, 3, 4))
    text = "k:\n" + "\n".join(each if each.endswith(":") else f"\t{each}" for each in one.lines) + "\n\ts_endpgm\n"
    numbers = [random.choice(_EDGES) if random.random() < 0.6 else random.getrandbits(32) for _ in range(ARGUMENTS)]
    words = np.random.default_rng(random.getrandbits(32)).integers(0, 1 << 32, WORDS, np.uint32)
    args = [*(np.uint32(each) for each in numbers), words]
    launch = Launch(args=args, block=(64 * waves, 1, 1), grid=(3, 1, 1), group=(random.randrange(3), 0, 0))
    return Drawn(text=text, program=load_program(facts(waves), text), launch=launch)
