"""Loops of machine code as lowered programs: entries, places, copies and roles, and what isn't lifted."""

from __future__ import annotations

import pytest

from rota.cycles.predict import predict
from rota.emit.gemm.program_form import form_of
from rota.errors import RotaError
from rota.execute.executor import execute
from rota.program.entry import Space
from rota.program.kinds import OpKind
from rota.verify.prove import verify
from tests.lift.small_loop import BUFFERS, COUNT, lifted, looped


def lds(name: str, loop: str) -> list[str]:
    return [
        str(place)
        for entry in lifted(loop).program.kernel
        if entry.op.name.startswith(name)
        for place in (*entry.effect.reads, *entry.effect.writes)
        if place.space is Space.LDS
    ]


def test_each_instruction_is_an_entry_with_its_effect() -> None:
    program = lifted(looped(*BUFFERS)).program
    half = program.kernel[: len(program.kernel) // 2]
    assert [entry.op.kind for entry in half] == [
        OpKind.WAIT, OpKind.WAIT, OpKind.BARRIER, OpKind.LDS_READ, OpKind.SCALAR, OpKind.SCALAR, OpKind.VALU,
        OpKind.DMA, OpKind.WAIT, OpKind.MMA, OpKind.SCALAR,
    ]  # fmt: skip
    assert [str(entry.op) for entry in half[:3]] == ["wait_vm(0)", "wait_lgkm(0)", "barrier"]
    load, product = half[7], half[9]
    assert (load.effect.counter, load.effect.tokens) == ("vmcnt", 1)
    assert [str(place) for place in product.effect.reads] == ["registers v[4:7][0]"]
    assert [str(place) for place in product.effect.writes] == ["accumulator a[0:3][0,0]"]


def test_buffers_that_take_turns_are_copies_and_the_trip_is_unrolled() -> None:
    program = lifted(looped(*BUFFERS)).program
    assert program.tiles_per_trip == 2
    reads, writes = lds("ds_read", looped(*BUFFERS)), lds("buffer_load", looped(*BUFFERS))
    assert set(reads) == set(writes) == {"LDS lds0[0][0]", "LDS lds0[1][0]"}
    assert all(one != other for one, other in zip(reads, writes, strict=True))


def test_one_buffer_has_one_copy() -> None:
    single = [line for line in BUFFERS if "xor" not in line]
    again = (*single[:3], "s_waitcnt lgkmcnt(0)", "s_barrier", *single[3:])
    program = lifted(looped(*again)).program
    assert program.tiles_per_trip == 1
    assert "LDS addresses" not in program.origin


def test_a_read_whose_address_is_not_known_may_be_of_any_buffer_and_joins_none() -> None:
    unknown = ("global_load_dword v9, v1, s[8:9]", "s_waitcnt vmcnt(0)", "ds_read_b32 v10, v9", "s_waitcnt lgkmcnt(0)")
    program = lifted(looped(*BUFFERS[:-2], *unknown, *BUFFERS[-2:])).program
    assert "the LDS bytes of 1 instruction are upper bounds" in program.origin
    (read, *_) = (entry for entry in program.kernel if entry.op.name == "ds_read_b32 lds?")
    assert {(place.name, place.copy) for place in read.effect.reads if place.space is Space.LDS} == {
        ("lds0", 0), ("lds0", 1),
    }  # fmt: skip


def test_the_title_and_the_origin_say_what_was_lifted() -> None:
    program = lifted(looped(*BUFFERS)).program
    assert program.name == "loop at lines 12 to 21 of k, 10 instructions, 22 entries"
    assert program.origin == (
        "machine code (proved); the steady state of the loop alone, 2 waves; "
        "a trip is 2 iterations, whose LDS addresses differ"
    )


def test_a_mask_that_may_be_skipped_is_left_out_and_counted() -> None:
    mask = (
        "s_cmp_eq_u32 s4, 7",
        "s_cbranch_scc1 over",
        "v_mov_b32_e32 v9, 0",
        "v_mov_b32_e32 v8, 0",
        "over:",
        "s_nop 0",
    )
    program = lifted(looped(*BUFFERS, *mask)).program
    assert "2 instructions that branches may skip are left out" in program.origin
    assert not [entry for entry in program.kernel if entry.op.name == "v_mov_b32"]


def test_waves_that_are_a_barrier_ahead_are_a_role() -> None:
    before = ("v_readfirstlane_b32 s7, v0", "s_load_dword s4, s[0:1], 0x0", "s_waitcnt lgkmcnt(0)")
    ahead = ("s_cmp_eq_u32 s7, 0", "s_cbranch_scc1 again", "s_barrier")
    text = looped("s_barrier", "global_load_dword v9, v0, s[8:9]", "s_waitcnt vmcnt(0)", before=(*before, *ahead))
    program = lifted(text).program
    assert [role.name for role in program.roles] == ["waves 0", "waves 1"]
    assert [entry.roles for entry in program.prologue] == [(1,)]
    assert [entry.roles for entry in program.epilogue] == [(0,)]
    assert predict(program, band=False).cycles > 0


def test_waves_with_loops_of_their_own_are_roles_with_lists_of_their_own() -> None:
    trip = ("s_barrier", "global_load_dword v9, v0, s[8:9]", "s_waitcnt vmcnt(0)")
    branch = ("v_readfirstlane_b32 s7, v0", "s_cmp_eq_u32 s7, 0", "s_cbranch_scc1 other")
    before = ("s_load_dword s4, s[0:1], 0x0", "s_waitcnt lgkmcnt(0)", *branch)
    other = (
        "s_endpgm",
        "other:",
        *trip,
        "s_nop 3",
        "s_sub_u32 s4, s4, 1",
        "s_cmp_lg_u32 s4, 0",
        "s_cbranch_scc1 other",
    )
    program = lifted(looped(*trip, before=before, count=(*COUNT, *other))).program
    assert [role.name for role in program.roles] == ["waves 1", "waves 0"]
    nops = [entry for entry in program.kernel if entry.op.name == "s_nop"]
    assert [(entry.roles, entry.op.work and entry.op.work.instructions) for entry in nops] == [((1,), 4)]
    assert [entry.roles for entry in program.kernel if entry.op.kind is OpKind.BARRIER] == [(0, 1)]


def test_scalar_instructions_take_turns() -> None:
    few, many = (
        predict(lifted(looped("ds_write_b32 v1, v0", *["s_nop 1"] * count)).program, band=False).cycles
        for count in (0, 50)
    )
    assert many - few >= 50 * 2 * 4 - few
    assert few < 100


@pytest.mark.parametrize("judge", [verify, execute, form_of])
def test_who_must_know_what_it_computes_refuses(judge: object) -> None:
    program = lifted(looped(*BUFFERS)).program
    with pytest.raises(RotaError) as raised:
        judge(program, 1) if judge is execute else judge(program)  # type: ignore[operator]
    assert [finding.code for finding in raised.value.findings] == ["T305"]
