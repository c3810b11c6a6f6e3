from __future__ import annotations

import pytest

from rota import ProofError, ScheduleConfig, Severity, compile_schedule
from rota.cli.commands.check import summarise
from tests.cli.command import rota
from tests.findings.bodies import LoadsLast
from tests.findings.smallest import reported
from tests.wording.golden import mentions, worded


def test_a_load_that_a_limit_takes_to_another_block_is_told() -> None:
    (finding,) = reported("P114", LoadsLast(max_globals=1))
    assert finding.severity is Severity.NOTE
    assert "max_globals=1" in finding.message
    assert [(end.index, end.label, end.role) for end in finding.concerns] == [
        (5, "load_b s0 t0 k0", "declared in block 1, issued in block 2"),
        (6, "load_b s0 t1 k0", "declared in block 1, issued in block 0"),
    ]


def test_the_error_that_comes_of_it_has_the_cause_with_it() -> None:
    with pytest.raises(ProofError) as caught:
        compile_schedule(LoadsLast(max_globals=1))
    findings = caught.value.findings
    codes = [finding.code for finding in findings]
    assert codes[0] == "P107"  # the cause first, then what follows from it
    assert codes[1].startswith("V")
    assert {"P107", "P114"} <= set(codes)
    assert findings[codes.index("P107")].concerns[0].label == "load_b s0 t1 k0"
    told = rota("check tests.findings.bodies:LoadsLast --set max_globals=1")
    assert told.exit_code == 1
    assert "error[P107]" in told.stdout
    assert mentions(told.stdout, "note[P114]", "max_globals=1")


def test_without_the_limit_it_is_proved() -> None:
    assert compile_schedule(LoadsLast(max_globals=0)).certificate is not None


def test_who_put_a_load_where_it_was_is_said() -> None:
    schedule = LoadsLast(max_globals=1, knobs=ScheduleConfig(scheduling="GREEDY"))
    (finding,) = reported("P114", schedule)
    assert finding.concerns[0].role == "put by greedy in block 1, issued in block 2"
    line = str(summarise("k", compile_schedule(schedule, sync="as_written")))
    worded(line)
    assert "16" in line
