"""What has to stay before what in a loop, and the counts of waits where they stand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rota.errors import IsaError
from rota.improve.loop_block import LoopBlock, count_moved, may_be_repeated, read_block, respell_wait
from rota.improve.order_search import find_weaker_waits
from rota.isa.disassembly import read_listing
from rota.prove.operation import read_operation
from rota.targets.registry import architecture_named
from tests.isa.single import facts, listing

ARCH = architecture_named("gfx950")
LOADS = "\n".join(f"ds_read_b32 v{10 + each}, v1 offset:{4 * each}" for each in range(4))


def block(text: str) -> LoopBlock:
    assert ARCH is not None
    instructions = read_listing(listing(f"on:\n{text}\ns_cbranch_scc1 on"), "k")
    number = next(place for place, each in enumerate(instructions) if each.target is not None)
    chain = [read_operation(each, place, ARCH) for place, each in enumerate(instructions[:number])]
    return read_block("k", instructions, chain, ARCH)


def texts(found: LoopBlock, numbers: frozenset[int]) -> list[str]:
    return [found.operations[each].instruction.text for each in sorted(numbers)]


def is_legal(found: LoopBlock, order: Sequence[int]) -> bool:
    first = all(found.before[number] <= set(order[:place]) for place, number in enumerate(order))
    return first and len(order) == len(found.items)


def test_a_wait_covers_what_it_did_wherever_it_stands() -> None:
    """Four reads, a wait that leaves two in flight, and what uses the first one."""
    found = block(
        f"{LOADS}\ns_waitcnt lgkmcnt(2)\nv_mov_b32_e32 v20, v10\nv_mov_b32_e32 v21, v5\nv_mov_b32_e32 v22, v6"
    )
    first, wait, use = found.first, found.first + 4, found.first + 5
    assert found.count_waits(found.items)[wait] == {"lgkmcnt": 2}
    earlier = (first, first + 1, wait, first + 2, first + 3, *found.items[5:])
    assert is_legal(found, earlier)
    assert found.count_waits(earlier)[wait] == {"lgkmcnt": 0}
    assert not is_legal(found, (first, wait, first + 1, *found.items[2:4], *found.items[5:]))  # not yet issued
    assert wait in found.before[use]
    assert wait not in found.before[use + 1]


def test_results_of_the_trip_before_need_the_wait_that_covers_them() -> None:
    """The wait leaves four in flight: those of this trip, and covers those of the one before."""
    found = block(
        f"{LOADS}\ns_waitcnt lgkmcnt(4)\nv_mov_b32_e32 v20, v13\nv_mov_b32_e32 v21, v5\nv_mov_b32_e32 v22, v6"
    )
    wait, use = found.first + 4, found.first + 5
    assert found.count_waits(found.items)[wait] == {"lgkmcnt": 4}
    assert wait in found.before[use]
    assert found.first not in found.before[wait]


def test_queues_keep_their_order_and_others_move() -> None:
    found = block(f"{LOADS}\nbuffer_load_dword v30, v2, s[4:7], 0 offen\nv_mov_b32_e32 v21, v5\nv_mov_b32_e32 v22, v6"
                  "\nv_mov_b32_e32 v23, v7")  # fmt: skip
    assert texts(found, found.before[found.first + 1]) == [found.operations[found.first].instruction.text]
    assert found.before[found.first + 4] == frozenset()


def test_what_needs_m0_or_lds_stays() -> None:
    quiet = [f"v_mov_b32_e32 v{20 + each}, v5" for each in range(4)]
    lines = ("s_mov_b32 m0, s8", "buffer_load_dword v2, s[4:7], 0 offen lds", "ds_read_b32 v3, v4", "s_barrier", *quiet)
    found = block("\n".join(lines))
    first = found.first
    assert first in found.before[first + 1]  # M0
    assert first + 1 in found.before[first + 2]  # LDS
    assert {first + 1, first + 2} <= found.before[first + 3]
    assert found.before[first + 4] == frozenset()


def test_scalar_loads_come_back_in_any_order() -> None:
    lines = ("s_load_dword s20, s[0:1], 0x0", *["v_mov_b32_e32 v21, v5"] * 7)
    with pytest.raises(IsaError, match="I610"):
        block("\n".join((*lines, "s_waitcnt lgkmcnt(1)")))
    found = block("\n".join((*lines, "s_waitcnt lgkmcnt(0)", "s_mov_b32 s21, s20")))
    wait = found.items[-2]
    assert found.count_waits(found.items)[wait] == {"lgkmcnt": 0}
    assert wait in found.before[found.items[-1]]


def test_the_words_of_a_wait() -> None:
    assert ARCH is not None
    found = block("s_waitcnt vmcnt(3) lgkmcnt(2)\n" + "\n".join(["v_mov_b32_e32 v21, v5"] * 8))
    operation = found.operations[found.first]
    made = respell_wait(operation, {"vmcnt": 35, "lgkmcnt": 1}, ARCH)
    assert made is not None
    assert made.encoding == (0xBF8C0000 | 2 << 14 | 1 << 8 | 7 << 4 | 3,)
    assert respell_wait(operation, {"vmcnt": 63, "lgkmcnt": 15}, ARCH) is None


def test_memory_instructions_that_are_executed_again_together() -> None:
    first, then = "buffer_load_dword v4, v8, s[4:7], 0 offen", "buffer_load_dword v8, v9, s[4:7], 0 offen"
    other, store = "buffer_load_dword v5, v9, s[4:7], 0 offen", "buffer_store_dword v5, v9, s[4:7], 0 offen"
    found = block("\n".join((first, then, other, store, *["v_mov_b32_e32 v21, v12"] * 6)))
    one, overwrites, reads, stores = (found.operations[found.first + place] for place in range(4))
    assert not may_be_repeated([one], overwrites)
    assert may_be_repeated([], overwrites)
    assert may_be_repeated([one], reads)
    assert not may_be_repeated([one], stores)
    assert not may_be_repeated([overwrites], one)
    own = block("\n".join(("buffer_load_dword v8, v8, s[4:7], 0 offen", *["v_mov_b32_e32 v21, v12"] * 8)))
    overwrites_own = own.operations[own.first]
    assert may_be_repeated([], overwrites_own)
    assert not may_be_repeated([overwrites_own], reads)


def test_the_fewest_moves() -> None:
    assert count_moved((0, 1, 2, 3)) == 0
    assert count_moved((3, 0, 1, 2)) == 1
    assert count_moved((3, 2, 1, 0)) == 3


WAITS = """
s_load_dwordx2 s[4:5], s[0:1], 0x0
s_waitcnt lgkmcnt(0)
{store}
s_mov_b32 s9, 0
on:
global_load_dword v2, v1, s[4:5]
s_waitcnt vmcnt(0)
v_mov_b32_e32 v3, v2
s_add_u32 s9, s9, 1
s_cmp_lt_u32 s9, 8
s_cbranch_scc1 on"""


@pytest.mark.parametrize(("store", "weaker"), [("", 1), ("global_store_dword v1, v0, s[4:5]", 0)])
def test_a_wait_stays_where_a_store_may_come_before(store: str, weaker: int) -> None:
    """A judge that lets everything through: what other workgroups see, it doesn't judge."""
    assert ARCH is not None
    instructions = read_listing(listing(WAITS.format(store=store)), "k")
    number = next(place for place, each in enumerate(instructions) if each.text == "s_waitcnt vmcnt(0)")
    numbers = range(number, number + 1)
    assert len(find_weaker_waits(facts(), instructions, numbers, ARCH, lambda _: True)) == weaker
    assert find_weaker_waits(facts(), instructions, numbers, ARCH, lambda _: False) == {}
