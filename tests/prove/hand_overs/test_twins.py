"""Kernels that hand data over between workgroups, right and with one piece less: proof and execution say the same."""

from __future__ import annotations

import pytest

from rota.errors import Finding
from rota.prove.hand_overs import HandOverKind, HandOverReport, find_hand_overs
from rota.targets.memory_model import HandOverPiece as Piece
from tests.prove.hand_overs.kernels import KERNELS, ORDERS, PieceEdit, compiled, executed

WAIT, WRITE_BACK, INVALIDATE, BARRIER = "s_waitcnt vmcnt(0)", "buffer_wbl2", "buffer_inv", "s_barrier"
STORE, LOAD = "global_store_dword", "global_load_dword"
WRITES_LATE = {Piece.DATA_WAIT, Piece.WRITE_BACK_WAIT}
SC1 = ("sc1",)


def gone(begins: str, which: int = 0) -> PieceEdit:
    return PieceEdit(begins=begins, which=which)


def narrowed(begins: str, which: int = 0) -> PieceEdit:
    return PieceEdit(begins=begins, which=which, flags=SC1)


def swapped(begins: str, which: int, other: str, other_which: int) -> PieceEdit:
    return PieceEdit(begins=begins, which=which, other=other, other_which=other_which)


# By kernel: an edit, what is missing then, and the flag at which that is found.
ADD, SWAP = "global_atomic_add", "global_atomic_cmpswap"
TWINS = [
    ("split_k", gone(WRITE_BACK), {Piece.WRITE_BACK}, ADD),
    ("split_k", narrowed(WRITE_BACK), {Piece.WRITE_BACK_SCOPE}, ADD),
    ("split_k", swapped(STORE, 0, WRITE_BACK, 0), {Piece.WRITE_BACK}, ADD),
    ("split_k", gone(WAIT, 1), WRITES_LATE, ADD),
    ("split_k", gone(BARRIER, 0), {Piece.BARRIER_BEFORE}, ADD),
    ("split_k", gone(INVALIDATE), {Piece.INVALIDATE}, ADD),
    ("split_k", narrowed(INVALIDATE), {Piece.INVALIDATE_SCOPE}, ADD),
    ("split_k", gone(BARRIER, 1), {Piece.BARRIER_AFTER}, ADD),
    ("one_for_all", gone(BARRIER, 0), {Piece.BARRIER_BEFORE}, ADD),
    ("one_for_all", gone(WRITE_BACK), {Piece.WRITE_BACK}, ADD),
    ("one_for_all", gone(WAIT, 2), {Piece.WRITE_BACK_WAIT}, ADD),
    ("one_for_all", gone(INVALIDATE), {Piece.INVALIDATE}, ADD),
    ("one_for_all", gone(WAIT, 3), {Piece.WAIT_BEFORE_INVALIDATE}, ADD),
    ("one_for_all", gone(BARRIER, 1), {Piece.BARRIER_AFTER}, ADD),
    ("stream_k", gone(WRITE_BACK), {Piece.WRITE_BACK}, STORE),
    ("stream_k", gone(WAIT, 1), WRITES_LATE, STORE),
    ("stream_k", gone(BARRIER, 0), {Piece.BARRIER_BEFORE}, STORE),
    ("stream_k", narrowed(STORE, 1), {Piece.STORE_SCOPE}, STORE),
    ("stream_k", narrowed(LOAD, 3), {Piece.LOAD_SCOPE}, LOAD),
    ("stream_k", gone(INVALIDATE), {Piece.INVALIDATE}, LOAD),
    ("stream_k", gone(BARRIER, 1), {Piece.BARRIER_AFTER}, LOAD),
    ("flags", gone(WRITE_BACK), {Piece.WRITE_BACK}, STORE),
    ("flags", gone(WAIT, -1), WRITES_LATE, STORE),
    ("flags", narrowed(STORE, -1), {Piece.STORE_SCOPE}, STORE),
    ("flags", narrowed(LOAD, 1), {Piece.LOAD_SCOPE}, LOAD),
    ("flags", gone(INVALIDATE), {Piece.INVALIDATE}, LOAD),
    ("flags", swapped(WAIT, 1, INVALIDATE, 0), {Piece.WAIT_BEFORE_INVALIDATE}, LOAD),
    ("two_steps", gone(WRITE_BACK), {Piece.WRITE_BACK}, ADD),
    ("two_steps", gone(WAIT, 1), WRITES_LATE, ADD),
    ("two_steps", gone(BARRIER, 0), {Piece.BARRIER_BEFORE}, ADD),
    ("two_steps", narrowed(LOAD, 2), {Piece.LOAD_SCOPE}, LOAD),
    ("two_steps", gone(INVALIDATE), {Piece.INVALIDATE}, LOAD),
    ("two_steps", gone(BARRIER, 1), {Piece.BARRIER_AFTER}, LOAD),
    ("leaders", gone(WRITE_BACK), {Piece.WRITE_BACK}, ADD),
    ("leaders", gone(INVALIDATE), {Piece.INVALIDATE}, LOAD),
    ("lock", gone(WRITE_BACK), {Piece.WRITE_BACK}, STORE),
    ("lock", gone(WAIT, 2), WRITES_LATE, STORE),
    ("lock", narrowed(STORE, 1), {Piece.STORE_SCOPE}, STORE),
    ("lock", gone(INVALIDATE), {Piece.INVALIDATE}, SWAP),
    ("passing_stores", gone(WAIT, 1), {Piece.DATA_WAIT}, ADD),
    ("passing_stores", gone(BARRIER, 0), {Piece.BARRIER_BEFORE}, ADD),
    ("passing_stores", narrowed(STORE, 0), {Piece.WRITE_BACK}, ADD),
    ("passing_stores", gone(INVALIDATE), {Piece.INVALIDATE}, ADD),
    ("passing_loads", gone(WAIT, 1), WRITES_LATE, ADD),
    ("passing_loads", gone(WRITE_BACK), {Piece.WRITE_BACK}, ADD),
    ("passing_loads", narrowed(LOAD, 2), {Piece.INVALIDATE}, ADD),
    ("passing_loads", gone(BARRIER, 1), {Piece.BARRIER_AFTER}, ADD),
    ("passing", narrowed(STORE, 0), {Piece.WRITE_BACK}, ADD),
    ("passing", narrowed(LOAD, 2), {Piece.INVALIDATE}, ADD),
]
# Data that both sides access with sc1 are in no race; that the flag runs ahead of them, the proof alone says.
ONLY_PROVED = [
    ("passing", gone(WAIT, 1), {Piece.DATA_WAIT}),
    ("passing", gone(BARRIER, 0), {Piece.BARRIER_BEFORE}),
    ("passing", gone(BARRIER, 1), {Piece.BARRIER_AFTER}),
    ("zeroed", gone(BARRIER, 1), {Piece.BARRIER_BEFORE}),
    ("zeroed", gone(BARRIER, 2), {Piece.BARRIER_AFTER}),
]


def report(name: str, arch: str, edit: PieceEdit | None = None) -> HandOverReport:
    code = compiled(name, arch)
    instructions = code.instructions("k")
    return find_hand_overs(code.kernel("k"), instructions if edit is None else edit.apply(instructions))


def missing_in(findings: tuple[Finding, ...]) -> set[Piece]:
    texts = (str(dict(each.evidence).get("missing", "")) for each in findings)
    return {Piece(part) for text in texts for part in text.split(", ") if text}


def missing_when_run(name: str, arch: str, edit: PieceEdit | None) -> set[Piece]:
    instructions = compiled(name, arch).instructions("k")
    edited = instructions if edit is None else edit.apply(instructions)
    found = [each for order in ORDERS for each in executed(name, arch, edited, order)[1]]
    return missing_in(tuple(each for each in found if each.code == "I303"))


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize(("name", "edit", "pieces", "flag"), TWINS)
def test_a_piece_less_is_found_by_both(name: str, edit: PieceEdit, pieces: set[Piece], flag: str, arch: str) -> None:
    found = report(name, arch, edit)
    assert {each.code for each in found.findings} == {"I305"}
    required = tuple(each for each in found.findings if dict(each.evidence)["level"] == "required")
    assert missing_in(required) == pieces
    assert all(each.concerns[0].label.startswith(flag) for each in required)
    assert missing_when_run(name, arch, edit) >= missing_in(found.findings)


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_no_source_says_that_a_write_back_waits_for_other_waves(arch: str) -> None:
    """Nor that it doesn't: compilers have no wait there."""
    edit = gone(WAIT, 1)
    (finding,) = report("one_for_all", arch, edit).findings
    assert missing_in((finding,)) == {Piece.DATA_WAIT} == missing_when_run("one_for_all", arch, edit)
    assert dict(finding.evidence)["level"] == "undecided"


@pytest.mark.parametrize(("name", "edit", "pieces"), ONLY_PROVED)
def test_an_order_of_atomic_accesses_is_proved_alone(name: str, edit: PieceEdit, pieces: set[Piece]) -> None:
    found = report(name, "gfx950", edit)
    assert missing_in(found.findings) == pieces
    assert missing_when_run(name, "gfx950", edit) == set()


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("name", KERNELS)
def test_right_ones_have_no_findings(name: str, arch: str) -> None:
    assert report(name, arch).findings == ()
    results = [executed(name, arch, compiled(name, arch).instructions("k"), order) for order in ORDERS]
    assert all(not findings for _, findings in results)
    assert len({tuple(map(tuple, buffers)) for buffers, _ in results}) == 1


KINDS = {
    "split_k": {HandOverKind.COUNTER}, "one_for_all": {HandOverKind.COUNTER}, "passing": {HandOverKind.COUNTER},
    "passing_stores": {HandOverKind.COUNTER}, "passing_loads": {HandOverKind.COUNTER},
    "stream_k": {HandOverKind.RELEASE, HandOverKind.POLL}, "flags": {HandOverKind.RELEASE, HandOverKind.POLL},
    "two_steps": {HandOverKind.RELEASE, HandOverKind.POLL}, "lock": {HandOverKind.RELEASE, HandOverKind.POLL},
    "zeroed": {HandOverKind.COUNTER, HandOverKind.RELEASE, HandOverKind.POLL},
    "leaders": {HandOverKind.RELEASE, HandOverKind.POLL},
    "atomics": set(), "emulated": set(), "queue": {HandOverKind.QUEUE},
}  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
def test_each_is_recognised(name: str) -> None:
    assert {each.kind for each in report(name, "gfx950").hand_overs} == KINDS[name]
