from __future__ import annotations

from rota import OpDesc, ScheduleConfig, Severity, compile_schedule
from rota.cli.commands.check import summarise
from tests.findings.bodies import LoadsFirst, LoadsLast
from tests.findings.smallest import TAGS, Small, reported, two_tiles
from tests.wording.golden import worded


def test_a_race_that_the_blocks_reorder_away_is_told() -> None:
    compiled = compile_schedule(LoadsFirst())
    (finding,) = [each for each in compiled.findings if each.code == "P113"]
    assert finding.severity is Severity.NOTE
    assert ("moved", 6) in finding.evidence
    assert [end.index for end in finding.concerns] == [0, 1, 5, 8, 9, 13]
    first = finding.concerns[0]
    assert first.label == "load_a s0 t0 k0"
    assert first.role == "declared in front of mma_load_b s0 t0 (#3), issued after it"
    assert first.source is not None
    assert "16" in worded(str(summarise("k", compiled)))


def test_loads_that_stand_behind_the_fragments_stay() -> None:
    compiled = compile_schedule(LoadsLast())
    assert not [each for each in compiled.findings if each.code.startswith("P11")]
    worded(str(summarise("k", compiled)))


def test_loads_first_is_a_knob_and_moves_the_others() -> None:
    assert not compile_schedule(LoadsFirst(knobs=ScheduleConfig(global_before_frag=True)), sync="as_written").findings
    (finding,) = reported("P113", LoadsLast(knobs=ScheduleConfig(global_before_frag=True)))
    assert finding.concerns[0].role == "declared after mma_load_b s0 t1 (#3), issued before it"


def test_a_load_that_passes_the_authors_own_barrier_is_told() -> None:
    ops = list(two_tiles())
    ops.insert(3, OpDesc.barrier())  # between the load of A and the load of B
    (finding,) = reported("P113", Small(ops=ops))
    (end,) = finding.concerns
    assert (end.index, end.role) == (2, "declared in front of barrier (#3), issued after it")
    assert end.label == f"{TAGS.LOAD_A.name.lower()} s0 t0 k0"
