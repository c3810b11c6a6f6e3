"""The last workgroup to arrive adds up what all have written, as split-K kernels do: right, and wrong if weakened."""

from __future__ import annotations

import numpy as np
import pytest

from rota.isa.launch.interleaving import LATEST, backwards, draw_order
from rota.isa.launch.run import KernelOutcome, run_kernel
from tests.isa.sources import program

GROUPS, N = 3, 128
SOURCE = """
#define FENCE(order) __builtin_amdgcn_fence(order, "agent");
KERNEL(const u32* a, u32* part, u32* count, u32* o) {
  SHARED u32 ticket;
  int at = __builtin_amdgcn_workgroup_id_x() * 128 + ID;
  part[at] = a[at] * 3;
  FENCE(__ATOMIC_RELEASE)
  SYNC
  if (ID == 0) ticket = __hip_atomic_fetch_add(count, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  SYNC
  if (ticket == 2) {
    FENCE(__ATOMIC_ACQUIRE)
    u32 total = 0;
    for (int g = 0; g < 3; g++) total += part[g * 128 + ID];
    o[ID] = total;
  }
}"""
A = np.random.default_rng(5).integers(0, 2**20, GROUPS * N, dtype=np.uint32)
COUNTER = "__hip_atomic_fetch_add(count, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)"
ORDERS = (LATEST, backwards(2), draw_order(2))


def run(source: str, arch: str, order: int) -> KernelOutcome:
    return run_kernel(
        program(source, arch),
        args=[A, np.zeros(GROUPS * N, np.uint32), np.zeros(1, np.uint32), np.zeros(N, np.uint32)],
        grid=(GROUPS, 1, 1),
        block=(N, 1, 1),
        interleaving=ORDERS[order],
    )


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("order", range(len(ORDERS)))
def test_an_atomic_counter_orders_workgroups(arch: str, order: int) -> None:
    outcome = run(SOURCE, arch, order)
    assert outcome.findings == ()
    assert outcome.buffers[3].tolist() == (A.reshape(GROUPS, N) * 3).sum(axis=0).tolist()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (COUNTER, "(*count)++"),  # plain: everything conflicts
        ("  FENCE(__ATOMIC_RELEASE)\n  SYNC\n", ""),  # the counter runs ahead of the stores
        ("  SYNC\n  if (ticket", "  if (ticket"),  # a wave looks at the ticket, and at memory, too early
    ],
)
def test_what_is_weaker_is_found(old: str, new: str) -> None:
    assert SOURCE.count(old) >= 1
    codes = {finding.code for finding in run(SOURCE.replace(old, new), "gfx950", 0).findings}
    assert codes & {"I303", "I109", "I301"}


def test_a_volatile_counter_is_taken_for_an_atomic_one() -> None:
    """Its load and its store have the bits of atomic ones; that the two are not one is not seen."""
    assert run(SOURCE.replace(COUNTER, "(*(volatile u32*)count)++"), "gfx950", 0).findings == ()
