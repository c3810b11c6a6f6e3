from __future__ import annotations

from dataclasses import replace

from rota import CompiledSchedule
from rota.compiler.loop import unsynchronised
from rota.compiler.proved import repaired
from rota.declare.vocabulary import FrameworkTag
from rota.emit.reasons import sync_reasons
from rota.emit.register_waits import with_register_waits
from rota.verify.report import REGISTER_WAITS
from tests.audit.tiny import tiny_loop
from tests.emit.kernels import SMALL, by_values, four_wave, ping_pong


def left_to_the_compiler() -> CompiledSchedule:
    """A loop whose repair relied on the compiler's own waits before registers are used."""
    compiled = tiny_loop()
    assert compiled.loop is not None
    assert compiled.placement is not None
    return repaired(replace(unsynchronised(compiled.loop, compiled.placement), compiler_tracks_registers=True))


def test_no_help_of_a_compiler_is_assumed() -> None:
    compiled = left_to_the_compiler()
    assert compiled.certificate is not None
    assert REGISTER_WAITS in compiled.certificate.assumptions
    planned = with_register_waits(compiled)
    assert planned.certificate is not None
    assert REGISTER_WAITS not in planned.certificate.assumptions
    assert with_register_waits(planned) is planned


def test_every_change_stands_where_its_repair_says_with_the_reason_it_had() -> None:
    compiled = left_to_the_compiler()
    planned = with_register_waits(compiled)
    assert len(planned.repairs) > len(compiled.repairs)
    entries = {
        (entry.phase, entry.time_slot): entry.op for entry in (*planned.prologue, *planned.kernel, *planned.epilogue)
    }
    for repair in planned.repairs:
        assert entries[repair.phase, repair.slot] == repair.op
    barriers = [repair.reason for repair in compiled.repairs if repair.op.tag == FrameworkTag.BARRIER]
    assert barriers == [repair.reason for repair in planned.repairs if repair.op.tag == FrameworkTag.BARRIER]


def test_every_wait_has_a_reason() -> None:
    for compiled in (by_values(SMALL)[0], ping_pong()[0], four_wave()[0]):
        reasons = sync_reasons(compiled)
        for entry in (*compiled.prologue, *compiled.kernel, *compiled.epilogue):
            if entry.op.tag in (FrameworkTag.WAIT_VM, FrameworkTag.WAIT_LGKM):
                assert reasons[entry.phase, entry.time_slot]


def test_a_wait_names_the_youngest_op_that_it_completes() -> None:
    compiled, _ = four_wave()
    first = next(entry for entry in compiled.prologue if entry.op.tag == FrameworkTag.WAIT_VM)
    assert first.op.wait_value == 28  # of 32 tokens of 8 loads: the first load's 4 are over
    assert sync_reasons(compiled)[first.phase, first.time_slot].startswith("load_a s0 t0 k0 (prologue #0) and older")
