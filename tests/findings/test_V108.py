from __future__ import annotations

import copy
from dataclasses import fields, replace
from typing import Any

import pytest

from rota import GFX942, DeclarativeSchedule, Severity, compile_schedule, verify
from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.gemm.hip_gemm import emit_gemm
from rota.emit.planning import with_register_waits
from rota.program.kinds import OpKind
from rota.program.lowered import LoweredProgram
from rota.verify.report import check_subject
from tests.emit.kernels import SMALL_MI300X, by_values
from tests.wording.golden import mentions, worded

PROVED = compile_schedule(DeclarativeSchedule())


def without_barriers(compiled: CompiledSchedule) -> CompiledSchedule:
    kernel = [entry for entry in compiled.kernel if entry.op.kind is not OpKind.BARRIER]
    return replace(compiled, kernel=tuple(replace(entry, time_slot=slot) for slot, entry in enumerate(kernel)))


def test_a_changed_schedule_keeps_no_certificate() -> None:
    changed = without_barriers(PROVED)
    assert PROVED.certificate is not None
    assert changed.certificate is None
    finding = worded(changed.findings[-1])
    assert (finding.code, finding.severity) == ("V108", Severity.WARNING)
    ((field, difference),) = finding.evidence
    assert field == "kernel"
    assert mentions(difference, len(PROVED.kernel), len(changed.kernel))
    assert not verify(changed).clean


def test_emission_puts_back_what_is_missing() -> None:
    compiled, geometry = by_values(SMALL_MI300X)
    changed = without_barriers(compiled)
    planned = with_register_waits(changed)
    assert verify(planned).clean
    assert OpKind.BARRIER in [entry.op.kind for entry in planned.kernel]
    assert emit_gemm(changed, geometry) == emit_gemm(planned, geometry)


PROGRAM = PROVED.lowered
OTHERS: dict[str, Any] = {
    "machine": GFX942,
    "semantics": by_values(SMALL_MI300X)[0].lowered.semantics,
    "prologue": PROGRAM.prologue[1:],
    "kernel": PROGRAM.kernel[:-1],
    "epilogue": (*PROGRAM.epilogue, PROGRAM.epilogue[-1]),
    "tiles_per_trip": 3,
    "tiles_outside": 3,
    "roles": (PROGRAM.roles[0]._replace(does=frozenset({"nothing"})), PROGRAM.roles[1]),
    "barriers": (PROGRAM.barriers[0]._replace(waiting=(0,)),),
    "compiler_tracks_registers": not PROVED.compiler_tracks_registers,
    "reentrant": True,
    "lds_bytes": 1,
    "registers": 1,
    "register_limit": 1,
    "waves": 3,
}


@pytest.mark.parametrize("name", OTHERS)
def test_it_is_about_everything_that_the_proof_reads(name: str) -> None:
    stale = check_subject(PROGRAM, replace(PROGRAM, **{name: OTHERS[name]}))
    assert stale is not None
    assert [each for each, _ in stale.evidence] == [name]


def test_no_field_is_left_out() -> None:
    assert OTHERS.keys() == {each.name for each in fields(LoweredProgram) if each.compare}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"config": PROVED.config.but(vm_per_load_a=PROVED.config.vm_per_load_a + 1)}, "kernel"),
        ({"schedule_config": PROVED.schedule_config.but(lgkm_per_load_a=7)}, "kernel"),
        ({"config": PROVED.config.but(n_mmas=3)}, "semantics"),
        ({"warp_stagger_index": PROVED.warp_stagger_index + 1}, "prologue"),
        ({"machine": GFX942}, "machine"),
    ],
)
def test_what_an_author_changes_changes_the_program(change: dict[str, Any], told: str) -> None:
    changed = replace(PROVED, **change)
    assert changed.certificate is None
    assert told in [each for each, _ in changed.findings[-1].evidence]


def test_registers_are_what_the_proof_was_told() -> None:
    """They follow from the placement, which the proof doesn't read itself."""
    compiled, _ = by_values(SMALL_MI300X)
    assert compiled.lowered.registers == compiled.registers == 128
    assert compiled.lowered.register_limit == compiled.register_limit


def test_what_the_proof_does_not_read_may_change() -> None:
    assert replace(PROVED, name="other", repairs=()).certificate is PROVED.certificate


def test_nobody_wears_the_certificate_of_another() -> None:
    bare = replace(without_barriers(PROVED), findings=())
    dressed = replace(bare, certificate=PROVED.certificate)
    assert dressed.certificate is None
    assert [finding.code for finding in dressed.findings] == ["V108"]


def test_terms_alone_prove_nothing() -> None:
    assert PROVED.certificate is not None
    terms = replace(PROVED.certificate, subject=None)
    assert terms == PROVED.certificate
    claimed = replace(PROVED, certificate=terms)
    assert claimed.certificate is None
    assert [name for name, _ in worded(claimed.findings[-1]).evidence] == ["certificate"]


def test_a_certificate_with_another_subject_is_proved_again() -> None:
    """The terms of a proof may be copied, its subject may not: what no proof of this process gave is not believed."""
    certificate = PROVED.certificate
    assert certificate is not None
    bare = without_barriers(PROVED)
    forged = replace(bare, certificate=replace(certificate, subject=bare.lowered))
    assert forged.certificate is None
    assert "V108" in {each.code for each in forged.findings}


def test_a_certificate_that_was_copied_is_proved_again() -> None:
    copied = replace(PROVED, certificate=copy.deepcopy(PROVED.certificate))
    assert copied.certificate == PROVED.certificate
    assert "V108" not in {each.code for each in copied.findings}
