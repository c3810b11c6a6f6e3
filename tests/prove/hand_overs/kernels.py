"""Small kernels in which workgroups hand data over, and edits that take one piece of the protocol out of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from rota.errors import Finding
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.toolchain import find_toolchain
from rota.isa.decoded import load_program
from rota.isa.disassembly import Instruction
from rota.isa.launch.interleaving import EARLIEST, LATEST, Interleaving, Landing, backwards, draw_order
from rota.isa.launch.run import run_kernel

GROUPS, N = 3, 128
_EARLY_BACKWARDS = replace(backwards(2), landing=Landing.EARLIEST)
ORDERS = (LATEST, EARLIEST, backwards(2), _EARLY_BACKWARDS, draw_order(2))
_FRAME = """
typedef unsigned u32;
#define ID ((int)__builtin_amdgcn_workitem_id_x())
#define GROUP ((int)__builtin_amdgcn_workgroup_id_x())
#define FENCE(order, scope) __builtin_amdgcn_fence(order, scope);
#define RELEASE FENCE(__ATOMIC_RELEASE, "agent")
#define ACQUIRE FENCE(__ATOMIC_ACQUIRE, "agent")
#define SYNC FENCE(__ATOMIC_RELEASE, "workgroup") __builtin_amdgcn_s_barrier(); FENCE(__ATOMIC_ACQUIRE, "workgroup")
#define DRAIN asm volatile("s_waitcnt vmcnt(0)" ::: "memory");
#define LOOK(p) __hip_atomic_load(p, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)
#define SET(p, v) __hip_atomic_store(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)
#define COUNT(p) __hip_atomic_fetch_add(p, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)
extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(1, 128)))
void k(const u32* a, u32* part, u32* flag, u32* out) {
  __attribute__((shared)) static u32 ticket;
  int at = GROUP * 128 + ID;
"""

# Each partial sum of K is stored, and the last workgroup to arrive adds all of them up.
SPLIT_K = """
  part[at] = a[at] * 3;
  RELEASE SYNC
  if (ID == 0) ticket = COUNT(flag);
  SYNC
  if (ticket == 2) {
    ACQUIRE
    u32 total = 0;
    for (int g = 0; g < 3; g++) total += part[g * 128 + ID];
    out[ID] = total;
  }
"""
# The same, where one work item writes back for all, and invalidates for all.
ONE_FOR_ALL = """
  part[at] = a[at] * 3;
  DRAIN SYNC
  if (ID == 0) {
    RELEASE
    ticket = COUNT(flag);
    ACQUIRE
  }
  SYNC
  if (ticket == 2) {
    u32 total = 0;
    for (int g = 0; g < 3; g++) total += part[g * 128 + ID];
    out[ID] = total;
  }
"""
# All but the first workgroup store what they have of a tile, and set a flag; the first one polls, and adds it.
STREAM_K = """
  if (GROUP) {
    part[at] = a[at] * 3;
    RELEASE SYNC
    if (ID == 0) SET(&flag[GROUP], 1);
  } else {
    u32 total = a[at] * 3;
    for (int g = 1; g < 3; g++) {
      if (ID == 0) while (!LOOK(&flag[g])) __builtin_amdgcn_s_sleep(1);
      SYNC
      ACQUIRE
      total += part[g * 128 + ID];
    }
    out[ID] = total;
  }
"""
# Each work item has a flag of its own.
FLAGS = """
  if (GROUP == 0) {
    part[ID] = a[ID] * 3;
    RELEASE
    SET(&flag[ID], 1);
  } else {
    while (!LOOK(&flag[ID])) __builtin_amdgcn_s_sleep(1);
    ACQUIRE
    out[at] = part[ID];
  }
"""
# Two steps with a barrier of the whole grid between: a counter that everybody polls.
TWO_STEPS = """
  part[at] = a[at] * 3;
  RELEASE SYNC
  if (ID == 0) {
    COUNT(flag);
    while (LOOK(flag) < 3) __builtin_amdgcn_s_sleep(1);
  }
  SYNC
  ACQUIRE
  u32 total = 0;
  for (int g = 0; g < 3; g++) total += part[g * 128 + ID];
  out[at] = total;
"""
# The first lane of each wave counts it, and each wave polls for itself: no barrier is needed.
LEADERS = """
  part[at] = a[at] * 3;
  RELEASE
  if ((ID & 63) == 0) COUNT(flag);
  while (LOOK(flag) < 6) __builtin_amdgcn_s_sleep(1);
  ACQUIRE
  u32 total = 0;
  for (int g = 0; g < 3; g++) total += part[g * 128 + (ID ^ 64)];
  out[at] = total;
"""
# A sum under a lock, which one work item takes.
LOCK = """
  if (ID == 0) {
    u32 zero = 0;
    while (!__hip_atomic_compare_exchange_strong(flag, &zero, 1u, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                                 __HIP_MEMORY_SCOPE_AGENT)) zero = 0;
    ACQUIRE
    part[0] += a[GROUP];
    RELEASE
    SET(flag, 0);
  }
"""
# Who comes first sets rows to zero, and all add to them: a flag says that they are zero.
ZEROED = """
  if (ID == 0) ticket = COUNT(flag);
  SYNC
  if (ticket == 0) {
    SET(&out[ID], 0);
    DRAIN SYNC
    if (ID == 0) SET(&flag[1], 1);
  }
  if (ID == 0) while (!LOOK(&flag[1])) __builtin_amdgcn_s_sleep(1);
  SYNC
  __hip_atomic_fetch_add(&out[ID], a[at], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
"""
# The partial results pass the caches, so that nothing has to be written back or invalidated.
PASSING = """
  SET(&part[at], a[at] * 3);
  DRAIN SYNC
  if (ID == 0) ticket = COUNT(flag);
  SYNC
  if (ticket == 2) {
    u32 total = 0;
    for (int g = 0; g < 3; g++) total += LOOK(&part[g * 128 + ID]);
    out[ID] = total;
  }
"""
# Only the stores pass them, or only the loads.
PASSING_STORES = PASSING.replace("LOOK(&part[g * 128 + ID])", "part[g * 128 + ID]").replace(
    "if (tick", "ACQUIRE if (tick"
)
PASSING_LOADS = PASSING.replace("SET(&part[at], a[at] * 3);\n  DRAIN", "part[at] = a[at] * 3;\n  RELEASE")
# Nothing is handed over: sums by atomics, a loop around an atomic that does what the machine lacks, indices of tiles.
ATOMICS = "  __hip_atomic_fetch_add(&out[ID], a[at], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);"
EMULATED = """
  part[at] = a[at] * 3;
  u32 old = LOOK(&out[ID]);
  while (!__hip_atomic_compare_exchange_strong(&out[ID], &old, old * 2 + 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                               __HIP_MEMORY_SCOPE_AGENT)) {}
  part[at] += flag[ID];
"""
QUEUE = """
  for (;;) {
    if (ID == 0) ticket = COUNT(flag);
    SYNC
    u32 tile = ticket;
    SYNC
    if (tile >= 3) break;
    part[tile * 128 + ID] = a[tile * 128 + ID] * 3;
  }
"""
KERNELS = {
    "split_k": SPLIT_K, "one_for_all": ONE_FOR_ALL, "stream_k": STREAM_K, "flags": FLAGS, "two_steps": TWO_STEPS,
    "leaders": LEADERS, "lock": LOCK, "zeroed": ZEROED, "passing": PASSING,
    "passing_stores": PASSING_STORES, "passing_loads": PASSING_LOADS, "atomics": ATOMICS, "emulated": EMULATED,
    "queue": QUEUE,
}  # fmt: skip


NOTHING_HANDED_OVER = {"atomics", "emulated", "queue"}


@cache
def compiled(name: str, arch: str) -> CodeObject:
    return find_toolchain().compile(f"{_FRAME}{KERNELS[name]}}}", arch)


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceEdit:
    """Takes the instruction whose text begins so, the `which` of them: or its `flags`, or swaps it with another."""

    begins: str
    which: int = 0
    flags: tuple[str, ...] = ()
    other: str = ""
    other_which: int = 0

    def apply(self, instructions: Sequence[Instruction]) -> tuple[Instruction, ...]:
        at, edited = _place_of(instructions, self.begins, self.which), [*instructions]
        here = edited[at]
        if self.other:
            there = _place_of(instructions, self.other, self.other_which)
            edited[at], edited[there] = spelled_as(here, edited[there]), spelled_as(edited[there], here)
        elif self.flags:
            kept = tuple(each for each in here.modifiers if each not in self.flags)
            text = " ".join(each for each in here.text.split() if each not in self.flags)
            edited[at] = replace(here, modifiers=kept, text=text)
        else:
            edited[at] = replace(here, opcode="s_nop", operands=("0",), modifiers=(), text="s_nop 0")
        return tuple(edited)


def _place_of(instructions: Sequence[Instruction], begins: str, which: int) -> int:
    return [at for at, each in enumerate(instructions) if each.text.startswith(begins)][which]


def spelled_as(place: Instruction, other: Instruction) -> Instruction:
    """Another instruction at this place."""
    spelling = {"opcode": other.opcode, "operands": other.operands, "modifiers": other.modifiers, "text": other.text}
    return replace(place, **spelling)  # type: ignore[arg-type]  # each has its own type


def executed(
    name: str, arch: str, instructions: tuple[Instruction, ...], order: Interleaving
) -> tuple[Any, tuple[Finding, ...]]:
    """The outputs of a launch of three workgroups, and what it finds."""
    a = np.random.default_rng(5).integers(0, 2**20, GROUPS * N, dtype=np.uint32)
    outcome = run_kernel(
        load_program(compiled(name, arch).kernel("k"), instructions),
        args=[a, np.zeros(GROUPS * N, np.uint32), np.zeros(N, np.uint32), np.zeros(GROUPS * N, np.uint32)],
        grid=(GROUPS, 1, 1),
        block=(N, 1, 1),
        interleaving=order,
    )
    return outcome.buffers, outcome.findings
