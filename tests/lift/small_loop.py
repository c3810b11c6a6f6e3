"""A small pipelined loop in assembly: takes a few of its lines, gives the lifted loop."""

from __future__ import annotations

from typing import Any

from rota.isa.disassembly import read_listing
from rota.lift.lifted_loop import LiftedLoop, lift_kernel
from rota.targets.registry import device_named
from tests.isa.single import facts, listing

BUFFERS = (
    "s_waitcnt vmcnt(0) lgkmcnt(0)",
    "s_barrier",
    "ds_read_b128 v[4:7], v2",
    "s_xor_b32 s6, s6, 0x800",
    "s_mov_b32 m0, s6",
    "v_xor_b32_e32 v2, 0x800, v2",
    "buffer_load_dword v1, s[8:11], 0 offen lds",
    "s_waitcnt lgkmcnt(0)",
    "v_mfma_f32_16x16x32_bf16 a[0:3], v[4:7], v[4:7], a[0:3]",
)
"""One trip: a tile of two waves is read, the next one is loaded to the other buffer."""
BEFORE = (
    "s_load_dword s4, s[0:1], 0x0",
    "v_lshlrev_b32_e32 v1, 2, v0",
    "v_and_b32_e32 v2, 31, v0",
    "v_lshlrev_b32_e32 v2, 4, v2",
    "v_readfirstlane_b32 s6, v1",
    "s_mov_b32 m0, s6",
    "s_nop 0",
    "buffer_load_dword v1, s[8:11], 0 offen lds",
    "s_waitcnt lgkmcnt(0)",
)
COUNT = ("s_sub_u32 s4, s4, 1", "s_cmp_lg_u32 s4, 0", "s_cbranch_scc1 again")


def looped(*trip: str, before: tuple[str, ...] = BEFORE, count: tuple[str, ...] = COUNT) -> str:
    """A kernel that repeats a trip as often as its argument says."""
    return "\n".join((*before, "again:", *trip, *count, "s_waitcnt vmcnt(0)"))


def lifted(text: str, waves: int = 2, **changes: Any) -> LiftedLoop:
    """Its main loop, for an MI355X."""
    plain = {
        "required_workgroup": (64 * waves, 1, 1),
        "user_sgprs": (("kernarg_segment_ptr", 2),),
        "workgroup_ids": (True, False, False),
    }
    told = facts(**{**plain, **changes})
    return lift_kernel(told, read_listing(listing(text), "k"), device_named("mi355x"))
