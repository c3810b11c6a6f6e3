"""Races in LDS are known from the accesses alone: in every order of the waves, whatever lands when."""

from __future__ import annotations

import numpy as np
import pytest

from rota.isa.binary.kernel_facts import Argument
from rota.isa.decoded import KernelProgram, load_program
from rota.isa.launch.interleaving import Interleaving, behind, interleavings
from rota.isa.launch.run import run_kernel
from rota.isa.races import SEEN_NOT
from rota.isa.wave.operand import SHARED_BASE
from tests.isa.single import LDS_BYTES, facts, listing
from tests.wording.golden import worded

ORDERS = interleavings(2, 6)
# The whole workgroup uses words 0 to 63; each wave has its lanes' addresses in v2.
_OPENING = """
s_load_dwordx2 s[4:5], s[0:1], 0x0
s_mov_b32 s6, 0x1000
s_mov_b32 s7, 0x27000
s_mov_b32 m0, 0
v_lshrrev_b32_e32 v1, 6, v0
v_and_b32_e32 v2, 63, v0
v_readfirstlane_b32 s8, v1
v_lshlrev_b32_e32 v2, 2, v2
v_mov_b32_e32 v3, 7
s_waitcnt lgkmcnt(0)
s_cmp_lg_u32 s8, 0
s_cbranch_scc1 .LBB0_2
"""
READ, WRITE, WAIT, BARRIER = "ds_read_b32 v8, v2", "ds_write_b32 v2, v3", "s_waitcnt lgkmcnt(0)", "s_barrier"
OTHER_WRITE = "ds_write_b32 v2, v0"  # of another value
DMA, LANDED = "buffer_load_dword v2, s[4:7], 0 offen lds", "s_waitcnt vmcnt(0)"


def two_waves(first: str, second: str) -> KernelProgram:
    """Wave 0 runs the first lines, wave 1 the second."""
    text = f"{_OPENING}{first}\ns_endpgm\n.LBB0_2:\n{second}"
    pointer = Argument(name="from", offset=0, size=8, kind="global_buffer")
    launch = facts(user_sgprs=(("kernarg_segment_ptr", 2),), kernarg_bytes=8, arguments=(pointer,), max_workgroup=128)
    return load_program(launch, listing(text))


def found(program: KernelProgram, order: Interleaving, waves: int = 2) -> set[str]:
    source = np.full(LDS_BYTES // 4, 7, np.uint32)
    outcome = run_kernel(program, args=[source], block=(64 * waves, 1, 1), interleaving=order)
    return {finding.code for finding in outcome.findings} - {"I301"}  # nobody writes first here


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((READ, WAIT), (WRITE, WAIT)),
        ((READ,), (WRITE,)),  # no wait covers the read before the kernel ends
        ((READ, BARRIER, WAIT), (BARRIER, WRITE, WAIT)),  # a wait, but after the barrier
        ((READ, BARRIER, BARRIER, WAIT), (BARRIER, BARRIER, WRITE)),
        ((READ, BARRIER), (BARRIER, DMA, LANDED)),
        ((READ, READ, "s_waitcnt lgkmcnt(1)", BARRIER, WAIT), (BARRIER, WRITE)),  # the second read isn't covered
        ((WRITE, BARRIER, WAIT), (BARRIER, READ, WAIT)),
        ((WRITE, BARRIER, WAIT), (BARRIER, OTHER_WRITE, WAIT)),
        ((DMA, BARRIER, LANDED), (BARRIER, READ, WAIT)),
        ((DMA, BARRIER, LANDED), (BARRIER, WRITE, WAIT)),
        ((DMA, BARRIER, LANDED), (BARRIER, DMA, LANDED)),
        ((DMA, LANDED), (READ, WAIT)),
        # The wave's own write covers nothing of the read that other waves' writes must follow.
        ((READ, "s_nop 0", DMA, LANDED, BARRIER), (BARRIER, WRITE)),
    ],
)
@pytest.mark.parametrize("order", ORDERS, ids=lambda order: order.label)
def test_a_race_is_found_in_every_order(first: tuple[str, ...], second: tuple[str, ...], order: Interleaving) -> None:
    for one, two in ((first, second), (second, first)):
        assert "I109" in found(two_waves("\n".join(one), "\n".join(two)), order)


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize("accesses", [(READ, WRITE), (WRITE, READ), (READ, WAIT, WRITE, READ), (DMA, LANDED, READ)])
@pytest.mark.parametrize("order", ORDERS, ids=lambda order: order.label)
def test_a_wave_alone_with_its_words_races_with_nobody(accesses: tuple[str, ...], order: Interleaving) -> None:
    """The other wave used them an epoch before: both read, then one of them reads and writes."""
    both = f"{READ}\n{WAIT}\n{BARRIER}"
    assert found(two_waves("\n".join((both, *accesses)), both), order) == set()
    assert found(two_waves(both, "\n".join((both, *accesses))), order) == set()


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: order.label)
def test_a_tree_of_sums_in_which_a_wave_reads_and_writes_its_own_words(order: Interleaving) -> None:
    """Wave 0 reads words of wave 1 after a barrier, and then its own words, which it overwrites at once."""
    own = f"{READ}\n{WAIT}\n{WRITE}\n{WAIT}"
    other = "v_add_u32_e32 v2, 0x100, v2"
    first = f"{WRITE}\n{WAIT}\n{BARRIER}\n{own}\n{other}\n{READ}\n{WAIT}"
    second = f"{other}\n{WRITE}\n{WAIT}\n{BARRIER}"
    assert found(two_waves(first, second), order) == set()


@pytest.mark.parametrize(
    "accesses",
    [
        (DMA, READ, WAIT),
        (DMA, WRITE, WAIT),
        (DMA, DMA, LANDED),
        (READ, DMA, LANDED, WAIT),
        (WRITE, DMA, LANDED, WAIT),
        (DMA, BARRIER, READ, LANDED, WAIT),  # a barrier is no wait
        (DMA, WAIT, READ, WAIT),  # nor is one for another counter
    ],
)
@pytest.mark.parametrize("order", ORDERS, ids=lambda order: order.label)
def test_a_wave_waits_for_its_own_load_to_lds(accesses: tuple[str, ...], order: Interleaving) -> None:
    other = BARRIER if BARRIER in accesses else "s_nop 0"
    assert found(two_waves("\n".join(accesses), other), order) == {"I106"}


def test_a_race_names_both_ends_and_what_is_missing() -> None:
    program = two_waves(f"{READ}\n{BARRIER}\n{WAIT}", f"{BARRIER}\n{WRITE}")
    args, block = [np.zeros(1024, np.uint32)], (128, 1, 1)
    uninitialised, finding = run_kernel(program, args=args, block=block).findings
    assert (uninitialised.code, finding.code) == ("I301", "I109")
    assert [concern.label for concern in finding.concerns] == [WRITE, READ]
    shown = dict(worded(finding).evidence)
    assert set(shown) == {"wave", "other wave", "bytes", "missing", "rests on", "seen"}
    assert (shown["wave"], shown["other wave"], shown["bytes"], shown["seen"]) == (1, 0, "0 to 255", SEEN_NOT)
    _, finding = run_kernel(program, args=args, block=block, interleaving=behind(0)).findings
    worded(finding)


@pytest.mark.parametrize(("waits", "races"), [("s_waitcnt lgkmcnt(0)", True), ("s_waitcnt vmcnt(0) lgkmcnt(0)", False)])
def test_a_flat_read_is_covered_by_both_counters_only(waits: str, races: bool) -> None:
    """A later ds_read of the same bytes, which one wait covers, doesn't stand for it."""
    flat = f"v_mov_b32_e32 v4, v2\nv_mov_b32_e32 v5, {SHARED_BASE >> 32:#x}\nflat_load_dword v9, v[4:5]"
    program = two_waves(f"{flat}\n{READ}\n{waits}\n{BARRIER}", f"{BARRIER}\n{WRITE}\n{WAIT}")
    for order in ORDERS:
        assert found(program, order) == ({"I109"} if races else set())
