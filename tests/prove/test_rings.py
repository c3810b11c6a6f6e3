"""Buffers that take turns by a remainder that is no power of two, in the proof."""

from __future__ import annotations

import pytest

from rota.prove.verdict import Status
from tests.prove.test_gfx1250 import FIRST, MEET, said

MAGIC = {3: (0xAAAAAAAB, 1), 5: (0xCCCCCCCD, 2)}  # a factor and a shift that divide by it
FEW = "s_lshr_b32 s7, s7, 5"  # a limit below 2**27


def turn(
    buffers: int = 3, read: int = 0, *, checked: bool = True, few: str = FEW, start: int = 0, step: int = 1,
    ends: str = "s_cmp_lg_u32 s8, s7",
) -> tuple[str, ...]:  # fmt: skip
    """Each round two waves write a buffer, meet, and read what the other one wrote to the buffer `read` rounds on."""
    factor, shift = MAGIC[buffers]

    def slot(to: int, counter: str) -> tuple[str, ...]:
        return (
            f"s_mul_hi_u32 s{to}, {counter}, {factor:#x}", f"s_lshr_b32 s{to}, s{to}, {shift}",
            f"s_mul_i32 s{to}, s{to}, {buffers}", f"s_sub_co_i32 s{to}, {counter}, s{to}",
            f"s_lshl_b32 s{to}, s{to}, 8",
        )  # fmt: skip

    return (
        *FIRST, "s_lshl_b32 s6, s6, 7", "v_add_nc_u32_e32 v1, s6, v1", "v_xor_b32_e32 v2, 0x80, v1",
        "s_load_b32 s7, s[0:1], 0x0", "s_wait_kmcnt 0x0", few,
        *(("s_cmp_eq_u32 s7, 0", "s_cbranch_scc1 end") if checked else ()), f"s_mov_b32 s8, {start}", "loop:",
        *slot(9, "s8"), f"s_add_co_i32 s12, s8, {read}", *slot(10, "s12"),
        "v_add_nc_u32_e32 v3, s9, v1", "v_add_nc_u32_e32 v4, s10, v2", "ds_store_b32 v3, v0", "s_wait_dscnt 0x0", *MEET,
        "ds_load_b32 v5, v4", "s_wait_dscnt 0x0", f"s_add_co_i32 s8, s8, {step}", ends, "s_cbranch_scc1 loop", "end:",
    )  # fmt: skip


@pytest.mark.parametrize("buffers", [3, 5])
def test_buffers_that_take_turns_are_different_ones(buffers: int) -> None:
    lines = turn(buffers)
    assert said(*lines, lds=256 * buffers) == (Status.PROVED, [])
    assert said(*turn(buffers, read=buffers), lds=256 * buffers) == (Status.PROVED, [])
    status, codes = said(*turn(buffers, read=1), lds=256 * buffers)  # the one that others write now
    assert (status, codes) == (Status.ALARM, ["I109"])


def test_what_is_left_after_the_last_buffer_is_outside() -> None:
    assert said(*turn(), lds=767)[0] is Status.ALARM


@pytest.mark.parametrize(
    "lines",
    [
        turn(checked=False),  # it may count past its limit, to 0xffffffff, and buffer 0 is written twice
        turn(start=1),
        turn(few="s_nop 0"),  # a limit of up to 0xffffffff
        turn(ends="s_cmp_lg_u32 s8, s3"),  # no number of the launch
        turn(step=2),  # it may step over its limit
    ],
)
def test_a_counter_that_may_pass_its_limit_keeps_no_remainder(lines: tuple[str, ...]) -> None:
    assert said(*lines, lds=768)[0] is Status.UNDECIDED


def test_a_counter_may_be_compared_by_size() -> None:
    assert said(*turn(ends="s_cmp_lt_u32 s8, s7"), lds=768) == (Status.PROVED, [])
