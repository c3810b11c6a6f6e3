"""Two waves, or two workgroups, that use global memory: takes what each of them does, gives what is found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rota.errors import Finding
from rota.isa.binary.kernel_facts import Argument
from rota.isa.decoded import load_program
from rota.isa.launch.interleaving import LATEST, Interleaving
from rota.isa.launch.run import run_kernel
from tests.isa.single import facts, listing

PLACE = 256
"""An offset that tests agree on."""
_OPENING = """
s_load_dwordx2 s[4:5], s[0:1], 0x0
v_lshrrev_b32_e32 v1, 6, v0
s_nop 0
v_readfirstlane_b32 s8, v1
v_and_b32_e32 v0, 63, v0
v_lshlrev_b32_e32 v2, 2, v0
v_mov_b32_e32 v4, 0
v_mov_b32_e32 v3, 7
s_waitcnt lgkmcnt(0)
s_cmp_lg_u32 {chooser}, 0
s_cbranch_scc1 .LBB0_2
"""
# All lanes use a word of their own; flags use one word of lane 0's address.
_LINES = {
    "store": "global_store_dword v2, v3, s[4:5] offset:{}",
    "load": "global_load_dword v8, v2, s[4:5] offset:{}",
    "atomic": "global_atomic_add v2, v3, s[4:5] offset:{}",
    "release": "global_atomic_add v4, v3, s[4:5] offset:{}",
    "acquire": "global_atomic_add v9, v4, v3, s[4:5] offset:{} sc0",
    "flag": "global_store_dword v4, v3, s[4:5] offset:{} sc1",
    "look": "global_load_dword v9, v4, s[4:5] offset:{} sc1",
    "plain": "global_store_dword v4, v3, s[4:5] offset:{}",
}


def line(text: str) -> str:
    """A word and an offset as an instruction; `other` stores another value."""
    word, *rest = text.split()
    if word not in _LINES:
        return text
    made = _LINES[word].format(rest[0])
    return made.replace("v3,", "v0,") if rest[1:] else made


def found(
    first: Sequence[str],
    second: Sequence[str],
    *,
    workgroups: bool = False,
    waves: int = 1,
    order: Interleaving = LATEST,
) -> tuple[Finding, ...]:
    """What is found if wave 0, or workgroup 0 with so many waves, runs the first lines and the other one the second."""
    opening = _OPENING.format(chooser="s2" if workgroups else "s8")
    text = "\n".join([opening, *map(line, first), "s_endpgm", ".LBB0_2:", *map(line, second)])
    pointer = Argument(name="to", offset=0, size=8, kind="global_buffer")
    launch = facts(
        user_sgprs=(("kernarg_segment_ptr", 2),),
        workgroup_ids=(True, False, False),
        kernarg_bytes=8,
        arguments=(pointer,),
        max_workgroup=128,
    )
    outcome = run_kernel(
        load_program(launch, listing(text)),
        args=[np.zeros(1024, np.uint32)],
        grid=(2 if workgroups else 1, 1, 1),
        block=(64 * waves if workgroups else 128, 1, 1),
        interleaving=order,
    )
    return outcome.findings
