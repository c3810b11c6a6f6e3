from __future__ import annotations

from dataclasses import replace

from rota import OpDesc, Severity, verify
from tests.findings.proofs import found, fragment, load, loop, mma
from tests.wording.golden import mentions, worded

FILL = [load(0), load(0, channel=1), OpDesc.wait_vm(0), OpDesc.barrier()]
READ = [fragment(0), fragment(0, channel=1)]


def test_registers_used_while_they_load_are_an_error_without_a_compiler_that_waits() -> None:
    made = replace(loop(prologue=[*FILL, *READ, mma()]), compiler_tracks_registers=False)
    both = found("R104", made, times=2)
    assert [finding.severity for finding in both] == [Severity.ERROR] * 2
    assert [mentions(fix, "wait_lgkm(1)", "mma[0,0]") for fix in both[0].fixes] == [True]
    found(
        "R104",
        replace(loop(prologue=[*FILL, *READ, OpDesc.wait_lgkm(0), mma()]), compiler_tracks_registers=False),
        times=0,
    )


def test_with_one_they_are_a_note_and_an_assumption() -> None:
    made = loop(prologue=[*FILL, *READ, OpDesc.wait_lgkm(1), mma()])
    (note,) = (finding for finding in verify(made).findings if finding.code == "R104")
    assert note.severity is Severity.NOTE
    worded(note)
    assert "wait_lgkm(0)" in note.message
