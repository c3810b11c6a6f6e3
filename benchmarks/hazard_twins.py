"""Wait states, row by row: takes nothing, gives for each rule a kernel that breaks it by one and one that keeps it.

    python -m benchmarks.hazard_twins > docs/wait_states.md

The numbers stand here a second time, as AMD's manuals and LLVM have them, and not in terms of `rota.targets`.  A test
judges all of them, by the walk over paths, by the interpreter and by the proof, and compares the page.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rota.prove.verdict import Verdict
from rota.targets.registry import architecture_named
from rota.targets.wait_states import SOURCES
from tests.prove.written import judged

WAIT_FOR_ALL = "s_waitcnt vmcnt(0) lgkmcnt(0)"
ARCHITECTURES = ("gfx942", "gfx950")
_HEAD = """# Wait states, rule by rule

Made by `python -m benchmarks.hazard_twins`; a test keeps it up to date, and asks the interpreter as well.

For every row of AMD's tables (CDNA3 ISA manual, tables 11, 12 and 37; CDNA4, tables 11, 12 and 38; both read in public
transcriptions) and every rule that LLVM's hazard recogniser has for gfx940 and gfx950: two instructions, how many wait
states are due between them, and the proof's verdict where there is one fewer and where there are enough. *Rule* is the
name in `rota targets` and in a finding's evidence, which also says whose rule it is. A row that asks for 0 has no twin
that breaks it; *inconclusive* is a kernel with an instruction that the proof doesn't follow. Not among them: LLVM
breaks clauses of memory instructions where XNACK may replay them, which is no rule of these tables;
`buffer_store_lds_dword`, which these machines don't have.

What LLVM 22 keeps in part or not at all, although the manual asks for it: `unequal`, `overlap` and `short_overlap`
where the range is the same, `dot` before an MFMA, `double_overwrite` on gfx950, `store_load`, `vskip`, `vskip_read`,
`zero`.
"""
_RULE = {"gfx942": 0, "gfx950": 1}


class Twin(NamedTuple):
    """A rule by its name, two instructions, the wait states between them on each machine, and whose row it is."""

    rule: str
    asked: str
    first: str
    then: str
    states: tuple[int | None, int | None]

    def text(self, arch: str, *, fewer: int = 0) -> str:
        """Both instructions, with as many wait states as are due, or fewer."""
        count = self.states[_RULE[arch]]
        assert count is not None
        return "\n".join((self.first, *nops(count - fewer), self.then))


def nops(count: int) -> list[str]:
    """So many wait states."""
    return [f"s_nop {min(16, count - done) - 1}" for done in range(0, count, 16)]


def _v(first: int, count: int) -> str:
    return f"v[{first}:{first + count - 1}]" if count > 1 else f"v{first}"


def _product(name: str, count: int, wide: int, result: int, total: int) -> str:
    factor = f"{_v(100, wide)}, {_v(104, wide)}"
    return f"{name} {_v(result, count)}, {factor}, {_v(total, count)}"


# By passes: the name, the registers of a result and those of a factor.
_XDL = {
    2: ("v_mfma_f32_4x4x4_16b_f16", 4, 2), 4: ("v_mfma_f32_16x16x16_f16", 4, 2),
    8: ("v_mfma_f32_32x32x8_f16", 16, 2), 16: ("v_mfma_f32_32x32x4_2b_f16", 32, 2),
}  # fmt: skip
_SINGLE = {
    2: ("v_mfma_f32_4x4x1_16b_f32", 4, 1), 8: ("v_mfma_f32_16x16x4_f32", 4, 1), 16: ("v_mfma_f32_32x32x2_f32", 16, 1)
}  # fmt: skip
_SMALL, _LARGE = ("v_mfma_f64_4x4x4_4b_f64", 2, 2), ("v_mfma_f64_16x16x4_f64", 8, 2)
_SPARSE = "v_smfmac_f32_16x16x32_f16 v[64:67], v[100:101], v[104:107], {index}"
_FACTORS = {
    "MFMA, A": "v_mfma_f32_16x16x16_f16 v[64:67], v[0:1], v[104:105], v[68:71]",
    "MFMA, B": "v_mfma_f32_16x16x16_f16 v[64:67], v[104:105], v[0:1], v[68:71]",
    "SMFMAC, index": _SPARSE.format(index="v0"),
    "SGEMM, A": "v_mfma_f32_16x16x4_f32 v[64:67], v0, v104, v[68:71]",
    "DGEMM, B": "v_mfma_f64_4x4x4_4b_f64 v[64:65], v[104:105], v[0:1], v[68:69]",
}
_MEMORY = {
    "VM": "buffer_store_dword v0, v112, s[8:11], 0 offen", "FLAT": "flat_store_dword v[112:113], v0",
    "global": "global_store_dword v112, v0, s[4:5]", "LDS": "ds_write_b32 v112, v0",
    "address": "ds_read_b32 v114, v0",
}  # fmt: skip
_READ, _WRITE = "v_mov_b32_e32 v110, v0", "v_mov_b32_e32 v0, v110"
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
_SCALAR_WRITERS = {
    "v_readlane": "v_readlane_b32 s20, v0, 3", "v_readfirstlane": "v_readfirstlane_b32 s20, v0",
    "v_cmp": "v_cmp_eq_u32_e64 s[20:21], v0, v1", "v_add": "v_add_co_u32_e64 v2, s[20:21], v0, v1",
    "v_sub": "v_sub_co_u32_e64 v2, s[20:21], v0, v1",
    "v_div_scale": "v_div_scale_f32 v2, s[20:21], v0, v0, v1",
}  # fmt: skip
_COMPARE, _COMPARE_EXEC = "v_cmp_eq_u32_e32 vcc, v0, v1", "v_cmpx_eq_u32_e32 vcc, v0, v1"
_SET_M0 = "s_mov_b32 m0, s20"
_SHIFTED = "row_mask:0xf bank_mask:0xf"


def twins() -> Iterator[Twin]:
    """All of them: AMD's tables in their order, then what LLVM alone keeps, and what was measured."""
    yield from _modes_and_scalars()
    yield from _stores()
    yield from _vectors()
    yield from _operands()
    yield from _products()
    yield from _single_products()
    yield from _double_products()
    yield from _llvm_alone()


def _both(rule: str, asked: str, first: str, then: str, states: int) -> Twin:
    return Twin(rule, asked, first, then, (states, states))


def _modes_and_scalars() -> Iterator[Twin]:
    table = "table 11: {}".format
    mode, get = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 0", "s_getreg_b32 s22, hwreg(HW_REG_MODE, 0, 8)"
    yield _both("mode", table("S_SETREG; S_GETREG same"), mode, get, 2)
    yield _both("mode", table("S_SETREG; S_SETREG same"), mode, mode, 2)
    yield _both("vskip_read", table("SET_VSKIP; S_GETREG MODE"), "s_setvskip s20, 0", get, 2)
    skip = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 28, 1), 0"
    for what, then in {
        "VALU": _READ,
        "VM": _MEMORY["global"],
        "LDS": _MEMORY["LDS"],
        "MFMA": _FACTORS["MFMA, A"],
    }.items():
        yield _both("vskip", table(f"S_SETREG MODE.vskip; vector op, {what}"), skip, then, 2)
    yield _both("zero", table("VALU sets VCC; VCCZ as data"), _COMPARE, "v_mov_b32_e32 v2, src_vccz", 5)
    yield _both("zero", table("VALU sets EXEC; EXECZ as data"), _COMPARE_EXEC, "v_mov_b32_e32 v2, src_execz", 5)
    selects = {"v_readlane": "v_readlane_b32 s22, v3, s20", "v_writelane": "v_writelane_b32 v3, 7, s20"}
    for name, first in _SCALAR_WRITERS.items():
        yield _both("lane_select", table(f"{name} writes SGPR; lane select"), first, selects["v_readlane"], 4)
    yield _both(
        "lane_select",
        table("v_cmp writes SGPR; v_writelane selects"),
        _SCALAR_WRITERS["v_cmp"],
        selects["v_writelane"],
        4,
    )
    yield _both("lane_select", table("VALU writes VCC; lane select"), _COMPARE, "v_readlane_b32 s22, v3, vcc_lo", 4)
    fmas = "v_div_fmas_f32 v2, v3, v4, v5"
    yield _both("division", table("VALU writes VCC; V_DIV_FMAS"), _COMPARE, fmas, 4)
    yield _both(
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
        yield _both(
            "scalar", table(f"VALU writes SGPR; VMEM reads it, {what}"), _SCALAR_WRITERS["v_readfirstlane"], then, 5
        )
    for what, then in {
        "S_SENDMSG": "s_sendmsg sendmsg(MSG_INTERRUPT)", "S_MOVEREL": "s_movrels_b32 s22, s24",
        "LDS add-TID": "ds_write_addtid_b32 v0", "global with LDS=1": "global_load_lds_dword v112, s[4:5]",
        "scratch with LDS=1": "scratch_load_lds_dword off, s4",
    }.items():  # fmt: skip
        yield _both("m0", table(f"SALU writes M0; {what}"), _SET_M0, then, 1)
    yield _both(
        "trap",
        table("S_SETREG TRAPSTS; RFE"),
        "s_setreg_imm32_b32 hwreg(HW_REG_TRAPSTS, 0, 1), 0",
        "s_rfe_b64 s[20:21]",
        1,
    )


def _stores() -> Iterator[Twin]:
    load, valu = "ds_read_b32 v1, v112", "v_mov_b32_e32 v1, v110"
    for name, first in _STORES.items():
        yield _both("store_load", f"table 11: {name}; its data written", first, load, 1)
        yield _both("store", f"table 11: {name}; VALU writes its data", first, valu, 2)
    wide = "v_pk_mul_f32 v[0:1], v[4:5], v[6:7]"
    for dwords in (3, 4):
        first = f"buffer_store_dwordx{dwords} {_v(0, dwords)}, v112, s[8:11], s20 offen"
        yield _both("store_by_offset", "LLVM pull 197267: offset in an SGPR; VALU writes its data", first, wide, 1)
        yield _both("", "table 11: offset in an SGPR; its data written", first, load, 0)


def _vectors() -> Iterator[Twin]:
    table = "table 11: {}".format
    yield _both(
        "dpp",
        table("VALU writes VGPR; DPP reads it"),
        "v_mov_b32_e32 v0, v1",
        f"v_mov_b32_dpp v2, v0 row_shr:1 {_SHIFTED} bound_ctrl:1",
        2,
    )
    yield _both(
        "dpp_second",
        table("VALU writes VGPR; DPP reads it, src1"),
        "v_mov_b32_e32 v0, v1",
        f"v_add_f32_dpp v2, v3, v0 row_shr:1 {_SHIFTED} bound_ctrl:1",
        2,
    )
    yield _both(
        "exec_dpp",
        table("VALU writes EXEC; DPP"),
        _COMPARE_EXEC,
        f"v_mov_b32_dpp v2, v3 row_shr:1 {_SHIFTED} bound_ctrl:1",
        5,
    )
    yield _both(
        "scalar_vector",
        table("VALU writes VCC; VALU reads it as a constant (alias: 1)"),
        _COMPARE,
        "v_mov_b32_e32 v3, vcc_lo",
        2,
    )
    for name, first in _SCALAR_WRITERS.items():
        yield _both("scalar_vector", table(f"{name} writes SGPR; constant"), first, "v_mov_b32_e32 v3, s20", 2)
    yield _both(
        "scalar_vector", table("v_cmpx; VALU reads EXEC as a constant"), _COMPARE_EXEC, "v_mov_b32_e32 v3, exec_lo", 2
    )
    for then in ("v_readlane_b32 s22, v3, 1", "v_readfirstlane_b32 s22, v3", "v_writelane_b32 v3, s22, 1"):
        yield _both("exec_lane", table(f"v_cmpx; {then.split()[0]}"), _COMPARE_EXEC, then, 4)
    yield _both("", table("v_cmpx; other VALU"), _COMPARE_EXEC, "v_mov_b32_e32 v3, v4", 0)
    yield _both("lane", table("VALU writes VGPR; v_readlane"), "v_mov_b32_e32 v0, v1", "v_readlane_b32 s22, v0, 1", 1)
    sdwa = "v_mov_b32_sdwa v0, v1 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD"
    for name, first in {"SDWA": sdwa, "OPSEL": "v_cvt_pk_fp8_f32 v0, v1, v2 op_sel:[0,0,1]"}.items():
        yield _both("partial", table(f"{name} moves the result; VALU consumes it"), first, _READ, 1)
    for name in _TRANS:
        wide = 2 if name.endswith("64") else 1
        yield _both(
            "transcendental",
            f"table 12: {name}; VALU consumes it",
            f"{name}_e32 {_v(0, wide)}, {_v(2, wide)}",
            _READ,
            1,
        )
    yield _both("", "table 11: trans; trans consumes it", "v_exp_f32_e32 v0, v1", "v_log_f32_e32 v2, v0", 0)
    swaps = {
        "v_permlane32_swap": "v_permlane32_swap_b32_e32 v0, v3",
        "v_permlane16_swap": "v_permlane16_swap_b32_e32 v3, v0",
    }
    for name, then in swaps.items():
        yield Twin("permlane", table(f"VALU writes VGPR; {name}"), "v_mov_b32_e32 v0, v1", then, (None, 2))
        yield Twin("exec_permlane", table(f"V_CMPX; {name}"), _COMPARE_EXEC, then.replace("v0", "v5"), (None, 4))


def _operands() -> Iterator[Twin]:
    table = "tables 37, 38: {}".format
    write = "v_mov_b32_e32 v0, v110"
    for what, then in _FACTORS.items():
        yield _both("operand", table(f"VALU writes VGPR; {what}"), write, then, 2)
    yield _both("operand", table("VALU writes VGPR; MFMA, C"), write, _product(*_XDL[4], 64, 0), 2)
    first = "v_dot2_f32_f16 v0, v100, v101, v102"
    adding = "v_dot2c_f32_f16_e32 v0, v100, v101"
    yield _both("", table("dot product; the same opcode adds to it"), adding, adding, 0)
    yield _both("dot", table("dot product; the same opcode, A or B"), first, "v_dot2_f32_f16 v104, v0, v101, v102", 3)
    for what, then in {
        "another opcode reads it": _READ, "another opcode writes it": _WRITE, "MFMA": _FACTORS["MFMA, A"],
        "VM": _MEMORY["VM"], "LDS": _MEMORY["LDS"], "FLAT": _MEMORY["FLAT"],
    }.items():  # fmt: skip
        yield _both("dot", table(f"dot product; {what}"), first, then, 3)
    yield _both("exec_matrix", table("V_CMPX; V_MFMA"), _COMPARE_EXEC, _product(*_XDL[4], 64, 64), 4)


def _products() -> Iterator[Twin]:
    table = "tables 37, 38: {}".format
    for passes, form in _XDL.items():
        first, of = _product(*form, 0, 32), f"XDL of {passes} passes"
        exact = 2 if passes == 2 else 0
        yield _both("forwarded" if exact else "", table(f"{of}; C exactly same"), first, _product(*form, 64, 0), exact)
        over = (passes + 1, passes + 2)
        yield Twin("overlap", table(f"{of}; XDL reads C, overlapped"), first, _product(*_XDL[4], 64, 2), over)
        single = over if passes > 2 else (3, 3)
        rule = "overlap" if passes > 2 else "short_overlap"
        yield Twin(rule, table(f"{of}; SGEMM reads C"), first, _product(*_SINGLE[8], 64, 0), single)
        yield Twin(rule, table(f"{of}; DGEMM reads C"), first, _product(*_SMALL, 64, 0), single)
        done = (passes + 3, passes + 4) if passes > 2 else (5, 5)
        rule = "result" if passes > 2 else "short_result"
        for what, then in (_FACTORS | _MEMORY).items():
            yield Twin(rule, table(f"{of}; {what}"), first, then, done)
        yield Twin(rule, table(f"{of}; VALU reads"), first, _READ, done)
        yield Twin(rule, table(f"{of}; VALU writes"), first, _WRITE, done)
        yield _both("overwrite", table(f"{of}; VALU writes C"), first, "v_mov_b32_e32 v32, v110", passes - 1)
    sparse, same = "v_smfmac_f32_16x16x32_f16 v[0:3], v[100:101], v[104:107], v108", "V_SMFMA"
    yield _both("", table(f"{same}; {same} of as many passes"), sparse, sparse, 0)
    yield Twin("overlap", table(f"{same}; XDL reads C, overlapped"), sparse, _product(*_XDL[4], 64, 2), (5, 6))
    yield Twin("result", table(f"{same}; VALU reads"), sparse, _READ, (7, 8))
    short = _product(*_XDL[2], 0, 32)
    yield Twin("unequal", table("XDL of 2 passes; C exactly same, 4 passes"), short, _product(*_XDL[4], 64, 0), (3, 4))
    narrow, wide = (
        f"v_mfma_f32_16x16x128_f8f6f4 v[{to}:{to + 3}], v[100:{last}], v[108:{last + 8}], v[0:3]{more}"
        for to, last, more in ((0, 103, " cbsz:4 blgp:4"), (64, 107, ""))
    )
    yield Twin("unequal", table("XDL of 4 passes (fp4); C exactly same, 8 passes (fp8)"), narrow, wide, (None, 6))
    yield Twin(
        "unequal",
        table("XDL of 8 passes (fp8); C exactly same, 4 passes (fp4)"),
        wide.replace("v[64:67]", "v[0:3]"),
        narrow,
        (None, 10),
    )


def _single_products() -> Iterator[Twin]:
    table = "tables 37, 38: {}".format
    for passes, form in _SINGLE.items():
        first, of = _product(*form, 0, 32), f"SGEMM of {passes} passes"
        exact = 2 if passes == 2 else 0
        yield _both("forwarded" if exact else "", table(f"{of}; C exactly same"), first, _product(*form, 64, 0), exact)
        yield _both(
            "single_overlap", table(f"{of}; SGEMM reads C, overlapped"), first, _product(*_SINGLE[8], 64, 2), passes
        )
        yield _both(
            "single_overlap", table(f"{of}; DGEMM reads C, overlapped"), first, _product(*_SMALL, 64, 2), passes
        )
        yield _both("", table(f"{of}; XDL reads C, overlapped"), first, _product(*_XDL[4], 64, 2), 0)
        for what, then in (_FACTORS | _MEMORY).items():
            yield _both("single_result", table(f"{of}; {what}"), first, then, passes + 2)
        yield _both("single_result", table(f"{of}; VALU reads"), first, _READ, passes + 2)
        yield _both("single_result", table(f"{of}; VALU writes"), first, _WRITE, passes + 2)


def _double_products() -> Iterator[Twin]:
    table = "tables 37, 38: {}".format
    for form, name, reads, memory, sums in (
        (_LARGE, "large", (11, 19), 18, (9, 17)), (_SMALL, "small", (6, 6), 9, (4, 4)),
    ):  # fmt: skip
        first, of = _product(*form, 0, 32), f"{form[0]}"
        exact = 0 if name == "large" else 4
        rule = "" if name == "large" else "double_small_sum"
        yield _both(rule, table(f"{of}; C exactly same"), first, _product(*form, 64, 0), exact)
        yield Twin(
            f"double_{name}_sum", table(f"{of}; SGEMM reads C, overlapped"), first, _product(*_SINGLE[8], 64, 0), sums
        )
        if name == "large":
            yield Twin(
                "double_large_sum", table(f"{of}; DGEMM reads C, overlapped"), first, _product(*_LARGE, 64, 2), sums
            )
        yield _both("", table(f"{of}; XDL reads C, overlapped"), first, _product(*_XDL[4], 64, 0), 0)
        for what, then in _FACTORS.items():
            yield Twin(f"double_{name}", table(f"{of}; {what}"), first, then, reads)
        yield Twin(f"double_{name}", table(f"{of}; VALU reads"), first, _READ, reads)
        over = "double_overwrite" if name == "large" else "double_small"
        yield Twin(over, table(f"{of}; VALU writes"), first, _WRITE, reads)
        for what, then in _MEMORY.items():
            yield _both(f"double_{name}_memory", table(f"{of}; {what}"), first, then, memory)


def _llvm_alone() -> Iterator[Twin]:
    said = "LLVM: {}".format
    for name, first in _SCALAR_WRITERS.items():
        if "21]" in first:
            yield _both(
                "mask",
                said(f"{name} writes SGPR; mask (manual: 0)"),
                first,
                "v_cndmask_b32_e64 v3, v4, v5, s[20:21]",
                2,
            )
    yield _both(
        "mask", said("VALU writes VCC; carry (manual: 0)"), _COMPARE, "v_addc_co_u32_e32 v3, vcc, v4, v5, vcc", 2
    )
    yield _both("exec_memory", said("v_cmpx; VMEM obeys EXEC"), _COMPARE_EXEC, "global_load_dword v3, v4, s[4:5]", 5)
    yield _both(
        "first_lane",
        said("VALU writes VGPR; v_readfirstlane"),
        "v_mov_b32_e32 v0, v1",
        "v_readfirstlane_b32 s22, v0",
        1,
    )
    sdwa = "v_mov_b32_sdwa v0, v1 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD"
    yield _both("partial_over", said("SDWA moves the result; VALU writes it"), sdwa, _WRITE, 1)
    fp4 = "v_cvt_scalef32_sr_pk_fp4_f32 v0, v[2:3], v4, v5"
    yield Twin("partial", said("fp4 by chance, whatever its op_sel; VALU reads it"), fp4, _READ, (None, 1))
    yield _both("packed", said("packed instruction; VALU reads it"), "v_pk_add_f32 v[0:1], v[2:3], v[4:5]", _READ, 1)
    yield _both("packed", said("packed instruction; VALU writes it"), "v_pk_add_f16 v0, v2, v3", _WRITE, 1)
    shifted = f"v_mov_b32_dpp v2, v0 row_shr:1 {_SHIFTED} bound_ctrl:1"
    waited = "ds_read_b32 v0, v112\ns_waitcnt lgkmcnt(0)"
    yield _both("dpp_other", said("a load; DPP reads it, 2 with its wait"), waited, shifted, 1)
    yield _both(
        "dpp_other",
        said("VALU writes VGPR; lanes of DPP keep it"),
        "v_mov_b32_e32 v0, v1",
        f"v_mov_b32_dpp v0, v2 row_shr:1 {_SHIFTED}",
        2,
    )
    yield _both(
        "",
        said("VALU writes VGPR; no lane of DPP keeps it"),
        "v_mov_b32_e32 v0, v1",
        f"v_mov_b32_dpp v0, v2 quad_perm:[1,0,3,2] {_SHIFTED}",
        0,
    )
    yield _both(
        "m0_other",
        said("SALU writes M0; buffer load to LDS"),
        _SET_M0,
        "buffer_load_dword v112, s[8:11], 0 offen lds",
        1,
    )
    yield _both("m0_other", said("SALU writes M0; trace data"), _SET_M0, "s_ttracedata", 1)
    for passes, form in _XDL.items():
        done = (passes + 3, passes + 4) if passes > 2 else (5, 5)
        first, of = _product(*form, 0, 32), f"XDL of {passes} passes"
        yield Twin("load_over", said(f"{of}; a load writes its result"), first, "ds_read_b32 v0, v112", done)
        yield _both("load_over", said(f"{of}; a load writes C"), first, "ds_read_b32 v32, v112", passes - 1)
    for passes, form in _SINGLE.items():
        first = _product(*form, 0, 32)
        yield _both(
            "load_over",
            said(f"SGEMM of {passes} passes; a load writes its result"),
            first,
            "ds_read_b32 v0, v112",
            passes + 2,
        )
    yield _both(
        "load_over", said("small DGEMM; a load writes its result"), _product(*_SMALL, 0, 32), "ds_read_b32 v0, v112", 6
    )
    yield _both(
        "double_load_over",
        said("large DGEMM; a load writes its result"),
        _product(*_LARGE, 0, 32),
        "ds_read_b32 v0, v112",
        11,
    )
    for form in (_SMALL, _LARGE):
        yield _both(
            "double_fma",
            said("DGEMM; v_fma_f64"),
            _product(*form, 0, 32),
            "v_fma_f64 v[64:65], v[66:67], v[68:69], v[70:71]",
            2,
        )
    yield _both(
        "single_forwarded",
        said("SGEMM of 2 passes; XDL, C exactly same"),
        _product(*_SINGLE[2], 0, 32),
        _product(*_XDL[4], 64, 0),
        2,
    )
    other = "v_mfma_f32_16x16x16_bf16 v[64:67], v[100:101], v[104:105], v[0:3]"
    yield _both(
        "different", "LLVM pull 218363: another MFMA of 4 passes, C exactly same", _product(*_XDL[4], 0, 32), other, 5
    )


def proved(text: str, arch: str) -> Verdict:
    """The verdict about a kernel of a few instructions."""
    return judged(f"{text}\n{WAIT_FOR_ALL}", arch=arch, waves=1)


def page() -> str:
    """The whole page."""
    return "\n".join((_HEAD, *_table(), ""))


def _table() -> Iterator[str]:
    yield "| rule | source | row | first | then | gfx942 | gfx950 | one fewer | enough |"
    yield "|---|---|---|---|---|---:|---:|---|---|"
    machines = {arch: architecture_named(arch) for arch in ARCHITECTURES}
    for twin in twins():
        said: dict[bool, set[str]] = {True: set(), False: set()}
        source = "-"
        for arch, architecture in machines.items():
            states = twin.states[_RULE[arch]]
            assert architecture is not None
            if states is None:
                continue
            if twin.rule:
                source = SOURCES[getattr(architecture.hazards, twin.rule).confidence]
            for fewer in (True, False):
                if states >= fewer:
                    said[fewer].add(proved(twin.text(arch, fewer=fewer), arch).status.value)
        counts = ("-" if each is None else str(each) for each in twin.states)
        words = (" and ".join(sorted(said[fewer])) or "-" for fewer in (True, False))
        cells = (
            twin.rule or "-",
            source,
            twin.asked,
            f"`{twin.first}`".replace("\n", "; "),
            f"`{twin.then}`",
            *counts,
            *words,
        )
        yield "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    print(page(), end="")
