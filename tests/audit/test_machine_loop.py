"""Which instructions are events: those that the schedule has ops for, each of its own kind."""

from __future__ import annotations

import pytest

from rota.audit.machine_loop import read_machine_loop
from rota.isa.disassembly import read_listing
from rota.program.kinds import OpKind, Phase
from tests.audit.tiny import DATA, codes, storing_loop, tiny_audit, tiny_phases

GLOBAL = {
    "global_load_dwordx4 v[4:7], v[2:3], off": OpKind.GLOBAL_LOAD,
    "buffer_load_dwordx4 v[4:7], v1, s[0:3], 0 offen": OpKind.GLOBAL_LOAD,
    "global_store_dwordx4 v[2:3], v[4:7], off": OpKind.GLOBAL_STORE,
    "buffer_store_dword v4, v1, s[0:3], 0 offen": OpKind.GLOBAL_STORE,
    "global_atomic_add_f32 v2, v4, s[0:1]": OpKind.ATOMIC,
    "buffer_atomic_pk_add_bf16 v4, v1, s[0:3], 0 offen": OpKind.ATOMIC,
}
OTHERS = {
    "buffer_load_dwordx4 v1, s[0:3], s4 offen lds": OpKind.DMA,
    "ds_read_b128 v[4:7], v2": OpKind.LDS_READ,
    "ds_read_b64_tr_b16 v[4:5], v2": OpKind.LDS_READ_TRANSPOSED,
    "ds_write_b128 v2, v[4:7]": OpKind.LDS_WRITE,
    "v_mfma_f32_16x16x32_bf16 v[8:11], v[4:7], v[4:7], v[8:11]": OpKind.MMA,
    "s_setprio 1": OpKind.PRIORITY,
    "s_barrier": OpKind.BARRIER,
    "s_waitcnt vmcnt(3)": OpKind.WAIT,
}


def found(line: str, *kinds: OpKind) -> list[OpKind]:
    text = f"k:\n.LBB0_1:\n\t{line}\n\ts_cbranch_scc1 .LBB0_1\n\ts_endpgm\n"
    return [event.kind for event in read_machine_loop(read_listing(text, "k"), (), kinds).kernel]


@pytest.mark.parametrize(("line", "kind"), GLOBAL.items())
def test_an_access_of_global_memory_is_an_event_where_the_schedule_has_such_ops(line: str, kind: OpKind) -> None:
    assert found(line) == []
    assert found(line, *(each for each in GLOBAL.values() if each is not kind)) == []
    assert found(line, kind) == [kind]


@pytest.mark.parametrize(("line", "kind"), OTHERS.items())
def test_everything_else_is_one_of_its_own_kind(line: str, kind: OpKind) -> None:
    assert found(line) == found(line, *GLOBAL.values()) == [kind]


def test_the_stores_of_a_schedule_are_compared() -> None:
    loop = storing_loop()
    phases = tiny_phases(loop)
    assert tiny_audit(phases, loop).exact
    phases[Phase.KERNEL].remove(DATA["put"])
    assert codes(tiny_audit(phases, loop)) == {"I202"}


def test_the_store_of_the_results_is_none_of_them() -> None:
    phases = tiny_phases()
    phases[Phase.EPILOGUE].append(DATA["put"])
    assert tiny_audit(phases).exact


def test_a_branch_back_that_doesn_t_come_round_is_no_loop() -> None:
    around = "\ts_cbranch_scc0 .LBB0_2\n.LBB0_1:\n\ts_nop 0\n\ts_branch .LBB0_3\n.LBB0_2:\n\ts_branch .LBB0_1\n"
    text = f"k:\n{around}.LBB0_3:\n\ts_barrier\n\ts_cbranch_scc1 .LBB0_3\n\ts_endpgm\n"
    loop = read_machine_loop(read_listing(text, "k"))
    assert [event.kind for event in loop.kernel] == [OpKind.BARRIER]


@pytest.mark.parametrize(
    ("before", "due"),
    [
        ("s_add_u32 m0, s4, 0x1000", ("s4", 0x1000)),
        ("s_mov_b32 m0, s4", ("s4 of 0", 0)),
        ("s_add_i32 s5, s4, 0x400\n\ts_mov_b32 m0, s5", ("s4 of 0", 0x400)),
        ("s_add_i32 s5, s4, 0x400\n\ts_or_b32 s6, s5, 64\n\ts_mov_b32 m0, s6", ("s4 of 0", 0x440)),
        ("s_add_i32 s5, s4, 0x400\n\ts_load_dwordx2 s[4:5], s[0:1], 0x0\n\ts_mov_b32 m0, s5", ("s5 of 2", 0)),
        ("s_add_i32 s5, s4, s6\n\ts_mov_b32 m0, s5", ("s5 of 1", 0)),
        ("s_lshl_b32 s5, s4, 10\n\ts_cmp_lg_u32 s5, 0\n\ts_mov_b32 m0, s5", ("s5 of 1", 0)),
        ("s_mov_b32 m0, 0x1000", ("", None)),
    ],
)
def test_where_a_dma_puts_its_bytes_is_followed(before: str, due: tuple[str, int | None]) -> None:
    dma = "buffer_load_dwordx4 v1, s[0:3], 0 offen lds"
    text = f"k:\n.LBB0_1:\n\t{before}\n\t{dma}\n\ts_cbranch_scc1 .LBB0_1\n\ts_endpgm\n"
    (event,) = read_machine_loop(read_listing(text, "k")).kernel
    assert (event.lds_base, event.lds) == due
