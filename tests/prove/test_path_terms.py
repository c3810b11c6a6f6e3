"""What is said of a path: no more than each step says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from rota.errors import IsaError
from rota.isa.binary.kernel_facts import Argument
from rota.prove import confirmation, witness
from rota.prove.bit_vectors import Answer, BitVectors, PathTerms, Reply
from rota.prove.decisions import Decided, Decisions, Event, Renamed, Widened, join_decisions
from rota.prove.evaluation import Evaluator
from rota.prove.symbol import LANE, WAVE, Linear, Symbol, Value, plus, times
from rota.prove.verdict import Budget, Meter, Status
from tests.isa.single import facts
from tests.prove.test_feasibility import LOOP, executed
from tests.prove.test_replay import race
from tests.prove.written import codes, evidence
from tests.wording.golden import worded

ONE = Evaluator(64)
A, B = ONE.symbols.argument("argument", 0), ONE.symbols.argument("argument", 4)
NAMES = [ONE.symbols.make("name", (number,), spread=0, depth=99) for number in range(2)]


def equal(value: Value, other: Value) -> Symbol:
    made = ONE.compare("eq", "u", value, other)
    assert isinstance(made, Linear)
    assert made.scale == 1
    return made.base


def decided(value: Value, other: Value, wave: int | None = None, *, holds: bool = True) -> Decided:
    return Decided(condition=equal(value, other), holds=holds, wave=wave)


def possible(*events: Event, known: Decisions | None = None) -> bool:
    make = BitVectors()
    return make.ask(PathTerms(make, known, events).conditions).answer is Answer.YES


def both(first: Sequence[Event], value: Value, right: int, wrong: int) -> None:
    """Events say what a value is, and nothing else of it."""
    assert possible(*first, decided(value, right))
    assert not possible(*first, decided(value, wrong))


def test_what_is_joined_keeps_its_order() -> None:
    """z3's effort depends on the order of conditions, and the budget counts it: no order may come from a set."""
    names = [ONE.symbols.make("name", (number,), spread=0, depth=99) for number in range(40)]
    earlier, other = Decisions(), Decisions()
    for number, name in enumerate(names):
        earlier.arcs[name, None] = (number, 5)
    for number, name in reversed([*enumerate(names)]):
        other.arcs[name, None] = (number + 1, 7)
    assert [*join_decisions(earlier, other, 0).arcs] == [(name, None) for name in names]


def test_an_argument_is_the_same_all_along() -> None:
    assert not possible(decided(A, 5), Renamed(names={}), decided(A, 6))


def test_a_name_is_what_it_was_and_no_longer() -> None:
    name = Linear(NAMES[0], 1, 0)
    events = (decided(A, 5), Renamed(names={NAMES[0]: (A.base, 3)}))
    both(events, name, 8, 5)
    both((*events, Renamed(names={NAMES[1]: (NAMES[0], 1)})), Linear(NAMES[1], 1, 0), 9, 8)
    assert possible(*events, decided(name, 8), Renamed(names={}), decided(name, 1))


def test_a_widened_counter_is_what_it_was() -> None:
    wide = ONE.symbols.fresh("wide", 0)
    both((Widened(counters={wide.base: (2, None, 0, 6)}), decided(wide, 2, holds=False)), times(wide, 2), 6, 8)
    events = (decided(A, 5), Widened(counters={wide.base: (2, A.base, 4, 6)}))
    both(events, times(wide, 2), 26, 28)
    assert possible(decided(wide, 1), Renamed(names={}), decided(wide, 2))


def test_waves_have_values_of_their_own() -> None:
    mine = ONE.symbols.fresh("loaded", WAVE)
    assert possible(decided(mine, 1, 0), decided(mine, 2, 1))
    assert not possible(decided(mine, 1, 0), decided(mine, 2, 0))
    assert possible(decided(mine, 1), decided(mine, 2))  # of whichever wave


def test_nothing_is_said_of_lanes_and_tables() -> None:
    lanes = ONE.symbols.fresh("loaded", LANE)
    assert possible(decided(lanes, 1, 0), decided(lanes, 2, 0))
    table = Linear(A.base, 1, np.arange(2, dtype=np.int64)[:, None])
    condition = ONE.compare_basic("lt_u", table, B)
    assert possible(Decided(condition=condition.base, holds=True, wave=0), decided(A, 5), decided(B, 1))


def test_sums_of_multiples_are_multiples() -> None:
    total = plus(ONE.symbols, times(A, 4), times(B, 8))
    assert isinstance(total, Linear)
    assert total.base.op == "/"
    both((decided(A, 3), decided(B, 2)), total, 28, 32)


def test_a_choice_follows_its_condition() -> None:
    chosen = ONE.select(equal(A, 1), plus(ONE.symbols, B, 1), 7)
    both((decided(A, 1), decided(B, 4)), chosen, 5, 7)
    both((decided(A, 1, holds=False),), chosen, 7, 5)


def test_what_is_above_the_zeros_of_a_mask_is_kept() -> None:
    both((decided(A, 0x1234),), ONE.compute("and", A, 0xF0), 0x30, 0x40)
    both((decided(A, 0x1234),), ONE.compute("and", A, 0xFF), 0x34, 0x30)
    both((decided(A, 0x1234), decided(B, 0xF0)), ONE.compute("and", A, B), 0x30, 0x34)


def test_another_form_of_an_operation_is_not_known() -> None:
    field = ONE.symbols.opaque("bfe_u", (A, B))
    assert possible(decided(A, 0), decided(field, 9))


def test_bits_that_cannot_be_are_zero() -> None:
    small = ONE.symbols.argument("argument", 8, bits=3)
    assert possible(decided(small, 3))
    assert not possible(
        Decided(condition=ONE.compare_basic("lt_u", small, B).base, holds=False, wave=None), decided(B, 4)
    )


def test_what_a_state_knows_holds() -> None:
    known = Decisions()
    known.decide(ONE.compare_basic("lt_u", A, 4).base, holds=True, epoch=0)
    mine = ONE.symbols.fresh("loaded", WAVE)
    known.decide(equal(mine, 1), holds=True, epoch=0, wave=1)
    assert possible(decided(A, 3), known=known)
    assert not possible(decided(A, 4), known=known)
    assert not possible(decided(mine, 2, 1), known=known)


def test_values_that_are_nested_too_deeply_settle_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def deep(*_: object) -> PathTerms:
        raise RecursionError

    monkeypatch.setattr(witness, "PathTerms", deep)
    verdict = executed(LOOP.format(step=2))
    worded(str(evidence(verdict, "I109")["not replayed"]))


def test_a_launch_that_z3_does_not_find_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def small(*_: object) -> Reply:
        raise witness.NoLaunchError(witness.NO_ANSWER)

    monkeypatch.setattr(witness, "_find_small_example", small)
    verdict = executed(race())
    assert evidence(verdict, "I109")["not replayed"] == witness.NO_ANSWER
    monkeypatch.undo()
    make = BitVectors()
    monkeypatch.setattr(make, "ask", lambda *_: Reply(answer=Answer.UNKNOWN))
    terms = PathTerms(make, None, [])
    given = witness.Possible(terms=terms, reply=Reply(answer=Answer.YES))
    with pytest.raises(witness.NoLaunchError) as caught:
        witness.build_launch(facts(), given, [], Meter(Budget()))
    worded(str(caught.value))


def test_what_a_runtime_fills_in_is_as_it_would_be() -> None:
    arguments = (
        Argument(name="k", offset=0, size=4, kind="by_value"),
        Argument(name="", offset=4, size=4, kind="hidden_block_count_x"),
        Argument(name="", offset=8, size=2, kind="hidden_remainder_x"),
    )
    load = "s_load_dwordx2 s[4:5], s[0:1], 0x4\ns_waitcnt lgkmcnt(0)"
    verdict = executed(race("s_cmp_eq_u32 s4, 7", load), arguments=arguments)
    assert "(7, 1, 1)" in worded(str(evidence(verdict, "I109")["launch"]))
    verdict = executed(race("s_cmp_eq_u32 s5, 7", load), arguments=arguments)
    assert verdict.status is Status.ALARM


def test_arguments_without_names_and_pointers_to_lds_are_passed() -> None:
    load = "s_load_dword s4, s[0:1], 0x0\ns_waitcnt lgkmcnt(0)"
    verdict = executed(race("s_cmp_eq_u32 s4, 7", load), arguments=())
    assert "word 0x0 = 7" in str(evidence(verdict, "I109")["launch"])
    arguments = (Argument(name="lds", offset=0, size=4, kind="dynamic_shared_pointer"),)
    assert executed(race(), arguments=arguments).status is Status.REFUTED


def test_what_the_interpreter_does_not_know_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*_: object, **__: object) -> None:
        raise IsaError.of("I102", "it knows nothing")

    monkeypatch.setattr(confirmation, "load_program", load)
    verdict = executed(race())
    worded(str(evidence(verdict, "I109")["not replayed"]))


def test_one_execution_may_show_two_alarms() -> None:
    verdict = executed(race(more="v_mov_b32_e32 v4, v3\nds_read_b32 v3, v1\nv_mov_b32_e32 v5, v3"))
    assert sorted(codes(verdict)) == ["I103", "I109"]
    assert len({dict(finding.evidence)["launch"] for finding in verdict.findings}) == 1
