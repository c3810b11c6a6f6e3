"""What CDNA3 and CDNA4 have in common: takes what differs, gives counters, hazards and the planning numbers.

Both are gfx9: one counter for vector memory and one for LDS, waves of 64 lanes, four SIMDs visited in rotation.
"""

from __future__ import annotations

from rota.program.kinds import OpKind
from rota.program.machine import Confidence, Counter, Fact
from rota.targets.architecture import Architecture
from rota.targets.estimate import Estimate, estimate
from rota.targets.rates import MatrixRate, Rates
from rota.targets.timing import Timing
from rota.targets.wait_states import Hazards

ASSEMBLER = "LLVM 22 assembler"
HAZARDS = "LLVM 22, post-RA hazard recogniser"
SPECIFICATIONS = "AMD, GPU specifications"
BLOG = "ROCm blog, FP8 GEMM on CDNA4, table 1"

VGPRS = Fact(512, "registers per lane", Confidence.COMPILER_MODEL, "LLVM 22: VGPRs and AGPRs in one file")
WORKGROUP = Fact(16, "waves", Confidence.DOCUMENTED, "LLVM AMDGPU usage: 1,024 threads of 64 lanes a wave")
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


D16_KEPT = Fact(
    0, "halves of a register", Confidence.COMPILER_MODEL,
    "LLVM, GCNSubtarget: d16PreservesUnusedBits is false where SRAM-ECC may be on, as it is on these (gfx942:sramecc+)",
)  # fmt: skip


def elf_machine(number: int) -> Fact:
    """What the flags of a code object say."""
    return Fact(number, "EF_AMDGPU_MACH", Confidence.DOCUMENTED, "LLVM, User Guide for AMDGPU Backend")


def hazards(*, result: int, overlap: int, double_large: int, double_large_sum: int, permlane: bool) -> Hazards:
    """The wait states of gfx940 and later; those that are given differ between CDNA3 and CDNA4."""
    return Hazards(
        result=_states(result),
        short_result=_states(3),
        single_result=_states(2),
        overlap=_states(overlap),
        short_overlap=_states(1),
        single_overlap=_states(0),
        overwrite=_states(-1),
        forwarded=_states(2),
        double_small=_states(6),
        double_large=_states(double_large),
        double_overwrite=_states(11),
        double_small_memory=_states(9),
        double_large_memory=_states(18),
        double_small_sum=_states(4),
        double_large_sum=_states(double_large_sum),
        double_fma=_states(2),
        operand=_states(2),
        exec_matrix=_states(4),
        scalar=_states(5),
        scalar_vector=_states(2),
        lane_select=_states(4),
        division=_states(4),
        exec_lane=_states(4),
        exec_dpp=_states(5),
        lane=_states(1),
        transcendental=_states(1),
        partial=_states(1),
        packed=Fact(1, "wait states", Confidence.COMPILER_MODEL, f"{HAZARDS}: reads op_sel_hi as a destination select"),
        dot=_states(3),
        dpp=_states(2),
        store=_states(2),
        m0=_states(1),
        mode=_states(2),
        trap=_states(1),
        permlane=_states(2) if permlane else None,
        exec_permlane=_states(4) if permlane else None,
    )


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
        result_turns=architecture.hazards.result,
        operand_turns=architecture.hazards.operand,
        issue_classes=estimate(
            4, 1, 4, "instructions per SIMD and turn", "GCN: one of each class, from different waves; at worst one"
        ),
        lds_latency=Estimate(rates.lds_latency, 48, 128),
        lds_write=Estimate(rates.lds_write, lds_write_least, rates.lds_write.value),
        dma_latency=Estimate(rates.dma_latency, 300, 1400),
        dma_jitter=estimate(0, 0, 400, "clocks", "spread of DMA latencies; 0 is the even case"),
        dma_rate=Estimate(rates.dma, 48, 64),
        dma_setup=estimate(2, 1, 3, "turns per DMA", "s_mov of m0 and the s_nop behind it, as emitted"),
        barrier=estimate(8, 4, 40, "clocks", "from the last wave's arrival to the release"),
        loop_edge=estimate(4, 3, 12, "turns per trip", "count, compare and a taken branch"),
    )


def dies(count: int) -> Fact:
    """Accelerator dies of a package, each with an L2 of its own."""
    return Fact(count, "XCDs", Confidence.DOCUMENTED, SPECIFICATIONS)


def memory(size: int) -> Fact:
    """The memory on a package."""
    return Fact(size, "GiB", Confidence.DOCUMENTED, SPECIFICATIONS)


def _states(count: int) -> Fact:
    return Fact(count, "wait states", Confidence.COMPILER_MODEL, HAZARDS)


def _passes(count: int) -> Fact:
    return Fact(count, "passes of 4 clocks", Confidence.COMPILER_MODEL, HAZARDS)
