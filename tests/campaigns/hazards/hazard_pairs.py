"""Pairs of instructions around each hazard: takes an architecture, gives functions in LLVM's machine IR to run llc on.

A function is one instruction, then another that shares a register with it; llc inserts the wait states that are due
between them, or none.  Registers: results in v[32:63], what is added to in v[64:95], factors in v[0:31].
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import NamedTuple

from rota.isa.disassembly import Instruction, read_listing
from rota.targets.architecture import ANY, Architecture, MatrixForm

_RESULT, _SUM, _LEFT, _RIGHT, _INDEX = 32, 64, 0, 16, 30
_BITS = {"f16": 16, "bf16": 16, "i8": 8, "fp8": 8, "bf8": 8, "f32": 32, "xf32": 32, "f64": 64, ANY: 8}
_MODE = "implicit $mode, implicit $exec"
_SHORT = {
    "MODE": _MODE, "EXEC": "implicit $exec", "RSRC": "$sgpr8_sgpr9_sgpr10_sgpr11", "ZEROS": "0, 0, 0, 0, 0",
    "V4": "$vgpr32_vgpr33_vgpr34_vgpr35", "C4": "$vgpr64_vgpr65_vgpr66_vgpr67", "VCC": "implicit $mode, implicit $vcc",
}  # fmt: skip


class Pair(NamedTuple):
    """Two instructions in machine IR, and what they are called."""

    name: str
    first: str
    then: str


def regs(file: str, first: int, count: int) -> str:
    """A tuple of registers as machine IR writes it."""
    return "$" + "_".join(f"{file}{each}" for each in range(first, first + count))


def v(first: int, count: int = 1) -> str:
    """VGPRs."""
    return regs("vgpr", first, count)


def matrix(
    form: MatrixForm, *, result: int = _RESULT, total: int = _SUM, left: int = _LEFT, narrow: bool = False
) -> str:
    """A matrix instruction with its registers where they are asked for."""
    width = 64 if form.total == "f64" else 32
    count = form.rows * form.columns * form.blocks // 64 * width // 32
    a, b = (
        form.rows * form.depth * form.blocks * bits // 64 // 32 // (2 if form.sparse and side == 0 else 1)
        for side, bits in enumerate((_BITS[form.left], _BITS[form.right]))
    )
    base = _machine_name(form)
    if form.sparse:
        return (
            f"{v(result, count)} = {base}_e64 {v(left, a)}, {v(_RIGHT, b)}, {v(_INDEX)}, 0, 0,"
            f" {v(result, count)}(tied-def 0), {_MODE}"
        )
    if form.left == ANY:
        a, b, text = (4, 4, "f4_f4") if narrow else (8, 8, "f8_f8")
        code = "4, 4" if narrow else "0, 0"
        scales = f"{v(_INDEX)}, {v(_INDEX + 1)}, 0, 0, " if form.scaled else ""
        return (
            f"{v(result, count)} = {base}_{text}_vgprcd_e64 {v(left, a)}, {v(_RIGHT, b)}, {v(total, count)}, {code},"
            f" {scales}{_MODE}"
        )
    return f"{v(result, count)} = {base}_vgprcd_e64 {v(left, a)}, {v(_RIGHT, b)}, {v(total, count)}, 0, 0, 0, {_MODE}"


def _machine_name(form: MatrixForm) -> str:
    """What LLVM calls it inside: older instructions keep the names of gfx908 and gfx90a."""
    family = "V_SMFMAC" if form.sparse else "V_MFMA_SCALE" if form.scaled else "V_MFMA"
    shape = f"{form.rows}X{form.columns}X{form.depth}"
    total = form.total.upper()
    if form.left == ANY:
        return f"{family}_{total}_{shape}_F8F6F4"
    if form.left != form.right or form.left in {"fp8", "bf8"}:
        return f"{family}_{total}_{shape}_{form.left.upper()}_{form.right.upper()}"
    kind = form.left.upper()
    doubled = {"16x16x32": {"f16", "bf16"}, "32x32x16": {"f16", "bf16"}, "16x16x64": {"i8"}, "32x32x32": {"i8"}}
    if form.sparse or form.left in doubled.get(shape.lower(), set()):
        return f"{family}_{total}_{shape}_{kind}"
    return f"{family}_{total}_{shape}{kind}" + ("_1K" if form.left == "bf16" else "")


# What may follow a vector result in v32, and in v32 and on; {r} is the first row of a pair of registers in use.
READERS = {
    "valu": "$vgpr100 = V_MOV_B32_e32 $vgpr{r}, EXEC",
    "valu writes": "$vgpr{r} = V_MOV_B32_e32 $vgpr100, EXEC",
    "trans": "$vgpr100 = V_EXP_F32_e64 0, $vgpr{r}, 0, 0, MODE",
    "wide valu": "$vgpr100_vgpr101 = V_PK_ADD_F32 8, {two}, 8, {two}, ZEROS, MODE",
    "fma64": "$vgpr100_vgpr101 = V_FMA_F64_e64 0, {two}, 0, {two}, 0, {two}, 0, 0, MODE",
    "other fma64": "$vgpr100_vgpr101 = V_FMA_F64_e64 0, $vgpr102_vgpr103, 0, $vgpr102_vgpr103, 0, $vgpr102_vgpr103,"
    " 0, 0, MODE",
    "mac": "$vgpr{r} = V_FMAC_F32_e32 $vgpr100, $vgpr101, $vgpr{r}, MODE",
    "dpp": "$vgpr100 = V_MOV_B32_dpp $vgpr100, $vgpr{r}, 273, 15, 15, 0, EXEC",
    "dpp old": "$vgpr{r} = V_MOV_B32_dpp $vgpr{r}, $vgpr100, 273, 15, 15, 0, EXEC",
    "sdwa": "$vgpr100 = V_MOV_B32_sdwa 0, $vgpr{r}, 0, 5, 0, 4, EXEC",
    "store": "GLOBAL_STORE_DWORD $vgpr102_vgpr103, $vgpr{r}, 0, 0, EXEC",
    "store x4": "GLOBAL_STORE_DWORDX4 $vgpr102_vgpr103, {four}, 0, 0, EXEC",
    "store address": "GLOBAL_STORE_DWORD {two}, $vgpr100, 0, 0, EXEC",
    "buffer store": "BUFFER_STORE_DWORDX2_OFFEN_exact {two}, $vgpr100, RSRC, 0, 0, 0, 0, EXEC",
    "load over": "$vgpr{r} = GLOBAL_LOAD_DWORD $vgpr102_vgpr103, 0, 0, EXEC",
    "dma address": "BUFFER_LOAD_DWORD_LDS_OFFEN $vgpr{r}, RSRC, 0, 0, 0, 0, EXEC, implicit $m0",
    "ds write": "DS_WRITE_B64_gfx9 $vgpr100, {two}, 0, 0, EXEC",
    "ds read over": "$vgpr{r} = DS_READ_B32_gfx9 $vgpr100, 0, 0, EXEC",
    "ds address": "$vgpr100 = DS_READ_B32_gfx9 $vgpr{r}, 0, 0, EXEC",
    "readlane": "$sgpr20 = V_READLANE_B32 $vgpr{r}, 3, EXEC",
    "readfirstlane": "$sgpr20 = V_READFIRSTLANE_B32 $vgpr{r}, EXEC",
    "writelane": "$vgpr{r} = V_WRITELANE_B32 $sgpr20, 3, $vgpr{r}",
    "dot": "$vgpr100 = V_DOT2_F32_F16 8, $vgpr{r}, 8, $vgpr101, 8, $vgpr102, ZEROS, MODE",
    "dot sum": "$vgpr100 = V_DOT2_F32_F16 8, $vgpr101, 8, $vgpr102, 8, $vgpr{r}, ZEROS, MODE",
    "dotc sum": "$vgpr{r} = V_DOT2C_F32_F16_e32 $vgpr101, $vgpr102, $vgpr{r}, MODE",
    "unrelated": "$vgpr100 = V_MOV_B32_e32 $vgpr101, EXEC",
    "acc write": "$agpr0 = V_ACCVGPR_WRITE_B32_e64 $vgpr{r}, EXEC",
}  # fmt: skip
SWAPS = {
    "permlane32": "$vgpr{r}, $vgpr101 = V_PERMLANE32_SWAP_B32_e32 $vgpr{r}, $vgpr101, EXEC",
    "permlane16": "$vgpr101, $vgpr{r} = V_PERMLANE16_SWAP_B32_e32 $vgpr101, $vgpr{r}, EXEC",
}
# What writes v32, and v33 with it where it is wide.
WRITERS = {
    "valu": "$vgpr32 = V_MOV_B32_e32 $vgpr100, EXEC",
    "valu e64": "$vgpr32 = V_ADD_U32_e64 $vgpr100, $vgpr101, 0, EXEC",
    "exp": "$vgpr32 = V_EXP_F32_e64 0, $vgpr100, 0, 0, MODE",
    "log": "$vgpr32 = V_LOG_F32_e64 0, $vgpr100, 0, 0, MODE",
    "rcp": "$vgpr32 = V_RCP_F32_e64 0, $vgpr100, 0, 0, MODE",
    "rsq": "$vgpr32 = V_RSQ_F32_e64 0, $vgpr100, 0, 0, MODE",
    "sqrt": "$vgpr32 = V_SQRT_F32_e64 0, $vgpr100, 0, 0, MODE",
    "sin": "$vgpr32 = V_SIN_F32_e64 0, $vgpr100, 0, 0, MODE",
    "cos16": "$vgpr32 = V_COS_F16_e64 0, $vgpr100, 0, 0, MODE",
    "iflag": "$vgpr32 = V_RCP_IFLAG_F32_e64 0, $vgpr100, 0, 0, MODE",
    "rcp64": "$vgpr32_vgpr33 = V_RCP_F64_e64 0, $vgpr100_vgpr101, 0, 0, MODE",
    "frexp": "$vgpr32 = V_FREXP_MANT_F32_e64 0, $vgpr100, 0, 0, MODE",
    "packed": "$vgpr32_vgpr33 = V_PK_ADD_F32 8, $vgpr100_vgpr101, 8, $vgpr102_vgpr103, ZEROS, MODE",
    "packed low": "$vgpr32 = V_PK_ADD_F16 0, $vgpr100, 8, $vgpr101, ZEROS, MODE",
    "sdwa byte": "$vgpr32 = V_MOV_B32_sdwa 0, $vgpr100, 0, 1, 2, 4, EXEC, implicit $vgpr32(tied-def 0)",
    "sdwa dword": "$vgpr32 = V_MOV_B32_sdwa 0, $vgpr100, 0, 6, 0, 4, EXEC",
    "fp8 low": "$vgpr32 = V_CVT_PK_FP8_F32_e64 0, $vgpr100, 0, $vgpr101, $vgpr32, 0, MODE",
    "fp8 high": "$vgpr32 = V_CVT_PK_FP8_F32_e64 8, $vgpr100, 0, $vgpr101, $vgpr32, 8, MODE",
    "dot": "$vgpr32 = V_DOT2_F32_F16 8, $vgpr100, 8, $vgpr101, 8, $vgpr102, ZEROS, MODE",
    "dotc": "$vgpr32 = V_DOT2C_F32_F16_e32 $vgpr101, $vgpr102, $vgpr32, MODE",
    "dpp": "$vgpr32 = V_MOV_B32_dpp $vgpr32, $vgpr100, 273, 15, 15, 0, EXEC",
    "load": "$vgpr32 = GLOBAL_LOAD_DWORD $vgpr102_vgpr103, 0, 0, EXEC",
    "ds read": "$vgpr32 = DS_READ_B32_gfx9 $vgpr100, 0, 0, EXEC",
    "acc read": "$vgpr32 = V_ACCVGPR_READ_B32_e64 $agpr3, EXEC",
    "wide store": "GLOBAL_STORE_DWORDX4 $vgpr102_vgpr103, V4, 0, 0, EXEC",
    "store of two": "GLOBAL_STORE_DWORDX2 $vgpr102_vgpr103, $vgpr32_vgpr33, 0, 0, EXEC",
    "store of three": "SCRATCH_STORE_DWORDX3_SADDR $vgpr32_vgpr33_vgpr34, $sgpr32, 0, 0, EXEC, implicit $flat_scr",
    "buffer store": "BUFFER_STORE_DWORDX4_OFFEN_exact V4, $vgpr100, RSRC, 0, 0, 0, 0, EXEC",
    "buffer store by register": "BUFFER_STORE_DWORDX4_OFFEN_exact V4, $vgpr100, RSRC, $sgpr20, 0, 0, 0, EXEC",
}  # fmt: skip
SCALAR_WRITERS = {
    "cmp": "$sgpr4_sgpr5 = V_CMP_EQ_U32_e64 $vgpr0, $vgpr1, EXEC",
    "cmp vcc": "V_CMP_EQ_U32_e32 $vgpr0, $vgpr1, implicit-def $vcc, EXEC",
    "cmpx": "V_CMPX_EQ_U32_e32 $vgpr0, $vgpr1, implicit-def $exec, implicit-def $vcc, EXEC",
    "readlane": "$sgpr4 = V_READLANE_B32 $vgpr0, 3, EXEC",
    "readfirstlane": "$sgpr4 = V_READFIRSTLANE_B32 $vgpr0, EXEC",
    "add carry": "$vgpr32, $sgpr4_sgpr5 = V_ADD_CO_U32_e64 $vgpr0, $vgpr1, 0, EXEC",
    "div scale": "$vgpr32, $vcc = V_DIV_SCALE_F32_e64 0, $vgpr0, 0, $vgpr0, 0, $vgpr2, 0, 0, MODE",
    "salu": "$sgpr4 = S_MOV_B32 0",
    "salu m0": "$m0 = S_MOV_B32 0",
    "salu add m0": "$m0 = S_ADD_I32 $m0, 4, implicit-def $scc",
    "salu exec": "$exec = S_MOV_B64 -1",
    "setreg": "S_SETREG_IMM32_B32 1, 2049, implicit-def $mode, implicit $mode",
}  # fmt: skip
SCALAR_READERS = {
    "valu": "$vgpr100 = V_MOV_B32_e32 $sgpr4, EXEC",
    "valu vcc": "$vgpr100 = V_MOV_B32_e32 $vcc_lo, EXEC",
    "valu exec": "$vgpr100 = V_MOV_B32_e32 $exec_lo, EXEC",
    "valu m0": "$vgpr100 = V_MOV_B32_e32 $m0, EXEC",
    "select": "$vgpr100 = V_CNDMASK_B32_e64 0, $vgpr0, 0, $vgpr1, $sgpr4_sgpr5, EXEC",
    "select vcc": "$vgpr100 = V_CNDMASK_B32_e32 $vgpr0, $vgpr1, EXEC, implicit $vcc",
    "add carry": "$vgpr100, $sgpr20_sgpr21 = V_ADDC_U32_e64 $vgpr0, $vgpr1, $sgpr4_sgpr5, 0, EXEC",
    "fmas": "$vgpr100 = V_DIV_FMAS_F32_e64 0, $vgpr0, 0, $vgpr1, 0, $vgpr2, 0, 0, VCC, EXEC",
    "fmas64": "$vgpr100_vgpr101 = V_DIV_FMAS_F64_e64 0, $vgpr0_vgpr1, 0, $vgpr2_vgpr3, 0, $vgpr0_vgpr1,"
    " 0, 0, VCC, EXEC",
    "readlane by": "$sgpr20 = V_READLANE_B32 $vgpr0, $sgpr4, EXEC",
    "writelane by": "$vgpr100 = V_WRITELANE_B32 0, $sgpr4, $vgpr100",
    "writelane of": "$vgpr100 = V_WRITELANE_B32 $sgpr4, 3, $vgpr100",
    "readlane": "$sgpr20 = V_READLANE_B32 $vgpr0, 1, EXEC",
    "readfirstlane": "$sgpr20 = V_READFIRSTLANE_B32 $vgpr0, EXEC",
    "dpp": "$vgpr100 = V_MOV_B32_dpp $vgpr100, $vgpr0, 273, 15, 15, 0, EXEC",
    "global by scalar": "$vgpr100 = GLOBAL_LOAD_DWORD_SADDR $sgpr4_sgpr5, $vgpr0, 0, 0, EXEC",
    "global": "$vgpr100 = GLOBAL_LOAD_DWORD $vgpr0_vgpr1, 0, 0, EXEC",
    "buffer by offset": "$vgpr100 = BUFFER_LOAD_DWORD_OFFEN $vgpr0, RSRC, $sgpr4, 0, 0, 0, EXEC",
    "buffer resource": "$vgpr100 = BUFFER_LOAD_DWORD_OFFEN $vgpr0, $sgpr4_sgpr5_sgpr6_sgpr7, 0, 0, 0, 0, EXEC",
    "dma": "BUFFER_LOAD_DWORD_LDS_OFFEN $vgpr0, RSRC, 0, 0, 0, 0, EXEC, implicit $m0",
    "global dma": "GLOBAL_LOAD_LDS_DWORD $vgpr0_vgpr1, 0, 0, EXEC, implicit $m0",
    "ds read": "$vgpr100 = DS_READ_B32_gfx9 $vgpr0, 0, 0, EXEC",
    "add tid": "DS_WRITE_ADDTID_B32 $vgpr0, 0, 0, implicit $m0, EXEC",
    "movrel": "$sgpr20 = S_MOVRELS_B32 $sgpr8, implicit $m0",
    "message": "S_SENDMSG 3, EXEC, implicit $m0",
    "getreg": "$sgpr20 = S_GETREG_B32 2049, implicit $mode",
    "getreg other": "$sgpr20 = S_GETREG_B32 2050, implicit $mode",
    "setreg": "S_SETREG_IMM32_B32 1, 2049, implicit-def $mode, implicit $mode",
    "matrix": "C4 = V_MFMA_F32_16X16X16F16_vgprcd_e64 $vgpr0_vgpr1, $vgpr2_vgpr3, C4, 0, 0, 0, MODE",
    "salu": "$sgpr20 = S_MOV_B32 $sgpr4",
}  # fmt: skip
CVT4 = {
    "fp4": "$vgpr32 = V_CVT_SCALEF32_PK_FP4_F32_e64 0, $vgpr100, 0, $vgpr101, 0, $vgpr102, $vgpr32, 0, MODE",
}  # fmt: skip


def pairs(architecture: Architecture) -> Iterator[Pair]:
    """All of them; those that only one architecture has are left to the assembler to refuse."""
    swaps = SWAPS if "permlane" in architecture.hazards else {}
    readers = {name: text.format(r=32, two=v(32, 2), four=v(32, 4)) for name, text in (READERS | swaps).items()}
    for first, text in (WRITERS | (CVT4 if swaps else {})).items():
        for then, other in readers.items():
            yield Pair(f"{first} to {then}", text, other)
        for form in architecture.matrix_forms[:1] + architecture.matrix_forms[5:6] + architecture.matrix_forms[23:28]:
            yield Pair(f"{first} to sum of {form.name}", text, matrix(form, result=0, total=32, left=128))
            yield Pair(f"{first} to factor of {form.name}", text, matrix(form, result=128, total=64, left=32))
            yield Pair(f"{first} to result of {form.name}", text, matrix(form, result=32, total=64, left=128))
    for first, text in SCALAR_WRITERS.items():
        for then, other in (SCALAR_READERS | {k: SWAPS[k].format(r=0) for k in swaps}).items():
            yield Pair(f"{first} to {then}", text, other)
    yield from _matrix_pairs(architecture, readers)


def _matrix_pairs(architecture: Architecture, readers: dict[str, str]) -> Iterator[Pair]:
    for form in architecture.matrix_forms:
        for narrow in {False, form.left == ANY}:
            text, name = matrix(form, narrow=narrow), form.name + " narrow" * narrow
            for then, other in readers.items():
                yield Pair(f"{name} to {then}", text, other)
            for then, template in READERS.items():
                if then in {"valu writes", "load over", "ds read over", "mac"}:
                    other = template.format(r=_SUM, two="", four="")
                    yield Pair(f"{name} to {then} of its sum", text, other)
            for then_form in _kinds(architecture):
                for what, places in (
                    ("same sum", {"total": 32}), ("sum further on", {"total": 34}), ("factor", {"left": 32}),
                    ("overwritten", {"result": 32, "total": 64}),
                ):  # fmt: skip
                    other = matrix(
                        then_form,
                        result=places.get("result", 128),
                        total=places.get("total", 64),
                        left=places.get("left", 160),
                    )
                    yield Pair(f"{name} to {what} of {then_form.name}", text, other)


def _kinds(architecture: Architecture) -> list[MatrixForm]:
    """One of each pipe and length."""
    seen: dict[tuple[object, int, bool, int], MatrixForm] = {}
    for form in architecture.matrix_forms:
        seen.setdefault((form.pipe, form.passes.value, form.sparse, form.rows), form)
    return list(seen.values())


def _full(text: str) -> str:
    return re.sub(r"\b(?:" + "|".join(_SHORT) + r")\b", lambda found: _SHORT[found[0]], text)


def compiled(chosen: list[Pair], architecture: Architecture) -> dict[str, tuple[Instruction, ...]]:
    """What llc makes of the pairs, by name; those that it refuses are left out."""
    llc = shutil.which("llc-22") or shutil.which("llc")
    assert llc, "llc of LLVM 22 is not installed"
    names = {f"f{number}": pair for number, pair in enumerate(chosen)}
    refused: set[str] = set()
    while True:
        text = "".join(
            f"---\nname: {name}\nbody: |\n  bb.0:\n    {_full(pair.first)}\n    {_full(pair.then)}\n"
            "    S_ENDPGM 0\n...\n"
            for name, pair in names.items()
            if name not in refused
        )
        done = subprocess.run(
            [llc, "-mtriple=amdgcn-amd-amdhsa", f"-mcpu={architecture.toolchain}", "-mattr=-xnack",
             "-start-before=post-RA-hazard-rec", "-x", "mir", "-o", "-", "-"],
            input=text, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode == 0:
            break
        line = re.search(r"<stdin>:(\d+):\d+", done.stderr)
        assert line, done.stderr[-2000:]
        before = "\n".join(text.splitlines()[: int(line[1])])
        refused.add(re.findall(r"^name: (\w+)", before, re.MULTILINE)[-1])
    parts = {part.split(":", 1)[0]: part for part in re.split(r"^(?=f\d+:)", done.stdout, flags=re.MULTILINE)[1:]}
    return {names[name].name: read_listing(part.split(".Lfunc_end")[0], name) for name, part in parts.items()}
