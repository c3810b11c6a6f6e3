"""Accesses through raw buffers whose offset is chosen: what is masked has one beyond the buffer's range."""

from __future__ import annotations

import pytest

from rota.isa.binary.toolchain import read_object
from rota.prove.footprint.accesses import accesses_of
from rota.prove.footprint.apart import find_overlaps
from rota.prove.footprint.bounds import Reach, judge_bounds, parse_contract, report_bounds
from rota.prove.footprint.drawn_launches import show_outside
from tests.prove.footprint.test_guards import reaches
from tests.shared import shared

# s[12:15] is a raw buffer at data, with a range of 2 GiB, as Triton makes it.
BUFFER = "s_mov_b64 s[12:13], s[4:5]\ns_mov_b32 s14, 0x7ffffffe\ns_mov_b32 s15, 0x27000\n"
LOAD = "buffer_load_dword v9, v1, s[12:15], 0 offen offset:8"


@pytest.mark.parametrize(
    ("offset", "reach"),
    [
        ("0x80000000", Reach.INSIDE),  # beyond the range: nothing is read
        ("0xfffffffc", Reach.UNDECIDED),  # with 8 it is 4, or 2**32 + 4
        ("0x1000", Reach.UNDECIDED),  # in the range, and beyond the extent
        ("0x80", Reach.INSIDE),
    ],
)
def test_an_offset_beyond_the_range_accesses_nothing(offset: str, reach: Reach) -> None:
    assert reaches(f"{BUFFER}v_mov_b32_e32 v1, {offset}\n{LOAD}") == {reach}


VADD = ("t_vadd.gfx950.hsaco", ("arg0=4*arg3", "arg1=4*arg3", "arg2=4*arg3"), ("arg3=16..1048576", "group_x=0..65535"))
SOFTMAX = (
    "t_softmax.gfx950.hsaco", ("arg0=4*rows*arg2", "arg1=4*rows*arg2"),
    ("rows=1..65536", "arg2=1..8192", "arg3=1..8192"),
)  # fmt: skip
Stated = tuple[str, tuple[str, ...], tuple[str, ...]]


def levels(stated: Stated, where: tuple[str, ...]) -> set[object]:
    name, extents, ranges = stated
    code = read_object(shared(f"kernels/compiled/{name}"))
    kernel = accesses_of(code)
    contract = parse_contract(kernel, extents, ranges, where)
    judged = judge_bounds(kernel, contract)
    assert {each.reach for each in judged} <= {Reach.INSIDE, Reach.UNDECIDED}
    shown = show_outside(code, kernel, judged, contract, report_bounds(judged))
    return {dict(each.evidence)["level"] for each in shown}


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize(
    ("stated", "right", "wrong"),
    [
        (VADD, ("arg3 % 16 == 0",), ()),  # what Triton assumed when it was compiled
        (SOFTMAX, ("arg3 <= arg2", "group_x < rows"), ("arg3 <= arg2 + 1", "group_x < rows")),
        (SOFTMAX, ("arg3 <= arg2", "group_x < rows"), ("arg3 <= arg2", "group_x <= rows")),
    ],
)
def test_masks_of_triton_keep_accesses_inside(stated: Stated, right: tuple[str, ...], wrong: tuple[str, ...]) -> None:
    assert levels(stated, right) == set()
    assert levels(stated, wrong) == {"shown"}


def test_what_is_masked_is_apart() -> None:
    """The masked items of all workgroups have one offset, at which nothing is written."""
    name, extents, ranges = VADD
    kernel = accesses_of(read_object(shared(f"kernels/compiled/{name}")))
    assert find_overlaps(kernel, parse_contract(kernel, extents, ranges)) == ()
