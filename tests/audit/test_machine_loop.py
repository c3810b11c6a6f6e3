"""Which instructions are events: those that the schedule has ops for, each of its own kind."""

from __future__ import annotations

import pytest

from rota.audit.machine_loop import read_machine_loop
from rota.isa.code.disassembly import read_listing
from rota.program.kinds import OpKind
from rota.program.phase import Phase
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
