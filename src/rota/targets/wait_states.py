"""Wait states that software has to keep: takes numbers with their source, gives the `Hazards` of an architecture.

The hardware doesn't interlock these; a compiler puts `s_nop` where they are short.  A number counts the wait states
between the two instructions: every instruction passes one, `s_nop N` passes N + 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from rota.program.machine import Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class Hazards:
    """Wait states between an instruction and a later one that depends on it.

    Behind the last pass of an MFMA: `result` until another instruction may use what it made (`short_result` for one of
    two passes, `single_result` for products of float32), `overlap` until an MFMA may add to a range that overlaps its
    own without being the same (`short_overlap` from one of two passes to products of float32 and float64,
    `single_overlap` between products of float32), `overwrite` until another may write to what it adds to.
    `forwarded`: from an MFMA of two passes to one that adds to the same range; longer ones need none.

    From an MFMA of float64, small (4x4) or large (16x16), in all and not behind a pass: to a VALU or an MFMA that reads
    the result as a factor (`double_small`, `double_large`), to one that overwrites it (`double_small`,
    `double_overwrite`), to memory instructions (`double_small_memory`, `double_large_memory`), to one that adds to it
    (`double_small_sum`, `double_large_sum`), and to a fused multiply-add of float64, whatever it reads (`double_fma`).

    From a VALU instruction: to an MFMA that reads its result (`operand`) or obeys the EXEC it wrote (`exec_matrix`);
    from one that writes a scalar register to vector memory that reads it (`scalar`), to a VALU that reads it as an
    operand or a mask (`scalar_vector`), to a lane select (`lane_select`) and, for VCC, to v_div_fmas (`division`); from
    one that writes EXEC to lane accesses (`exec_lane`) and to DPP (`exec_dpp`); to v_readlane and v_readfirstlane of a
    vector register that it wrote (`lane`); from a transcendental to another VALU (`transcendental`), from one that
    writes a part of a register to a VALU that names it (`partial`), from a packed one likewise (`packed`: LLVM keeps
    it, AMD's manual has no such rule), from a dot product to anything but the sum of the same (`dot`).  `dpp`: from
    whatever writes a register to DPP that reads it.  `store`: from a store of more than 64 bits to a VALU that
    overwrites its data.  `m0`: from setting M0 to what uses it.  `mode`: from s_setreg to s_getreg or s_setreg of the
    same register; `trap`: to s_rfe.  `permlane`, `exec_permlane`: from a VALU that writes one of its operands, and from
    v_cmpx; None where there are no such instructions.
    """

    result: Fact
    short_result: Fact
    single_result: Fact
    overlap: Fact
    short_overlap: Fact
    single_overlap: Fact
    overwrite: Fact
    forwarded: Fact
    double_small: Fact
    double_large: Fact
    double_overwrite: Fact
    double_small_memory: Fact
    double_large_memory: Fact
    double_small_sum: Fact
    double_large_sum: Fact
    double_fma: Fact
    operand: Fact
    exec_matrix: Fact
    scalar: Fact
    scalar_vector: Fact
    lane_select: Fact
    division: Fact
    exec_lane: Fact
    exec_dpp: Fact
    lane: Fact
    transcendental: Fact
    partial: Fact
    packed: Fact
    dot: Fact
    dpp: Fact
    store: Fact
    m0: Fact
    mode: Fact
    trap: Fact
    permlane: Fact | None = None
    exec_permlane: Fact | None = None
