from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from rota.compiled.proved import repaired
from rota.emit.planning import _twice, with_register_waits
from rota.emit.text import sync_reasons
from rota.program.entry import Entry, wait_effect, wait_op
from rota.program.kinds import OpKind, Phase
from rota.sync.repair import Repair
from rota.values.compile_loop import unroll_bare
from rota.values.compiled_loop import CompiledLoop
from rota.verify.report import REGISTER_WAITS
from tests.audit.tiny import tiny_loop
from tests.emit.kernels import SMALL, by_values, four_wave, ping_pong

pytestmark = pytest.mark.no_cover  # long executions in the interpreter, which its own tests cover


@cache
def left_to_the_compiler() -> CompiledLoop:
    """A loop whose repair relied on the compiler's own waits before registers are used."""
    compiled = tiny_loop()
    return repaired(replace(unroll_bare(compiled.loop, compiled.placement), compiler_tracks_registers=True))


@cache
def planned_without_it() -> CompiledLoop:
    """The same with waits of its own; planning them takes seconds."""
    return with_register_waits(left_to_the_compiler())


def test_no_help_of_a_compiler_is_assumed() -> None:
    compiled = left_to_the_compiler()
    assert compiled.certificate is not None
    assert REGISTER_WAITS in compiled.certificate.assumptions
    planned = planned_without_it()
    assert planned.certificate is not None
    assert REGISTER_WAITS not in planned.certificate.assumptions
    assert with_register_waits(planned) is planned


def test_every_change_stands_where_its_repair_says_with_the_reason_it_had() -> None:
    compiled = left_to_the_compiler()
    planned = planned_without_it()
    assert len(planned.repairs) > len(compiled.repairs)
    entries = {
        (entry.phase, entry.time_slot): entry.op for entry in (*planned.prologue, *planned.kernel, *planned.epilogue)
    }
    for repair in planned.repairs:
        assert entries[repair.phase, repair.slot] == repair.op
    barriers = [repair.reason for repair in compiled.repairs if repair.op.kind is OpKind.BARRIER]
    assert barriers == [repair.reason for repair in planned.repairs if repair.op.kind is OpKind.BARRIER]


def test_every_wait_has_a_reason() -> None:
    for compiled in (by_values(SMALL)[0], ping_pong()[0], four_wave()[0]):
        reasons = sync_reasons(compiled)
        for entry in (*compiled.prologue, *compiled.kernel, *compiled.epilogue):
            if entry.op.kind is OpKind.WAIT:
                assert reasons[entry.phase, entry.time_slot]


def test_a_wait_names_the_youngest_op_that_it_completes() -> None:
    compiled, _ = four_wave()
    waits = (entry for entry in compiled.lowered.prologue if entry.op.kind is OpKind.WAIT)
    first = next(entry for entry in waits if entry.effect.counter == "vmcnt")
    assert first.effect.wait_value == 28  # of 32 tokens of 8 loads: the first load's 4 are over
    assert sync_reasons(compiled)[first.phase, first.time_slot].startswith("load_a s0 t0 k0 (prologue[0]) and older")


def test_a_wait_that_is_made_stronger_twice_goes_back_to_where_it_was() -> None:
    stood, once, twice = (
        Entry(op=wait_op("vmcnt", count), effect=wait_effect("vmcnt", count), time_slot=0, phase=Phase.KERNEL)
        for count in (8, 4, 0)
    )
    first = Repair(phase=Phase.KERNEL, slot=0, op=once.op, before=stood.op, reason="one", count_before=8)
    again = Repair(phase=Phase.KERNEL, slot=0, op=twice.op, before=once.op, reason="another", count_before=4)
    assert _twice(first, again).change == "kernel[0] wait_vm(8) became wait_vm(0)"
    assert _twice(first, again).taken_back(twice) == stood
