"""The parts of the search: the core, both encodings, the heuristic and the explanation."""

from __future__ import annotations

import sys
from collections import Counter
from threading import Event

import pytest
from hypothesis import given, settings, strategies as st

from rota.errors import DeclarationError
from rota.order.modulo import cpsat_modulo, scheduler
from rota.order.modulo.cpsat_modulo import (
    Contest,
    Decision,
    Encoding,
    Frame,
    Hold,
    ModuloModel,
    Turn,
    _Search,
    build_model,
    count,
    decide,
    derive_core,
    derive_starts,
    derive_structure,
)
from rota.order.modulo.modulo_problem import ModuloProblem, Resource, derive_mii
from rota.order.modulo.scheduler import explain, iterative_starts
from rota.solver.limits import Outcome
from tests.order.modulo_oracle import feasible, keeps
from tests.order.modulo_problems import ALU, crossed, edge, on, op, problem, small_problems
from tests.wording.golden import worded


def ring(length: int, latency: int = 1) -> ModuloProblem:
    """Ops on the ALU in one cycle."""
    ops = [op(str(number), on("alu"), latency=latency) for number in range(length)]
    return problem(ops, [edge(n, (n + 1) % length, latency, int(n == length - 1)) for n in range(length)])


def test_the_core_leaves_out_what_needs_no_decision() -> None:
    ops = [
        op("in", on("alu")),
        op("a", on("alu")),
        op("pass"),
        op("b", on("port")),
        op("dma", on("port", 3)),
        op("end"),
    ]
    edges = [edge(0, 1), edge(1, 2), edge(2, 3), edge(3, 1, 1, 1), edge(3, 4), edge(4, 5)]
    structure = derive_structure(problem(ops, edges))
    core = derive_core(structure, 4)
    assert (structure.fillers, structure.packed) == ((0,), (4,))
    assert set(core.frames) == {1, 3, 4}
    assert [(gap.first, gap.second, gap.least) for gap in core.gaps] == [(1, 3, 2), (3, 1, -3)]
    assert core.contests == ()  # two places for two holds
    starts = derive_starts(structure, 4, decide(core, 9.0).starts or {})
    assert keeps(structure.problem, 4, starts)


def test_frames_come_from_the_cycles_alone() -> None:
    core = derive_core(derive_structure(ring(3, latency=2)), 7)
    assert core.frames[0] == Frame(earliest=0, latest=0)  # turning the table changes nothing: one op is nailed down
    assert core.frames[1] == Frame(earliest=2, latest=3)
    assert core.frames[2] == Frame(earliest=4, latest=5)


def test_a_core_below_the_bound_is_our_own_mistake() -> None:
    with pytest.raises(AssertionError):
        derive_core(derive_structure(ring(3, latency=2)), 5)


@settings(max_examples=120, deadline=None)
@given(small=small_problems(3), more=st.integers(0, 2))
def test_both_encodings_and_the_oracle_agree(small: ModuloProblem, more: int) -> None:
    ii = derive_mii(small).ii + more
    structure = derive_structure(small)
    core = derive_core(structure, ii)
    expected = feasible(small, ii) if ii <= 6 else None
    if any(contest.places < 1 for contest in core.contests):
        assert decide(core, 9.0).outcome is Outcome.INFEASIBLE
        assert expected is not True
        return
    for encoding in Encoding:
        found = build_model(core, encoding).solve(30.0, Turn(encoding, linear=1, probing=2, share=1.0))
        assert found.outcome is not Outcome.OPEN
        if found.starts is not None:
            assert keeps(small, ii, derive_starts(structure, ii, found.starts))
        assert expected is None or expected is (found.starts is not None)


@settings(max_examples=200, deadline=None)
@given(small=small_problems(), more=st.integers(0, 3))
def test_what_the_heuristic_finds_is_right(small: ModuloProblem, more: int) -> None:
    ii = derive_mii(small).ii + more
    starts = iterative_starts(small, ii)
    assert starts is None or keeps(small, ii, starts)


def test_the_heuristic_stops_at_its_deadline() -> None:
    assert iterative_starts(ring(32), 32, deadline=0.0) is None
    assert iterative_starts(ring(32), 32) is not None


def test_the_heuristic_takes_ops_out_again() -> None:
    """The filler is placed first on the slot that the cycle needs."""
    starts = iterative_starts(problem([*ring(4).ops, op("late", on("alu"))], list(ring(4).edges)), 5)
    assert starts is not None


def test_the_heuristic_fills_a_unit_without_gaps() -> None:
    """First fit alone leaves gaps of 3 between holds of 4 when the reads, which come first, push it off."""
    mmas = [op(f"mma {number}", on("alu", 4), on("issue")) for number in range(16)]
    reads = [op(f"read {number}", on("port", 3), on("issue"), latency=7 + number) for number in range(16)]
    feeds = [edge(16 + number, number) for number in range(16)]
    resources = (Resource(name="alu"), Resource(name="port"), Resource(name="issue"))
    full = problem([*mmas, *reads], feeds, *resources)
    starts = iterative_starts(full, 64)
    assert starts is not None
    assert keeps(full, 64, starts)
    assert len({start % 4 for start in starts[:16]}) == 1


def test_no_time_decides_nothing() -> None:
    core = derive_core(derive_structure(crossed()), 3)
    assert decide(core, 0.0).outcome is Outcome.OPEN
    assert decide(core, 30.0).outcome is Outcome.INFEASIBLE


def test_several_workers_race_and_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpsat_modulo, "_FIRST_SLICE", 1e-9)
    for ii, outcome in ((3, Outcome.INFEASIBLE), (4, Outcome.FEASIBLE)):
        assert decide(derive_core(derive_structure(crossed()), ii), 30.0, workers=2).outcome is outcome
    assert decide(derive_core(derive_structure(crossed()), 3), 0.0, workers=2).outcome is Outcome.OPEN


def test_who_decides_first_stops_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = Event()

    class Busy(ModuloModel):
        def stop(self) -> None:
            super().stop()
            stopped.set()

    def slice_(search: _Search, turn: Turn, number: int, workers: int) -> Decision | None:
        if turn.encoding is Encoding.COUNTS:
            return Decision(outcome=Outcome.INFEASIBLE)
        search._models[turn.encoding] = Busy(4, {})
        assert stopped.wait(30.0)
        return None

    monkeypatch.setattr(_Search, "_slice", slice_)
    core = derive_core(derive_structure(crossed()), 3)
    assert decide(core, 30.0, workers=3).outcome is Outcome.INFEASIBLE
    assert stopped.is_set()


def test_a_counting_model_that_would_be_too_large_is_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpsat_modulo, "_LARGEST_COUNT", 0)
    assert decide(derive_core(derive_structure(crossed()), 3), 30.0).outcome is Outcome.INFEASIBLE


def test_the_solver_is_asked_again_after_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    """With slices too small for anything the rounds go on until the time is over, or until they suffice."""
    monkeypatch.setattr(cpsat_modulo, "_FIRST_SLICE", 1e-9)
    holes = problem(
        [op("x", on("alu", 2), on("port", 1, 1)) for _ in range(5)], [edge(0, 4, 30)], ALU, Resource(name="port")
    )
    found = decide(derive_core(derive_structure(holes), 11), 30.0)
    assert found.outcome is Outcome.FEASIBLE


def test_constraints_can_be_added_and_blamed() -> None:
    """The way for budgets of other kinds: a named assumption each, and a smallest set of those that clash."""
    model = ModuloModel(4, {op: Frame(earliest=0, latest=7) for op in range(3)})
    for number, stage in model.stage.items():
        early = model.assume(f"op {number} in the first stage")
        model.model.add(stage == 0).only_enforce_if(early)
    later = model.assume("op 2 a full turn after op 0")
    model.model.add(model.start[2] >= model.start[0] + 4).only_enforce_if(later)
    assert model.smallest_conflict(30.0) == ("op 2 in the first stage", "op 2 a full turn after op 0")


def test_what_can_hold_has_no_conflict() -> None:
    model = ModuloModel(4, {op: Frame(earliest=0, latest=3) for op in range(2)})
    hold = tuple(Hold(op=op, offset=0, length=2) for op in range(2))
    model.apply(count(Contest(resource="unit", places=1, holds=hold), words="unit"))
    assert model.smallest_conflict(30.0) is None


def test_an_explanation_leaves_out_what_is_not_needed() -> None:
    """Two cycles; only one clashes with the ALU, and the port has nothing to do with it."""
    base = crossed()
    ops = [*base.ops, op("c", on("port")), op("d", on("port")), op("e", on("port"))]
    edges = [*base.edges, edge(2, 3, 1), edge(3, 2, 1, 1), edge(3, 4, 1), edge(4, 2, 1, 3), edge(1, 2, 1)]
    finding = explain(problem(ops, edges), 3, 30.0).findings[0]
    carried, alu, port = "carried edge", "limit alu", "limit port"
    counts = Counter(name for name, _ in finding.evidence)
    assert (counts[carried], counts[alu], counts[port]) == (1, 1, 0)
    worded(finding)


def test_an_explanation_without_time_does_not_claim_to_be_the_smallest() -> None:
    finding = explain(crossed(), 3, 0.0).findings[0]
    assert finding.code == "O301"
    assert dict(finding.evidence)["smallest set"] == "not shown"


def test_many_carried_edges_are_counted_not_listed() -> None:
    edges = [edge(0, 1, 3), *(edge(1, 0, -number, 1) for number in range(12))]
    finding = explain(problem(list(crossed().ops), edges), 3, 0.0).findings[0]
    assert dict(finding.evidence)["more carried edges"] == 4


def test_a_large_model_is_explained_without_literals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "_LARGEST_MODEL", 0)
    evidence = dict(explain(crossed(), 3, 30.0).findings[0].evidence)
    worded(str(evidence["limit alu"]))


def test_a_missing_solver_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "ortools"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ortools", None)
    with pytest.raises(DeclarationError) as caught:
        ModuloModel(4, {})
    assert caught.value.findings[0].code == "D105"
