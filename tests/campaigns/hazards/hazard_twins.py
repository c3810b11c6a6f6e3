"""Twins for every rule of wait states: one kernel breaks it by one, the other keeps it.

    python -m benchmarks.hazard_twins > docs/wait_states.md

The numbers stand here a second time, as AMD's manuals and LLVM have them, and not in terms of `rota.targets`.  A test
judges all of them, by the walk over paths, by the interpreter and by the proof, and compares the page.
"""

from __future__ import annotations

from collections.abc import Iterator

from rota.prove.kernel_proof import Policies
from rota.prove.verdict import Verdict
from rota.targets.architecture import SOURCES
from rota.targets.registry import architecture_named
from tests.campaigns.hazards.hazard_rows import (
    ARCHITECTURES,
    COMPARE,
    COMPARE_EXEC,
    FACTORS,
    LARGE,
    MEMORY,
    READ,
    SCALAR_WRITERS,
    SET_M0,
    SHIFTED,
    SINGLE,
    SMALL,
    WRITE,
    XDL,
    Twin,
    both,
    modes_and_scalars,
    product,
    stores,
    vectors,
)  # fmt: skip
from tests.prove.written import judged

WAIT_FOR_ALL = "s_waitcnt vmcnt(0) lgkmcnt(0)"
_HEAD = """# Wait states, rule by rule

Made by `python -m benchmarks.hazard_twins`; a test keeps it up to date, and asks the interpreter as well.

For every row of AMD's tables (CDNA3 ISA manual, tables 11, 12 and 37; CDNA4, tables 11, 12 and 38; both read in public
transcriptions) and every rule that LLVM's hazard recogniser has for gfx940 and gfx950: two instructions, how many wait
states are due between them, and the proof's verdict where there is one fewer and where there are enough. *Rule* is the
name in `rota targets` and in a finding's evidence, which also says whose rule it is. A row that asks for 0 has no twin
that breaks it; *inconclusive* is a kernel with an instruction that the proof doesn't follow. Not among them: LLVM
breaks clauses of memory instructions where XNACK may replay them, which is no rule of these tables;
`buffer_store_lds_dword`, which these machines don't have.

Of CDNA3's table 37 the transcription lacks the rows of `V_MFMA_4x4x4_F64`: CDNA4's stand for them, and LLVM has the
same numbers. For an XDL that reads an SGEMM's result as C, overlapped, it has as many wait states as the SGEMM has
passes, where CDNA4's table and LLVM have 0 for both; 0 is kept here.

What LLVM 22 keeps in part or not at all, although the manual asks for it: `unequal`, `overlap` and `short_overlap`
where the range is the same, `single_overlap` likewise, `dot` before an MFMA, `double_overwrite` on gfx950,
`store_load`, `vskip`, `vskip_read`, `zero`.
"""


def twins() -> Iterator[Twin]:
    """All of them: AMD's tables in their order, then what LLVM alone keeps, and what was measured."""
    yield from modes_and_scalars()
    yield from stores()
    yield from vectors()
    yield from _operands()
    yield from _products()
    yield from _single_products()
    yield from _double_products()
    yield from _llvm_alone()


def _operands() -> Iterator[Twin]:
    table = "tables 37, 38: {}".format
    write = "v_mov_b32_e32 v0, v110"
    for what, then in FACTORS.items():
        yield both("operand", table(f"VALU writes VGPR; {what}"), write, then, 2)
    yield both("operand", table("VALU writes VGPR; MFMA, C"), write, product(*XDL[4], 64, 0), 2)
    first = "v_dot2_f32_f16 v0, v100, v101, v102"
    adding = "v_dot2c_f32_f16_e32 v0, v100, v101"
    yield both("", table("dot product; the same opcode adds to it"), adding, adding, 0)
    yield both("dot", table("dot product; the same opcode, A or B"), first, "v_dot2_f32_f16 v104, v0, v101, v102", 3)
    for what, then in {
        "another opcode reads it": READ, "another opcode writes it": WRITE, "MFMA": FACTORS["MFMA, A"],
        "VM": MEMORY["VM"], "LDS": MEMORY["LDS"], "FLAT": MEMORY["FLAT"],
    }.items():  # fmt: skip
        yield both("dot", table(f"dot product; {what}"), first, then, 3)
    yield both("exec_matrix", table("V_CMPX; V_MFMA"), COMPARE_EXEC, product(*XDL[4], 64, 64), 4)


def _products() -> Iterator[Twin]:
    table = "tables 37, 38: {}".format
    for passes, form in XDL.items():
        first, of = product(*form, 0, 32), f"XDL of {passes} passes"
        exact = 2 if passes == 2 else 0
        yield both("forwarded" if exact else "", table(f"{of}; C exactly same"), first, product(*form, 64, 0), exact)
        over = (passes + 1, passes + 2)
        yield Twin("overlap", table(f"{of}; XDL reads C, overlapped"), first, product(*XDL[4], 64, 2), over)
        single = over if passes > 2 else (3, 3)
        rule = "overlap" if passes > 2 else "short_overlap"
        yield Twin(rule, table(f"{of}; SGEMM reads C"), first, product(*SINGLE[8], 64, 0), single)
        yield Twin(rule, table(f"{of}; DGEMM reads C"), first, product(*SMALL, 64, 0), single)
        done = (passes + 3, passes + 4) if passes > 2 else (5, 5)
        rule = "result" if passes > 2 else "short_result"
        for what, then in (FACTORS | MEMORY).items():
            yield Twin(rule, table(f"{of}; {what}"), first, then, done)
        yield Twin(rule, table(f"{of}; VALU reads"), first, READ, done)
        yield Twin(rule, table(f"{of}; VALU writes"), first, WRITE, done)
        yield both("overwrite", table(f"{of}; VALU writes C"), first, "v_mov_b32_e32 v32, v110", passes - 1)
    sparse, same = "v_smfmac_f32_16x16x32_f16 v[0:3], v[100:101], v[104:107], v108", "V_SMFMA"
    yield both("", table(f"{same}; {same} of as many passes"), sparse, sparse, 0)
    yield Twin("overlap", table(f"{same}; XDL reads C, overlapped"), sparse, product(*XDL[4], 64, 2), (5, 6))
    yield Twin("result", table(f"{same}; VALU reads"), sparse, READ, (7, 8))
    short = product(*XDL[2], 0, 32)
    yield Twin("unequal", table("XDL of 2 passes; C exactly same, 4 passes"), short, product(*XDL[4], 64, 0), (3, 4))
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
    for passes, form in SINGLE.items():
        first, of = product(*form, 0, 32), f"SGEMM of {passes} passes"
        exact = 2 if passes == 2 else 0
        yield both("forwarded" if exact else "", table(f"{of}; C exactly same"), first, product(*form, 64, 0), exact)
        yield both(
            "single_overlap", table(f"{of}; SGEMM reads C, overlapped"), first, product(*SINGLE[8], 64, 2), passes
        )
        yield both("single_overlap", table(f"{of}; DGEMM reads C, overlapped"), first, product(*SMALL, 64, 2), passes)
        yield both("", table(f"{of}; XDL reads C, overlapped"), first, product(*XDL[4], 64, 2), 0)
        for what, then in (FACTORS | MEMORY).items():
            yield both("single_result", table(f"{of}; {what}"), first, then, passes + 2)
        yield both("single_result", table(f"{of}; VALU reads"), first, READ, passes + 2)
        yield both("single_result", table(f"{of}; VALU writes"), first, WRITE, passes + 2)


def _double_products() -> Iterator[Twin]:
    table = "tables 37, 38: {}".format
    for form, name, reads, memory, sums in (
        (LARGE, "large", (11, 19), 18, (9, 17)), (SMALL, "small", (6, 6), 9, (4, 4)),
    ):  # fmt: skip
        first, of = product(*form, 0, 32), f"{form[0]}"
        exact = 0 if name == "large" else 4
        rule = "" if name == "large" else "double_small_sum"
        yield both(rule, table(f"{of}; C exactly same"), first, product(*form, 64, 0), exact)
        yield Twin(
            f"double_{name}_sum", table(f"{of}; SGEMM reads C, overlapped"), first, product(*SINGLE[8], 64, 0), sums
        )
        if name == "large":
            yield Twin(
                "double_large_sum", table(f"{of}; DGEMM reads C, overlapped"), first, product(*LARGE, 64, 2), sums
            )
        yield both("", table(f"{of}; XDL reads C, overlapped"), first, product(*XDL[4], 64, 0), 0)
        for what, then in FACTORS.items():
            yield Twin(f"double_{name}", table(f"{of}; {what}"), first, then, reads)
        yield Twin(f"double_{name}", table(f"{of}; VALU reads"), first, READ, reads)
        over = "double_overwrite" if name == "large" else "double_small"
        yield Twin(over, table(f"{of}; VALU writes"), first, WRITE, reads)
        for what, then in MEMORY.items():
            yield both(f"double_{name}_memory", table(f"{of}; {what}"), first, then, memory)


def _llvm_alone() -> Iterator[Twin]:
    said = "LLVM: {}".format
    for name, first in SCALAR_WRITERS.items():
        if "21]" in first:
            yield both(
                "mask",
                said(f"{name} writes SGPR; mask (manual: 0)"),
                first,
                "v_cndmask_b32_e64 v3, v4, v5, s[20:21]",
                2,
            )
    yield both("mask", said("VALU writes VCC; carry (manual: 0)"), COMPARE, "v_addc_co_u32_e32 v3, vcc, v4, v5, vcc", 2)
    yield both("exec_memory", said("v_cmpx; VMEM obeys EXEC"), COMPARE_EXEC, "global_load_dword v3, v4, s[4:5]", 5)
    yield both(
        "first_lane",
        said("VALU writes VGPR; v_readfirstlane"),
        "v_mov_b32_e32 v0, v1",
        "v_readfirstlane_b32 s22, v0",
        1,
    )
    sdwa = "v_mov_b32_sdwa v0, v1 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD"
    yield both("partial_over", said("SDWA moves the result; VALU writes it"), sdwa, WRITE, 1)
    fp4 = "v_cvt_scalef32_sr_pk_fp4_f32 v0, v[2:3], v4, v5"
    yield Twin("partial", said("fp4 by chance, whatever its op_sel; VALU reads it"), fp4, READ, (None, 1))
    yield both("packed", said("packed instruction; VALU reads it"), "v_pk_add_f32 v[0:1], v[2:3], v[4:5]", READ, 1)
    yield both("packed", said("packed instruction; VALU writes it"), "v_pk_add_f16 v0, v2, v3", WRITE, 1)
    shifted = f"v_mov_b32_dpp v2, v0 row_shr:1 {SHIFTED} bound_ctrl:1"
    waited = "ds_read_b32 v0, v112\ns_waitcnt lgkmcnt(0)"
    yield both("dpp_other", said("a load; DPP reads it, 2 with its wait"), waited, shifted, 1)
    yield both(
        "dpp_other",
        said("VALU writes VGPR; lanes of DPP keep it"),
        "v_mov_b32_e32 v0, v1",
        f"v_mov_b32_dpp v0, v2 row_shr:1 {SHIFTED}",
        2,
    )
    yield both(
        "",
        said("VALU writes VGPR; no lane of DPP keeps it"),
        "v_mov_b32_e32 v0, v1",
        f"v_mov_b32_dpp v0, v2 quad_perm:[1,0,3,2] {SHIFTED}",
        0,
    )
    yield both(
        "m0_other",
        said("SALU writes M0; buffer load to LDS"),
        SET_M0,
        "buffer_load_dword v112, s[8:11], 0 offen lds",
        1,
    )
    yield both("m0_other", said("SALU writes M0; trace data"), SET_M0, "s_ttracedata", 1)
    for passes, form in XDL.items():
        done = (passes + 3, passes + 4) if passes > 2 else (5, 5)
        first, of = product(*form, 0, 32), f"XDL of {passes} passes"
        yield Twin("load_over", said(f"{of}; a load writes its result"), first, "ds_read_b32 v0, v112", done)
        yield both("load_over", said(f"{of}; a load writes C"), first, "ds_read_b32 v32, v112", passes - 1)
    for passes, form in SINGLE.items():
        first = product(*form, 0, 32)
        yield both(
            "load_over",
            said(f"SGEMM of {passes} passes; a load writes its result"),
            first,
            "ds_read_b32 v0, v112",
            passes + 2,
        )
    yield both(
        "load_over", said("small DGEMM; a load writes its result"), product(*SMALL, 0, 32), "ds_read_b32 v0, v112", 6
    )
    yield both(
        "double_load_over",
        said("large DGEMM; a load writes its result"),
        product(*LARGE, 0, 32),
        "ds_read_b32 v0, v112",
        11,
    )
    for form in (SMALL, LARGE):
        yield both(
            "double_fma",
            said("DGEMM; v_fma_f64"),
            product(*form, 0, 32),
            "v_fma_f64 v[64:65], v[66:67], v[68:69], v[70:71]",
            2,
        )
    yield both(
        "single_forwarded",
        said("SGEMM of 2 passes; XDL, C exactly same"),
        product(*SINGLE[2], 0, 32),
        product(*XDL[4], 64, 0),
        2,
    )
    other = "v_mfma_f32_16x16x16_bf16 v[64:67], v[100:101], v[104:105], v[0:3]"
    yield both(
        "different", "LLVM pull 218363: another MFMA of 4 passes, C exactly same", product(*XDL[4], 0, 32), other, 5
    )


def proved(text: str, arch: str) -> Verdict:
    """The verdict about a kernel of a few instructions; where its LDS addresses lie is not the question here."""
    return judged(f"{text}\n{WAIT_FOR_ALL}", arch=arch, waves=1, policies=Policies(lds_in_bounds=True))


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
            states = twin.states[ARCHITECTURES.index(arch)]
            assert architecture is not None
            if states is None:
                continue
            if twin.rule:
                source = SOURCES[architecture.hazards[twin.rule].confidence]
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
