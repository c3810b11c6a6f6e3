"""The rows of AMD's table of wait states: two instructions each, and the wait states that AMD asks for between them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

ARCHITECTURES = ("gfx942", "gfx950")


class Twin(NamedTuple):
    """A rule by its name, two instructions, the wait states between them on each machine, and whose row it is."""

    rule: str
    asked: str
    first: str
    then: str
    states: tuple[int | None, int | None]

    def text(self, arch: str, *, fewer: int = 0) -> str:
        """Both instructions, with as many wait states as are due, or fewer."""
        count = self.states[ARCHITECTURES.index(arch)]
        assert count is not None
        return "\n".join((self.first, *nops(count - fewer), self.then))


def nops(count: int) -> list[str]:
    """So many wait states."""
    return [f"s_nop {min(16, count - done) - 1}" for done in range(0, count, 16)]


def _v(first: int, count: int) -> str:
    return f"v[{first}:{first + count - 1}]" if count > 1 else f"v{first}"


def product(name: str, count: int, wide: int, result: int, total: int) -> str:
    """An MFMA with its result and what it adds to where they are asked for."""
    factor = f"{_v(100, wide)}, {_v(104, wide)}"
    return f"{name} {_v(result, count)}, {factor}, {_v(total, count)}"


# By passes: the name, the registers of a result and those of a factor.
XDL = {
    2: ("v_mfma_f32_4x4x4_16b_f16", 4, 2), 4: ("v_mfma_f32_16x16x16_f16", 4, 2),
    8: ("v_mfma_f32_32x32x8_f16", 16, 2), 16: ("v_mfma_f32_32x32x4_2b_f16", 32, 2),
}  # fmt: skip
SINGLE = {
    2: ("v_mfma_f32_4x4x1_16b_f32", 4, 1), 8: ("v_mfma_f32_16x16x4_f32", 4, 1), 16: ("v_mfma_f32_32x32x2_f32", 16, 1)
}  # fmt: skip
SMALL, LARGE = ("v_mfma_f64_4x4x4_4b_f64", 2, 2), ("v_mfma_f64_16x16x4_f64", 8, 2)
SPARSE = "v_smfmac_f32_16x16x32_f16 v[64:67], v[100:101], v[104:107], {index}"
FACTORS = {
    "MFMA, A": "v_mfma_f32_16x16x16_f16 v[64:67], v[0:1], v[104:105], v[68:71]",
    "MFMA, B": "v_mfma_f32_16x16x16_f16 v[64:67], v[104:105], v[0:1], v[68:71]",
    "SMFMAC, index": SPARSE.format(index="v0"),
    "SGEMM, A": "v_mfma_f32_16x16x4_f32 v[64:67], v0, v104, v[68:71]",
    "DGEMM, B": "v_mfma_f64_4x4x4_4b_f64 v[64:65], v[104:105], v[0:1], v[68:69]",
}
MEMORY = {
    "VM": "buffer_store_dword v0, v112, s[8:11], 0 offen", "FLAT": "flat_store_dword v[112:113], v0",
    "global": "global_store_dword v112, v0, s[4:5]", "LDS": "ds_write_b32 v112, v0",
    "address": "ds_read_b32 v114, v0",
}  # fmt: skip
READ, WRITE = "v_mov_b32_e32 v110, v0", "v_mov_b32_e32 v0, v110"
_STORES = {
    "flat_store_dwordx3": "flat_store_dwordx3 v[112:113], v[0:2]",
    "flat_store_dwordx4": "flat_store_dwordx4 v[112:113], v[0:3]",
    "global_store_dwordx4": "global_store_dwordx4 v112, v[0:3], s[4:5]",
    "scratch_store_dwordx3": "scratch_store_dwordx3 off, v[0:2], s4",
    "buffer_store_dwordx3": "buffer_store_dwordx3 v[0:2], v112, s[8:11], 0 offen",
    "buffer_store_dwordx4": "buffer_store_dwordx4 v[0:3], v112, s[8:11], 0 offen",
    "buffer_store_format_xyz": "buffer_store_format_xyz v[0:2], v112, s[8:11], 0 offen",
    "buffer_store_format_xyzw": "buffer_store_format_xyzw v[0:3], v112, s[8:11], 0 offen",
    "flat_atomic_cmpswap_x2": "flat_atomic_cmpswap_x2 v[112:113], v[0:3]",
    "global_atomic_cmpswap_x2": "global_atomic_cmpswap_x2 v112, v[0:3], s[4:5]",
    "buffer_atomic_cmpswap_x2": "buffer_atomic_cmpswap_x2 v[0:3], v112, s[8:11], 0 offen",
}
_TRANS = tuple(
    f"v_{name}" for name in (
        "exp_f32", "log_f32", "rcp_f32", "rcp_iflag_f32", "rsq_f32", "rcp_f64", "rsq_f64", "sqrt_f32", "sqrt_f64",
        "sin_f32", "cos_f32", "rcp_f16", "sqrt_f16", "rsq_f16", "log_f16", "exp_f16", "sin_f16", "cos_f16",
        "exp_legacy_f32", "log_legacy_f32",
    )
)  # fmt: skip
SCALAR_WRITERS = {
    "v_readlane": "v_readlane_b32 s20, v0, 3", "v_readfirstlane": "v_readfirstlane_b32 s20, v0",
    "v_cmp": "v_cmp_eq_u32_e64 s[20:21], v0, v1", "v_add": "v_add_co_u32_e64 v2, s[20:21], v0, v1",
    "v_sub": "v_sub_co_u32_e64 v2, s[20:21], v0, v1",
    "v_div_scale": "v_div_scale_f32 v2, s[20:21], v0, v0, v1",
}  # fmt: skip
COMPARE, COMPARE_EXEC = "v_cmp_eq_u32_e32 vcc, v0, v1", "v_cmpx_eq_u32_e32 vcc, v0, v1"
SET_M0 = "s_mov_b32 m0, s20"
SHIFTED = "row_mask:0xf bank_mask:0xf"


def both(rule: str, asked: str, first: str, then: str, states: int) -> Twin:
    """Of which both machines ask for as many."""
    return Twin(rule, asked, first, then, (states, states))


def modes_and_scalars() -> Iterator[Twin]:
    """Rows about modes and scalar registers."""
    table = "table 11: {}".format
    mode, get = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 0", "s_getreg_b32 s22, hwreg(HW_REG_MODE, 0, 8)"
    yield both("mode", table("S_SETREG; S_GETREG same"), mode, get, 2)
    yield both("mode", table("S_SETREG; S_SETREG same"), mode, mode, 2)
    yield both("vskip_read", table("SET_VSKIP; S_GETREG MODE"), "s_setvskip s20, 0", get, 2)
    skip = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 28, 1), 0"
    for what, then in {"VALU": READ, "VM": MEMORY["global"], "LDS": MEMORY["LDS"], "MFMA": FACTORS["MFMA, A"]}.items():
        yield both("vskip", table(f"S_SETREG MODE.vskip; vector op, {what}"), skip, then, 2)
    yield both("zero", table("VALU sets VCC; VCCZ as data"), COMPARE, "v_mov_b32_e32 v2, src_vccz", 5)
    yield both("zero", table("VALU sets EXEC; EXECZ as data"), COMPARE_EXEC, "v_mov_b32_e32 v2, src_execz", 5)
    selects = {"v_readlane": "v_readlane_b32 s22, v3, s20", "v_writelane": "v_writelane_b32 v3, 7, s20"}
    for name, first in SCALAR_WRITERS.items():
        yield both("lane_select", table(f"{name} writes SGPR; lane select"), first, selects["v_readlane"], 4)
    yield both(
        "lane_select",
        table("v_cmp writes SGPR; v_writelane selects"),
        SCALAR_WRITERS["v_cmp"],
        selects["v_writelane"],
        4,
    )
    yield both("lane_select", table("VALU writes VCC; lane select"), COMPARE, "v_readlane_b32 s22, v3, vcc_lo", 4)
    fmas = "v_div_fmas_f32 v2, v3, v4, v5"
    yield both("division", table("VALU writes VCC; V_DIV_FMAS"), COMPARE, fmas, 4)
    yield both(
        "division",
        table("v_div_scale; V_DIV_FMAS"),
        "v_div_scale_f32 v2, vcc, v0, v0, v1",
        "v_div_fmas_f64 v[2:3], v[4:5], v[6:7], v[8:9]",
        4,
    )
    readers = {
        "offset": "buffer_load_dword v2, v0, s[8:11], s20 offen",
        "resource": "buffer_load_dword v2, v0, s[20:23], 0 offen",
        "address": "global_load_dword v2, v0, s[20:21]", "scratch": "scratch_load_dword v2, off, s20",
    }  # fmt: skip
    for what, then in readers.items():
        yield both(
            "scalar", table(f"VALU writes SGPR; VMEM reads it, {what}"), SCALAR_WRITERS["v_readfirstlane"], then, 5
        )
    for what, then in {
        "S_SENDMSG": "s_sendmsg sendmsg(MSG_INTERRUPT)", "S_MOVEREL": "s_movrels_b32 s22, s24",
        "LDS add-TID": "ds_write_addtid_b32 v0", "global with LDS=1": "global_load_lds_dword v112, s[4:5]",
        "scratch with LDS=1": "scratch_load_lds_dword off, s4",
    }.items():  # fmt: skip
        yield both("m0", table(f"SALU writes M0; {what}"), SET_M0, then, 1)
    yield both(
        "trap",
        table("S_SETREG TRAPSTS; RFE"),
        "s_setreg_imm32_b32 hwreg(HW_REG_TRAPSTS, 0, 1), 0",
        "s_rfe_b64 s[20:21]",
        1,
    )


def stores() -> Iterator[Twin]:
    """Rows about the data of wide stores."""
    load, valu = "ds_read_b32 v1, v112", "v_mov_b32_e32 v1, v110"
    for name, first in _STORES.items():
        yield both("store_load", f"table 11: {name}; its data written", first, load, 1)
        yield both("store", f"table 11: {name}; VALU writes its data", first, valu, 2)
    wide = "v_pk_mul_f32 v[0:1], v[4:5], v[6:7]"
    for dwords in (3, 4):
        first = f"buffer_store_dwordx{dwords} {_v(0, dwords)}, v112, s[8:11], s20 offen"
        yield both("store_by_offset", "LLVM pull 197267: offset in an SGPR; VALU writes its data", first, wide, 1)
        yield both("", "table 11: offset in an SGPR; its data written", first, load, 0)


def vectors() -> Iterator[Twin]:
    """Rows about results of VALU instructions, and tables 12."""
    table = "table 11: {}".format
    yield both(
        "dpp",
        table("VALU writes VGPR; DPP reads it"),
        "v_mov_b32_e32 v0, v1",
        f"v_mov_b32_dpp v2, v0 row_shr:1 {SHIFTED} bound_ctrl:1",
        2,
    )
    yield both(
        "dpp_second",
        table("VALU writes VGPR; DPP reads it, src1"),
        "v_mov_b32_e32 v0, v1",
        f"v_add_f32_dpp v2, v3, v0 row_shr:1 {SHIFTED} bound_ctrl:1",
        2,
    )
    yield both(
        "exec_dpp",
        table("VALU writes EXEC; DPP"),
        COMPARE_EXEC,
        f"v_mov_b32_dpp v2, v3 row_shr:1 {SHIFTED} bound_ctrl:1",
        5,
    )
    yield both(
        "scalar_vector",
        table("VALU writes VCC; VALU reads it as a constant (alias: 1)"),
        COMPARE,
        "v_mov_b32_e32 v3, vcc_lo",
        2,
    )
    for name, first in SCALAR_WRITERS.items():
        yield both("scalar_vector", table(f"{name} writes SGPR; constant"), first, "v_mov_b32_e32 v3, s20", 2)
    yield both(
        "scalar_vector", table("v_cmpx; VALU reads EXEC as a constant"), COMPARE_EXEC, "v_mov_b32_e32 v3, exec_lo", 2
    )
    for then in ("v_readlane_b32 s22, v3, 1", "v_readfirstlane_b32 s22, v3", "v_writelane_b32 v3, s22, 1"):
        yield both("exec_lane", table(f"v_cmpx; {then.split()[0]}"), COMPARE_EXEC, then, 4)
    yield both("", table("v_cmpx; other VALU"), COMPARE_EXEC, "v_mov_b32_e32 v3, v4", 0)
    yield both("lane", table("VALU writes VGPR; v_readlane"), "v_mov_b32_e32 v0, v1", "v_readlane_b32 s22, v0, 1", 1)
    sdwa = "v_mov_b32_sdwa v0, v1 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD"
    for name, first in {"SDWA": sdwa, "OPSEL": "v_cvt_pk_fp8_f32 v0, v1, v2 op_sel:[0,0,1]"}.items():
        yield both("partial", table(f"{name} moves the result; VALU consumes it"), first, READ, 1)
    for name in _TRANS:
        wide = 2 if name.endswith("64") else 1
        yield both(
            "transcendental", f"table 12: {name}; VALU consumes it", f"{name}_e32 {_v(0, wide)}, {_v(2, wide)}", READ, 1
        )
    yield both("", "table 11: trans; trans consumes it", "v_exp_f32_e32 v0, v1", "v_log_f32_e32 v2, v0", 0)
    swaps = {
        "v_permlane32_swap": "v_permlane32_swap_b32_e32 v0, v3",
        "v_permlane16_swap": "v_permlane16_swap_b32_e32 v3, v0",
    }
    for name, then in swaps.items():
        yield Twin("permlane", table(f"VALU writes VGPR; {name}"), "v_mov_b32_e32 v0, v1", then, (None, 2))
        yield Twin("exec_permlane", table(f"V_CMPX; {name}"), COMPARE_EXEC, then.replace("v0", "v5"), (None, 4))
