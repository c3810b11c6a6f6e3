"""Programs with roles: what the oracle says of small ones that a reader can check, and the proof beside it."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from rota import GFX950
from rota.program.entry import WORKGROUP, Effect, Entry, Op, Place, Space, Version
from rota.program.kinds import Home, OpKind, Phase
from rota.program.loop_spec import LoopOp, LoopSpec, Read, Value
from rota.program.lowered import Barrier, Role, number_entries
from tests.oracle.draw_lowered import draw_lowered, half, meet, wait
from tests.oracle.malform_lowered import edited
from tests.oracle.role_form import broken_rules
from tests.oracle.role_judge import (
    ALARM,
    BARE,
    BOTH_RIGHT,
    BOTH_WRONG,
    DIFFERENT,
    MISSED,
    RIGHT,
    UNMADE,
    WRONG,
    Drawn,
    Tally,
    compare,
    confirm,
    draw_many,
    execution,
)
from tests.oracle.role_machine import judge
from tests.oracle.role_steps import Draft, draft_of
from tests.programs.producer_consumer import MFMA, producer_consumer

pytestmark = pytest.mark.thorough  # runs for seconds

UNTRACED = pytest.mark.no_cover  # hundreds of programs
SPEC = LoopSpec(
    name="two",
    waves=4,
    values=(
        Value(name="A", home=Home.LDS, size=4096),
        Value(name="a", home=Home.REGISTERS, size=8),
        Value(name="c", home=Home.ACCUMULATOR, size=8),
        Value(name="d", home=Home.ACCUMULATOR, size=8),
    ),
    ops=(
        LoopOp(name="load", kind=OpKind.DMA, writes=("A",), moved=4096),
        LoopOp(name="read", kind=OpKind.LDS_READ, reads=(Read(value="A"),), writes=("a",), moved=4096),
        LoopOp(name="c", kind=OpKind.MMA, reads=(Read(value="a"),), writes=("c",), instruction=MFMA),
        LoopOp(name="d", kind=OpKind.MMA, reads=(Read(value="a"),), writes=("d",), instruction=MFMA),
    ),
)
BOTH = (0, 1)
SHARED = "load vm0 bar read lgkm0@0 c@0 lgkm0@1 d@1 bar"
"""Both roles load and read a tile; the first adds to c, the other to d."""
HALVES = "load vm0 arrive await read lgkm0 arrive c@0 d@1 await"


def entry(word: str) -> Entry:
    """`load`, `read`, `c` and `d` of the trip's iteration; `vm0`, `lgkm0`; `bar`, `arrive`, `await`; `@` the roles."""
    name, _, by = word.partition("@")
    roles = tuple(map(int, by.split(","))) if by else None
    if name == "bar":
        return meet(WORKGROUP, Phase.KERNEL, roles)
    if name in ("arrive", "await"):
        return half(WORKGROUP, Phase.KERNEL, roles, arrives=name == "arrive")
    op = next((op for op in SPEC.ops if op.name == name), None)
    if op is None:
        counter = name.rstrip("0123456789")
        return wait(f"{counter}cnt", int(name.removeprefix(counter)), Phase.KERNEL, roles)
    spaces = {"A": Space.LDS, "a": Space.REGISTER, "c": Space.ACCUMULATOR, "d": Space.ACCUMULATOR}
    wants = tuple((Place(spaces[read.value], read.value), Version(read.value, -1)) for read in op.reads)
    (written,) = op.writes
    made = Place(spaces[written], written)
    effect = Effect(
        kind=op.kind,
        counter=GFX950.counter_of(op.kind),
        tokens=0 if op.kind is OpKind.MMA else 1,
        reads=tuple(place for place, _ in wants),
        writes=(made,),
        instance=Version(name, -1),
        wants=wants,
        makes=((made, Version(written, -1)),) if written in "Aa" else (),
    )
    return Entry(op=Op(kind=op.kind, name=name), effect=effect, time_slot=0, phase=Phase.KERNEL, roles=roles)


def program(kernel: str, *, tracked: bool = False, waves: int = 2) -> Draft:
    """One iteration a trip, nothing outside the loop."""
    return Draft(
        machine=GFX950,
        semantics=SPEC,
        prologue=(),
        kernel=number_entries([entry(word) for word in kernel.split()]),
        epilogue=(),
        tiles_per_trip=1,
        tiles_outside=0,
        roles=(
            Role("first", waves, frozenset(("load", "read", "c"))),
            Role("other", waves, frozenset(("load", "read", "d"))),
        ),
        barriers=(Barrier(WORKGROUP, BOTH, BOTH),),
        compiler_tracks_registers=tracked,
        lds_bytes=4096,
        registers=24,
        register_limit=512,
        waves=2 * waves,
    )


def drawn(draft: Draft) -> Drawn:
    return Drawn(seed=0, number=0, edit="", draft=draft)


def kind(draft: Draft) -> str:
    """What the oracle finds, after the search has confirmed it."""
    wrong = judge(draft)
    assert confirm(drawn(draft)) != DIFFERENT
    assert confirm(drawn(draft), every=True, searched=range(2)) != DIFFERENT
    return wrong.kind if wrong else ""


@pytest.mark.parametrize(
    ("kernel", "tracked", "expected"),
    [
        (SHARED, False, ""),
        ("load vm0 bar read c@0 d@1 bar", True, ""),
        ("load vm0 bar read c@0 bar d@1", True, "race"),  # the first role's compiler doesn't wait for the other's read
        ("load vm0 bar read lgkm0@0 c@0 bar lgkm0@1 d@1", False, "race"),
        ("load vm0 bar read lgkm0@0 c@0 d@1 bar", False, "register"),
        ("load vm0@0 bar read lgkm0 c@0 d@1 bar", False, "race"),
        ("load vm0 read lgkm0 c@0 d@1 bar", False, "race"),
        (HALVES, False, ""),
        ("load vm0 arrive await read arrive lgkm0 c@0 d@1 await", False, "race"),
        ("load vm0 arrive read await lgkm0 c@0 d@1 bar", False, "race"),
        ("load vm0 bar@0 arrive@1 read lgkm0 c@0 d@1 bar", False, "race"),
        ("load vm0 bar@0 read lgkm0 c@0 d@1 bar", False, "race"),
        ("load vm0 bar read lgkm0 c@0 d@1 bar bar@0", False, "deadlock"),
        ("load vm1 bar read lgkm0 c@0 d@1 bar", False, "race"),
        ("load vm0 bar read lgkm0 c@0 bar", False, "count"),
        ("load vm0 bar read lgkm0 c d@1 bar", False, "count"),
        ("load vm63 bar read lgkm0 c@0 d@1 bar", False, "encoding"),
        ("load vm0 bar read lgkm0@-1 c@0 d@1 bar", False, "malformed"),
        ("load vm0 bar read lgkm0@7 c@0 d@1 bar", False, "malformed"),
    ],
)
def test_the_oracle_of_two_roles(kernel: str, tracked: bool, expected: str) -> None:
    draft = program(kernel, tracked=tracked)
    assert kind(draft) == expected
    assert compare(drawn(draft)).name in ((RIGHT,) if not expected else (WRONG, UNMADE))


def test_a_roles_two_waves_race_with_each_other() -> None:
    kernel = "load vm0 bar read lgkm0 c@0 d@1 arrive await@1"
    assert kind(program(kernel)) == "race"
    alone = "load vm0 read lgkm0 c@0 d@1 bar"
    one = replace(program(alone, waves=1), roles=(Role("one", 1),), barriers=(Barrier(WORKGROUP, (0,), (0,)),))
    one = replace(one, kernel=tuple(replace(each, roles=None) for each in one.kernel), waves=1)
    assert kind(one) == ""
    assert kind(replace(one, roles=(Role("two", 2),), waves=2)) == "race"


def test_the_proof_ends_where_a_role_arrives_again_and_again_and_never_waits() -> None:
    """What such a role knows of the others is older at the end of every run, of any number of them."""
    unaware = program("load vm0 arrive@1 bar@0 read lgkm0 c@0 d@1 arrive@1 bar@0")
    unaware = replace(unaware, barriers=(Barrier(WORKGROUP, BOTH, (0,)),), reentrant=True)
    assert kind(unaware) == "race"
    assert compare(drawn(unaware)).codes == ("R102", "R103")


@pytest.mark.parametrize("arriving", [BOTH, (0,)])
def test_what_a_role_knows_that_touches_no_tile_matters_to_nobody(arriving: tuple[int, ...]) -> None:
    kernel = "load@0 vm0@0 bar@0 read@0 lgkm0@0 c@0 d@0 bar@0"
    alone = replace(program(kernel if arriving == (0,) else kernel.replace("bar@0", "arrive@1 bar@0")), reentrant=True)
    roles = (Role("all", 2), Role("none", 2, frozenset()))
    alone = replace(alone, roles=roles, barriers=(Barrier(WORKGROUP, arriving, (0,)),))
    assert kind(alone) == ""
    assert compare(drawn(alone)).name == RIGHT


def test_arrivals_that_nobody_waits_for_are_forgotten() -> None:
    draft = program(SHARED)
    unasked = half("unasked", Phase.KERNEL, (1,), arrives=True)
    draft = replace(draft, kernel=(*draft.kernel, unasked), barriers=(*draft.barriers, Barrier("unasked", (1,), ())))
    assert kind(draft) == ""
    assert compare(drawn(draft)).name == RIGHT


def test_without_order_only_a_wait_for_nothing_left_covers_a_load() -> None:
    counted = draft_of(producer_consumer(left=2))
    assert judge(counted) is None
    unordered = judge(replace(counted, machine=counted.machine.doubting("vmcnt")))
    assert unordered is not None
    assert unordered.kind == "race"
    waited = draft_of(producer_consumer(left=0))
    assert judge(replace(waited, machine=waited.machine.doubting("vmcnt"))) is None


def test_an_execution_that_goes_wrong_is_told_event_by_event() -> None:
    events = execution(drawn(program("load vm0 bar read c@0 bar d@1", tracked=True)))
    assert len(events) > 10
    assert "wants" in events[-1]
    assert not execution(drawn(program(SHARED)))


@UNTRACED
def test_clocks_say_what_a_search_through_all_executions_says() -> None:
    found = Counter(confirm(each, most=2_000) for each in draw_many(75, 2_000_000))
    assert not found[DIFFERENT]
    assert min(found[BOTH_RIGHT], found[BOTH_WRONG]) > 10


@UNTRACED
def test_orders_that_the_search_leaves_out_show_nothing_else() -> None:
    random = Random(0)
    found = Counter[str]()
    for _ in range(60):
        _, draft = edited(random, program(random.choice((SHARED, HALVES)), tracked=random.random() < 0.5))
        found[confirm(drawn(draft), every=True, searched=range(2))] += 1
    assert not found[DIFFERENT]
    assert min(found[BOTH_RIGHT], found[BOTH_WRONG]) > 10


@UNTRACED
def test_drawn_programs_are_right_and_of_every_form() -> None:
    drafts = [draw_lowered(Random(seed)) for seed in range(60)]
    assert {len(draft.roles) for draft in drafts} == {1, 2, 3}
    assert {len(draft.barriers) > 1 for draft in drafts} == {True, False}
    assert {draft.compiler_tracks_registers for draft in drafts} == {True, False}
    assert not [draft for draft in drafts if any(broken_rules(draft))]


@UNTRACED
def test_the_proof_says_what_the_oracle_says_of_programs_with_roles() -> None:
    """A share of `benchmarks/role_oracle.py`: valid or not, refused as they are made, or with the same verdict."""
    tally = Tally()
    for each in draw_many(300, 1_000_000):
        tally.add(compare(each))
    wrong = [each for each in tally.disputed if each.name in (MISSED, BARE) or (each.name == ALARM and not each.why)]
    assert not wrong, "\n".join(map(str, wrong))
    assert tally.counts[RIGHT] > 100
    assert tally.counts[WRONG] > 100
    assert tally.counts[UNMADE] > 10


def test_the_oracle_of_roles_shares_nothing_with_what_it_judges() -> None:
    allowed = {f"rota.program.{name}" for name in ("loop_spec", "lowered", "entry", "effects", "kinds", "machine")}
    allowed |= {"tests.oracle.role_steps", "tests.oracle.role_machine"}
    for name in ("role_steps", "role_machine", "role_search", "role_form"):
        tree = ast.parse((Path(__file__).parent / f"{name}.py").read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(("rota", "tests")):
                assert node.module in allowed, name
