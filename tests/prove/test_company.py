"""Who goes on with whom: where waves part, meet again and end, and that none of it hides a race."""

from __future__ import annotations

import pytest

from rota.isa.disassembly import read_listing
from rota.isa.registers import SCALAR
from rota.prove.decisions import Decisions
from rota.prove.evaluation import Evaluator
from rota.prove.operation import read_operation
from rota.prove.slicing import derive_slice
from rota.prove.state import Half, WaveSet
from rota.prove.symbol import Value, key_of
from rota.prove.widening import LoopVisit, ProductState, Widener, register_key, shape_of
from rota.targets.registry import architecture_named
from tests.isa.single import listing
from tests.prove.written import codes, judged

# s24 is the number of the wave; v1 its own words, v2 those of the other wave.
START = """
v_lshlrev_b32_e32 v1, 2, v0
v_xor_b32_e32 v2, 0x100, v1
v_lshrrev_b32_e32 v4, 6, v0
s_load_dwordx8 s[8:15], s[0:1], 0x0
s_load_dwordx8 s[16:23], s[0:1], 0x20
s_waitcnt lgkmcnt(0)
v_readfirstlane_b32 s24, v4
"""
ROLES = "s_cmp_eq_u32 s24, 0\ns_cbranch_scc0 second\n{first}\ns_branch out\nsecond:\n{second}\nout:\n{rest}\ns_endpgm\n"


def roles(first: str, second: str, rest: str = "s_nop 0") -> str:
    return START + ROLES.format(first=first, second=second, rest=rest)


def wrong(text: str) -> list[str]:
    """What is more than a note."""
    return [code for code in codes(judged(text)) if code != "I121"]


# Ended waves.

LEAVES = "s_endpgm"
BEHIND = "s_barrier\n{access}\ns_waitcnt lgkmcnt(0)"


def test_what_an_ended_wave_would_have_read_is_nobodys_concern() -> None:
    assert wrong(roles(f"ds_read_b32 v3, v2\n{LEAVES}", BEHIND.format(access="ds_write_b32 v1, v0"))) == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (f"ds_write_b32 v2, v0\n{LEAVES}", BEHIND.format(access="ds_read_b32 v3, v1")),  # a write lands all the same
        (f"ds_read_b32 v3, v2\n{LEAVES}", "ds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)"),  # no barrier between
        ("ds_read_b32 v3, v2\ns_barrier", BEHIND.format(access="ds_write_b32 v1, v0")),  # who reads goes on
    ],
    ids=["write", "same stretch", "not ended"],
)
def test_what_an_ended_wave_leaves_in_lds_is(first: str, second: str) -> None:
    assert wrong(roles(first, second)) == ["I109"]


def test_ended_waves_are_dropped_behind_a_barrier_but_not_what_they_have_under_way() -> None:
    """Two barriers later a load to LDS of a wave that has ended may still land."""
    stage = (
        "s_load_dword s26, s[4:5], 0x0 glc\ns_waitcnt lgkmcnt(0)\ns_cmp_eq_u32 s26, 0\ns_cbranch_scc1 out\ns_barrier\n"
    )
    stages = stage * 6
    verdict = judged(START + stages + "out:\ns_endpgm\n", waves=4)
    assert verdict.proved
    assert verdict.statistics.states < 800  # 958 if all are kept
    load = "s_mov_b32 m0, 0\ns_nop 0\nbuffer_load_dword v1, s[28:31], 0 offen lds\n"
    late = "s_barrier\ns_barrier\nds_read_b32 v3, v1\ns_waitcnt lgkmcnt(0)"
    assert sorted(wrong(roles(f"{load}{LEAVES}", late.replace("v3, v1", "v3, v2")))) == ["I109", "I403"]
    assert wrong(roles(f"{load}s_waitcnt vmcnt(0)\n{LEAVES}", late.replace("v3, v1", "v3, v2"))) == []


# Waves that go on alone.

# Rows of a tile: each wave stores its own as long as there are any.
ROWS = "".join(
    f"s_add_i32 s25, s24, {4 * number}\ns_cmp_ge_u32 s25, s8\ns_cbranch_scc1 out\n"
    f"global_store_dword v1, v0, s[4:5]\n{{odd{number % 2}}}\n"
    for number in range(24)
)
PLAIN = ROWS.format(odd0="", odd1="")


def test_waves_that_come_to_no_lds_and_no_barrier_go_on_alone() -> None:
    """Four waves that each leave at one of 24 rows: 24 to the fourth ways together, 24 times 4 alone."""
    verdict = judged(f"{START}{PLAIN}out:\ns_endpgm\n", waves=4)
    assert verdict.proved
    assert verdict.statistics.paths < 200


@pytest.mark.parametrize(
    "text",
    [
        f"v_mov_b32_e32 v5, 0\nds_write_b32 v5, v0\n{PLAIN}out:\ns_endpgm\n",  # before they part
        f"{PLAIN}v_mov_b32_e32 v5, 0\nds_write_b32 v5, v0\nout:\ns_endpgm\n",  # those that have all rows
        f"{PLAIN}out:\nv_mov_b32_e32 v5, 0\nds_write_b32 v5, v0\ns_endpgm\n",
    ],
    ids=["before", "past all rows", "in the end"],
)
def test_waves_that_come_to_lds_do_not(text: str) -> None:
    assert wrong(START + text) == ["I109"]


def test_a_wave_alone_is_judged_to_its_end() -> None:
    load = "global_load_dword v6, v1, s[4:5]\n"
    assert wrong(f"{START}{load}{PLAIN}v_mov_b32_e32 v7, v6\nout:\ns_endpgm\n") == ["I103"]
    text = (
        f"{START}s_mov_b32 m0, 0x800\ns_nop 0\nbuffer_load_dword v1, s[28:31], 0 offen lds\n{PLAIN}out:\n{{}}s_endpgm\n"
    )
    assert "I403" in wrong(text.format(""))
    assert "I403" not in wrong(text.format("s_waitcnt vmcnt(0)\n"))


# Paths that meet after waits.


def guarded(body: str, wait: str, count: int = 12) -> str:
    """A branch around a memory op for each of some arguments."""
    return "".join(
        f"s_cmp_lt_u32 s{8 + number}, {number + 3}\ns_cbranch_scc1 past{number}\n{body}\npast{number}:\n{wait}\n"
        for number in range(count)
    )


HANDOVER = "ds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)\ns_barrier\nds_read_b32 v3, v2\ns_waitcnt lgkmcnt(0)\ns_endpgm\n"


def test_paths_are_alike_behind_the_wait_at_which_they_meet() -> None:
    text = guarded(body="global_load_dword v6, v1, s[4:5]", wait="s_waitcnt vmcnt(0)\nv_mov_b32_e32 v7, v6")
    verdict = judged(START + text + HANDOVER)
    assert verdict.proved
    assert verdict.statistics.states < 20  # 25 where they meet before it


def test_a_wait_that_lets_one_op_go_on_makes_nothing_alike() -> None:
    text = guarded(body="global_load_dword v6, v1, s[4:5]", wait="s_waitcnt vmcnt(1)\nv_mov_b32_e32 v7, v6")
    verdict = judged(START + text + HANDOVER)
    assert [finding.code for finding in verdict.findings] == ["I103"]
    assert [*map(len, verdict.pairs)] == [12]


def test_a_write_that_a_wait_has_covered_is_still_one_without_a_barrier() -> None:
    """The path without the write comes to the wait first."""
    text = guarded(body="ds_write_b32 v1, v0", wait="s_waitcnt lgkmcnt(0)", count=4)
    verdict = judged(f"{START}{text}ds_read_b32 v3, v2\ns_waitcnt lgkmcnt(0)\ns_endpgm\n")
    assert [finding.code for finding in verdict.findings] == ["I109"]
    assert [*map(len, verdict.pairs)] == [4]
    assert wrong(f"{START}{text}s_barrier\nds_read_b32 v3, v2\ns_waitcnt lgkmcnt(0)\ns_endpgm\n") == []


# Waves of two kinds that become one again.

LOADED = roles(
    "global_load_dword v6, v1, s[4:5]", "global_load_dword v6, v2, s[4:5]", "s_barrier\n{wait}\nv_mov_b32_e32 v7, v6"
)


def test_loads_of_two_copies_of_the_code_are_one_where_waves_meet() -> None:
    assert wrong(LOADED.format(wait="s_waitcnt vmcnt(0)")) == []
    verdict = judged(LOADED.format(wait="s_nop 0"))
    found = [finding for finding in verdict.findings if finding.code == "I103"]
    shown = {concern.label for finding in found for concern in finding.concerns}
    lines = dict(found[0].evidence).get("pairs of instructions", 1)
    assert len(found) == 2 or lines == 2, shown  # each copy is named


def test_loads_to_other_registers_are_not() -> None:
    text = LOADED.replace("v6, v2", "v8, v2").format(wait="s_nop 0")
    assert wrong(text) == ["I103"]


def test_accesses_of_two_copies_of_the_code_are_told_each() -> None:
    verdict = judged(
        roles("ds_write_b32 v1, v0", "ds_write_b32 v1, v2", "s_barrier\nds_read_b32 v3, v2\ns_waitcnt lgkmcnt(0)")
    )
    assert [finding.code for finding in verdict.findings] == ["I109"]
    ((one, other),) = verdict.pairs
    assert len({*one, *other}) == 3  # both writes, each with the read


# Persistent kernels: what is to be done is read in each round, by both kinds of waves for themselves.
PERSISTENT = roles(
    """
s_mov_b32 s26, 0
round:
s_load_dword s27, s[8:9], s26
s_waitcnt lgkmcnt(0)
first:
ds_write_b32 v1, v0
s_waitcnt lgkmcnt(0)
s_barrier
s_barrier
s_add_i32 s27, s27, -1
s_cmp_gt_i32 s27, 0
s_cbranch_scc1 first
s_add_u32 s26, s26, 4
s_cmp_lt_u32 s26, s10
s_cbranch_scc1 round""",
    """
s_mov_b32 s26, 0
turn:
s_load_dword s27, s[{table}], s26
s_waitcnt lgkmcnt(0)
again:
s_barrier
ds_read_b32 v3, v2
s_waitcnt lgkmcnt(0)
s_barrier
s_add_i32 s27, s27, -1
s_cmp_gt_i32 s27, 0
s_cbranch_scc1 again
s_add_u32 s26, s26, 4
s_cmp_lt_u32 s26, s10
s_cbranch_scc1 turn""",
)


def test_registers_that_are_equal_in_two_kinds_of_waves_stay_so() -> None:
    assert judged(PERSISTENT.format(table="8:9")).proved
    assert "I121" in codes(judged(PERSISTENT.format(table="12:13")))


def test_what_was_equal_then_and_is_now_is_widened_to_one_unknown() -> None:
    """Registers of two kinds of waves; what is equal only now, or only then, stays apart."""
    one = Evaluator(64)
    old, new = (one.symbols.argument("argument", each) for each in (0, 4))
    row, other, third = SCALAR + 8, SCALAR + 9, SCALAR + 10
    now: dict[int, Value | Half] = {row: new, other: new, third: old}
    then: dict[int, Value | Half] = {row: old, other: 5, third: 5}
    lanes = one.masks.leaf((0,))
    wave_sets = [WaveSet(waves=(wave,), at=0, registers=dict(now), exec=lanes) for wave in range(2)]
    product = ProductState(wave_sets=wave_sets, known=Decisions(), forks=9)
    shape = shape_of(product)
    visits = tuple(LoopVisit(shape=shape, registers=(then, then), known=Decisions(), forks=each) for each in range(3))
    assert Widener(one, [0]).widen(product, visits, shape)
    mine, theirs = (wave_set.registers for wave_set in wave_sets)
    assert [key_of(value) for value in mine.values() if not isinstance(value, Half)] == [
        key_of(value) for value in theirs.values() if not isinstance(value, Half)
    ]
    assert len({register_key(value) for value in mine.values()}) == 3


# What is needed.

ADDRESS = """
{halves}
again:
s_mov_b64 exec, s[8:9]
v_mov_b32_e32 v1, s10
s_mov_b64 exec, s[12:13]
ds_read_b32 v3, v1
s_add_i32 s10, s11, s10
s_branch again
"""


@pytest.mark.parametrize(
    ("halves", "ends"),
    [
        ("s_mov_b32 s8, -1\ns_mov_b32 s9, -1", True),
        ("s_mov_b64 s[8:9], -1", True),
        ("s_mov_b32 s8, -1\ns_mov_b32 s9, s8", True),
        ("s_mov_b32 s8, -1", False),
        ("s_mov_b32 s9, -1", False),
        ("s_mov_b32 s8, -1\ns_mov_b32 s9, 1", False),
        ("s_mov_b64 s[8:9], -1\ns_mov_b32 s8, s14", False),
        ("s_mov_b64 s[8:9], -1\ns_load_dword s9, s[0:1], 0x0", False),
        ("s_mov_b64 s[14:15], -1\ns_cselect_b64 s[8:9], s[14:15], -1", True),
        ("s_mov_b64 s[14:15], -1\ns_cselect_b64 s[8:9], s[14:15], s[16:17]", False),
    ],
)
def test_a_vector_register_is_overwritten_where_both_halves_of_exec_are_all_ones(halves: str, *, ends: bool) -> None:
    """Only then is what it held before of no concern."""
    architecture = architecture_named("gfx942")
    assert architecture is not None
    text = listing(ADDRESS.format(halves=halves))
    operations = [read_operation(each, number, architecture) for number, each in enumerate(read_listing(text, "k"))]
    at = next(each.number for each in operations if each.name == "v_mov_b32")
    assert (derive_slice(operations, full=True).for_addresses[at] & 2 == 0) is ends
