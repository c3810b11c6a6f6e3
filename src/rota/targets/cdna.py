"""What CDNA3 and CDNA4 have in common: counters, wait states and planning numbers.

Both are gfx9: one counter for vector memory and one for LDS, waves of 64 lanes, four SIMDs visited in rotation.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from rota.program.kinds import BITS, OpKind, takes_formats
from rota.program.machine import Confidence, Counter, Fact
from rota.targets.architecture import Architecture, Hazards, Queue, Traffic, WaitRule
from rota.targets.device import Estimate, MatrixRate, Rates, Timing, estimate

ASSEMBLER = "LLVM 22 assembler"
HAZARDS = "LLVM 22, post-RA hazard recogniser"
SPECIFICATIONS = "AMD, GPU specifications"
BLOG = "ROCm blog, FP8 GEMM on CDNA4, table 1"

VGPRS = Fact(512, "registers per lane", Confidence.COMPILER_MODEL, "LLVM 22: VGPRs and AGPRs in one file")
WORKGROUP = Fact(16, "waves", Confidence.DOCUMENTED, "LLVM AMDGPU usage: 1,024 threads of 64 lanes a wave")
WAVES_PER_SIMD = Fact(8, "waves", Confidence.COMPILER_MODEL, "LLVM 22: the occupancy that it prints, 8 at most")
LANES = Fact(64, "lanes per wave", Confidence.DOCUMENTED, f"{SPECIFICATIONS}: wavefront size")
REGISTER_BYTES = Fact(4, "bytes per lane", Confidence.DOCUMENTED, "AMD, CDNA3 ISA manual: VGPRs of 32 bits")
SIMDS = Fact(4, "SIMDs per compute unit", Confidence.DOCUMENTED, "AMD matrix instruction calculator: 4 per CU")
CLOCKS_PER_SLOT = Fact(4, "clocks", Confidence.COMPILER_MODEL, "LLVM 22: a pass, a wait state, a wave's issue")
TRANSCENDENTAL = Fact(
    4, "slots per instruction", Confidence.COMPILER_MODEL, "LLVM 22 scheduling model, WriteTrans32: quarter rate"
)
DMA = Fact(64, "bytes per clock", Confidence.ESTIMATE, "one cache line of 64 bytes a clock from L2")
DMA_LATENCY = Fact(800, "clocks", Confidence.ESTIMATE, "planning number for HBM; L2 takes 200 to 300")
LDS_LATENCY = Fact(64, "clocks", Confidence.ESTIMATE, "planning number for a read without conflicts")


def counters(*more: OpKind) -> tuple[Counter, ...]:
    """Vector memory on one, LDS on the other: what both have, and `more` kinds of LDS access."""
    return (
        Counter(
            name="vmcnt",
            holds=Fact(63, "tokens", Confidence.COMPILER_MODEL, f"{ASSEMBLER}: 6-bit field, 63 means no wait"),
            counts=frozenset({OpKind.DMA, OpKind.GLOBAL_LOAD, OpKind.GLOBAL_STORE, OpKind.ATOMIC}),
        ),
        Counter(
            name="lgkmcnt",
            holds=Fact(15, "tokens", Confidence.COMPILER_MODEL, f"{ASSEMBLER}: 4-bit field, 15 means no wait"),
            counts=frozenset({OpKind.LDS_READ, OpKind.LDS_WRITE, *more}),
        ),
    )


QUEUES = (
    Queue(counter="vmcnt", in_order=frozenset({Traffic.LOAD, Traffic.STORE, Traffic.TO_LDS})),
    Queue(counter="lgkmcnt", in_order=frozenset({Traffic.LDS}), in_any_order=frozenset({Traffic.SCALAR})),
)


D16_KEPT = Fact(
    0, "halves of a register", Confidence.COMPILER_MODEL,
    "LLVM, GCNSubtarget: d16PreservesUnusedBits is false where SRAM-ECC may be on, as it is on these (gfx942:sramecc+)",
)  # fmt: skip


EIGHT_OF_FOUR = tuple(
    tuple(half + lane for start in starts for lane in range(start, start + 4))
    for half in (0, 32)
    for starts in ((0, 20), (4, 16), (8, 28), (12, 24))
)
"""Eight groups of eight lanes, each two runs of four, in which CDNA3 serves the widest reads."""


def elf_machine(number: int) -> Fact:
    return Fact(number, "EF_AMDGPU_MACH", Confidence.DOCUMENTED, "LLVM, User Guide for AMDGPU Backend")


_SCALAR, _VECTOR = "scalar writes", "vector writes"


def hazards(
    manual: str, matrix_table: int, *, result: int, overlap: int, double_large: int, double_large_sum: int,
    permlane: bool,
) -> Hazards:  # fmt: skip
    """The wait states of gfx940 and later; those that are given differ between CDNA3 and CDNA4.

    Where the manual asks for more than LLVM keeps, its number is here.
    """

    def row(states: int, text: str) -> Fact:
        return Fact(states, "wait states", Confidence.DOCUMENTED, f"AMD, {manual} ISA manual, table 11: {text}")

    def product(states: int, text: str) -> Fact:
        source = f"AMD, {manual} ISA manual, table {matrix_table}: {text}"
        return Fact(states, "wait states", Confidence.DOCUMENTED, source)

    # After an MFMA, counted from its last pass; of float64, small (4x4) or large (16x16), in all.
    large, small = "V_MFMA_16x16x4_F64 writes VGPR", "V_MFMA_4x4x4_F64 writes VGPR"
    matrix = {
        "result": product(result, "XDL writes VGPR; V_MFMA reads it as A, B or index, VALU, memory"),
        "short_result": product(3, "XDL writes VGPR, 2 passes; V_MFMA reads it as A, B or index, VALU, memory"),
        "single_result": product(2, "SGEMM writes VGPR; V_MFMA reads it as A, B or index, VALU, memory"),
        "overlap": product(overlap, "XDL writes VGPR; XDL or S/DGEMM reads it as C, overlapped"),
        "short_overlap": product(1, "XDL writes VGPR, 2 passes; S/DGEMM reads it as C"),
        "single_overlap": product(0, "SGEMM writes VGPR; S/DGEMM reads it as C, overlapped"),
        "unequal": product(
            overlap,
            "XDL or SGEMM reads C exactly same: both must have the same number of passes, else as overlapped",
        ),
        "different": Fact(
            1, "wait states", Confidence.COMPILER_MODEL,
            "LLVM pull 218363, open: another MFMA on the same C, 5 after one of 4 passes; the manual: equal passes do",
        ),
        "overwrite": product(-1, "XDL reads VGPR as C; VALU writes it"),
        "forwarded": product(2, "XDL or SGEMM writes VGPR, 2 passes; the same kind reads C exactly same"),
        "single_forwarded": _llvm(2, "SGEMM of 2 passes, then XDL with C exactly same; the manual asks for none"),
        "load_over": _llvm(0, "a load counts as a VALU that overwrites; the manual names VALU alone"),
        "double_load_over": _llvm(11, "a load that overwrites what v_mfma_f64_16x16x4 makes"),
        "double_small": product(6, f"{small}; V_MFMA reads it as A, B or index, VALU reads or writes it"),
        "double_large": product(double_large, f"{large}; V_MFMA reads it as A, B or index, VALU reads it"),
        "double_overwrite": product(double_large, f"{large}; VALU writes it"),
        "double_small_memory": product(9, f"{small}; VM, LDS and FLAT read it"),
        "double_large_memory": product(18, f"{large}; VM, LDS and FLAT read it"),
        "double_small_sum": product(4, f"{small}; S/DGEMM reads it as C"),
        "double_large_sum": product(double_large_sum, f"{large}; S/DGEMM reads it as C, overlapped"),
    }  # fmt: skip
    scalar_vector = row(2, "VALU writes SGPR or VCC, v_cmpx EXEC; VALU reads it as a constant")
    mask = _llvm(2, "masks and carries count as constants; the manual asks for 0 before a carry")
    dot = product(3, "dot product writes VGPR; any but the same opcode that adds to it reads or writes it")
    stores = "stores of three and four dwords"
    dpp_other = _llvm(2, "any instruction's result, and what a target held, count for DPP; the manual: VALU's")

    # The classes of the two instructions, the rows that the first gives and the second takes, what the second does.
    def rule(  # noqa: PLR0917
        name: str, states: Fact, after: str, then: str, gives: str, takes: str, why: str, when: str = ""
    ) -> WaitRule:
        classes = [tuple(each.split(", ")) if each else () for each in (after, then)]
        return WaitRule(
            name=name, states=states, after=classes[0], then=classes[1], gives=gives, takes=takes, why=why, when=when
        )

    pairs = (
        rule("double_fma", _llvm(2, "v_fma_f64 after an MFMA of float64"),
         "mfma, double", "double fma", "", "", "multiplies float64 after an MFMA of float64"),
        rule("operand", product(2, "VALU, no dot product, writes VGPR; V_MFMA or V_SMFMA reads it"),
         "valu, not dot", "mfma", _VECTOR, "all reads", "reads"),
        rule("exec_matrix", product(4, "V_CMPX writes EXEC; V_MFMA"),
         "valu", "mfma", "exec written", "exec", "multiplies after a write of"),
        rule("scalar", row(5, "VALU writes SGPR; VMEM reads that SGPR"),
         "valu", "vmem", "plain scalar writes", "reads", "reads for memory"),
        rule("exec_memory", _llvm(5, "EXEC and M0 count as SGPRs that VMEM reads; the manual's row names SGPRs"),
         "valu", "vmem", "implied writes", "reads", "obeys, for memory,"),
        rule("scalar_vector", scalar_vector, "valu", "as valu", _SCALAR, "constants", "reads"),
        rule("mask", mask, "valu", "as valu", _SCALAR, "masks", "reads as a mask"),
        rule("lane_select", row(4, "VALU writes SGPR or VCC; v_readlane or v_writelane selects a lane by it"),
         "valu", "", _SCALAR, "select", "selects a lane by"),
        rule("division", row(4, "VALU writes VCC; V_DIV_FMAS"),
         "valu", "division", _SCALAR, "vcc", "reads for v_div_fmas"),
        rule("zero", row(5, "VALU sets VCC or EXEC; VALU uses VCCZ or EXECZ as a data source"),
         "valu", "as valu", _SCALAR, "zeros", "reads the zero flag of"),
        rule("exec_lane", row(4, "v_cmpx; v_readlane, v_readfirstlane, v_writelane"),
         "valu", "lane", "exec written", "exec", "accesses a lane after a write of"),
        rule("exec_dpp", row(5, "VALU writes EXEC; VALU DPP op"),
         "valu", "dpp", "exec written", "exec", "obeys, by DPP,"),
        rule("lane", row(1, "VALU writes VGPR; v_readlane reads it"),
         "valu", "reads lane, not reads first lane", _VECTOR, "all reads", "reads a lane"),
        rule("first_lane", _llvm(1, "v_readfirstlane counts as v_readlane, which alone the manual names"),
         "valu", "reads first lane", _VECTOR, "all reads", "reads a lane"),
        rule("transcendental", row(1, "VALU trans op; VALU that is none consumes its result"),
         "valu, transcendental", "as valu, not transcendental", "writes", "all reads",
         "reads a transcendental's result"),
        rule("partial", row(1, "VALU with OPSEL or SDWA that moves the result's bits; VALU consumes it"),
         "valu, partial", "as valu", _VECTOR, "all reads", "uses, written in part,"),
        rule("partial_over", _llvm(1, "what overwrites a result moved by OPSEL or SDWA counts as what consumes it"),
         "valu, partial", "as valu", _VECTOR, "writes", "overwrites, written in part,"),
        rule("packed", _llvm(1, "reads op_sel_hi of packed instructions as a destination select"),
         "valu, packed", "as valu", _VECTOR, "named", "uses, made by a packed instruction,"),
        rule("dot", dot, "valu, dot", "vector", _VECTOR, "reads", "reads a dot product", "same opcode"),
        rule("dot", dot, "valu, dot", "vector", _VECTOR, "all reads", "reads a dot product", "other opcode"),
        rule("dot", dot, "valu, dot", "vector", _VECTOR, "writes", "overwrites a dot product", "other opcode"),
        rule("dpp", row(2, "VALU writes VGPR; VALU DPP reads that VGPR"),
         "valu or mfma", "dpp", _VECTOR, "exchanged", "reads by DPP"),
        rule("dpp_second",
         row(2, "VALU writes VGPR; VALU DPP reads that VGPR: no operand is named, src1 isn't exchanged"),
         "valu or mfma", "dpp", _VECTOR, "other reads", "reads, not to exchange it, by DPP"),
        rule("dpp_other", dpp_other, "valu or mfma", "dpp", _VECTOR, "kept", "keeps lanes of"),
        rule("dpp_other", dpp_other, "not valu or mfma", "dpp", _VECTOR, "all reads", "reads by DPP"),
        rule("store", row(2, f"{stores}; VALU writes VGPRs that hold the data"),
         "not by offset", "as valu", "held", "writes", "overwrites the data of a store"),
        rule("store_by_offset", Fact(
            1, "wait states", Confidence.MEASURED_BY_THIRD_PARTY,
            "LLVM pull 197267: corrupted on gfx950 where the offset is an SGPR; AMD's manual asks for none",
        ), "by offset", "as valu", "held", "writes", "overwrites the data of a store"),
        rule("store_load", row(1, f"{stores}; anything writes VGPRs that hold the data"),
         "not by offset", "not as valu", "held", "writes", "overwrites the data of a store"),
        rule("m0", row(1, "SALU writes M0; S_SENDMSG, S_MOVEREL, LDS add-TID, scratch or global with LDS=1"),
         "salu", "uses m0, not unlisted", "writes", "m0", "uses m0"),
        rule("m0_other", _llvm(1, "buffer loads to LDS, GWS and trace data use M0; the manual's rows don't name them"),
         "salu", "uses m0, unlisted", "writes", "m0", "uses m0"),
        rule("mode", row(2, "S_SETREG; S_GETREG or S_SETREG of the same register"),
         "sets mode", "reads mode", "", "", "accesses {register} after s_setreg", "same register"),
        rule("trap", row(1, "S_SETREG TRAPSTS; RFE"),
         "sets mode, HW_REG_TRAPSTS", "returns", "", "", "returns after s_setreg"),
        rule("vskip", row(2, "S_SETREG MODE.vskip; any vector op"),
         "sets vskip", "vector", "", "", "follows s_setreg of MODE.vskip"),
        rule("vskip_read", row(2, "SET_VSKIP; S_GETREG MODE"),
         "skips", "reads mode, not sets mode, HW_REG_MODE", "", "", "reads MODE after s_setvskip"),
        *((
            rule("permlane", row(2, "VALU writes VGPR; V_PERMLANE reads it"),
             "valu or mfma", "permlane", _VECTOR, "all reads", "exchanges lanes of"),
            rule("exec_permlane", row(4, "V_CMPX writes EXEC; V_PERMLANE"),
             "valu, compares exec", "permlane", "exec written", "exec", "exchanges lanes after v_cmpx"),
        ) if permlane else ()),
    )  # fmt: skip
    return Hazards(rules=(*(WaitRule(name=name, states=fact) for name, fact in matrix.items()), *pairs))


def matrix(instruction: str, passes: int, narrow: int | None = None) -> MatrixRate:
    """The passes of an instruction, and those where no factor is wider than 6 bits."""
    return MatrixRate(
        instruction=instruction, passes=_passes(passes), narrow=None if narrow is None else _passes(narrow)
    )


def timing(
    architecture: Architecture, rates: Rates, *, clock: Fact, compute_units: int, lds_write_least: int
) -> Timing:
    """A device's times: its own clock and size; for the rest, planning numbers that hold for every device alike.

    `lds_write_least` is how slow writes to LDS may be, where the rate isn't known.
    """
    return Timing(
        rates=rates,
        clock=clock,
        compute_units=Fact(compute_units, "compute units", Confidence.DOCUMENTED, SPECIFICATIONS),
        result_turns=architecture.hazards["result"],
        operand_turns=architecture.hazards["operand"],
        issue_classes=estimate(
            4, 1, 4, "instructions per SIMD and turn", "GCN: one of each class, from different waves; at worst one"
        ),
        lds_latency=Estimate(rates.lds_latency, 48, 128),
        lds_write=Estimate(rates.lds_write, lds_write_least, rates.lds_write.value),
        dma_latency=Estimate(rates.dma_latency, 300, 1400),
        dma_jitter=estimate(0, 0, 400, "clocks", "spread of DMA latencies; 0 is the even case"),
        dma_rate=Estimate(rates.dma, 48, 64),
        dma_setup=estimate(2, 1, 3, "turns per DMA", "s_mov of m0 and the s_nop after it, as emitted"),
        barrier=estimate(8, 4, 40, "clocks", "from the last wave's arrival to the release"),
        loop_edge=estimate(4, 3, 12, "turns per trip", "count, compare and a taken branch"),
    )


def dies(count: int) -> Fact:
    return Fact(count, "XCDs", Confidence.DOCUMENTED, SPECIFICATIONS)


def memory(size: int) -> Fact:
    return Fact(size, "GiB", Confidence.DOCUMENTED, SPECIFICATIONS)


def _llvm(count: int, text: str) -> Fact:
    return Fact(count, "wait states", Confidence.COMPILER_MODEL, f"{HAZARDS}: {text}")


def _passes(count: int) -> Fact:
    return Fact(count, "passes of 4 clocks", Confidence.COMPILER_MODEL, HAZARDS)


_LANES, _REGISTER_BYTES = LANES.value, REGISTER_BYTES.value  # no other family has these instructions
_SIDES_AND_DEPTH = re.compile(r"_(\d+)x(\d+)x(\d+)")


def shape_named(instruction: str) -> tuple[int, int, int] | None:
    """Rows, columns and depth of the product; None if the name doesn't say."""
    found = _SIDES_AND_DEPTH.search(instruction)
    if found is None:
        return None
    rows, columns, depth = map(int, found.groups())
    return rows, columns, depth


def element_bytes_named(instruction: str) -> int:
    """Bytes of an element of A or B: the names of 16-bit types, and of no others, end in 16."""
    return 2 if instruction.endswith("16") else 1


class MfmaRegisters(NamedTuple):
    """Registers per lane of one instruction's operands and of its result."""

    a: int
    b: int
    result: int


def registers_named(instruction: str, *bits: int) -> MfmaRegisters | None:
    """The fewest registers that one instruction takes: elements spread over the lanes, results of four bytes.

    `f8f6f4` instructions take elements of `bits`, one number for both factors or one for each; without any the
    narrowest count, which have four.
    """
    shape = shape_named(instruction)
    if shape is None:
        return None
    rows, columns, depth = shape
    named = min(BITS.values()) if takes_formats(instruction) else 8 * element_bytes_named(instruction)
    of_a, *_, of_b = (*bits, *bits) if bits else (named, named)
    per_register = 8 * _LANES * _REGISTER_BYTES
    return MfmaRegisters(
        rows * depth * of_a // per_register, columns * depth * of_b // per_register, rows * columns // _LANES
    )
