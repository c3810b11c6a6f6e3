"""Wait states that software has to keep: takes numbers with their source, gives the `Hazards` of an architecture.

The hardware doesn't interlock these; a compiler puts `s_nop` where they are short.  A number counts the wait states
between the two instructions: every instruction passes one, `s_nop N` passes N + 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from rota.program.machine import Confidence, Fact

SOURCES = MappingProxyType(
    {
        Confidence.DOCUMENTED: "AMD's manual",
        Confidence.COMPILER_MODEL: "LLVM alone",
        Confidence.MEASURED_BY_THIRD_PARTY: "measured",
    }
)
"""Whose rule it is: a finding says so.  The `source` of its fact names the table and the row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hazards:
    """Wait states between an instruction and a later one that depends on it.

    Behind the last pass of an MFMA: `result` until another instruction may use what it made (`short_result` for one of
    two passes, `single_result` for products of float32), `overlap` until an MFMA may add to a range that overlaps its
    own without being the same (`short_overlap` from one of two passes to products of float32 and float64,
    `single_overlap` between products of float32), `unequal` until one of another number of passes may add to the same
    range (`different`: another one of as many passes), `overwrite` until another may write to what it adds to.
    `forwarded`: from an MFMA of two passes to one of two that adds to the same range; longer ones need none
    (`single_forwarded`: from products of float32 to others).  `load_over`: so many more until a load may overwrite what
    an MFMA makes or adds to than a VALU; `double_load_over` in all, what a large one of float64 makes.

    From an MFMA of float64, small (4x4) or large (16x16), in all and not behind a pass: to a VALU or an MFMA that reads
    the result as a factor (`double_small`, `double_large`), to one that overwrites it (`double_small`,
    `double_overwrite`), to memory instructions (`double_small_memory`, `double_large_memory`), to one that adds to it
    (`double_small_sum`, `double_large_sum`), and to a fused multiply-add of float64, whatever it reads (`double_fma`).

    From a VALU instruction: to an MFMA that reads its result (`operand`) or obeys the EXEC it wrote (`exec_matrix`);
    from one that writes a scalar register to vector memory that reads it (`scalar`; for EXEC and M0 `exec_memory`), to
    a VALU that reads it as a constant (`scalar_vector`) or as a mask or carry (`mask`), to a lane select
    (`lane_select`) and, for VCC, to v_div_fmas (`division`); from one that writes VCC or EXEC to src_vccz and
    src_execz (`zero`); from one that writes EXEC to lane accesses (`exec_lane`) and to DPP (`exec_dpp`); to v_readlane
    of a vector register that it wrote (`lane`; v_readfirstlane `first_lane`); from a transcendental to another VALU
    (`transcendental`), from one that writes a part of a register to a VALU that reads it (`partial`) or writes it
    (`partial_over`), from a packed one likewise (`packed`), from a dot product to anything but the sum of the same
    (`dot`), to DPP that exchanges its result's lanes (`dpp`) or reads it as another operand (`dpp_second`); `dpp_other`
    from what isn't a VALU, and to lanes that keep what the target had.

    `store`: from a store of more than 64 bits to a VALU that overwrites its data; `store_by_offset` from a buffer store
    whose offset is a register; `store_load` to a load into its data.  `m0`: from setting M0 to what uses it; `m0_other`
    where only LLVM says so.  `mode`: from s_setreg to s_getreg or s_setreg of the same register; `trap`: to s_rfe;
    `vskip`: from s_setreg of MODE.vskip to a vector instruction; `vskip_read`: from s_setvskip to s_getreg of MODE.
    `permlane`, `exec_permlane`: from a VALU that writes one of its operands, and from v_cmpx; None where there are no
    such instructions.
    """

    result: Fact
    short_result: Fact
    single_result: Fact
    overlap: Fact
    short_overlap: Fact
    single_overlap: Fact
    unequal: Fact
    different: Fact
    overwrite: Fact
    forwarded: Fact
    single_forwarded: Fact
    load_over: Fact
    double_load_over: Fact
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
    exec_memory: Fact
    scalar_vector: Fact
    mask: Fact
    lane_select: Fact
    division: Fact
    zero: Fact
    exec_lane: Fact
    exec_dpp: Fact
    lane: Fact
    first_lane: Fact
    transcendental: Fact
    partial: Fact
    partial_over: Fact
    packed: Fact
    dot: Fact
    dpp: Fact
    dpp_second: Fact
    dpp_other: Fact
    store: Fact
    store_by_offset: Fact
    store_load: Fact
    m0: Fact
    m0_other: Fact
    mode: Fact
    trap: Fact
    vskip: Fact
    vskip_read: Fact
    permlane: Fact | None = None
    exec_permlane: Fact | None = None
